//! The interface of stretched RoPE: what an implementation is asked, and what it answers.

use crate::describe::List;
pub use crate::interface::{Manner, Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// A rule that slows the planes of RoPE, with its settings. `factor` is `k`, how many times longer the texts get;
/// `max_seq_len` is `ms`, the length that the model was trained at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Stretch {
    /// RoPE as it was published.
    Plain,
    /// Position interpolation.
    Interpolated {
        /// `k`.
        factor: f64,
    },
    /// NTK-aware: a larger base.
    Ntk {
        /// `k`.
        factor: f64,
    },
    /// NTK-aware with a ratio that grows with the length of the call.
    DynamicNtk {
        /// `f`, how fast it grows.
        factor: f64,
        /// `ms`.
        max_seq_len: usize,
    },
    /// YaRN as its authors' code has it.
    Yarn {
        /// `k`.
        factor: f64,
        /// `ms`.
        max_seq_len: usize,
        /// Planes that turn more often than this over `ms` stay.
        beta_fast: f64,
        /// Planes that turn less often than this are interpolated.
        beta_slow: f64,
        /// Whether the ends of the ramp are rounded outwards to whole planes.
        truncate: bool,
    },
    /// Llama 3.1's.
    Llama3 {
        /// `k`.
        factor: f64,
        /// `ms`.
        max_seq_len: usize,
        /// Planes that turn less often than this over `ms` are interpolated.
        low_freq_factor: f64,
        /// Planes that turn more often than this stay.
        high_freq_factor: f64,
    },
    /// LongRoPE: a separate divisor for each plane.
    LongRope {
        /// `k`. Only the scale depends on it.
        factor: f64,
        /// `ms`.
        max_seq_len: usize,
        /// Divisors for texts up to `ms`, `[rotary_dim / 2]`.
        short_factor: Vec<f64>,
        /// Divisors for longer texts, `[rotary_dim / 2]`.
        long_factor: Vec<f64>,
    },
}

impl Stretch {
    /// The call, as a task names it.
    pub fn call(&self) -> &'static str {
        match self {
            Self::Plain => "frequencies (plain)",
            Self::Interpolated { .. } => "frequencies (interpolated)",
            Self::Ntk { .. } => "frequencies (ntk)",
            Self::DynamicNtk { .. } => "frequencies (dynamic)",
            Self::Yarn { .. } => "frequencies (yarn)",
            Self::Llama3 { .. } => "frequencies (llama3)",
            Self::LongRope { .. } => "frequencies (longrope)",
        }
    }
}

/// What frequencies are made of: a rule, and a call of `seq_len` rows that begins at position `offset`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrequenciesCase {
    /// The rule.
    pub rule: Stretch,
    /// `hd`, elements of a head.
    pub head_dim: usize,
    /// `d`, how many of them turn. Even, from 4 to `hd`.
    pub rotary_dim: usize,
    /// `base`.
    pub base: f64,
    /// Position of the call's first row.
    pub offset: usize,
    /// Rows of the call.
    pub seq_len: usize,
}

/// One for each plane that turns, and what queries and keys are multiplied by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frequencies {
    /// In radians per position, `[d / 2]`.
    pub frequencies: Vec<f64>,
    /// The scale of cosines and sines.
    pub scale: f64,
}

/// One rotation by given frequencies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StretchedRopeCase {
    /// `[b, s, nh, hd]`.
    pub shape: [usize; 4],
    /// Position of row 0.
    pub offset: usize,
    /// In radians per position. If they are fewer than `hd / 2`, the first elements of a head turn, two for each.
    pub frequencies: Vec<f64>,
    /// The scale of cosines and sines.
    pub scale: f64,
    /// `[b, s, nh, hd]`, half-split.
    pub x: Vec<f32>,
}

/// Gradients of a rotation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StretchedRopeGrads {
    /// `[b, s, nh, hd]`.
    pub dx: Vec<f32>,
    /// With respect to the frequencies, `[d / 2]`. It is asked for where all of a head turns; elsewhere it may be empty.
    pub dtheta: Vec<f32>,
}

/// RoPE for longer texts: frequencies from a rule, the rotation by them, and its gradients.
pub trait StretchedRope {
    /// The frequencies of a call, and the scale.
    fn frequencies(&self, case: &FrequenciesCase) -> Reply<Frequencies>;

    /// `x` turned by its positions, `[b, s, nh, hd]`.
    fn forward(&self, case: &StretchedRopeCase) -> Reply<Vec<f32>> {
        self.forward_in(Manner::Plain, case)
    }

    /// The gradients for `dy`, `[b, s, nh, hd]`.
    fn backward(&self, case: &StretchedRopeCase, dy: &[f32]) -> Reply<StretchedRopeGrads> {
        self.backward_in(Manner::Plain, case, dy)
    }

    /// [`StretchedRope::forward`], asked in this manner.
    fn forward_in(&self, manner: Manner, case: &StretchedRopeCase) -> Reply<Vec<f32>>;

    /// [`StretchedRope::backward`], asked in this manner.
    fn backward_in(
        &self,
        manner: Manner,
        case: &StretchedRopeCase,
        dy: &[f32],
    ) -> Reply<StretchedRopeGrads>;
}

// The cases as a report shows them.

impl Display for FrequenciesCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { rule, head_dim, rotary_dim, base, offset, seq_len } = self;
        writeln!(f, "{rule:?}")?;
        write!(f, "head_dim {head_dim}, rotary_dim {rotary_dim}, base {base}, ")?;
        write!(f, "offset {offset}, seq_len {seq_len}")
    }
}

impl Display for StretchedRopeCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, offset, frequencies, scale, x } = self;
        writeln!(f, "x {shape:?}, offset {offset}, scale {scale}")?;
        writeln!(f, "frequencies {frequencies:?}")?;
        write!(f, "x = {}", List(x))
    }
}
