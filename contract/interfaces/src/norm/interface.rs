//! The interface of GroupRMSNorm: what an implementation is asked, and what it answers.

use crate::describe::List;
pub use crate::interface::{Manner, Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// One call of GroupRMSNorm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NormCase {
    /// `[b, s, h]`.
    pub shape: [usize; 3],
    /// `gz`, ELEMENTS per group.
    pub group_size: usize,
    /// Added to the mean square.
    pub eps: f64,
    /// `[h]`.
    pub gamma: Vec<f32>,
    /// `[b, s, h]`.
    pub x: Vec<f32>,
}

/// What GroupRMSNorm's backward pass gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NormGrads {
    /// `[b, s, h]`.
    pub dx: Vec<f32>,
    /// `[h]`.
    pub dgamma: Vec<f32>,
}

/// `y = x / sqrt(mean(x^2) + eps) * gamma`, the mean over each group.
pub trait GroupRmsNorm {
    /// The first gamma, `[h]`: uniform on `[low, high)` from `seed`, in PyTorch's numbers.
    fn initial_gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Reply<Vec<f32>>;

    /// `y`, `[b, s, h]`.
    fn forward(&self, case: &NormCase) -> Reply<Vec<f32>> {
        self.forward_in(Manner::Plain, case)
    }

    /// The gradients of the loss, when `dy`, `[b, s, h]`, is its gradient with respect to `y`.
    fn backward(&self, case: &NormCase, dy: &[f32]) -> Reply<NormGrads> {
        self.backward_in(Manner::Plain, case, dy)
    }

    /// [`GroupRmsNorm::forward`], asked in this manner.
    fn forward_in(&self, manner: Manner, case: &NormCase) -> Reply<Vec<f32>>;

    /// [`GroupRmsNorm::backward`], asked in this manner.
    fn backward_in(&self, manner: Manner, case: &NormCase, dy: &[f32]) -> Reply<NormGrads>;

    /// `y` for an `f16` input. `x` holds values of `f16`, gamma is `f32`; so must the answer
    /// hold values of `f16`.
    fn forward_half(&self, case: &NormCase) -> Reply<Vec<f32>> {
        self.forward_half_in(Manner::Plain, case)
    }

    /// [`GroupRmsNorm::forward_half`], asked in this manner.
    fn forward_half_in(&self, manner: Manner, case: &NormCase) -> Reply<Vec<f32>>;
}

// The cases as a report shows them.

impl Display for NormCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, group_size, eps, gamma, x } = self;
        writeln!(f, "x {shape:?}, group_size {group_size}, eps {eps:e}")?;
        writeln!(f, "x     = {}", List(x))?;
        write!(f, "gamma = {}", List(gamma))
    }
}
