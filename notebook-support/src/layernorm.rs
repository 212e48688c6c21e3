//! LayerNorm in a notebook.

mod figures;

pub use figures::{one_pass, two_passes, variances};

use crate::check::{Verdict, check, not_asked};
use contract::interface::{LayerNorm, LayerNormCase, LayerNormGrads, Manner, Reply};

/// A learner's forward pass: `x` is `[b, s, h]` in one row, `gamma` and `beta` are `[h]`, and the result has
/// the shape of `x`.
pub type Forward = fn(x: &[f32], gamma: &[f32], beta: &[f32], eps: f32) -> Vec<f32>;

/// Grades it by the invariants of the task `layernorm/forward`.
pub fn check_forward(forward: Forward) -> Verdict {
    check::<dyn LayerNorm>("layernorm/forward", &Lines(forward))
}

struct Lines(Forward);

impl LayerNorm for Lines {
    fn forward_in(&self, _: Manner, case: &LayerNormCase) -> Reply<Vec<f32>> {
        Ok((self.0)(&case.x, &case.gamma, &case.beta, case.eps as f32))
    }

    fn backward_in(&self, _: Manner, _: &LayerNormCase, _: &[f32]) -> Reply<LayerNormGrads> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A LayerNorm with this variance of a row, given its mean.
    fn norm(
        (x, gamma, beta): (&[f32], &[f32], &[f32]),
        eps: f32,
        variance: impl Fn(&[f32], f32) -> f32,
    ) -> Vec<f32> {
        let h = gamma.len();
        let rows = x.chunks(h).flat_map(|row| {
            let mean = row.iter().sum::<f32>() / h as f32;
            let std = (variance(row, mean) + eps).sqrt();
            (0..h).map(move |j| (row[j] - mean) / std * gamma[j] + beta[j])
        });
        rows.collect()
    }

    #[test]
    fn right_lines_pass_and_wrong_ones_are_named() {
        let verdict = check_forward(|x, gamma, beta, eps| {
            norm((x, gamma, beta), eps, |row, mean| {
                row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / row.len() as f32
            })
        });
        assert!(verdict.passed, "{verdict}");
        let verdict = check_forward(|x, gamma, beta, eps| {
            norm((x, gamma, beta), eps, |row, mean| {
                row.iter().map(|x| x * x).sum::<f32>() / row.len() as f32 - mean * mean
            })
        });
        assert!(!verdict.passed);
        for named in ["layernorm/shift", "mean(x²) − mean(x)²"] {
            assert!(verdict.to_string().contains(named), "{verdict}");
        }
    }

    #[test]
    fn one_pass_loses_what_two_keep() {
        let far = [4096.0f32, 4098.0, 4096.0, 4098.0];
        assert_eq!(two_passes(&far), 1.0);
        let near = far.map(|x| x - 4096.0);
        assert_eq!((one_pass(&near), two_passes(&near)), (1.0, 1.0));
        assert!((one_pass(&far) - 1.0).abs() >= 0.5, "{}", one_pass(&far));
    }
}
