//! ALiBi: attention with linear biases. Nothing is learned.

use super::formula::{MAX_HEADS, alibi_bias};
use crate::error::Result;
use crate::tensor::*;
use const_panic::concat_panic;
use std::fmt;

/// Attention with linear biases, for `NH` heads: each head takes from a score its own slope times the distance.
///
/// There are no weights. In a model it is combined with [`NoPosition`](crate::position::NoPosition) on the
/// heads, or with a rotation.
///
/// ```
/// use quadrivium::position::Alibi;
/// use quadrivium::tensor::*;
///
/// let table = Alibi::<2>.by_distance::<f64, _>(&Cpu::default(), 3)?;
/// let (first, second) = (1.0 / 16.0, 1.0 / 256.0); // 2^(-8/2), 2^(-16/2)
/// assert_eq!(table.as_vec(), [0.0, -first, -2.0 * first, 0.0, -second, -2.0 * second]);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Alibi<const NH: usize>;

const fn assert_heads(num_heads: usize) {
    if num_heads == 0 || num_heads > MAX_HEADS {
        concat_panic!("ALiBi has slopes for 1 to ", MAX_HEADS, " heads, and not for ", num_heads);
    }
}

impl<const NH: usize> Alibi<NH> {
    /// The bias of each head at the distances `0 .. positions`, `[nh, t]`.
    ///
    /// # Errors
    /// As for [`alibi_bias`].
    pub fn by_distance<F: Float, D: Device<F>>(
        &self,
        dev: &D,
        positions: usize,
    ) -> Result<Tensor<(usize, usize), F, D>> {
        const { assert_heads(NH) };
        alibi_bias(dev, NH, positions)
    }
}

impl<const NH: usize> ZeroSizedModule for Alibi<NH> {}

impl<const NH: usize> fmt::Display for Alibi<NH> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Alibi(num_heads={NH})")
    }
}
