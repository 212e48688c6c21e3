//! Norms of queries and keys, as Qwen3 has them.

use crate::error::{Error, Result};
use crate::module::parts;
use crate::norm::{GroupRmsNorm, GroupRmsNormConfig};
use crate::position::{PositionEncoding, Positions, ScoreBias};
use crate::tensor::*;

/// A position encoding before which queries and keys are normalized, each head by itself.
///
/// A score is then at most `sqrt(hd)` times the gains, however large the projections have become, so the softmax does not saturate. All heads
/// share a gain for queries and one for keys, `[hd]` each. Source: Henry et al. 2020, "Query-Key Normalization for Transformers"; with RMSNorm
/// and gains as in Qwen3.
///
/// ```
/// use quadrivium::attention::QkNorm;
/// use quadrivium::model::LlamaTransformer;
/// use quadrivium::position::NoPosition;
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let model = LlamaTransformer::<9, 8, 2, 1, 4, 24, 1, f32, _>::new(&dev, Default::default())?;
/// let rope = model.layers.modules[0].self_attn.position.clone();
/// let normed = |_| QkNorm::new(&dev, 1e-6, rope.clone());
/// let mut model = model.with_position(normed, NoPosition)?;
/// let before = model.try_forward(dev.tensor([[1, 7, 2]]))?.as_vec();
/// // Queries of twice the length point where they did.
/// let q_proj = &mut model.layers.modules[0].self_attn.q_proj.weight;
/// *q_proj = q_proj.clone() * 2.0;
/// let after = model.try_forward(dev.tensor([[1, 7, 2]]))?.as_vec();
/// assert!(before.iter().zip(after).all(|(before, after)| (before - after).abs() < 1e-4));
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

/// Each head normalized by itself.
fn each_head<const HD: usize, B: Dim, S: Dim, N: Dim, F, D, T>(
    norm: &GroupRmsNorm<HD, HD, F, D>,
    heads: Tensor<(B, S, N, Const<HD>), F, D, T>,
) -> Result<Tensor<(B, S, N, Const<HD>), F, D, T>>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    let shape @ (b, s, n, hd) = *heads.shape();
    let heads = heads.try_in_order().map_err(Error::device)?;
    let heads = heads.try_reshape_like(&(b, s.size() * n.size(), hd)); //     [b, s n, hd]
    let normed = norm.try_forward(heads.map_err(Error::device)?)?;
    normed.try_reshape_like(&shape).map_err(Error::device) //                 [b, s, n, hd]
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
        self.position.on_queries(each_head(&self.q_norm, queries)?, positions)
    }

    fn on_keys<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        keys: Tensor<(B, S, N, Const<HD>), F, D, T>,
        positions: &Positions,
    ) -> Result<Tensor<(B, S, N, Const<HD>), F, D, T>> {
        self.position.on_keys(each_head(&self.k_norm, keys)?, positions)
    }

    /// The bias is that of the normed queries, where it depends on them.
    fn on_scores<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Tensor<(B, S, N, Const<HD>), F, D, T>,
        keys: usize,
    ) -> Result<ScoreBias<B, S, F, D, T>> {
        self.position.on_scores(each_head(&self.q_norm, queries)?, keys)
    }

    fn check_kept(&self, positions: usize) -> Result<()> {
        self.position.check_kept(positions)
    }
}

parts! {
    [const HD: usize] QkNorm<HD; P>
    { q_norm: "q_norm", k_norm: "k_norm", position: "position" }
}
