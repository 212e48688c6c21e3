//! Cross-entropy, the loss of the next token: what it promises, and who keeps it.
//!
//! - [`interface`]: a trait of plain values.
//! - [`oracle`]: the formula as `f64` loops, in small steps.
//! - [`laws`]: the invariants, with their names, formulas and tolerances.
//! - `tolerance`: how far a right answer may be off.
//! - [`graded_cases`]: the questions, from the plainest on.
//! - [`museum`]: wrong implementations, each with one step of the oracle written wrong.
//! - `mutants`: the museum's bugs under conditions.
//! - [`variants`]: correct implementations, written differently.
//! - `repairs`: steps whose replacement explains wrong answers.
//! - [`tasks`]: the exercises.

pub mod graded_cases;
pub mod laws;
pub mod museum;
mod mutants;
pub mod oracle;
mod repairs;
pub mod tasks;
pub mod tolerance;
pub mod variants;

pub use interfaces::loss::interface;

use crate::component::component;

component!(CrossEntropy { slug: "loss", name: "Loss", title: "Cross-entropy" });
