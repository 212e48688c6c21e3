//! The rotation of queries and keys, by the rule of the checkpoint.

use super::families::DecoderConfig;
use crate::checkpoint::{CheckpointConfig, RopeScaling};
use crate::error::Result;
use crate::frequencies::{DynamicNtk, RotaryFrequencies};
use crate::model::LlamaRopeConfig;
use crate::rope::MAX_TABLE_POSITIONS;

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

/// Cosines and sines of some positions, each `[s, rotary_dim / 2]`.
pub(super) struct Turns {
    cos: Vec<f32>,
    sin: Vec<f32>,
    planes: usize,
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
        let planes = frequencies.frequencies().len();
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        for position in first..length {
            for frequency in frequencies.frequencies() {
                let (s, c) = (position as f64 * frequency).sin_cos();
                cos.push((c * frequencies.scale()) as f32);
                sin.push((s * frequencies.scale()) as f32);
            }
        }
        Ok(Turns { cos, sin, planes, head_dim: self.head_dim })
    }
}

impl Turns {
    /// Turns the heads of each token, `[s, heads * hd]`, in the half-split layout.
    pub(super) fn rotate(&self, heads: &mut [f32]) {
        let tokens = self.cos.len() / self.planes;
        let width = heads.len() / tokens;
        let tables = self.cos.chunks(self.planes).zip(self.sin.chunks(self.planes));
        for (token, (cos, sin)) in heads.chunks_mut(width).zip(tables) {
            for head in token.chunks_mut(self.head_dim) {
                let (a, b) = head[..2 * self.planes].split_at_mut(self.planes);
                for (((a, b), cos), sin) in a.iter_mut().zip(b).zip(cos).zip(sin) {
                    (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
                }
            }
        }
    }
}
