//! The museum of bugs: wrong implementations that compile, have the right shapes and look fine.
//!
//! Each is the oracle's loops with a step written wrong, so that a reader sees the mistake and
//! nothing else. Each tells its story, and where it happened if it happened in a real project.
//! The contract must catch every one.

pub mod norm;
pub mod parallel_vocab_emb;
pub mod rope;
pub mod vocab_emb;
