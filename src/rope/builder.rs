//! The module without device and float type. [`crate::builder`] says what for.

use crate::tensor::*;

/// Builds a [`super::NtkAwareRope`] for heads of `HD`.
#[derive(Debug, Clone, Copy)]
pub struct NtkAwareRope<const HD: usize>;

impl<const HD: usize, F: Float, D: Backend<F>> BuildOnDevice<D, F> for NtkAwareRope<HD> {
    type Built = super::NtkAwareRope<HD, D>;
}
