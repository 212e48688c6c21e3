//! The dynamic rule of Hugging Face: the frequencies of each call are those of its length.

use super::formula::check_part;
use super::scaled::{check_max_position, check_rotary_dim, write_unusual};
use super::{DynamicNtk, RotaryFrequencies};
use crate::error::{Error, Result};
use crate::module::{settings_only, shown};
use crate::number::Number;
use crate::positions::{Places, Positions};
use crate::rope::Layout;
use crate::rope::RotaryTables;
use crate::rope::{GrowingTable, NoWeights, assert_head};
use crate::tensor::*;
use std::fmt;

/// Settings of a [`DynamicNtkRope`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DynamicNtkRopeConfig {
    /// `theta_i = base^(-2i/d)` in calls that end within `ntk.max_seq_len`. Above 1. Default 10,000.
    pub base: f64,
    /// The trained length, and how fast the base grows past it. Default 2048 and 1.
    pub ntk: DynamicNtk,
    /// Which two dimensions turn together. Default [`Layout::HalfSplit`].
    pub layout: Layout,
    /// How many elements of a head turn, its first; the others stay as they are. Default `None`: all.
    pub rotary_dim: Option<usize>,
}

impl Default for DynamicNtkRopeConfig {
    fn default() -> Self {
        let ntk = DynamicNtk::default();
        Self { base: 10_000.0, ntk, layout: Layout::HalfSplit, rotary_dim: None }
    }
}

/// Rotary position embedding whose frequencies are those of each call's length:
/// [`RotaryFrequencies::dynamic_ntk`].
///
/// `HD`: head size. It must be even and at least 4; if not, it does not compile.
///
/// The input is `[b, s, nh, HD]`, alone or as `(x, offset)`. Row `t` is at position `offset + t`, and the length is
/// `offset + s`. Up to the trained length it is plain RoPE. As `(x, &position_ids)` each token has a position, `[b, s]`, and
/// each text its own length, up to its last token: a short text beside a long one is turned as it is alone. (`transformers`
/// takes one length for the batch, that of the longest.)
///
/// The output depends on the call alone. `transformers` keeps state: past the trained length it has the
/// frequencies of the longest call so far, until a call that is shorter than the trained length. The two agree while
/// calls get longer.
///
/// Past the trained length each call has other frequencies. Keys that were turned in an earlier call therefore do not
/// fit there, nor do they in `transformers`; turn all keys again.
#[derive(Clone)]
pub struct DynamicNtkRope<const HD: usize, D: Storage<f32>> {
    config: DynamicNtkRopeConfig,
    table: GrowingTable<Const<HD>, D>,
    no_weights: NoWeights,
}

impl<const HD: usize, D: Storage<f32>> DynamicNtkRope<HD, D> {
    /// The settings.
    pub fn config(&self) -> &DynamicNtkRopeConfig {
        &self.config
    }

    pub(crate) fn unbuilt(config: DynamicNtkRopeConfig) -> Self {
        const { assert_head(HD) };
        Self { config, table: GrowingTable::default(), no_weights: NoWeights }
    }

    /// The frequencies of a text of this length.
    ///
    /// # Errors
    /// A length at which the base is no finite number.
    pub fn frequencies(&self, length: usize) -> Result<RotaryFrequencies> {
        let DynamicNtkRopeConfig { base, ntk, rotary_dim, .. } = self.config;
        RotaryFrequencies::dynamic_ntk(rotary_dim.unwrap_or(HD), base, ntk, length)
    }
}

impl<const HD: usize, D: Device<f32>> DynamicNtkRope<HD, D> {
    /// A module. Its table is built on `dev`, or wherever its inputs are, as calls ask for its rows.
    ///
    /// # Errors
    /// Settings that [`RotaryFrequencies::dynamic_ntk`] refuses; a trained length above
    /// [`MAX_TABLE_POSITIONS`](crate::rope::MAX_TABLE_POSITIONS); a `rotary_dim` above `HD`; what the device reports.
    pub fn new(dev: &D, config: DynamicNtkRopeConfig) -> Result<Self> {
        let rope = Self::unbuilt(config);
        let rotary_dim = check_part(config.rotary_dim.unwrap_or(HD))?;
        check_rotary_dim(HD, config.rotary_dim, rotary_dim / 2)?;
        let ms = config.ntk.max_seq_len;
        rope.frequencies(ms)?;
        check_max_position(ms)?;
        rope.build(dev, &Places::Row(ms - 1..ms))?; // the last row can be built
        Ok(rope)
    }

    /// The table of the trained length, `[ms, hd]`: all of it, built on `dev` if it is not there yet.
    ///
    /// # Errors
    /// What the device reports.
    pub fn tables(&self, dev: &D) -> Result<RotaryTables<Const<HD>, D>> {
        let ms = self.config.ntk.max_seq_len;
        self.table.first(ms, ms, |places| self.build(dev, places))
    }

    /// Rows of texts of any length.
    fn build(&self, dev: &D, places: &Places) -> Result<RotaryTables<Const<HD>, D>> {
        let of_length = |length| {
            let frequencies = self.frequencies(length)?;
            Ok((frequencies.frequencies().to_vec(), frequencies.scale()))
        };
        RotaryTables::by_length(dev, Const, of_length, places, self.config.layout)
    }
}

type Heads<B, S, N, const HD: usize> = (B, S, N, Const<HD>);

impl<const HD: usize, B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>, P>
    Module<(Tensor<Heads<B, S, N, HD>, F, D, T>, P)> for DynamicNtkRope<HD, D>
where
    P: Into<Positions>,
{
    type Output = Tensor<Heads<B, S, N, HD>, F, D, T>;
    type Error = Error;

    fn try_forward(
        &self,
        (x, positions): (Tensor<Heads<B, S, N, HD>, F, D, T>, P),
    ) -> Result<Self::Output> {
        let places = positions.into().of(x.shape())?;
        let (dev, ms) = (x.device().clone(), self.config.ntk.max_seq_len);
        if places.end() > ms {
            return self.build(&dev, &places)?.rotate_each(x);
        }
        self.table.rotate(x, &places, ms, |places| self.build(&dev, places))
    }
}

impl<const HD: usize, B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tensor<Heads<B, S, N, HD>, F, D, T>> for DynamicNtkRope<HD, D>
{
    type Output = Tensor<Heads<B, S, N, HD>, F, D, T>;
    type Error = Error;

    fn try_forward(&self, x: Tensor<Heads<B, S, N, HD>, F, D, T>) -> Result<Self::Output> {
        self.try_forward((x, 0))
    }
}

impl<const HD: usize, D: Storage<f32>> NonMutableModule for DynamicNtkRope<HD, D> {}

settings_only! {
    [const HD: usize] DynamicNtkRope<HD>, DynamicNtkRopeConfig::default(), DynamicNtkRope::unbuilt
}

impl<const HD: usize, D: Storage<f32>> fmt::Display for DynamicNtkRope<HD, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DynamicNtkRopeConfig { base, ntk, layout, rotary_dim } = self.config;
        let (base, factor, ms) = (Number(base), Number(ntk.factor), ntk.max_seq_len);
        write!(f, "DynamicNtkRope(head_dim={HD}, base={base}, factor={factor}, max_seq_len={ms}")?;
        write_unusual(f, HD, rotary_dim.unwrap_or(HD), layout)
    }
}

shown! { [const HD: usize, D: Storage<f32>] DynamicNtkRope<HD, D>, head_dim: HD; config }
