//! NTK-aware rotary position embedding: frequencies, tables of angles, the rotation, and the
//! module that keeps a table and grows it.
//!
//! It does not know about queries, keys or attention; a caller rotates both with the same module.

pub mod builder;
mod complex;
pub(crate) mod formula;
pub(crate) mod frequencies;
pub(crate) mod fused;
mod growing;
pub(crate) mod layouts;
mod tables;

pub use complex::apply_rotary_pos_emb_complex;
pub use formula::{apply_rotary_pos_emb, apply_rotary_pos_emb_interleaved};
pub use frequencies::{ntk_base, ratio_for_length, rotary_frequencies};
pub(crate) use growing::GrowingTable;
pub use layouts::{Layout, half_split_to_interleaved, interleaved_to_half_split};
pub use tables::{MAX_TABLE_POSITIONS, RotaryTables};

use crate::checks::require;
use crate::error::{Error, Result};
use crate::module::{settings_only, shown};
use crate::number::Number;
use crate::positions::{Places, Positions};
use crate::tensor::*;
use const_panic::concat_panic;
use std::fmt;
use std::ops::Range;

/// Settings of a [`NtkAwareRope`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NtkAwareRopeConfig {
    /// `theta_i = base^(-2i/d)` before NTK. Above 1. Default 10,000.
    pub base: f64,
    /// `ms`, the length that the model was trained at. Default 2048.
    pub max_seq_len: usize,
    /// `k`, how many times that length the cache covers. Default 1, plain RoPE.
    pub ratio: usize,
    /// Whether a call that is longer than the cache replaces `ratio` and the cache for good.
    /// Default false.
    pub dynamic: bool,
    /// Which two dimensions turn together. Default [`Layout::HalfSplit`].
    pub layout: Layout,
    /// What a call past the cache does. Default [`PastCache::Rescale`].
    pub past_cache: PastCache,
}

/// What a [`NtkAwareRope`] does with a call that ends past its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastCache {
    /// It takes a larger ratio: for this call, or for good if the module is `dynamic`. The
    /// frequencies change, so keys that were turned before, and kept, no longer fit.
    Rescale,
    /// It refuses the call with [`Error::PastCache`]. For decoding with kept keys.
    Refuse,
}

impl Default for NtkAwareRopeConfig {
    fn default() -> Self {
        Self {
            base: 10_000.0,
            max_seq_len: 2048,
            ratio: 1,
            dynamic: false,
            layout: Layout::HalfSplit,
            past_cache: PastCache::Rescale,
        }
    }
}

impl NtkAwareRopeConfig {
    /// `es = ms * k`, the positions in the cache.
    fn cached_len(&self) -> Result<usize> {
        let limit = MAX_TABLE_POSITIONS;
        match self.max_seq_len.checked_mul(self.ratio) {
            Some(rows) if rows <= limit => Ok(rows),
            product => Err(Error::TooManyPositions { rows: product.unwrap_or(usize::MAX), limit }),
        }
    }

    fn check(&self, head_dim: usize) -> Result<()> {
        require(self.max_seq_len >= 1, "max_seq_len", "at least 1", self.max_seq_len as f64)?;
        require(self.ratio >= 1, "ratio", "at least 1", self.ratio as f64)?;
        ntk_base(self.base, head_dim, self.ratio as f64)?;
        let contradiction = self.dynamic && self.past_cache == PastCache::Refuse;
        let rule = "false (0) where past_cache is Refuse: a module can't both grow and refuse to";
        require(!contradiction, "dynamic", rule, 1.0)?;
        self.cached_len().map(drop)
    }
}

/// NTK-aware rotary position embedding, in the half-split layout or in that of adjacent pairs.
///
/// `HD`: head size. It must be even and at least 4; if not, it does not compile.
///
/// The input is `[b, s, nh, HD]`, alone, as `(x, offset)`, where row `t` is at position
/// `offset + t`, or as `(x, &position_ids)` with a position for each token, `[b, s]`. The output has the
/// input's shape, type and device.
///
/// The layout is a setting and not a type: it comes with a model's weights, in a file that is read
/// at run time, and no shape depends on it.
///
/// A text that ends past the cache is turned with `k'`, the smallest even number with
/// `max_seq_len * k' >= offset + s` ([`ratio_for_length`]). With `position_ids`, each text has its own length,
/// and a short one beside it stays at `k`. With `dynamic = true`,
/// [`ModuleMut::try_forward_mut`] replaces `k` and the cache by it. [`Module::try_forward`] has
/// only `&self` and replaces nothing. The output is the same either way, except in one case: a cache of
/// more than [`MAX_TABLE_POSITIONS`] is refused, where the rows of one call are not. With
/// [`PastCache::Refuse`] both refuse such a call.
///
/// There are no weights: nothing is trained and nothing is saved. The cache has the rows that calls
/// have asked for, and grows with them, so that a million positions cost nothing before a text has them.
/// Clones share it.
///
/// ```
/// use quadrivium::tensor::*;
/// use quadrivium::{NtkAwareRope, NtkAwareRopeConfig};
///
/// let dev = Cpu::default();
/// let config = NtkAwareRopeConfig { max_seq_len: 2, dynamic: true, ..Default::default() };
/// let mut rope = NtkAwareRope::<4, _>::new(&dev, config)?;
/// let x: Tensor<Rank4<1, 1, 1, 4>, f32, _> = dev.tensor([[[[1.0, 2.0, 3.0, 4.0]]]]);
///
/// let y = rope.try_forward_mut((x.clone(), 0))?;
/// assert_eq!(y.array(), x.array()); // position 0 is the identity
///
/// rope.try_forward_mut((x, 4))?; // ends at position 5 > 2: k' = 4
/// assert_eq!((rope.ratio(), rope.cached_len()), (4, 8));
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// An odd head size does not compile:
/// ```compile_fail
/// use quadrivium::{tensor::Cpu, NtkAwareRope, NtkAwareRopeConfig};
/// let rope = NtkAwareRope::<5, _>::new(&Cpu::default(), NtkAwareRopeConfig::default());
/// ```
#[derive(Clone)]
pub struct NtkAwareRope<const HD: usize, D: Storage<f32>> {
    config: NtkAwareRopeConfig,
    cache: GrowingTable<Const<HD>, D>,
    no_weights: NoWeights,
}

/// dfdx visits a module's fields; this one has no tensors in it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct NoWeights;

impl ZeroSizedModule for NoWeights {}

pub(crate) const fn assert_head(head_dim: usize) {
    if head_dim % 2 != 0 || head_dim < 4 {
        concat_panic!(
            "head size ",
            head_dim,
            " can't be rotated: it must be even, because dimensions ",
            "turn in pairs, and at least 4, because the NTK exponent is d / (d - 2)"
        );
    }
}

impl<const HD: usize, D: Storage<f32>> NtkAwareRope<HD, D> {
    /// The settings. `ratio` changes when a dynamic module grows.
    pub fn config(&self) -> &NtkAwareRopeConfig {
        &self.config
    }

    /// `k`, the NTK ratio of the cache.
    pub fn ratio(&self) -> usize {
        self.config.ratio
    }

    /// `es = ms * k`, the number of positions in the cache.
    pub fn cached_len(&self) -> usize {
        self.config.max_seq_len * self.config.ratio
    }

    pub(crate) fn unbuilt(config: NtkAwareRopeConfig) -> Self {
        const { assert_head(HD) };
        Self { config, cache: GrowingTable::default(), no_weights: NoWeights }
    }
}

impl<const HD: usize, D: Device<f32>> NtkAwareRope<HD, D> {
    /// A module. Its cache is built on `dev`, or wherever its inputs are, as calls ask for its rows.
    ///
    /// # Errors
    /// `base <= 1`, `max_seq_len = 0`, `ratio = 0`, a cache longer than
    /// [`MAX_TABLE_POSITIONS`], `dynamic` together with [`PastCache::Refuse`], what the device
    /// reports.
    pub fn new(dev: &D, config: NtkAwareRopeConfig) -> Result<Self> {
        config.check(HD)?;
        let rope = Self::unbuilt(config);
        rope.build(dev, &Places::Row(rope.cached_len() - 1..rope.cached_len()))?; // the last row can be built
        Ok(rope)
    }

    /// The cached tables, `[es, hd]`: all of them, built on `dev` if they are not there yet.
    ///
    /// # Errors
    /// What the device reports.
    pub fn tables(&self, dev: &D) -> Result<RotaryTables<Const<HD>, D>> {
        let cached_len = self.cached_len();
        self.cache.first(cached_len, cached_len, |places| self.build(dev, places))
    }

    // ANCHOR: long_call
    /// Rows of texts that end within the cache, or past it.
    fn build(&self, dev: &D, places: &Places) -> Result<RotaryTables<Const<HD>, D>> {
        let NtkAwareRopeConfig { base, max_seq_len, ratio, layout, .. } = self.config;
        let of_length = |length| {
            let within = length <= self.cached_len();
            let ratio = if within { ratio } else { ratio_for_length(length, max_seq_len)? };
            Ok((rotary_frequencies(HD, base, ratio as f64)?, 1.0))
        };
        RotaryTables::by_length(dev, Const, of_length, places, layout)
    }

    /// The rows that a call at `positions` uses, each table `[positions, hd]`: from the cache or,
    /// past its end, for this call only.
    ///
    /// # Errors
    /// An empty range; with [`PastCache::Refuse`] a range that ends past the cache, else one that
    /// is longer than [`MAX_TABLE_POSITIONS`]; what the device reports.
    pub fn rows(&self, dev: &D, positions: Range<usize>) -> Result<RotaryTables<Const<HD>, D>> {
        if positions.is_empty() {
            return Err(Error::Empty { name: "positions", shape: vec![0] });
        }
        let places = Places::Row(positions);
        self.check_end(&places)?;
        self.build(dev, &places)
    }

    /// Refuses a call past the cache if the settings say so.
    fn check_end(&self, places: &Places) -> Result<()> {
        let (end, cached_len) = (places.end(), self.cached_len());
        if end > cached_len && self.config.past_cache == PastCache::Refuse {
            return Err(Error::PastCache { end, cached_len });
        }
        Ok(())
    }

    /// The module after a call that ends at `end`: `None` if it stays as it is.
    fn grown(&self, dev: &D, end: usize) -> Result<Option<Self>> {
        if !self.config.dynamic || end <= self.cached_len() {
            return Ok(None);
        }
        let ratio = ratio_for_length(end, self.config.max_seq_len)?;
        Self::new(dev, NtkAwareRopeConfig { ratio, ..self.config }).map(Some)
    }
    // ANCHOR_END: long_call
}

type Heads<B, S, N, const HD: usize> = (B, S, N, Const<HD>);

impl<const HD: usize, B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>, P>
    Module<(Tensor<Heads<B, S, N, HD>, F, D, T>, P)> for NtkAwareRope<HD, D>
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
        self.check_end(&places)?;
        let (dev, cached_len) = (x.device().clone(), self.cached_len());
        if places.end() > cached_len {
            return self.build(&dev, &places)?.rotate_each(x);
        }
        self.cache.rotate(x, &places, cached_len, |places| self.build(&dev, places))
    }
}

impl<const HD: usize, B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>, P>
    ModuleMut<(Tensor<Heads<B, S, N, HD>, F, D, T>, P)> for NtkAwareRope<HD, D>
where
    P: Into<Positions>,
{
    type Output = Tensor<Heads<B, S, N, HD>, F, D, T>;
    type Error = Error;

    fn try_forward_mut(
        &mut self,
        (x, positions): (Tensor<Heads<B, S, N, HD>, F, D, T>, P),
    ) -> Result<Self::Output> {
        // ANCHOR: forward_mut
        let positions = positions.into();
        let grown = self.grown(x.device(), positions.of(x.shape())?.end())?;
        let y = self.try_forward((x, positions))?; // the same rows as those of the grown module
        if let Some(grown) = grown {
            *self = grown; // last, so that a call that fails changes nothing
        }
        Ok(y)
        // ANCHOR_END: forward_mut
    }
}

impl<const HD: usize, B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tensor<Heads<B, S, N, HD>, F, D, T>> for NtkAwareRope<HD, D>
{
    type Output = Tensor<Heads<B, S, N, HD>, F, D, T>;
    type Error = Error;

    fn try_forward(&self, x: Tensor<Heads<B, S, N, HD>, F, D, T>) -> Result<Self::Output> {
        self.try_forward((x, 0))
    }
}

impl<const HD: usize, B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    ModuleMut<Tensor<Heads<B, S, N, HD>, F, D, T>> for NtkAwareRope<HD, D>
{
    type Output = Tensor<Heads<B, S, N, HD>, F, D, T>;
    type Error = Error;

    fn try_forward_mut(&mut self, x: Tensor<Heads<B, S, N, HD>, F, D, T>) -> Result<Self::Output> {
        self.try_forward_mut((x, 0))
    }
}

settings_only! {
    [const HD: usize] NtkAwareRope<HD>, NtkAwareRopeConfig::default(), NtkAwareRope::unbuilt
}

impl<const HD: usize, D: Storage<f32>> fmt::Display for NtkAwareRope<HD, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NtkAwareRopeConfig { base, max_seq_len, ratio, dynamic, layout, past_cache } =
            self.config;
        let base = Number(base);
        let cached = self.cached_len();
        write!(
            f,
            "NtkAwareRope(head_dim={HD}, base={base}, max_seq_len={max_seq_len}, ratio={ratio}, \
             dynamic={dynamic}, cached_len={cached}"
        )?;
        // Most modules have the defaults, and then they are not named.
        if layout == Layout::Interleaved {
            write!(f, ", layout=interleaved")?;
        }
        if past_cache == PastCache::Refuse {
            write!(f, ", past_cache=refuse")?;
        }
        write!(f, ")")
    }
}

shown! { [const HD: usize, D: Storage<f32>] NtkAwareRope<HD, D>, head_dim: HD; config }
