//! Positions that are added to tokens: each position has its own vector, so the scores know where a token is, and not
//! only how far away it is.
//!
//! | Encoding | File | It adds |
//! | --- | --- | --- |
//! | [`Sinusoidal`] | `sinusoidal.rs` | sines and cosines of the position |
//! | [`LearnedPositions`] | `learned.rs` | a row of a table |
//!
//! The formulas are in `formula.rs`, with sizes that are known at run time.

mod formula;
mod fused;
mod learned;
mod sinusoidal;

pub use formula::{add_learned_positions, add_sinusoids, sinusoid_shift, sinusoids};
pub use learned::{LearnedPositions, LearnedPositionsConfig};
pub use sinusoidal::Sinusoidal;
