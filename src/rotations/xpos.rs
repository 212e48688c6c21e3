//! xPos: beside the rotation, queries shrink and keys grow with their position, so scores decay with the distance.

use super::formula::xpos_scale;
use crate::checks::require;
use crate::error::Result;
use crate::frequencies::scaled::{check_max_position, places_in_table, write_unusual};
use crate::module::{settings_only, shown};
use crate::number::Number;
use crate::positions::{Places, Positions};
use crate::rope::Layout;
use crate::rope::RotaryTables;
use crate::rope::rotary_frequencies;
use crate::rope::{GrowingTable, NoWeights, assert_head};
use crate::tensor::*;
use std::fmt;

/// Settings of an [`XPos`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct XPosConfig {
    /// `theta_i = base^(-2i/d)`. Above 1. Default 10,000.
    pub base: f64,
    /// Over how many positions a plane of scale `zeta` decays by `zeta`. Above 0. Default 512.
    pub scale_base: f64,
    /// `zeta_i = (2i/d + gamma) / (1 + gamma)`. Above 0. Default 0.4.
    pub gamma: f64,
    /// How many positions the tables have. A call that ends past them is refused. Default 2048.
    pub max_position: usize,
    /// The position at which both scales are 1. Scores do not depend on it, but the range of the scales does. Default 0.
    pub center: usize,
    /// Which two dimensions turn together. Default [`Layout::HalfSplit`].
    pub layout: Layout,
}

impl Default for XPosConfig {
    fn default() -> Self {
        Self {
            base: 10_000.0,
            scale_base: 512.0,
            gamma: 0.4,
            max_position: 2048,
            center: 0,
            layout: Layout::HalfSplit,
        }
    }
}

impl XPosConfig {
    /// What multiplies a query at `position`, and divides a key.
    fn scale(&self, head_dim: usize, plane: usize, position: usize) -> f64 {
        let from_center = position as f64 - self.center as f64;
        xpos_scale(plane, head_dim, self.gamma, from_center, self.scale_base)
    }

    fn check(&self, head_dim: usize) -> Result<()> {
        rotary_frequencies(head_dim, self.base, 1.0)?;
        let (gamma, scale_base) = (self.gamma, self.scale_base);
        require(gamma.is_finite() && gamma > 0.0, "gamma", "finite and above 0", gamma)?;
        let rule = "finite and above 0";
        require(scale_base.is_finite() && scale_base > 0.0, "scale_base", rule, scale_base)?;
        check_max_position(self.max_position)?;
        // Plane 0 decays fastest.
        for position in [0, self.max_position - 1] {
            let scale = self.scale(head_dim, 0, position);
            let normal = |scale: f64| (scale as f32).is_normal();
            let rule = "so near to center that both scales of plane 0, zeta^((m - center) / scale_base) and its \
                        inverse, are normal f32 numbers; 35000 positions on each side are with the default settings";
            let holds = normal(scale) && normal(1.0 / scale);
            require(holds, "every position below max_position", rule, position as f64)?;
        }
        Ok(())
    }
}

/// xPos: queries at `m` are turned and multiplied by `zeta_i^(m / 512)`, keys at `n` turned and divided by
/// `zeta_i^(n / 512)`, with `zeta_i = (2i/d + 0.4) / 1.4`.
///
/// `HD`: head size. It must be even and at least 4; if not, it does not compile.
///
/// Plane `i` of a score then has the factor `zeta_i^((m - n) / 512)`: it depends on the distance, and a key further
/// back counts less, in fast planes most. For keys after the query it grows, so xPos is for causal attention. Source:
/// Sun et al. 2022, "A Length-Extrapolatable Transformer".
///
/// # Range
/// The two scales cancel, but each is a separate number: at the default settings, plane 0 of a key has grown to
/// `8e37` at position 35,800, and that of a query has shrunk to `1e-38`. A longer table is refused. `center` in its
/// middle doubles the range. The authors' code centers each call separately, so keys that are kept must there be kept
/// unscaled. In `f16` a key passes 65,504 from position 4,500 on, or before if its elements are larger than 1: it is
/// then infinite, without an error.
///
/// ```
/// use quadrivium::pos_emb::{XPos, XPosConfig};
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let xpos = XPos::<4, _>::new(&dev, XPosConfig::default())?;
/// let x: Tensor<Rank4<1, 1, 1, 4>, f64, _> = dev.ones();
/// let score = |m, n| -> quadrivium::error::Result<f64> {
///     let (q, k) = (xpos.queries(x.clone(), m)?, xpos.keys(x.clone(), n)?);
///     Ok((q * k).sum::<Rank0, _>().array())
/// };
/// assert!((score(700, 700)? - 4.0).abs() < 1e-6); // at distance 0 the scales cancel
/// assert!((score(700, 690)? - score(20, 10)?).abs() < 1e-6);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct XPos<const HD: usize, D: Storage<f32>> {
    config: XPosConfig,
    queries: GrowingTable<Const<HD>, D>,
    keys: GrowingTable<Const<HD>, D>,
    no_weights: NoWeights,
}

type Heads<B, S, N, const HD: usize> = (B, S, N, Const<HD>);

impl<const HD: usize, D: Storage<f32>> XPos<HD, D> {
    /// The settings.
    pub fn config(&self) -> &XPosConfig {
        &self.config
    }

    fn unbuilt(config: XPosConfig) -> Self {
        const { assert_head(HD) };
        let (queries, keys) = (GrowingTable::default(), GrowingTable::default());
        Self { config, queries, keys, no_weights: NoWeights }
    }
}

impl<const HD: usize, D: Device<f32>> XPos<HD, D> {
    /// A module. Its tables are built on `dev`, or wherever its inputs are, as calls ask for their rows.
    ///
    /// # Errors
    /// A `base` that is not finite or not above 1; a `gamma` or `scale_base` that is not finite or not above 0; a
    /// `max_position` of 0, above [`MAX_TABLE_POSITIONS`](crate::rope::MAX_TABLE_POSITIONS), or so far from `center` that a
    /// scale is no normal `f32`; what the device reports.
    pub fn new(dev: &D, config: XPosConfig) -> Result<Self> {
        config.check(HD)?;
        let xpos = Self::unbuilt(config);
        let last = Places::Row(config.max_position - 1..config.max_position);
        xpos.build(dev, Side::Queries, &last)?; // the last rows can be built
        xpos.build(dev, Side::Keys, &last)?;
        Ok(xpos)
    }

    /// Turns and scales queries, `[b, s, nh, hd]`. With an offset, row `t` is at position `offset + t`; with `&position_ids`,
    /// `[b, s]`, each token has its own.
    ///
    /// # Errors
    /// A position past the tables; `position_ids` of another shape; an empty input; what the device reports.
    pub fn queries<B: Dim, S: Dim, N: Dim, F: Float, T: Tape<F, D>>(
        &self,
        q: Tensor<Heads<B, S, N, HD>, F, D, T>,
        positions: impl Into<Positions>,
    ) -> Result<Tensor<Heads<B, S, N, HD>, F, D, T>>
    where
        D: Backend<F>,
    {
        self.turn(q, positions.into(), Side::Queries)
    }

    /// Turns and scales keys, `[b, s, nh, hd]`, with positions as for [`queries`](Self::queries).
    ///
    /// # Errors
    /// As for [`queries`](Self::queries).
    pub fn keys<B: Dim, S: Dim, N: Dim, F: Float, T: Tape<F, D>>(
        &self,
        k: Tensor<Heads<B, S, N, HD>, F, D, T>,
        positions: impl Into<Positions>,
    ) -> Result<Tensor<Heads<B, S, N, HD>, F, D, T>>
    where
        D: Backend<F>,
    {
        self.turn(k, positions.into(), Side::Keys)
    }

    /// The queries' tables, `[max_position, hd]`: all rows, built on `dev` if they are not there yet.
    ///
    /// # Errors
    /// What the device reports.
    pub fn query_tables(&self, dev: &D) -> Result<RotaryTables<Const<HD>, D>> {
        self.all(dev, Side::Queries)
    }

    /// The keys' tables, `[max_position, hd]`: all rows, built on `dev` if they are not there yet.
    ///
    /// # Errors
    /// What the device reports.
    pub fn key_tables(&self, dev: &D) -> Result<RotaryTables<Const<HD>, D>> {
        self.all(dev, Side::Keys)
    }

    fn turn<B: Dim, S: Dim, N: Dim, F: Float, T: Tape<F, D>>(
        &self,
        x: Tensor<Heads<B, S, N, HD>, F, D, T>,
        positions: Positions,
        side: Side,
    ) -> Result<Tensor<Heads<B, S, N, HD>, F, D, T>>
    where
        D: Backend<F>,
    {
        let max_position = self.config.max_position;
        let places = places_in_table(x.shape(), positions, max_position)?;
        let dev = x.device().clone();
        self.of(side).rotate(x, &places, max_position, |places| self.build(&dev, side, places))
    }

    fn all(&self, dev: &D, side: Side) -> Result<RotaryTables<Const<HD>, D>> {
        let max_position = self.config.max_position;
        self.of(side).first(max_position, max_position, |places| self.build(dev, side, places))
    }

    fn of(&self, side: Side) -> &GrowingTable<Const<HD>, D> {
        match side {
            Side::Queries => &self.queries,
            Side::Keys => &self.keys,
        }
    }

    fn build(&self, dev: &D, side: Side, places: &Places) -> Result<RotaryTables<Const<HD>, D>> {
        let config = self.config;
        let frequencies = rotary_frequencies(HD, config.base, 1.0)?;
        let turns = (places.rows(), HD / 2);
        RotaryTables::from_turns(dev, Const, turns, config.layout, |row, i| {
            let m = places.of_token(row);
            let scale = config.scale(HD, i, m);
            let scale = if side == Side::Queries { scale } else { 1.0 / scale };
            (m as f64 * frequencies[i], scale)
        })
    }
}

/// Whose scales: those of keys are the inverse of those of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Queries,
    Keys,
}

settings_only! {
    [const HD: usize] XPos<HD>, XPosConfig::default(), XPos::unbuilt
}

impl<const HD: usize, D: Storage<f32>> fmt::Display for XPos<HD, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let XPosConfig { base, scale_base, gamma, max_position, center, layout } = self.config;
        let (base, scale_base) = (Number(base), Number(scale_base));
        write!(
            f,
            "XPos(head_dim={HD}, base={base}, scale_base={scale_base}, gamma={gamma}, \
             max_position={max_position}"
        )?;
        if center != 0 {
            write!(f, ", center={center}")?;
        }
        write_unusual(f, HD, HD, layout)
    }
}

shown! { [const HD: usize, D: Storage<f32>] XPos<HD, D>, head_dim: HD; config }
