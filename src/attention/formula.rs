//! Attention as a free function, forward and backward side by side.
//!
//! Sizes are run-time values here, so what the compiler refuses for a module is an [`Error`] for a function. The
//! arithmetic is in `f32` or better, and the result is rounded to the input's type once.

use super::fused;
use super::sizes::{Sizes, before_text};
use crate::checks::{check_size, require, same_shape};
use crate::error::{Error, Result};
use crate::position::{Positions, ScoreBias};
use crate::tensor::*;

// ANCHOR: repeat_kv
/// Each head `times` times, one copy beside the other: `[b, t, nkv, hd]` to `[b, t, nkv * times, hd]`.
///
/// Head `j` of the result is head `j / times` of `x`: heads are interleaved (`0, 0, 1, 1`), not tiled
/// (`0, 1, 0, 1`). Neighbouring query heads therefore share a key. The gradient of a head is the sum over its copies.
/// Source: Ainslie et al. 2023, "GQA".
///
/// # Errors
/// `times` 0; an empty input; more elements than memory has addresses.
pub fn repeat_kv<B: Dim, P: Dim, N: Dim, H: Dim, F: Float, D: Device<F>, T: Tape<F, D>>(
    x: Tensor<(B, P, N, H), F, D, T>,
    times: usize,
) -> Result<Tensor<(B, P, usize, H), F, D, T>> {
    check_size("x", x.shape())?;
    let (b, t, nkv, hd) = *x.shape();
    require(times > 0, "times", "at least 1", 0.0)?;
    let heads = nkv.size().saturating_mul(times);
    check_size("the result", &(b, t, heads, hd))?;
    repeat(x, times).map_err(Error::device)
}

fn repeat<B: Dim, P: Dim, N: Dim, H: Dim, F: Dtype, D: Device<F>, T: Tape<F, D>>(
    x: Tensor<(B, P, N, H), F, D, T>,
    times: usize,
) -> Raw<Tensor<(B, P, usize, H), F, D, T>, D> {
    let (b, t, nkv, hd) = *x.shape();
    let x = x.try_broadcast_like::<_, Axis<3>>(&(b, t, nkv, times, hd))?; //  [b, t, nkv, times, hd]
    x.try_in_order()?.try_reshape_like(&(b, t, nkv.size() * times, hd)) //    [b, t, nh, hd]
}
// ANCHOR_END: repeat_kv

// ANCHOR: causal_mask
/// Whether the query of each row may look at each key, `[b, s, t]`, row by row.
///
/// The query of row `i` is at position `offset + i`, and sees the keys at `0 ..= offset + i`. In a batch row
/// with padding, the first `padding` tokens are no text: they are seen only by themselves. (A query that saw
/// nothing at all would have a softmax of no terms, which is NaN.)
pub fn causal_mask(offset: usize, s: usize, t: usize, padding: &[usize]) -> Vec<bool> {
    let sees = |pad: usize, query: usize, key: usize| key == query || (pad..query).contains(&key);
    let position = move |i| offset.saturating_add(i);
    let row = |pad| (0..s).flat_map(move |i| (0..t).map(move |j| sees(pad, position(i), j)));
    padding.iter().flat_map(|&pad| row(pad)).collect()
}
// ANCHOR_END: causal_mask

// ANCHOR: sliding_window_mask
/// [`causal_mask`] with a sliding window, `[s, t]`: the query of row `i` sees the last `window` positions up to its own,
/// which is one of them. Source: Beltagy et al. 2020, "Longformer".
///
/// # Errors
/// A window of 0, through which nothing is seen.
pub fn sliding_window_mask(offset: usize, s: usize, t: usize, window: usize) -> Result<Vec<bool>> {
    require(window > 0, "window", "at least 1", 0.0)?;
    let sees = move |query: usize, key: usize| key <= query && query - key < window;
    let row = |i| (0..t).map(move |j| sees(offset.saturating_add(i), j));
    Ok((0..s).flat_map(row).collect())
}
// ANCHOR_END: sliding_window_mask

// ANCHOR: attention_forward
/// Causal attention with grouped heads: `softmax(q k^T / sqrt(hd)) v`, where a query sees the positions up to its
/// own.
///
/// Shapes: `q` `[b, s, nh, hd]`, `k` and `v` `[b, t, nkv, hd]`, result `[b, s, nh, hd]`. The queries are those of the
/// LAST `s` of the `t` positions. Query head `j` reads key and value head `j / (nh / nkv)`. `padding` has one number for
/// each batch row, how many tokens at its start are no text; or it is empty, and then there are none.
///
/// Source: Vaswani et al. 2017, "Attention Is All You Need"; grouped heads: Ainslie et al. 2023.
///
/// # Errors
/// Key heads that do not divide the query heads; fewer keys than queries; shapes that do not fit each other;
/// `padding` of another length; an empty input.
pub fn causal_attention<
    B: Dim,
    S: Dim,
    P: Dim,
    N: Dim,
    K: Dim,
    H: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    q: Tensor<(B, S, N, H), F, D, T>,
    k: Tensor<(B, P, K, H), F, D, T>,
    v: Tensor<(B, P, K, H), F, D, T>,
    padding: &[usize],
) -> Result<Tensor<(B, S, N, H), F, D, T>> {
    biased_attention(q, k, v, ScoreBias::none(), padding)
}

/// Causal attention with something added to its scores: `softmax(q k^T / sqrt(hd) + bias) v`.
///
/// Shapes: as for [`causal_attention`]; those of the bias are listed at [`ScoreBias`]. Source: Press et al. 2021,
/// "Train Short, Test Long", for a bias by distance.
///
/// # Errors
/// As for [`causal_attention`], and a bias of another shape.
pub fn biased_attention<
    B: Dim,
    S: Dim,
    P: Dim,
    N: Dim,
    K: Dim,
    H: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    q: Tensor<(B, S, N, H), F, D, T>,
    k: Tensor<(B, P, K, H), F, D, T>,
    v: Tensor<(B, P, K, H), F, D, T>,
    bias: ScoreBias<B, S, F, D, T>,
    padding: &[usize],
) -> Result<Tensor<(B, S, N, H), F, D, T>> {
    check_size("q", q.shape())?;
    check_rows(padding, q.shape().0.size())?;
    attention_in_texts(q, k, v, bias, padding)
}

/// The same where `padding` may also have one number for each query, `[b, s]` row by row: how many tokens of its row come
/// before its own text.
pub(super) fn attention_in_texts<
    B: Dim,
    S: Dim,
    P: Dim,
    N: Dim,
    K: Dim,
    H: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    q: Tensor<(B, S, N, H), F, D, T>,
    k: Tensor<(B, P, K, H), F, D, T>,
    v: Tensor<(B, P, K, H), F, D, T>,
    bias: ScoreBias<B, S, F, D, T>,
    padding: &[usize],
) -> Result<Tensor<(B, S, N, H), F, D, T>> {
    check_attention(q.shape(), k.shape(), v.shape(), padding)?;
    let ((b, s, _, _), sizes) = (*q.shape(), Sizes::of(q.shape(), k.shape()));
    check_bias(&bias, sizes)?;
    let run = || -> Raw<_, D> {
        let (q, tape) = q.try_in_order()?.split_tape();
        let (k, k_tape) = k.try_in_order()?.split_tape();
        let (v, v_tape) = v.try_in_order()?.split_tape();
        let mut tape = tape.merge(k_tape).merge(v_tape);
        let (by_distance, distance_tape) = split(bias.by_distance)?;
        let (by_score, score_tape) = split(bias.by_score)?;
        let biases = (by_distance.as_ref(), by_score.as_ref());
        if let Some(y) = fused::biased_attention(&q, &k, &v, biases, &mut tape, padding)? {
            return Ok(y.put_tape(tape.merge(distance_tape).merge(score_tape)));
        }
        let by_distance = by_distance.map(|bias| bias.put_tape(distance_tape));
        let by_score = by_score.map(|bias| bias.put_tape(score_tape));
        let bias = matrix(ScoreBias { by_distance, by_score }, sizes, (b, s))?; // [b, nh, s, t]
        let (bias, bias_tape) = split(bias)?;
        tape = tape.merge(bias_tape);
        let wide = bias.as_ref().map(cast::<F, F::Wide, _, _>).transpose()?;
        let (y, saved) = attend_forward(cast(&q)?, cast(&k)?, cast(&v)?, wide, padding)?;
        let y: Tensor<_, F, D> = cast::<F::Wide, F, _, _>(&y)?;
        on_backward(&mut tape, &y, move |dy, grads| {
            let (dq, dk, dv, dbias) = attend_backward(cast(&dy)?, saved)?;
            add_gradient(grads, &q, cast::<F::Wide, F, _, _>(&dq)?)?;
            add_gradient(grads, &k, cast::<F::Wide, F, _, _>(&dk)?)?;
            add_gradient(grads, &v, cast::<F::Wide, F, _, _>(&dv)?)?;
            match bias {
                Some(bias) => add_gradient(grads, &bias, cast::<F::Wide, F, _, _>(&dbias)?),
                None => Ok(()),
            }
        });
        Ok(y.put_tape(tape))
    };
    run().map_err(Error::device)
}

/// Scores, or what is added to them, `[b, nh, s, t]`.
type Scores<B, S, W, D, T = NoneTape> = Tensor<(B, usize, S, usize), W, D, T>;

/// Queries, keys or values with the heads in front, `[b, nh, s, hd]`.
type InHeads<B, S, H, W, D> = Tensor<(B, usize, S, H), W, D>;

/// What the backward pass needs of the forward pass.
struct Saved<B: Dim, S: Dim, P: Dim, K: Dim, H: Dim, W: Float, D: Device<W>> {
    q: InHeads<B, S, H, W, D>, // [b, nh, s, hd], divided by sqrt(hd)
    k: InHeads<B, P, H, W, D>, // [b, nh, t, hd], repeated
    v: InHeads<B, P, H, W, D>, // [b, nh, t, hd], repeated
    weights: Tensor<(B, usize, S, P), W, D>, // [b, nh, s, t]
    key_heads: K,
}

/// weights = softmax(q k^T / sqrt(hd) + bias) over what is seen, y = weights v
fn attend_forward<
    B: Dim,
    S: Dim,
    P: Dim,
    N: Dim,
    K: Dim,
    H: Dim,
    W: Float,
    D: Device<W> + TensorFromVec<bool>,
>(
    q: Tensor<(B, S, N, H), W, D>,
    k: Tensor<(B, P, K, H), W, D>,
    v: Tensor<(B, P, K, H), W, D>,
    bias: Option<Scores<B, S, W, D>>,
    padding: &[usize],
) -> Raw<(Tensor<(B, S, N, H), W, D>, Saved<B, S, P, K, H, W, D>), D> {
    let (b, s, nh, hd) = *q.shape();
    let (_, t, key_heads, _) = *k.shape();
    let times = nh.size() / key_heads.size();

    let q = q.try_div(root::<_, W>(hd))?.try_reshape_like(&(b, s, nh.size(), hd))?; // [b, s, nh, hd]
    let q = q.try_permute::<_, Axes4<0, 2, 1, 3>>()?; //                      [b, nh, s, hd]
    let k = repeat(k, times)?.try_permute::<_, Axes4<0, 2, 1, 3>>()?; //      [b, nh, t, hd]
    let v = repeat(v, times)?.try_permute::<_, Axes4<0, 2, 1, 3>>()?; //      [b, nh, t, hd]

    let seen = mask(q.device(), (b, nh.size(), s, t), padding)?; //           [b, nh, s, t]
    let hidden = q.device().try_zeros_like(seen.shape())?.try_sub(W::infinity())?;
    let keys = k.clone().try_permute::<_, Axes4<0, 1, 3, 2>>()?; //           [b, nh, hd, t]
    let mut scores = q.clone().try_matmul(keys)?; //                          [b, nh, s, t]
    if let Some(bias) = bias {
        scores = scores.try_add(bias.try_reshape_like(seen.shape())?)?; //    [b, nh, s, t]
    }
    let scores = seen.try_choose(scores, hidden)?; //                         [b, nh, s, t]
    let weights = scores.try_softmax::<Axis<3>>()?; //                        [b, nh, s, t]

    let y = weights.clone().try_matmul(v.clone())?; //                        [b, nh, s, hd]
    let y = y.try_permute::<_, Axes4<0, 2, 1, 3>>()?; //                      [b, s, nh, hd]
    let y = y.try_reshape_like(&(b, s, nh, hd))?;
    Ok((y, Saved { q, k, v, weights, key_heads }))
}
// ANCHOR_END: attention_forward

// ANCHOR: softmax_backward
/// The gradient of a softmax along the last axis: of the scores, where `dweights` is that of the weights, each
/// `[b, nh, s, t]`.
///
/// `weights * (dweights - sum over keys of weights * dweights)`: what one position gains, the others of its row lose.
///
/// # Errors
/// Two shapes; an empty input.
pub fn softmax_backward<B: Dim, N: Dim, S: Dim, P: Dim, F: Float, D: Device<F>>(
    weights: Tensor<(B, N, S, P), F, D>,
    dweights: Tensor<(B, N, S, P), F, D>,
) -> Result<Tensor<(B, N, S, P), F, D>> {
    check_size("weights", weights.shape())?;
    same_shape("dweights", &weights.shape().concrete(), &dweights.shape().concrete())?;
    back_through_softmax(weights, dweights).map_err(Error::device)
}

fn back_through_softmax<B: Dim, N: Dim, S: Dim, P: Dim, F: Dtype, D: Device<F>>(
    weights: Tensor<(B, N, S, P), F, D>,
    dweights: Tensor<(B, N, S, P), F, D>,
) -> Raw<Tensor<(B, N, S, P), F, D>, D> {
    let along = weights.clone().try_mul(dweights.clone())?.try_sum::<_, Axis<3>>()?; // [b, nh, s]
    let along = along.try_broadcast_like::<_, Axis<3>>(weights.shape())?; //  [b, nh, s, t]
    weights.try_mul(dweights.try_sub(along)?) //                              [b, nh, s, t]
}
// ANCHOR_END: softmax_backward

/// Those of q, k, v and the bias.
type AttentionGradients<B, S, P, N, K, H, W, D> = (
    Tensor<(B, S, N, H), W, D>,
    Tensor<(B, P, K, H), W, D>,
    Tensor<(B, P, K, H), W, D>,
    Scores<B, S, W, D>,
);

// ANCHOR: attention_backward
/// dv       = weights^T dy
/// dscores  = the softmax's gradient of dweights = dy v^T
/// dq       = dscores k / sqrt(hd),  dk = dscores^T q / sqrt(hd)
/// dbias    = dscores
///
/// A key or value head's gradient is the sum over the query heads that read it.
fn attend_backward<
    B: Dim,
    S: Dim,
    P: Dim,
    N: Dim,
    K: Dim,
    H: Dim,
    W: Float,
    D: Device<W> + TensorFromVec<bool>,
>(
    dy: Tensor<(B, S, N, H), W, D>,
    saved: Saved<B, S, P, K, H, W, D>,
) -> Raw<AttentionGradients<B, S, P, N, K, H, W, D>, D> {
    let Saved { q, k, v, weights, key_heads } = saved;
    let shape = *dy.shape();
    let (b, s, nh, hd) = shape;
    let t = k.shape().2;
    let groups = (b, t, key_heads, nh.size() / key_heads.size(), hd);

    let dy = dy.try_reshape_like(&(b, s, nh.size(), hd))?; //                 [b, s, nh, hd]
    let dy = dy.try_permute::<_, Axes4<0, 2, 1, 3>>()?; //                    [b, nh, s, hd]
    let transposed = weights.clone().try_permute::<_, Axes4<0, 1, 3, 2>>()?; // [b, nh, t, s]
    let dv = transposed.try_matmul(dy.clone())?; //                           [b, nh, t, hd]
    let values = v.try_permute::<_, Axes4<0, 1, 3, 2>>()?; //                 [b, nh, hd, t]
    let dweights = dy.try_matmul(values)?; //                                 [b, nh, s, t]
    let dscores = back_through_softmax(weights, dweights)?; //                [b, nh, s, t]
    let dbias = dscores.clone().try_reshape_like(&(b, nh.size(), s, t.size()))?; // [b, nh, s, t]
    let dq = dscores.clone().try_matmul(k)?.try_div(root::<_, W>(hd))?; //            [b, nh, s, hd]
    let transposed = dscores.try_permute::<_, Axes4<0, 1, 3, 2>>()?; //       [b, nh, t, s]
    let dk = transposed.try_matmul(q)?; //                                    [b, nh, t, hd]

    let gather = |x: InHeads<B, P, H, W, D>| -> Raw<Tensor<(B, P, K, H), W, D>, D> {
        let x = x.try_permute::<_, Axes4<0, 2, 1, 3>>()?; //                  [b, t, nh, hd]
        x.try_reshape_like(&groups)?.try_sum::<_, Axis<3>>() //               [b, t, nkv, hd]
    };
    let dq = dq.try_permute::<_, Axes4<0, 2, 1, 3>>()?.try_reshape_like(&shape)?;
    Ok((dq, gather(dk)?, gather(dv)?, dbias))
}
// ANCHOR_END: attention_backward

/// A bias that may be missing, without its tape.
#[allow(clippy::type_complexity)]
fn split<Sh: Shape, F: Float, D: Device<F>, T: Tape<F, D>>(
    bias: Option<Tensor<Sh, F, D, T>>,
) -> Raw<(Option<Tensor<Sh, F, D>>, T), D> {
    match bias {
        None => Ok((None, T::default())),
        Some(bias) => {
            let (bias, tape) = bias.try_in_order()?.split_tape();
            Ok((Some(bias), tape))
        }
    }
}

// ANCHOR: bias_matrix
/// The sum of both biases as a matrix for each head, `[b, nh, s, t]`. What is ahead of a query has no distance; it is
/// hidden, and takes that of 0.
fn matrix<B: Dim, S: Dim, F: Float, D: Device<F>, T: Tape<F, D>>(
    bias: ScoreBias<B, S, F, D, T>,
    Sizes { t, nh, .. }: Sizes,
    (b, s): (B, S),
) -> Raw<Option<Scores<B, S, F, D, T>>, D> {
    let Some(by_distance) = bias.by_distance else { return Ok(bias.by_score) };
    let distance = |query: usize, key: usize| (t - s.size() + query).saturating_sub(key);
    let distances = (0..s.size()).flat_map(|i| (0..t).map(move |j| distance(i, j))).collect();
    let distances = by_distance.device().try_tensor_from_vec(distances, (s.size() * t,))?; // [s * t]
    let rows = by_distance.try_permute::<_, Axes2<1, 0>>()?; //               [t, nh]
    let rows = rows.try_gather(distances)?; //                                [s * t, nh]
    let heads = rows.try_permute::<_, Axes2<1, 0>>()?; //                     [nh, s * t]
    let heads = heads.try_reshape_like(&(nh, s, t))?; //                      [nh, s, t]
    let matrix = heads.try_broadcast_like::<_, Axis<0>>(&(b, nh, s, t))?; //  [b, nh, s, t]
    match bias.by_score {
        None => Ok(Some(matrix)),
        Some(by_score) => matrix.try_add(by_score).map(Some), //              [b, nh, s, t]
    }
}
// ANCHOR_END: bias_matrix

pub(super) fn check_bias<B: Dim, S: Dim, F: Dtype, D: Storage<F>, T>(
    bias: &ScoreBias<B, S, F, D, T>,
    Sizes { b, s, t, nh, .. }: Sizes,
) -> Result<()> {
    if let Some(by_distance) = &bias.by_distance {
        same_shape("the bias by distance", &[nh, t], &by_distance.shape().concrete())?;
    }
    match &bias.by_score {
        Some(by_score) => {
            same_shape("the bias by score", &[b, nh, s, t], &by_score.shape().concrete())
        }
        None => Ok(()),
    }
}

/// The root of the head size.
fn root<H: Dim, W: Float>(head_dim: H) -> W {
    W::nearest((head_dim.size() as f64).sqrt())
}

/// What each query of each head sees, `[b, nh, s, t]`.
fn mask<B: Dim, S: Dim, P: Dim, D: TensorFromVec<bool> + Device<W>, W: Float>(
    dev: &D,
    shape: (B, usize, S, P),
    padding: &[usize],
) -> Raw<Tensor<(B, usize, S, P), bool, D>, D> {
    let (b, _, s, t) = shape;
    let (b_of, s_of, t_of) = (b.size(), s.size(), t.size());
    let row = |query: usize| {
        let pad = before_text(padding, (b_of, s_of), (query / s_of, query % s_of));
        causal_mask(t_of - s_of + query % s_of, 1, t_of, &[pad])
    };
    let seen = (0..b_of * s_of).flat_map(row).collect();
    let seen = dev.try_tensor_from_vec(seen, (b, s, t))?; //                  [b, s, t]
    seen.try_broadcast_like::<_, Axis<1>>(&shape) //                          [b, nh, s, t]
}

pub(super) fn check_attention<B: Dim, S: Dim, P: Dim, N: Dim, K: Dim, H: Dim>(
    q: &(B, S, N, H),
    k: &(B, P, K, H),
    v: &(B, P, K, H),
    padding: &[usize],
) -> Result<()> {
    check_size("q", q)?;
    check_size("k", k)?;
    let (b, s, nh, hd) = (q.0.size(), q.1.size(), q.2.size(), q.3.size());
    let (t, nkv) = (k.1.size(), k.2.size());
    same_shape("k", &[b, t, nkv, hd], &k.concrete())?;
    same_shape("v", &[b, t, nkv, hd], &v.concrete())?;
    if nh % nkv != 0 {
        return Err(Error::KeyValueHeads { num_heads: nh, num_kv_heads: nkv });
    }
    if t < s {
        return Err(Error::FewerKeys { keys: t, queries: s });
    }
    if padding.len() != b * s {
        check_rows(padding, b)?;
    }
    check_size("the scores", &(b, nh, s, t))
}

/// One number for each batch row, or none at all.
fn check_rows(padding: &[usize], b: usize) -> Result<()> {
    if padding.is_empty() { Ok(()) } else { same_shape("padding", &[b], &[padding.len()]) }
}

/// The positions of the tokens `before .. before + s` of `b` rows, each with so much padding; or with none at all.
pub(crate) fn padded_positions(
    padding: &[usize],
    b: usize,
    before: usize,
    s: usize,
) -> Result<Positions> {
    check_rows(padding, b)?;
    Ok(Positions::padded(padding, before, s))
}

/// One number for each batch row, each leaving a token; or none at all.
pub(crate) fn check_padding(padding: &[usize], b: usize, t: usize) -> Result<()> {
    check_rows(padding, b)?;
    match padding.iter().position(|&pad| pad >= t) {
        None => Ok(()),
        Some(row) => Err(Error::Padding { row, padding: padding[row], length: t }),
    }
}
