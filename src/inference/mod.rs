//! Checkpoints of Llama's shape, of any size, for inference on a CPU.
//!
//! [`LlamaTransformer`](crate::model::LlamaTransformer) has its sizes in its type and computes with dfdx, so it can be trained, and
//! each of its parts can be another. [`LlamaModel`] has its sizes from the file, and computes on slices: its weights stay where the
//! file is mapped, or are kept in fewer bytes, because a decoded token takes at least as long as memory takes to deliver them.
//! Beside Llama it knows what Mistral, Qwen2, Qwen3, SmolLM3 and Phi-3 add ([`Family`]). Where a checkpoint is of both
//! kinds, both compute the same up to rounding.

mod attend;
mod cache;
mod families;
mod generate;
mod loops;
mod mapped;
mod matrix;
mod model;
mod open;
mod packed;
mod product;
mod rotate;

pub use cache::{CacheKind, TextCache};
pub use families::{DecoderConfig, Family, LayerConfig};
pub use generate::GenerateConfig;
pub use matrix::{WeightError, WeightKind};
pub use model::LlamaModel;
pub use open::WeightReport;
