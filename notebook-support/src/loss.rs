//! The loss in a notebook.

use crate::chart::{Axis, Mark, Series, chart};
use crate::check::{Verdict, check, not_asked};
use crate::error::Result;
use crate::plot::{BLUE, Figure, VERMILLION};
use contract::interface::{CrossEntropy, LossCase, Manner, Pairs, Part, Reply, TextCase};
use plotters::prelude::SeriesLabelPosition;

/// A learner's gradient by hand: `logits` are `[places, v]` in one row, `targets` one for each place or none, and the
/// result is the gradient of the mean loss, in the shape of the logits.
pub type Gradient = fn(logits: &[f32], targets: &[Option<usize>], v: usize) -> Vec<f32>;

/// Grades it by the invariants of the task `loss/backward`. What arrives at the loss is multiplied in.
pub fn check_gradient(gradient: Gradient) -> Verdict {
    check::<dyn CrossEntropy>("loss/backward", &Lines(gradient))
}

/// A learner's loss of one place: its logits, and the id of its target.
pub type Loss = fn(logits: &[f32], target: usize) -> f32;

/// Two ways to compute the loss of four logits, with one number, the level, added to all of them. Where a way gives no
/// finite number, it has no mark.
///
/// # Errors
/// What plotters reports.
pub fn levels(naive: Loss, shifted: Loss) -> Result<Figure> {
    let curve = |loss: Loss| -> Vec<(f64, f64)> {
        let steps = (-60i16..=60).map(|half| 2.0 * f32::from(half));
        let losses = steps.map(|level| {
            let logits = [2.0, 1.0, 0.0, -1.0f32].map(|logit| logit + level); // exactly
            (f64::from(level), f64::from(loss(&logits, 1)))
        });
        losses.filter(|(_, loss)| loss.is_finite()).collect()
    };
    let series = [
        Series::new("largest logit subtracted", BLUE, Mark::Line, curve(shifted)),
        Series::new("as it is written down", VERMILLION, Mark::Triangles, curve(naive)),
    ];
    let name = "what is added to all logits";
    let x = Axis { name, range: -120.0..120.0, labels: 13, label: |x| format!("{x:.0}") };
    let y = Axis { name: "loss", range: 0.0..3.0, labels: 7, label: |y| format!("{y:.1}") };
    let question = "How large may logits be?";
    chart(question, (x, y), &series, SeriesLabelPosition::UpperLeft)
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
