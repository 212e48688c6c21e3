//! Module descriptions without device and float type, as dfdx has them in `dfdx::nn::builders`.
//!
//! They name a module inside a tuple of modules; [`DeviceBuildExt::build_module`] builds it with
//! its default settings, seed 42 among them: two norms of the same size start alike. For other
//! settings use the modules' own `new`.
//!
//! ```
//! use quadrivium::builder::{GroupRmsNorm, VocabEmbedding};
//! use quadrivium::tensor::*;
//!
//! let dev = Cpu::default();
//! type FrontEnd = (VocabEmbedding<100, 8>, GroupRmsNorm<8, 4>);
//! let front_end = dev.build_module::<FrontEnd, f32>();
//! let y = front_end.forward(dev.tensor([[1, 2, 3]]));
//! assert_eq!(y.shape().concrete(), [1, 3, 8]);
//! ```

use crate::tensor::*;

/// Builds a [`crate::GroupRmsNorm`] of hidden size `H` in groups of `GZ`.
#[derive(Debug, Clone, Copy)]
pub struct GroupRmsNorm<const H: usize, const GZ: usize>;

impl<const H: usize, const GZ: usize, F: Float, D: Backend<F>> BuildOnDevice<D, F>
    for GroupRmsNorm<H, GZ>
{
    type Built = crate::GroupRmsNorm<H, GZ, F, D>;
}

/// Builds a [`crate::VocabEmbedding`] with `V` rows of `M`.
#[derive(Debug, Clone, Copy)]
pub struct VocabEmbedding<const V: usize, const M: usize>;

impl<const V: usize, const M: usize, F: Float, D: Backend<F>> BuildOnDevice<D, F>
    for VocabEmbedding<V, M>
{
    type Built = crate::VocabEmbedding<V, M, F, D>;
}

/// Builds rank 0 of a [`crate::ParallelVocabEmbedding`] in a world of `W`.
#[derive(Debug, Clone, Copy)]
pub struct ParallelVocabEmbedding<const V: usize, const M: usize, const W: usize>;

impl<const V: usize, const M: usize, const W: usize, F: Float, D: Backend<F>> BuildOnDevice<D, F>
    for ParallelVocabEmbedding<V, M, W>
{
    type Built = crate::ParallelVocabEmbedding<V, M, W, F, D>;
}

/// Builds a [`crate::NtkAwareRope`] for heads of `HD`.
#[derive(Debug, Clone, Copy)]
pub struct NtkAwareRope<const HD: usize>;

impl<const HD: usize, F: Float, D: Backend<F>> BuildOnDevice<D, F> for NtkAwareRope<HD> {
    type Built = crate::NtkAwareRope<HD, D>;
}
