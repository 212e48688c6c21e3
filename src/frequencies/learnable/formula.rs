//! The rotation by trainable frequencies, forward and backward side by side.

use super::fused;
use crate::checks::same_shape;
use crate::error::{Error, Result};
use crate::positions::{Places, Positions};
use crate::rope::RotaryTables;
use crate::rope::formula::{Way, quarter_turn, rotate_part};
use crate::rope::layouts::{Layout, Pairs, check_heads};
use crate::tensor::*;

// ANCHOR: learnable_forward
/// RoPE whose frequencies `theta` are trained: a token turns by the angles `position * theta`. Positions are an offset, which
/// row 0 of each text has, or `position_ids`, `[b, s]`.
///
/// Shapes: `x` `[b, s, nh, hd]`, `theta` `[hd/2]`, result `[b, s, nh, hd]`. The angles are built in `f64` on the host
/// in each call, from the values that `theta` has.
///
/// # Errors
/// A head size that is odd, below 4 or above 65,536; a `theta` of another length, or with a value that is not
/// finite; positions past `2^53`; `position_ids` of another shape; an empty input, or one of more elements
/// than memory has addresses.
pub fn rotate_by_frequencies<B: Dim, S: Dim, N: Dim, H: Dim, P: Dim, F, D, T>(
    x: Tensor<(B, S, N, H), F, D, T>,
    theta: &Tensor<(P,), F, D>,
    positions: impl Into<Positions>,
    layout: Layout,
) -> Result<Tensor<(B, S, N, H), F, D, T>>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    let hd = check_heads(x.shape())?;
    same_shape("theta", &[hd / 2], &[theta.shape().0.size()])?;
    let places = positions.into().of(x.shape())?;
    let values: Vec<f64> =
        theta.as_vec().into_iter().map(|theta| theta.to_f64().unwrap_or(f64::NAN)).collect();
    let turns = (&values[..], 1.0);
    let tables = RotaryTables::at_places(x.device(), x.shape().3, turns, &places, layout)?; // [s, hd] or [b s, hd]
    let pairs = Pairs { layout, rotary_dim: hd };
    let run = || -> Raw<_, D> {
        let (x, tape) = x.try_in_order()?.split_tape();
        let (theta, theta_tape) = theta.retaped::<T>().try_in_order()?.split_tape();
        let mut tape = tape.merge(theta_tape);
        if let Some(y) =
            fused::rotate_by_frequencies(&x, &theta, &tables, &places, &mut tape, pairs)?
        {
            return Ok(y.put_tape(tape)); // on a CPU: the same in one pass
        }
        let cos = cast::<f32, F::Wide, _, _>(&tables.cos)?;
        let sin = cast::<f32, F::Wide, _, _>(&tables.sin)?;
        let y = rotate_part(Way::Forward, cast(&x)?, &cos, &sin, pairs)?;
        let y: Tensor<_, F, D> = cast::<F::Wide, F, _, _>(&y)?;
        on_backward(&mut tape, &y, move |dy, grads| {
            let dx = rotate_part(Way::Backward, cast(&dy)?, &cos, &sin, pairs)?;
            let dtheta = theta_backward(cast(&x)?, dx.clone(), &places, *theta.shape(), layout)?;
            add_gradient(grads, &x, cast::<F::Wide, F, _, _>(&dx)?)?;
            add_gradient(grads, &theta, cast::<F::Wide, F, _, _>(&dtheta)?)
        });
        Ok(y.put_tape(tape))
    };
    run().map_err(Error::device)
}
// ANCHOR_END: learnable_forward

// ANCHOR: learnable_backward
/// dangle = dy_b * y_a - dy_a * y_b = dx_b * x_a - dx_a * x_b: turning both back changes no area
/// dtheta = sum over tokens and heads of position * dangle
fn theta_backward<B: Dim, S: Dim, N: Dim, H: Dim, P: Dim, W: Float, D: Device<W>>(
    x: Tensor<(B, S, N, H), W, D>,
    dx: Tensor<(B, S, N, H), W, D>,
    places: &Places,
    planes: (P,),
    layout: Layout,
) -> Raw<Tensor<(P,), W, D>, D> {
    let (b, s, n, h) = *x.shape();
    let half = h.size() / 2;
    let tokens = 0..b.size() * s.size();
    let positions = tokens.map(|token| W::nearest(places.of_token(token) as f64)).collect();
    let positions = x.device().try_tensor_from_vec(positions, (b, s))?; //    [b, s]
    let positions = positions.try_broadcast_like::<_, Axes2<2, 3>>(&(b, s, n, h))?;
    let turned = quarter_turn(x, layout)?; // (-x_b, x_a)                     [b, s, nh, hd]
    let each = dx.try_mul(turned)?.try_mul(positions)?; //                    [b, s, nh, hd]
    let each = each.try_sum::<_, Axes3<0, 1, 2>>()?; //                       [hd]
    let sum = match layout {
        Layout::HalfSplit => each.try_reshape_like(&(2usize, half))?.try_sum::<_, Axis<0>>()?,
        Layout::Interleaved => each.try_reshape_like(&(half, 2usize))?.try_sum::<_, Axis<1>>()?,
    };
    sum.try_reshape_like(&planes) //                                          [hd/2]
}
// ANCHOR_END: learnable_backward
