//! The tour: one text through the embeddings, GroupRMSNorm and RoPE, with every invariant measured.
//!
//! The components themselves are in the crate `quadrivium`, and nothing here computes one. Figures that the
//! tour or the book shares with the notebooks are in the crate `notebook-support`.

#![forbid(unsafe_code)]

pub mod error;
pub mod figures;
pub mod finding;
mod show;
pub mod steps;
pub mod tour;

pub use error::{Error, Result};
pub use finding::Finding;
