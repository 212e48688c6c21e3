//! Bugs of the rotation's gradient.

use crate::component::bug;
use crate::oracle::Oracle;
use crate::rope::interface::*;
use crate::rope::oracle::RopeLoops;

/// turns the gradient by +m instead of −m
///
/// The backward pass called the forward pass, so lengths are right, and training still lowers the loss.
#[bug("rope/gradient-turned-forward", named_by = "rope/gradient-turns-back")]
impl RopeLoops for TurnedForward {
    fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        Oracle.turn(dy, cos, sin)
    }
}

/// forgets the sine in the gradient
///
/// rotate_half ran on data without a tape, so only x · cos has a gradient.
#[bug("rope/gradient-without-sine", named_by = "rope/gradient-keeps-lengths")]
impl RopeLoops for WithoutSine {
    fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], _: [f64; 2]) -> [f64; 2] {
        [dy[0] * cos[0], dy[1] * cos[1]]
    }
}

/// keeps only the part of the gradient that goes through rotate_half
///
/// dfdx's `slice` WRITES its gradient over what is there instead of adding it, so a tensor that is sliced and used
/// again silently loses a part. Exchange the halves with `roll`, or take everything from the slices: slice each part
/// once, and do not use the whole again.
#[bug(
    "rope/gradient-slice-overwrites",
    named_by = "rope/gradient-keeps-lengths",
    source = "dfdx 0.13.0, src/tensor_ops/slice/cpu_kernel.rs"
)]
impl RopeLoops for SliceOverwrites {
    fn turn_back(&self, dy: [f64; 2], _: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        Oracle.turn_back(dy, [0.0, 0.0], sin)
    }
}

/// gives the first half its gradient and the second half zeros
///
/// The other part of a slice was never added.
#[bug("rope/gradient-first-half", named_by = "rope/gradient-keeps-lengths")]
impl RopeLoops for FirstHalf {
    fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [Oracle.turn_back(dy, cos, sin)[0], 0.0]
    }
}

/// sends no gradient through the rotation
///
/// The result was built from data without a tape, so queries and keys stop learning while values go on.
#[bug("rope/no-gradient", named_by = "rope/gradient-keeps-lengths")]
impl RopeLoops for NoGradient {
    fn turn_back(&self, _: [f64; 2], _: [f64; 2], _: [f64; 2]) -> [f64; 2] {
        [0.0, 0.0]
    }
}

/// passes the gradient on unchanged
///
/// This straight-through gradient has the right length.
#[bug("rope/gradient-unturned", named_by = "rope/gradient-turns-back")]
impl RopeLoops for Unturned {
    fn turn_back(&self, dy: [f64; 2], _: [f64; 2], _: [f64; 2]) -> [f64; 2] {
        dy
    }
}

/// uses the inverse in the gradient instead of the transpose
///
/// The two agree for true tables, but not for scaled ones, which some models have.
#[bug("rope/gradient-inverse", named_by = "rope/gradient-adjoint")]
impl RopeLoops for Inverse {
    fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        let square = (cos[0] * cos[0] + sin[0] * sin[0]).max(1e-12);
        Oracle.turn_back(dy, cos, sin).map(|dx| dx / square)
    }
}

/// sends the gradient to half-split pairs in the interleaved layout too
///
/// The second layout got its own forward pass but shared the backward pass.
#[bug("rope/gradient-half-split-only", named_by = "rope/gradient-turns-back")]
impl RopeLoops for HalfSplitOnly {
    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
        let layout = Layout::HalfSplit;
        Oracle.rotate_backward(&RotateCase { layout, ..case.clone() }, dy)
    }
}

/// gives every head the gradient of the first
///
/// The broadcast over heads was undone by taking only one of them.
#[bug("rope/gradient-of-one-head", named_by = "rope/gradient-f64-loops")]
impl RopeLoops for OneHead {
    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
        let [_, _, nh, d] = case.shape;
        let dx = Oracle.rotate_backward(case, dy);
        (0..dx.len()).map(|i| dx[i - i % (nh * d) + i % d]).collect()
    }
}

/// clips the gradient to ±2
///
/// Clipping belongs in the optimizer, on the norm of all gradients.
#[bug("rope/gradient-clipped", named_by = "rope/gradient-f64-loops")]
impl RopeLoops for Clipped {
    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
        let dx = Oracle.rotate_backward(case, dy);
        dx.into_iter().map(|dx| dx.clamp(-2.0, 2.0)).collect()
    }
}
