//! The interface of {Type}: what an implementation is asked, and what it answers.

use crate::describe::List;
pub use crate::interface::{Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// One call. TO DO: the fields that the formula needs: weights, settings, sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct {Type}Case {
    /// `[b, s, h]`.
    pub shape: [usize; 3],
    /// `[b, s, h]`.
    pub x: Vec<f32>,
}

/// TO DO: the formula. One function for each question: add `backward` for the gradients.
pub trait {Type} {
    /// The result, `[b, s, h]`.
    fn forward(&self, case: &{Type}Case) -> Reply<Vec<f32>>;
}

// The case as a report shows it.

impl Display for {Type}Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, x } = self;
        writeln!(f, "x {shape:?}")?;
        write!(f, "x = {}", List(x))
    }
}
