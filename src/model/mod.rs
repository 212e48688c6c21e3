//! A Llama decoder made of the course's parts.
//!
//! [`LlamaTransformer`] is the whole: embedding, blocks, norm, output. Its parts are type parameters, with traits
//! that say what each must do; so a learner's own norm, a sharded embedding or another position encoding can be used
//! in a model. [`LlamaCache`] keeps keys and values for decoding, and [`Sampler`] chooses tokens.

mod arithmetic;
mod block;
mod cache;
mod formula;
mod llama;
mod parts;
mod rope;
mod sampling;
mod sizes;

pub use arithmetic::{Arithmetic, LlamaSizes, Parameters};
pub use block::TransformerBlock;
pub use cache::LlamaCache;
pub use formula::pre_norm_block;
pub use llama::{LlamaConfig, LlamaTransformer};
pub use parts::{Embed, Head, Normalize, Shards, Tied, Tokens};
pub use rope::{InLlama, LlamaRope, LlamaRopeConfig};
pub use sampling::{Sampler, SamplingConfig};
pub use sizes::{Llama32Of1B, SmolLm135M, TinyLlama1B};
