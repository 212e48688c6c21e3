//! The norm as a free function, forward and backward side by side.
//!
//! Sizes are run-time values here, so what the compiler refuses for a module is an [`Error`] for a
//! function. It takes a tensor with a tape or without. With a tape, the gradient defined below the
//! forward pass is recorded. The arithmetic is in `f32` or better, and the result is rounded to
//! the input's type once.

use super::fused;
use crate::checks::{check_eps, check_size, same_shape};
use crate::error::{Error, Result};
use crate::tensor::*;

// ANCHOR: norm_forward
/// `y = x / sqrt(mean(x^2) + eps) * weight`, with the mean over each group of `group_size`.
///
/// Shapes: `x` `[b, s, h]`, `weight` `[h]`, result `[b, s, h]`. A group is `group_size`
/// neighbours on the hidden axis. Source: Zhang and Sennrich 2019, "Root Mean Square Layer
/// Normalization"; in groups: Dao and Gu 2024, Mamba-2.
///
/// # Errors
/// A group size that does not divide `h`; an `eps` that is negative, not finite, or rounds to 0;
/// a `weight` of another length; an empty input, or one of more elements than memory has addresses.
///
/// # Range
/// As in PyTorch, no group is scaled before it is squared. A group whose squares have a sum that is
/// no finite `f32` therefore gives zeros: one with an `x` of `2^64 = 1.8e19` or more always does.
/// With `eps = 0`, digits are lost below `2^-63 = 1.1e-19`, where a square is subnormal; from
/// `2^-75 = 2.6e-23` down the squares are 0, and the result is infinite, or NaN for a group of zeros.
/// On a GPU a subnormal sum of squares may be 0, too.
/// Any `eps` of `1e-30` or more prevents that. In `f64` the ends are `2^512` and `2^-511`.
pub fn group_rms_norm<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<(B, S, H), F, D, T>,
    weight: &Tensor<(H,), F, D>,
    group_size: usize,
    eps: f64,
) -> Result<Tensor<(B, S, H), F, D, T>> {
    check_norm(x.shape(), weight.shape(), group_size)?;
    check_eps::<F::Wide>(eps)?;
    let run = || -> Raw<_, D> {
        let (x, tape) = x.try_in_order()?.split_tape();
        let (weight, weight_tape) = weight.retaped::<T>().try_in_order()?.split_tape();
        let mut tape = tape.merge(weight_tape);
        if let Some(y) = fused::group_rms_norm(&x, &weight, &mut tape, group_size, eps)? {
            return Ok(y.put_tape(tape)); // on a CPU: the same in one pass
        }
        let (y, saved) = rms_forward(cast(&x)?, cast(&weight)?, group_size, eps)?;
        let y: Tensor<_, F, D> = cast::<F::Wide, F, _, _>(&y)?;
        on_backward(&mut tape, &y, move |dy, grads| {
            let (dx, dgamma) = rms_backward(cast(&dy)?, saved)?;
            add_gradient(grads, &x, cast::<F::Wide, F, _, _>(&dx)?)?;
            add_gradient(grads, &weight, cast::<F::Wide, F, _, _>(&dgamma)?)
        });
        Ok(y.put_tape(tape))
    };
    run().map_err(Error::device)
}

/// What the backward pass needs of the forward pass.
struct RmsSaved<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>> {
    xhat: Tensor<(B, S, H), W, D>,    // [b, s, h]
    rms: Tensor<(B, S, usize), W, D>, // [b, s, g]
    gamma: Tensor<(H,), W, D>,        // [h]
    group_size: usize,
}

/// xhat = x / sqrt(mean(x^2) + eps), y = gamma * xhat
fn rms_forward<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>>(
    x: Tensor<(B, S, H), W, D>,
    gamma: Tensor<(H,), W, D>,
    group_size: usize,
    eps: f64,
) -> Raw<(Tensor<(B, S, H), W, D>, RmsSaved<B, S, H, W, D>), D> {
    let (b, s, h) = *x.shape();
    let groups = (b, s, h.size() / group_size, group_size);

    let x = x.try_reshape_like(&groups)?; //                                  [b, s, g, gz]
    let sum = x.clone().try_square()?.try_sum::<_, Axis<3>>()?; //            [b, s, g]
    let mean_square = sum.try_div(W::nearest(group_size as f64))?; //         [b, s, g]
    let rms = mean_square.try_add(W::nearest(eps))?.try_sqrt()?; //           [b, s, g]
    let xhat = x.try_div(over_groups(&rms, &groups)?)?; //                    [b, s, g, gz]
    let xhat = xhat.try_reshape_like(&(b, s, h))?; //                         [b, s, h]
    let y = xhat.clone().try_mul(over_rows(&gamma, &(b, s, h))?)?; //         [b, s, h]

    Ok((y, RmsSaved { xhat, rms, gamma, group_size }))
}
// ANCHOR_END: norm_forward

// ANCHOR: norm_backward
/// dgamma = sum over rows of dy * xhat
/// dx     = (gamma*dy - xhat * mean(gamma*dy * xhat)) / rms, the mean over each group
fn rms_backward<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>>(
    dy: Tensor<(B, S, H), W, D>,
    saved: RmsSaved<B, S, H, W, D>,
) -> Raw<(Tensor<(B, S, H), W, D>, Tensor<(H,), W, D>), D> {
    let RmsSaved { xhat, rms, gamma, group_size } = saved;
    let (b, s, h) = *dy.shape();
    let groups = (b, s, h.size() / group_size, group_size);

    let dgamma = dy.clone().try_mul(xhat.clone())?; //                        [b, s, h]
    let dgamma = dgamma.try_sum::<_, Axes2<0, 1>>()?; //                      [h]

    let dxhat = dy.try_mul(over_rows(&gamma, &(b, s, h))?)?; //               [b, s, h]
    let dxhat = dxhat.try_reshape_like(&groups)?; //                          [b, s, g, gz]
    let xhat = xhat.try_reshape_like(&groups)?; //                            [b, s, g, gz]
    let along = dxhat.clone().try_mul(xhat.clone())?; //                      [b, s, g, gz]
    let along = along.try_sum::<_, Axis<3>>()?; //                            [b, s, g]
    let along = along.try_div(W::nearest(group_size as f64))?; //             [b, s, g]
    let along = xhat.try_mul(over_groups(&along, &groups)?)?; //              [b, s, g, gz]
    let dx = dxhat.try_sub(along)?.try_div(over_groups(&rms, &groups)?)?; //  [b, s, g, gz]

    Ok((dx.try_reshape_like(&(b, s, h))?, dgamma))
}
// ANCHOR_END: norm_backward

// ANCHOR: norm_broadcast
/// One number a group, `[b, s, g]`, seen as `[b, s, g, gz]`. Nothing is copied.
fn over_groups<B: Dim, S: Dim, W: Float, D: Device<W>>(
    per_group: &Tensor<(B, S, usize), W, D>,
    groups: &(B, S, usize, usize),
) -> Raw<Tensor<(B, S, usize, usize), W, D>, D> {
    per_group.clone().try_broadcast_like::<_, Axis<3>>(groups)
}

/// One number an element, `[h]`, seen as `[b, s, h]`. Nothing is copied.
fn over_rows<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>>(
    gamma: &Tensor<(H,), W, D>,
    shape: &(B, S, H),
) -> Raw<Tensor<(B, S, H), W, D>, D> {
    gamma.clone().try_broadcast_like::<_, Axes2<0, 1>>(shape)
}
// ANCHOR_END: norm_broadcast

fn check_norm<B: Dim, S: Dim, H: Dim>(
    x: &(B, S, H),
    weight: &(H,),
    group_size: usize,
) -> Result<()> {
    check_size("x", x)?;
    let hidden_size = x.2.size();
    if group_size == 0 || hidden_size % group_size != 0 {
        return Err(Error::GroupSize { group_size, hidden_size });
    }
    same_shape("weight", &[hidden_size], &[weight.0.size()])
}
