//! The rotation of a Llama's queries and keys, by the rule that its checkpoint names.

use crate::error::{Error, Result};
use crate::frequencies::{DynamicNtkRope, DynamicNtkRopeConfig, ScaledRope, ScaledRopeConfig};
use crate::module::settings_only;
use crate::position::{PositionEncoding, Positions};
use crate::rope::{NoWeights, NtkAwareRope, NtkAwareRopeConfig, RotaryTables};
use crate::tensor::*;
use std::fmt;

/// Which frequencies a [`LlamaRope`] turns by.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LlamaRopeConfig {
    /// Plain RoPE, or the course's NTK-aware one.
    NtkAware(NtkAwareRopeConfig),
    /// The same ones in each call.
    Scaled(ScaledRopeConfig),
    /// Those of each call's length.
    Dynamic(DynamicNtkRopeConfig),
    /// LongRoPE: those of `short` in calls that end within its table, those of `long` in longer ones.
    Long {
        /// Up to the trained length.
        short: ScaledRopeConfig,
        /// Past it.
        long: ScaledRopeConfig,
    },
}

/// Rotary position embedding by the rule of a checkpoint. Which one it is comes from a file and changes no shape, so it
/// is a setting and not a type: [`LlamaTransformer`](super::LlamaTransformer) has this encoding unless it is given
/// another.
///
/// Where the frequencies depend on a call's length, keys that were kept from shorter calls do not fit in longer ones: a
/// cache can be used up to the trained length, and longer texts without one.
#[derive(Clone)]
pub struct LlamaRope<const HD: usize, D: Storage<f32>> {
    rule: Rule<HD, D>,
    no_weights: NoWeights,
}

#[derive(Clone)]
enum Rule<const HD: usize, D: Storage<f32>> {
    NtkAware(NtkAwareRope<HD, D>),
    Scaled(ScaledRope<HD, D>),
    Dynamic(DynamicNtkRope<HD, D>),
    Long { short: ScaledRope<HD, D>, long: ScaledRope<HD, D> },
}

impl<const HD: usize, D: Storage<f32>> LlamaRope<HD, D> {
    /// The settings.
    pub fn config(&self) -> LlamaRopeConfig {
        match &self.rule {
            Rule::NtkAware(rope) => LlamaRopeConfig::NtkAware(*rope.config()),
            Rule::Scaled(rope) => LlamaRopeConfig::Scaled(rope.config().clone()),
            Rule::Dynamic(rope) => LlamaRopeConfig::Dynamic(*rope.config()),
            Rule::Long { short, long } => {
                let (short, long) = (short.config().clone(), long.config().clone());
                LlamaRopeConfig::Long { short, long }
            }
        }
    }

    fn unbuilt(config: LlamaRopeConfig) -> Self {
        let rule = match config {
            LlamaRopeConfig::NtkAware(config) => Rule::NtkAware(NtkAwareRope::unbuilt(config)),
            LlamaRopeConfig::Scaled(config) => Rule::Scaled(ScaledRope::unbuilt(config)),
            LlamaRopeConfig::Dynamic(config) => Rule::Dynamic(DynamicNtkRope::unbuilt(config)),
            LlamaRopeConfig::Long { short, long } => {
                let (short, long) = (ScaledRope::unbuilt(short), ScaledRope::unbuilt(long));
                Rule::Long { short, long }
            }
        };
        Self { rule, no_weights: NoWeights }
    }
}

impl<const HD: usize, D: Device<f32>> LlamaRope<HD, D> {
    /// A module with its tables built on `dev`.
    ///
    /// # Errors
    /// As for the module of the rule: [`NtkAwareRope::new`], [`ScaledRope::new`], [`DynamicNtkRope::new`].
    pub fn new(dev: &D, config: LlamaRopeConfig) -> Result<Self> {
        let rule = match config {
            LlamaRopeConfig::NtkAware(config) => Rule::NtkAware(NtkAwareRope::new(dev, config)?),
            LlamaRopeConfig::Scaled(config) => Rule::Scaled(ScaledRope::new(dev, config)?),
            LlamaRopeConfig::Dynamic(config) => Rule::Dynamic(DynamicNtkRope::new(dev, config)?),
            LlamaRopeConfig::Long { short, long } => {
                let (short, long) = (ScaledRope::new(dev, short)?, ScaledRope::new(dev, long)?);
                Rule::Long { short, long }
            }
        };
        Ok(Self { rule, no_weights: NoWeights })
    }
}

impl<const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D> for LlamaRope<HD, D> {
    fn on_heads<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        heads: Tensor<(B, S, N, Const<HD>), F, D, T>,
        positions: &Positions,
    ) -> Result<Tensor<(B, S, N, Const<HD>), F, D, T>> {
        match &self.rule {
            Rule::NtkAware(rope) => rope.on_heads(heads, positions),
            Rule::Scaled(rope) => rope.on_heads(heads, positions),
            Rule::Dynamic(rope) => rope.on_heads(heads, positions),
            Rule::Long { short, long } => {
                let places = positions.of(heads.shape())?;
                let ends_short = |length: usize| length <= short.config().max_position;
                let lengths = places.lengths();
                if lengths.iter().all(|&length| ends_short(length)) {
                    return short.on_heads(heads, positions);
                }
                if !lengths.iter().any(|&length| ends_short(length)) {
                    return long.on_heads(heads, positions);
                }
                // Each text by the rule for its length.
                let ScaledRopeConfig { max_position, layout, .. } = *long.config();
                places.check_below(max_position)?;
                let of_length = |length| {
                    let rope = if ends_short(length) { short } else { long };
                    let frequencies = &rope.config().frequencies;
                    Ok((frequencies.frequencies().to_vec(), frequencies.scale()))
                };
                RotaryTables::by_length(heads.device(), Const, of_length, &places, layout)?
                    .rotate_each(heads)
            }
        }
    }

    fn check_kept(&self, positions: usize) -> Result<()> {
        match &self.rule {
            Rule::NtkAware(rope) => PositionEncoding::<HD, F, D>::check_kept(rope, positions),
            Rule::Scaled(_) => Ok(()),
            Rule::Dynamic(rope) => PositionEncoding::<HD, F, D>::check_kept(rope, positions),
            Rule::Long { short, long } => {
                let cached_len = short.config().max_position;
                let changes = short.config() != long.config() && positions > cached_len;
                if changes { Err(Error::KeptKeys { positions, cached_len }) } else { Ok(()) }
            }
        }
    }

    fn in_llama(&self) -> InLlama {
        InLlama::Rope(self.config())
    }
}

/// What a Llama's `config.json` can say of a position encoding.
#[derive(Debug, Clone, PartialEq)]
pub enum InLlama {
    /// It does nothing.
    Nothing,
    /// A rotation of queries and keys.
    Rope(LlamaRopeConfig),
    /// Nothing: no Llama has it.
    Other,
}

settings_only! {
    [const HD: usize] LlamaRope<HD>, LlamaRopeConfig::NtkAware(Default::default()), LlamaRope::unbuilt
}

impl<const HD: usize, D: Storage<f32>> fmt::Display for LlamaRope<HD, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Rule::NtkAware(rope) => rope.fmt(f),
            Rule::Scaled(rope) => rope.fmt(f),
            Rule::Dynamic(rope) => rope.fmt(f),
            Rule::Long { short, long } => write!(f, "LlamaRope(short={short}, long={long})"),
        }
    }
}

/// Shows the settings, not the tables.
impl<const HD: usize, D: Storage<f32>> fmt::Debug for LlamaRope<HD, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlamaRope")
            .field("head_dim", &HD)
            .field("config", &self.config())
            .finish_non_exhaustive()
    }
}
