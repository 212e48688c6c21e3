//! Grouped-query attention.

use super::{elements, length};
use crate::attention::check_padding;
use crate::attention::fused::{Attend, Bias};
use crate::attention::sizes::Sizes;
use crate::cpu::Source;
use crate::error::{Error, Result};
use crate::tensor::Scalar;
use std::borrow::Cow;

/// The sizes of a call. Query `i`, counted from 0, sees the first `kv_len - seq_len + i + 1` keys of its text, except for padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionSizes {
    /// Texts in the batch.
    pub batch_size: usize,
    /// Queries per text.
    pub seq_len: usize,
    /// Keys per text: those of the past, then those of the queries' own tokens.
    pub kv_len: usize,
    /// Query heads.
    pub num_heads: usize,
    /// Key/value heads; each is shared by `num_heads / num_kv_heads` consecutive query heads.
    pub num_kv_heads: usize,
    /// Elements per head.
    pub head_dim: usize,
}

/// What the backward pass needs from the forward pass: two numbers per query and head.
#[derive(Debug, Clone)]
pub struct SoftmaxStats<N: Scalar> {
    sizes: AttentionSizes,
    padding: Vec<usize>,
    kept: Vec<[N::Wide; 2]>,
}

impl<N: Scalar> SoftmaxStats<N> {
    /// Computes the statistics again, if you could not keep those of the forward pass. It costs a whole forward pass.
    ///
    /// # Errors
    /// As for [`causal_attention`].
    pub fn of(sizes: AttentionSizes, padding: &[usize], q: &[N], k: &[N]) -> Result<Self> {
        causal_attention(sizes, padding, q, (k, k), &mut q.to_vec())
    }
}

/// `softmax(q k^T / sqrt(head_dim)) v` for each head, where no query sees a later token.
///
/// Shapes: `q` and `y` `[batch_size, seq_len, num_heads, head_dim]`; `k` and `v`
/// `[batch_size, kv_len, num_kv_heads, head_dim]`. `padding` is empty, or has one number per text: how many tokens at its start
/// are padding. See [`functional::causal_attention`](crate::functional::causal_attention).
///
/// # Errors
/// A size of 0; fewer keys than queries; a number of query heads that is not a multiple of the key/value heads; padding
/// for a different number of texts, or that covers all tokens of a text; a slice of the wrong length.
pub fn causal_attention<N: Scalar>(
    sizes: AttentionSizes,
    padding: &[usize],
    q: &[N],
    (k, v): (&[N], &[N]),
    y: &mut [N],
) -> Result<SoftmaxStats<N>> {
    let (attend, [queries, keys]) = checked::<N>(sizes, padding)?;
    length("q", queries, q)?;
    length("k", keys, k)?;
    length("v", keys, v)?;
    length("y", queries, y)?;
    let mut kept = vec![Default::default(); queries / sizes.head_dim];
    let row = keys / sizes.batch_size;
    let (k, v) = (wide(k), wide(v));
    let (k, v): (Vec<_>, Vec<_>) = k.chunks(row).zip(v.chunks(row)).unzip();
    attend.forward(&q, &k, &v, y, &mut kept);
    Ok(SoftmaxStats { sizes, padding: padding.to_vec(), kept })
}

/// Given `dy`, accumulates into `dq`, `dk` and `dv`, each shaped like the input it belongs to. All inputs must be finite; this is not checked.
///
/// It takes memory for the gradients of each query head, `batch_size * num_heads * (seq_len + 2 * kv_len) * head_dim` numbers.
///
/// # Errors
/// A slice of the wrong length for the sizes of the forward pass.
pub fn causal_attention_backward<N: Scalar>(
    stats: &SoftmaxStats<N>,
    q: &[N],
    (k, v): (&[N], &[N]),
    dy: &[N],
    (dq, dk, dv): (&mut [N], &mut [N], &mut [N]),
) -> Result<()> {
    let (attend, [queries, keys]) = checked::<N>(stats.sizes, &stats.padding)?;
    length("q", queries, q)?;
    length("k", keys, k)?;
    length("v", keys, v)?;
    length("dy", queries, dy)?;
    length("dq", queries, dq)?;
    length("dk", keys, dk)?;
    length("dv", keys, dv)?;
    let heads = attend.backward(&q, &wide(k), &wide(v), &stats.kept, dy);
    attend.add_queries(&heads, dq);
    attend.add_keys(&heads, |head| &head.dk, dk);
    attend.add_keys(&heads, |head| &head.dv, dv);
    Ok(())
}

fn wide<N: Scalar>(values: &[N]) -> Cow<'_, [N::Wide]> {
    N::as_wide(values).map_or_else(|| values.all().into(), Cow::Borrowed)
}

/// Checks the sizes, and returns the lengths of `q` and `k`.
fn checked<N: Scalar>(
    sizes: AttentionSizes,
    padding: &[usize],
) -> Result<(Attend<N::Wide>, [usize; 2])> {
    let AttentionSizes {
        batch_size: b,
        seq_len: s,
        kv_len: t,
        num_heads: nh,
        num_kv_heads: nkv,
        head_dim: hd,
    } = sizes;
    let lengths = [elements("q", &[b, s, nh, hd])?, elements("k", &[b, t, nkv, hd])?];
    if nh % nkv != 0 {
        return Err(Error::KeyValueHeads { num_heads: nh, num_kv_heads: nkv });
    }
    if t < s {
        return Err(Error::FewerKeys { keys: t, queries: s });
    }
    check_padding(padding, b, t)?;
    let sizes = Sizes { b, s, t, nh, nkv, hd };
    let bias = Bias { by_distance: None, by_score: None };
    Ok((Attend { sizes, padding: padding.to_vec(), bias }, lengths))
}
