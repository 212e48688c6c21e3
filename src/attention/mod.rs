//! Causal attention with grouped query heads, its cache, and its place for a position encoding.
//!
//! This file holds the weights and settings. The computation is [`causal_attention`].

mod cache;
mod formula;
pub(crate) mod fused;
mod qk_norm;
pub(crate) mod sizes;
mod window;

pub(crate) use cache::Before;
pub use cache::{Kept, KvCache};
use formula::attention_in_texts;
pub use formula::{
    biased_attention, causal_attention, causal_mask, repeat_kv, sliding_window_mask,
    softmax_backward,
};
pub(crate) use formula::{check_padding, padded_positions};
pub(crate) use fused::{only_seen, score_keys, weigh};
pub use qk_norm::QkNorm;
pub use window::SlidingWindow;

use crate::error::Result;
use crate::linear::{Linear, LinearConfig};
use crate::module::{parts, shown};
use crate::position::{NoPosition, PositionEncoding, Positions, ScoreBias};
use crate::rope::NtkAwareRope;
use crate::tensor::*;
use const_panic::concat_panic;

/// Attention of `NH` query heads over `NKV` key and value heads, each of `HD` elements.
///
/// - `H`: hidden size, `NH * HD`. If it is not, it does not compile.
/// - `NKV`: must divide `NH`. `NKV = NH` is multi-head attention (MHA), `NKV = 1` multi-query attention (MQA),
///   all between grouped-query attention (GQA).
/// - `P`: the position encoding, by default NTK-aware RoPE.
///
/// Input and output are `[b, s, H]`. Source: Ainslie et al. 2023, "GQA"; the projections without bias are those of
/// Llama (Touvron et al. 2023).
///
/// ```
/// use quadrivium::attention::{GroupedQueryAttention, KvCache};
/// use quadrivium::tensor::*;
/// use quadrivium::{NtkAwareRope, NtkAwareRopeConfig};
///
/// let dev = Cpu::default();
/// let rope = NtkAwareRope::<4, _>::new(&dev, NtkAwareRopeConfig::default())?;
/// // 8 elements: two query heads of 4, which share one key head.
/// let attention = GroupedQueryAttention::<8, 2, 1, 4, f32, _>::new(&dev, 42, 0.02, rope)?;
/// let x: Tensor<Rank3<1, 3, 8>, f32, _> = dev.sample_normal();
/// let whole = attention.try_forward(x.clone())?; //                        [b, s, h]
///
/// // Token by token, with the keys and values kept.
/// let mut cache = KvCache::new(3);
/// for t in 0..3 {
///     let token = x.clone().slice((.., t..t + 1, ..)).realize::<(usize, usize, Const<8>)>();
///     let y = attention.try_decode(token, &mut cache, &[])?; //            [b, 1, h]
///     for (got, want) in y.as_vec().iter().zip(&whole.as_vec()[t * 8..]) {
///         assert!((got - want).abs() < 1e-6);
///     }
/// }
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct GroupedQueryAttention<
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    F: Dtype,
    D: Storage<F> + Storage<f32>,
    P = NtkAwareRope<HD, D>,
> {
    /// From tokens to queries, `[nh * hd, h]`.
    pub q_proj: Linear<Const<H>, Product<NH, HD>, F, D>,
    /// From tokens to keys, `[nkv * hd, h]`.
    pub k_proj: Linear<Const<H>, Product<NKV, HD>, F, D>,
    /// From tokens to values, `[nkv * hd, h]`.
    pub v_proj: Linear<Const<H>, Product<NKV, HD>, F, D>,
    /// From what the heads found to tokens, `[h, nh * hd]`.
    pub o_proj: Linear<Product<NH, HD>, Const<H>, F, D>,
    /// What is done about positions.
    pub position: P,
}

const fn assert_attention(h: usize, nh: usize, nkv: usize, hd: usize) {
    if nkv == 0 || nh % nkv != 0 {
        concat_panic!(
            nkv,
            " key and value heads can't be shared by ",
            nh,
            " query heads: the number of query heads must be a multiple of it"
        );
    }
    match nh.checked_mul(hd) {
        Some(size) if size == h => {}
        _ => concat_panic!(
            nh,
            " heads of size ",
            hd,
            " do not make hidden size ",
            h,
            ": the hidden size must be the number of heads times the head size"
        ),
    }
}

/// A table for one number of heads has no row for the next one, and one that is never used.
const fn assert_heads(nh: usize, of_encoding: Option<usize>) {
    match of_encoding {
        Some(heads) if heads != nh => concat_panic!(
            "a position encoding for ",
            heads,
            " heads can't stand in attention of ",
            nh,
            " query heads: both must have the same number"
        ),
        _ => {}
    }
}

/// Tokens, `[b, s, h]`.
type Tokens<B, S, const H: usize, F, D, T = NoneTape> = Tensor<(B, S, Const<H>), F, D, T>;
/// Queries, keys or values, `[b, s, n, hd]`.
type Heads<B, S, const N: usize, const HD: usize, F, D, T = NoneTape> =
    Tensor<(B, S, Const<N>, Const<HD>), F, D, T>;

/// What tokens become before they meet.
struct Encoded<
    B: Dim,
    S: Dim,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    F: Float,
    D: Device<F>,
    T,
> {
    q: Heads<B, S, NH, HD, F, D, T>,
    k: Heads<B, S, NKV, HD, F, D, T>,
    v: Heads<B, S, NKV, HD, F, D, T>,
    bias: ScoreBias<B, S, F, D, T>,
}

impl<const H: usize, const NH: usize, const NKV: usize, const HD: usize, F, D, P>
    GroupedQueryAttention<H, NH, NKV, HD, F, D, P>
where
    F: Float,
    D: Backend<F>,
    P: PositionEncoding<HD, F, D>,
{
    /// Attention with its four matrices drawn from `seed`, `seed + 1`, `seed + 2` and `seed + 3`, normal with
    /// standard deviation `init_std`.
    ///
    /// # Errors
    /// A standard deviation that is negative or not finite; what the device reports.
    pub fn new(dev: &D, seed: u64, init_std: f64, position: P) -> Result<Self> {
        const { assert_attention(H, NH, NKV, HD) };
        let config = |nth| LinearConfig { init_std, init_seed: seed.wrapping_add(nth) };
        Ok(Self {
            q_proj: Linear::new(dev, config(0))?,
            k_proj: Linear::new(dev, config(1))?,
            v_proj: Linear::new(dev, config(2))?,
            o_proj: Linear::new(dev, config(3))?,
            position,
        })
    }

    /// Whole texts `[b, s, h]`, in which the first tokens of a row may be padding: see [`causal_attention`]. A text has the
    /// positions from 0 on, wherever it begins in its row.
    ///
    /// # Errors
    /// An empty input; padding of a whole row, or for another number of rows; positions that the encoding does not
    /// have; what the device reports.
    pub fn try_forward_padded<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
        padding: &[usize],
    ) -> Result<Tokens<B, S, H, F, D, T>> {
        check_padding(padding, x.shape().0.size(), x.shape().1.size())?;
        let positions = Positions::padded(padding, 0, x.shape().1.size());
        self.try_forward_with(x, &NoPosition, positions)
    }

    /// Whole texts `[b, s, h]` with a position for each token: an offset, or `&position_ids`, `[b, s]`, where each token looks
    /// at its own text only (see [`Positions`]). `shared` is a second encoding, one that the blocks of a model share: it acts
    /// before this one's own. [`NoPosition`] is none.
    ///
    /// # Errors
    /// An empty input; `position_ids` of another shape; positions that an encoding does not have; what the device reports.
    pub fn try_forward_with<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
        shared: &impl PositionEncoding<HD, F, D>,
        positions: impl Into<Positions>,
    ) -> Result<Tokens<B, S, H, F, D, T>> {
        let positions = positions.into();
        let Encoded { q, k, v, bias } = self.encode(x, shared, 0, &positions)?;
        self.merge(attention_in_texts(q, k, v, bias, &positions.before())?)
    }

    /// Tokens `[b, s, h]` that follow those in `cache`, which takes them in. `padding` has, for each row, how many tokens at
    /// its start are no text; or it is empty. Positions are counted after them.
    ///
    /// # Errors
    /// A full cache; another batch size than that of the cache; a text of more positions than the encoding can keep;
    /// what the encoding or the device reports. Then the cache is as it was.
    pub fn try_decode<B: Dim, S: Dim>(
        &self,
        x: Tokens<B, S, H, F, D>,
        cache: &mut KvCache<NKV, HD, F, D>,
        padding: &[usize],
    ) -> Result<Tokens<B, S, H, F, D>> {
        self.try_decode_with(x, cache, &NoPosition, padding)
    }

    /// The same with a second encoding, as in [`try_forward_with`](Self::try_forward_with).
    ///
    /// # Errors
    /// As for [`try_decode`](Self::try_decode).
    pub fn try_decode_with<B: Dim, S: Dim>(
        &self,
        x: Tokens<B, S, H, F, D>,
        cache: &mut KvCache<NKV, HD, F, D>,
        shared: &impl PositionEncoding<HD, F, D>,
        padding: &[usize],
    ) -> Result<Tokens<B, S, H, F, D>> {
        let (kept, (b, s, _)) = (cache.positions(), *x.shape());
        let positions = padded_positions(padding, b.size(), kept, s.size())?;
        let least = padding.iter().copied().min().unwrap_or(0);
        let longest = kept.saturating_add(s.size()).saturating_sub(least);
        shared.check_kept(longest)?;
        self.position.check_kept(longest)?;
        let Encoded { q, k, v, bias } = self.encode(x, shared, kept, &positions)?;
        let before = cache.before();
        let found = cache.attend(q, &k, &v, bias, padding)?;
        self.merge(found).inspect_err(|_| cache.back_to(before))
    }

    /// Queries, keys, values and biases of tokens that follow `kept` others of their rows.
    fn encode<B: Dim, S: Dim, T: Tape<F, D>, X: PositionEncoding<HD, F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
        shared: &X,
        kept: usize,
        positions: &Positions,
    ) -> Result<Encoded<B, S, NH, NKV, HD, F, D, T>> {
        const { assert_attention(H, NH, NKV, HD) };
        const { assert_heads(NH, P::HEADS) };
        const { assert_heads(NH, X::HEADS) };
        let (b, s, _) = *x.shape();
        positions.of(x.shape())?; // also where no encoding asks for them
        let keys = kept.saturating_add(s.size());
        let q = self.q_proj.try_forward(x.with_empty_tape())?; //             [b, s, nh * hd]
        let k = self.k_proj.try_forward(x.with_empty_tape())?; //             [b, s, nkv * hd]
        let v = self.v_proj.try_forward(x)?; //                               [b, s, nkv * hd]
        let q = q.try_reshape_like(&(b, s, Const, Const)).map_err(crate::Error::device)?;
        let k = k.try_reshape_like(&(b, s, Const, Const)).map_err(crate::Error::device)?;
        let v = v.try_reshape_like(&(b, s, Const, Const)).map_err(crate::Error::device)?;
        let bias = shared.on_scores(q.with_empty_tape(), keys)?;
        let q = shared.on_queries(q, positions)?; //                          [b, s, nh, hd]
        let k = shared.on_keys(k, positions)?; //                             [b, s, nkv, hd]
        let bias = bias.and(self.position.on_scores(q.with_empty_tape(), keys)?)?;
        let q = self.position.on_queries(q, positions)?; //                   [b, s, nh, hd]
        let k = self.position.on_keys(k, positions)?; //                      [b, s, nkv, hd]
        Ok(Encoded { q, k, v, bias })
    }

    /// From what the heads found, `[b, s, nh, hd]`, to tokens.
    fn merge<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        found: Heads<B, S, NH, HD, F, D, T>,
    ) -> Result<Tokens<B, S, H, F, D, T>> {
        let (b, s, _, _) = *found.shape();
        let found = found.try_reshape_like(&(b, s, Product)).map_err(crate::Error::device)?;
        self.o_proj.try_forward(found) //                                     [b, s, h]
    }
}

impl<const H: usize, const NH: usize, const NKV: usize, const HD: usize, B, S, F, D, P, T>
    Module<Tokens<B, S, H, F, D, T>> for GroupedQueryAttention<H, NH, NKV, HD, F, D, P>
where
    B: Dim,
    S: Dim,
    F: Float,
    D: Backend<F>,
    P: PositionEncoding<HD, F, D>,
    T: Tape<F, D>,
{
    type Output = Tokens<B, S, H, F, D, T>;
    type Error = crate::Error;

    fn try_forward(&self, x: Tokens<B, S, H, F, D, T>) -> Result<Self::Output> {
        self.try_forward_padded(x, &[])
    }
}

parts! {
    [const H: usize, const NH: usize, const NKV: usize, const HD: usize] GroupedQueryAttention<H, NH, NKV, HD; P>
    { q_proj: "q_proj", k_proj: "k_proj", v_proj: "v_proj", o_proj: "o_proj", position: "position" },
    assert_attention(H, NH, NKV, HD)
}

shown! {
    [const H: usize, const NH: usize, const NKV: usize, const HD: usize, F: Dtype, D: Storage<F> + Storage<f32>, P: std::fmt::Debug]
    GroupedQueryAttention<H, NH, NKV, HD, F, D, P>, hidden_size: H, num_heads: NH, num_kv_heads: NKV, head_dim: HD; position
}
