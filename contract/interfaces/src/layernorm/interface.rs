//! The interface of LayerNorm: what an implementation is asked, and what it answers.

use crate::describe::List;
pub use crate::interface::{Manner, Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// One call of LayerNorm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerNormCase {
    /// `[b, s, h]`.
    pub shape: [usize; 3],
    /// Added to the variance.
    pub eps: f64,
    /// The scale, `[h]`.
    pub gamma: Vec<f32>,
    /// The shift, `[h]`.
    pub beta: Vec<f32>,
    /// `[b, s, h]`.
    pub x: Vec<f32>,
}

/// What LayerNorm's backward pass gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerNormGrads {
    /// `[b, s, h]`.
    pub dx: Vec<f32>,
    /// `[h]`.
    pub dgamma: Vec<f32>,
    /// `[h]`.
    pub dbeta: Vec<f32>,
}

/// `y = (x - mean(x)) / sqrt(var(x) + eps) * gamma + beta`, mean and variance over each token.
pub trait LayerNorm {
    /// `y`, `[b, s, h]`.
    fn forward(&self, case: &LayerNormCase) -> Reply<Vec<f32>> {
        self.forward_in(Manner::Plain, case)
    }

    /// The gradients of the loss, when `dy`, `[b, s, h]`, is its gradient with respect to `y`.
    fn backward(&self, case: &LayerNormCase, dy: &[f32]) -> Reply<LayerNormGrads> {
        self.backward_in(Manner::Plain, case, dy)
    }

    /// [`LayerNorm::forward`], asked in this manner.
    fn forward_in(&self, manner: Manner, case: &LayerNormCase) -> Reply<Vec<f32>>;

    /// [`LayerNorm::backward`], asked in this manner.
    fn backward_in(
        &self,
        manner: Manner,
        case: &LayerNormCase,
        dy: &[f32],
    ) -> Reply<LayerNormGrads>;
}

// The cases as a report shows them.

impl Display for LayerNormCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, eps, gamma, beta, x } = self;
        writeln!(f, "x {shape:?}, eps {eps:e}")?;
        writeln!(f, "x     = {}", List(x))?;
        writeln!(f, "gamma = {}", List(gamma))?;
        write!(f, "beta  = {}", List(beta))
    }
}
