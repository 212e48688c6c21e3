//! What every party answers with.
//!
//! A party is anything that claims to be one of the components: the library, a learner's code,
//! PyTorch, a known bug. It gets plain values and gives plain values back. Tensors are flat
//! slices in row-major order with their shape beside them. No type of any tensor library
//! appears in a seam, so a party may be written in anything.
//!
//! Letters: `b` batch, `s` sequence, `h` hidden size, `gz` group size, `v` vocabulary size, `e`
//! embedding dimension, `w` world size, `r` rank, `n = v / w`, `nh` heads, `hd` head size.

use std::fmt;

/// Values, or a refusal.
pub type Reply<T> = Result<T, Refusal>;

/// Why a party did not answer: bad input, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

/// How the refusal of a call ends that a task is not about. It is no answer: see [`Refusal::not_asked`].
const NOT_ASKED: &str = "belongs to another task";

impl Refusal {
    /// A call that is not let through to the learner's code, because the task is not about it. No invariant
    /// takes it for the refusal of bad input.
    pub fn not_asked(call: &str) -> Self {
        Self(format!("`{call}` {NOT_ASKED}"))
    }

    /// Whether the call was not let through.
    pub fn is_not_asked(&self) -> bool {
        self.0.ends_with(NOT_ASKED)
    }

    /// A refusal with these words.
    pub fn new(words: impl fmt::Display) -> Self {
        Self(words.to_string())
    }
}

/// A normal distribution and a seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormalInit {
    /// Mean.
    pub mean: f32,
    /// Standard deviation, not variance.
    pub std: f32,
    /// Seed of the generator.
    pub seed: u64,
}
