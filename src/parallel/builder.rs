//! The module without device and float type. [`crate::builder`] says what for.

use crate::tensor::*;

/// Builds rank 0 of a [`super::ParallelVocabEmbedding`] in a world of `W`.
#[derive(Debug, Clone, Copy)]
pub struct ParallelVocabEmbedding<const V: usize, const M: usize, const W: usize>;

impl<const V: usize, const M: usize, const W: usize, F: Float, D: Backend<F>> BuildOnDevice<D, F>
    for ParallelVocabEmbedding<V, M, W>
{
    type Built = super::ParallelVocabEmbedding<V, M, W, F, D>;
}
