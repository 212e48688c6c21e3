//! SwiGLU in a notebook.

use crate::check::{Verdict, check, not_asked};
use contract::interface::{Manner, Reply, SizeCase, SwiGlu, SwiGluCase, SwiGluGrads};

/// A learner's rule for the size between.
pub type Size = fn(hidden_size: usize, multiple_of: usize, multiplier: Option<f64>) -> usize;

/// Grades it by the invariants of the task `feedforward/size`.
pub fn check_size(size: Size) -> Verdict {
    check::<dyn SwiGlu>("feedforward/size", &Lines(size))
}

struct Lines(Size);

impl SwiGlu for Lines {
    fn size(&self, case: &SizeCase) -> Reply<usize> {
        Ok((self.0)(case.hidden_size, case.multiple_of, case.multiplier))
    }

    fn forward_in(&self, _: Manner, _: &SwiGluCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn backward_in(&self, _: Manner, _: &SwiGluCase, _: &[f32]) -> Reply<SwiGluGrads> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(size: usize, multiplier: Option<f64>) -> usize {
        multiplier.map_or(size, |multiplier| (multiplier * size as f64) as usize)
    }

    #[test]
    fn right_lines_pass() {
        let verdict = check_size(|h, multiple_of, multiplier| {
            cut(8 * h / 3, multiplier).next_multiple_of(multiple_of)
        });
        assert!(verdict.passed, "{verdict}");
    }

    #[test]
    fn wrong_lines_are_named() {
        let verdict = check_size(|h, multiple_of, multiplier| {
            cut(8 * h / 3, multiplier) / multiple_of * multiple_of
        });
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("rounds down to the multiple"), "{verdict}");
    }
}
