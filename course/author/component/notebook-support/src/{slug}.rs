//! {Type} in a notebook.

use crate::check::{Verdict, check};
use contract::interface::{{Type}, {Type}Case, Reply};

/// A learner's forward pass: `x` is `[b, s, h]` in one row, and so is the result.
pub type Forward = fn(x: &[f32], shape: [usize; 3]) -> Vec<f32>;

/// Grades it by the invariants of the task `{slug}/forward`.
pub fn check_forward(forward: Forward) -> Verdict {
    check::<dyn {Type}>("{slug}/forward", &Lines { forward })
}

struct Lines {
    forward: Forward,
}

impl {Type} for Lines {
    fn forward(&self, case: &{Type}Case) -> Reply<Vec<f32>> {
        Ok((self.forward)(&case.x, case.shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_lines_pass() {
        let verdict = check_forward(|x, shape| {
            todo!("the formula as a learner would write it, for x of {shape:?}, {x:?}")
        });
        assert!(verdict.passed, "{verdict}");
    }

    #[test]
    fn wrong_lines_are_named() {
        let verdict = check_forward(|x, _| x.to_vec());
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("returns its input"), "{verdict}");
    }
}
