//! The gate in one pass over memory, on a CPU. What it computes is defined in `formula.rs`.

use crate::cpu::{Source, Values, each, gradient, in_wide_registers, is_fused, record, zeros};
use crate::tensor::*;

/// Elements of one piece of work.
const PIECE: usize = 2048;

/// `y`, with its gradient on the tape. `None` on other devices. `gate` and `up` must be contiguous.
///
/// Kept for the backward pass: `gate` and `up`, shared.
pub(super) fn silu_mul<B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    gate: &Tensor<(B, S, N), F, D>,
    up: &Tensor<(B, S, N), F, D>,
    tape: &mut T,
) -> Raw<Option<Tensor<(B, S, N), F, D>>, D> {
    let (Some(gates), Some(ups), true) = (Values::of(gate), Values::of(up), is_fused::<D>()) else {
        return Ok(None);
    };
    let mut y = zeros::<F, D>(gate.device(), gates.len())?;
    forward(&gates, &ups, &mut y);
    let y: Tensor<_, F, D> = gate.device().try_tensor_from_vec(y, *gate.shape())?;
    if T::OWNS_TAPE {
        let (gate, up) = (gate.clone(), up.clone());
        record(tape, &y, move |dy, grads| {
            of_gate(&gates, &ups, dy, gradient(grads, &gate)?);
            of_up(&gates, &ups, dy, gradient(grads, &up)?);
            Ok(())
        });
    }
    Ok(Some(y))
}

pub(crate) fn forward<F: Scalar>(gates: &impl Source<F>, ups: &impl Source<F>, y: &mut [F]) {
    in_pieces(gates, ups, y.chunks_mut(PIECE), |a, b, y| {
        gate_rows(a, b);
        y.iter_mut().zip(b).for_each(|(y, b)| *y = F::narrow(*b));
    });
}

/// Adds to the gradient of the gate.
pub(crate) fn of_gate<F: Scalar>(
    gates: &impl Source<F>,
    ups: &impl Source<F>,
    dy: &[F],
    dgate: &mut [F],
) {
    in_pieces(gates, ups, dgate.chunks_mut(PIECE).zip(dy.chunks(PIECE)), |a, b, (dgate, dy)| {
        slopes(a, b);
        add_products(dy, b, dgate);
    });
}

/// Adds to the gradient of what the gate lets through.
pub(crate) fn of_up<F: Scalar>(
    gates: &impl Source<F>,
    ups: &impl Source<F>,
    dy: &[F],
    dup: &mut [F],
) {
    in_pieces(gates, ups, dup.chunks_mut(PIECE).zip(dy.chunks(PIECE)), |a, b, (dup, dy)| {
        b.fill(F::Wide::ONE);
        gate_rows(a, b);
        add_products(dy, b, dup);
    });
}

/// Gives each piece of work its part of the gates and of what they let through.
fn in_pieces<F: Scalar, P: Send>(
    gates: &impl Source<F>,
    ups: &impl Source<F>,
    pieces: impl Iterator<Item = P>,
    work: impl Fn(&mut [F::Wide], &mut [F::Wide], P) + Send + Sync,
) {
    each(gates.len(), pieces.enumerate(), |(nth, piece)| {
        let len = PIECE.min(gates.len() - nth * PIECE);
        let (mut a, mut b) = ([F::Wide::default(); PIECE], [F::Wide::default(); PIECE]);
        gates.widen(nth * PIECE, &mut a[..len]);
        ups.widen(nth * PIECE, &mut b[..len]);
        work(&mut a[..len], &mut b[..len], piece);
    });
}

/// Adds the products of the gradient of the result with slopes.
fn add_products<F: Scalar>(dy: &[F], slopes: &[F::Wide], sum: &mut [F]) {
    for ((sum, dy), slope) in sum.iter_mut().zip(dy).zip(slopes) {
        *sum = F::narrow(sum.wide() + dy.wide() * *slope);
    }
}

in_wide_registers! {
    /// `b = silu(a) b`
    pub(crate) fn gate_rows<'a, W>(a: &'a [W], b: &'a mut [W]) -> () {
        for (b, a) in b.iter_mut().zip(a) {
            *b *= *a * sigmoid(*a);
        }
    }

    /// `b = silu'(a) b`
    fn slopes<'a, W>(a: &'a [W], b: &'a mut [W]) -> () {
        for (b, a) in b.iter_mut().zip(a) {
            let open = sigmoid(*a);
            *b *= open * (W::one() + *a * (W::one() - open));
        }
    }
}

/// `1 / (1 + exp(-a))`, by a power that can't overflow.
#[inline(always)]
fn sigmoid<W: Float>(a: W) -> W {
    let power = (-a.abs()).exp_below_zero();
    let of_positive = W::one() / (W::one() + power);
    if a < W::zero() { power * of_positive } else { of_positive }
}
