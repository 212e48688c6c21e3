//! The interface of the loss: what an implementation is asked, and what it answers.

use crate::describe::List;
pub use crate::interface::{Manner, Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// Texts of one length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextCase {
    /// `[b, s]`.
    pub shape: [usize; 2],
    /// `[b, s]`.
    pub ids: Vec<usize>,
}

/// What a model reads, and what it is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairs {
    /// `[b, s - 1]`.
    pub inputs: Vec<usize>,
    /// The token that follows each input, `[b, s - 1]`.
    pub targets: Vec<usize>,
}

/// One call of the loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossCase {
    /// `[b, s, v]`.
    pub shape: [usize; 3],
    /// `[b, s, v]`.
    pub logits: Vec<f32>,
    /// The token that follows, `[b, s]`. A place without one is not asked about.
    pub targets: Vec<Option<usize>>,
}

/// The loss of a part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// The mean over its places.
    pub loss: f32,
    /// How many places were asked about, at least 1.
    pub places: usize,
}

/// `loss = mean of -log softmax(logits)[target]`, over the places that are asked about.
pub trait CrossEntropy {
    /// Inputs and targets of texts: the shift by one. A text of one token is refused: nothing follows it.
    fn next_tokens(&self, case: &TextCase) -> Reply<Pairs>;

    /// The loss. A target that is not below `v` is refused, and so is a call in which nothing is asked.
    fn forward(&self, case: &LossCase) -> Reply<f32> {
        self.forward_in(Manner::Plain, case)
    }

    /// The gradient of the logits, `[b, s, v]`, when `dloss` is that of the loss.
    fn backward(&self, case: &LossCase, dloss: f32) -> Reply<Vec<f32>> {
        self.backward_in(Manner::Plain, case, dloss)
    }

    /// The perplexity of a text that came in parts: `exp` of the mean over all its places.
    fn perplexity(&self, parts: &[Part]) -> Reply<f32>;

    /// [`CrossEntropy::forward`], asked in this manner.
    fn forward_in(&self, manner: Manner, case: &LossCase) -> Reply<f32>;

    /// [`CrossEntropy::backward`], asked in this manner.
    fn backward_in(&self, manner: Manner, case: &LossCase, dloss: f32) -> Reply<Vec<f32>>;
}

// The cases as a report shows them.

impl Display for TextCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ids {:?} = {}", self.shape, List(&self.ids))
    }
}

impl Display for LossCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, logits, targets } = self;
        let targets: Vec<Target> = targets.iter().map(|target| Target(*target)).collect();
        writeln!(f, "logits {shape:?}")?;
        writeln!(f, "logits  = {}", List(logits))?;
        write!(f, "targets = {}", List(&targets))
    }
}

/// A target, or a dash.
struct Target(Option<usize>);

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(target) => write!(f, "{target}"),
            None => write!(f, "-"),
        }
    }
}

/// Parts of a text.
pub struct Parts<'a>(pub &'a [Part]);

impl Display for Parts<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|part| (part.loss, part.places)).collect();
        write!(f, "(loss, places) = {}", List(&parts))
    }
}
