//! For building alone: the library as the cells of a notebook see it, one shared library.
//!
//! The notebooks' kernel, evcxr, makes a library of each cell. If each had its own copy of dfdx, each
//! would count its tensors from 0. Two tensors of different cells would then have the same number,
//! and dfdx would mix up their gradients, or panic. `notebooks/evcxr.toml` gives this crate to the cells
//! under the name `quadrivium`.

#![forbid(unsafe_code)]

pub use library::*;
// Its figures and checks are in here too, so that all have one dfdx.
use notebook_support as _;
