//! The components as plain `f64` loops, straight from their formulas.
//!
//! Nothing here is shared with the library.

pub mod model;
