//! Stretched RoPE: what it promises, and who keeps it.
//!
//! - [`interface`]: a trait of plain values.
//! - [`oracle`]: the formula as `f64` loops, in small steps.
//! - [`laws`]: the invariants, with their names and formulas.
//! - `tolerance`: how far an answer may be off, step by step.
//! - [`graded_cases`]: the questions, from the plainest on.
//! - [`museum`]: wrong implementations, each with one step of the oracle written wrong.
//! - `mutants`: the museum's bugs under conditions.
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
mod tolerance;
pub mod variants;

pub use interfaces::frequencies::{interface, menu};

use crate::component::component;

component!(StretchedRope { slug: "frequencies", name: "Stretched RoPE", title: "Stretched RoPE" });
