//! A front end of a Transformer, as a course: four components, each a dfdx module whose shapes the
//! compiler checks, each with its tests in `tests/suite`.
//!
//! | Component | File | It computes |
//! | --- | --- | --- |
//! | [`VocabEmbedding`] | [`vocab_emb`] | one row of a table for each token id |
//! | [`ParallelVocabEmbedding`] | [`vocab_emb`] | the same, the table cut over ranks |
//! | [`GroupRmsNorm`] | [`norm`] | each group of a token divided by its root mean square |
//! | [`NtkAwareRope`] | [`pos_emb`] | queries and keys turned by their position |
//!
//! The modules hold weights and settings. What they compute is in [`functional`], forward and
//! backward side by side; read that file first. [`init`] draws PyTorch's numbers. [`tensor`] is
//! the one place where dfdx is imported.
//!
//! It does not contain attention, a training loop, or communication between ranks.
//!
//! # Words and letters
//!
//! A *tape* is dfdx's record of what was computed; a gradient is found by running it backward. A
//! *rank* is one of several processes that share a model; a *shard* is its part of a table. A
//! *plane* is a pair of dimensions that RoPE turns together.
//!
//! Every tensor line says its shape in these letters:
//!
//! | Letter | Meaning | Letter | Meaning |
//! | --- | --- | --- | --- |
//! | `b` | batch | `v` | vocabulary size |
//! | `s` | sequence length | `e` | embedding dimension (`M` in types) |
//! | `h` | hidden size | `w` | world size, the number of ranks |
//! | `gz` | group size, elements per group | `r` | rank |
//! | `g` | `h / gz`, groups | `n` | `v / w`, rows of a shard |
//! | `nh` | heads | `ms` | training length, `max_seq_len` |
//! | `hd` | head size (`d` in formulas) | `k` | NTK ratio |
//! | | | `es` | `ms * k`, cached positions |
//!
//! As type parameters: `B`, `S`, `H`, `V`, `M`, `N`, `W` are sizes, `F` is the float type, `D` the
//! device, `T` the tape.
//!
//! # Example
//!
//! Three tokens on their way to attention:
//!
//! ```
//! use quadrivium::tensor::*;
//! use quadrivium::{GroupRmsNorm, NtkAwareRope, NtkAwareRopeConfig, VocabEmbedding};
//!
//! let dev = Cpu::default();
//! let embedding = VocabEmbedding::<50, 16, f32, _>::new(&dev, Default::default())?;
//! let norm = GroupRmsNorm::<16, 8, f32, _>::new(&dev, Default::default())?;
//! let rope = NtkAwareRope::<8, _>::new(&dev, NtkAwareRopeConfig::default())?;
//!
//! let ids = dev.tensor([[7, 42, 7]]); //                           [b, s]
//! let x = norm.try_forward(embedding.try_forward(ids)?)?; //       [b, s, h]
//! let heads = x.reshape::<Rank4<1, 3, 2, 8>>(); //                 [b, s, nh, hd]
//! let turned = rope.try_forward(heads.clone())?; //                [b, s, nh, hd]
//!
//! let (before, after) = (heads.array(), turned.array());
//! assert_eq!(before[0][0], after[0][0]); // position 0 is not turned
//! assert_eq!(before[0][0], before[0][2]); // the same token, the same row
//! assert_ne!(after[0][0], after[0][2]); // but not at the same position
//! # Ok::<(), quadrivium::Error>(())
//! ```
//!
//! # Training
//!
//! The tape travels with the tensors. Trace the ids once for each forward pass. Use a tensor twice
//! with `with_empty_tape`: a clone would be a constant.
//!
//! ```
//! use quadrivium::tensor::optim::{Optimizer, Sgd, SgdConfig};
//! use quadrivium::tensor::*;
//! use quadrivium::{GroupRmsNorm, NtkAwareRope, VocabEmbedding};
//!
//! let dev = Cpu::default();
//! let mut model = (
//!     VocabEmbedding::<50, 16, f32, _>::new(&dev, Default::default())?,
//!     GroupRmsNorm::<16, 8, f32, _>::new(&dev, Default::default())?,
//! );
//! let rope = NtkAwareRope::<8, _>::new(&dev, Default::default())?;
//! let mut sgd = Sgd::new(&model, SgdConfig { lr: 0.1, ..Default::default() });
//!
//! let grads = model.alloc_grads();
//! let ids = dev.tensor([[7, 42, 7]]); // a batch of one
//! let x = model.try_forward(ids.traced(grads))?.reshape::<Rank4<1, 3, 2, 8>>();
//! let q = rope.try_forward((x.with_empty_tape(), 0))?; // queries at positions 0, 1, 2
//! let k = rope.try_forward((x, 1))?; // keys one position on
//! let loss = (q * k).mean::<Rank0, _>();
//!
//! let before = model.0.weight.as_vec();
//! let mut grads = loss.backward();
//! sgd.update(&mut model, &grads)?;
//! model.zero_grads(&mut grads);
//! let after = model.0.weight.as_vec();
//! assert_ne!(after[42 * 16..43 * 16], before[42 * 16..43 * 16]);
//! assert_eq!(after[..16], before[..16]); // id 0 was not in the text
//! # Ok::<(), quadrivium::Error>(())
//! ```
//!
//! # Features
//!
//! - `f16`: half precision. Statistics and angles are in `f32`, and results are rounded once. It
//!   needs `half` 2.4.1 exactly: later ones bring another `rand`, with which dfdx does not compile.
//!   If your `Cargo.lock` holds a later one, cargo stops with ``failed to select a version for
//!   `half` ``; then run `cargo update -p half --precise 2.4.1`. A crate that asks for `half` 2.5 or
//!   later can't stand beside this feature.
//! - `cuda`: tensors on an NVIDIA GPU; building it needs a CUDA toolkit.
//!
//! # Errors and panics
//!
//! Functions that return [`Result`](error::Result) do not panic, whatever they are given. A
//! call that fails has changed nothing. dfdx's `forward` is `try_forward` with an `unwrap`.
//! Memory is the exception: a CPU that has none left ends the process, as in all Rust programs,
//! and on a GPU dfdx unwraps what the driver reports.
//!
//! On a CPU, the same input gives the same bits, whatever the number of threads. On a GPU, dfdx
//! adds up in no fixed order, so last bits may differ from run to run.
//!
//! The modules report [`Error`]; a dfdx tuple needs one error type for all its modules, so put
//! these beside dfdx's own modules in a struct, not in a tuple. `examples/decoder_block.rs` does.
//! `?` turns what dfdx's devices and optimizers report into [`Error`].

pub mod builder;
pub mod error;
pub mod functional;
pub mod init;
pub mod norm;
pub mod pos_emb;
pub mod tensor;
pub mod vocab_emb;
pub mod weights;

pub use error::Error;
pub use norm::{GroupRmsNorm, GroupRmsNormConfig};
pub use pos_emb::{NtkAwareRope, NtkAwareRopeConfig};
pub use vocab_emb::{
    ParallelVocabEmbedding, ParallelVocabEmbeddingConfig, VocabEmbedding, VocabEmbeddingConfig,
};

/// The README's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
