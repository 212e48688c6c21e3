//! Collectives: what ranks say to each other, what they promise together, and who keeps it.
//!
//! - [`interface`]: a trait of plain values; and the way from one rank to the others.
//! - [`world`]: ranks as threads, which notice when one waits for ever.
//! - [`oracle`]: the program of a rank, in small steps, and what one rank with everything says.
//! - [`laws`]: the invariants, with their names, formulas and tolerances.
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
pub mod variants;

pub use interfaces::collectives::{interface, world};

use crate::component::component;

component!(Collectives { slug: "collectives", name: "Collectives", title: "Collectives" });
