//! The whole model.

use super::block::TransformerBlock;
use super::cache::LlamaCache;
use super::parts::{Embed, Head, Normalize, Tied, Tokens};
use super::rope::{LlamaRope, LlamaRopeConfig};
use crate::attention::{GroupedQueryAttention, check_padding, padded_positions};
use crate::checks::same_shape;
use crate::embedding::{VocabEmbedding, VocabEmbeddingConfig};
use crate::error::{Error, Result};
use crate::feedforward::SwiGlu;
use crate::linear::{Linear, LinearConfig};
use crate::module::{parts, shown};
use crate::norm::{GroupRmsNorm, GroupRmsNormConfig};
use crate::position::{NoPosition, PositionEncoding, Positions};
use crate::rope::{NtkAwareRopeConfig, PastCache};
use crate::tensor::*;
use crate::training::recomputed;

/// Settings of a [`LlamaTransformer`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LlamaConfig {
    /// Of every norm. Default `1e-6`.
    pub eps: f64,
    /// Of the position encoding. Default: a training length of 2048, and longer texts are refused, because keys that were
    /// kept would no longer fit.
    pub rope: NtkAwareRopeConfig,
    /// Standard deviation that matrices and table start from. Default 0.02.
    pub init_std: f64,
    /// Each matrix has its own seed, counted on from this one. Default 42.
    pub init_seed: u64,
}

impl Default for LlamaConfig {
    fn default() -> Self {
        let rope = NtkAwareRopeConfig { past_cache: PastCache::Refuse, ..Default::default() };
        Self { eps: 1e-6, rope, init_std: 0.02, init_seed: 42 }
    }
}

/// A Llama decoder: from ids `[b, s]` to logits `[b, s, v]`.
///
/// | Size | Meaning | In a checkpoint's `config.json` |
/// | --- | --- | --- |
/// | `V` | vocabulary | `vocab_size` |
/// | `H` | hidden size, `NH * HD` | `hidden_size` |
/// | `NH` | query heads | `num_attention_heads` |
/// | `NKV` | key and value heads | `num_key_value_heads` |
/// | `HD` | head size | `head_dim` |
/// | `FF` | between, in the network | `intermediate_size` |
/// | `L` | blocks | `num_hidden_layers` |
///
/// The parts are type parameters: `O` the output (its own matrix, or [`Tied`]), `E` the embedding, `N` the norm, `P`
/// the position encoding of each block, `X` one that the model has once, for what acts on the embeddings or is shared by all
/// blocks (by default none; both may be there). Its tensors have the names of Hugging Face's Llama. Source: Touvron et al. 2023, "LLaMA".
///
/// ```
/// use quadrivium::model::{LlamaCache, LlamaTransformer};
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let model = LlamaTransformer::<50, 16, 4, 2, 4, 48, 2, f32, _>::new(&dev, Default::default())?;
/// let logits = model.try_forward(dev.tensor([[7, 42, 7]]))?; //            [b, s, v]
///
/// let mut cache = LlamaCache::new(3);
/// for (t, id) in [7, 42, 7].into_iter().enumerate() {
///     let next = model.try_decode(dev.tensor([[id]]), &mut cache)?; //     [b, 1, v]
///     for (got, want) in next.as_vec().iter().zip(&logits.as_vec()[t * 50..]) {
///         assert!((got - want).abs() < 1e-6);
///     }
/// }
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct LlamaTransformer<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
    F: Dtype,
    D: Storage<F> + Storage<f32>,
    O = Linear<Const<H>, Const<V>, F, D>,
    E = VocabEmbedding<V, H, F, D>,
    N = GroupRmsNorm<H, H, F, D>,
    P = LlamaRope<HD, D>,
    X = NoPosition,
> {
    /// From ids to tokens.
    pub embed_tokens: E,
    /// A position encoding that all blocks share.
    pub position: X,
    /// The blocks, in their order.
    pub layers: modules::Repeated<TransformerBlock<H, NH, NKV, HD, FF, F, D, N, P>, L>,
    /// After the last block.
    pub norm: N,
    /// From tokens to logits.
    pub lm_head: O,
}

impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
    F: Float,
    D: Backend<F>,
> LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, D>
{
    /// A model of the course's own parts, with a separate matrix for the output.
    ///
    /// # Errors
    /// Settings that a part refuses; what the device reports.
    pub fn new(dev: &D, config: LlamaConfig) -> Result<Self> {
        let init_seed = config.init_seed.wrapping_add(1 + 7 * L as u64);
        let head = LinearConfig { init_std: config.init_std, init_seed };
        Self::with_head(dev, config, Linear::new(dev, head)?)
    }
}

impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
    F: Float,
    D: Backend<F>,
> LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, D, Tied>
{
    /// A model of the course's own parts, whose output is its embedding's table once more.
    ///
    /// # Errors
    /// Settings that a part refuses; what the device reports.
    pub fn tied(dev: &D, config: LlamaConfig) -> Result<Self> {
        Self::with_head(dev, config, Tied)
    }
}

impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
    F: Float,
    D: Backend<F>,
    O,
> LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, D, O>
{
    /// A model of the course's own parts and a given output.
    ///
    /// # Errors
    /// Settings that a part refuses; what the device reports.
    pub fn with_head(dev: &D, config: LlamaConfig, lm_head: O) -> Result<Self> {
        let LlamaConfig { eps, rope, init_std, init_seed } = config;
        let rope = LlamaRope::new(dev, LlamaRopeConfig::NtkAware(rope))?; // the blocks share its tables
        let ones = GroupRmsNormConfig { eps, init_range: (1.0, 1.0), ..Default::default() };
        let norm = || GroupRmsNorm::new(dev, ones);
        let block = |nth: usize| -> Result<_> {
            let seed = init_seed.wrapping_add(1 + 7 * nth as u64);
            Ok(TransformerBlock {
                input_layernorm: norm()?,
                self_attn: GroupedQueryAttention::new(dev, seed, init_std, rope.clone())?,
                post_attention_layernorm: norm()?,
                mlp: SwiGlu::new(dev, seed.wrapping_add(4), init_std)?,
            })
        };
        let table = VocabEmbeddingConfig { init_mean: 0.0, init_std, init_seed };
        Ok(Self {
            embed_tokens: VocabEmbedding::new(dev, table)?,
            position: NoPosition,
            layers: modules::Repeated { modules: (0..L).map(block).collect::<Result<_>>()? },
            norm: norm()?,
            lm_head,
        })
    }
}

impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
    F: Float,
    D: Backend<F>,
    O,
    E,
    N,
    P,
    X,
> LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, D, O, E, N, P, X>
{
    /// The same weights with other position encodings: one for each block, made from the block's number, and one that all
    /// share.
    ///
    /// ```
    /// use quadrivium::model::LlamaTransformer;
    /// use quadrivium::position::NoPosition;
    /// use quadrivium::tensor::*;
    ///
    /// let dev = Cpu::default();
    /// let model = LlamaTransformer::<50, 16, 4, 2, 4, 48, 1, f32, _>::new(&dev, Default::default())?;
    /// let bag = model.with_position(|_| Ok(NoPosition), NoPosition)?;
    /// let last = |ids: [usize; 3]| bag.try_forward(dev.tensor([ids])).map(|logits| logits.as_vec()[100..].to_vec());
    /// // Without positions, one block does not know in which order the tokens before the last one came.
    /// for (one, other) in last([1, 2, 3])?.iter().zip(last([2, 1, 3])?) {
    ///     assert!((one - other).abs() < 1e-6);
    /// }
    /// # Ok::<(), quadrivium::Error>(())
    /// ```
    ///
    /// # Errors
    /// What making an encoding reports.
    pub fn with_position<P2, X2>(
        self,
        mut of_block: impl FnMut(usize) -> Result<P2>,
        shared: X2,
    ) -> Result<LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, D, O, E, N, P2, X2>> {
        let block = |(nth, block): (usize, TransformerBlock<H, NH, NKV, HD, FF, F, D, N, P>)| {
            let GroupedQueryAttention { q_proj, k_proj, v_proj, o_proj, .. } = block.self_attn;
            let position = of_block(nth)?;
            Ok(TransformerBlock {
                input_layernorm: block.input_layernorm,
                self_attn: GroupedQueryAttention { q_proj, k_proj, v_proj, o_proj, position },
                post_attention_layernorm: block.post_attention_layernorm,
                mlp: block.mlp,
            })
        };
        let blocks = self.layers.modules.into_iter().enumerate().map(block);
        Ok(LlamaTransformer {
            embed_tokens: self.embed_tokens,
            position: shared,
            layers: modules::Repeated { modules: blocks.collect::<Result<_>>()? },
            norm: self.norm,
            lm_head: self.lm_head,
        })
    }
}

impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
    F: Float,
    D: Backend<F>,
    O: Head<V, H, F, D>,
    E: Embed<V, H, F, D>,
    N: Normalize<H, F, D>,
    P: PositionEncoding<HD, F, D>,
    X: PositionEncoding<HD, F, D>,
> LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, D, O, E, N, P, X>
{
    /// Logits `[b, s, v]` of whole texts `[b, s]`, in which the first `padding` tokens of a row may be no text: see
    /// [`causal_attention`](crate::attention::causal_attention). A text has the positions from 0 on, wherever it begins in its
    /// row, so it says what it says alone.
    ///
    /// # Errors
    /// An id that is not below `V`; padding of a whole row, or for another number of rows; a text that is longer than the
    /// position encoding allows; what the device reports.
    pub fn try_forward_padded<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        ids: Tensor<(B, S), usize, D, T>,
        padding: &[usize],
    ) -> Result<Tokens<B, S, V, F, D, T>> {
        let (b, s) = (ids.shape().0.size(), ids.shape().1.size());
        check_padding(padding, b, s)?;
        self.try_forward_at(ids, Positions::padded(padding, 0, s))
    }

    // ANCHOR: llama_forward
    /// Logits `[b, s, v]` of whole texts `[b, s]` with a position for each token: an offset, or `&position_ids`, `[b, s]`, for
    /// texts that are packed into one row or are anywhere else. A token whose position is not above that of the token
    /// before begins a text, and each token looks at its own text only.
    ///
    /// ```
    /// use quadrivium::model::LlamaTransformer;
    /// use quadrivium::tensor::*;
    ///
    /// let dev = Cpu::default();
    /// let model = LlamaTransformer::<50, 16, 4, 2, 4, 48, 2, f32, _>::new(&dev, Default::default())?;
    /// let position_ids: Tensor<Rank2<1, 5>, usize, _> = dev.tensor([[0, 1, 2, 0, 1]]);
    /// let packed = model.try_forward_at(dev.tensor([[7, 42, 7, 3, 4]]), &position_ids)?.as_vec();
    /// let second = model.try_forward(dev.tensor([[3, 4]]))?.as_vec();
    /// for (got, want) in packed[3 * 50..].iter().zip(&second) {
    ///     assert!((got - want).abs() < 1e-6);
    /// }
    /// # Ok::<(), quadrivium::Error>(())
    /// ```
    ///
    /// # Errors
    /// An id that is not below `V`; `position_ids` of another shape; positions that an encoding does not have; what the device
    /// reports.
    pub fn try_forward_at<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        ids: Tensor<(B, S), usize, D, T>,
        positions: impl Into<Positions>,
    ) -> Result<Tokens<B, S, V, F, D, T>> {
        let positions = positions.into();
        let mut x = self.embed_tokens.embed(ids)?; //                         [b, s, h]
        x = self.position.on_tokens(x, &positions)?; //                       [b, s, h]
        for block in &self.layers.modules {
            x = block.try_forward_with(x, &self.position, &positions)?; //    [b, s, h]
        }
        self.lm_head.logits(self.norm.normalize(x)?, &self.embed_tokens) //   [b, s, v]
    }
    // ANCHOR_END: llama_forward

    /// As [`try_forward_at`](Self::try_forward_at), but of each block only the input is kept: the backward pass runs it again, as
    /// [`recomputed`] does. That takes less memory and more time, and changes no gradient.
    ///
    /// # Errors
    /// As for `try_forward_at`.
    ///
    /// # Panics
    /// In the backward pass, where memory has run out.
    pub fn try_forward_recomputed<B: Dim, S: Dim>(
        &self,
        ids: Tensor<(B, S), usize, D, OwnedTape<F, D>>,
        positions: impl Into<Positions>,
    ) -> Result<Tokens<B, S, V, F, D, OwnedTape<F, D>>>
    where
        N: TensorCollection<F, D> + Clone + 'static,
        P: TensorCollection<F, D> + Clone + 'static,
        X: TensorCollection<F, D> + Clone + 'static,
    {
        let positions = positions.into();
        let mut x = self.embed_tokens.embed(ids)?; //                         [b, s, h]
        x = self.position.on_tokens(x, &positions)?; //                       [b, s, h]
        // ANCHOR: llama_recomputed
        for block in &self.layers.modules {
            let (parts, positions) = ((block.clone(), self.position.clone()), positions.clone());
            x = recomputed(&parts, x, move |(block, shared), x| {
                block.try_forward_with(x, shared, &positions) //              [b, s, h]
            })?;
        }
        // ANCHOR_END: llama_recomputed
        self.lm_head.logits(self.norm.normalize(x)?, &self.embed_tokens) //   [b, s, v]
    }

    // ANCHOR: llama_decode
    /// Logits `[b, s, v]` of tokens `[b, s]` that follow those in `cache`, which takes them in. Positions are counted after the
    /// padding of each row.
    ///
    /// # Errors
    /// An id that is not below `V`; a full cache; another batch size than that of the cache; a text that is longer than
    /// the position encoding allows; what the device reports. Then the cache is as it was.
    pub fn try_decode<B: Dim, S: Dim>(
        &self,
        ids: Tensor<(B, S), usize, D>,
        cache: &mut LlamaCache<NKV, HD, L, F, D>,
    ) -> Result<Tokens<B, S, V, F, D>> {
        let before = cache.before();
        self.decode(ids, cache).inspect_err(|_| cache.back_to(before)) // a call that fails changes nothing
    }

    fn decode<B: Dim, S: Dim>(
        &self,
        ids: Tensor<(B, S), usize, D>,
        cache: &mut LlamaCache<NKV, HD, L, F, D>,
    ) -> Result<Tokens<B, S, V, F, D>> {
        let (kept, (b, s)) = (cache.positions(), *ids.shape());
        let LlamaCache { layers, padding } = cache;
        let blocks = &self.layers.modules;
        same_shape("the model's blocks", &[layers.len().max(blocks.len())], &[layers.len()])?;
        let positions = padded_positions(padding, b.size(), kept, s.size())?;
        let mut x = self.embed_tokens.embed(ids)?; //                         [b, s, h]
        x = self.position.on_tokens(x, &positions)?; //                       [b, s, h]
        for (block, layer) in blocks.iter().zip(layers) {
            x = block.try_decode_with(x, layer, &self.position, padding)?; // [b, s, h]
        }
        self.lm_head.logits(self.norm.normalize(x)?, &self.embed_tokens) //   [b, s, v]
    }
    // ANCHOR_END: llama_decode
}

impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
    B: Dim,
    S: Dim,
    F: Float,
    D: Backend<F>,
    O: Head<V, H, F, D>,
    E: Embed<V, H, F, D>,
    N: Normalize<H, F, D>,
    P: PositionEncoding<HD, F, D>,
    X: PositionEncoding<HD, F, D>,
    T: Tape<F, D>,
> Module<Tensor<(B, S), usize, D, T>>
    for LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, D, O, E, N, P, X>
{
    type Output = Tokens<B, S, V, F, D, T>;
    type Error = Error;

    fn try_forward(&self, ids: Tensor<(B, S), usize, D, T>) -> Result<Self::Output> {
        self.try_forward_at(ids, 0)
    }
}

parts! {
    [const V: usize, const H: usize, const NH: usize, const NKV: usize, const HD: usize, const FF: usize, const L: usize]
    LlamaTransformer<V, H, NH, NKV, HD, FF, L; O, E, N, P, X>
    {
        embed_tokens: "model.embed_tokens", position: "model.position", layers: "model.layers", norm: "model.norm",
        lm_head: "lm_head"
    }
}

shown! {
    [const V: usize, const H: usize, const NH: usize, const NKV: usize, const HD: usize, const FF: usize, const L: usize,
     F: Dtype, D: Storage<F> + Storage<f32>, O, E, N, P, X]
    LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, D, O, E, N, P, X>, vocab_size: V, hidden_size: H, num_heads: NH,
    num_kv_heads: NKV, head_dim: HD, ffn_hidden_size: FF, num_layers: L
}
