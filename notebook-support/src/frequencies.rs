//! Stretched RoPE in a notebook.

use crate::check::{Verdict, check, not_asked};
use contract::interface::*;

/// A learner's NTK: a base, a rotary_dim and a factor make the frequencies of the planes.
pub type Ntk = fn(rotary_dim: usize, base: f64, factor: f64) -> Vec<f64>;

/// Grades it by the invariants of the task `frequencies/ntk`.
pub fn check_ntk(ntk: Ntk) -> Verdict {
    check::<dyn StretchedRope>("frequencies/ntk", &Lines(ntk))
}

struct Lines(Ntk);

impl StretchedRope for Lines {
    fn frequencies(&self, case: &FrequenciesCase) -> Reply<Frequencies> {
        let Stretch::Ntk { factor } = case.rule else { return Err(not_asked()) };
        Ok(Frequencies { frequencies: (self.0)(case.rotary_dim, case.base, factor), scale: 1.0 })
    }

    fn forward_in(&self, _: Manner, _: &StretchedRopeCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn backward_in(
        &self,
        _: Manner,
        _: &StretchedRopeCase,
        _: &[f32],
    ) -> Reply<StretchedRopeGrads> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_base(d: usize, base: f64) -> Vec<f64> {
        (0..d / 2).map(|i| base.powf(-2.0 * i as f64 / d as f64)).collect()
    }

    #[test]
    fn right_lines_pass() {
        let verdict = check_ntk(|d, base, factor| {
            of_base(d, base * factor.powf(d as f64 / (d as f64 - 2.0)))
        });
        assert!(verdict.passed, "{verdict}");
    }

    #[test]
    fn wrong_lines_are_named() {
        let verdict = check_ntk(|d, base, factor| of_base(d, base * factor));
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("without its power"), "{verdict}");
    }
}
