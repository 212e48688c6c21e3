//! The book: what code makes for it, and how its pages are built and served.
//!
//! The sources are in the folder `book`. mdBook includes files and renders pages; formulas, figures,
//! numbers and what comes from the contract are put in here, before it renders.

mod attacks;
pub mod build;
pub mod complaint;
mod deck;
pub mod generated;
pub mod law;
pub mod made;
pub mod markup;
pub mod measured;
pub mod names;
pub mod notebook;
pub mod numbers;
pub mod pages;
mod peers;
pub mod plan;
pub mod publish;
pub mod read;
pub mod serve;
pub mod update;
