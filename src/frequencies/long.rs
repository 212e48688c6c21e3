//! LongRoPE: a separate factor for each plane, found by a search.

use super::formula::{RotaryFrequencies, check_factor, of_part};
use crate::checks::{require, same_shape};
use crate::error::Result;

/// Settings of [`RotaryFrequencies::longrope`].
#[derive(Debug, Clone, PartialEq)]
pub struct LongRope {
    /// What each plane is divided by in texts up to `max_seq_len`, `[d / 2]`. Above 0.
    pub short_factor: Vec<f64>,
    /// What each plane is divided by in longer texts, `[d / 2]`. Above 0.
    pub long_factor: Vec<f64>,
    /// `ms`, the length that the model was trained at. At least 2.
    pub max_seq_len: usize,
    /// `k`, how many times longer the texts get. At least 1. In Phi-3's files it is not written: there it is
    /// `max_position_embeddings / original_max_position_embeddings`.
    pub factor: f64,
    /// The scale itself. `None` is `sqrt(1 + ln k / ln ms)`.
    pub attention_factor: Option<f64>,
}

impl RotaryFrequencies {
    // ANCHOR: longrope
    /// `theta_i / factor_i`, with the short or the long list of factors by the text's `length`, and the scale
    /// `sqrt(1 + ln k / ln ms)` with either.
    ///
    /// Source: Ding et al. 2024, "LongRoPE"; the two lists and the scale are those of its authors' code and of Phi-3.
    /// The paper also leaves the first positions of a text as they are; their code does not, nor does this.
    /// `transformers` chooses the list in each call, by the last position that it is given: a text that grows past
    /// `ms` while keys are kept has keys of both kinds. Here one choice is made, by `length`, the longest text that is
    /// to come.
    ///
    /// # Errors
    /// As for [`plain`](Self::plain); a list of another length than `d / 2`; a factor of it that is not finite or not
    /// above 0; a `factor` that is not finite or below 1; `max_seq_len < 2`; a scale that is not finite or not above 0.
    pub fn longrope(rotary_dim: usize, base: f64, rule: &LongRope, length: usize) -> Result<Self> {
        check_factor(rule.factor)?;
        let ms = rule.max_seq_len as f64;
        require(rule.max_seq_len >= 2, "max_seq_len", "at least 2: its logarithm divides", ms)?;
        let plain = of_part(rotary_dim, base, 1.0)?;
        let lists = [("short_factor", &rule.short_factor), ("long_factor", &rule.long_factor)];
        for (name, factors) in lists {
            same_shape(name, &[plain.len()], &[factors.len()])?;
            for factor in factors {
                let rule = "finite and above 0, for every plane";
                require(factor.is_finite() && *factor > 0.0, name, rule, *factor)?;
            }
        }
        let long = length > rule.max_seq_len;
        let factors = if long { &rule.long_factor } else { &rule.short_factor };
        let scale = (1.0 + rule.factor.ln() / ms.ln()).sqrt();
        let frequencies = plain.into_iter().zip(factors).map(|(theta, factor)| theta / factor);
        Self::new(frequencies.collect(), rule.attention_factor.unwrap_or(scale))
    }
    // ANCHOR_END: longrope
}
