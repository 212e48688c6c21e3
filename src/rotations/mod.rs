//! Rotations of other kinds: with a decay, by several numbers, and in attention without a softmax.
//!
//! | Item | File | What it is |
//! | --- | --- | --- |
//! | [`XPos`] | `xpos.rs` | a rotation that fades with the distance |
//! | [`AxialRope`] | `axial.rs` | a position of two or three numbers, each with planes of its own |
//! | [`linear_attention`] | `linear.rs` | sums over pairs without a softmax, and the same as a state that runs |

mod axial;
mod linear;
mod xpos;

pub use axial::{AxialPlanes, AxialRope, AxialRopeConfig};
pub use linear::{
    LinearState, linear_attention, linear_attention_running, linear_denominators,
    positive_features, weigh_linearly,
};
pub use xpos::{XPos, XPosConfig};
