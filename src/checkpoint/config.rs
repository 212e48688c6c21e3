//! What a checkpoint's `config.json` says.

use super::problem::CheckpointProblem as Problem;
use super::scaling::{self, RopeScaling};
use super::settings::{Settings, object};
use crate::rope::MAX_TABLE_POSITIONS;
use serde_json::{Map, Value};

/// The settings of a Llama checkpoint, by their names in `config.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointConfig {
    /// `v`.
    pub vocab_size: usize,
    /// `h`.
    pub hidden_size: usize,
    /// `f`.
    pub intermediate_size: usize,
    /// `L`.
    pub num_hidden_layers: usize,
    /// `nh`.
    pub num_attention_heads: usize,
    /// `nkv`. If the file does not say it, `nh`.
    pub num_key_value_heads: usize,
    /// `hd`. If the file does not say it, `h / nh`.
    pub head_dim: usize,
    /// The norms' eps.
    pub rms_norm_eps: f64,
    /// RoPE's base.
    pub rope_theta: f64,
    /// How RoPE's frequencies are scaled.
    pub rope_scaling: RopeScaling,
    /// `ms`, the length that it was trained at or stretched to.
    pub max_position_embeddings: usize,
    /// Whether the output is the table once more.
    pub tie_word_embeddings: bool,
    /// The tokens that end a text; none if the file does not say it.
    pub eos_token_id: Vec<usize>,
}

/// Parts of the names of settings that change what a model computes, and are no Llama's: words, or with `_` in them any part.
/// One of them is refused unless its value says that there is nothing of the kind, so that a multiplier or a bias that
/// was not foreseen here is not ignored. What other names say is about training, or about programs, and is allowed.
const COMPUTES: &[&str] = &[
    "alibi",
    "alpha",
    "attn_temp",
    "attn_type",
    "attention_type",
    "bias",
    "bidirectional",
    "block_configs",
    "cap",
    "centered",
    "chunk",
    "clip",
    "compression",
    "cross",
    "encoder",
    "expert",
    "experts",
    "gain",
    "gate",
    "gated",
    "global",
    "glu",
    "interleave",
    "interleaved",
    "layernorm",
    "layernorm1p",
    "ln",
    "local",
    "loops",
    "lora",
    "mlp_type",
    "moe",
    "mrope",
    "mup",
    "nope",
    "norm",
    "normalization",
    "normalize",
    "offset",
    "parallel",
    "per_layer",
    "prefix",
    "pruned",
    "qk",
    "quantization",
    "quantized",
    "rope",
    "rotary",
    "shared_layers",
    "shrink",
    "sink",
    "sinks",
    "skip_layers",
    "sliding",
    "softcap",
    "softcapping",
    "softmax_temp",
    "theta",
    "window",
];
/// The same for factors, of which 1 changes nothing.
const MULTIPLIES: &[&str] = &[
    "factor",
    "mult",
    "multiplier",
    "multipliers",
    "scale",
    "scaling",
    "scalar",
    "temperature_tuning",
];
/// The same for training and for programs: names with these compute nothing, regardless of the rest of the name.
const HARMLESS: &[&str] = &[
    "batch",
    "dropout",
    "fuse",
    "fused",
    "fusion",
    "global_step",
    "grad",
    "init",
    "initializer",
    "label",
    "local_rank",
    "loss",
    "model_parallel",
    "pipeline_parallel",
    "sequence_parallel",
    "tensor_parallel",
];
/// Models that compute a Llama's logits, or have a head whose tensor is refused by its name.
const LLAMAS: &[&str] = &[
    "llamaforcausallm",
    "llamamodel",
    "llamaforsequenceclassification",
    "llamafortokenclassification",
    "llamaforquestionanswering",
];
/// What every Llama does, where it is true.
const ALWAYS: &[&str] = &[
    "no_bias",
    "rms_norm",
    "rotary",
    "rotary_embedding",
    "scale_attn_weights",
    "use_rms_norm",
    "use_rope",
    "use_rotary",
    "use_rotary_position_embeddings",
];

impl CheckpointConfig {
    /// Reads the text of a `config.json`.
    ///
    /// # Errors
    /// Text that is no JSON object; a setting that is missing, that is no size or number, or that contradicts another; one
    /// that changes what a model computes, and is not computed here.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        Self::of_json(&object(text)?)
    }

    pub(crate) fn of_json(json: &Map<String, Value>) -> Result<Self, Problem> {
        let settings = Settings { json, place: String::new() };
        // Another kind of model has other settings, so its name says more than the first one that is missing.
        if let Some(other) = settings.get("model_type").filter(|kind| *kind != "llama") {
            return Err(settings.unsupported("model_type", "\"llama\"", other));
        }
        let (hidden_size, num_attention_heads) =
            (settings.size("hidden_size")?, settings.size("num_attention_heads")?);
        let head_dim = settings.size_if("head_dim")?;
        let head_dim = head_dim.unwrap_or((hidden_size / num_attention_heads).max(1));
        let max_position_embeddings = positions(&settings)?;
        check_computed(&settings, head_dim, max_position_embeddings)?;
        let (rope_theta, rope_scaling) = scaling::read(&settings, max_position_embeddings)?;
        let config = Self {
            vocab_size: settings.size("vocab_size")?,
            hidden_size,
            intermediate_size: settings.size("intermediate_size")?,
            num_hidden_layers: settings.size("num_hidden_layers")?,
            num_attention_heads,
            num_key_value_heads: settings
                .size_if("num_key_value_heads")?
                .unwrap_or(num_attention_heads),
            head_dim,
            rms_norm_eps: eps(&settings)?,
            rope_theta,
            rope_scaling,
            max_position_embeddings,
            tie_word_embeddings: settings.flag_if("tie_word_embeddings")?.unwrap_or(false),
            eos_token_id: settings.ids("eos_token_id")?,
        };
        if config.rope_scaling != RopeScaling::None {
            config.rope().map_err(Problem::scaling)?;
        }
        Ok(config)
    }

    /// The longest text whose keys a cache may keep: [`positions`](Self::positions), or where the frequencies change on the
    /// way there, the length up to which they do not.
    pub fn cached_positions(&self) -> usize {
        match &self.rope_scaling {
            RopeScaling::LongRope(rule) => rule.max_seq_len.min(self.max_position_embeddings),
            _ => self.positions(),
        }
    }

    /// The positions of RoPE's table: `max_position_embeddings`, or as many as `linear` and `yarn` stretch the trained length
    /// to. `dynamic` has no end, and its table only that of the training.
    pub fn positions(&self) -> usize {
        let stretched = |trained: usize, factor: f64| (trained as f64 * factor) as usize;
        let stretched = match &self.rope_scaling {
            RopeScaling::Linear { factor } => stretched(self.max_position_embeddings, *factor),
            RopeScaling::Yarn(yarn) => stretched(yarn.max_seq_len, yarn.factor),
            _ => 0,
        };
        stretched.min(MAX_TABLE_POSITIONS).max(self.max_position_embeddings)
    }
}

/// Positions that a table of angles can have.
fn positions(settings: &Settings) -> Result<usize, Problem> {
    let name = "max_position_embeddings";
    let positions = settings.size_if(name)?.unwrap_or(2048);
    if positions <= MAX_TABLE_POSITIONS {
        return Ok(positions);
    }
    let rule = format!("at most {MAX_TABLE_POSITIONS}, which a table of angles may have");
    Err(settings.refuse(name, rule, &positions.into()))
}

/// What keeps a norm's root away from 0.
fn eps(settings: &Settings) -> Result<f64, Problem> {
    let name = "rms_norm_eps";
    match settings.number_if(name)? {
        Some(eps) if eps < 0.0 => {
            Err(settings.refuse(name, "0, or a positive number", &eps.into()))
        }
        eps => Ok(eps.unwrap_or(1e-6)),
    }
}

/// Refuses each setting that changes what is computed and that is not computed here.
fn check_computed(settings: &Settings, head_dim: usize, positions: usize) -> Result<(), Problem> {
    // Some files keep the size of a window that they do not use.
    let no_window = settings.get("use_sliding_window") == Some(&Value::Bool(false));
    let near = |value: &Value, want: f64| {
        value.as_f64().is_some_and(|value| (value - want).abs() <= 1e-7 * want)
    };
    let root = (head_dim as f64).sqrt();
    for (name, value) in settings.all() {
        let refuse = |supported: &str| Err(settings.unsupported(name, supported, value));
        let one_of = |texts: &[&str]| value.as_str().is_some_and(|text| texts.contains(&text));
        match name.as_str() {
            // Read elsewhere.
            "rope_theta" | "rope_scaling" | "rope_parameters" => {}
            // What Llamas of another task have, such as a head that classifies, is missed among the tensors.
            "architectures" => {
                let llama = |name: &Value| {
                    name.as_str().is_some_and(|name| LLAMAS.contains(&&*name.to_lowercase()))
                };
                let all = value.as_array().map_or(llama(value), |names| names.iter().all(llama));
                if !all {
                    return refuse("\"LlamaForCausalLM\"");
                }
            }
            "hidden_act" | "hidden_activation" | "activation_function" => {
                if !one_of(&["silu", "swish"]) {
                    return refuse("\"silu\"");
                }
            }
            // The file that is read.
            "transformers_weights" if one_of(&[super::files::WHOLE]) => {}
            "transformers_weights" => return refuse("those in model.safetensors"),
            "position_embedding_type" => {
                if !one_of(&["rope", "rotary"]) {
                    return refuse("\"rope\"");
                }
            }
            "is_causal" | "causal" if value != &Value::Bool(true) => return refuse("true"),
            "layer_types" => {
                let full = |kind: &Value| kind == "full_attention";
                let layers = settings.get("num_hidden_layers").and_then(Value::as_u64);
                let all = |kinds: &Vec<Value>| {
                    kinds.iter().all(full)
                        && layers.is_none_or(|layers| layers == kinds.len() as u64)
                };
                if !value.as_array().is_some_and(all) {
                    return refuse("\"full_attention\" once for each layer");
                }
            }
            "no_rope_layers"
                if value.as_array().is_some_and(|all| all.iter().all(|has| has == 1)) => {}
            "v_head_dim" | "head_size" if value != head_dim => return refuse("head_dim"),
            "rms_norm_eps" => {}
            "norm_eps" | "layer_norm_eps" if near(value, eps(settings)?) => {}
            "rope_base" | "rotary_base" | "rotary_emb_base"
                if near(value, settings.number_if("rope_theta")?.unwrap_or(10_000.0)) => {}
            "rope_type" if one_of(&["default"]) => {}
            always if value == &Value::Bool(true) && ALWAYS.contains(&always) => {}
            // The scores' factor, or the number whose root it divides by.
            "attention_multiplier" if near(value, 1.0 / root) => {}
            "query_pre_attn_scalar" if near(value, head_dim as f64) => {}
            "partial_rotary_factor" | "rotary_pct" if near(value, 1.0) => {}
            "rotary_dim" if near(value, head_dim as f64) => {}
            "attention_multiplier" => return refuse("1 / sqrt(head_dim)"),
            "query_pre_attn_scalar" => return refuse("head_dim"),
            "partial_rotary_factor" | "rotary_pct" => return refuse("1"),
            "sliding_window" if no_window => {}
            "max_window_layers" => {} // of the layers with a window
            // A window that no text is longer than.
            "sliding_window" if value.as_u64().is_some_and(|window| window >= positions as u64) => {
            }
            _ => {
                // However its author writes names.
                let name = name.to_lowercase().replace('-', "_");
                let says = |parts: &[&str]| {
                    parts.iter().any(|part| match part.contains('_') {
                        true => name.contains(part),
                        false => name.split('_').any(|word| word == *part),
                    })
                };
                if says(HARMLESS) {
                    continue;
                }
                // Other values are no names of functions.
                if says(&["act", "activation"])
                    && value.is_string()
                    && !one_of(&["silu", "swish", "swiglu"])
                {
                    return refuse("\"silu\"");
                }
                let (computes, multiplies) = (says(COMPUTES), says(MULTIPLIES));
                let part = says(&["factor", "pct", "percent", "ratio"]);
                let nothing = match value {
                    Value::Bool(flag) => !flag,
                    Value::Array(list) => list.is_empty(),
                    Value::Object(object) => object.is_empty(),
                    Value::String(text) => {
                        let of_norm = says(&["norm", "normalization"]);
                        text.is_empty()
                            || text == "none"
                            || of_norm && text.to_lowercase().contains("rms")
                    }
                    number if near(number, 1.0) => {
                        part || multiplies && !computes || says(&["experts"])
                    }
                    number => computes && [0.0, -1.0].map(Some).contains(&number.as_f64()),
                };
                if (computes || multiplies) && !nothing {
                    return refuse("models without it");
                }
            }
        }
    }
    Ok(())
}
