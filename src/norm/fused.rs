//! The norm in one pass over memory, on a CPU. What it computes is defined in `formula.rs`.

use crate::cpu::{
    BLOCK, Source, Values, add_parts, each, gradient, in_wide_registers, is_fused, record,
    rows_of_a_piece, sum, zeros,
};
use crate::tensor::*;
use std::iter::repeat_with;

/// `y`, with its gradient on the tape. `None` on other devices. `x` and `weight` must be contiguous.
///
/// Kept for the backward pass, if there is a tape: `x`, shared, and one number a group.
pub(super) fn group_rms_norm<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: &Tensor<(B, S, H), F, D>,
    weight: &Tensor<(H,), F, D>,
    tape: &mut T,
    group_size: usize,
    eps: f64,
) -> Raw<Option<Tensor<(B, S, H), F, D>>, D> {
    let (Some(values), Some(gamma), true) = (Values::of(x), Values::of(weight), is_fused::<D>())
    else {
        return Ok(None);
    };
    let n = x.shape().num_elements();
    let norm = Norm { group_size, eps: F::Wide::nearest(eps), gamma: gamma.all() };
    let mut inverse = vec![F::Wide::default(); if T::OWNS_TAPE { n / group_size } else { 0 }];
    let mut y = zeros::<F, D>(x.device(), n)?;
    norm.forward(&values, &mut y, &mut inverse);
    let y: Tensor<_, F, D> = x.device().try_tensor_from_vec(y, *x.shape())?;
    if T::OWNS_TAPE {
        let (x, weight) = (x.clone(), weight.clone());
        record(tape, &y, move |dy, grads| {
            let dgamma = norm.backward(&values, &inverse, dy, gradient(grads, &x)?);
            add_parts(&dgamma, gradient(grads, &weight)?);
            Ok(())
        });
    }
    Ok(Some(y))
}

pub(crate) struct Norm<W> {
    pub(crate) group_size: usize,
    pub(crate) eps: W,
    pub(crate) gamma: Vec<W>,
}

impl<W: Float<Wide = W>> Norm<W> {
    /// Writes `y`, and `1 / rms` of each group, if `inverse` is there to keep it.
    pub(crate) fn forward<F: Scalar<Wide = W>>(
        &self,
        x: &impl Source<F>,
        y: &mut [F],
        inverse: &mut [W],
    ) {
        let h = self.gamma.len();
        let groups = h / self.group_size;
        let rows = rows_of_a_piece(h);
        let kept = inverse.chunks_mut(rows * groups).map(Some).chain(repeat_with(|| None));
        let pieces = y.chunks_mut(rows * h).zip(kept);
        each(x.len(), pieces.enumerate(), |(nth, (y, mut kept))| {
            let (mut row, mut inverse) = (vec![W::zero(); h], vec![W::zero(); groups]);
            for (r, y) in y.chunks_mut(h).enumerate() {
                x.widen((nth * rows + r) * h, &mut row);
                normalize(&mut row, &self.gamma, self.eps, &mut inverse);
                y.iter_mut().zip(&row).for_each(|(y, row)| *y = F::narrow(*row));
                if let Some(kept) = &mut kept {
                    kept[r * groups..][..groups].copy_from_slice(&inverse);
                }
            }
        });
    }

    /// `1 / rms` of each group, as the forward pass keeps it.
    pub(crate) fn inverses<F: Scalar<Wide = W>>(&self, x: &impl Source<F>) -> Vec<W> {
        let (h, gz) = (self.gamma.len(), self.group_size);
        let mut inverses = vec![W::zero(); x.len() / gz];
        let rows = rows_of_a_piece(h);
        let pieces = inverses.chunks_mut(rows * (h / gz)).enumerate();
        each(x.len(), pieces, |(nth, inverses)| {
            let mut row = vec![W::zero(); h];
            for (r, inverses) in inverses.chunks_mut(h / gz).enumerate() {
                x.widen((nth * rows + r) * h, &mut row);
                let groups = inverses.iter_mut().zip(row.chunks(gz));
                groups.for_each(|(inverse, x)| *inverse = one_over_rms(x, self.eps));
            }
        });
        inverses
    }

    /// Adds to `dx`, and returns dgamma in parts, `[blocks, h]`.
    pub(crate) fn backward<F: Scalar<Wide = W>>(
        &self,
        x: &impl Source<F>,
        inverse: &[W],
        dy: &[F],
        dx: &mut [F],
    ) -> Vec<W> {
        let (h, gz) = (self.gamma.len(), self.group_size);
        let mut parts = vec![W::zero(); (x.len() / h).div_ceil(BLOCK) * h];
        let pieces = parts.chunks_mut(h).zip(dx.chunks_mut(BLOCK * h));
        each(x.len(), pieces.enumerate(), |(nth, (dgamma, dx))| {
            let (mut x_row, mut dy_row) = (vec![W::zero(); h], vec![W::zero(); h]);
            for (r, dx) in dx.chunks_mut(h).enumerate() {
                let r = nth * BLOCK + r;
                let (dy, inverse) = (&dy[r * h..][..h], &inverse[r * (h / gz)..][..h / gz]);
                x.widen(r * h, &mut x_row);
                dy_row.iter_mut().zip(dy).for_each(|(wide, dy)| *wide = dy.wide());
                normalize_backward(&mut x_row, &mut dy_row, &self.gamma, inverse, dgamma);
                let sums = dx.iter_mut().zip(&dy_row);
                sums.for_each(|(dx, part)| *dx = F::narrow(dx.wide() + *part));
            }
        });
        parts
    }
}

// ANCHOR: norm_rows
/// `1 / rms` of a group.
#[inline(always)]
fn one_over_rms<W: Float>(x: &[W], eps: W) -> W {
    let mean_square = sum([x], |[x]| x * x) / W::nearest(x.len() as f64);
    W::one() / (mean_square + eps).sqrt()
}

in_wide_registers! {
    /// Makes a row `x` its `y`, and writes `1 / rms` of each group.
    fn normalize<'a, W>(x: &'a mut [W], gamma: &'a [W], eps: W, inverse: &'a mut [W]) -> () {
        let group_size = x.len() / inverse.len();
        let groups = x.chunks_mut(group_size).zip(gamma.chunks(group_size));
        for ((x, gamma), kept) in groups.zip(inverse) {
            let inverse = one_over_rms(x, eps);
            x.iter_mut().zip(gamma).for_each(|(x, gamma)| *x = *x * inverse * *gamma);
            *kept = inverse;
        }
    }
}
// ANCHOR_END: norm_rows

in_wide_registers! {
    /// Makes a row of `dy` its part of `dx`, and adds to `dgamma`. Leaves `x / rms` in `x`.
    fn normalize_backward<'a, W>(
        x: &'a mut [W],
        dy: &'a mut [W],
        gamma: &'a [W],
        inverse: &'a [W],
        dgamma: &'a mut [W],
    ) -> () {
        let group_size = x.len() / inverse.len();
        let wide_size = W::nearest(group_size as f64);
        let groups = x.chunks_mut(group_size).zip(dy.chunks_mut(group_size));
        let scales = gamma.chunks(group_size).zip(dgamma.chunks_mut(group_size));
        for (((xhat, dxhat), (gamma, dgamma)), inverse) in groups.zip(scales).zip(inverse) {
            let columns = xhat.iter_mut().zip(dxhat.iter_mut()).zip(gamma.iter().zip(dgamma));
            for ((x, dy), (gamma, dgamma)) in columns {
                *x *= *inverse; //                                            xhat
                *dgamma += *dy * *x;
                *dy *= *gamma; //                                             dxhat
            }
            let along = sum([&*dxhat, &*xhat], |[dxhat, xhat]| dxhat * xhat) / wide_size;
            for (dxhat, xhat) in dxhat.iter_mut().zip(xhat) {
                *dxhat = (*dxhat - *xhat * along) * *inverse;
            }
        }
    }
}
