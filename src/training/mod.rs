//! What training needs beside a loss: AdamW, the schedule of its learning rate, clipping, and activations that are not kept.
//!
//! ```
//! use quadrivium::loss::cross_entropy;
//! use quadrivium::model::LlamaTransformer;
//! use quadrivium::tensor::*;
//! use quadrivium::training::{AdamW, AdamWConfig, Schedule, clip_gradients};
//!
//! let dev = Cpu::default();
//! let mut model = LlamaTransformer::<9, 8, 2, 1, 4, 24, 1, f32, _>::new(&dev, Default::default())?;
//! let (text, next) = (dev.tensor([[1, 7, 2]]), dev.tensor([[7, 2, 8]])); // [b, s]
//!
//! let schedule = Schedule { peak: 0.02, warmup: 5, steps: 60, end: 0.002 };
//! let mut adam = AdamW::new(AdamWConfig::default())?;
//! let mut grads = model.try_alloc_grads()?;
//! let mut losses = Vec::new();
//! for step in 0..60 {
//!     let logits = model.try_forward(text.clone().traced(grads))?; //      [b, s, v]
//!     let loss = cross_entropy(logits, &next)?; //                         []
//!     losses.push(loss.array());
//!     grads = loss.try_backward()?;
//!     clip_gradients(&mut model, &mut grads, 1.0)?;
//!     adam.update(&mut model, &mut grads, schedule.rate(step))?;
//!     model.try_zero_grads(&mut grads)?;
//! }
//! assert!(losses[59] < 0.1 * losses[0]);
//! # Ok::<(), quadrivium::Error>(())
//! ```

mod adamw;
mod clip;
mod recompute;
mod schedule;
mod state;

pub use adamw::{AdamW, AdamWConfig};
pub use clip::clip_gradients;
pub use recompute::recomputed;
pub use schedule::Schedule;
