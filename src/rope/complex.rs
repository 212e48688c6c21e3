//! The rotation in complex numbers: slow and obvious, for reading and for testing the other.

use super::formula::check_rotary;
use crate::error::{Error, Result};
use crate::tensor::*;

// ANCHOR: rope_complex
/// `apply_rotary_pos_emb` in complex numbers: `z = x_i + i x_{i + d/2}` becomes `z * e^(i m t)`.
///
/// The slow and obvious form, for reading and for testing the other, in `f32` and `f64`. The
/// gradient is dfdx's own. Shapes and tables are those of
/// [`apply_rotary_pos_emb`](super::apply_rotary_pos_emb); only their first halves are used.
///
/// # Errors
/// As for the other.
pub fn apply_rotary_pos_emb_complex<B: Dim, S: Dim, N: Dim, H: Dim, F, D, T>(
    x: Tensor<(B, S, N, H), F, D, T>,
    cos: &Tensor<(usize, H), f32, D>,
    sin: &Tensor<(usize, H), f32, D>,
) -> Result<Tensor<(B, S, N, H), F, D, T>>
where
    F: Float<Wide = F>,
    D: Backend<F>,
    T: Tape<F, D>,
{
    check_rotary(x.shape(), cos.shape(), sin.shape())?;
    let run = || -> Raw<_, D> {
        let shape = *x.shape();
        let (b, s, n, h) = (shape.0.size(), shape.1.size(), shape.2.size(), shape.3.size());
        let halves = (b, s, n, h / 2);
        let phase = |table: &Tensor<(usize, H), f32, D>| {
            let table = cast::<f32, F, _, _>(table)?.try_slice((.., ..h / 2))?; // [s, hd/2]
            table.try_broadcast_like::<_, Axes2<0, 2>>(&halves)
        };
        let (cos, sin) = (phase(cos)?, phase(sin)?);

        // z = re + i im. In dfdx, the gradient of a slice overwrites that of the whole. Therefore
        // slice a tensor that nothing else uses, and each element once.
        let x = x.try_in_order()?.try_reshape_like(&(b, s, n, h))?.try_mul(F::ONE)?;
        let re = x.with_empty_tape().try_slice((.., .., .., ..h / 2))?;
        let im = x.try_slice((.., .., .., h / 2..))?;

        // z * (cos + i sin) = (re cos - im sin) + i (re sin + im cos)
        let y_re = (re.with_empty_tape().try_mul(cos.clone())?)
            .try_sub(im.with_empty_tape().try_mul(sin.clone())?)?;
        let y_im = re.try_mul(sin)?.try_add(im.try_mul(cos)?)?;

        (y_re, y_im).try_concat_along(Axis::<3>)?.try_reshape_like(&shape)
    };
    run().map_err(Error::device)
}
// ANCHOR_END: rope_complex
