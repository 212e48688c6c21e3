//! What each component of the course promises, and who keeps it.
//!
//! Everything that claims to be a GroupRMSNorm (the library, a learner's code, PyTorch, a known
//! bug) is a PARTY to one CONTRACT. The contract hands a party plain values and judges the plain
//! values that come back. It does not know the library, and the library does not know it.
//!
//! - [`party`]: the seam, a trait per component.
//! - [`oracle`]: the formulas as `f64` loops.
//! - [`laws`]: the invariants, with their names, formulas and tolerances.
//! - [`museum`] and [`variants`]: wrong implementations that the invariants must catch, and right
//!   ones that they must not refuse.
//! - [`matrix`]: which bug is caught by which invariant.
//! - [`tasks`], [`grade`] and [`report`]: the exercises, how they are graded, and what a learner reads.
//! - [`diagnosis`]: which known bug a wrong implementation behaves like.

pub mod breach;
pub mod component;
mod describe;
pub mod diagnosis;
pub mod grade;
pub mod laws;
pub mod matrix;
pub mod menu;
pub mod museum;
pub mod oracle;
pub mod panics;
pub mod party;
mod probes;
pub mod report;
pub mod run;
pub mod tasks;
pub mod variants;
