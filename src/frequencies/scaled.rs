//! The module of scaled frequencies: one table, for a number of positions that is known before.

use super::RotaryFrequencies;
use crate::checks::{require, same_shape};
use crate::error::{Error, Result};
use crate::module::{settings_only, shown};
use crate::number::Number;
use crate::positions::{Places, Positions};
use crate::rope::Layout;
use crate::rope::{GrowingTable, NoWeights, assert_head};
use crate::rope::{MAX_TABLE_POSITIONS, RotaryTables};
use crate::tensor::*;
use std::fmt;
use std::ops::Range;

impl<H: Dim, D: Device<f32>> RotaryTables<H, D> {
    /// Tables of scaled frequencies. If they are fewer than `hd / 2`, the first elements of a head turn, two for each
    /// frequency; the others stay as they are, bit for bit. Sources: Black et al. 2022, "GPT-NeoX-20B"; Phi.
    ///
    /// # Errors
    /// As for [`new`](Self::new); more frequencies than `hd / 2`.
    pub fn of_frequencies(
        dev: &D,
        head_dim: H,
        frequencies: &RotaryFrequencies,
        positions: Range<usize>,
        layout: Layout,
    ) -> Result<Self> {
        let turns = (frequencies.frequencies(), frequencies.scale());
        Self::at_places(dev, head_dim, turns, &Places::Row(positions), layout)
    }
}

/// Settings of a [`ScaledRope`].
#[derive(Debug, Clone, PartialEq)]
pub struct ScaledRopeConfig {
    /// What each plane turns by, and the scale.
    pub frequencies: RotaryFrequencies,
    /// How many positions the table has. A call that ends past them is refused.
    pub max_position: usize,
    /// Which two dimensions turn together.
    pub layout: Layout,
    /// How many elements of a head turn, its first; the others stay as they are. `None`: all. The frequencies must be
    /// half as many.
    pub rotary_dim: Option<usize>,
}

impl ScaledRopeConfig {
    /// All elements of a head turn, in the half-split layout.
    pub fn new(frequencies: RotaryFrequencies, max_position: usize) -> Self {
        Self { frequencies, max_position, layout: Layout::HalfSplit, rotary_dim: None }
    }
}

/// Rotary position embedding with the frequencies of any rule: [`RotaryFrequencies`].
///
/// `HD`: head size. It must be even and at least 4; if not, it does not compile.
///
/// The input is `[b, s, nh, HD]`, alone, as `(x, offset)`, where row `t` is at position `offset + t`, or as
/// `(x, &position_ids)` with a position for each token, `[b, s]`. The output has the input's shape, type and device. There are
/// no weights, and the frequencies never change: keys that were kept always fit. The table has the rows that calls have asked
/// for, and grows with them; clones share it.
///
/// ```
/// use quadrivium::pos_emb::{RotaryFrequencies, ScaledRope, ScaledRopeConfig};
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let frequencies = RotaryFrequencies::interpolated(4, 10_000.0, 2.0)?;
/// let half = ScaledRope::<4, _>::new(&dev, ScaledRopeConfig::new(frequencies, 64))?;
/// let plain = RotaryFrequencies::plain(4, 10_000.0)?;
/// let plain = ScaledRope::<4, _>::new(&dev, ScaledRopeConfig::new(plain, 64))?;
/// let x: Tensor<Rank4<1, 1, 1, 4>, f32, _> = dev.tensor([[[[1.0, 2.0, 3.0, 4.0]]]]);
/// assert_eq!(half.try_forward((x.clone(), 10))?.array(), plain.try_forward((x, 5))?.array());
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct ScaledRope<const HD: usize, D: Storage<f32>> {
    config: ScaledRopeConfig,
    table: GrowingTable<Const<HD>, D>,
    no_weights: NoWeights,
}

impl<const HD: usize, D: Storage<f32>> ScaledRope<HD, D> {
    /// The settings.
    pub fn config(&self) -> &ScaledRopeConfig {
        &self.config
    }

    pub(crate) fn unbuilt(config: ScaledRopeConfig) -> Self {
        const { assert_head(HD) };
        Self { config, table: GrowingTable::default(), no_weights: NoWeights }
    }
}

impl<const HD: usize, D: Device<f32>> ScaledRope<HD, D> {
    /// A module. Its table is built on `dev`, or wherever its inputs are, as calls ask for its rows.
    ///
    /// # Errors
    /// `max_position` of 0 or above [`MAX_TABLE_POSITIONS`]; a `rotary_dim` that is odd, 0 or above `HD`, or not twice
    /// the number of frequencies; what the device reports.
    pub fn new(dev: &D, config: ScaledRopeConfig) -> Result<Self> {
        check_rotary_dim(HD, config.rotary_dim, config.frequencies.frequencies().len())?;
        check_max_position(config.max_position)?;
        let rope = Self::unbuilt(config);
        let last = rope.config.max_position - 1;
        rope.build(dev, &Places::Row(last..last + 1))?; // the last row can be built
        Ok(rope)
    }

    /// The table, `[max_position, hd]`: all of it, built on `dev` if it is not there yet.
    ///
    /// # Errors
    /// What the device reports.
    pub fn tables(&self, dev: &D) -> Result<RotaryTables<Const<HD>, D>> {
        let max_position = self.config.max_position;
        self.table.first(max_position, max_position, |places| self.build(dev, places))
    }

    fn build(&self, dev: &D, places: &Places) -> Result<RotaryTables<Const<HD>, D>> {
        let ScaledRopeConfig { frequencies, layout, .. } = &self.config;
        let turns = (frequencies.frequencies(), frequencies.scale());
        RotaryTables::at_places(dev, Const, turns, places, *layout)
    }
}

/// `rotary_dim`, or all of a head, is even, in the head, and twice the number of planes.
pub(crate) fn check_rotary_dim(hd: usize, rotary_dim: Option<usize>, planes: usize) -> Result<()> {
    let rotary_dim = rotary_dim.unwrap_or(hd);
    if rotary_dim == 0 || rotary_dim % 2 != 0 || rotary_dim > hd {
        return Err(Error::RotaryDim { rotary_dim, head_dim: hd });
    }
    same_shape("frequencies", &[rotary_dim / 2], &[planes])
}

pub(crate) fn check_max_position(max_position: usize) -> Result<()> {
    require(max_position >= 1, "max_position", "at least 1", 0.0)?;
    let limit = MAX_TABLE_POSITIONS;
    if max_position > limit {
        return Err(Error::TooManyPositions { rows: max_position, limit });
    }
    Ok(())
}

/// The places of an input in a table of so many positions.
pub(crate) fn places_in_table<S: Shape>(
    x: &S,
    positions: impl Into<Positions>,
    cached_len: usize,
) -> Result<Places> {
    let places = positions.into().of(x)?;
    let end = places.end();
    if end <= cached_len { Ok(places) } else { Err(Error::PastCache { end, cached_len }) }
}

type Heads<B, S, N, const HD: usize> = (B, S, N, Const<HD>);

impl<const HD: usize, B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>, P>
    Module<(Tensor<Heads<B, S, N, HD>, F, D, T>, P)> for ScaledRope<HD, D>
where
    P: Into<Positions>,
{
    type Output = Tensor<Heads<B, S, N, HD>, F, D, T>;
    type Error = Error;

    fn try_forward(
        &self,
        (x, positions): (Tensor<Heads<B, S, N, HD>, F, D, T>, P),
    ) -> Result<Self::Output> {
        let max_position = self.config.max_position;
        let places = places_in_table(x.shape(), positions, max_position)?;
        let dev = x.device().clone();
        self.table.rotate(x, &places, max_position, |places| self.build(&dev, places))
    }
}

impl<const HD: usize, B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tensor<Heads<B, S, N, HD>, F, D, T>> for ScaledRope<HD, D>
{
    type Output = Tensor<Heads<B, S, N, HD>, F, D, T>;
    type Error = Error;

    fn try_forward(&self, x: Tensor<Heads<B, S, N, HD>, F, D, T>) -> Result<Self::Output> {
        self.try_forward((x, 0))
    }
}

impl<const HD: usize, D: Storage<f32>> NonMutableModule for ScaledRope<HD, D> {}

settings_only! {
    [const HD: usize] ScaledRope<HD>, {
        const { assert_head(HD) };
        ScaledRopeConfig::new(RotaryFrequencies::of_checked(HD), 2048) // plain RoPE
    }, ScaledRope::unbuilt
}

impl<const HD: usize, D: Storage<f32>> fmt::Display for ScaledRope<HD, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScaledRopeConfig { frequencies, max_position, layout, .. } = &self.config;
        let of = frequencies.frequencies();
        let (first, last) = (Number(of[0]), Number(of[of.len() - 1]));
        let scale = Number(frequencies.scale());
        write!(
            f,
            "ScaledRope(head_dim={HD}, frequencies={first}..{last}, scale={scale}, max_position={max_position}"
        )?;
        write_unusual(f, HD, frequencies.rotary_dim(), *layout)
    }
}

/// What most modules do not have, and then it is not named.
pub(crate) fn write_unusual(
    f: &mut fmt::Formatter<'_>,
    head_dim: usize,
    rotary_dim: usize,
    layout: Layout,
) -> fmt::Result {
    if rotary_dim != head_dim {
        write!(f, ", rotary_dim={rotary_dim}")?;
    }
    if layout == Layout::Interleaved {
        write!(f, ", layout=interleaved")?;
    }
    write!(f, ")")
}

shown! { [const HD: usize, D: Storage<f32>] ScaledRope<HD, D>, head_dim: HD; config }
