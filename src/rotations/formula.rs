//! The formulas as free functions: how xPos scales a plane, which coordinate turns a plane and how fast, and linear
//! attention over all pairs, forward and backward side by side.
//!
//! Linear attention has weights that are inner products of positive features, without a softmax. RoPE turns the features
//! in the numerator only. The denominator must be positive, and turned features can have an inner product below 0.

use crate::checks::{check_size, require, same_shape};
use crate::error::{Error, Result};
use crate::rope::RotaryTables;
use crate::tensor::*;

// ANCHOR: xpos_scale
/// `zeta_i^((m - center) / scale_base)` of xPos: what multiplies plane `i` of a query at `m`, and divides that of a key.
///
/// `zeta_i = (2i/d + gamma) / (1 + gamma)`; `from_center` is `m - center`. Source: Sun et al. 2022, "A
/// Length-Extrapolatable Transformer".
pub(super) fn xpos_scale(
    plane: usize,
    head_dim: usize,
    gamma: f64,
    from_center: f64,
    scale_base: f64,
) -> f64 {
    let share = 2.0 * plane as f64 / head_dim as f64;
    let zeta = (share + gamma) / (1.0 + gamma);
    zeta.powf(from_center / scale_base)
}
// ANCHOR_END: xpos_scale

// ANCHOR: axial_planes
/// The planes of a direct sum: for each, its coordinate and its frequency. The first planes turn by coordinate 0, as a
/// separate RoPE, the next by coordinate 1, and so on. Each section of `p` planes has all frequencies, from 1 down:
/// `theta_i = base^(-i / p)`.
pub(super) fn planes_of_each(sections: &[usize], base: f64) -> Vec<(usize, f64)> {
    let of = |(axis, &p): (usize, &usize)| {
        (0..p).map(move |i| (axis, base.powf(-(i as f64) / p as f64)))
    };
    sections.iter().enumerate().flat_map(of).collect()
}

/// The planes of one list, cut into sections: plane `i` has frequency `i`, regardless of the coordinate that turns it.
pub(super) fn planes_of_one_list(sections: &[usize], frequencies: &[f64]) -> Vec<(usize, f64)> {
    let axes = sections.iter().enumerate().flat_map(|(axis, &p)| (0..p).map(move |_| axis));
    axes.zip(frequencies.iter().copied()).collect()
}
// ANCHOR_END: axial_planes

/// How many planes there are in all.
///
/// # Errors
/// No sections, one without planes, or more than 32,768 planes.
pub(super) fn check_sections(sections: &[usize]) -> Result<usize> {
    let most = 1 << 15;
    let planes = sections.iter().fold(0usize, |sum, section| sum.saturating_add(*section));
    require(planes <= most, "sections", "at most 32768 planes in all", planes as f64)?;
    require(!sections.contains(&0), "every section", "at least 1 plane", 0.0)?;
    require(planes > 0, "sections", "at least 1", 0.0)?;
    Ok(planes)
}

// ANCHOR: positive_features
/// `phi(x) = elu(x) + 1`: `x + 1` above 0, `exp(x)` from 0 down. It is positive, and so is its slope, `min(phi(x), 1)`.
///
/// In `f32`, `exp(x)` is 0 below -104; then nothing is positive any more. Source: Katharopoulos et al. 2020,
/// "Transformers are RNNs".
///
/// # Errors
/// An empty input; what the device reports.
pub fn positive_features<S: Shape, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<S, F, D, T>,
) -> Result<Tensor<S, F, D, T>> {
    check_size("x", x.shape())?;
    let run = || -> Raw<_, D> {
        let (x, mut tape) = x.try_in_order()?.split_tape();
        let wide = cast::<F, F::Wide, _, _>(&x)?;
        let below = wide.clone().try_clamp(f64::NEG_INFINITY, 0.0)?.try_exp()?; // the slope
        let y = below.clone().try_add(wide.try_relu()?)?;
        let y: Tensor<_, F, D> = cast::<F::Wide, F, _, _>(&y)?;
        on_backward(&mut tape, &y, move |dy, grads| {
            let dx = cast::<F, F::Wide, _, _>(&dy)?.try_mul(below)?;
            add_gradient(grads, &x, cast::<F::Wide, F, _, _>(&dx)?)
        });
        Ok(y.put_tape(tape))
    };
    run().map_err(Error::device)
}
// ANCHOR_END: positive_features

/// Queries, keys or values, `[b, s, n, hd]`.
pub(super) type Heads<B, S, N, H, F, D, T = NoneTape> = Tensor<(B, S, N, H), F, D, T>;
/// The same with the heads in front, `[b, n, s, hd]`.
type InHeads<B, S, N, H, W, D> = Tensor<(B, N, S, H), W, D>;
/// A number for each query and key, `[b, n, s, s]`.
type Scores<B, S, N, W, D> = Tensor<(B, N, S, S), W, D>;

// ANCHOR: linear_attention
/// Causal linear attention, with RoPE in the numerator:
///
/// `y_m = sum over n <= m of (R_m phi(q_m) . R_n phi(k_n)) v_n / sum over n <= m of phi(q_m) . phi(k_n)`
///
/// Shapes: `q`, `k`, `v` and the result `[b, s, n, hd]`; `tables` `[s, hd]`, or `None` for no rotation. All pairs are
/// computed, as in attention with a softmax; [`linear_attention_running`](super::linear_attention_running) does without. With a rotation a weight may
/// be below 0, and the weights of a query no longer have the sum 1: so it is in the paper.
///
/// Source: Katharopoulos et al. 2020; with RoPE: Su et al. 2021, "RoFormer", section 3.3.
///
/// # Errors
/// `k` or `v` of another shape than `q`; tables that do not fit; an empty input; a query whose products with the keys up to
/// its own are all 0 in the float type, since they are divided by their sum; what the device reports.
pub fn linear_attention<B: Dim, S: Dim, N: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    q: Heads<B, S, N, H, F, D, T>,
    k: Heads<B, S, N, H, F, D, T>,
    v: Heads<B, S, N, H, F, D, T>,
    tables: Option<&RotaryTables<H, D>>,
) -> Result<Heads<B, S, N, H, F, D, T>> {
    let (q, k) = (positive_features(q)?, positive_features(k)?); //           [b, s, n, hd]
    let turned = |x: Heads<B, S, N, H, F, D, T>| match tables {
        Some(tables) => tables.rotate(x),
        None => Ok(x),
    };
    let (turned_q, turned_k) = (turned(q.with_empty_tape())?, turned(k.with_empty_tape())?);
    weigh_linearly((turned_q, turned_k), (q, k), v)
}

/// The same with the features given: those of the numerator, `turned`, and those of the denominator, `plain`, each
/// queries and keys.
///
/// Shapes: all `[b, s, n, hd]`. The denominators must be positive ([`linear_denominators`]): those of positive
/// features are, as long as the float type can hold their products, and those of turned ones need not be.
///
/// # Errors
/// Shapes that differ; an empty input; a denominator of 0, which is looked for on the host; what the device reports.
pub fn weigh_linearly<B: Dim, S: Dim, N: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    turned: (Heads<B, S, N, H, F, D, T>, Heads<B, S, N, H, F, D, T>),
    plain: (Heads<B, S, N, H, F, D, T>, Heads<B, S, N, H, F, D, T>),
    v: Heads<B, S, N, H, F, D, T>,
) -> Result<Heads<B, S, N, H, F, D, T>> {
    let shape = *v.shape();
    check_scores(&shape)?;
    for (name, x) in [
        ("turned.0", &turned.0),
        ("turned.1", &turned.1),
        ("plain.0", &plain.0),
        ("plain.1", &plain.1),
    ] {
        same_shape(name, &shape.concrete(), &x.shape().concrete())?;
    }
    let run = || -> Raw<Result<_>, D> {
        let (turned_q, tape) = turned.0.try_in_order()?.split_tape();
        let (turned_k, tape_2) = turned.1.try_in_order()?.split_tape();
        let (q, tape_3) = plain.0.try_in_order()?.split_tape();
        let (k, tape_4) = plain.1.try_in_order()?.split_tape();
        let (v, tape_5) = v.try_in_order()?.split_tape();
        let mut tape = tape.merge(tape_2).merge(tape_3).merge(tape_4).merge(tape_5);
        let all = [&turned_q, &turned_k, &q, &k, &v];
        let (y, saved) = forward(in_heads::<_, _, _, _, F, _>(all)?)?;
        if let Some(at) =
            saved.denominators.as_vec().iter().position(|sum| *sum == F::Wide::default())
        {
            let (n, s) = (shape.2.size(), shape.1.size());
            return Ok(Err(Error::NoWeight { batch: at / s / n, head: at / s % n, token: at % s }));
        }
        let y: Tensor<_, F, D> = cast::<F::Wide, F, _, _>(&from_heads(y, shape)?)?;
        on_backward(&mut tape, &y, move |dy, grads| {
            let dy = cast::<F, F::Wide, _, _>(&dy)?.try_permute::<_, Axes4<0, 2, 1, 3>>()?;
            let gradients = backward(dy, saved)?;
            for (x, dx) in [turned_q, turned_k, q, k, v].iter().zip(gradients) {
                add_gradient(grads, x, cast::<F::Wide, F, _, _>(&from_heads(dx, shape)?)?)?;
            }
            Ok(())
        });
        Ok(Ok(y.put_tape(tape)))
    };
    run().map_err(Error::device)?
}

/// Queries and keys of the numerator, of the denominator, and values, in heads, in the type to compute in.
fn in_heads<B: Dim, S: Dim, N: Dim, H: Dim, F: Float, D: Backend<F>>(
    all: [&Heads<B, S, N, H, F, D>; 5],
) -> Raw<[InHeads<B, S, N, H, F::Wide, D>; 5], D> {
    let turn = |x| cast::<F, F::Wide, _, _>(x)?.try_permute::<_, Axes4<0, 2, 1, 3>>();
    let [a, b, c, d, e] = all;
    Ok([turn(a)?, turn(b)?, turn(c)?, turn(d)?, turn(e)?])
}

/// Heads after the tokens again, `[b, s, n, hd]`.
fn from_heads<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    x: InHeads<B, S, N, H, W, D>,
    shape: (B, S, N, H),
) -> Raw<Heads<B, S, N, H, W, D>, D> {
    x.try_permute::<_, Axes4<0, 2, 1, 3>>()?.try_reshape_like(&shape) //      [b, s, n, hd]
}

/// What the backward pass needs of the forward pass.
struct Saved<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>> {
    inputs: [InHeads<B, S, N, H, W, D>; 5], // [b, n, s, hd]
    weights: Scores<B, S, N, W, D>,         // [b, n, s, s], of the numerator
    denominators: Tensor<(B, N, S), W, D>,  // [b, n, s]
    y: InHeads<B, S, N, H, W, D>,           // [b, n, s, hd]
}

/// weights = turned_q turned_k^T up to the query, denominators = sums of q k^T up to the query,
/// y = weights v / denominators
#[allow(clippy::type_complexity)]
fn forward<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    inputs: [InHeads<B, S, N, H, W, D>; 5],
) -> Raw<(InHeads<B, S, N, H, W, D>, Saved<B, S, N, H, W, D>), D> {
    let [turned_q, turned_k, q, k, v] = inputs.clone();
    let weights = up_to_query(products(turned_q, turned_k)?)?; //             [b, n, s, s]
    let plain = up_to_query(products(q, k)?)?; //                             [b, n, s, s]
    let denominators = plain.try_sum::<_, Axis<3>>()?; //                     [b, n, s]
    let y = weights.clone().try_matmul(v)?; //                                [b, n, s, hd]
    let divisors = denominators.clone().try_broadcast_like::<_, Axis<3>>(y.shape())?;
    let y = y.try_div(divisors)?; //                                          [b, n, s, hd]
    Ok((y.clone(), Saved { inputs, weights, denominators, y }))
}
// ANCHOR_END: linear_attention

// ANCHOR: linear_attention_backward
/// dnumerator   = dy / denominators,  ddenominators = -(dy . y) / denominators
/// dv           = weights^T dnumerator
/// dturned_q    = dweights turned_k, dturned_k = dweights^T turned_q, where dweights = dnumerator v^T up to the query
/// dq, dk       = the same of q and k, where each weight up to the query has the gradient ddenominators
fn backward<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    dy: InHeads<B, S, N, H, W, D>,
    saved: Saved<B, S, N, H, W, D>,
) -> Raw<[InHeads<B, S, N, H, W, D>; 5], D> {
    let Saved { inputs: [turned_q, turned_k, q, k, v], weights, denominators, y } = saved;
    let shape = *weights.shape();
    let divisors = denominators.clone().try_broadcast_like::<_, Axis<3>>(dy.shape())?;
    let along = dy.clone().try_mul(y)?.try_sum::<_, Axis<3>>()?; //           [b, n, s]
    let ddenominators = along.try_div(denominators)?.try_negate()?; //        [b, n, s]
    let dnumerator = dy.try_div(divisors)?; //                                [b, n, s, hd]
    let dv = transposed(weights)?.try_matmul(dnumerator.clone())?; //         [b, n, s, hd]
    let dweights = up_to_query(products(dnumerator, v)?)?; //                 [b, n, s, s]
    let dplain = ddenominators.try_broadcast_like::<_, Axis<3>>(&shape)?;
    let dplain = up_to_query(dplain)?; //                                     [b, n, s, s]
    let dturned_q = dweights.clone().try_matmul(turned_k)?; //                [b, n, s, hd]
    let dturned_k = transposed(dweights)?.try_matmul(turned_q)?; //           [b, n, s, hd]
    let dq = dplain.clone().try_matmul(k)?; //                                [b, n, s, hd]
    let dk = transposed(dplain)?.try_matmul(q)?; //                           [b, n, s, hd]
    Ok([dturned_q, dturned_k, dq, dk, dv])
}
// ANCHOR_END: linear_attention_backward

/// The inner product of each of `a` with each of `b`, `[b, n, s, s]`.
fn products<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    a: InHeads<B, S, N, H, W, D>,
    b: InHeads<B, S, N, H, W, D>,
) -> Raw<Scores<B, S, N, W, D>, D> {
    a.try_matmul(b.try_permute::<_, Axes4<0, 1, 3, 2>>()?)
}

fn transposed<B: Dim, S: Dim, N: Dim, W: Float, D: Device<W>>(
    x: Scores<B, S, N, W, D>,
) -> Raw<Scores<B, S, N, W, D>, D> {
    x.try_permute::<_, Axes4<0, 1, 3, 2>>()
}

/// The same with 0 at keys after the query.
fn up_to_query<B: Dim, S: Dim, N: Dim, W: Float, D: Device<W>>(
    x: Scores<B, S, N, W, D>,
) -> Raw<Scores<B, S, N, W, D>, D> {
    let shape = *x.shape();
    let s = shape.2.size();
    let seen = (0..s * s).map(|at| if at % s <= at / s { W::ONE } else { W::zero() });
    let seen = x.device().try_tensor_from_vec(seen.collect(), (shape.2, shape.3))?; // [s, s]
    x.try_mul(seen.try_broadcast_like::<_, Axes2<0, 1>>(&shape)?)
}

/// The denominators of [`weigh_linearly`]: the sum of `q_m . k_n` over the keys up to each query, `[b, n, s]`.
///
/// Shapes: `q` and `k` `[b, s, n, hd]`. Features that are positive have positive ones.
///
/// # Errors
/// Shapes that differ; an empty input; what the device reports.
pub fn linear_denominators<B: Dim, S: Dim, N: Dim, H: Dim, F: Float, D: Backend<F>>(
    q: &Heads<B, S, N, H, F, D>,
    k: &Heads<B, S, N, H, F, D>,
) -> Result<Tensor<(B, N, S), F, D>> {
    check_scores(q.shape())?;
    same_shape("k", &q.shape().concrete(), &k.shape().concrete())?;
    let run = || -> Raw<_, D> {
        let [_, _, q, k, _] = in_heads([q, q, q, k, k])?;
        let sums = up_to_query(products(q, k)?)?.try_sum::<_, Axis<3>>()?; // [b, n, s]
        cast::<F::Wide, F, _, _>(&sums)
    };
    run().map_err(Error::device)
}

fn check_scores<B: Dim, S: Dim, N: Dim, H: Dim>(shape: &(B, S, N, H)) -> Result<()> {
    check_size("v", shape)?;
    check_size("the scores", &(shape.0, shape.2, shape.1, shape.1))
}
