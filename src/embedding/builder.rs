//! The module without device and float type. [`crate::builder`] says what for.

use crate::tensor::*;

/// Builds a [`super::VocabEmbedding`] with `V` rows of `M`.
#[derive(Debug, Clone, Copy)]
pub struct VocabEmbedding<const V: usize, const M: usize>;

impl<const V: usize, const M: usize, F: Float, D: Backend<F>> BuildOnDevice<D, F>
    for VocabEmbedding<V, M>
{
    type Built = super::VocabEmbedding<V, M, F, D>;
}
