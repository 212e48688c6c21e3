//! The kinds of what is made: figures, listings, numbers.

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
