//! The gate as a free function, forward and backward side by side, and the rule for the network's size.

use super::fused;
use crate::checks::{check_size, require, same_shape};
use crate::error::{Error, Result};
use crate::tensor::*;

// ANCHOR: ffn_hidden_size
/// `f`, the size between: two thirds of `4 h`, times a factor, rounded up to a multiple.
///
/// SwiGLU has three matrices where other networks have two; two thirds of the size make it as large. Llama's rule:
/// `int(2 * 4h / 3)`, then `int(multiplier * that)` if a multiplier is given, then up to a multiple of `multiple_of`.
///
/// ```
/// use quadrivium::feedforward::ffn_hidden_size;
///
/// assert_eq!(ffn_hidden_size(4096, 256, None)?, 11_008); // Llama 2, 7B
/// assert_eq!(ffn_hidden_size(4096, 1024, Some(1.3))?, 14_336); // Llama 3, 8B
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// # Errors
/// A size of 0, or one past the largest `usize`; a multiplier that is not a positive finite number.
pub fn ffn_hidden_size(
    hidden_size: usize,
    multiple_of: usize,
    multiplier: Option<f64>,
) -> Result<usize> {
    require(hidden_size >= 1, "hidden_size", "at least 1", hidden_size as f64)?;
    require(multiple_of >= 1, "multiple_of", "at least 1", multiple_of as f64)?;
    let factor = multiplier.unwrap_or(1.0);
    let rule = "positive and finite";
    require(factor > 0.0 && factor.is_finite(), "ffn_dim_multiplier", rule, factor)?;
    let rule = "so small that 8 times it is a usize";
    let eight = hidden_size.checked_mul(8);
    require(eight.is_some(), "hidden_size", rule, hidden_size as f64)?;
    let size = eight.unwrap_or(0) / 3;
    let size = multiplier.map_or(size, |factor| (factor * size as f64) as usize);
    let size = size.max(1).checked_next_multiple_of(multiple_of);
    size.ok_or(Error::Setting {
        name: "the size between",
        rule: "below the largest usize",
        got: f64::INFINITY,
    })
}
// ANCHOR_END: ffn_hidden_size

// ANCHOR: silu_mul
/// `silu(gate) * up`, with `silu(a) = a sigmoid(a) = a / (1 + exp(-a))`.
///
/// Shapes: both `[b, s, f]`, and the result. The arithmetic is in `f32` or better, and the result is rounded to the
/// input's type once.
///
/// # Errors
/// Different shapes; an empty input, or one of more elements than memory has addresses.
pub fn silu_mul<B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    gate: Tensor<(B, S, N), F, D, T>,
    up: Tensor<(B, S, N), F, D, T>,
) -> Result<Tensor<(B, S, N), F, D, T>> {
    check_size("gate", gate.shape())?;
    same_shape("up", &gate.shape().concrete(), &up.shape().concrete())?;
    let run = || -> Raw<_, D> {
        let (gate, tape) = gate.try_in_order()?.split_tape();
        let (up, up_tape) = up.try_in_order()?.split_tape();
        let mut tape = tape.merge(up_tape);
        if let Some(y) = fused::silu_mul(&gate, &up, &mut tape)? {
            return Ok(y.put_tape(tape));
        }
        let y = gate_forward(cast(&gate)?, cast(&up)?)?;
        let y: Tensor<_, F, D> = cast::<F::Wide, F, _, _>(&y)?;
        on_backward(&mut tape, &y, move |dy, grads| {
            let (dgate, dup) = gate_backward(cast(&dy)?, cast(&gate)?, cast(&up)?)?;
            add_gradient(grads, &gate, cast::<F::Wide, F, _, _>(&dgate)?)?;
            add_gradient(grads, &up, cast::<F::Wide, F, _, _>(&dup)?)
        });
        Ok(y.put_tape(tape))
    };
    run().map_err(Error::device)
}

/// y = gate * sigmoid(gate) * up
fn gate_forward<B: Dim, S: Dim, N: Dim, W: Float, D: Device<W>>(
    gate: Tensor<(B, S, N), W, D>,
    up: Tensor<(B, S, N), W, D>,
) -> Raw<Tensor<(B, S, N), W, D>, D> {
    gate.clone().try_sigmoid()?.try_mul(gate)?.try_mul(up)
}

/// dup   = dy * silu(gate)
/// dgate = dy * up * sigmoid(gate) * (1 + gate * (1 - sigmoid(gate)))
fn gate_backward<B: Dim, S: Dim, N: Dim, W: Float, D: Device<W>>(
    dy: Tensor<(B, S, N), W, D>,
    gate: Tensor<(B, S, N), W, D>,
    up: Tensor<(B, S, N), W, D>,
) -> Raw<(Tensor<(B, S, N), W, D>, Tensor<(B, S, N), W, D>), D> {
    let open = gate.clone().try_sigmoid()?; //                                [b, s, f]
    let dup = dy.clone().try_mul(gate.clone())?.try_mul(open.clone())?; //    [b, s, f]
    let rest = open.clone().try_negate()?.try_add(W::ONE)?; //                [b, s, f]
    let slope = rest.try_mul(gate)?.try_add(W::ONE)?.try_mul(open)?; //       [b, s, f]
    Ok((dy.try_mul(up)?.try_mul(slope)?, dup))
}
// ANCHOR_END: silu_mul
