//! What an author keeps and a reader opens: the book, with all that code makes for it, and the notebooks.
//!
//! [`book`] builds the pages and serves them, [`lab`] runs the notebooks and opens them in Jupyter, [`exam`] prints
//! questions for lecturers, and [`component`] writes the files of a new component.

#![forbid(unsafe_code)]

pub mod book;
pub mod component;
pub mod error;
pub mod exam;
mod figures;
pub mod lab;
pub mod notebook;

pub use error::{Error, Result};
