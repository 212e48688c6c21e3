//! GroupRMSNorm in a notebook.

mod figures;

pub use figures::{eps_places, histograms, inside, left_along_x, outside};

use crate::check::{Verdict, check, not_asked};
use contract::interface::{GroupRmsNorm, Manner, NormCase, NormGrads, Reply};

/// A learner's forward pass: `x` is `[b, s, h]` in one row, `gamma` is `[h]`, and the result has the
/// shape of `x`.
pub type Forward = fn(x: &[f32], gamma: &[f32], group_size: usize, eps: f32) -> Vec<f32>;

/// A learner's backward pass: `dy` is `[b, s, h]` like `x`, `gamma` is `[h]`. The result is `dx`,
/// `[b, s, h]`, and `dgamma`, `[h]`.
pub type Backward =
    fn(x: &[f32], gamma: &[f32], dy: &[f32], group_size: usize, eps: f32) -> (Vec<f32>, Vec<f32>);

/// Grades it by the invariants of the task `norm/forward`.
pub fn check_forward(forward: Forward) -> Verdict {
    check::<dyn GroupRmsNorm>("norm/forward", &Lines { forward: Some(forward), backward: None })
}

/// Grades it by the invariants of the task `norm/backward`.
pub fn check_backward(backward: Backward) -> Verdict {
    check::<dyn GroupRmsNorm>("norm/backward", &Lines { forward: None, backward: Some(backward) })
}

struct Lines {
    forward: Option<Forward>,
    backward: Option<Backward>,
}

impl GroupRmsNorm for Lines {
    fn initial_gamma(&self, _: usize, _: (f32, f32), _: u64) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn forward_in(&self, _: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        let forward = self.forward.ok_or_else(not_asked)?;
        Ok(forward(&case.x, &case.gamma, case.group_size, case.eps as f32))
    }

    fn backward_in(&self, _: Manner, case: &NormCase, dy: &[f32]) -> Reply<NormGrads> {
        let backward = self.backward.ok_or_else(not_asked)?;
        let (dx, dgamma) = backward(&case.x, &case.gamma, dy, case.group_size, case.eps as f32);
        Ok(NormGrads { dx, dgamma })
    }

    fn forward_half_in(&self, _: Manner, _: &NormCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(x: &[f32], gamma: &[f32], group_size: usize, eps: f32) -> Vec<f32> {
        let groups = x.chunks(group_size).flat_map(|group| {
            let mean = group.iter().map(|x| x * x).sum::<f32>() / group_size as f32;
            group.iter().map(move |x| x / (mean + eps).sqrt())
        });
        groups.zip(gamma.iter().cycle()).map(|(x, gamma)| x * gamma).collect()
    }

    fn eps_outside(x: &[f32], gamma: &[f32], group_size: usize, eps: f32) -> Vec<f32> {
        let groups = x.chunks(group_size).flat_map(|group| {
            let mean = group.iter().map(|x| x * x).sum::<f32>() / group_size as f32;
            group.iter().map(move |x| x / (mean.sqrt() + eps))
        });
        groups.zip(gamma.iter().cycle()).map(|(x, gamma)| x * gamma).collect()
    }

    #[test]
    fn right_lines_pass_and_wrong_ones_are_named() {
        assert!(check_forward(right).passed);
        let verdict = check_forward(eps_outside);
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("norm/eps-inside-root"), "{verdict}");
    }

    /// `dx` is given the group's `mean(gamma dy xhat)`, and says what becomes of it.
    fn gradients(
        (x, gamma, dy): (&[f32], &[f32], &[f32]),
        group_size: usize,
        eps: f32,
        along: impl Fn(f32) -> f32,
    ) -> (Vec<f32>, Vec<f32>) {
        let (mut dx, mut dgamma) = (vec![], vec![0.0; gamma.len()]);
        for start in (0..x.len()).step_by(group_size) {
            let group = &x[start..start + group_size];
            let mean = group.iter().map(|x| x * x).sum::<f32>() / group_size as f32;
            let rms = (mean + eps).sqrt();
            let at = |j: usize| (start + j) % gamma.len();
            let p = |j: usize| gamma[at(j)] * dy[start + j];
            let sum = (0..group_size).map(|j| p(j) * group[j] / rms).sum::<f32>();
            for j in 0..group_size {
                dgamma[at(j)] += dy[start + j] * group[j] / rms;
                dx.push((p(j) - group[j] / rms * along(sum / group_size as f32)) / rms);
            }
        }
        (dx, dgamma)
    }

    #[test]
    fn gradients_pass_and_a_constant_rms_is_named() {
        let verdict = check_backward(|x, gamma, dy, group_size, eps| {
            gradients((x, gamma, dy), group_size, eps, |mean| mean)
        });
        assert!(verdict.passed, "{verdict}");
        let verdict = check_backward(|x, gamma, dy, group_size, eps| {
            gradients((x, gamma, dy), group_size, eps, |_| 0.0)
        });
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("norm/gradient-along-x"), "{verdict}");
    }

    /// The notebook's first try.
    #[test]
    fn a_constant_rms_is_named_where_squares_overflow() {
        let verdict = check_backward(|x, gamma, dy, group_size, eps| {
            let (mut dx, mut dgamma) = (vec![], vec![0.0; gamma.len()]);
            for (nth, group) in x.chunks(group_size).enumerate() {
                let mean = group.iter().map(|x| x * x).sum::<f32>() / group_size as f32;
                for (j, x) in group.iter().enumerate() {
                    let i = nth * group_size + j;
                    dgamma[i % gamma.len()] += dy[i] * (x / (mean + eps).sqrt());
                    dx.push(gamma[i % gamma.len()] * dy[i] / (mean + eps).sqrt());
                }
            }
            (dx, dgamma)
        });
        assert!(verdict.to_string().contains("treats the rms as a constant"), "{verdict}");
    }

    #[test]
    fn a_panic_is_a_verdict() {
        let verdict = check_forward(|_, _, _, _| todo!());
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("replace the todo!()"), "{verdict}");
    }
}
