//! What the families add to a Llama, and how their `config.json` says it.
//!
//! A family's own settings are read first and taken out. The rest is a Llama's settings, and is checked as such, so that a
//! setting that nobody computes is refused by its name here too.

use crate::checkpoint::CheckpointConfig;
use crate::checkpoint::problem::CheckpointProblem as Problem;
use crate::checkpoint::settings::{Settings, object};
use serde_json::{Map, Value, json};

type Json = Map<String, Value>;

/// Where RoPE's rule stands, in old files and in new ones.
const ROPE: [&str; 2] = ["rope_scaling", "rope_parameters"];

/// Which family of models a checkpoint is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// Llama, SmolLM, TinyLlama and all that have their `model_type`.
    Llama,
    /// Every layer may have a window.
    Mistral,
    /// Queries, keys and values have a bias; the upper layers may have a window.
    Qwen2,
    /// Queries and keys are normalized, head by head.
    Qwen3,
    /// Some layers do not rotate.
    SmolLm3,
    /// Projections of one input lie in one matrix; a part of each head may rotate.
    Phi3,
}

const FAMILIES: [(&str, Family); 6] = [
    ("llama", Family::Llama),
    ("mistral", Family::Mistral),
    ("qwen2", Family::Qwen2),
    ("qwen3", Family::Qwen3),
    ("smollm3", Family::SmolLm3),
    ("phi3", Family::Phi3),
];

/// What a layer has of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerConfig {
    /// How many tokens a token sees, itself included. `None`: all before it.
    pub window: Option<usize>,
    /// Whether queries and keys are rotated.
    pub rotates: bool,
}

/// The settings of a model: a Llama's, and what its family adds.
#[derive(Debug, Clone, PartialEq)]
pub struct DecoderConfig {
    /// The family.
    pub family: Family,
    /// Sizes, norms' eps, RoPE and the rest that all families have.
    pub llama: CheckpointConfig,
    /// How many elements of a head rotate, its first.
    pub rotary_dim: usize,
    /// Whether the projections to queries, keys and values have a bias.
    pub qkv_bias: bool,
    /// Whether the projection of attention's output has a bias.
    pub output_bias: bool,
    /// Whether the projections of the network have a bias.
    pub mlp_bias: bool,
    /// Whether each head of queries and keys goes through a norm before it is rotated.
    pub qk_norm: bool,
    /// One for each layer.
    pub layers: Vec<LayerConfig>,
}

impl DecoderConfig {
    /// Reads the text of a `config.json`.
    ///
    /// # Errors
    /// What [`CheckpointConfig::parse`] refuses, except for what the family adds.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let mut json = object(text)?;
        let family = family(&json)?;
        complete(family, &mut json);
        let settings = Settings { json: &json, place: String::new() };
        let heads = settings.size("num_attention_heads")?;
        let head_dim = match settings.size_if("head_dim")? {
            Some(head_dim) => head_dim,
            None => (settings.size("hidden_size")? / heads).max(1),
        };
        let biases = (flag(&settings, "attention_bias")?, flag(&settings, "mlp_bias")?);
        let rotary_dim = rotary_dim(family, &settings, head_dim)?;
        let layers = layers(family, &settings)?;
        take_out(family, &mut json);
        json.insert("model_type".into(), "llama".into());
        json.insert("head_dim".into(), rotary_dim.into()); // that of the frequencies
        let mut llama = CheckpointConfig::of_json(&json)?;
        llama.head_dim = head_dim;
        if llama.num_key_value_heads > heads || heads % llama.num_key_value_heads != 0 {
            let rule = format!("a divisor of `num_attention_heads`, {heads}");
            let got = llama.num_key_value_heads.to_string();
            return Err(Problem::Setting { name: "num_key_value_heads".into(), rule, got });
        }
        Ok(Self {
            family,
            llama,
            rotary_dim,
            qkv_bias: biases.0 || family == Family::Qwen2,
            output_bias: biases.0 && family != Family::Qwen2,
            mlp_bias: biases.1,
            qk_norm: family == Family::Qwen3,
            layers,
        })
    }

    /// Each tensor that a checkpoint of these settings has, with its shape.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let CheckpointConfig {
            vocab_size: v,
            hidden_size: h,
            intermediate_size: f,
            num_attention_heads: nh,
            num_key_value_heads: nkv,
            head_dim: hd,
            ..
        } = self.llama;
        let (queries, keys) = (nh.saturating_mul(hd), nkv.saturating_mul(hd));
        let mut tensors = vec![
            ("model.embed_tokens.weight".to_string(), vec![v, h]),
            ("model.norm.weight".to_string(), vec![h]),
        ];
        if !self.llama.tie_word_embeddings {
            tensors.push(("lm_head.weight".to_string(), vec![v, h]));
        }
        let fused = self.family == Family::Phi3;
        for layer in 0..self.llama.num_hidden_layers {
            let mut add = |name: &str, shape: Vec<usize>| {
                tensors.push((format!("model.layers.{layer}.{name}"), shape));
            };
            let mut linear = |name: &str, rows: usize, columns: usize, has_bias: bool| {
                add(&format!("{name}.weight"), vec![rows, columns]);
                if has_bias {
                    add(&format!("{name}.bias"), vec![rows]);
                }
            };
            if fused {
                linear(
                    "self_attn.qkv_proj",
                    queries.saturating_add(keys.saturating_mul(2)),
                    h,
                    false,
                );
                linear("mlp.gate_up_proj", f.saturating_mul(2), h, false);
            } else {
                linear("self_attn.q_proj", queries, h, self.qkv_bias);
                linear("self_attn.k_proj", keys, h, self.qkv_bias);
                linear("self_attn.v_proj", keys, h, self.qkv_bias);
                linear("mlp.gate_proj", f, h, self.mlp_bias);
                linear("mlp.up_proj", f, h, self.mlp_bias);
            }
            linear("self_attn.o_proj", h, queries, self.output_bias);
            linear("mlp.down_proj", h, f, self.mlp_bias);
            add("input_layernorm.weight", vec![h]);
            add("post_attention_layernorm.weight", vec![h]);
            if self.qk_norm {
                add("self_attn.q_norm.weight", vec![hd]);
                add("self_attn.k_norm.weight", vec![hd]);
            }
        }
        tensors
    }
}

/// The family that `model_type` names; a Llama if it is not there.
fn family(json: &Json) -> Result<Family, Problem> {
    let settings = Settings { json, place: String::new() };
    let Some(kind) = settings.get("model_type") else { return Ok(Family::Llama) };
    let known = FAMILIES.iter().find(|(name, _)| kind == name);
    known.map(|(_, family)| *family).ok_or_else(|| {
        let names: Vec<String> = FAMILIES.iter().map(|(name, _)| format!("{name:?}")).collect();
        settings.unsupported("model_type", names.join(", "), kind)
    })
}

/// Puts in what transformers takes where a file of this family is silent, and a Llama would be read differently.
fn complete(family: Family, json: &mut Json) {
    let mut default = |name: &str, value: Value| {
        // These two say something where they are null: no window, and a key head for each query head.
        let says = ["sliding_window", "num_key_value_heads"].contains(&name);
        if json.get(name).is_none_or(|value| value.is_null() && !says) {
            json.insert(name.into(), value);
        }
    };
    match family {
        Family::Llama => {}
        Family::Mistral => {
            default("num_key_value_heads", json!(8));
            default("max_position_embeddings", json!(131_072));
            default("sliding_window", json!(4096));
        }
        Family::Qwen2 | Family::Qwen3 => {
            default("num_key_value_heads", json!(32));
            default("max_position_embeddings", json!(32_768));
            default("sliding_window", json!(4096));
            default("max_window_layers", json!(28));
            if family == Family::Qwen3 {
                default("head_dim", json!(128));
            }
        }
        Family::SmolLm3 => {
            default("num_key_value_heads", json!(4));
            default("max_position_embeddings", json!(32_768));
            default("tie_word_embeddings", json!(true));
            let said = ROPE
                .iter()
                .any(|place| json.get(*place).is_some_and(|rope| rope.get("rope_theta").is_some()));
            if !said && json.get("rope_theta").is_none_or(Value::is_null) {
                json.insert("rope_theta".into(), json!(2_000_000.0));
            }
        }
        Family::Phi3 => {
            default("max_position_embeddings", json!(4096));
            default("original_max_position_embeddings", json!(4096));
            default("rms_norm_eps", json!(1e-5));
            for place in ROPE {
                let Some(Value::Object(rope)) = json.get_mut(place) else { continue };
                for name in ["rope_type", "type"] {
                    if rope.get(name).is_some_and(|rule| rule == "yarn") {
                        rope.insert(name.into(), "longrope".into()); // as transformers reads it in a Phi-3
                    }
                }
            }
        }
    }
}

fn flag(settings: &Settings, name: &str) -> Result<bool, Problem> {
    Ok(settings.flag_if(name)?.unwrap_or(false))
}

/// How much of a head rotates: all of it, or in a Phi-3 `partial_rotary_factor` of it.
fn rotary_dim(family: Family, settings: &Settings, head_dim: usize) -> Result<usize, Problem> {
    let fits = |dim: usize| (4..=1 << 16).contains(&dim) && dim % 2 == 0;
    if !fits(head_dim) {
        let rule = "an even number from 4 to 65536, because its elements turn in pairs";
        return Err(settings.refuse("head_dim", rule, &head_dim.into()));
    }
    if family != Family::Phi3 {
        return Ok(head_dim);
    }
    let name = "partial_rotary_factor";
    let mut said = settings.number_if(name)?.map(|factor| (name.to_string(), factor));
    for place in ROPE {
        let Some(Value::Object(rope)) = settings.get(place) else { continue };
        let rope = Settings { json: rope, place: format!("{place}.") };
        for name in ["rope_type", "type"] {
            let rule = rope.get(name).and_then(Value::as_str);
            if let Some(rule) = rule.filter(|rule| !["default", "longrope", "su"].contains(rule)) {
                let supported = "\"default\" and \"longrope\", which a Phi-3 has";
                return Err(rope.unsupported(name, supported, &rule.into()));
            }
        }
        match (rope.number_if(name)?, &said) {
            (Some(inner), Some((other, outer))) if inner != *outer => {
                return Err(Problem::Contradiction { one: rope.name(name), other: other.clone() });
            }
            (Some(inner), None) => said = Some((rope.name(name), inner)),
            _ => {}
        }
    }
    let Some((name, factor)) = said else { return Ok(head_dim) };
    let rotary_dim = (head_dim as f64 * factor) as usize;
    if fits(rotary_dim) && rotary_dim <= head_dim {
        return Ok(rotary_dim);
    }
    let rule = format!(
        "a share of `head_dim`, {head_dim}, that is an even number of elements and at least 4"
    );
    Err(Problem::Setting { name, rule, got: factor.to_string() })
}

/// What each layer has of its own.
fn layers(family: Family, settings: &Settings) -> Result<Vec<LayerConfig>, Problem> {
    let count = settings.size("num_hidden_layers")?;
    const MOST: usize = 1 << 16;
    if count > MOST {
        let got = count.into();
        return Err(settings.refuse("num_hidden_layers", format!("at most {MOST}"), &got));
    }
    let plain = LayerConfig { window: None, rotates: true };
    let mut layers = vec![plain; count];
    let window = match family {
        Family::Llama => return Ok(layers),
        Family::Mistral | Family::Phi3 => {
            let window = settings.size_if("sliding_window")?;
            layers.iter_mut().for_each(|layer| layer.window = window);
            return Ok(layers);
        }
        _ if flag(settings, "use_sliding_window")? => settings.size_if("sliding_window")?,
        _ => None,
    };
    if family == Family::SmolLm3 {
        let interval = settings.size_if("no_rope_layer_interval")?.unwrap_or(4);
        for (nth, layer) in layers.iter_mut().enumerate() {
            layer.rotates = (nth + 1) % interval != 0;
        }
        if let Some(value) = settings.get("no_rope_layers") {
            let rotates = of_each(value, count, |value| match value.as_u64() {
                Some(0) => Some(false),
                Some(1) => Some(true),
                _ => None,
            });
            let rule = format!(
                "a list of {count} numbers, 1 where a layer rotates and 0 where it does not"
            );
            let rotates = rotates.ok_or_else(|| settings.refuse("no_rope_layers", rule, value))?;
            layers.iter_mut().zip(rotates).for_each(|(layer, rotates)| layer.rotates = rotates);
        }
    }
    let from = match family {
        Family::SmolLm3 => 0,
        _ => match settings.get("max_window_layers") {
            None => 28,
            Some(value) => value
                .as_u64()
                .map(|from| from as usize)
                .ok_or_else(|| settings.refuse("max_window_layers", "a whole number", value))?,
        },
    };
    for (nth, layer) in layers.iter_mut().enumerate() {
        let slides = if family == Family::SmolLm3 { !layer.rotates } else { nth >= from };
        layer.window = window.filter(|_| slides);
    }
    if let Some(value) = settings.get("layer_types") {
        let slides = of_each(value, count, |kind| match kind.as_str() {
            Some("full_attention") => Some(false),
            Some("sliding_attention") => Some(true),
            _ => None,
        });
        let slides = slides.filter(|_| value.as_array().is_some_and(|all| all.len() == count));
        let rule = format!("a list of {count}, each \"full_attention\" or \"sliding_attention\"");
        let slides = slides.ok_or_else(|| settings.refuse("layer_types", rule, value))?;
        for (layer, slides) in layers.iter_mut().zip(slides) {
            layer.window = window.filter(|_| slides);
        }
    }
    Ok(layers)
}

/// The first `count` of a list, each read as one.
fn of_each<T>(value: &Value, count: usize, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array().filter(|all| all.len() >= count)?.iter().take(count).map(read).collect()
}

/// Takes out what was read here.
fn take_out(family: Family, json: &mut Json) {
    let class = match family {
        Family::Llama => None,
        Family::Mistral => Some("MistralForCausalLM"),
        Family::Qwen2 => Some("Qwen2ForCausalLM"),
        Family::Qwen3 => Some("Qwen3ForCausalLM"),
        Family::SmolLm3 => Some("SmolLM3ForCausalLM"),
        Family::Phi3 => Some("Phi3ForCausalLM"),
    };
    let is_its_own = |all: &Value| {
        all.as_array().is_some_and(|all| all.iter().all(|name| name.as_str() == class))
    };
    if class.is_some() && json.get("architectures").is_some_and(is_its_own) {
        json.remove("architectures");
    }
    let own: &[&str] = match family {
        Family::Llama => &["attention_bias", "mlp_bias"],
        Family::Mistral => &["sliding_window"],
        Family::Qwen2 => {
            &["use_sliding_window", "sliding_window", "max_window_layers", "layer_types"]
        }
        Family::Qwen3 => &[
            "attention_bias",
            "use_sliding_window",
            "sliding_window",
            "max_window_layers",
            "layer_types",
        ],
        Family::SmolLm3 => &[
            "attention_bias",
            "mlp_bias",
            "use_sliding_window",
            "sliding_window",
            "layer_types",
            "no_rope_layers",
            "no_rope_layer_interval",
        ],
        Family::Phi3 => &["sliding_window", "partial_rotary_factor"],
    };
    for name in own {
        json.remove(*name);
    }
    if family == Family::Phi3 {
        for place in ROPE {
            if let Some(Value::Object(rope)) = json.get_mut(place) {
                rope.remove("partial_rotary_factor");
            }
        }
    }
}
