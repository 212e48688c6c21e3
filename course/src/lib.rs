//! What the command `cargo course` does, as a library.
//!
//! The book and the notebooks draw the same figures and measure the same invariants as the
//! command, so both live here and `main.rs` only reads arguments. The four components
//! themselves are in the crate `quadrivium`; nothing here computes one.

#![forbid(unsafe_code)]

pub mod error;
pub mod figures;
pub mod finding;
pub mod steps;
pub mod terminal;
pub mod text;
pub mod tour;

pub use error::{Error, Result};
pub use finding::Finding;
