//! Absolute positions in a notebook.

use crate::check::{Verdict, check, not_asked};
use contract::interface::{
    AbsolutePositions, LearnedCase, LearnedGrads, Manner, Refusal, Reply, SinusoidCase,
};
use std::ops::Range;

/// A learner's table of sinusoids: rows of `hidden_size` values, one after the other. `None` refuses.
pub type Table = fn(positions: Range<usize>, hidden_size: usize, base: f64) -> Option<Vec<f32>>;

/// Grades it by the invariants of the task `absolute/sinusoids`.
pub fn check_table(table: Table) -> Verdict {
    check::<dyn AbsolutePositions>("absolute/sinusoids", &Lines(table))
}

struct Lines(Table);

impl AbsolutePositions for Lines {
    fn table(&self, hidden_size: usize, base: f64, positions: Range<usize>) -> Reply<Vec<f32>> {
        (self.0)(positions, hidden_size, base).ok_or_else(|| Refusal::new("None"))
    }

    fn shift(&self, _: usize, _: f64, _: usize) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn add_sinusoids_in(&self, _: Manner, _: &SinusoidCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn sinusoids_backward_in(&self, _: Manner, _: &SinusoidCase, _: &[f32]) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn add_learned_in(&self, _: Manner, _: &LearnedCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn learned_backward_in(&self, _: Manner, _: &LearnedCase, _: &[f32]) -> Reply<LearnedGrads> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table whose pair `i` has the exponent `per_pair * i / h`.
    fn table(positions: Range<usize>, h: usize, base: f64, per_pair: f64) -> Option<Vec<f32>> {
        let good = h >= 2 && h.is_multiple_of(2) && base.is_finite() && base > 1.0;
        let angle = |m: usize, i: usize| m as f64 * base.powf(-per_pair * i as f64 / h as f64);
        let pair = |angle: f64| [angle.sin() as f32, angle.cos() as f32];
        let row = |m: usize| (0..h / 2).map(move |i| (m, i));
        good.then(|| positions.flat_map(row).flat_map(|(m, i)| pair(angle(m, i))).collect())
    }

    #[test]
    fn right_lines_pass() {
        let verdict = check_table(|positions, h, base| table(positions, h, base, 2.0));
        assert!(verdict.passed, "{verdict}");
    }

    #[test]
    fn wrong_lines_are_named() {
        let verdict = check_table(|positions, h, base| table(positions, h, base, 1.0));
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("has i instead of 2i in the exponent"), "{verdict}");
    }
}
