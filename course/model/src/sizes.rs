//! The sizes that there are as types.

use crate::error::Result;
use quadrivium::checkpoint::{Checkpoint, CheckpointConfig, RopeScaling};
use quadrivium::model::{LlamaConfig, LlamaTransformer, Tied};
use quadrivium::tensor::*;
use quadrivium::{NtkAwareRopeConfig, PastCache};
use serde::{Deserialize, Serialize};

/// The model that is trained in class: 4 blocks, 128 elements a token, 4 query heads over 2 key heads.
pub type Small<N = Norm<128>, E = Embedding<SMALL_VOCAB, 128>, P = Rope<32>> =
    LlamaTransformer<SMALL_VOCAB, 128, 4, 2, 32, 384, 4, f32, Cpu, Tied, E, N, P>;

/// A model for tests.
pub type Tiny<N = Norm<16>, E = Embedding<TINY_VOCAB, 16>, P = Rope<8>> =
    LlamaTransformer<TINY_VOCAB, 16, 2, 1, 8, 48, 2, f32, Cpu, Tied, E, N, P>;

/// The library's norm.
pub type Norm<const H: usize> = quadrivium::GroupRmsNorm<H, H, f32, Cpu>;
/// The library's table.
pub type Embedding<const V: usize, const H: usize> = quadrivium::VocabEmbedding<V, H, f32, Cpu>;
/// The library's position encoding.
pub type Rope<const HD: usize> = quadrivium::model::LlamaRope<HD, Cpu>;

/// How many times longer than in training the texts of `long` are.
pub const LONGER: usize = 8;

/// `v` of [`Small`].
pub const SMALL_VOCAB: usize = 512;
/// `v` of [`Tiny`].
pub const TINY_VOCAB: usize = 272;

/// Where matrices and table start. The default, 0.02, is for tokens of some thousand elements; a sum of 128 products needs
/// larger ones to matter beside its input.
pub(crate) const INIT_STD: f64 = 0.04;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// [`Small`].
    Small,
    /// [`Tiny`].
    Tiny,
}

impl Size {
    /// Its sizes, as `config.json` names them.
    pub fn config(self) -> CheckpointConfig {
        let common = CheckpointConfig {
            vocab_size: SMALL_VOCAB,
            hidden_size: 128,
            intermediate_size: 384, // the rule's 341, up to a multiple of 64
            num_hidden_layers: 4,
            num_attention_heads: 4,
            num_key_value_heads: 2,
            head_dim: 32,
            rms_norm_eps: 1e-6,
            rope_theta: 10_000.0,
            rope_scaling: RopeScaling::None,
            max_position_embeddings: 128,
            tie_word_embeddings: true,
            eos_token_id: Vec::new(),
        };
        match self {
            Self::Small => common,
            Self::Tiny => CheckpointConfig {
                vocab_size: TINY_VOCAB,
                hidden_size: 16,
                intermediate_size: 48,
                num_hidden_layers: 2,
                num_attention_heads: 2,
                num_key_value_heads: 1,
                head_dim: 8,
                max_position_embeddings: 16,
                ..common
            },
        }
    }

    /// `b` and `s` of a batch.
    pub fn batch(self) -> (usize, usize) {
        match self {
            Self::Small => (4, 128),
            Self::Tiny => (2, 16),
        }
    }

    /// The size of a checkpoint.
    pub fn of(checkpoint: &Checkpoint) -> Self {
        let tiny = checkpoint.config().hidden_size == Self::Tiny.config().hidden_size;
        if tiny { Self::Tiny } else { Self::Small }
    }
}

/// The settings of a model of these sizes.
pub fn settings(config: &CheckpointConfig, seed: u64) -> LlamaConfig {
    let rope = NtkAwareRopeConfig {
        base: config.rope_theta,
        max_seq_len: config.max_position_embeddings,
        past_cache: PastCache::Refuse,
        ..Default::default()
    };
    LlamaConfig { eps: config.rms_norm_eps, rope, init_std: INIT_STD, init_seed: seed }
}

/// The device, which keeps memory for the next step.
pub fn device() -> Cpu {
    let dev = Cpu::default();
    dev.enable_cache();
    dev
}

/// The library's model of a size, untrained.
///
/// # Errors
/// What the library refuses.
pub fn small(dev: &Cpu, seed: u64) -> Result<Small> {
    Ok(Small::tied(dev, settings(&Size::Small.config(), seed))?)
}

/// As [`small`].
///
/// # Errors
/// What the library refuses.
pub fn tiny(dev: &Cpu, seed: u64) -> Result<Tiny> {
    Ok(Tiny::tied(dev, settings(&Size::Tiny.config(), seed))?)
}
