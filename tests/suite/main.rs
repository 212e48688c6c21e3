//! The tests of the components. Begin with `init`, `norm`, `embedding`, `parallel` and `rope`, in this order; each of the other files can
//! be read by itself.
//!
//! `contract_kept` asks the library for every law of the contract. The file of a component is therefore short, a plain
//! loop and a few properties, and `unasked.rs` in its folder has what the contract can't ask: modules, views, other
//! float types, saving.
//!
//! Properties run on fixed seeds. `PROPTEST_CASES` sets how many inputs, `PROPTEST_RNG_SEED`
//! draws others, and a failure prints the shrunken input.
#![allow(missing_docs)]

mod oracle;
mod support;

mod absolute;
mod attention;
mod biases;
mod book;
mod checkpoints;
mod claims;
mod claims_more;
mod collectives;
mod contract_kept;
mod decoder_block;
mod dfdx_canary;
mod embedding;
mod feedforward;
mod for_builders;
mod frequencies;
mod from_pytorch;
mod fused;
#[cfg(feature = "f16")]
mod half_precision;
mod implementations;
mod inference;
mod init;
mod kernels;
mod layernorm;
mod loss;
mod model;
mod model_fused;
mod modules;
mod norm;
mod own_encoding;
mod ownership;
mod package;
mod parallel;
mod positions;
mod pytorch;
mod recomputed;
mod refusals;
mod rope;
mod rope_calls;
mod rotations;
mod saving;
mod score_bias;
mod small_rust;
mod snapshots;
mod strides;
mod training;
