//! The rotation as a free function in both layouts, forward and backward side by side.
//!
//! Sizes are run-time values here, so what the compiler refuses for a module is an [`Error`] for a
//! function. It takes a tensor with a tape or without. With a tape, the gradient defined below the forward pass is
//! recorded. The arithmetic is in `f32` or better, and the result is rounded to the input's type once.

use super::fused;
use super::layouts::{Layout, Pairs, check_heads};
use crate::checks::same_shape;
use crate::error::{Error, Result};
use crate::positions::Places;
use crate::tensor::*;

// ANCHOR: rope_forward
/// `y = x * cos + rotate_half(x) * sin`, in the half-split layout.
///
/// Shapes: `x` `[b, s, nh, hd]`, `cos` and `sin` `[s, hd]`, result `[b, s, nh, hd]`. Row `t` of
/// the tables is for row `t` of `x`. `rotate_half(x)` is `concat(-x[hd/2..], x[..hd/2])`.
/// Source: Su et al. 2021, "RoFormer"; the layout is that of GPT-NeoX and Llama.
///
/// # Errors
/// A head size that is odd, below 4 or above 65,536; tables of another shape; an empty input, or one
/// of more elements than memory has addresses.
///
/// What the tables hold is not looked at: those of the other layout give another result, which is no
/// rotation. [`RotaryTables::rotate`](super::RotaryTables::rotate) can't be mistaken.
pub fn apply_rotary_pos_emb<
    B: Dim,
    S: Dim,
    N: Dim,
    H: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    x: Tensor<(B, S, N, H), F, D, T>,
    cos: &Tensor<(usize, H), f32, D>,
    sin: &Tensor<(usize, H), f32, D>,
) -> Result<Tensor<(B, S, N, H), F, D, T>> {
    check_rotary(x.shape(), cos.shape(), sin.shape())?;
    let pairs = Pairs { layout: Layout::HalfSplit, rotary_dim: x.shape().3.size() };
    apply_rotary(x, cos, sin, pairs)
}

/// The twin of [`apply_rotary_pos_emb`] in the adjacent-pair layout.
///
/// The tables hold each frequency twice, side by side: `(t0, t0, t1, t1, ..)`.
///
/// # Errors
/// As for [`apply_rotary_pos_emb`].
pub fn apply_rotary_pos_emb_interleaved<
    B: Dim,
    S: Dim,
    N: Dim,
    H: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    x: Tensor<(B, S, N, H), F, D, T>,
    cos: &Tensor<(usize, H), f32, D>,
    sin: &Tensor<(usize, H), f32, D>,
) -> Result<Tensor<(B, S, N, H), F, D, T>> {
    check_rotary(x.shape(), cos.shape(), sin.shape())?;
    let pairs = Pairs { layout: Layout::Interleaved, rotary_dim: x.shape().3.size() };
    apply_rotary(x, cos, sin, pairs)
}

/// By tables of `[s, hd]`, or of `[b s, hd]`: then each token has a row, text after text.
pub(crate) fn apply_rotary<
    B: Dim,
    S: Dim,
    N: Dim,
    H: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    x: Tensor<(B, S, N, H), F, D, T>,
    cos: &Tensor<(usize, H), f32, D>,
    sin: &Tensor<(usize, H), f32, D>,
    pairs: Pairs,
) -> Result<Tensor<(B, S, N, H), F, D, T>> {
    let head_dim = check_heads(x.shape())?;
    let each_token = [x.shape().0.size() * x.shape().1.size(), head_dim];
    if cos.shape().concrete() != each_token || sin.shape().concrete() != each_token {
        check_rotary(x.shape(), cos.shape(), sin.shape())?;
    }
    let rows = Places::Row(0..cos.shape().0);
    let run = || -> Raw<_, D> {
        let (x, mut tape) = x.try_in_order()?.split_tape();
        if let Some(y) = fused::apply_rotary(&x, (cos, sin), &rows, &mut tape, pairs)? {
            return Ok(y.put_tape(tape)); // on a CPU: the same in one pass
        }
        let cos = cast::<f32, F::Wide, _, _>(cos)?;
        let sin = cast::<f32, F::Wide, _, _>(sin)?;
        let y = rotate_part(Way::Forward, cast(&x)?, &cos, &sin, pairs)?;
        let y: Tensor<_, F, D> = cast(&y)?;
        on_backward(&mut tape, &y, move |dy, grads| {
            let dx = rotate_part(Way::Backward, cast(&dy)?, &cos, &sin, pairs)?;
            add_gradient(grads, &x, cast(&dx)?)
        });
        Ok(y.put_tape(tape))
    };
    run().map_err(Error::device)
}

/// y = x * cos + quarter_turn(x) * sin
fn rotate_forward<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    x: Tensor<(B, S, N, H), W, D>,
    cos: &Tensor<(usize, H), W, D>,
    sin: &Tensor<(usize, H), W, D>,
    layout: Layout,
) -> Raw<Tensor<(B, S, N, H), W, D>, D> {
    let turned = quarter_turn(x.clone(), layout)?; //                         [b, s, nh, hd]
    let cos = over_heads(cos, x.shape())?; //                                 [b, s, nh, hd]
    let sin = over_heads(sin, x.shape())?; //                                 [b, s, nh, hd]
    x.try_mul(cos)?.try_add(turned.try_mul(sin)?) //                          [b, s, nh, hd]
}
// ANCHOR_END: rope_forward

// ANCHOR: rope_backward
/// The transpose of the forward pass, which turns back: dx = dy * cos - quarter_turn(dy * sin)
fn rotate_backward<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    dy: Tensor<(B, S, N, H), W, D>,
    cos: &Tensor<(usize, H), W, D>,
    sin: &Tensor<(usize, H), W, D>,
    layout: Layout,
) -> Raw<Tensor<(B, S, N, H), W, D>, D> {
    let cos = over_heads(cos, dy.shape())?; //                                [b, s, nh, hd]
    let sin = over_heads(sin, dy.shape())?; //                                [b, s, nh, hd]
    let turned = quarter_turn(dy.clone().try_mul(sin)?, layout)?;
    dy.try_mul(cos)?.try_sub(turned) //                                       [b, s, nh, hd]
}
// ANCHOR_END: rope_backward

/// Whether to turn, or to turn back.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    Forward,
    Backward,
}

/// Turns the part of each head that turns, the first `r`, and leaves the rest as it is, bit for bit. There is no tape
/// here, so dfdx's gradient of a slice is not used.
pub(crate) fn rotate_part<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    way: Way,
    x: Tensor<(B, S, N, H), W, D>,
    cos: &Tensor<(usize, H), W, D>,
    sin: &Tensor<(usize, H), W, D>,
    Pairs { layout, rotary_dim: r }: Pairs,
) -> Raw<Tensor<(B, S, N, H), W, D>, D> {
    let (b, s, n, h) = *x.shape();
    if r == h.size() {
        return match way {
            Way::Forward => rotate_forward(x, cos, sin, layout),
            Way::Backward => rotate_backward(x, cos, sin, layout),
        };
    }
    let cut = |table: &Tensor<(usize, H), W, D>| table.clone().try_slice((.., ..r)); // [s, r]
    let (cos, sin) = (cut(cos)?, cut(sin)?);
    let x = x.try_reshape_like(&(b.size(), s.size(), n.size(), h.size()))?;
    let part = x.clone().try_slice((.., .., .., ..r))?; //                    [b, s, nh, r]
    let rest = x.try_slice((.., .., .., r..))?; //                            [b, s, nh, hd - r]
    let part = match way {
        Way::Forward => rotate_forward(part, &cos, &sin, layout)?,
        Way::Backward => rotate_backward(part, &cos, &sin, layout)?,
    };
    (part, rest).try_concat_along(Axis::<3>)?.try_reshape_like(&(b, s, n, h))
}

// ANCHOR: quarter_turn
/// Turns each pair by 90 degrees, `(a, b)` to `(-b, a)`: swaps partners, then the first changes
/// its sign. In the half-split layout this is the well-known `rotate_half`.
pub(crate) fn quarter_turn<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    x: Tensor<(B, S, N, H), W, D>,
    layout: Layout,
) -> Raw<Tensor<(B, S, N, H), W, D>, D> {
    let (b, s, n, h) = *x.shape();
    let hd = h.size();
    let swapped = match layout {
        Layout::HalfSplit => x.try_roll::<Axis<3>>(hd / 2)?,
        Layout::Interleaved => {
            let pairs = (b, s, n, hd / 2, Const::<2>);
            x.try_reshape_like(&pairs)?.try_roll::<Axis<4>>(1)?.try_reshape_like(&(b, s, n, h))?
        }
    };
    let is_first = |j: usize| match layout {
        Layout::HalfSplit => j < hd / 2,
        Layout::Interleaved => j % 2 == 0,
    };
    let signs = (0..hd).map(|j| if is_first(j) { -W::ONE } else { W::ONE }).collect();
    let signs = swapped.device().try_tensor_from_vec(signs, (h,))?; //        [hd]
    let shape = *swapped.shape();
    swapped.try_mul(signs.try_broadcast_like::<_, Axes3<0, 1, 2>>(&shape)?)
}
// ANCHOR_END: quarter_turn

/// A table `[s, hd]` seen as `[b, s, nh, hd]`: the same for every batch row and head. One of `[b s, hd]` is the same for
/// every head.
fn over_heads<B: Dim, S: Dim, N: Dim, H: Dim, W: Float, D: Device<W>>(
    table: &Tensor<(usize, H), W, D>,
    shape: &(B, S, N, H),
) -> Raw<Tensor<(B, S, N, H), W, D>, D> {
    let (b, s, _, h) = *shape;
    let table = table.clone();
    if table.shape().0 == s.size() {
        let table = table.try_reshape_like(&(s, h))?; //                      [s, hd]
        return table.try_broadcast_like::<_, Axes2<0, 2>>(shape);
    }
    table.try_reshape_like(&(b, s, h))?.try_broadcast_like::<_, Axis<2>>(shape) // [b, s, hd]
}

pub(crate) fn check_rotary<B: Dim, S: Dim, N: Dim, H: Dim>(
    x: &(B, S, N, H),
    cos: &(usize, H),
    sin: &(usize, H),
) -> Result<()> {
    let head_dim = check_heads(x)?;
    let expected = [x.1.size(), head_dim];
    same_shape("cos", &expected, &cos.concrete())?;
    same_shape("sin", &expected, &sin.concrete())
}
