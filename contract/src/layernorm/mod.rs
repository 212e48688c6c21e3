//! LayerNorm: what it promises, and who keeps it.
//!
//! - [`interface`]: a trait of plain values.
//! - [`oracle`]: the formula as `f64` loops, in small steps.
//! - [`laws`]: the invariants, with their names, formulas and tolerances.
//! - [`museum`]: wrong implementations, each with one step of the oracle written wrong.
//! - `mutants`: the bugs of the museum under conditions.
//! - [`variants`]: correct implementations, written differently.
//! - `repairs`: steps whose replacement explains wrong answers.
//! - [`tasks`]: the exercises.
//! - [`menu`]: the sizes that are compiled.

pub mod graded_cases;
pub mod laws;
pub mod museum;
mod mutants;
pub mod oracle;
mod repairs;
pub mod tasks;
pub mod variants;

pub use interfaces::layernorm::{interface, menu};

use crate::component::component;

component!(LayerNorm { slug: "layernorm", name: "LayerNorm", title: "LayerNorm" });
