//! The norm as a free function, forward and backward side by side.
//!
//! Sizes are run-time values here, so what the compiler refuses for a module is an [`Error`] for a
//! function. It takes a tensor with a tape or without. With a tape, the gradient defined below the forward pass is
//! recorded. The arithmetic is in `f32` or better, and the result is rounded to the input's type once.

use super::fused;
use crate::checks::{check_eps, check_size, same_shape};
use crate::error::{Error, Result};
use crate::tensor::*;

// ANCHOR: layernorm_forward
/// `y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, mean and variance over a token.
///
/// Shapes: `x` `[b, s, h]`, `weight` and `bias` `[h]`, result `[b, s, h]`. The variance is the mean of
/// the squared distances from the mean; nothing is estimated, so it is divided by `h`, not by `h - 1`.
/// Source: Ba, Kiros and Hinton 2016, "Layer Normalization".
///
/// # Errors
/// An `eps` that is negative, not finite, or rounds to 0; a `weight` or a `bias` of another length; an
/// empty input, or one of more elements than memory has addresses.
///
/// # Range
/// The mean is subtracted before anything is squared. A large mean therefore costs the rounding of the mean, at
/// most `h` roundings of its size, and not the digits of its square. As in PyTorch, no token is scaled before it is squared: one whose squared
/// distances have a sum that is no finite `f32` gives its bias, or NaN where a part of its sum is none either.
pub fn layer_norm<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<(B, S, H), F, D, T>,
    weight: &Tensor<(H,), F, D>,
    bias: &Tensor<(H,), F, D>,
    eps: f64,
) -> Result<Tensor<(B, S, H), F, D, T>> {
    check_size("x", x.shape())?;
    same_shape("weight", &[x.shape().2.size()], &[weight.shape().0.size()])?;
    same_shape("bias", &[x.shape().2.size()], &[bias.shape().0.size()])?;
    check_eps::<F::Wide>(eps)?;
    let run = || -> Raw<_, D> {
        let (x, tape) = x.try_in_order()?.split_tape();
        let (weight, weight_tape) = weight.retaped::<T>().try_in_order()?.split_tape();
        let (bias, bias_tape) = bias.retaped::<T>().try_in_order()?.split_tape();
        let mut tape = tape.merge(weight_tape).merge(bias_tape);
        if let Some(y) = fused::layer_norm(&x, &weight, &bias, &mut tape, eps)? {
            return Ok(y.put_tape(tape)); // on a CPU: the same in one pass
        }
        let (y, saved) = layer_forward(cast(&x)?, cast(&weight)?, cast(&bias)?, eps)?;
        let y: Tensor<_, F, D> = cast::<F::Wide, F, _, _>(&y)?;
        on_backward(&mut tape, &y, move |dy, grads| {
            let (dx, dgamma, dbeta) = layer_backward(cast(&dy)?, saved)?;
            add_gradient(grads, &x, cast::<F::Wide, F, _, _>(&dx)?)?;
            add_gradient(grads, &weight, cast::<F::Wide, F, _, _>(&dgamma)?)?;
            add_gradient(grads, &bias, cast::<F::Wide, F, _, _>(&dbeta)?)
        });
        Ok(y.put_tape(tape))
    };
    run().map_err(Error::device)
}

/// What the backward pass needs of the forward pass.
struct LayerSaved<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>> {
    xhat: Tensor<(B, S, H), W, D>, // [b, s, h]
    std: Tensor<(B, S), W, D>,     // [b, s]
    gamma: Tensor<(H,), W, D>,     // [h]
}

/// xhat = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps), y = gamma * xhat + beta
fn layer_forward<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>>(
    x: Tensor<(B, S, H), W, D>,
    gamma: Tensor<(H,), W, D>,
    beta: Tensor<(H,), W, D>,
    eps: f64,
) -> Raw<(Tensor<(B, S, H), W, D>, LayerSaved<B, S, H, W, D>), D> {
    let shape = *x.shape();

    let mean = mean_of_rows(x.clone())?; //                               [b, s]
    let centred = x.try_sub(over_elements(&mean, &shape)?)?; //           [b, s, h]
    let variance = mean_of_rows(centred.clone().try_square()?)?; //       [b, s]
    let std = variance.try_add(W::nearest(eps))?.try_sqrt()?; //          [b, s]
    let xhat = centred.try_div(over_elements(&std, &shape)?)?; //         [b, s, h]
    let y = xhat.clone().try_mul(over_rows(&gamma, &shape)?)?; //         [b, s, h]
    let y = y.try_add(over_rows(&beta, &shape)?)?; //                     [b, s, h]

    Ok((y, LayerSaved { xhat, std, gamma }))
}
// ANCHOR_END: layernorm_forward

// ANCHOR: layernorm_backward
/// The gradients with respect to x, gamma and beta: `[b, s, h]`, `[h]`, `[h]`.
type Gradients<B, S, H, W, D> = (Tensor<(B, S, H), W, D>, Tensor<(H,), W, D>, Tensor<(H,), W, D>);

/// dbeta  = sum over rows of dy
/// dgamma = sum over rows of dy * xhat
/// dx     = (gamma*dy - mean(gamma*dy) - xhat * mean(gamma*dy * xhat)) / std
fn layer_backward<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>>(
    dy: Tensor<(B, S, H), W, D>,
    saved: LayerSaved<B, S, H, W, D>,
) -> Raw<Gradients<B, S, H, W, D>, D> {
    let LayerSaved { xhat, std, gamma } = saved;
    let shape = *dy.shape();

    let dbeta = dy.clone().try_sum::<_, Axes2<0, 1>>()?; //               [h]
    let dgamma = dy.clone().try_mul(xhat.clone())?; //                    [b, s, h]
    let dgamma = dgamma.try_sum::<_, Axes2<0, 1>>()?; //                  [h]

    let dxhat = dy.try_mul(over_rows(&gamma, &shape)?)?; //               [b, s, h]
    let level = mean_of_rows(dxhat.clone())?; //                          [b, s]
    let along = mean_of_rows(dxhat.clone().try_mul(xhat.clone())?)?; //   [b, s]
    let along = xhat.try_mul(over_elements(&along, &shape)?)?; //         [b, s, h]
    let dx = dxhat.try_sub(over_elements(&level, &shape)?)?; //           [b, s, h]
    let dx = dx.try_sub(along)?.try_div(over_elements(&std, &shape)?)?; // [b, s, h]

    Ok((dx, dgamma, dbeta))
}
// ANCHOR_END: layernorm_backward

/// The mean of each row, `[b, s, h]` to `[b, s]`.
fn mean_of_rows<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>>(
    x: Tensor<(B, S, H), W, D>,
) -> Raw<Tensor<(B, S), W, D>, D> {
    let h = x.shape().2.size();
    x.try_sum::<_, Axis<2>>()?.try_div(W::nearest(h as f64))
}

/// One number a row, `[b, s]`, seen as `[b, s, h]`. Nothing is copied.
fn over_elements<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>>(
    per_row: &Tensor<(B, S), W, D>,
    shape: &(B, S, H),
) -> Raw<Tensor<(B, S, H), W, D>, D> {
    per_row.clone().try_broadcast_like::<_, Axis<2>>(shape)
}

/// One number an element, `[h]`, seen as `[b, s, h]`. Nothing is copied.
fn over_rows<B: Dim, S: Dim, H: Dim, W: Float, D: Device<W>>(
    per_element: &Tensor<(H,), W, D>,
    shape: &(B, S, H),
) -> Raw<Tensor<(B, S, H), W, D>, D> {
    per_element.clone().try_broadcast_like::<_, Axes2<0, 1>>(shape)
}
