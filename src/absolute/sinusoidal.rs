//! Sinusoidal positions: sines and cosines that are added to tokens. Nothing is learned.

use crate::checks::{MAX_ELEMENTS, check_size, require};
use crate::cpu::{each, rows_of_a_piece};
use crate::error::{Error, Number, Result};
use crate::host::{NoWeights, add_rows, from_host, positions_of};
use crate::tensor::*;
use const_panic::concat_panic;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;

// ANCHOR: sinusoids
/// `P[m, 2i] = sin(m w_i)` and `P[m, 2i + 1] = cos(m w_i)` with `w_i = base^(-2i / h)`, row by row, `[positions, h]`.
///
/// Angles and values are in `f64`. An angle is off by at most `m * 2^-52` radians. Source: Vaswani et al. 2017,
/// "Attention Is All You Need"; their base is 10,000. (Their first code, and fairseq's, has all sines before all
/// cosines, which is the same table with its columns in another order.)
///
/// # Errors
/// No positions, or one past `2^53`; a `hidden_size` that is odd or 0; a `base` that is not finite or not above 1;
/// more elements than memory has addresses.
pub fn sinusoids(positions: Range<usize>, hidden_size: usize, base: f64) -> Result<Vec<f64>> {
    let frequencies = frequencies(hidden_size, base)?;
    check_size("the table of sinusoids", &(positions.len(), hidden_size))?;
    let last = (positions.end - 1) as f64;
    let rule = "below 2^53, where f64 holds every whole number";
    require(positions.end as u64 <= 1 << 53, "every position", rule, last)?;
    let elements = positions.len() * hidden_size;
    let mut table = Vec::new();
    table.try_reserve_exact(elements).map_err(Error::device)?;
    table.resize(elements, 0.0);
    let row = |m: usize, row: &mut [f64]| {
        for (pair, w) in row.chunks_mut(2).zip(&frequencies) {
            let (sin, cos) = (m as f64 * w).sin_cos();
            pair.copy_from_slice(&[sin, cos]);
        }
    };
    let piece = rows_of_a_piece(hidden_size);
    let pieces = table.chunks_mut(piece * hidden_size).zip(positions.step_by(piece));
    each(elements, pieces, |(rows, first)| {
        rows.chunks_mut(hidden_size).zip(first..).for_each(|(place, m)| row(m, place));
    });
    Ok(table)
}

/// `w_i = base^(-2i / h)`, in radians per position.
fn frequencies(hidden_size: usize, base: f64) -> Result<Vec<f64>> {
    let rule = "even and at least 2, because each frequency has a sine and a cosine";
    let even = hidden_size >= 2 && hidden_size % 2 == 0;
    require(even, "hidden_size", rule, hidden_size as f64)?;
    require(base.is_finite() && base > 1.0, "base", "finite and above 1", base)?;
    let h = hidden_size as f64;
    Ok((0..hidden_size / 2).map(|i| base.powf(-2.0 * i as f64 / h)).collect())
}
// ANCHOR_END: sinusoids

// ANCHOR: sinusoid_shift
/// The matrix that takes row `P[m]` of [`sinusoids`] to row `P[m + steps]`, whatever `m` is: for each pair
/// `(sin, cos)` one block `[[cos, sin], [-sin, cos]]` of the angle `steps * w_i`. All else in the matrix is 0.
///
/// So a model can learn to look a fixed number of positions back. Source: Vaswani et al. 2017, section 3.5.
///
/// # Errors
/// `hidden_size` and `base` as for [`sinusoids`]; more than `2^53` steps.
pub fn sinusoid_shift(steps: usize, hidden_size: usize, base: f64) -> Result<Vec<[[f64; 2]; 2]>> {
    let rule = "at most 2^53, where f64 holds every whole number";
    require(steps as u64 <= 1 << 53, "steps", rule, steps as f64)?;
    let block = |w: f64| {
        let (sin, cos) = (steps as f64 * w).sin_cos();
        [[cos, sin], [-sin, cos]]
    };
    Ok(frequencies(hidden_size, base)?.into_iter().map(block).collect())
}
// ANCHOR_END: sinusoid_shift

// ANCHOR: add_sinusoids
/// Adds to each token its position's row: `y[b, t] = x[b, t] + P[offset + t]`, `[b, s, h]`.
///
/// The rows are those of [`sinusoids`], rounded to `f32` or better; the sum is rounded once. The gradient of `x` is
/// that of `y`.
///
/// # Errors
/// As for [`sinusoids`]; an empty input; an `offset + s` past the largest `usize`; what the device reports.
pub fn add_sinusoids<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<(B, S, H), F, D, T>,
    offset: usize,
    base: f64,
) -> Result<Tensor<(B, S, H), F, D, T>> {
    let positions = positions_of(x.shape(), offset)?;
    let (_, s, h) = *x.shape();
    let rows = sinusoids(positions, h.size(), base)?;
    let run = || -> Raw<_, D> {
        let rows = from_host(x.device(), &rows, (s, h))?; //                  [s, h]
        add_rows(x, rows, |_, _| Ok(())) //                                   [b, s, h]
    };
    run().map_err(Error::device)
}
// ANCHOR_END: add_sinusoids

/// Sinusoidal positions, added to tokens `[b, s, h]`, alone or as `(x, offset)`. Row `t` is at position `offset + t`.
///
/// There are no weights and there is no last position. The rows are computed anew for each call.
///
/// ```
/// use quadrivium::position::Sinusoidal;
/// use quadrivium::tensor::*;
///
/// let x: Tensor<Rank3<1, 2, 2>, f64, _> = Cpu::default().zeros();
/// let y = Sinusoidal::default().try_forward((x, 1))?;
/// assert_eq!(y.array(), [[[1f64.sin(), 1f64.cos()], [2f64.sin(), 2f64.cos()]]]);
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// An odd hidden size does not compile:
/// ```compile_fail
/// use quadrivium::position::Sinusoidal;
/// use quadrivium::tensor::*;
/// let x: Tensor<Rank3<1, 2, 3>, f64, _> = Cpu::default().zeros();
/// let y = Sinusoidal::default().try_forward((x, 1));
/// ```
#[derive(Debug, Clone)]
pub struct Sinusoidal {
    base: f64,
    no_weights: NoWeights,
}

impl Default for Sinusoidal {
    fn default() -> Self {
        Self { base: 10_000.0, no_weights: NoWeights }
    }
}

const fn assert_even(hidden_size: usize) {
    if hidden_size == 0 || hidden_size % 2 != 0 || hidden_size > MAX_ELEMENTS {
        concat_panic!(
            "hidden size ",
            hidden_size,
            " has no sinusoids: it must be even and at least 2, because each frequency has a sine and a cosine"
        );
    }
}

impl Sinusoidal {
    /// Sinusoids of another base than 10,000.
    ///
    /// # Errors
    /// A `base` that is not finite or not above 1.
    pub fn new(base: f64) -> Result<Self> {
        frequencies(2, base)?;
        Ok(Self { base, no_weights: NoWeights })
    }

    /// `w_i = base^(-2i / h)`.
    pub fn base(&self) -> f64 {
        self.base
    }
}

/// Tokens, `[b, s, h]`.
type Tokens<B, S, const H: usize, F, D, T> = Tensor<(B, S, Const<H>), F, D, T>;

impl<const H: usize, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<(Tokens<B, S, H, F, D, T>, usize)> for Sinusoidal
{
    type Output = Tokens<B, S, H, F, D, T>;
    type Error = Error;

    fn try_forward(&self, (x, offset): (Self::Output, usize)) -> Result<Self::Output> {
        const { assert_even(H) };
        add_sinusoids(x, offset, self.base)
    }
}

impl<const H: usize, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tokens<B, S, H, F, D, T>> for Sinusoidal
{
    type Output = Tokens<B, S, H, F, D, T>;
    type Error = Error;

    fn try_forward(&self, x: Self::Output) -> Result<Self::Output> {
        self.try_forward((x, 0))
    }
}

impl NonMutableModule for Sinusoidal {}

impl<F: Float, D: Backend<F>> TensorCollection<F, D> for Sinusoidal {
    type To<F2: Dtype, D2: Device<F2>> = Sinusoidal;

    fn iter_tensors<V: ModuleVisitor<Self, F, D>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        let base = Cell::new(Self::default().base); // as in GroupRmsNorm
        visitor.visit_fields(
            <Self as TensorCollection<F, D>>::module(
                "",
                |sinusoidal| {
                    base.set(sinusoidal.base);
                    &sinusoidal.no_weights
                },
                |sinusoidal| {
                    base.set(sinusoidal.base);
                    &mut sinusoidal.no_weights
                },
            ),
            |no_weights| Sinusoidal { base: base.get(), no_weights },
        )
    }
}

impl fmt::Display for Sinusoidal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sinusoidal(base={})", Number(self.base))
    }
}
