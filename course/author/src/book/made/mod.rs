//! What code makes for the book: figures, listings, and the numbers in its sentences.
//!
//! Each chapter has a file here. Figures and listings are kept in `book/src`, so that the sources
//! can be read without building anything; a test makes them again and compares. A number is written
//! in the text, with its name in a comment after it; the build compares the two.

pub mod absolute;
pub mod attention;
pub mod biases;
pub mod claims;
pub mod collectives;
pub mod diagrams;
pub mod embedding;
pub mod encodings;
pub mod feedforward;
pub mod frequencies;
pub mod kinds;
pub mod layernorm;
pub mod linear_attention;
pub mod long;
pub mod loss;
pub mod norm;
pub mod ownership;
pub mod parallel;
pub mod parts;
pub mod position_numbers;
mod recorded;
pub mod rope;
pub mod rotations;
pub mod shapes;
pub mod sweeps;
pub mod testing;
pub mod token_costs;
pub mod training;

use crate::error::Result;
use kinds::{Made, Numbers};

/// What is made for each chapter.
pub static CHAPTERS: &[&Made] = &[
    &diagrams::MADE,
    &parts::MADE,
    &shapes::MADE,
    &embedding::MADE,
    &norm::MADE,
    &layernorm::MADE,
    &parallel::MADE,
    &rope::MADE,
    &attention::MADE,
    &feedforward::MADE,
    &loss::MADE,
    &training::MADE,
    &token_costs::MADE,
    &position_numbers::MADE,
    &encodings::MADE,
    &absolute::MADE,
    &biases::MADE,
    &frequencies::MADE,
    &rotations::MADE,
    &linear_attention::MADE,
    &long::MADE,
    &sweeps::MADE,
    &claims::MADE,
    &ownership::MADE,
    &collectives::MADE,
    &testing::MADE,
];

/// All numbers of the book.
///
/// # Errors
/// A component refused its input.
pub fn numbers() -> Result<Numbers> {
    let mut numbers = Numbers::default();
    for chapter in CHAPTERS {
        (chapter.numbers)(&mut numbers)?;
    }
    Ok(numbers)
}
