//! The loss in a notebook.

use crate::check::{Verdict, check, not_asked};
use contract::interface::{CrossEntropy, LossCase, Manner, Pairs, Part, Reply, TextCase};

/// A learner's gradient by hand: `logits` are `[places, v]` in one row, `targets` one for each place or none, and the
/// result is the gradient of the mean loss, in the shape of the logits.
pub type Gradient = fn(logits: &[f32], targets: &[Option<usize>], v: usize) -> Vec<f32>;

/// Grades it by the invariants of the task `loss/backward`. What arrives at the loss is multiplied in.
pub fn check_gradient(gradient: Gradient) -> Verdict {
    check::<dyn CrossEntropy>("loss/backward", &Lines(gradient))
}

struct Lines(Gradient);

impl CrossEntropy for Lines {
    fn next_tokens(&self, _: &TextCase) -> Reply<Pairs> {
        Err(not_asked())
    }

    fn forward_in(&self, _: Manner, _: &LossCase) -> Reply<f32> {
        Err(not_asked())
    }

    fn backward_in(&self, _: Manner, case: &LossCase, dloss: f32) -> Reply<Vec<f32>> {
        let v = case.shape[2];
        let mut grads = (self.0)(&case.logits, &case.targets, v);
        // A place that is not asked about is not multiplied: 0 times infinity is no 0.
        let asked = grads.chunks_mut(v).zip(&case.targets).filter(|(_, target)| target.is_some());
        asked.flat_map(|(row, _)| row).for_each(|dlogit| *dlogit *= dloss);
        Ok(grads)
    }

    fn perplexity(&self, _: &[Part]) -> Reply<f32> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gradient, with a 1 subtracted at the target, or another number.
    fn gradient(logits: &[f32], targets: &[Option<usize>], v: usize, one: f32) -> Vec<f32> {
        let asked = targets.iter().flatten().count() as f32;
        let place = |(row, target): (&[f32], &Option<usize>)| -> Vec<f32> {
            let Some(target) = *target else { return vec![0.0; v] };
            let largest = row.iter().copied().fold(f32::MIN, f32::max);
            let exps: Vec<f32> = row.iter().map(|logit| (logit - largest).exp()).collect();
            let total: f32 = exps.iter().sum();
            let hot = |id| if id == target { one } else { 0.0 };
            (0..v).map(|id| (exps[id] / total - hot(id)) / asked).collect()
        };
        logits.chunks(v).zip(targets).flat_map(place).collect()
    }

    #[test]
    fn right_lines_pass() {
        let verdict = check_gradient(|logits, targets, v| gradient(logits, targets, v, 1.0));
        assert!(verdict.passed, "{verdict}");
    }

    #[test]
    fn wrong_lines_are_named() {
        let verdict = check_gradient(|logits, targets, v| gradient(logits, targets, v, 0.0));
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("forgets the one-hot vector"), "{verdict}");
    }
}
