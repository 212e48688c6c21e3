//! The model: what it promises, and who keeps it.
//!
//! - [`interface`]: a trait of plain values.
//! - [`oracle`]: the model as `f64` loops, in small steps.
//! - [`bounds`], on the crate [`error_bounds`]: the same once more, and how far `f32` may be off.
//! - [`laws`]: the invariants, with their names, formulas and tolerances.
//! - [`museum`]: wrong implementations, each with one step of the oracle written wrong.
//! - `mutants`: the bugs of the museum under conditions.
//! - [`variants`]: correct implementations, written differently.
//! - `repairs`: steps whose replacement explains wrong answers.
//! - [`tasks`]: the exercises.
//! - [`menu`]: the sizes that are compiled.

pub mod bounds;
pub mod graded_cases;
pub mod laws;
pub mod museum;
mod mutants;
pub mod oracle;
mod plan;
mod repairs;
pub mod tasks;
pub mod variants;

pub use interfaces::model::{interface, menu};

use crate::component::component;

component!(Llama { slug: "model", name: "Llama", title: "The Llama decoder" });
