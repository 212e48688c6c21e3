//! The scores by distance as free functions, forward and backward side by side.
//!
//! A score is `(q + u) . k + (q + v) . (W_r R_j)`, where `R_j` are the sinusoids of the distance `j`. The first
//! product is attention's own, once `u` was added to the queries. The second is a bias.

use crate::absolute::sinusoids;
use crate::checks::{check_size, same_shape};
use crate::error::{Error, Result};
use crate::host::from_host;
use crate::tensor::*;

// ANCHOR: add_to_heads
/// Adds `u`, `[n, hd]`, to the queries at each position, `[b, s, n, hd]`. The sum is rounded once.
///
/// The gradient of the queries is that of the sum; that of `u` is its sum over all positions.
///
/// # Errors
/// A `u` of another shape; an empty input; what the device reports.
pub fn add_to_heads<
    B: Dim,
    S: Dim,
    N: Dim,
    H: Dim,
    M: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    q: Tensor<(B, S, N, H), F, D, T>,
    u: &Tensor<(M, H), F, D>,
) -> Result<Tensor<(B, S, N, H), F, D, T>> {
    check_size("q", q.shape())?;
    let shape = *q.shape();
    same_shape("u", &[shape.2.size(), shape.3.size()], &u.shape().concrete())?;
    let run = || -> Raw<_, D> {
        let (q, tape) = q.try_in_order()?.split_tape();
        let (u, u_tape) = u.retaped::<T>().try_in_order()?.split_tape();
        let mut tape = tape.merge(u_tape);
        let wide = over_tokens(cast::<F, F::Wide, _, _>(&u)?, &shape)?; //    [b, s, n, hd]
        let y = cast::<F, F::Wide, _, _>(&q)?.try_add(wide)?; //              [b, s, n, hd]
        let y: Tensor<_, F, D> = cast::<F::Wide, F, _, _>(&y)?;
        on_backward(&mut tape, &y, move |dy, grads| {
            let du = cast::<F, F::Wide, _, _>(&dy)?.try_sum::<_, Axes2<0, 1>>()?; // [n, hd]
            let du = du.try_reshape_like(u.shape())?;
            add_gradient(grads, &u, cast::<F::Wide, F, _, _>(&du)?)?;
            add_gradient(grads, &q, dy)
        });
        Ok(y.put_tape(tape))
    };
    run().map_err(Error::device)
}

/// `[n, hd]` seen as `[b, s, n, hd]`.
fn over_tokens<B: Dim, S: Dim, N: Dim, H: Dim, M: Dim, W: Float, D: Device<W>>(
    u: Tensor<(M, H), W, D>,
    shape: &(B, S, N, H),
) -> Raw<Tensor<(B, S, N, H), W, D>, D> {
    let u = u.try_reshape_like(&(shape.2, shape.3))?; //                      [n, hd]
    u.try_broadcast_like::<_, Axes2<0, 1>>(shape)
}
// ANCHOR_END: add_to_heads

// ANCHOR: relative_scores
/// `(q + v) . (W_r R_j) / sqrt(hd)` for each query and each key, `j` positions before it: `[b, nh, s, t]`.
///
/// Shapes: `q` `[b, s, nh, hd]`, the queries of the LAST `s` of `keys` positions; `v` `[nh, hd]`; `weight`, which is
/// `W_r`, `[nh * hd, h]`. The values at keys after the query mean nothing; attention hides them.
///
/// All distances are scored at once, `[b, nh, s, t]`, the farthest first. Then row `i` has to move by `s - 1 - i`
/// places to the left, and a change of shape does it: put one 0 before each row, read the result in rows of `s`, and
/// drop the first of them.
///
/// Source: Dai et al. 2019, "Transformer-XL", section 3.3 and appendix B. The authors' code has the sines of `R`
/// before the cosines, so its `W_r` has its columns in another order.
///
/// # Errors
/// Fewer keys than queries; `v` or `weight` of shapes that do not fit; an odd `h`; a `base` that is not finite or not
/// above 1; an empty input; what the device reports.
#[allow(clippy::type_complexity)]
pub fn relative_scores<B: Dim, S: Dim, N: Dim, H: Dim, M: Dim, O: Dim, I: Dim, F, D, T>(
    q: Tensor<(B, S, N, H), F, D, T>,
    v: &Tensor<(M, H), F, D>,
    weight: &Tensor<(O, I), F, D>,
    keys: usize,
    base: f64,
) -> Result<Tensor<(B, usize, S, usize), F, D, T>>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    scores(q, v, weight, keys, base, Arrange::Shift)
}

/// What [`relative_scores`] computes, without the trick: each score is fetched from its distance. The values at keys
/// after the query are 0. It goes by way of the host, and is there to be read and compared.
///
/// # Errors
/// As for [`relative_scores`].
pub fn relative_scores_direct<B: Dim, S: Dim, N: Dim, H: Dim, M: Dim, O: Dim, I: Dim, F, D, T>(
    q: Tensor<(B, S, N, H), F, D, T>,
    v: &Tensor<(M, H), F, D>,
    weight: &Tensor<(O, I), F, D>,
    keys: usize,
    base: f64,
) -> Result<Tensor<(B, usize, S, usize), F, D, T>>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    scores(q, v, weight, keys, base, Arrange::Direct)
}

/// Scores, `[b, nh, s, t]`: by distance, the farthest first, or by key.
type Scores<B, S, W, D> = Tensor<(B, usize, S, usize), W, D>;

/// How scores by distance become scores by key.
#[derive(Debug, Clone, Copy)]
enum Arrange {
    Shift,
    Direct,
}

impl Arrange {
    /// By distance to by key: `y[i, n] = x[i, t - 1 - j]` with the distance `j = t - s + i - n`.
    fn forth<B: Dim, S: Dim, W: Float, D: Device<W>>(
        self,
        x: Scores<B, S, W, D>,
    ) -> Raw<Scores<B, S, W, D>, D> {
        let shape = *x.shape();
        let (b, nh, s, t) = shape;
        match self {
            Self::Shift => {
                let zeros = x.device().try_zeros_like(&(b, nh, s, 1))?; //    [b, nh, s, 1]
                let x = (zeros, x).try_concat_along(Axis::<3>)?; //           [b, nh, s, 1 + t]
                let x = x.try_reshape_like(&(b, nh, t + 1, s.size()))?; //    [b, nh, t + 1, s]
                x.try_slice((.., .., 1.., ..))?.try_reshape_like(&shape) //   [b, nh, s, t]
            }
            Self::Direct => {
                let (from, s) = (x.as_vec(), s.size());
                let mut y = vec![W::zero(); from.len()];
                places(s, t, from.len()).for_each(|(at, by_key)| y[by_key] = from[at]);
                x.device().try_tensor_from_vec(y, shape)
            }
        }
    }

    /// Its transpose, for the gradient.
    fn back<B: Dim, S: Dim, W: Float, D: Device<W>>(
        self,
        dy: Scores<B, S, W, D>,
    ) -> Raw<Scores<B, S, W, D>, D> {
        let shape = *dy.shape();
        let (b, nh, s, t) = shape;
        match self {
            Self::Shift => {
                let dy = dy.try_reshape_like(&(b, nh, t, s.size()))?; //      [b, nh, t, s]
                let zeros = dy.device().try_zeros_like(&(b, nh, 1, s.size()))?;
                let dy = (zeros, dy).try_concat_along(Axis::<2>)?; //         [b, nh, 1 + t, s]
                let dy = dy.try_reshape_like(&(b, nh, s, t + 1))?; //         [b, nh, s, 1 + t]
                dy.try_slice((.., .., .., 1..))?.try_reshape_like(&shape) //  [b, nh, s, t]
            }
            Self::Direct => {
                let (from, s) = (dy.as_vec(), s.size());
                let mut dx = vec![W::zero(); from.len()];
                places(s, t, from.len()).for_each(|(at, by_key)| dx[at] = from[by_key]);
                dy.device().try_tensor_from_vec(dx, shape)
            }
        }
    }
}

/// For each query and each key up to it: its place by distance, and its place by key.
fn places(s: usize, t: usize, elements: usize) -> impl Iterator<Item = (usize, usize)> {
    let of_query = move |row: usize| {
        let query = t - s + row % s;
        (0..=query).map(move |key| (row * t + t - 1 - (query - key), row * t + key))
    };
    (0..elements / t).flat_map(of_query)
}

fn scores<B: Dim, S: Dim, N: Dim, H: Dim, M: Dim, O: Dim, I: Dim, F, D, T>(
    q: Tensor<(B, S, N, H), F, D, T>,
    v: &Tensor<(M, H), F, D>,
    weight: &Tensor<(O, I), F, D>,
    keys: usize,
    base: f64,
    arrange: Arrange,
) -> Result<Tensor<(B, usize, S, usize), F, D, T>>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    let (b, s, nh, hd) = *q.shape();
    let (o, i) = *weight.shape();
    check_size("q", q.shape())?;
    same_shape("v", &[nh.size(), hd.size()], &v.shape().concrete())?;
    same_shape("the weight", &[nh.size() * hd.size(), i.size()], &[o.size(), i.size()])?;
    if keys < s.size() {
        return Err(Error::FewerKeys { keys, queries: s.size() });
    }
    check_size("the scores", &(b, nh, s, keys))?;
    let mut rows = sinusoids(0..keys, i.size(), base)?; //                    [t, h], the nearest first
    let (mut nearest, mut farthest) = (0, keys - 1);
    while nearest < farthest {
        (0..i.size()).for_each(|c| rows.swap(nearest * i.size() + c, farthest * i.size() + c));
        (nearest, farthest) = (nearest + 1, farthest - 1);
    }
    let run = || -> Raw<_, D> {
        let (q, tape) = q.try_in_order()?.split_tape();
        let (v, v_tape) = v.retaped::<T>().try_in_order()?.split_tape();
        let (weight, weight_tape) = weight.retaped::<T>().try_in_order()?.split_tape();
        let mut tape = tape.merge(v_tape).merge(weight_tape);
        let rows = from_host(q.device(), &rows, (keys, i))?; //               [t, h], the farthest first
        let (y, saved) = forward(cast(&q)?, cast(&v)?, cast(&weight)?, rows)?;
        let y: Tensor<_, F, D> = cast::<F::Wide, F, _, _>(&arrange.forth(y)?)?;
        on_backward(&mut tape, &y, move |dy, grads| {
            let dscores = arrange.back(cast::<F, F::Wide, _, _>(&dy)?)?;
            let (dq, dv, dweight) = backward(dscores, saved, *q.shape(), weight.shape().0)?;
            add_gradient(grads, &q, cast::<F::Wide, F, _, _>(&dq)?)?;
            let dv = dv.try_reshape_like(v.shape())?;
            add_gradient(grads, &v, cast::<F::Wide, F, _, _>(&dv)?)?;
            add_gradient(grads, &weight, cast::<F::Wide, F, _, _>(&dweight)?)
        });
        Ok(y.put_tape(tape))
    };
    run().map_err(Error::device)
}

/// What the backward pass needs of the forward pass.
struct Saved<B: Dim, S: Dim, H: Dim, I: Dim, W: Float, D: Device<W>> {
    queries: Tensor<(B, usize, S, H), W, D>, // [b, nh, s, hd], (q + v) / sqrt(hd)
    of_distance: Tensor<(usize, usize, H), W, D>, // [nh, t, hd], W_r R_j
    rows: Tensor<(usize, I), W, D>,          // [t, h], R_j
}

/// Scores by distance, the farthest first: (q + v) / sqrt(hd) times W_r R_j
fn forward<B: Dim, S: Dim, N: Dim, H: Dim, M: Dim, O: Dim, I: Dim, W: Float, D: Device<W>>(
    q: Tensor<(B, S, N, H), W, D>,
    v: Tensor<(M, H), W, D>,
    weight: Tensor<(O, I), W, D>,
    rows: Tensor<(usize, I), W, D>,
) -> Raw<(Scores<B, S, W, D>, Saved<B, S, H, I, W, D>), D> {
    let (b, s, n, hd) = *q.shape();
    let (nh, t) = (n.size(), rows.shape().0);
    let queries = q.clone().try_add(over_tokens(v, q.shape())?)?; //          [b, s, nh, hd]
    let queries = queries.try_div(root::<_, W>(hd))?.try_reshape_like(&(b, s, nh, hd))?;
    let queries = queries.try_permute::<_, Axes4<0, 2, 1, 3>>()?; //          [b, nh, s, hd]
    let weight = weight.try_permute::<_, Axes2<1, 0>>()?; //                  [h, nh hd]
    let of_distance = rows.clone().try_matmul(weight)?; //                    [t, nh hd]
    let of_distance = of_distance.try_reshape_like(&(t, nh, hd))?; //         [t, nh, hd]
    let of_distance = of_distance.try_permute::<_, Axes3<1, 0, 2>>()?; //     [nh, t, hd]
    let turned = of_distance.clone().try_permute::<_, Axes3<0, 2, 1>>()?; //  [nh, hd, t]
    let turned = for_each_text(turned, b)?; //                                [b, nh, hd, t]
    let scores = queries.clone().try_matmul(turned)?; //                      [b, nh, s, t]
    Ok((scores, Saved { queries, of_distance, rows }))
}
// ANCHOR_END: relative_scores

// ANCHOR: relative_scores_backward
/// dq   = dscores (W_r R) / sqrt(hd),  dv = its sum over all queries
/// dW_r = (dscores^T (q + v) / sqrt(hd), summed over texts)^T R
#[allow(clippy::type_complexity)]
fn backward<B: Dim, S: Dim, N: Dim, H: Dim, O: Dim, I: Dim, W: Float, D: Device<W>>(
    dscores: Scores<B, S, W, D>,
    saved: Saved<B, S, H, I, W, D>,
    shape: (B, S, N, H),
    o: O,
) -> Raw<(Tensor<(B, S, N, H), W, D>, Tensor<(N, H), W, D>, Tensor<(O, I), W, D>), D> {
    let Saved { queries, of_distance, rows } = saved;
    let (b, _, _, t) = *dscores.shape();
    let hd = shape.3;
    let all = for_each_text(of_distance, b)?; //                             [b, nh, t, hd]
    let dq = dscores.clone().try_matmul(all)?.try_div(root::<_, W>(hd))?; //  [b, nh, s, hd]
    let dq = dq.try_permute::<_, Axes4<0, 2, 1, 3>>()?; //                    [b, s, nh, hd]
    let dq = dq.try_reshape_like(&shape)?;
    let dv = dq.clone().try_sum::<_, Axes2<0, 1>>()?; //                      [nh, hd]

    let turned = dscores.try_permute::<_, Axes4<0, 1, 3, 2>>()?; //           [b, nh, t, s]
    let dr = turned.try_matmul(queries)?.try_sum::<_, Axis<0>>()?; //         [nh, t, hd]
    let dr = dr.try_permute::<_, Axes3<1, 0, 2>>()?; //                       [t, nh, hd]
    let dr = dr.try_reshape_like(&(t, o))?; //                                [t, nh hd]
    let dweight = dr.try_permute::<_, Axes2<1, 0>>()?.try_matmul(rows)?; //   [nh hd, h]
    Ok((dq, dv, dweight))
}
// ANCHOR_END: relative_scores_backward

/// A matrix of each head, for `b` texts. A copy for each: on a GPU, dfdx multiplies no matrix that texts share.
fn for_each_text<B: Dim, P: Dim, Q: Dim, W: Float, D: Device<W>>(
    of_heads: Tensor<(usize, P, Q), W, D>, // [nh, p, q]
    b: B,
) -> Raw<Tensor<(B, usize, P, Q), W, D>, D> {
    let (nh, p, q) = *of_heads.shape();
    of_heads.try_broadcast_like::<_, Axis<0>>(&(b, nh, p, q))?.try_contiguous() // [b, nh, p, q]
}

/// The root of the head size.
fn root<H: Dim, W: Float>(head_dim: H) -> W {
    W::nearest((head_dim.size() as f64).sqrt())
}
