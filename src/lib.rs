//! A front end of a Transformer, as a course. Each component is a dfdx module whose shapes the
//! compiler checks, with its tests in `tests/suite`.
//!
//! | Component | Folder | It computes |
//! | --- | --- | --- |
//! | [`VocabEmbedding`] | [`embedding`] | one row of a table for each token id |
//! | [`ParallelVocabEmbedding`] | [`parallel`] | the same, the table split across ranks |
//! | [`GroupRmsNorm`] | [`norm`] | each group of a token divided by its root mean square |
//! | [`NtkAwareRope`] | [`rope`] | queries and keys turned by their position |
//! | [`LayerNorm`] | [`layernorm`] | each token minus its mean, divided by its standard deviation |
//!
//! And what they are the front end of, a Llama decoder:
//!
//! | Part | Folder | It computes |
//! | --- | --- | --- |
//! | [`Linear`](linear::Linear) | [`linear`] | the product with a matrix of weights |
//! | [`GroupedQueryAttention`](attention::GroupedQueryAttention) | [`attention`] | what earlier tokens have to say, with a cache |
//! | [`PositionEncoding`](position::PositionEncoding) | [`position`] | what a model knows of order, at tokens, queries and keys, or scores |
//! | [`Sinusoidal`](absolute::Sinusoidal) | [`absolute`] | a vector for each position, added to tokens |
//! | [`Alibi`](biases::Alibi) | [`biases`] | a number for each distance, added to scores |
//! | [`ScaledRope`](frequencies::ScaledRope) | [`frequencies`] | RoPE with other frequencies, for longer texts |
//! | [`AxialRope`](rotations::AxialRope) | [`rotations`] | rotations that fade, turn by two numbers, or need no softmax |
//! | [`SwiGlu`](feedforward::SwiGlu) | [`feedforward`] | a network for each token alone |
//! | [`LlamaTransformer`](model::LlamaTransformer) | [`model`] | logits from ids; and the choice of a token |
//! | [`cross_entropy`](loss::cross_entropy) | [`loss`] | how surprised a model is |
//! | [`vocab_parallel_cross_entropy`](collectives::vocab_parallel_cross_entropy) | [`collectives`] | the same, the vocabulary split across ranks |
//! | [`AdamW`](training::AdamW) | [`training`] | steps that make it less so |
//! | [`Checkpoint`](checkpoint::Checkpoint) | [`checkpoint`] | weights as they are published |
//!
//! Each component's folder has the module with its weights and settings in `mod.rs`, and what it computes in
//! `formula.rs`, forward and backward side by side; read that file first. `fused.rs` computes the same on a
//! CPU, in one pass over memory; [`composed`] asks for the formula there, and [`kernels`] has the same loops on slices. [`init`] draws PyTorch's
//! numbers. [`tensor`] is the one place where dfdx is imported. What all use lies below them:
//! `tensor`, then `error`, `checks`, `cpu`, `init` and `weights`, and no file knows one above it.
//!
//! # Optimize your own crate
//!
//! The modules are generic, so their loops are compiled in the crate that uses them, by its profile. Without optimization a
//! training step takes thirty times as long, and it is not enough to optimize the dependencies. Put this into your `Cargo.toml`:
//!
//! ```toml
//! [profile.dev]
//! opt-level = 1
//! ```
//!
//! # What it does not contain
//!
//! It does not contain a tokenizer, or a connection between ranks: [`collectives`] sees a trait.
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
//! | `nkv` | key and value heads | `es` | `ms * k`, cached positions |
//! | `f` | hidden size of the feed-forward (`FF` in types) | `p` | positions in a cache of keys |
//! | `t` | positions that keys have, `p + s` | `i`, `o` | elements in, elements out |
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
//! with `with_empty_tape`: `x.clone()` does not compile where `x` may have a tape.
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
//! - `f16`: half precision. Statistics and angles are in `f32`, and results are rounded once. dfdx's
//!   own layers have it with `half` 2.4.1 only: if the compiler says that a layer does not implement
//!   `BuildOnDevice<Cpu, f16>`, or `f16` not `SampleUniform`, run `cargo update -p half --precise 2.4.1`.
//! - `cuda`: tensors on an NVIDIA GPU; building it needs a CUDA toolkit.
//!
//! # Errors and panics
//!
//! Functions that return [`Result`](error::Result) do not panic on any input. A call that fails has changed nothing.
//! dfdx's `forward` is `try_forward` with an `unwrap`. Memory is the exception: a CPU that has none left ends the
//! process, as in all Rust programs, and on a GPU dfdx unwraps what the driver reports.
//!
//! On a CPU, the same input gives the same bits with any number of threads. On a GPU, dfdx adds up in no fixed order,
//! so last bits may differ from run to run.
//!
//! The modules report [`Error`]; a dfdx tuple needs one error type for all its modules, so put
//! these beside dfdx's own modules in a struct, not in a tuple. `examples/decoder_block.rs` does.
//! `?` turns what dfdx's devices and optimizers report into [`Error`].

pub mod absolute;
pub mod attention;
pub mod biases;
pub mod checkpoint;
mod checks;
pub mod collectives;
mod cpu;
pub mod embedding;
pub mod error;
pub mod feedforward;
pub mod frequencies;
mod host;
pub mod inference;
pub mod init;
pub mod kernels;
pub mod layernorm;
pub mod linear;
pub mod loss;
pub mod model;
mod module;
pub mod norm;
mod number;
pub mod parallel;
pub mod position;
mod positions;
pub mod rope;
pub mod rotations;
pub mod training;
pub mod weights;

pub use embedding::{VocabEmbedding, VocabEmbeddingConfig};
pub use error::Error;
pub use layernorm::{LayerNorm, LayerNormConfig};
pub use norm::{GroupRmsNorm, GroupRmsNormConfig};
pub use parallel::{ParallelVocabEmbedding, ParallelVocabEmbeddingConfig};
pub use rope::{NtkAwareRope, NtkAwareRopeConfig, PastCache};

pub use cpu::{among_threads, composed, in_threads};

/// All that is used of dfdx, and what it lacks: float types with an arithmetic type, dimensions that are quotients, and
/// gradients that are written by hand.
pub mod tensor {
    // A module and no other name for the crate: the compiler's messages name types by this path.
    #[doc(inline)]
    pub use quadrivium_tensor::*;
}

pub mod functional {
    //! The computations as free functions.
    //!
    //! The modules hold weights and settings and call these. Sizes are run-time values here, so
    //! what the compiler refuses for a module is an [`Error`](crate::Error) for a function.
    //!
    //! Every function takes a tensor with a tape or without. With a tape, the gradient defined below the forward pass
    //! is recorded. Norms and rotation compute in `f32` or better and round to the input's type once. Embeddings copy
    //! rows.

    #[doc(inline)]
    pub use crate::{
        absolute::{add_learned_positions, add_sinusoids, sinusoid_shift, sinusoids},
        attention::{
            biased_attention, causal_attention, causal_mask, repeat_kv, sliding_window_mask,
            softmax_backward,
        },
        biases::{
            alibi_bias, alibi_slopes, kerple_bias, relative_scores, relative_scores_direct,
            t5_bias, t5_bucket,
        },
        embedding::vocab_embedding,
        feedforward::{ffn_hidden_size, silu_mul},
        frequencies::rotate_by_frequencies,
        layernorm::layer_norm,
        linear::linear,
        loss::{cross_entropy, mean_loss, next_tokens, perplexity},
        model::pre_norm_block,
        norm::group_rms_norm,
        parallel::{owned_shard_embedding, vocab_shard_embedding},
        rope::{
            Layout, apply_rotary_pos_emb, apply_rotary_pos_emb_complex,
            apply_rotary_pos_emb_interleaved, half_split_to_interleaved, interleaved_to_half_split,
        },
        rotations::{linear_attention, linear_attention_running},
    };
}

pub mod builder {
    //! Module descriptions without device and float type, as dfdx has them in `dfdx::nn::builders`.
    //!
    //! They name a module inside a tuple of modules;
    //! [`build_module`](crate::tensor::DeviceBuildExt::build_module) builds it with its default
    //! settings, seed 42 among them: two norms of the same size start with the same weights. For other settings use
    //! the modules' own `new`.
    //!
    //! ```
    //! use quadrivium::builder::{GroupRmsNorm, VocabEmbedding};
    //! use quadrivium::tensor::*;
    //!
    //! let dev = Cpu::default();
    //! type FrontEnd = (VocabEmbedding<100, 8>, GroupRmsNorm<8, 4>);
    //! let front_end = dev.build_module::<FrontEnd, f32>();
    //! let y = front_end.forward(dev.tensor([[1, 2, 3]]));
    //! assert_eq!(y.shape().concrete(), [1, 3, 8]);
    //! ```

    #[doc(inline)]
    pub use crate::{
        embedding::builder::VocabEmbedding, layernorm::builder::LayerNorm,
        norm::builder::GroupRmsNorm, parallel::builder::ParallelVocabEmbedding,
        rope::builder::NtkAwareRope,
    };
}

pub mod vocab_emb {
    //! Both vocabulary embeddings: those of [`embedding`](crate::embedding) and of
    //! [`parallel`](crate::parallel).

    #[doc(inline)]
    pub use crate::{
        embedding::{VocabEmbedding, VocabEmbeddingConfig},
        parallel::{
            Ownership, ParallelVocabEmbedding, ParallelVocabEmbeddingConfig, Sharing, Shuffle,
            TokenLoad, padded_vocab_size, shard_range,
        },
    };
}

pub mod pos_emb {
    //! What turns queries and keys: [`rope`](crate::rope), [`frequencies`](crate::frequencies) and
    //! [`rotations`](crate::rotations). The rotations themselves are in [`functional`](crate::functional).

    #[doc(inline)]
    pub use crate::{
        frequencies::{
            DynamicNtk, DynamicNtkRope, DynamicNtkRopeConfig, LearnableRope, LearnableRopeConfig,
            Llama3, LongRope, RotaryFrequencies, ScaledRope, ScaledRopeConfig, Yarn,
        },
        rope::{
            MAX_TABLE_POSITIONS, NtkAwareRope, NtkAwareRopeConfig, PastCache, RotaryTables,
            ntk_base, ratio_for_length, rotary_frequencies,
        },
        rotations::{AxialPlanes, AxialRope, AxialRopeConfig, XPos, XPosConfig},
    };
}

/// The README's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
