//! The tasks of the loss.
//!
//! A model gives `v` logits for each place of a text, and the loss says how surprised it is by the token that follows:
//!
//! ```text
//! loss = mean over the places that are asked about of  ln(sum of exp(logits)) - logits[target]
//! ```
//!
//! That is `-ln softmax(logits)[target]`. A place whose target is `None` is not asked about, because it is padding, or
//! what the user wrote.

use crate::prelude::*;

/// Task `loss/shift`. Inputs and targets of texts `ids`, `[b, s]` row by row: both `[b, s - 1]`.
///
/// ```text
/// inputs  = all tokens of a text but the last
/// targets = all but the first: the token that follows
/// ```
///
/// This is the only place where anything is shifted. A text of fewer than two tokens has no next token, so return an
/// `Err` that says so.
pub fn next_tokens(ids: &[usize], [b, s]: [usize; 2]) -> Result<(Vec<usize>, Vec<usize>)> {
    // task loss/shift: begin
    todo!("task loss/shift")
    // task loss/shift: end
}

/// Task `loss/forward`. The loss of `logits`, `[b, s, v]`, as a single number, `[]`, for `targets`, `[b, s]`, row by
/// row.
///
/// ```text
/// loss = -(sum over asked places of log_softmax(logits)[target]) / (number of asked places)
/// ```
///
/// - Subtract the largest logit of a row before `exp`, as dfdx's `log_softmax` does.
/// - A place without a target has no part in the sum, in the number of places, or in the gradient. Its logits may hold
///   anything, even NaN, so a product with 0 is not enough: keep the rows that are asked about, and go on with these.
/// - A target that is not below `v`, at which dfdx would panic, is an `Err` that names the first of them, its row, its
///   column, and `v`.
/// - Without any target there is no mean, which is an `Err` too.
///
/// The gradient comes from the tape.
pub fn cross_entropy<B: Dim, S: Dim, V: Dim, D: Device<f32>, T: Tape<f32, D>>(
    logits: Tensor<(B, S, V), f32, D, T>,
    targets: &[Option<usize>],
) -> Result<Tensor<Rank0, f32, D, T>> {
    // task loss/forward: begin
    todo!("task loss/forward")
    // task loss/forward: end
}

/// Task `loss/backward`. The gradient of the logits by hand, `[b, s, v]`, without a tape.
///
/// `dloss` is the gradient that arrives: 1 if the loss is the last thing that is computed.
///
/// ```text
/// dlogits = dloss · (softmax(logits) - one_hot(target)) / (number of asked places)
/// ```
///
/// It is exactly 0 at the places that are not asked about, no matter what their logits hold. All targets are below `v`,
/// and there is at least one.
pub fn backward<B: Dim, S: Dim, V: Dim, D: Device<f32>>(
    logits: Tensor<(B, S, V), f32, D>,
    targets: &[Option<usize>],
    dloss: f32,
) -> Tensor<(B, S, V), f32, D> {
    // task loss/backward: begin
    todo!("task loss/backward")
    // task loss/backward: end
}

/// Task `loss/perplexity`. The perplexity of a text that came in parts, each with its mean loss and the number of its
/// places.
///
/// ```text
/// perplexity = exp(mean of the loss over ALL places)
/// ```
///
/// Parts may differ in length, but there is at least one, and each has at least one place.
pub fn perplexity(parts: &[(f32, usize)]) -> f32 {
    // task loss/perplexity: begin
    todo!("task loss/perplexity")
    // task loss/perplexity: end
}
