//! What a learner runs: the exercises with their board, and the proof of the contract.
//!
//! What concerns the exercises is in [`exercise`] and [`board`]; the grades come from their autograder. Nothing
//! here computes a component or knows how the book is made, so that this half is small: it is what a newcomer
//! waits for first. The board starts what serves the book as a separate program ([`program`]).

#![forbid(unsafe_code)]

pub mod board;
pub mod compile_error;
pub mod error;
pub mod exercise;
pub mod matrix;
pub mod mine;
pub mod program;
pub mod progress;
pub mod race;
pub mod ranks;
pub mod read;
pub mod save;
pub mod terminal;

pub use error::{Error, Result};
