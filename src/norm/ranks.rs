//! The module for tensors of rank 2 and 4: tokens without a batch, and heads.
//!
//! These are methods, not further `Module`s: with one `Module` the compiler names the two sizes
//! that differ, and with several only a trait that is missing.
//!
//! The tape stays on through both reshapes, so that the gradient finds its way back to a tensor that
//! is permuted or broadcast.

use super::{GroupRmsNorm, assert_groups, group_rms_norm};
use crate::checks::check_size;
use crate::error::{Error, Result};
use crate::tensor::*;

impl<const H: usize, const GZ: usize, F: Float, D: Backend<F>> GroupRmsNorm<H, GZ, F, D> {
    /// Normalizes rows: `[rows, h]` to the same. Each row is a token.
    ///
    /// # Errors
    /// An empty input; what the device reports.
    pub fn try_forward_rows<R: Dim, T: Tape<F, D>>(
        &self,
        x: Tensor<(R, Const<H>), F, D, T>,
    ) -> Result<Tensor<(R, Const<H>), F, D, T>> {
        const { assert_groups(H, GZ) };
        let shape = *x.shape();
        check_size("x", &shape)?;
        let tokens = (Const::<1>, shape.0, Const::<H>);
        let x = in_order(x, &tokens)?; //                                [1, rows, h]
        let y = group_rms_norm(x, &self.weight, GZ, self.config.eps)?; // [1, rows, h]
        y.try_reshape_like(&shape).map_err(Error::device) //              [rows, h]
    }

    /// Normalizes heads: `[b, s, nh, h]` to the same, where `h` is the head size. Each head is a
    /// separate token, and gamma is the same for all (QK-norm).
    ///
    /// # Errors
    /// An empty input; what the device reports.
    pub fn try_forward_heads<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        x: Tensor<(B, S, N, Const<H>), F, D, T>,
    ) -> Result<Tensor<(B, S, N, Const<H>), F, D, T>> {
        const { assert_groups(H, GZ) };
        let shape = *x.shape();
        check_size("x", &shape)?;
        let tokens = (shape.0.size() * shape.1.size(), shape.2, Const::<H>);
        let x = in_order(x, &tokens)?; //                                [b s, nh, h]
        let y = group_rms_norm(x, &self.weight, GZ, self.config.eps)?; // [b s, nh, h]
        y.try_reshape_like(&shape).map_err(Error::device) //              [b, s, nh, h]
    }
}

/// `x` as tokens of another shape, in its original order.
fn in_order<Old: Shape, New: Shape, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<Old, F, D, T>,
    shape: &New,
) -> Result<Tensor<New, F, D, T>> {
    x.try_in_order().and_then(|x| x.try_reshape_like(shape)).map_err(Error::device)
}
