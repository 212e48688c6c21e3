//! The wiring of a block, as a free function: what is added to what, and what comes after which norm.

use super::parts::{Normalize, Tokens};
use crate::error::{Error, Result};
use crate::tensor::*;

// ANCHOR: block
/// A pre-norm block: `x = x + attention(norm_1(x))`, then `x = x + network(norm_2(x))`. Each half is a norm and what
/// follows it; tokens are `[b, s, h]` throughout.
///
/// # Errors
/// What a norm or a half refuses; what the device reports.
pub fn pre_norm_block<const H: usize, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tokens<B, S, H, F, D, T>,
    (norm_1, attention): (
        &impl Normalize<H, F, D>,
        impl FnOnce(Tokens<B, S, H, F, D, T>) -> Result<Tokens<B, S, H, F, D, T>>,
    ),
    (norm_2, network): (
        &impl Normalize<H, F, D>,
        impl FnOnce(Tokens<B, S, H, F, D, T>) -> Result<Tokens<B, S, H, F, D, T>>,
    ),
) -> Result<Tokens<B, S, H, F, D, T>> {
    let n = norm_1.normalize(x.with_empty_tape())?; //                        [b, s, h]
    let x = x.try_add(attention(n)?).map_err(Error::device)?; //              [b, s, h]
    let n = norm_2.normalize(x.with_empty_tape())?; //                        [b, s, h]
    x.try_add(network(n)?).map_err(Error::device) //                          [b, s, h]
}
// ANCHOR_END: block
