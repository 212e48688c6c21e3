//! What is written of the records: pages for people, tables for spreadsheets and grade books, and the formats of
//! other systems.

pub mod alike;
pub mod class;
pub mod files;
pub mod formats;
pub mod page;
mod points;
pub mod report;
pub mod table;

#[cfg(any(test, feature = "made-up"))]
pub mod made_up;
