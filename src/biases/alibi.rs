//! ALiBi: attention with linear biases. Nothing is learned.

use crate::checks::require;
use crate::error::{Error, Result};
use crate::host::{from_host, table_shape};
use crate::tensor::*;
use const_panic::concat_panic;
use std::fmt;

// ANCHOR: alibi_slopes
/// The slopes of the heads. Head `t` of `n`, counted from 1, has `2^(-8t / n)`, if `n` is a power of two.
///
/// For another number of heads, let `p` be the largest power of two below it: the slopes are those of `p` heads, and
/// then every other of `2p` heads, from the first on, as many as are left. They lie between those of `p`, and come in
/// no order with them. Source: Press et al. 2022, "Train Short, Test Long"; the second rule is that of their code,
/// `get_slopes` in ofirpress/attention_with_linear_biases.
///
/// # Errors
/// `num_heads` 0, or more than `2^16`.
pub fn alibi_slopes(num_heads: usize) -> Result<Vec<f64>> {
    let rule = "at least 1 and at most 65536";
    require((1..=MAX_HEADS).contains(&num_heads), "num_heads", rule, num_heads as f64)?;
    let of_power = |n: usize| (1..=n).map(move |t| (-8.0 * t as f64 / n as f64).exp2());
    let power = 1 << num_heads.ilog2();
    let between = of_power(2 * power).step_by(2);
    Ok(of_power(power).chain(between).take(num_heads).collect())
}
// ANCHOR_END: alibi_slopes

/// More heads than any model has. The slopes of more would be the same numbers again.
const MAX_HEADS: usize = 1 << 16;

// ANCHOR: alibi_bias
/// `-slope * j` for each head at each distance `j`, `[nh, t]`. Computed in `f64` and rounded once.
///
/// In `f16`, a bias below -65,504 is minus infinity: such a key has no weight, as it would have none anyway.
///
/// # Errors
/// `num_heads` as for [`alibi_slopes`]; no positions, or more than memory has addresses; what the device reports.
pub fn alibi_bias<F: Float, D: Device<F>>(
    dev: &D,
    num_heads: usize,
    positions: usize,
) -> Result<Tensor<(usize, usize), F, D>> {
    let slopes = alibi_slopes(num_heads)?;
    let shape = table_shape(num_heads, positions)?;
    // 0 minus it, so that there is no -0 at distance 0.
    let row = |slope: f64| (0..positions).map(move |j| 0.0 - slope * j as f64);
    let table: Vec<f64> = slopes.into_iter().flat_map(row).collect();
    from_host(dev, &table, shape).map_err(Error::device) // [nh, t]
}
// ANCHOR_END: alibi_bias

/// Attention with linear biases, for `NH` heads: each head takes from a score its own slope times the distance.
///
/// There are no weights. In a model it stands with [`NoPosition`](crate::position::NoPosition) on the heads, or
/// together with a rotation.
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
