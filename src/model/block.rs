//! A decoder block: attention and a feed-forward network, each after a norm and beside a residual.

use super::formula::pre_norm_block;
use super::parts::{Normalize, Tokens};
use super::rope::LlamaRope;
use crate::attention::{GroupedQueryAttention, KvCache};
use crate::error::Result;
use crate::feedforward::SwiGlu;
use crate::module::parts;
use crate::norm::GroupRmsNorm;
use crate::position::{NoPosition, PositionEncoding, Positions};
use crate::tensor::*;
use std::fmt;

/// A pre-norm block: `x = x + attention(norm(x))`, then `x = x + network(norm(x))`.
///
/// - `N`: the norm, by default GroupRMSNorm with one group.
/// - `P`: the position encoding, by default [`LlamaRope`].
///
/// The other sizes are those of [`GroupedQueryAttention`] and [`SwiGlu`]. Input and output are `[b, s, H]`. Source:
/// pre-norm: Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture".
#[derive(Clone)]
pub struct TransformerBlock<
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    F: Dtype,
    D: Storage<F> + Storage<f32>,
    N = GroupRmsNorm<H, H, F, D>,
    P = LlamaRope<HD, D>,
> {
    /// Before attention.
    pub input_layernorm: N,
    /// Looks at earlier tokens.
    pub self_attn: GroupedQueryAttention<H, NH, NKV, HD, F, D, P>,
    /// Before the network. Another one than the first: they have learned other scales.
    pub post_attention_layernorm: N,
    /// Works on each token alone.
    pub mlp: SwiGlu<H, FF, F, D>,
}

impl<
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    F,
    D,
    N,
    P,
> TransformerBlock<H, NH, NKV, HD, FF, F, D, N, P>
where
    F: Float,
    D: Backend<F>,
    N: Normalize<H, F, D>,
    P: PositionEncoding<HD, F, D>,
{
    /// Whole texts `[b, s, h]` with a position for each token: an offset, or `&position_ids`, `[b, s]` (see [`Positions`]).
    /// `shared` is an encoding that all blocks share; [`NoPosition`] is none.
    ///
    /// # Errors
    /// What its parts refuse.
    pub fn try_forward_with<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
        shared: &impl PositionEncoding<HD, F, D>,
        positions: impl Into<Positions>,
    ) -> Result<Tokens<B, S, H, F, D, T>> {
        self.around(x, |n| self.self_attn.try_forward_with(n, shared, positions))
    }

    /// Tokens `[b, s, h]` that follow those in `cache`, which takes them in.
    ///
    /// # Errors
    /// What its parts refuse; then the cache is as it was.
    pub fn try_decode_with<B: Dim, S: Dim>(
        &self,
        x: Tokens<B, S, H, F, D>,
        cache: &mut KvCache<NKV, HD, F, D>,
        shared: &impl PositionEncoding<HD, F, D>,
        padding: &[usize],
    ) -> Result<Tokens<B, S, H, F, D>> {
        let before = cache.before();
        let y = self.around(x, |n| self.self_attn.try_decode_with(n, cache, shared, padding));
        y.inspect_err(|_| cache.back_to(before)) // a call that fails changes nothing
    }

    /// The block around its attention.
    fn around<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
        attention: impl FnOnce(Tokens<B, S, H, F, D, T>) -> Result<Tokens<B, S, H, F, D, T>>,
    ) -> Result<Tokens<B, S, H, F, D, T>> {
        let (first, second) = (&self.input_layernorm, &self.post_attention_layernorm);
        pre_norm_block(x, (first, attention), (second, |n| self.mlp.try_forward(n)))
    }
}

impl<
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    B: Dim,
    S: Dim,
    F: Float,
    D: Backend<F>,
    N: Normalize<H, F, D>,
    P: PositionEncoding<HD, F, D>,
    T: Tape<F, D>,
> Module<Tokens<B, S, H, F, D, T>> for TransformerBlock<H, NH, NKV, HD, FF, F, D, N, P>
{
    type Output = Tokens<B, S, H, F, D, T>;
    type Error = crate::Error;

    fn try_forward(&self, x: Tokens<B, S, H, F, D, T>) -> Result<Self::Output> {
        self.try_forward_with(x, &NoPosition, 0)
    }
}

parts! {
    [const H: usize, const NH: usize, const NKV: usize, const HD: usize, const FF: usize] TransformerBlock<H, NH, NKV, HD, FF; N, P>
    { input_layernorm: "input_layernorm", self_attn: "self_attn", post_attention_layernorm: "post_attention_layernorm", mlp: "mlp" }
}

/// Shows the parts, not the weights.
impl<
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    F,
    D,
    N,
    P,
> fmt::Debug for TransformerBlock<H, NH, NKV, HD, FF, F, D, N, P>
where
    F: Dtype,
    D: Storage<F> + Storage<f32>,
    N: fmt::Debug,
    P: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransformerBlock")
            .field("input_layernorm", &self.input_layernorm)
            .field("self_attn", &self.self_attn)
            .field("post_attention_layernorm", &self.post_attention_layernorm)
            .field("mlp", &self.mlp)
            .finish()
    }
}
