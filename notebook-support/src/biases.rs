//! Biases in the scores in a notebook.

use crate::check::{Verdict, check, not_asked};
use contract::interface::*;

/// A learner's slopes of ALiBi, `[nh]`.
pub type Slopes = fn(num_heads: usize) -> Vec<f64>;

/// Grades them by the invariants of the task `biases/slopes`.
pub fn check_slopes(slopes: Slopes) -> Verdict {
    check::<dyn ScoreBiases>("biases/slopes", &Lines(slopes))
}

struct Lines(Slopes);

impl ScoreBiases for Lines {
    fn slopes(&self, num_heads: usize) -> Reply<Vec<f64>> {
        Ok((self.0)(num_heads))
    }

    fn alibi(&self, _: &AlibiCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn bucket(&self, _: &BucketCase) -> Reply<usize> {
        Err(not_asked())
    }

    fn t5_in(&self, _: Manner, _: &T5Case) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn t5_backward_in(&self, _: Manner, _: &T5Case, _: &[f32]) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn kerple_in(&self, _: Manner, _: &KerpleCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn kerple_backward_in(&self, _: Manner, _: &KerpleCase, _: &[f32]) -> Reply<KerpleGrads> {
        Err(not_asked())
    }

    fn transformer_xl_in(&self, _: Manner, _: &XlCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_power(n: usize) -> impl Iterator<Item = f64> {
        (1..=n).map(move |t| (-8.0 * t as f64 / n as f64).exp2())
    }

    #[test]
    fn right_lines_pass() {
        let verdict = check_slopes(|nh| {
            let power = (nh + 1).next_power_of_two() / 2;
            of_power(power).chain(of_power(2 * power).step_by(2)).take(nh).collect()
        });
        assert!(verdict.passed, "{verdict}");
    }

    #[test]
    fn wrong_lines_are_named() {
        let verdict = check_slopes(|nh| of_power(nh).collect());
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("the rule for powers of 2"), "{verdict}");
    }
}
