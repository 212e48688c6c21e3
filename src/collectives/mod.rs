//! Collectives. TO DO: what it does, in a sentence.
//!
//! This file holds the module. The computation is [`collectives`].

mod formula;

pub use formula::collectives;

use crate::error::{Error, Result};
use crate::tensor::*;
use const_panic::concat_panic;
use std::fmt;

/// Collectives. TO DO: the formula, and an example that is run. A module with weights or settings is written as
/// `src/norm/mod.rs` is.
///
/// - `H`: hidden size, elements per token.
///
/// Input and output are `[b, s, H]`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Collectives<const H: usize>;

const fn assert_size(hidden_size: usize) {
    if hidden_size == 0 {
        concat_panic!("hidden size is 0, but a token has at least 1 element");
    }
}

impl<const H: usize> Collectives<H> {
    /// A module.
    pub fn new() -> Self {
        const { assert_size(H) };
        Self
    }
}

impl<const H: usize, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tensor<(B, S, Const<H>), F, D, T>> for Collectives<H>
{
    type Output = Tensor<(B, S, Const<H>), F, D, T>;
    type Error = Error;

    fn try_forward(&self, x: Tensor<(B, S, Const<H>), F, D, T>) -> Result<Self::Output> {
        const { assert_size(H) };
        collectives(x)
    }
}

impl<const H: usize> ZeroSizedModule for Collectives<H> {}

impl<const H: usize> NonMutableModule for Collectives<H> {}

impl<const H: usize> fmt::Display for Collectives<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collectives(hidden_size={H})")
    }
}
