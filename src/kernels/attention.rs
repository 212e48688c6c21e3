//! Grouped-query attention.

use super::length;
use crate::attention::fused::{Attend, Bias};
use crate::attention::sizes::Sizes;
use crate::error::{Error, Result};
use crate::tensor::Scalar;

/// The sizes of a call. Query `i` of a text sees its first `kv_len - seq_len + i + 1` keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionSizes {
    /// Texts.
    pub batch_size: usize,
    /// Queries of a text.
    pub seq_len: usize,
    /// Keys of a text: those of the past, then those of the queries' own tokens.
    pub kv_len: usize,
    /// Heads of queries.
    pub num_heads: usize,
    /// Heads of keys and values, each for `num_heads / num_kv_heads` neighbours.
    pub num_kv_heads: usize,
    /// Numbers of a head.
    pub head_dim: usize,
}

/// What the backward pass needs of the forward pass: two numbers for each query of each head.
#[derive(Debug, Clone)]
pub struct Softmaxes<N: Scalar> {
    sizes: AttentionSizes,
    kept: Vec<[N::Wide; 2]>,
}

/// `softmax(q k^T / sqrt(head_dim)) v` for each head, where no query sees a later token.
///
/// Shapes: `q` and `y` `[batch_size, seq_len, num_heads, head_dim]`; `k` and `v`, which share theirs,
/// `[batch_size, kv_len, num_kv_heads, head_dim]`.
///
/// # Errors
/// A size of 0; fewer keys than queries; heads of queries that heads of keys don't divide; a slice of another length. Then nothing is
/// written.
pub fn attention<N: Scalar>(
    sizes: AttentionSizes,
    q: &[N],
    (k, v): (&[N], &[N]),
    y: &mut [N],
) -> Result<Softmaxes<N>> {
    let (attend, [queries, keys]) = checked::<N>(sizes)?;
    length("q", queries, q)?;
    length("k", keys, k)?;
    length("v", keys, v)?;
    length("y", queries, y)?;
    let mut kept = vec![Default::default(); queries / sizes.head_dim];
    let row = keys / sizes.batch_size;
    let (k, v) = (N::all_wide(k), N::all_wide(v));
    let (k, v): (Vec<_>, Vec<_>) = k.chunks(row).zip(v.chunks(row)).unzip();
    attend.forward(&q, &k, &v, y, &mut kept);
    Ok(Softmaxes { sizes, kept })
}

/// Adds to `dq`, `dk` and `dv`, given `dy`, each of the shape of what it is the gradient of.
///
/// # Errors
/// A slice of another length than the sizes of the forward pass ask for. Then nothing is written.
pub fn attention_backward<N: Scalar>(
    softmaxes: &Softmaxes<N>,
    q: &[N],
    (k, v): (&[N], &[N]),
    dy: &[N],
    (dq, dk, dv): (&mut [N], &mut [N], &mut [N]),
) -> Result<()> {
    let (attend, [queries, keys]) = checked::<N>(softmaxes.sizes)?;
    length("q", queries, q)?;
    length("k", keys, k)?;
    length("v", keys, v)?;
    length("dy", queries, dy)?;
    length("dq", queries, dq)?;
    length("dk", keys, dk)?;
    length("dv", keys, dv)?;
    let (k, v) = (N::all_wide(k), N::all_wide(v));
    let heads = attend.backward(&q, &k, &v, &softmaxes.kept, dy);
    attend.add_queries(&heads, dq);
    attend.add_keys(&heads, |head| &head.dk, dk);
    attend.add_keys(&heads, |head| &head.dv, dv);
    Ok(())
}

/// How many numbers queries and keys have.
fn checked<N: Scalar>(sizes: AttentionSizes) -> Result<(Attend<N::Wide>, [usize; 2])> {
    let AttentionSizes {
        batch_size: b,
        seq_len: s,
        kv_len: t,
        num_heads: nh,
        num_kv_heads: nkv,
        head_dim: hd,
    } = sizes;
    if [b, s, t, nkv, hd].contains(&0) {
        return Err(Error::Empty { name: "attention", shape: vec![b, s, t, nh, nkv, hd] });
    }
    if nh == 0 || nh % nkv != 0 {
        return Err(Error::KeyValueHeads { num_heads: nh, num_kv_heads: nkv });
    }
    if t < s {
        return Err(Error::FewerKeys { keys: t, queries: s });
    }
    let of = |shape: [usize; 4]| {
        let elements = shape.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
        let limit = crate::checks::MAX_ELEMENTS;
        let fits = elements.filter(|elements| *elements <= limit);
        fits.ok_or(Error::TooLarge { name: "attention", shape: shape.into(), limit })
    };
    let elements = [of([b, s, nh, hd])?, of([b, t, nkv, hd])?];
    let sizes = Sizes { b, s, t, nh, nkv, hd };
    let bias = Bias { by_distance: None, by_score: None };
    Ok((Attend { sizes, padding: Vec::new(), bias }, elements))
}
