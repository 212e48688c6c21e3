//! How a checkpoint's RoPE is scaled, in each spelling that a `config.json` has for it.

use super::CheckpointConfig;
use super::problem::CheckpointProblem as Problem;
use super::settings::Settings;
use crate::error::Result;
use crate::frequencies::{
    DynamicNtk, DynamicNtkRopeConfig, Llama3, LongRope, RotaryFrequencies, ScaledRopeConfig, Yarn,
};
use crate::model::LlamaRopeConfig;
use crate::rope::{NtkAwareRopeConfig, PastCache};
use serde_json::{Map, Value, json};

/// How RoPE's frequencies are scaled for longer texts: the rule that `rope_scaling` names in a `config.json`, or
/// `rope_parameters`.
///
/// The NTK-aware rule with a fixed ratio `k` has no name there. It is plain RoPE with a larger `rope_theta`, that
/// of [`ntk_base`](crate::pos_emb::ntk_base), and is written so.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum RopeScaling {
    /// `default`: they are not.
    #[default]
    None,
    /// `linear`: [`RotaryFrequencies::interpolated`].
    Linear {
        /// `s`, how many times longer the texts get.
        factor: f64,
    },
    /// `dynamic`: [`RotaryFrequencies::dynamic_ntk`] of each call's length, with `max_position_embeddings` as the trained one.
    Dynamic {
        /// `f`, how fast the base grows.
        factor: f64,
    },
    /// `yarn`: [`RotaryFrequencies::yarn`].
    Yarn(Yarn),
    /// `longrope`, formerly `su`: [`RotaryFrequencies::longrope`], with the list of each call's length.
    LongRope(LongRope),
    /// `llama3`: [`RotaryFrequencies::llama3`].
    Llama3(Llama3),
}

/// What one place in the file says. A theta that is not there may be in another place.
type Said = (Option<f64>, RopeScaling);

/// Reads RoPE's base and scaling. Both may appear in several places, and must be the same in all.
pub(super) fn read(
    config: &Settings,
    positions: usize,
) -> std::result::Result<(f64, RopeScaling), Problem> {
    let mut theta = config.base_if("rope_theta")?.map(|theta| ("rope_theta".to_string(), theta));
    let mut scaling: Option<(String, RopeScaling)> = None;
    let contradict = |one: &str, other: &str| {
        let (one, other) = (one.to_string(), other.to_string());
        Err(Problem::Contradiction { one, other })
    };
    for place in ["rope_scaling", "rope_parameters"] {
        for (place, rope) in flat(config, place)? {
            let rope = Settings { json: rope, place: format!("{place}.") };
            let (base, rule) = one(&rope, config, positions)?;
            match &theta {
                Some((other, theta)) if base.is_some_and(|base| base != *theta) => {
                    return contradict(other, &rope.name("rope_theta"));
                }
                None => theta = base.map(|base| (rope.name("rope_theta"), base)),
                Some(_) => {}
            }
            match &scaling {
                Some((other, scaling)) if *scaling != rule => return contradict(other, &place),
                _ => scaling = Some((place, rule)),
            }
        }
    }
    let theta = theta.map_or(10_000.0, |(_, theta)| theta);
    Ok((theta, scaling.map(|(_, scaling)| scaling).unwrap_or_default()))
}

/// The objects with settings in a place: itself or, where layers of each type have their own, one for each type. All layers of a
/// Llama are of the type `full_attention`.
fn flat<'j>(
    config: &Settings<'j>,
    place: &str,
) -> std::result::Result<Vec<(String, &'j Map<String, Value>)>, Problem> {
    let Some(value) = config.get(place) else { return Ok(Vec::new()) };
    let Value::Object(rope) = value else {
        return Err(config.refuse(place, "an object", value));
    };
    let mut of_types = Vec::new();
    for (kind, value) in rope.iter().filter(|(_, value)| value.is_object()) {
        if !kind.ends_with("_attention") {
            let name = format!("{place}.{kind}");
            return Err(config.refuse(
                &name,
                "a setting, or of a type of layers such as `full_attention`",
                value,
            ));
        }
        of_types.extend(value.as_object().map(|rope| (format!("{place}.{kind}"), rope)));
    }
    let said = rope.values().filter(|value| !value.is_null()).count();
    match of_types.len() {
        _ if said == 0 => Ok(Vec::new()),
        types if types == said => {
            if !rope.contains_key("full_attention") {
                let rule = "with `full_attention`, the type of all layers of a Llama";
                return Err(config.refuse(place, rule, value));
            }
            Ok(of_types)
        }
        _ => Ok(vec![(place.to_string(), rope)]),
    }
}

/// What one object says.
fn one(rope: &Settings, config: &Settings, positions: usize) -> std::result::Result<Said, Problem> {
    let rule = kind(rope)?;
    // All that a rule has, except for its name and base: another rule's setting would be left out of every result.
    let own: &[&str] = match rule {
        "default" => &[],
        "linear" | "dynamic" => &["factor"],
        "yarn" => &[
            "factor",
            "beta_fast",
            "beta_slow",
            "truncate",
            "attention_factor",
            "mscale",
            "mscale_all_dim",
        ],
        "longrope" => &["factor", "short_factor", "long_factor", "attention_factor"],
        "llama3" => &["factor", "low_freq_factor", "high_freq_factor"],
        other => {
            let supported = "\"default\", \"linear\", \"dynamic\", \"yarn\", \"longrope\" and \"llama3\"; \
                             a fixed NTK ratio is a larger `rope_theta`";
            let name = if rope.get("rope_type").is_some() { "rope_type" } else { "type" };
            return Err(rope.unsupported(name, supported, &other.into()));
        }
    };
    for (name, value) in rope.all() {
        match name.as_str() {
            "rope_type" | "type" | "rope_theta" | "original_max_position_embeddings" => {}
            "finetuned" => {} // how the weights came about
            "partial_rotary_factor" if value.as_f64() == Some(1.0) => {}
            "partial_rotary_factor" => return Err(rope.unsupported(name, "1", value)),
            own_name if own.contains(&own_name) => {}
            _ => {
                let rule = match rope.get("rope_type").or(rope.get("type")) {
                    Some(_) => format!("absent where `rope_type` is {rule:?}"),
                    None => "absent where there is no `rope_type`".to_string(),
                };
                return Err(rope.refuse(name, rule, value));
            }
        }
    }
    let trained = trained(rope, config, positions)?;
    let by_length = positions as f64 / trained as f64;
    if matches!(rule, "yarn" | "longrope") && by_length < 1.0 && rope.get("factor").is_none() {
        let rule = "at most `max_position_embeddings` where there is no `factor`";
        return Err(rope.refuse("original_max_position_embeddings", rule, &trained.into()));
    }
    let scaling = match rule {
        "linear" => RopeScaling::Linear { factor: rope.number("factor")? },
        "dynamic" => RopeScaling::Dynamic { factor: rope.number("factor")? },
        "yarn" => {
            let plain = Yarn::default();
            RopeScaling::Yarn(Yarn {
                factor: rope.number_if("factor")?.unwrap_or(by_length),
                max_seq_len: trained,
                beta_fast: rope.number_if("beta_fast")?.unwrap_or(plain.beta_fast),
                beta_slow: rope.number_if("beta_slow")?.unwrap_or(plain.beta_slow),
                truncate: rope.flag_if("truncate")?.unwrap_or(plain.truncate),
                attention_factor: rope.number_if("attention_factor")?,
                mscale: rope.number_if("mscale")?,
                mscale_all_dim: rope.number_if("mscale_all_dim")?,
            })
        }
        "longrope" => RopeScaling::LongRope(LongRope {
            short_factor: rope.numbers("short_factor")?,
            long_factor: rope.numbers("long_factor")?,
            max_seq_len: trained,
            factor: rope.number_if("factor")?.unwrap_or(by_length),
            attention_factor: rope.number_if("attention_factor")?,
        }),
        "llama3" => RopeScaling::Llama3(Llama3 {
            factor: rope.number("factor")?,
            low_freq_factor: rope.number("low_freq_factor")?,
            high_freq_factor: rope.number("high_freq_factor")?,
            max_seq_len: trained,
        }),
        _ => RopeScaling::None,
    };
    if rule == "dynamic" && trained != positions {
        let rule = "`max_position_embeddings`, which \"dynamic\" frequencies count from";
        return Err(rope.refuse("original_max_position_embeddings", rule, &trained.into()));
    }
    Ok((rope.base_if("rope_theta")?, scaling))
}

/// The name of the rule, in its new spelling.
fn kind<'j>(rope: &Settings<'j>) -> std::result::Result<&'j str, Problem> {
    let named = |name: &str| match rope.get(name) {
        None => Ok(None),
        Some(Value::String(rule)) if rule == "su" => Ok(Some("longrope")),
        Some(Value::String(rule)) => Ok(Some(rule.as_str())),
        Some(other) => Err(rope.refuse(name, "the name of a rule", other)),
    };
    match (named("rope_type")?, named("type")?) {
        (Some(one), Some(other)) if one != other => {
            let (one, other) = (rope.name("rope_type"), rope.name("type"));
            Err(Problem::Contradiction { one, other })
        }
        (one, other) => Ok(one.or(other).unwrap_or("default")),
    }
}

/// The trained length, which is listed among the other settings of the rule or, as for Phi-3, outside. If neither is
/// there, it is the whole length.
fn trained(
    rope: &Settings,
    config: &Settings,
    positions: usize,
) -> std::result::Result<usize, Problem> {
    let name = "original_max_position_embeddings";
    match (rope.size_if(name)?, config.size_if(name)?) {
        (Some(one), Some(other)) if one != other => {
            Err(Problem::Contradiction { one: rope.name(name), other: name.into() })
        }
        // Outside it counts for these rules alone.
        (None, Some(_)) if matches!(kind(rope)?, "default" | "linear" | "dynamic") => Ok(positions),
        (one, other) => Ok(one.or(other).unwrap_or(positions)),
    }
}

impl RopeScaling {
    /// The entry of a `config.json`; null where nothing is scaled.
    pub(super) fn to_json(&self) -> Value {
        let mut json = match self {
            Self::None => Value::Null,
            Self::Linear { factor } => json!({"rope_type": "linear", "factor": factor}),
            Self::Dynamic { factor } => json!({"rope_type": "dynamic", "factor": factor}),
            Self::Yarn(rule) => json!({
                "rope_type": "yarn",
                "factor": rule.factor,
                "original_max_position_embeddings": rule.max_seq_len,
                "beta_fast": rule.beta_fast,
                "beta_slow": rule.beta_slow,
                "truncate": rule.truncate,
                "attention_factor": rule.attention_factor,
                "mscale": rule.mscale,
                "mscale_all_dim": rule.mscale_all_dim,
            }),
            Self::LongRope(rule) => json!({
                "rope_type": "longrope",
                "factor": rule.factor,
                "original_max_position_embeddings": rule.max_seq_len,
                "short_factor": rule.short_factor,
                "long_factor": rule.long_factor,
                "attention_factor": rule.attention_factor,
            }),
            Self::Llama3(rule) => json!({
                "rope_type": "llama3",
                "factor": rule.factor,
                "low_freq_factor": rule.low_freq_factor,
                "high_freq_factor": rule.high_freq_factor,
                "original_max_position_embeddings": rule.max_seq_len,
            }),
        };
        if let Value::Object(json) = &mut json {
            json.retain(|_, value| !value.is_null());
        }
        json
    }
}

impl CheckpointConfig {
    /// The settings of the rotation in each block.
    ///
    /// # Errors
    /// What the rule's [`RotaryFrequencies`] refuse.
    pub fn rope(&self) -> Result<LlamaRopeConfig> {
        let (d, base, positions) = (self.head_dim, self.rope_theta, self.max_position_embeddings);
        let scaled = |frequencies: Result<RotaryFrequencies>, positions| {
            Ok(ScaledRopeConfig::new(frequencies?, positions))
        };
        let frequencies = match &self.rope_scaling {
            RopeScaling::None => {
                return Ok(LlamaRopeConfig::NtkAware(NtkAwareRopeConfig {
                    base,
                    max_seq_len: positions,
                    past_cache: PastCache::Refuse,
                    ..Default::default()
                }));
            }
            RopeScaling::Dynamic { factor } => {
                let ntk = DynamicNtk { factor: *factor, max_seq_len: positions };
                RotaryFrequencies::dynamic_ntk(d, base, ntk, positions)?;
                let config = DynamicNtkRopeConfig { base, ntk, ..Default::default() };
                return Ok(LlamaRopeConfig::Dynamic(config));
            }
            RopeScaling::LongRope(rule) => {
                let of_length = |length| RotaryFrequencies::longrope(d, base, rule, length);
                let trained = rule.max_seq_len;
                let short = scaled(of_length(trained), trained.min(positions))?;
                let long = scaled(of_length(usize::MAX), positions)?;
                return Ok(LlamaRopeConfig::Long { short, long });
            }
            RopeScaling::Linear { factor } => RotaryFrequencies::interpolated(d, base, *factor),
            RopeScaling::Yarn(yarn) => RotaryFrequencies::yarn(d, base, *yarn),
            RopeScaling::Llama3(rule) => RotaryFrequencies::llama3(d, base, *rule),
        };
        scaled(frequencies, self.positions()).map(LlamaRopeConfig::Scaled)
    }
}
