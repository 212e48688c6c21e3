//! The book, as it is built: its pages, its links, its names, and how a browser shows it.
//!
//! `QUADRIVIUM_PICTURES=DIR cargo test -p author --test book browser` also writes a picture of every
//! page into DIR: light and dark, wide and narrow.

mod browser;
mod decks;
mod grades;
mod names;
mod orders;
mod pages;
mod readme;
mod sources;
mod words;
