//! Absolute positions of PyTorch.

use super::*;
use crate::implementations::{Adapter, Apart, adapter};
use contract::interface::*;
use std::ops::Range;

const BY_OFFSET: &str = "PyTorch's answers were recorded by an offset";

/// Its words name no position, and it was asked about none for each token.
const APART: &[Apart] = &[
    ("absolute/each-token-its-row", BY_OFFSET),
    ("absolute/tokens-at-one-position-add", BY_OFFSET),
    ("absolute/id-past-the-table", BY_OFFSET),
    ("absolute/one-id-for-each-token", BY_OFFSET),
    ("absolute/refusal-names-the-rows", "PyTorch says `index out of range in self`"),
    ("absolute/refused-past-any-table", "PyTorch says `index out of range in self`"),
];

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(AbsolutePositions, APART);

fn of_sinusoids(call: &str, case: &SinusoidCase) -> Value {
    let SinusoidCase { shape, base, offset, x } = case;
    json!({"call": call, "shape": shape, "base": plain_f64(*base), "offset": offset, "x": plain(x)})
}

fn of_learned(call: &str, case: &LearnedCase) -> Value {
    let LearnedCase { shape, max_seq_len, table, offset, x } = case;
    json!({"call": call, "shape": shape, "max_seq_len": max_seq_len, "table": plain(table),
           "offset": offset, "x": plain(x)})
}

impl AbsolutePositions for PyTorch {
    fn table(&self, hidden_size: usize, base: f64, positions: Range<usize>) -> Reply<Vec<f32>> {
        self.ask_f32(json!({"call": "absolute.table", "hidden_size": hidden_size,
                            "base": plain_f64(base), "start": positions.start, "end": positions.end}))
    }

    fn shift(&self, hidden_size: usize, base: f64, steps: usize) -> Reply<Vec<f32>> {
        self.ask_f32(json!({"call": "absolute.shift", "hidden_size": hidden_size,
                            "base": plain_f64(base), "steps": steps}))
    }

    fn add_sinusoids_in(&self, _: Manner, case: &SinusoidCase) -> Reply<Vec<f32>> {
        self.ask_f32(of_sinusoids("absolute.add_sinusoids", case))
    }

    fn sinusoids_backward_in(&self, _: Manner, case: &SinusoidCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.ask_f32(with_dy(of_sinusoids("absolute.sinusoids_backward", case), dy))
    }

    fn add_learned_in(&self, _: Manner, case: &LearnedCase) -> Reply<Vec<f32>> {
        self.ask_f32(of_learned("absolute.add_learned", case))
    }

    fn learned_backward_in(
        &self,
        _: Manner,
        case: &LearnedCase,
        dy: &[f32],
    ) -> Reply<LearnedGrads> {
        let mut dx = self.ask_f32(with_dy(of_learned("absolute.learned_backward", case), dy))?;
        let dtable = dx.split_off(case.x.len());
        Ok(LearnedGrads { dx, dtable })
    }

    fn add_sinusoids_at(&self, _: Manner, _: &SinusoidCase, _: &[usize]) -> Reply<Vec<f32>> {
        Err(Refusal::not_asked(BY_OFFSET))
    }

    fn add_learned_at(&self, _: Manner, _: &LearnedCase, _: &[usize]) -> Reply<Vec<f32>> {
        Err(Refusal::not_asked(BY_OFFSET))
    }

    fn learned_backward_at(
        &self,
        _: Manner,
        _: &LearnedCase,
        _: &[usize],
        _: &[f32],
    ) -> Reply<LearnedGrads> {
        Err(Refusal::not_asked(BY_OFFSET))
    }
}
