//! Norms of queries and keys, as Qwen3 has them.

use crate::error::Result;
use crate::module::parts;
use crate::norm::{GroupRmsNorm, GroupRmsNormConfig};
use crate::position::{PositionEncoding, Positions, ScoreBias};
use crate::tensor::*;

/// A position encoding before which queries and keys are normalized, each head by itself.
///
/// A score is then at most `sqrt(hd)` times the largest gains of both, so growing projections alone can't saturate the softmax. All heads
/// share a gain for queries and one for keys, `[hd]` each. Source: Henry et al. 2020, "Query-Key Normalization for Transformers", with another
/// norm; with RMSNorm before RoPE as in Qwen3.
///
/// ```
/// use quadrivium::attention::QkNorm;
/// use quadrivium::model::{LlamaConfig, LlamaTransformer};
/// use quadrivium::position::NoPosition;
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let config = LlamaConfig { init_std: 0.5, ..Default::default() };
/// let mut model = LlamaTransformer::<9, 8, 2, 1, 4, 24, 1, f32, _>::new(&dev, config)?;
/// let rope = model.layers.modules[0].self_attn.position.clone();
/// let mut normed = model.clone().with_position(|_| QkNorm::new(&dev, 1e-6, rope.clone()), NoPosition)?;
/// let ids = dev.tensor([[1, 7, 2]]);
/// let (before, before_normed) = (model.try_forward(ids.clone())?, normed.try_forward(ids.clone())?);
/// // Queries of twice the length point where they did.
/// let longer = model.layers.modules[0].self_attn.q_proj.weight.clone() * 2.0;
/// model.layers.modules[0].self_attn.q_proj.weight = longer.clone();
/// normed.layers.modules[0].self_attn.q_proj.weight = longer;
/// let moved = model.try_forward(ids.clone())? - before;
/// let moved_normed = normed.try_forward(ids)? - before_normed;
/// assert!(moved.abs().as_vec().iter().any(|moved| *moved > 0.01));
/// assert!(moved_normed.abs().as_vec().iter().all(|moved| *moved < 1e-4));
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct QkNorm<const HD: usize, F: Dtype, D: Storage<F> + Storage<f32>, P> {
    /// Of each query.
    pub q_norm: GroupRmsNorm<HD, HD, F, D>,
    /// Of each key.
    pub k_norm: GroupRmsNorm<HD, HD, F, D>,
    /// What comes after them.
    pub position: P,
}

impl<const HD: usize, F: Float, D: Backend<F>, P> QkNorm<HD, F, D, P> {
    /// Norms with gains of 1 before `position`.
    ///
    /// # Errors
    /// An `eps` that is negative, not finite, or rounds to 0; what the device reports.
    pub fn new(dev: &D, eps: f64, position: P) -> Result<Self> {
        let ones = GroupRmsNormConfig { eps, init_range: (1.0, 1.0), ..Default::default() };
        let norm = || GroupRmsNorm::new(dev, ones);
        Ok(Self { q_norm: norm()?, k_norm: norm()?, position })
    }
}

impl<const HD: usize, F: Float, D: Backend<F>, P: PositionEncoding<HD, F, D>>
    PositionEncoding<HD, F, D> for QkNorm<HD, F, D, P>
{
    const HEADS: Option<usize> = P::HEADS;

    fn on_tokens<const H: usize, B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        tokens: Tensor<(B, S, Const<H>), F, D, T>,
        positions: &Positions,
    ) -> Result<Tensor<(B, S, Const<H>), F, D, T>> {
        self.position.on_tokens(tokens, positions)
    }

    fn on_queries<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Tensor<(B, S, N, Const<HD>), F, D, T>,
        positions: &Positions,
    ) -> Result<Tensor<(B, S, N, Const<HD>), F, D, T>> {
        self.position.on_queries(self.q_norm.try_forward_heads(queries)?, positions)
    }

    fn on_keys<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        keys: Tensor<(B, S, N, Const<HD>), F, D, T>,
        positions: &Positions,
    ) -> Result<Tensor<(B, S, N, Const<HD>), F, D, T>> {
        self.position.on_keys(self.k_norm.try_forward_heads(keys)?, positions)
    }

    /// The bias is that of the normed queries. They are normalized for it once more, also if it does not depend on them.
    fn on_scores<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Tensor<(B, S, N, Const<HD>), F, D, T>,
        keys: usize,
    ) -> Result<ScoreBias<B, S, F, D, T>> {
        self.position.on_scores(self.q_norm.try_forward_heads(queries)?, keys)
    }

    fn check_kept(&self, positions: usize) -> Result<()> {
        self.position.check_kept(positions)
    }
}

parts! {
    [const HD: usize] QkNorm<HD; P>
    { q_norm: "q_norm", k_norm: "k_norm", position: "position" }
}
