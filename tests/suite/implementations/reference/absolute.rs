//! Absolute positions of the library.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use quadrivium::position::{add_learned_positions, add_sinusoids, sinusoid_shift, sinusoids};
use std::ops::Range;

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(AbsolutePositions, &[]);

fn narrow(values: Vec<f64>) -> Vec<f32> {
    values.into_iter().map(|value| value as f32).collect()
}

/// A table, a view of its transpose where the manner says so.
fn learned(case: &LearnedCase, manner: Manner) -> Tensor<(usize, usize), f32, Dev> {
    let (ms, h) = (case.max_seq_len, case.shape[2]);
    if manner != Manner::Permuted {
        return tensor(&case.table, (ms, h));
    }
    tensor(&with_axes_reversed(&case.table, &[ms, h]), (h, ms)).permute::<_, Axes2<1, 0>>()
}

fn sinusoids_added(manner: Manner, case: &SinusoidCase, at: &Positions) -> Reply<Vec<f32>> {
    let x = rows(&case.x, case.shape, manner);
    if manner == Manner::Traced {
        return Ok(add_sinusoids(x.leaky_trace(), at, case.base).map_err(refused)?.as_vec());
    }
    Ok(add_sinusoids(x, at, case.base).map_err(refused)?.as_vec())
}

fn learned_added(manner: Manner, case: &LearnedCase, at: &Positions) -> Reply<Vec<f32>> {
    let (x, table) = (rows(&case.x, case.shape, manner), learned(case, manner));
    if manner == Manner::Traced {
        return Ok(add_learned_positions(x.leaky_trace(), &table, at).map_err(refused)?.as_vec());
    }
    Ok(add_learned_positions(x, &table, at).map_err(refused)?.as_vec())
}

fn learned_back(
    manner: Manner,
    case: &LearnedCase,
    at: &Positions,
    dy: &[f32],
) -> Reply<LearnedGrads> {
    let (x, table) = (rows(&case.x, case.shape, leaf_manner(manner)), learned(case, manner));
    let call = || add_learned_positions(traced(&x, manner), &table, at).map_err(refused);
    let mut grads = run_back(manner, dy, call)?;
    Ok(LearnedGrads { dx: gradient(&mut grads, &x), dtable: gradient(&mut grads, &table) })
}

impl AbsolutePositions for Library {
    fn table(&self, hidden_size: usize, base: f64, positions: Range<usize>) -> Reply<Vec<f32>> {
        if positions.is_empty() {
            return Ok(Vec::new()); // as the library's refusal advises
        }
        sinusoids(positions, hidden_size, base).map(narrow).map_err(refused)
    }

    /// The library has the blocks of the matrix; all else in it is 0.
    fn shift(&self, h: usize, base: f64, steps: usize) -> Reply<Vec<f32>> {
        let blocks = sinusoid_shift(steps, h, base).map_err(refused)?;
        let mut matrix = vec![0.0; h * h];
        for (i, block) in blocks.iter().enumerate() {
            for (row, values) in block.iter().enumerate() {
                matrix[(2 * i + row) * h + 2 * i..][..2].copy_from_slice(values);
            }
        }
        Ok(narrow(matrix))
    }

    fn add_sinusoids_in(&self, manner: Manner, case: &SinusoidCase) -> Reply<Vec<f32>> {
        sinusoids_added(manner, case, &case.offset.into())
    }

    fn sinusoids_backward_in(
        &self,
        manner: Manner,
        case: &SinusoidCase,
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let SinusoidCase { shape, base, offset, x } = case;
        let x = rows(x, *shape, leaf_manner(manner));
        let call = || add_sinusoids(traced(&x, manner), *offset, *base).map_err(refused);
        Ok(gradient(&mut run_back(manner, dy, call)?, &x))
    }

    fn add_learned_in(&self, manner: Manner, case: &LearnedCase) -> Reply<Vec<f32>> {
        learned_added(manner, case, &case.offset.into())
    }

    fn learned_backward_in(
        &self,
        manner: Manner,
        case: &LearnedCase,
        dy: &[f32],
    ) -> Reply<LearnedGrads> {
        learned_back(manner, case, &case.offset.into(), dy)
    }

    fn add_sinusoids_at(
        &self,
        manner: Manner,
        case: &SinusoidCase,
        position_ids: &[usize],
    ) -> Reply<Vec<f32>> {
        sinusoids_added(manner, case, &positions(position_ids, case.shape[1], manner))
    }

    fn add_learned_at(
        &self,
        manner: Manner,
        case: &LearnedCase,
        position_ids: &[usize],
    ) -> Reply<Vec<f32>> {
        learned_added(manner, case, &positions(position_ids, case.shape[1], manner))
    }

    fn learned_backward_at(
        &self,
        manner: Manner,
        case: &LearnedCase,
        position_ids: &[usize],
        dy: &[f32],
    ) -> Reply<LearnedGrads> {
        learned_back(manner, case, &positions(position_ids, case.shape[1], manner), dy)
    }
}
