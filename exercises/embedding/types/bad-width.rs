//! Vectors of 5 elements do not fit a norm of 8.
use exercises::norm::GroupRmsNorm;
use exercises::prelude::*;
use exercises::embedding::VocabEmbedding;

pub fn bad(
    embedding: &VocabEmbedding<10, 5, Cpu>,
    norm: &GroupRmsNorm<8, 4, Cpu>,
    ids: Tensor<(usize, usize), usize, Cpu>,
) -> Result<Tensor<(usize, usize, Const<8>), f32, Cpu>> {
    Ok(norm.forward(embedding.forward(ids)?))
}
