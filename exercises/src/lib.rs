//! The exercises. Each file is a component of the course; each `todo!()` in it is a task.
//!
//! 1. VocabEmbedding, in [`embedding`]
//! 2. GroupRMSNorm, in [`norm`]
//! 3. LayerNorm, in [`layernorm`]
//! 4. ParallelVocabEmbedding, in [`parallel`]
//! 5. NTK-aware RoPE, in [`rope`]
//! 6. Grouped-query attention, in [`attention`]
//! 7. SwiGLU, in [`feedforward`]
//! 8. Cross-entropy, in [`loss`]
//! 9. The Llama decoder, in [`model`]
//! 10. Absolute positions, in [`absolute`]
//! 11. Biases in the scores, in [`biases`]
//! 12. Stretched RoPE, in [`frequencies`]
//! 13. More rotations, in [`rotations`]
//! 14. Collectives, in [`collectives`]
//!
//! `cargo test -p exercises` grades them. All tasks fail at first, as they should.
//!
//! Letters, the same everywhere: `b` batch, `s` sequence length, `h` hidden size, `gz` group size,
//! `g = h / gz` number of groups, `v` vocabulary size, `e` embedding dimension, `w` world size,
//! `r` rank, `n = v / w` rows per rank, `nh` heads, `hd` head size, `ms` training length, `k` NTK
//! ratio, `es = ms * k` cached length.

// Unfinished exercises have arguments and fields that nothing reads yet.
#![allow(unused, clippy::type_complexity)]

// dfdx's functions at the sizes that are asked: with it, an edit of yours compiles less.
#[cfg(feature = "dfdx-prebuilt")]
extern crate dfdx_prebuilt as _;

// Where this folder is. Copies of the course that are built into one folder would be taken for each other by cargo, which
// compiles again when this path has changed.
const _: Option<&str> = option_env!("INSTA_WORKSPACE_ROOT");

// A file that does not compile would hide all others. `cargo course` cuts its starter from the solution, and builds again with that
// in its place: see build.rs.

#[cfg_attr(starter = "norm", path = "../norm/starter.rs")]
pub mod norm;

#[cfg_attr(starter = "embedding", path = "../embedding/starter.rs")]
pub mod embedding;

#[cfg_attr(starter = "parallel", path = "../parallel/starter.rs")]
pub mod parallel;

#[cfg_attr(starter = "rope", path = "../rope/starter.rs")]
pub mod rope;

#[cfg_attr(starter = "layernorm", path = "../layernorm/starter.rs")]
pub mod layernorm;

#[cfg_attr(starter = "attention", path = "../attention/starter.rs")]
pub mod attention;

#[cfg_attr(starter = "feedforward", path = "../feedforward/starter.rs")]
pub mod feedforward;

#[cfg_attr(starter = "loss", path = "../loss/starter.rs")]
pub mod loss;

#[cfg_attr(starter = "model", path = "../model/starter.rs")]
pub mod model;

#[cfg_attr(starter = "absolute", path = "../absolute/starter.rs")]
pub mod absolute;

#[cfg_attr(starter = "biases", path = "../biases/starter.rs")]
pub mod biases;

#[cfg_attr(starter = "frequencies", path = "../frequencies/starter.rs")]
pub mod frequencies;

#[cfg_attr(starter = "rotations", path = "../rotations/starter.rs")]
pub mod rotations;

#[cfg_attr(starter = "collectives", path = "../collectives/starter.rs")]
pub mod collectives;

pub mod prelude;
