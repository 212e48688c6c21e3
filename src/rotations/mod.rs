//! Rotations of other kinds: with a decay, by several numbers, and in attention without a softmax.
//!
//! | Item | File | What it is |
//! | --- | --- | --- |
//! | [`XPos`] | `xpos.rs` | a rotation that fades with the distance |
//! | [`AxialRope`] | `axial.rs` | a position of two or three numbers, each with its own planes |
//! | [`linear_attention`] | `formula.rs` | sums over pairs without a softmax, beside the formulas of the others |
//! | [`linear_attention_running`] | `running.rs` | the same as a state that runs |

mod axial;
mod formula;
mod running;
mod xpos;

pub use axial::{AxialPlanes, AxialRope, AxialRopeConfig};
pub use formula::{linear_attention, linear_denominators, positive_features, weigh_linearly};
pub use running::{LinearState, linear_attention_running};
pub use xpos::{XPos, XPosConfig};
