//! The sizes of some models that have been published, as types.

use super::llama::LlamaTransformer;
use super::parts::Tied;

/// SmolLM-135M, of Hugging Face: 134.5 million weights, the output tied.
pub type SmolLm135M<F, D> = LlamaTransformer<49_152, 576, 9, 3, 64, 1536, 30, F, D, Tied>;

/// TinyLlama-1.1B (Zhang et al. 2024): 1.1 billion weights.
pub type TinyLlama1B<F, D> = LlamaTransformer<32_000, 2048, 32, 4, 64, 5632, 22, F, D>;

/// Llama 3.2 1B, of Meta: 1.24 billion weights, the output tied.
///
/// Its checkpoint scales RoPE's frequencies by the rule [`llama3`](crate::frequencies::RotaryFrequencies::llama3).
pub type Llama32Of1B<F, D> = LlamaTransformer<128_256, 2048, 32, 8, 64, 8192, 16, F, D, Tied>;
