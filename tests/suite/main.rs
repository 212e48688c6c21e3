//! The tests of the components. Read the files in their order.
//!
//! Properties run on fixed seeds. `PROPTEST_CASES` sets how many inputs, `PROPTEST_RNG_SEED`
//! draws others, and a failure prints the shrunken input.
#![allow(missing_docs)]

mod oracle;
mod support;

#[path = "29_absolute.rs"]
mod absolute;
#[path = "25_attention.rs"]
mod attention;
#[path = "30_biases.rs"]
mod biases;
#[path = "15_book.rs"]
mod book;
#[path = "24_checkpoints.rs"]
mod checkpoints;
#[path = "14_claims.rs"]
mod claims;
#[path = "33_collectives.rs"]
mod collectives;
#[path = "13_contract.rs"]
mod contract_kept;
#[path = "18_decoder_block.rs"]
mod decoder_block;
#[path = "12_dfdx_canary.rs"]
mod dfdx_canary;
#[path = "03_embedding.rs"]
mod embedding;
#[path = "25_feedforward.rs"]
mod feedforward;
#[path = "19_for_builders.rs"]
mod for_builders;
#[path = "27_frequencies.rs"]
mod frequencies;
#[path = "21_fused.rs"]
mod fused;
#[path = "08_half_precision.rs"]
#[cfg(feature = "f16")]
mod half_precision;
mod implementations;
#[path = "01_init.rs"]
mod init;
#[path = "20_layernorm.rs"]
mod layernorm;
#[path = "26_loss.rs"]
mod loss;
#[path = "23_model.rs"]
mod model;
#[path = "25_model_fused.rs"]
mod model_fused;
#[path = "07_modules.rs"]
mod modules;
#[path = "02_norm.rs"]
mod norm;
#[path = "31_own_encoding.rs"]
mod own_encoding;
#[path = "32_ownership.rs"]
mod ownership;
#[path = "35_package.rs"]
mod package;
#[path = "04_parallel.rs"]
mod parallel;
#[path = "34_positions.rs"]
mod positions;
#[path = "10_pytorch/mod.rs"]
mod pytorch;
#[path = "09_refusals.rs"]
mod refusals;
#[path = "05_rope.rs"]
mod rope;
#[path = "06_rope_calls.rs"]
mod rope_calls;
#[path = "28_rotations.rs"]
mod rotations;
#[path = "16_saving.rs"]
mod saving;
#[path = "26_score_bias.rs"]
mod score_bias;
#[path = "11_snapshots.rs"]
mod snapshots;
#[path = "17_strides.rs"]
mod strides;
#[path = "25_training.rs"]
mod training;
