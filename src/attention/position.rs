//! Where a model puts what it knows about the order of its tokens.

use crate::error::{Error, Result};
use crate::rope::{NtkAwareRope, PastCache};
use crate::tensor::*;

/// An encoding of positions, at its place in a model. What an encoding does not do is left as it is, so each
/// implements one method.
///
/// - `HD`: head size.
pub trait PositionEncoding<const HD: usize, F: Float, D: Backend<F>> {
    /// Changes queries or keys, `[b, s, n, hd]`, before they meet. Row `t` is at position `offset + t`.
    ///
    /// # Errors
    /// Positions that the encoding does not have; what the device reports.
    fn on_heads<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        heads: Tensor<(B, S, N, Const<HD>), F, D, T>,
        offset: usize,
    ) -> Result<Tensor<(B, S, N, Const<HD>), F, D, T>> {
        let _ = offset;
        Ok(heads)
    }

    /// Whether keys that were encoded in earlier calls, and kept, still fit when the text has `positions` tokens.
    ///
    /// # Errors
    /// An encoding that changes what it did before when the text grows to that length.
    fn check_kept(&self, positions: usize) -> Result<()> {
        let _ = positions;
        Ok(())
    }
}

impl<const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D> for NtkAwareRope<HD, D> {
    fn on_heads<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        heads: Tensor<(B, S, N, Const<HD>), F, D, T>,
        offset: usize,
    ) -> Result<Tensor<(B, S, N, Const<HD>), F, D, T>> {
        self.try_forward((heads, offset))
    }

    /// With [`PastCache::Rescale`], calls past its table have other frequencies. (With `Refuse` there are no such calls.)
    fn check_kept(&self, positions: usize) -> Result<()> {
        let cached_len = self.cached_len();
        let rescaled = self.config().past_cache == PastCache::Rescale && positions > cached_len;
        if rescaled { Err(Error::KeptKeys { positions, cached_len }) } else { Ok(()) }
    }
}

/// No encoding: attention then sees the earlier tokens as a bag, in no order but that of the causal mask.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct NoPosition;

impl<const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D> for NoPosition {}

impl ZeroSizedModule for NoPosition {}
