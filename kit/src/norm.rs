//! GroupRMSNorm in a notebook.

use crate::check::{Verdict, check, not_asked};
use contract::party::{GroupRmsNorm, NormCase, NormGrads, Reply};

/// A learner's forward pass: `x` is `[b, s, h]` in one row, `gamma` is `[h]`, and the result has the
/// shape of `x`.
pub type Forward = fn(x: &[f32], gamma: &[f32], group_size: usize, eps: f32) -> Vec<f32>;

/// Grades it by the invariants of task 1.2.
pub fn check_forward(forward: Forward) -> Verdict {
    check::<dyn GroupRmsNorm>("1.2", &Lines { forward })
}

struct Lines {
    forward: Forward,
}

impl GroupRmsNorm for Lines {
    fn initial_gamma(&self, _: usize, _: (f32, f32), _: u64) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn forward(&self, case: &NormCase) -> Reply<Vec<f32>> {
        Ok((self.forward)(&case.x, &case.gamma, case.group_size, case.eps as f32))
    }

    fn backward(&self, _: &NormCase, _: &[f32]) -> Reply<NormGrads> {
        Err(not_asked())
    }

    fn forward_half(&self, _: &NormCase) -> Reply<Vec<f32>> {
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

    #[test]
    fn a_panic_is_a_verdict() {
        let verdict = check_forward(|_, _, _, _| todo!());
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("replace the todo!()"), "{verdict}");
    }
}
