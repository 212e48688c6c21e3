//! The module without device and float type. [`crate::builder`] says what for.

use crate::tensor::*;

/// Builds a [`super::GroupRmsNorm`] of hidden size `H` in groups of `GZ`.
#[derive(Debug, Clone, Copy)]
pub struct GroupRmsNorm<const H: usize, const GZ: usize>;

impl<const H: usize, const GZ: usize, F: Float, D: Backend<F>> BuildOnDevice<D, F>
    for GroupRmsNorm<H, GZ>
{
    type Built = super::GroupRmsNorm<H, GZ, F, D>;
}
