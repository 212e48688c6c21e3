//! RoPE for longer texts: other frequencies, and a scale. The rotation is [`rope`](crate::rope)'s.
//!
//! | Item | File | What it is |
//! | --- | --- | --- |
//! | [`RotaryFrequencies`] | `formula.rs`, `yarn.rs`, `long.rs` | one list of frequencies and one scale, from many rules |
//! | [`ScaledRope`] | `scaled.rs` | a rotation with any of them, also of a part of a head |
//! | [`DynamicNtkRope`] | `dynamic.rs` | frequencies that follow the length of the call |
//! | [`LearnableRope`] | `learnable/` | frequencies that are trained |

mod dynamic;
mod formula;
mod learnable;
mod long;
pub(crate) mod scaled;
mod yarn;

pub use dynamic::{DynamicNtkRope, DynamicNtkRopeConfig};
pub use formula::{DynamicNtk, Llama3, RotaryFrequencies};
pub use learnable::{LearnableRope, LearnableRopeConfig, rotate_by_frequencies};
pub use long::LongRope;
pub use scaled::{ScaledRope, ScaledRopeConfig};
pub use yarn::Yarn;
