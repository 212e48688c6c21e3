//! The norm in one pass over memory, on a CPU. See `formula.rs` for what it computes.

use crate::cpu::{
    BLOCK, Source, Values, add_parts, each, gradient, is_fused, record, rows_of_a_piece, sum, zeros,
};
use crate::tensor::*;
use std::iter::repeat_with;

/// `y`, with its gradient on the tape. `None` on other devices. All must be contiguous.
///
/// Kept for the backward pass, if there is a tape: `x`, shared, and two numbers a row.
pub(super) fn layer_norm<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: &Tensor<(B, S, H), F, D>,
    weight: &Tensor<(H,), F, D>,
    bias: &Tensor<(H,), F, D>,
    tape: &mut T,
    eps: f64,
) -> Raw<Option<Tensor<(B, S, H), F, D>>, D> {
    let (Some(values), Some(gamma), Some(beta), true) =
        (Values::of(x), Values::of(weight), Values::of(bias), is_fused::<D>())
    else {
        return Ok(None);
    };
    let n = x.shape().num_elements();
    let norm = Norm { eps: F::Wide::nearest(eps), gamma: gamma.all(), beta: beta.all() };
    let mut rows = vec![Row::default(); if T::OWNS_TAPE { n / norm.gamma.len() } else { 0 }];
    let mut y = zeros::<F, D>(x.device(), n)?;
    norm.forward(&values, &mut y, &mut rows);
    let y: Tensor<_, F, D> = x.device().try_tensor_from_vec(y, *x.shape())?;
    if T::OWNS_TAPE {
        let (x, weight, bias) = (x.clone(), weight.clone(), bias.clone());
        record(tape, &y, move |dy, grads| {
            let (dgamma, dbeta) = norm.backward(&values, &rows, dy, gradient(grads, &x)?);
            add_parts(&dgamma, gradient(grads, &weight)?);
            add_parts(&dbeta, gradient(grads, &bias)?);
            Ok(())
        });
    }
    Ok(Some(y))
}

struct Norm<W: Float> {
    eps: W,
    gamma: Vec<W>,
    beta: Vec<W>,
}

/// The mean of a row, and `1 / std`.
#[derive(Debug, Default, Clone, Copy)]
struct Row<W> {
    mean: W,
    inverse: W,
}

impl<W: Float<Wide = W>> Norm<W> {
    fn forward<F: Float<Wide = W>>(&self, x: &Values<F>, y: &mut [F], rows: &mut [Row<W>]) {
        let h = self.gamma.len();
        let wide_h = W::nearest(h as f64);
        let piece = rows_of_a_piece(h);
        let kept = rows.chunks_mut(piece).map(Some).chain(repeat_with(|| None));
        let pieces = y.chunks_mut(piece * h).zip(kept);
        each(x.len(), pieces.enumerate(), |(nth, (y, mut kept))| {
            let mut x_row = vec![W::zero(); h];
            for (r, y) in y.chunks_mut(h).enumerate() {
                x.widen((nth * piece + r) * h, &mut x_row);
                let mean = sum([&x_row], |[x]| x) / wide_h;
                x_row.iter_mut().for_each(|x| *x -= mean);
                let variance = sum([&x_row], |[x]| x * x) / wide_h;
                let inverse = W::one() / (variance + self.eps).sqrt();
                if let Some(kept) = &mut kept {
                    kept[r] = Row { mean, inverse };
                }
                let columns = y.iter_mut().zip(&x_row).zip(self.gamma.iter().zip(&self.beta));
                for ((y, x), (gamma, beta)) in columns {
                    *y = F::narrow(*x * inverse * *gamma + *beta);
                }
            }
        });
    }

    /// Adds to `dx`, and returns dgamma and dbeta in parts, each `[blocks, h]`.
    fn backward<F: Float<Wide = W>>(
        &self,
        x: &Values<F>,
        rows: &[Row<W>],
        dy: &[F],
        dx: &mut [F],
    ) -> (Vec<W>, Vec<W>) {
        let h = self.gamma.len();
        let wide_h = W::nearest(h as f64);
        let mut dgammas = vec![W::zero(); rows.len().div_ceil(BLOCK) * h];
        let mut dbetas = dgammas.clone();
        let parts = dgammas.chunks_mut(h).zip(dbetas.chunks_mut(h));
        let pieces = parts.zip(dx.chunks_mut(BLOCK * h));
        each(x.len(), pieces.enumerate(), |(nth, ((dgamma, dbeta), dx))| {
            let (mut xhat, mut dxhat) = (vec![W::zero(); h], vec![W::zero(); h]);
            for (r, dx) in dx.chunks_mut(h).enumerate() {
                let r = nth * BLOCK + r;
                let (dy, Row { mean, inverse }) = (&dy[r * h..][..h], rows[r]);
                x.widen(r * h, &mut xhat);
                xhat.iter_mut().for_each(|x| *x = (*x - mean) * inverse);
                let sums = dgamma.iter_mut().zip(dbeta.iter_mut()).zip(&mut dxhat);
                for (((dgamma, dbeta), dxhat), ((dy, xhat), gamma)) in
                    sums.zip(dy.iter().zip(&xhat).zip(&self.gamma))
                {
                    *dgamma += dy.wide() * *xhat;
                    *dbeta += dy.wide();
                    *dxhat = dy.wide() * *gamma;
                }
                let level = sum([&dxhat], |[dxhat]| dxhat) / wide_h;
                let along = sum([&dxhat, &xhat], |[dxhat, xhat]| dxhat * xhat) / wide_h;
                for ((dx, dxhat), xhat) in dx.iter_mut().zip(&dxhat).zip(&xhat) {
                    *dx = F::narrow(dx.wide() + (*dxhat - level - *xhat * along) * inverse);
                }
            }
        });
        (dgammas, dbetas)
    }
}
