//! Grouped-query attention in a notebook.

pub mod figures;
pub mod maps;

use crate::check::{Verdict, check, not_asked};
use contract::interface::{
    AttendCase, AttendGrads, GroupedQueryAttention, KeyValueCache, Manner, Reply,
};

/// A learner's mask for `s` new tokens after `p` in the cache, `[s, p + s]` row by row.
pub type Mask = fn(s: usize, p: usize) -> Vec<bool>;

/// A learner's gradient of one row of scores: `y` are the row's weights, `dy` the gradient with respect to them.
pub type SoftmaxBackward = fn(y: &[f32], dy: &[f32]) -> Vec<f32>;

/// Grades it by the invariants of the task `attention/mask`.
pub fn check_mask(mask: Mask) -> Verdict {
    let lines = Lines { mask: Some(mask), softmax_backward: None };
    check::<dyn GroupedQueryAttention>("attention/mask", &lines)
}

/// Grades it by the invariants of the task `attention/softmax-backward`. Rows are walked here.
pub fn check_softmax_backward(softmax_backward: SoftmaxBackward) -> Verdict {
    let lines = Lines { mask: None, softmax_backward: Some(softmax_backward) };
    check::<dyn GroupedQueryAttention>("attention/softmax-backward", &lines)
}

struct Lines {
    mask: Option<Mask>,
    softmax_backward: Option<SoftmaxBackward>,
}

impl GroupedQueryAttention for Lines {
    fn repeat_in(&self, _: Manner, _: [usize; 4], _: usize, _: &[f32]) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn repeat_backward(&self, _: Manner, _: [usize; 4], _: usize, _: &[f32]) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn mask(&self, s: usize, p: usize) -> Reply<Vec<bool>> {
        let mask = self.mask.ok_or_else(not_asked)?;
        Ok(mask(s, p))
    }

    fn window_mask(&self, _: usize, _: usize, _: usize) -> Reply<Vec<bool>> {
        Err(not_asked())
    }

    fn forward_in(&self, _: Manner, _: &AttendCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn backward_in(&self, _: Manner, _: &AttendCase, _: &[f32]) -> Reply<AttendGrads> {
        Err(not_asked())
    }

    fn softmax_backward_in(
        &self,
        _: Manner,
        shape: [usize; 4],
        y: &[f32],
        dy: &[f32],
    ) -> Reply<Vec<f32>> {
        let back = self.softmax_backward.ok_or_else(not_asked)?;
        Ok(y.chunks(shape[3]).zip(dy.chunks(shape[3])).flat_map(|(y, dy)| back(y, dy)).collect())
    }

    fn cache(&self, _: usize) -> Reply<Box<dyn KeyValueCache>> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_lines_pass() {
        let verdict =
            check_mask(|s, p| (0..s).flat_map(|i| (0..p + s).map(move |j| j <= p + i)).collect());
        assert!(verdict.passed, "{verdict}");
        let verdict = check_softmax_backward(|y, dy| {
            let along: f32 = y.iter().zip(dy).map(|(y, dy)| y * dy).sum();
            y.iter().zip(dy).map(|(y, dy)| y * (dy - along)).collect()
        });
        assert!(verdict.passed, "{verdict}");
    }

    #[test]
    fn wrong_lines_are_named() {
        let verdict =
            check_mask(|s, p| (0..s).flat_map(|i| (0..p + s).map(move |j| j <= i)).collect());
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("aligns the mask's triangle"), "{verdict}");
        let verdict =
            check_softmax_backward(|y, dy| y.iter().zip(dy).map(|(y, dy)| y * dy).collect());
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("uses y · dy as the softmax's gradient"), "{verdict}");
    }
}
