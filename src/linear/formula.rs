//! The product with a matrix of weights as a free function.

use super::fused;
use crate::checks::{check_size, same_shape};
use crate::error::{Error, Result};
use crate::tensor::*;

// ANCHOR: linear
/// `y = x weight^T`: each element of the output is the inner product of a token with a row of the weight.
///
/// Shapes: `x` `[b, s, i]`, `weight` `[o, i]` as PyTorch keeps it, result `[b, s, o]`. The gradient is dfdx's
/// own: `dx = dy weight` and `dweight = dy^T x`, summed over all tokens. dfdx takes no tensor twice: where `x` is `weight`
/// in another shape, its gradient panics, except in a CPU's fused code.
///
/// # Errors
/// A `weight` of another width; an empty input, or one of more elements than memory has addresses.
pub fn linear<B: Dim, S: Dim, I: Dim, O: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<(B, S, I), F, D, T>,
    weight: &Tensor<(O, I), F, D>,
) -> Result<Tensor<(B, S, O), F, D, T>> {
    let (b, s, i) = *x.shape();
    let (o, width) = *weight.shape();
    check_size("x", x.shape())?;
    check_size("weight", weight.shape())?;
    same_shape("weight", &[o.size(), i.size()], &[o.size(), width.size()])?;
    check_size("the result", &(b, s, o))?;
    let run = || -> Raw<_, D> {
        let (x, tape) = x.try_in_order()?.split_tape();
        let (weight, weight_tape) = weight.retaped::<T>().try_in_order()?.split_tape();
        let mut tape = tape.merge(weight_tape);
        if let Some(y) = fused::linear(&x, &weight, &mut tape)? {
            return Ok(y.put_tape(tape));
        }
        let (x, weight) = (x.put_tape(tape), weight.retaped::<T>());
        let tokens = x.try_reshape_like(&(b.size() * s.size(), i))?; //       [b s, i]
        let weight = weight.try_permute::<_, Axes2<1, 0>>()?; //              [i, o]
        tokens.try_matmul(weight)?.try_reshape_like(&(b, s, o)) //            [b, s, o]
    };
    run().map_err(Error::device)
}
// ANCHOR_END: linear
