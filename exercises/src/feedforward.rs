//! The tasks of SwiGLU, the feed-forward network.
//!
//! Each token goes through it by itself, `[b, s, h]` to `[b, s, h]`, with `f` elements in between:
//!
//! ```text
//! y = W_2 (silu(W_1 x) · (W_3 x))        silu(a) = a · sigmoid(a)
//! ```
//!
//! On paper silu is `a / (1 + exp(-a))` as well, but not on a tape: for a gate below -88, `exp(-a)` is infinite in
//! `f32`, and the gradient of that quotient is NaN.
//!
//! `W_1` is the gate: its silu opens and closes what `W_3` sends up, and `W_2` leads back. Source: Shazeer 2020, "GLU
//! Variants Improve Transformer".

use crate::prelude::*;

/// Task `feedforward/size`. `f`, the size in between, by Llama's rule:
///
/// ```text
/// f = int(2 · 4h / 3)                 two thirds of 4h, cut to a whole number
/// f = int(multiplier · f)             if there is a multiplier
/// f = the next multiple of multiple_of, from f on
/// ```
///
/// A size that is a multiple already stays as it is. Both `h` and `multiple_of` are at least 1.
pub fn ffn_hidden_size(hidden_size: usize, multiple_of: usize, multiplier: Option<f64>) -> usize {
    // task feedforward/size: begin
    todo!("task feedforward/size")
    // task feedforward/size: end
}

/// The network of a model of hidden size `H`, with `FF` elements in between.
#[derive(Clone)]
pub struct SwiGlu<const H: usize, const FF: usize, D: Device<f32>> {
    /// `W_1`, `[f, h]`.
    pub gate: Tensor<Rank2<FF, H>, f32, D>,
    /// `W_3`, `[f, h]`.
    pub up: Tensor<Rank2<FF, H>, f32, D>,
    /// `W_2`, `[h, f]`.
    pub down: Tensor<Rank2<H, FF>, f32, D>,
}

impl<const H: usize, const FF: usize, D: Device<f32>> SwiGlu<H, FF, D> {
    /// Task `feedforward/forward`. The forward pass, `[b, s, h]` to `[b, s, h]`.
    ///
    /// ```text
    /// a = W_1 x        c = W_3 x        [b, s, f]
    /// y = W_2 (a · sigmoid(a) · c)      [b, s, h]
    /// ```
    ///
    /// Each row of a matrix makes one element of its result, and `x` holds its tokens as rows, so the product is that
    /// with the transposed matrix.
    ///
    /// The gradient comes from the tape. `x` is used twice and `a` is used twice, and all these uses must be on it, as
    /// must the three matrices; `norm/forward` says how.
    pub fn forward<B: Dim, S: Dim, T: Tape<f32, D>>(
        &self,
        x: Tensor<(B, S, Const<H>), f32, D, T>,
    ) -> Tensor<(B, S, Const<H>), f32, D, T> {
        // task feedforward/forward: begin
        todo!("task feedforward/forward")
        // task feedforward/forward: end
    }
}

/// Task `feedforward/gate-backward`. The gradients by hand of `z = silu(a) · c`, without a tape: `da` and `dc`,
/// `[b, s, f]` each.
///
/// `a` is the gate, `W_1 x`, and `c` is what comes up, `W_3 x`, while `dz` is the gradient of the loss with respect to
/// `z`.
///
/// ```text
/// dc = dz · silu(a)
/// da = dz · c · sigmoid(a) · (1 + a · (1 - sigmoid(a)))
/// ```
///
/// The autograder makes the gradients of the matrices from these.
pub fn gate_backward<B: Dim, S: Dim, N: Dim, D: Device<f32>>(
    a: Tensor<(B, S, N), f32, D>,
    c: Tensor<(B, S, N), f32, D>,
    dz: Tensor<(B, S, N), f32, D>,
) -> (Tensor<(B, S, N), f32, D>, Tensor<(B, S, N), f32, D>) {
    // task feedforward/gate-backward: begin
    todo!("task feedforward/gate-backward")
    // task feedforward/gate-backward: end
}
