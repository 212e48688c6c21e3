//! The steps of the tour: each computes one stage on the text's tokens and measures what must
//! hold there. Printing is not here.
//!
//! Letters: `s` tokens, `v` rows of the table, `e` = `h` = 128, `w` = 4 ranks, `n = v / w`,
//! `gz` = 32, `nh` = 2 heads, `hd` = `d` = 64. `u` = 2^-24 is the unit roundoff of `f32`: one
//! rounded operation is off by at most `u`, relative to its result. Checks compute in `f64`, so
//! their own rounding (2^-53) does not count.

pub mod embedding;
pub mod heads;
pub mod long;
pub mod norm;
pub mod parallel;
pub mod rope;

use crate::error::{Error, Result};
use crate::finding::Finding;
use notebook_support::text::TOKENIZER_IDS;
use quadrivium::init::Init;
use quadrivium::parallel::padded_vocab_size;
use quadrivium::tensor::*;
use std::time::{Duration, Instant};

/// `w`: the ranks that share the table.
pub const WORLD_SIZE: usize = 4;
/// `v`: rows of the table, the tokenizer's ids and 3 rows of padding.
pub const TABLE_ROWS: usize = padded_vocab_size(TOKENIZER_IDS, WORLD_SIZE);
/// `n = v / w`: rows of one rank.
pub const SHARD_ROWS: usize = TABLE_ROWS / WORLD_SIZE;
/// `e` and `h`: numbers for each token.
pub const HIDDEN: usize = 128;
/// `gz`: numbers in each group of the norm.
pub const GROUP: usize = 32;
/// `g = h / gz`.
pub const GROUPS: usize = HIDDEN / GROUP;
/// `nh`.
pub const HEADS: usize = 2;
/// `hd`, and `d` in formulas.
pub const HEAD_DIM: usize = HIDDEN / HEADS;
/// Planes that turn in each head.
pub const PLANES: usize = HEAD_DIM / 2;
/// `u`, the unit roundoff of `f32`.
pub const U: f64 = 1.0 / (1 << 24) as f64;

/// Token ids, `[1, s]`.
pub type Ids = Tensor<(Const<1>, usize), usize, Cpu>;
/// One row for each token, `[1, s, h]`.
pub type Hidden = Tensor<(Const<1>, usize, Const<HIDDEN>), f32, Cpu>;
/// Queries or keys, `[1, s, nh, hd]`.
pub type Heads = Tensor<(Const<1>, usize, Const<HEADS>, Const<HEAD_DIM>), f32, Cpu>;

/// What a step gives: its output, what was measured, and how long it took.
#[derive(Debug, Clone)]
pub struct Step<T> {
    /// The input of the next step.
    pub output: T,
    /// The invariants.
    pub findings: Vec<Finding>,
    /// Time of the computation alone.
    pub forward: Duration,
    /// Time of all that was done to check it.
    pub checks: Duration,
}

/// The ids as a tensor, `[1, s]`.
///
/// # Errors
/// What the device reports.
pub fn ids_tensor(dev: &Cpu, ids: &[usize]) -> Result<Ids> {
    dev.try_tensor_from_vec(ids.to_vec(), (Const, ids.len())).map_err(Error::device)
}

/// Rows as a tensor, `[1, s, h]`.
pub(crate) fn hidden_tensor(dev: &Cpu, values: Vec<f32>) -> Result<Hidden> {
    let rows = values.len() / HIDDEN;
    dev.try_tensor_from_vec(values, (Const, rows, Const)).map_err(Error::device)
}

/// Rows as a tensor, `[1, s, nh, hd]`.
pub(crate) fn heads_tensor(dev: &Cpu, values: Vec<f32>) -> Result<Heads> {
    let rows = values.len() / HIDDEN;
    dev.try_tensor_from_vec(values, (Const, rows, Const, Const)).map_err(Error::device)
}

/// A gradient that arrives from above: normal numbers, the same in every run.
pub(crate) fn gradient_from_above(dev: &Cpu, rows: usize) -> Result<Hidden> {
    let init = Init::Normal { mean: 0.0, std: 1.0, seed: 7 };
    hidden_tensor(dev, init.values(rows * HIDDEN))
}

/// The gradients of the loss `sum(y * dy)`, which hands `dy` to `y`.
///
/// # Errors
/// What the device reports.
pub fn backward<S: Shape>(
    y: Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>>,
    dy: Tensor<S, f32, Cpu>,
) -> Result<Gradients<f32, Cpu>> {
    let loss = y.try_mul(dy).and_then(|y| y.try_sum::<Rank0, _>());
    loss.and_then(|loss| loss.try_backward()).map_err(Error::device)
}

/// Runs `work` and adds its time to `total`.
pub(crate) fn timed<T>(total: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *total += start.elapsed();
    result
}

/// The largest value, or `NaN` if there is one. (`f64::max` would hide it.)
pub(crate) fn worst(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |worst, x| if x > worst || x.is_nan() { x } else { worst })
}

/// How many values differ in their bits. Slices of different lengths differ everywhere.
pub(crate) fn different_bits(a: &[f32], b: &[f32]) -> usize {
    if a.len() != b.len() {
        return a.len().max(b.len());
    }
    a.iter().zip(b).filter(|(a, b)| a.to_bits() != b.to_bits()).count()
}

/// `sum a_i b_i` in `f64`.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worst_keeps_nan() {
        assert!(worst([1.0, f64::NAN, 2.0]).is_nan());
        assert_eq!(worst([1.0, 3.0, 2.0]), 3.0);
    }

    #[test]
    fn different_bits_sees_signs_and_lengths() {
        assert_eq!(different_bits(&[0.0, 1.0], &[-0.0, 1.0]), 1);
        assert_eq!(different_bits(&[0.0], &[0.0, 1.0]), 2);
    }

    #[test]
    fn sizes_fit() {
        assert_eq!((TABLE_ROWS, SHARD_ROWS), (100_280, 25_070));
    }
}
