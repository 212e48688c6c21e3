//! The rotation of queries and keys, by the rule of the checkpoint.

use super::families::DecoderConfig;
use crate::checkpoint::{CheckpointConfig, RopeScaling};
use crate::error::Result;
use crate::frequencies::{DynamicNtk, RotaryFrequencies};
use crate::model::LlamaRopeConfig;
use crate::rope::fused::Turn;
use crate::rope::layouts::Pairs;
use crate::rope::{Layout, MAX_TABLE_POSITIONS};

/// Frequencies of a text by its length.
#[derive(Debug, Clone)]
pub(super) struct Rotation {
    rule: Rule,
    head_dim: usize,
}

#[derive(Debug, Clone)]
enum Rule {
    Fixed(RotaryFrequencies),
    Dynamic {
        rotary_dim: usize,
        base: f64,
        ntk: DynamicNtk,
    },
    /// Up to so many positions the first, in longer texts the second.
    Long(usize, [RotaryFrequencies; 2]),
}

/// Cosines and sines of some positions, each `[s, rotary_dim]`.
pub(super) struct Turns {
    cos: Vec<f32>,
    sin: Vec<f32>,
    rotary_dim: usize,
    head_dim: usize,
}

impl Rotation {
    pub(super) fn new(config: &DecoderConfig) -> Result<Self> {
        let turning = CheckpointConfig { head_dim: config.rotary_dim, ..config.llama.clone() };
        let (d, base) = (config.rotary_dim, turning.rope_theta);
        let rule = match (turning.rope()?, &turning.rope_scaling) {
            (LlamaRopeConfig::Scaled(scaled), _) => Rule::Fixed(scaled.frequencies),
            (LlamaRopeConfig::Long { short, long }, RopeScaling::LongRope(rule)) => {
                Rule::Long(rule.max_seq_len, [short.frequencies, long.frequencies])
            }
            (LlamaRopeConfig::Dynamic(dynamic), _) => {
                Rule::Dynamic { rotary_dim: d, base, ntk: dynamic.ntk }
            }
            _ => Rule::Fixed(RotaryFrequencies::plain(d, base)?),
        };
        Ok(Self { rule, head_dim: config.llama.head_dim })
    }

    /// How long a text may be.
    pub(super) fn end(&self, config: &DecoderConfig) -> usize {
        match self.rule {
            Rule::Dynamic { .. } => MAX_TABLE_POSITIONS,
            _ => config.llama.positions(),
        }
    }

    /// Whether keys that were turned when a text had `before` tokens are of no use when it has `after`, so that the text is computed
    /// again. LongRoPE has two lists, and changes from one to the other; transformers does the same for a Phi-3, and for other
    /// families keeps the keys. A base that has followed the length does not fit a text that was cut.
    pub(super) fn changes(&self, before: usize, after: usize) -> bool {
        match &self.rule {
            Rule::Fixed(_) => false,
            Rule::Long(short, _) => before > 0 && (before <= *short) != (after <= *short),
            Rule::Dynamic { ntk, .. } => before > after && before > ntk.max_seq_len,
        }
    }

    /// Those of the text as long as it is with the new tokens. Where a base follows the length, keys that were kept before keep their
    /// own, as transformers has it.
    pub(super) fn turns(&self, first: usize, count: usize) -> Result<Turns> {
        let length = first + count;
        let computed;
        let frequencies = match &self.rule {
            Rule::Fixed(frequencies) => frequencies,
            Rule::Long(short, [one, other]) => {
                if length <= *short {
                    one
                } else {
                    other
                }
            }
            Rule::Dynamic { rotary_dim, base, ntk } => {
                computed = RotaryFrequencies::dynamic_ntk(*rotary_dim, *base, *ntk, length)?;
                &computed
            }
        };
        let (scale, frequencies) = (frequencies.scale(), frequencies.frequencies());
        let angles = (first..length).flat_map(|position| {
            // Both halves of a head turn by the same angles.
            let all = frequencies.iter().chain(frequencies);
            all.map(move |frequency| (position as f64 * frequency).sin_cos())
        });
        let (sin, cos) = angles.map(|(s, c)| ((s * scale) as f32, (c * scale) as f32)).unzip();
        let (rotary_dim, head_dim) = (2 * frequencies.len(), self.head_dim);
        Ok(Turns { cos, sin, rotary_dim, head_dim })
    }
}

impl Turns {
    /// Turns the heads of each token, `[s, heads * hd]`, in the half-split layout.
    pub(super) fn rotate(&self, heads: &[f32]) -> Vec<f32> {
        let Self { cos, sin, rotary_dim, head_dim } = self;
        let (width, hd) = (*rotary_dim, *head_dim);
        let turn = Turn {
            cos: &**cos,
            sin: &**sin,
            width,
            place: |token| token,
            nh: heads.len() / (cos.len() / width) / hd,
            hd,
            pairs: Pairs { layout: Layout::HalfSplit, rotary_dim: width },
        };
        let mut turned = vec![0.0; heads.len()];
        turn.forward(&heads, &mut turned);
        turned
    }
}
