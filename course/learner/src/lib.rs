//! What a learner runs: the tour, the exercises with their board, and the proof of the contract.
//!
//! The components themselves are in the crate `quadrivium`, and nothing here computes one. Figures that the
//! tour or the book shares with the notebooks are in the crate `kit`. What concerns the exercises is in
//! [`exercise`] and [`board`]; the grades come from their autograder. Nothing here knows how the book is made:
//! the board is handed what serves it.

#![forbid(unsafe_code)]

pub mod board;
pub mod compile_error;
pub mod error;
pub mod exercise;
pub mod figures;
pub mod finding;
pub mod matrix;
pub mod progress;
pub mod save;
pub mod steps;
pub mod terminal;
pub mod tour;

pub use error::{Error, Result};
pub use finding::Finding;
