//! The interface of SwiGLU: what an implementation is asked, and what it answers.

use crate::describe::List;
pub use crate::interface::{Manner, Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// What the size of the network between is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SizeCase {
    /// `h`, at least 1.
    pub hidden_size: usize,
    /// The result is a multiple of this, which is at least 1.
    pub multiple_of: usize,
    /// `ffn_dim_multiplier`, if there is one.
    pub multiplier: Option<f64>,
}

/// One call of the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwiGluCase {
    /// `[b, s, h]`.
    pub shape: [usize; 3],
    /// `f`, the size between.
    pub ffn_hidden_size: usize,
    /// `W_1`, the gate's, `[f, h]`.
    pub gate: Vec<f32>,
    /// `W_3`, what passes the gate, `[f, h]`.
    pub up: Vec<f32>,
    /// `W_2`, back to tokens, `[h, f]`.
    pub down: Vec<f32>,
    /// `[b, s, h]`.
    pub x: Vec<f32>,
}

/// What the network's backward pass gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwiGluGrads {
    /// `[b, s, h]`.
    pub dx: Vec<f32>,
    /// `[f, h]`.
    pub dgate: Vec<f32>,
    /// `[f, h]`.
    pub dup: Vec<f32>,
    /// `[h, f]`.
    pub ddown: Vec<f32>,
}

/// `y = W_2 (silu(W_1 x) * (W_3 x))`, each token for itself, with `silu(a) = a sigmoid(a)`.
pub trait SwiGlu {
    /// `f`: `int(2 * 4h / 3)`, then `int(multiplier * that)` if there is a multiplier, rounded up to a multiple of
    /// `multiple_of`.
    fn size(&self, case: &SizeCase) -> Reply<usize>;

    /// `y`, `[b, s, h]`.
    fn forward(&self, case: &SwiGluCase) -> Reply<Vec<f32>> {
        self.forward_in(Manner::Plain, case)
    }

    /// The gradients of the loss, when `dy`, `[b, s, h]`, is its gradient with respect to `y`.
    fn backward(&self, case: &SwiGluCase, dy: &[f32]) -> Reply<SwiGluGrads> {
        self.backward_in(Manner::Plain, case, dy)
    }

    /// [`SwiGlu::forward`], asked in this manner.
    fn forward_in(&self, manner: Manner, case: &SwiGluCase) -> Reply<Vec<f32>>;

    /// [`SwiGlu::backward`], asked in this manner.
    fn backward_in(&self, manner: Manner, case: &SwiGluCase, dy: &[f32]) -> Reply<SwiGluGrads>;
}

// The cases as a report shows them.

impl Display for SizeCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { hidden_size, multiple_of, multiplier } = self;
        write!(f, "hidden_size {hidden_size}, multiple_of {multiple_of}, multiplier {multiplier:?}")
    }
}

impl Display for SwiGluCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, ffn_hidden_size, gate, up, down, x } = self;
        let h = shape[2];
        writeln!(
            f,
            "x {shape:?}, W_1 and W_3 [{ffn_hidden_size}, {h}], W_2 [{h}, {ffn_hidden_size}]"
        )?;
        writeln!(f, "x    = {}", List(x))?;
        writeln!(f, "W_1  = {}", List(gate))?;
        writeln!(f, "W_3  = {}", List(up))?;
        write!(f, "W_2  = {}", List(down))
    }
}
