//! The dynamic rule of Hugging Face: the frequencies of each call are those of its length.

use super::formula::check_part;
use super::scaled::{check_max_position, check_rotary_dim, write_unusual};
use super::{DynamicNtk, RotaryFrequencies};
use crate::error::{Error, Number, Result};
use crate::rope::Layout;
use crate::rope::RotaryTables;
use crate::rope::{NoWeights, assert_head, end_position};
use crate::tensor::*;
use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;

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
/// `offset + s`. Up to the trained length it is plain RoPE.
///
/// The output depends on the call alone. `transformers` keeps state: past the trained length it has the
/// frequencies of the longest call so far, until a call that is shorter than the trained length. The two agree while
/// calls get longer.
///
/// Past the trained length each call has other frequencies. So keys that were turned in an earlier call do not fit
/// there, in `transformers` either; turn all keys anew.
#[derive(Clone)]
pub struct DynamicNtkRope<const HD: usize, D: Storage<f32>> {
    config: DynamicNtkRopeConfig,
    table: OnceLock<RotaryTables<Const<HD>, D>>,
    no_weights: NoWeights,
}

impl<const HD: usize, D: Storage<f32>> DynamicNtkRope<HD, D> {
    /// The settings.
    pub fn config(&self) -> &DynamicNtkRopeConfig {
        &self.config
    }

    pub(crate) fn unbuilt(config: DynamicNtkRopeConfig) -> Self {
        const { assert_head(HD) };
        Self { config, table: OnceLock::new(), no_weights: NoWeights }
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
    /// A module with the table of the trained length built on `dev`.
    ///
    /// # Errors
    /// Settings that [`RotaryFrequencies::dynamic_ntk`] refuses; a trained length above
    /// [`MAX_TABLE_POSITIONS`](crate::rope::MAX_TABLE_POSITIONS); a `rotary_dim` above `HD`; what the device reports.
    pub fn new(dev: &D, config: DynamicNtkRopeConfig) -> Result<Self> {
        let rope = Self::unbuilt(config);
        let rotary_dim = check_part(config.rotary_dim.unwrap_or(HD))?;
        check_rotary_dim(HD, config.rotary_dim, rotary_dim / 2)?;
        rope.frequencies(config.ntk.max_seq_len)?;
        check_max_position(config.ntk.max_seq_len)?;
        rope.tables(dev)?;
        Ok(rope)
    }

    /// The table of the trained length, `[ms, hd]`, built on `dev` if it is not there yet.
    ///
    /// # Errors
    /// What the device reports.
    pub fn tables(&self, dev: &D) -> Result<&RotaryTables<Const<HD>, D>> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        let (length, layout) = (self.config.ntk.max_seq_len, self.config.layout);
        let frequencies = self.frequencies(length)?;
        let table = RotaryTables::of_frequencies(dev, Const, &frequencies, 0..length, layout)?;
        Ok(self.table.get_or_init(|| table))
    }
}

type Heads<B, S, N, const HD: usize> = (B, S, N, Const<HD>);

impl<const HD: usize, B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<(Tensor<Heads<B, S, N, HD>, F, D, T>, usize)> for DynamicNtkRope<HD, D>
{
    type Output = Tensor<Heads<B, S, N, HD>, F, D, T>;
    type Error = Error;

    fn try_forward(
        &self,
        (x, offset): (Tensor<Heads<B, S, N, HD>, F, D, T>, usize),
    ) -> Result<Self::Output> {
        let end = end_position(x.shape(), offset)?;
        if end <= self.config.ntk.max_seq_len {
            return self.tables(x.device())?.rotate_from(x, offset);
        }
        let (frequencies, layout) = (self.frequencies(end)?, self.config.layout);
        let dev = x.device();
        let rows = RotaryTables::of_frequencies(dev, Const, &frequencies, offset..end, layout)?;
        rows.rotate(x)
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

impl<const HD: usize, F: Float, D: Backend<F>> TensorCollection<F, D> for DynamicNtkRope<HD, D> {
    type To<F2: Dtype, D2: Device<F2>> = DynamicNtkRope<HD, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, F, D>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        let config = Cell::new(DynamicNtkRopeConfig::default()); // as in GroupRmsNorm
        visitor.visit_fields(
            Self::module(
                "",
                |rope| {
                    config.set(rope.config);
                    &rope.no_weights
                },
                |rope| {
                    config.set(rope.config);
                    &mut rope.no_weights
                },
            ),
            |_| DynamicNtkRope::unbuilt(config.get()),
        )
    }
}

impl<const HD: usize, D: Storage<f32>> fmt::Display for DynamicNtkRope<HD, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DynamicNtkRopeConfig { base, ntk, layout, rotary_dim } = self.config;
        let (base, factor, ms) = (Number(base), Number(ntk.factor), ntk.max_seq_len);
        write!(f, "DynamicNtkRope(head_dim={HD}, base={base}, factor={factor}, max_seq_len={ms}")?;
        write_unusual(f, HD, rotary_dim.unwrap_or(HD), layout)
    }
}

/// Shows the settings, not the table.
impl<const HD: usize, D: Storage<f32>> fmt::Debug for DynamicNtkRope<HD, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicNtkRope")
            .field("head_dim", &HD)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
