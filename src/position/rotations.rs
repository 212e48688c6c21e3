//! Rotations at their place in a model: at queries and keys.

use super::{Heads, PositionEncoding, Positions};
use crate::error::{Error, Result};
use crate::frequencies::{DynamicNtkRope, LearnableRope, ScaledRope};
use crate::model::{InLlama, LlamaRopeConfig};
use crate::rope::{NtkAwareRope, PastCache};
use crate::rotations::XPos;
use crate::tensor::*;

impl<const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D> for NtkAwareRope<HD, D> {
    fn on_heads<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        heads: Heads<B, S, N, HD, F, D, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, F, D, T>> {
        self.try_forward((heads, positions))
    }

    /// With [`PastCache::Rescale`], calls past its table have other frequencies. (With `Refuse` there are no such calls.)
    fn check_kept(&self, positions: usize) -> Result<()> {
        let cached_len = self.cached_len();
        let rescaled = self.config().past_cache == PastCache::Rescale && positions > cached_len;
        if rescaled { Err(Error::KeptKeys { positions, cached_len }) } else { Ok(()) }
    }

    fn in_llama(&self) -> InLlama {
        InLlama::Rope(LlamaRopeConfig::NtkAware(*self.config()))
    }
}

impl<const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D> for ScaledRope<HD, D> {
    fn on_heads<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        heads: Heads<B, S, N, HD, F, D, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, F, D, T>> {
        self.try_forward((heads, positions))
    }

    fn in_llama(&self) -> InLlama {
        InLlama::Rope(LlamaRopeConfig::Scaled(self.config().clone()))
    }
}

impl<const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D>
    for DynamicNtkRope<HD, D>
{
    fn on_heads<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        heads: Heads<B, S, N, HD, F, D, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, F, D, T>> {
        self.try_forward((heads, positions))
    }

    /// Past the trained length, each call has other frequencies.
    fn check_kept(&self, positions: usize) -> Result<()> {
        let cached_len = self.config().ntk.max_seq_len;
        if positions > cached_len { Err(Error::KeptKeys { positions, cached_len }) } else { Ok(()) }
    }

    fn in_llama(&self) -> InLlama {
        InLlama::Rope(LlamaRopeConfig::Dynamic(*self.config()))
    }
}

impl<const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D> for XPos<HD, D> {
    fn on_queries<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Heads<B, S, N, HD, F, D, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, F, D, T>> {
        self.queries(queries, positions)
    }

    fn on_keys<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        keys: Heads<B, S, N, HD, F, D, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, F, D, T>> {
        self.keys(keys, positions)
    }
}

impl<const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D>
    for LearnableRope<HD, F, D>
{
    fn on_heads<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        heads: Heads<B, S, N, HD, F, D, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, F, D, T>> {
        self.try_forward((heads, positions))
    }
}
