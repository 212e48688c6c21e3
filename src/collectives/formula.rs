//! Collectives as a free function.
//!
//! Sizes are run-time values here, so what the compiler refuses for a module is an [`Error`] for a
//! function. It takes a tensor with a tape or without.

use crate::checks::check_size;
use crate::error::{Error, Result};
use crate::tensor::*;

// ANCHOR: collectives
/// TO DO: the formula in one line, and its source.
///
/// Shapes: `x` `[b, s, h]`, result `[b, s, h]`.
///
/// # Errors
/// An empty input, or one of more elements than memory has addresses; what the device reports.
pub fn collectives<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<(B, S, H), F, D, T>,
) -> Result<Tensor<(B, S, H), F, D, T>> {
    check_size("x", x.shape())?;
    forward(x).map_err(Error::device)
}

/// TO DO: the same formula. Where dfdx's own gradient is not good enough, write it under the forward pass, as in
/// `src/norm/formula.rs`.
fn forward<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<(B, S, H), F, D, T>,
) -> Raw<Tensor<(B, S, H), F, D, T>, D> {
    todo!("the result for x of {:?}, with dfdx's operations, each line with its shape", x.shape())
}
// ANCHOR_END: collectives
