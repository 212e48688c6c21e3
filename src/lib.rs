//! lib
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
