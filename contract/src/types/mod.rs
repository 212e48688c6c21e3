//! Tasks about types: what must compile, and what must not.
//!
//! The contract lists sizes, and a seed draws more of them. A program is made of them, with a function for each size: those
//! that fit must compile, and no others may. A condition that holds for a few sizes only is therefore seen. It is
//! compiled as a library against the learner's crate, by the grading program, with code made for it where a const
//! assertion is asked for: it runs only then.

mod judge;
mod message;
mod programs;
mod sizes;

pub use judge::judge;
pub use message::{Code, Message, Span};
pub use programs::{Compiler, PROGRAM, Said};
pub use sizes::pairs;

/// What a task about types asks. A program is made of it, with a function for each size: those that fit must compile, and
/// no others may.
#[derive(Debug)]
pub struct Rule {
    /// What the functions name.
    pub imports: &'static [&'static str],
    /// The sizes that are always asked.
    pub sizes: fn() -> Vec<Vec<usize>>,
    /// Whether they fit.
    pub fits: fn(&[usize]) -> bool,
    /// What follows a function's name: arguments and body, on one line.
    pub function: fn(&[usize]) -> String,
    /// How a size is refused.
    pub refused_by: By,
    /// An invariant that the lines must keep, where they compute.
    pub keeps: Option<Keeps>,
}

/// An invariant that lines about types must keep.
#[derive(Debug)]
pub struct Keeps {
    /// Its id.
    pub id: &'static str,
    /// The calls of the interface that it needs.
    pub calls: &'static [&'static str],
}

/// How a size is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// An assertion that runs while the program compiles, with its own words.
    Assertion,
    /// Types that differ.
    Mismatch,
}
