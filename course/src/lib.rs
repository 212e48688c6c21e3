//! What the command `cargo course` does, as a library.
//!
//! `main.rs` only reads arguments; the work is here, so that tests can call it. The four components
//! themselves are in the crate `quadrivium`, and nothing here computes one. Figures that the tour or the book
//! shares with the notebooks are in the crate `kit`. What concerns the exercises is in [`exercise`] and
//! [`board`]; the grades come from their autograder.

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
