//! The module for tensors of rank 2 and 4: tokens without a batch, and heads.
//!
//! The tape stays on through both reshapes, so that the gradient finds its way back to a tensor that
//! is permuted or broadcast.

use super::{GroupRmsNorm, assert_groups, group_rms_norm};
use crate::checks::not_empty;
use crate::error::{Error, Result};
use crate::tensor::*;

/// `[rows, h]` to the same: each row is a token.
impl<const H: usize, const GZ: usize, R: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tensor<(R, Const<H>), F, D, T>> for GroupRmsNorm<H, GZ, F, D>
{
    type Output = Tensor<(R, Const<H>), F, D, T>;
    type Error = Error;

    fn try_forward(&self, x: Tensor<(R, Const<H>), F, D, T>) -> Result<Self::Output> {
        const { assert_groups(H, GZ) };
        let shape = *x.shape();
        not_empty("x", &shape)?;
        let tokens = (Const::<1>, shape.0, Const::<H>);
        let x = x.try_reshape_like(&tokens).map_err(Error::device)?; //  [1, rows, h]
        let y = group_rms_norm(x, &self.weight, GZ, self.config.eps)?; // [1, rows, h]
        y.try_reshape_like(&shape).map_err(Error::device) //              [rows, h]
    }
}

/// `[b, s, nh, h]` to the same: each head is a token of its own.
impl<const H: usize, const GZ: usize, B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T>
    Module<Tensor<(B, S, N, Const<H>), F, D, T>> for GroupRmsNorm<H, GZ, F, D>
where
    T: Tape<F, D>,
{
    type Output = Tensor<(B, S, N, Const<H>), F, D, T>;
    type Error = Error;

    fn try_forward(&self, x: Tensor<(B, S, N, Const<H>), F, D, T>) -> Result<Self::Output> {
        const { assert_groups(H, GZ) };
        let shape = *x.shape();
        not_empty("x", &shape)?;
        let tokens = (shape.0.size() * shape.1.size(), shape.2, Const::<H>);
        let x = x.try_reshape_like(&tokens).map_err(Error::device)?; //  [b s, nh, h]
        let y = group_rms_norm(x, &self.weight, GZ, self.config.eps)?; // [b s, nh, h]
        y.try_reshape_like(&shape).map_err(Error::device) //              [b, s, nh, h]
    }
}
