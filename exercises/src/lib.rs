//! The exercises. Each file is a component of the course; each `todo!()` in it is a task.
//!
//! 1. GroupRMSNorm, in [`norm`]
//! 2. VocabEmbedding, in [`embedding`]
//! 3. ParallelVocabEmbedding, in [`parallel`]
//! 4. NTK-aware RoPE, in [`rope`]
//!
//! `cargo test -p exercises` grades them. All tasks fail at first; that is how it starts.
//!
//! Letters, the same everywhere: `b` batch, `s` sequence length, `h` hidden size, `gz` group size,
//! `g = h / gz` number of groups, `v` vocabulary size, `e` embedding dimension, `w` world size,
//! `r` rank, `n = v / w` rows per rank, `nh` heads, `hd` head size, `ms` training length, `k` NTK
//! ratio, `es = ms * k` cached length.

// Unfinished exercises have arguments and fields that nothing reads yet.
#![allow(unused, clippy::type_complexity)]

pub mod embedding;
pub mod norm;
pub mod parallel;
pub mod prelude;
pub mod rope;
