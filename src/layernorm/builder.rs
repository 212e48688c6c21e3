//! The module without device and float type. [`crate::builder`] says what for.

use crate::tensor::*;

/// Builds a [`super::LayerNorm`] of hidden size `H`.
#[derive(Debug, Clone, Copy)]
pub struct LayerNorm<const H: usize>;

impl<const H: usize, F: Float, D: Backend<F>> BuildOnDevice<D, F> for LayerNorm<H> {
    type Built = super::LayerNorm<H, F, D>;
}
