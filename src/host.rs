//! What the encodings of this room share: what they check, and tables that are computed on the host.
//!
//! A table by distance has `nh * t` numbers, where the scores have `nh * s * t`. It is therefore computed in `f64`, in
//! plain loops, and rounded once, on its way to the device.

use crate::checks::check_size;
use crate::error::Result;
use crate::tensor::*;

/// dfdx visits a module's fields; some modules here have no tensors in them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct NoWeights;

impl ZeroSizedModule for NoWeights {}

/// The shape of a table by distance: that of head `n` at the distances `0 .. positions`.
pub(crate) fn table_shape(num_heads: usize, positions: usize) -> Result<(usize, usize)> {
    let shape = (num_heads, positions);
    check_size("the table by distance", &shape)?;
    Ok(shape)
}

/// The elements in `f64`, which holds all of them exactly.
pub(crate) fn to_host<S: Shape, F: Float, D: Device<F>>(tensor: &Tensor<S, F, D>) -> Vec<f64> {
    tensor.as_vec().into_iter().map(|x| x.to_f64().unwrap_or(f64::NAN)).collect()
}

/// A tensor of these values, each rounded once.
pub(crate) fn from_host<S: Shape, F: Float, D: Device<F>>(
    dev: &D,
    values: &[f64],
    shape: S,
) -> Raw<Tensor<S, F, D>, D> {
    let values: Vec<F> = values.iter().map(|&x| F::nearest(x)).collect();
    dev.try_tensor_from_vec(values, shape)
}

/// Adds `rows`, one for each token, to `x`, both `[b, s, h]`. The gradient of `x` is that of the sum, and `of_rows` gets it
/// for the rows.
pub(crate) fn add_rows<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<(B, S, H), F, D, T>,
    rows: Tensor<(B, S, H), F::Wide, D>,
    of_rows: impl FnOnce(&Tensor<(B, S, H), F, D>, &mut Gradients<F, D>) -> Raw<(), D> + 'static,
) -> Raw<Tensor<(B, S, H), F, D, T>, D> {
    let (x, mut tape) = x.try_in_order()?.split_tape();
    let y = cast::<F, F::Wide, _, _>(&x)?.try_add(rows)?; //                  [b, s, h]
    let y: Tensor<_, F, D> = cast::<F::Wide, F, _, _>(&y)?;
    on_backward(&mut tape, &y, move |dy, grads| {
        of_rows(&dy, grads)?;
        add_gradient(grads, &x, dy)
    });
    Ok(y.put_tape(tape))
}
