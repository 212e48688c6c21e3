//! What the command `cargo course` does, as a library.
//!
//! The book and the notebooks draw the same figures and measure the same invariants as the
//! command, so both live here and `main.rs` only reads arguments. The four components
//! themselves are in the crate `quadrivium`; nothing here computes one. What concerns the exercises
//! is in [`exercise`] and [`board`]; the grades come from their autograder.

#![forbid(unsafe_code)]

pub mod board;
pub mod book;
pub mod error;
pub mod exercise;
pub mod figures;
pub mod finding;
pub mod lab;
pub mod matrix;
pub mod steps;
pub mod terminal;
pub mod tour;

pub use error::{Error, Result};
pub use finding::Finding;
