//! Sinusoidal positions: sines and cosines that are added to tokens. Nothing is learned.

use super::formula::{add_sinusoids, frequencies};
use crate::checks::MAX_ELEMENTS;
use crate::error::{Error, Number, Result};
use crate::host::NoWeights;
use crate::tensor::*;
use const_panic::concat_panic;
use std::cell::Cell;
use std::fmt;

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
