//! What code makes for the book: figures, listings, and the numbers that stand in its sentences.
//!
//! Each chapter has a file here. Figures and listings are kept in `book/src`, so that the sources
//! can be read without building anything; a test makes them again and compares. A number stands in
//! the text, with its name in a comment behind it; the build compares the two.

pub mod claims;
pub mod embedding;
pub mod encodings;
pub mod norm;
pub mod parallel;
pub mod rope;
pub mod shapes;
pub mod testing;

use crate::error::Result;
use std::collections::BTreeMap;
use std::path::Path;

/// What one chapter needs.
pub struct Made {
    /// The SVG files, in `book/src/figures`.
    pub figures: &'static [Figure],
    /// The texts, in `book/src/listings`.
    pub listings: &'static [Listing],
    /// The numbers in sentences and tables.
    pub numbers: fn(&mut Numbers) -> Result<()>,
}

/// A figure of the book.
pub struct Figure {
    /// The name of its file, without `.svg`.
    pub name: &'static str,
    /// Draws it into this file.
    pub draw: fn(&Path) -> Result<()>,
}

/// A text that a program printed, or would print.
pub struct Listing {
    /// The name of its file, without `.txt`.
    pub name: &'static str,
    /// Makes it.
    pub text: fn() -> Result<String>,
}

/// Numbers by their names, as they are printed in the book.
#[derive(Debug, Default)]
pub struct Numbers(BTreeMap<String, String>);

impl Numbers {
    /// Adds a number: its name, such as `rope/longest-wavelength`, and how it is printed.
    pub fn add(&mut self, name: &str, printed: impl std::fmt::Display) {
        let before = self.0.insert(name.to_string(), printed.to_string());
        assert!(before.is_none(), "two numbers are called {name}");
    }

    /// How the number is printed.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// What is made for each chapter.
pub static CHAPTERS: &[&Made] = &[
    &shapes::MADE,
    &norm::MADE,
    &embedding::MADE,
    &parallel::MADE,
    &rope::MADE,
    &encodings::MADE,
    &testing::MADE,
    &claims::MADE,
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
