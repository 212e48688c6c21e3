//! Sinusoidal positions: sines and cosines that are added to tokens. Nothing is learned.

use super::formula::{add_table, frequencies, rounded, sinusoids_at};
use crate::checks::MAX_ELEMENTS;
use crate::error::{Error, Result};
use crate::host::NoWeights;
use crate::number::Number;
use crate::positions::{Places, Positions};
use crate::tensor::*;
use const_panic::concat_panic;
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Sinusoidal positions, added to tokens `[b, s, h]`, alone, as `(x, offset)`, where row `t` is at position `offset + t`, or as
/// `(x, &position_ids)` with a position for each token, `[b, s]`.
///
/// There are no weights and there is no last position. The rows of the longest call are kept, up to 8 million numbers, and
/// shared by clones; a call elsewhere, or in another float type, computes its own.
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
#[derive(Clone)]
pub struct Sinusoidal {
    base: f64,
    no_weights: NoWeights,
    kept: Arc<Mutex<Kept>>,
}

/// [`Rows`] of the float type of the call that left them.
type Kept = Option<Arc<dyn Any + Send + Sync>>;

/// A table from some position on, in the type that tokens are computed in.
struct Rows<W> {
    hidden_size: usize,
    positions: Range<usize>,
    table: Vec<W>, // [positions, h]
}

/// Numbers of a table that are kept, at most: 2048 positions of 4096.
const MOST_KEPT: usize = 1 << 23;

impl<W> Rows<W> {
    /// Those of some positions, if they are there.
    fn of(&self, positions: &Range<usize>, hidden_size: usize) -> Option<&[W]> {
        let within = self.positions.start <= positions.start && positions.end <= self.positions.end;
        if !within || self.hidden_size != hidden_size {
            return None;
        }
        let first = (positions.start - self.positions.start) * hidden_size;
        Some(&self.table[first..][..positions.len() * hidden_size])
    }
}

impl Default for Sinusoidal {
    fn default() -> Self {
        Self::with_base(10_000.0)
    }
}

/// Shows the settings, not what is kept.
impl fmt::Debug for Sinusoidal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sinusoidal").field("base", &self.base).finish()
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
        Ok(Self::with_base(base))
    }

    fn with_base(base: f64) -> Self {
        Self { base, no_weights: NoWeights, kept: Arc::default() }
    }

    /// `w_i = base^(-2i / h)`.
    pub fn base(&self) -> f64 {
        self.base
    }

    /// A table that has these positions.
    fn rows<W: Float>(&self, positions: &Range<usize>, hidden_size: usize) -> Result<Arc<Rows<W>>> {
        // A thread that panicked held the lock for no longer than one of these lines.
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().clone().and_then(|known| known.downcast::<Rows<W>>().ok());
        if let Some(known) = &known
            && known.of(positions, hidden_size).is_some()
        {
            return Ok(Arc::clone(known));
        }
        let table = sinusoids_at(&Places::Row(positions.clone()), hidden_size, self.base)?;
        let table = rounded(&table);
        let rows = Arc::new(Rows { hidden_size, positions: positions.clone(), table });
        let longer = known.is_none_or(|known| {
            rows.table.len() >= known.table.len() || hidden_size != known.hidden_size
        });
        if longer && rows.table.len() <= MOST_KEPT {
            *kept() = Some(Arc::clone(&rows) as Arc<dyn Any + Send + Sync>);
        }
        Ok(rows)
    }
}

/// Tokens, `[b, s, h]`.
type Tokens<B, S, const H: usize, F, D, T> = Tensor<(B, S, Const<H>), F, D, T>;

impl<const H: usize, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>, P: Into<Positions>>
    Module<(Tokens<B, S, H, F, D, T>, P)> for Sinusoidal
{
    type Output = Tokens<B, S, H, F, D, T>;
    type Error = Error;

    fn try_forward(&self, (x, positions): (Self::Output, P)) -> Result<Self::Output> {
        const { assert_even(H) };
        let places = positions.into().of(x.shape())?;
        let (range, rows) = match &places {
            Places::Row(range) => (range.clone(), Places::Row(0..range.len())),
            // A table of all positions up to the last is a short one, or these tokens have their own rows.
            Places::Each { .. } if places.end() <= places.rows() => (0..places.end(), places),
            Places::Each { .. } => {
                let table: Vec<F::Wide> = rounded(&sinusoids_at(&places, H, self.base)?);
                let own = Places::Row(0..places.rows());
                return add_table(x, &table, &own).map_err(Error::device);
            }
        };
        let kept = self.rows(&range, H)?;
        let table = kept.of(&range, H).expect("they were computed for these positions");
        add_table(x, table, &rows).map_err(Error::device)
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
        let base = Cell::new(Self::default().base); // as in `drawn_weight`
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
            |no_weights| Sinusoidal { no_weights, ..Sinusoidal::with_base(base.get()) },
        )
    }
}

impl fmt::Display for Sinusoidal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sinusoidal(base={})", Number(self.base))
    }
}
