//! The model of the course at work: `cargo course model train`, `generate`, `eval`, `inspect`, `attention` and `long`.
//!
//! A run is read in this order: [`text`] and [`tokens`], [`corpus`] with its [`batches`] and the 3-gram model of
//! [`ngram`], the [`network`], the place of the learner's in [`mine`] with [`lockstep`], and [`train`], which puts it all
//! together and keeps it in a folder with [`run`]. [`long`] trains many of them, one for each position encoding.

#![forbid(unsafe_code)]

pub mod attention;
pub mod batches;
pub mod corpus;
pub mod error;
pub mod evaluate;
pub mod figures;
pub mod generate;
pub mod guard;
pub mod inspect;
pub mod lockstep;
pub mod long;
pub mod mine;
pub mod network;
pub mod ngram;
pub mod opened;
pub mod run;
pub mod show;
pub mod sizes;
pub mod stop;
pub mod text;
pub mod tokens;
pub mod train;
pub mod writer;

pub use error::{Error, Result};
