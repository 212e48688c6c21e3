//! YaRN: planes that turn often stay, those that do not turn once are interpolated, and attention is warmed.

use super::formula::{RotaryFrequencies, check_factor, check_trained, mix, of_part};
use crate::checks::require;
use crate::error::Result;
use std::f64::consts::TAU;

/// Settings of [`RotaryFrequencies::yarn`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Yarn {
    /// `k`, how many times longer the texts get. At least 1. Default 1.
    pub factor: f64,
    /// `ms`, the length that the model was trained at. Default 2048.
    pub max_seq_len: usize,
    /// Planes that turn more often than this over the trained length stay. Default 32.
    pub beta_fast: f64,
    /// Planes that turn less often than this are interpolated. Above 0 and not above `beta_fast`. Default 1.
    pub beta_slow: f64,
    /// Whether the ends of the ramp are rounded outwards to whole planes. Default true.
    pub truncate: bool,
    /// The scale itself. Default `None`: by the two settings below.
    pub attention_factor: Option<f64>,
    /// With `mscale_all_dim`: the scale is `(0.1 mscale ln k + 1) / (0.1 mscale_all_dim ln k + 1)`. If one of the two is
    /// `None` or 0, it is `0.1 ln k + 1`, as `transformers` has it. Default `None`.
    ///
    /// This is all that a Llama makes of them. DeepSeek-V3, from which they come, also multiplies the scores by
    /// `(0.1 mscale_all_dim ln k + 1)^2`, which is no part of a rotation and is not computed here.
    pub mscale: Option<f64>,
    /// See `mscale`. Default `None`.
    pub mscale_all_dim: Option<f64>,
}

impl Default for Yarn {
    fn default() -> Self {
        Self {
            factor: 1.0,
            max_seq_len: 2048,
            beta_fast: 32.0,
            beta_slow: 1.0,
            truncate: true,
            attention_factor: None,
            mscale: None,
            mscale_all_dim: None,
        }
    }
}

impl RotaryFrequencies {
    // ANCHOR: yarn
    /// YaRN, "NTK by parts": a plane that turns more than `beta_fast` times over the trained length stays, one that
    /// turns fewer than `beta_slow` times is interpolated, with a ramp between them. The scale is `0.1 ln k + 1`.
    ///
    /// Source: Peng et al. 2023, "YaRN". The paper's ramp is linear in the number of turns. This is the one of its
    /// authors' code and of `transformers`: linear in the number of the plane, from the plane that turns `beta_fast` times
    /// to the one that turns `beta_slow` times, rounded outwards unless `truncate` is false. And the far end is kept
    /// at `d - 1`, though there are only `d / 2` planes.
    ///
    /// # Errors
    /// As for [`plain`](Self::plain); a `factor` that is not finite or below 1; `beta_slow <= 0`, a `beta_fast` that is
    /// not finite or below it; a scale that is not finite or not above 0; a `max_seq_len` of 0, or one at which the
    /// ramp has no planes: either all turn more than `beta_fast` times or none turns `beta_slow` times. (There
    /// `transformers` gives a ramp that runs backward.)
    pub fn yarn(rotary_dim: usize, base: f64, yarn: Yarn) -> Result<Self> {
        let Yarn { factor, max_seq_len, beta_fast, beta_slow, .. } = yarn;
        check_factor(factor)?;
        check_trained(max_seq_len)?;
        require(beta_slow > 0.0, "beta_slow", "above 0", beta_slow)?;
        let rule = "finite and at least beta_slow";
        require(beta_fast.is_finite() && beta_fast >= beta_slow, "beta_fast", rule, beta_fast)?;
        let plain = of_part(rotary_dim, base, 1.0)?;
        let d = rotary_dim as f64;
        // The plane, not whole, that turns so often: theta_i * ms = turns * 2 pi, solved for i.
        let plane = |turns: f64| d * (max_seq_len as f64 / (turns * TAU)).ln() / (2.0 * base.ln());
        let ends = (plane(beta_fast), plane(beta_slow));
        let (first, last) = if yarn.truncate { (ends.0.floor(), ends.1.ceil()) } else { ends };
        let (first, last) = (first.max(0.0), last.min(d - 1.0));
        let rule = "so long that some plane turns beta_slow times, and not all beta_fast times";
        require(first <= last, "max_seq_len", rule, max_seq_len as f64)?;
        let width = if first == last { 0.001 } else { last - first };
        let slow_down = |(i, theta): (usize, f64)| {
            let ramp = ((i as f64 - first) / width).clamp(0.0, 1.0);
            mix(theta, factor, 1.0 - ramp)
        };
        Self::new(plain.into_iter().enumerate().map(slow_down).collect(), yarn.scale())
    }
    // ANCHOR_END: yarn
}

impl Yarn {
    fn scale(&self) -> f64 {
        let warm = |mscale: f64| 0.1 * mscale * self.factor.ln() + 1.0;
        match (self.attention_factor, self.mscale, self.mscale_all_dim) {
            (Some(scale), ..) => scale,
            (None, Some(some), Some(all)) if some != 0.0 && all != 0.0 => warm(some) / warm(all),
            _ => warm(1.0),
        }
    }
}
