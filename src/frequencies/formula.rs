//! Frequencies for longer texts: one list of them, and one scale, from many rules.
//!
//! A model that was trained at `ms` positions meets angles beyond them that it has never seen. Each rule here slows
//! the planes, each in its own way. All of them leave a plane between its own frequency and that divided by `k`, except
//! for LongRoPE, whose factors were searched for.

use crate::checks::require;
use crate::error::{Error, Result};
use crate::rope::frequencies::{check_head_dim, rotary_frequencies};
use std::f64::consts::TAU;

/// The frequency of each plane that turns, in radians per position, and the scale of queries and keys.
///
/// The scale is on both, so the scores have its square: a temperature of attention.
///
/// ```
/// use quadrivium::pos_emb::{RotaryFrequencies, Yarn};
///
/// let yarn = Yarn { factor: 4.0, max_seq_len: 2048, ..Yarn::default() };
/// let frequencies = RotaryFrequencies::yarn(64, 10_000.0, yarn)?;
/// let plain = RotaryFrequencies::plain(64, 10_000.0)?;
/// assert_eq!(frequencies.frequencies()[0], plain.frequencies()[0]); // the fastest stays
/// assert_eq!(frequencies.frequencies()[31], plain.frequencies()[31] / 4.0); // the slowest is interpolated
/// assert_eq!(frequencies.scale(), 0.1 * 4.0f64.ln() + 1.0);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RotaryFrequencies {
    frequencies: Vec<f64>,
    scale: f64,
}

/// Settings of [`RotaryFrequencies::dynamic_ntk`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DynamicNtk {
    /// `f`, how fast the base grows with the length. At least 1.
    pub factor: f64,
    /// `ms`, the length that the model was trained at. Default 2048.
    pub max_seq_len: usize,
}

impl Default for DynamicNtk {
    fn default() -> Self {
        Self { factor: 1.0, max_seq_len: 2048 }
    }
}

/// Settings of [`RotaryFrequencies::llama3`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Llama3 {
    /// `k`, how many times longer the texts get. At least 1. Default 8.
    pub factor: f64,
    /// Planes that turn less often than this over the trained length are interpolated. Above 0. Default 1.
    pub low_freq_factor: f64,
    /// Planes that turn more often than this stay. Above `low_freq_factor`. Default 4.
    pub high_freq_factor: f64,
    /// `ms`, the length that the model was trained at. Default 8192.
    pub max_seq_len: usize,
}

impl Default for Llama3 {
    fn default() -> Self {
        Self { factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, max_seq_len: 8192 }
    }
}

// The rules of the papers that need more than a line have their own files: `yarn.rs` and `long.rs`.
impl RotaryFrequencies {
    /// Any frequencies, one for each plane that turns, and a scale.
    ///
    /// # Errors
    /// No frequencies, or more than 32,768; one that is not finite; a scale that is not finite or not above 0.
    pub fn new(frequencies: Vec<f64>, scale: f64) -> Result<Self> {
        if frequencies.is_empty() {
            return Err(Error::Empty { name: "frequencies", shape: vec![0] });
        }
        let head_dim = frequencies.len().saturating_mul(2);
        check_head_dim(head_dim.max(4))?;
        for theta in &frequencies {
            require(theta.is_finite(), "every frequency", "finite", *theta)?;
        }
        require(scale.is_finite() && scale > 0.0, "scale", "finite and above 0", scale)?;
        Ok(Self { frequencies, scale })
    }

    /// `theta_i = base^(-2i / d)`: RoPE as it was published. `rotary_dim` is `d`, the elements of a head that turn.
    /// Source: Su et al. 2021, "RoFormer".
    ///
    /// # Errors
    /// A `rotary_dim` that is odd, below 4 or above 65,536; a `base` that is not finite or not above 1.
    pub fn plain(rotary_dim: usize, base: f64) -> Result<Self> {
        Self::new(of_part(rotary_dim, base, 1.0)?, 1.0)
    }

    /// As [`plain`](Self::plain) with base 10,000, for a head size that the compiler has checked.
    pub(crate) fn of_checked(head_dim: usize) -> Self {
        let d = head_dim as f64;
        let theta = |i| 10_000.0f64.powf(-2.0 * i as f64 / d);
        Self { frequencies: (0..head_dim / 2).map(theta).collect(), scale: 1.0 }
    }

    // ANCHOR: interpolated
    /// Position interpolation: `theta_i / k`, so position `m k` turns as `m` did.
    ///
    /// Source: Chen et al. 2023, "Extending Context Window of Large Language Models via Positional Interpolation". In
    /// `transformers` it is called `linear`.
    ///
    /// # Errors
    /// As for [`plain`](Self::plain); a `factor` that is not finite or below 1.
    pub fn interpolated(rotary_dim: usize, base: f64, factor: f64) -> Result<Self> {
        check_factor(factor)?;
        let plain = of_part(rotary_dim, base, 1.0)?;
        Self::new(plain.into_iter().map(|theta| theta / factor).collect(), 1.0)
    }
    // ANCHOR_END: interpolated

    /// NTK-aware: a larger base, [`ntk_base`](crate::rope::ntk_base). The slowest plane is slowed by `factor`, the fastest
    /// not at all. Source: bloc97 2023, "NTK-Aware Scaled RoPE".
    ///
    /// # Errors
    /// As for [`ntk_base`](crate::rope::ntk_base).
    pub fn ntk(rotary_dim: usize, base: f64, factor: f64) -> Result<Self> {
        Self::new(of_part(rotary_dim, base, factor)?, 1.0)
    }

    // ANCHOR: dynamic_ntk
    /// NTK-aware with a ratio that grows with the text's `length` `L`: `f L / ms - (f - 1)` where `L > ms`, else 1.
    ///
    /// Sources: emozilla 2023, "Dynamically Scaled RoPE"; `dynamic` in `transformers`. With `f = 1` the ratio is
    /// `L / ms`, as in the paper on YaRN (Peng et al. 2023), which has no `f`. [`NtkAwareRope`](crate::NtkAwareRope)
    /// has the rule of this course: the smallest even ratio that reaches.
    ///
    /// # Errors
    /// As for [`ntk_base`](crate::rope::ntk_base); a `factor` that is not finite or below 1; `max_seq_len = 0`.
    pub fn dynamic_ntk(
        rotary_dim: usize,
        base: f64,
        DynamicNtk { factor, max_seq_len }: DynamicNtk,
        length: usize,
    ) -> Result<Self> {
        check_factor(factor)?;
        check_trained(max_seq_len)?;
        let past = length.saturating_sub(max_seq_len) as f64;
        let ratio = 1.0 + factor * past / max_seq_len as f64; // the same, and never below 1 by rounding
        Self::ntk(rotary_dim, base, ratio)
    }
    // ANCHOR_END: dynamic_ntk

    // ANCHOR: llama3
    /// Llama 3.1's rule, by how often a plane turns over the trained length: more than `high_freq_factor` times, and it
    /// stays; fewer than `low_freq_factor` times, and it is interpolated; between them, between the two.
    ///
    /// Source: Dubey et al. 2024, "The Llama 3 Herd of Models", and its code, which alone has the numbers.
    ///
    /// # Errors
    /// As for [`plain`](Self::plain); a `factor` that is not finite or below 1; `max_seq_len = 0`; a
    /// `low_freq_factor` that is not above 0, or a `high_freq_factor` that is not finite and above it.
    pub fn llama3(rotary_dim: usize, base: f64, rule: Llama3) -> Result<Self> {
        let Llama3 { factor, low_freq_factor: low, high_freq_factor: high, max_seq_len } = rule;
        check_factor(factor)?;
        check_trained(max_seq_len)?;
        require(low > 0.0, "low_freq_factor", "above 0", low)?;
        let rule = "finite and above low_freq_factor";
        require(high > low && high.is_finite(), "high_freq_factor", rule, high)?;
        let plain = of_part(rotary_dim, base, 1.0)?;
        let slow_down = |theta: f64| {
            let turns = max_seq_len as f64 * theta / TAU;
            mix(theta, factor, ((turns - low) / (high - low)).clamp(0.0, 1.0))
        };
        Self::new(plain.into_iter().map(slow_down).collect(), 1.0)
    }
    // ANCHOR_END: llama3

    /// One for each plane, in radians per position.
    pub fn frequencies(&self) -> &[f64] {
        &self.frequencies
    }

    /// What cosines and sines are multiplied by.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// How many elements of a head turn: two for each frequency.
    pub fn rotary_dim(&self) -> usize {
        2 * self.frequencies.len()
    }
}

/// The frequencies of a part of a head, which may be the whole.
pub(super) fn of_part(rotary_dim: usize, base: f64, ratio: f64) -> Result<Vec<f64>> {
    check_part(rotary_dim)?;
    rotary_frequencies(rotary_dim, base, ratio)
}

/// Refuses a part with the words of a part.
pub(super) fn check_part(rotary_dim: usize) -> Result<usize> {
    let rule = "even, because dimensions turn in pairs, at least 4, because the NTK exponent is d / (d - 2), and at most 65536";
    let got = rotary_dim as f64;
    check_head_dim(rotary_dim).map_err(|_| Error::Setting { name: "rotary_dim", rule, got })
}

/// Between interpolation, at `share = 0`, and the frequency itself, at 1. Exact at both ends, and where `factor` is 1.
pub(super) fn mix(theta: f64, factor: f64, share: f64) -> f64 {
    let slow = theta / factor;
    if share == 1.0 { theta } else { (slow + (theta - slow) * share).min(theta) }
}

pub(super) fn check_factor(factor: f64) -> Result<()> {
    require(factor.is_finite() && factor >= 1.0, "factor", "finite and at least 1", factor)
}

pub(super) fn check_trained(max_seq_len: usize) -> Result<()> {
    require(max_seq_len >= 1, "max_seq_len", "at least 1", max_seq_len as f64)
}
