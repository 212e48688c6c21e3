//! What the exercises need from dfdx, and a few short names.

pub use exercises_tensor::*;
pub use interfaces::interface;
pub use rand_mt::Mt;
pub use std::ops::Range;

/// A result whose error says what was wrong with the input.
pub type Result<T> = std::result::Result<T, String>;
