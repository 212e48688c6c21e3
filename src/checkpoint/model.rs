//! Whether a model is what the settings of a checkpoint say.

use super::{CheckpointConfig, CheckpointProblem as Problem, SizeDiffers};
use crate::error::Result;
use crate::frequencies::{RotaryFrequencies, ScaledRopeConfig};
use crate::model::{Embed, Head, InLlama, LlamaRopeConfig, LlamaTransformer, Normalize};
use crate::number::Number;
use crate::position::PositionEncoding;
use crate::rope::{Layout, ntk_base};
use crate::tensor::*;

/// A model that is saved as a Llama's checkpoint, if its parts are those of one.
pub trait AsLlama {
    /// Compares the model with settings: its sizes, and everything that no tensor holds.
    ///
    /// # Errors
    /// A part that no Llama has; each setting that is not that of the model. A model that does not say what it is, as by
    /// default, is none.
    fn check_llama(&self, config: &CheckpointConfig) -> std::result::Result<(), Problem> {
        let _ = config;
        Err(Problem::NoLlama(format!("it is {}", short::<Self>())))
    }
}

impl<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
    F: Float,
    D: Backend<F>,
    O: Head<V, H, F, D>,
    E: Embed<V, H, F, D>,
    N: Normalize<H, F, D>,
    P: PositionEncoding<HD, F, D>,
    X: PositionEncoding<HD, F, D>,
> AsLlama for LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, D, O, E, N, P, X>
{
    fn check_llama(&self, config: &CheckpointConfig) -> std::result::Result<(), Problem> {
        let no_llama = |words: String| Problem::NoLlama(words);
        if !self.embed_tokens.is_of_llama() {
            return Err(no_llama(format!("its embedding is {}", short::<E>())));
        }
        let Some(tied) = self.lm_head.is_tied() else {
            return Err(no_llama(format!("its output is {}", short::<O>())));
        };
        let mut differences = Differences(Vec::new());
        differences.sizes([V, H, NH, NKV, HD, FF, L], config);
        let layers = self.layers.modules.len();
        differences.compare("num_hidden_layers", layers, config.num_hidden_layers);
        differences.compare("tie_word_embeddings", tied, config.tie_word_embeddings);
        let norms = self
            .layers
            .modules
            .iter()
            .flat_map(|block| [&block.input_layernorm, &block.post_attention_layernorm]);
        for norm in norms.chain([&self.norm]) {
            let Some(eps) = norm.rms_norm_eps() else {
                let words = "its norm is no RMSNorm of whole tokens, but";
                return Err(no_llama(format!("{words} {}", short::<N>())));
            };
            differences.compare("rms_norm_eps", Number(eps), Number(config.rms_norm_eps));
        }
        if HD != config.head_dim {
            return differences.none(); // its frequencies are others anyway
        }
        let shared = self.position.in_llama();
        for block in &self.layers.modules {
            let rope = match (block.self_attn.position.in_llama(), shared.clone()) {
                (InLlama::Rope(rope), InLlama::Nothing)
                | (InLlama::Nothing, InLlama::Rope(rope)) => rope,
                (InLlama::Nothing, InLlama::Nothing) => {
                    return Err(no_llama("it has no position encoding".into()));
                }
                _ => {
                    let (own, shared) = (short::<P>(), short::<X>());
                    let words = format!("its positions are encoded by {own} and {shared}");
                    return Err(no_llama(words));
                }
            };
            differences.rope(&rope, config)?;
        }
        differences.none()
    }
}

/// The name of a type, without the modules that it lies in.
fn short<T: ?Sized>() -> String {
    let name = std::any::type_name::<T>();
    let (path, sizes) = name.split_at(name.find('<').unwrap_or(name.len()));
    format!("{}{}", path.rsplit("::").next().unwrap_or(path), sizes.replace("quadrivium::", ""))
}

/// Settings that are not those of a model, each once.
pub(super) struct Differences(pub(super) Vec<SizeDiffers>);

impl Differences {
    /// Compares the sizes of a model's type, in its order.
    pub(super) fn sizes(
        &mut self,
        [v, h, nh, nkv, hd, ff, l]: [usize; 7],
        config: &CheckpointConfig,
    ) {
        self.compare("vocab_size", v, config.vocab_size);
        self.compare("hidden_size", h, config.hidden_size);
        self.compare("num_attention_heads", nh, config.num_attention_heads);
        self.compare("num_key_value_heads", nkv, config.num_key_value_heads);
        self.compare("head_dim", hd, config.head_dim);
        self.compare("intermediate_size", ff, config.intermediate_size);
        self.compare("num_hidden_layers", l, config.num_hidden_layers);
    }

    pub(super) fn compare(
        &mut self,
        name: &'static str,
        ours: impl ToString,
        given: impl ToString,
    ) {
        let (in_type, in_file) = (ours.to_string(), given.to_string());
        let known = self.0.iter().any(|other| other.name == name);
        if in_type != in_file && !known {
            self.0.push(SizeDiffers { name, in_type, in_file });
        }
    }

    /// Compares what is computed: the same frequencies have several spellings.
    fn rope(
        &mut self,
        ours: &LlamaRopeConfig,
        config: &CheckpointConfig,
    ) -> std::result::Result<(), Problem> {
        let hd = config.head_dim;
        let turns = |rope: Result<LlamaRopeConfig>| rope.and_then(|rope| Turns::of(&rope, hd));
        let (ours, given) = (
            turns(Ok(ours.clone())).map_err(Problem::scaling)?,
            turns(config.rope()).map_err(Problem::scaling)?,
        );
        if ours.layout != Layout::HalfSplit {
            return Err(Problem::NoLlama("its RoPE turns adjacent pairs".into()));
        }
        let turned = ours.frequencies.iter().map(RotaryFrequencies::rotary_dim);
        if let Some(turned) = turned.into_iter().find(|turned| *turned != hd) {
            let words = format!("its RoPE turns {turned} of the {hd} elements of a head");
            return Err(Problem::NoLlama(words));
        }
        match (ours.theta, given.theta) {
            (Some(ours), Some(given)) if ours != given => {
                self.compare("rope_theta", Number(ours), Number(given));
            }
            _ if ours.frequencies != given.frequencies => {
                let [ours, given] =
                    [(&ours, &given), (&given, &ours)].map(|(one, other)| one.beside(other));
                self.compare("rope_scaling", ours, given);
            }
            _ => {}
        }
        let (least, most) = (config.max_position_embeddings, config.positions());
        if !(least..=most).contains(&ours.positions) {
            self.compare("max_position_embeddings", ours.positions, least);
        }
        if let (Some(ours), Some(given)) = (ours.trained, given.trained) {
            self.compare("original_max_position_embeddings", ours, given);
        }
        Ok(())
    }

    fn none(self) -> std::result::Result<(), Problem> {
        if self.0.is_empty() { Ok(()) } else { Err(Problem::OtherModel(self.0)) }
    }
}

/// What a rotation computes.
struct Turns {
    /// At one length or, where they change with it, at two.
    frequencies: Vec<RotaryFrequencies>,
    layout: Layout,
    /// The most positions.
    positions: usize,
    /// Where the one list of frequencies gives way to the other.
    trained: Option<usize>,
    /// The base, where that alone says it.
    theta: Option<f64>,
}

impl Turns {
    fn of(rope: &LlamaRopeConfig, head_dim: usize) -> Result<Self> {
        let one = |of: &ScaledRopeConfig| of.frequencies.clone();
        Ok(match rope {
            LlamaRopeConfig::NtkAware(rope) => {
                let ratio = rope.ratio as f64;
                let positions = rope.max_seq_len.saturating_mul(rope.ratio);
                Self {
                    frequencies: vec![RotaryFrequencies::ntk(head_dim, rope.base, ratio)?],
                    layout: rope.layout,
                    positions,
                    trained: None,
                    theta: Some(ntk_base(rope.base, head_dim, ratio)?),
                }
            }
            LlamaRopeConfig::Scaled(rope) => Self {
                frequencies: vec![one(rope)],
                layout: rope.layout,
                positions: rope.max_position,
                trained: None,
                theta: None,
            },
            LlamaRopeConfig::Dynamic(rope) => {
                let (d, ms) = (rope.rotary_dim.unwrap_or(head_dim), rope.ntk.max_seq_len);
                let at = |length| RotaryFrequencies::dynamic_ntk(d, rope.base, rope.ntk, length);
                Self {
                    frequencies: vec![at(ms)?, at(2 * ms)?],
                    layout: rope.layout,
                    positions: ms,
                    trained: None,
                    theta: None,
                }
            }
            LlamaRopeConfig::Long { short, long } => Self {
                frequencies: vec![one(short), one(long)],
                layout: if short.layout == Layout::HalfSplit { long.layout } else { short.layout },
                positions: long.max_position,
                trained: Some(short.max_position),
                theta: None,
            },
        })
    }

    /// What differs from another, in words.
    fn beside(&self, other: &Self) -> String {
        if self.frequencies.len() != other.frequencies.len() {
            let changes = if self.frequencies.len() == 1 { "for all lengths" } else { "by length" };
            return format!("one with frequencies {changes}");
        }
        for (ours, theirs) in self.frequencies.iter().zip(&other.frequencies) {
            let mut planes = ours.frequencies().iter().zip(theirs.frequencies()).enumerate();
            if let Some((plane, (theta, _))) = planes.find(|(_, (one, other))| one != other) {
                return format!("one that turns plane {plane} by {} a position", Number(*theta));
            }
            if ours.scale() != theirs.scale() {
                return format!("one with the scale {}", Number(ours.scale()));
            }
        }
        "another one".into()
    }
}
