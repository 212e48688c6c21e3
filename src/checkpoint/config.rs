//! What a checkpoint's `config.json` says.

use super::problem::CheckpointProblem as Problem;
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
    /// `ms`, the length that it was trained at.
    pub max_position_embeddings: usize,
    /// Whether the output is the table once more.
    pub tie_word_embeddings: bool,
    /// The tokens that end a text; none if the file does not say it.
    pub eos_token_id: Vec<usize>,
}

/// Settings that must be as here, or absent: others are not computed.
const FIXED: [(&str, Fixed, &str); 6] = [
    ("model_type", Fixed::Text("llama"), "\"llama\""),
    ("hidden_act", Fixed::Text("silu"), "\"silu\""),
    ("attention_bias", Fixed::Flag(false), "false"),
    ("mlp_bias", Fixed::Flag(false), "false"),
    ("partial_rotary_factor", Fixed::Number(1.0), "1"),
    ("quantization_config", Fixed::Absent, "models without it"),
];

enum Fixed {
    Text(&'static str),
    Flag(bool),
    Number(f64),
    Absent,
}

impl CheckpointConfig {
    /// Reads the text of a `config.json`.
    ///
    /// # Errors
    /// Text that is no JSON object; a setting that is missing, that is no size or number, or whose meaning is not
    /// computed here.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let json: Value = serde_json::from_str(text).map_err(|e| Problem::Json(e.to_string()))?;
        let Value::Object(json) = json else {
            return Err(Problem::Json("it is something else".into()));
        };
        let settings = Settings(&json);
        settings.check_fixed()?;
        let (hidden_size, num_attention_heads) =
            (settings.size("hidden_size")?, settings.size("num_attention_heads")?);
        let ours = hidden_size / num_attention_heads;
        Ok(Self {
            vocab_size: settings.size("vocab_size")?,
            hidden_size,
            intermediate_size: settings.size("intermediate_size")?,
            num_hidden_layers: settings.size("num_hidden_layers")?,
            num_attention_heads,
            num_key_value_heads: settings.size_or("num_key_value_heads", num_attention_heads)?,
            head_dim: settings.size_or("head_dim", ours)?,
            rms_norm_eps: settings.eps("rms_norm_eps", 1e-6)?,
            rope_theta: settings.rope_theta()?,
            max_position_embeddings: settings.positions("max_position_embeddings", 2048)?,
            tie_word_embeddings: settings.flag("tie_word_embeddings")?,
            eos_token_id: settings.ids("eos_token_id")?,
        })
    }
}

struct Settings<'j>(&'j Map<String, Value>);

impl Settings<'_> {
    /// A setting that is there and not null.
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn size(&self, name: &str) -> Result<usize, Problem> {
        match self.get(name) {
            None => Err(Problem::MissingSetting { name: name.into() }),
            Some(value) => {
                let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
                size.filter(|size| *size > 0)
                    .ok_or_else(|| refuse(name, "a whole number from 1 on", value))
            }
        }
    }

    fn size_or(&self, name: &str, default: usize) -> Result<usize, Problem> {
        if self.get(name).is_none() { Ok(default) } else { self.size(name) }
    }

    /// Positions that a table of angles can have.
    fn positions(&self, name: &str, default: usize) -> Result<usize, Problem> {
        let positions = self.size_or(name, default)?;
        if positions <= MAX_TABLE_POSITIONS {
            return Ok(positions);
        }
        let rule = format!("at most {MAX_TABLE_POSITIONS}, which a table of angles may have");
        Err(Problem::Setting { name: name.into(), rule, got: positions.to_string() })
    }

    fn number(&self, name: &str, default: f64) -> Result<f64, Problem> {
        match self.get(name) {
            None => Ok(default),
            Some(value) => value.as_f64().ok_or_else(|| refuse(name, "a number", value)),
        }
    }

    /// What keeps a root away from 0.
    fn eps(&self, name: &str, default: f64) -> Result<f64, Problem> {
        let eps = self.number(name, default)?;
        if eps < 0.0 { Err(refuse(name, "0, or a positive number", &eps.into())) } else { Ok(eps) }
    }

    /// A base of frequencies.
    fn base(&self, name: &str, default: f64) -> Result<f64, Problem> {
        let base = self.number(name, default)?;
        if base > 1.0 { Ok(base) } else { Err(refuse(name, "above 1", &base.into())) }
    }

    fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| refuse(name, "true or false", value)),
        }
    }

    /// One id, or a list of them.
    fn ids(&self, name: &str) -> Result<Vec<usize>, Problem> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let one = |value: &Value| value.as_u64().and_then(|id| usize::try_from(id).ok());
        let ids = match value {
            Value::Array(ids) => ids.iter().map(one).collect(),
            id => one(id).map(|id| vec![id]),
        };
        ids.ok_or_else(|| refuse(name, "a token id or a list of them", value))
    }

    fn check_fixed(&self) -> Result<(), Problem> {
        for (name, fixed, supported) in FIXED {
            let Some(value) = self.get(name) else { continue };
            let holds = match fixed {
                Fixed::Text(text) => value.as_str() == Some(text),
                Fixed::Flag(flag) => value.as_bool() == Some(flag),
                Fixed::Number(number) => value.as_f64() == Some(number),
                Fixed::Absent => false,
            };
            if !holds {
                return Err(unsupported(name, value, supported));
            }
        }
        Ok(())
    }

    /// RoPE's base. It stands beside the other settings or, in newer files, among `rope_parameters`. There, and in
    /// `rope_scaling`, stands also how frequencies are scaled, if they are.
    fn rope_theta(&self) -> Result<f64, Problem> {
        let mut base = self.base("rope_theta", 10_000.0)?;
        for place in ["rope_scaling", "rope_parameters"] {
            let Some(value) = self.get(place) else { continue };
            let Value::Object(rope) = value else {
                return Err(refuse(place, "an object", value));
            };
            let rope = Settings(rope);
            for kind in ["rope_type", "type"] {
                match rope.get(kind) {
                    None => {}
                    Some(Value::String(text)) if text == "default" => {}
                    Some(other) => {
                        return Err(unsupported(&format!("{place}.{kind}"), other, "\"default\""));
                    }
                }
            }
            let partial = rope.number("partial_rotary_factor", 1.0)?;
            if partial != 1.0 {
                let name = format!("{place}.partial_rotary_factor");
                return Err(unsupported(&name, &partial.into(), "1"));
            }
            base = rope.base("rope_theta", base)?;
        }
        Ok(base)
    }
}

fn refuse(name: &str, rule: &'static str, got: &Value) -> Problem {
    Problem::Setting { name: name.into(), rule: rule.into(), got: got.to_string() }
}

fn unsupported(name: &str, got: &Value, supported: &'static str) -> Problem {
    Problem::Unsupported { name: name.into(), got: got.to_string(), supported }
}
