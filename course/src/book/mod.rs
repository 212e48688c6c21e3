//! The book: what code makes for it, and how its pages are built, served and checked.

pub mod made;
