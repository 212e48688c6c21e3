//! Fused loops on plain slices, forward and backward, for data that dfdx does not own: an Apache Arrow array, a tensor behind candle's `CustomOp` or
//! in burn, a mapped file.
//!
//! Tensors on a CPU run the same loops, so results agree bit for bit. Large inputs are split across threads. Numbers may be `f32`,
//! `f64`, `f16` or `bf16`; 16-bit numbers are computed in `f32` and rounded once, except in [`vocab_embedding_backward`]. All slices are row-major: the last axis varies fastest.
//! A forward pass overwrites its result. A backward pass *accumulates* into its gradients, as a tape does, so start them at zero.
//! On an error nothing is written.
//!
//! ```
//! use quadrivium::kernels::{group_rms_norm, group_rms_norm_backward};
//!
//! let (x, weight) = ([3.0f32, 4.0, 0.6, -0.8], [1.0; 4]);
//! let mut y = [0.0; 4];
//! group_rms_norm(&x, &weight, 2, 0.0, &mut y)?; // each group of 2 divided by its root mean square
//! assert!((y[0] - 0.8485).abs() < 1e-4);
//!
//! let (mut dx, mut dweight) = ([0.0; 4], [0.0; 4]);
//! group_rms_norm_backward(&x, &weight, 2, 0.0, &[1.0; 4], (&mut dx, &mut dweight))?;
//! assert_eq!(dweight, y);
//! # Ok::<(), quadrivium::Error>(())
//! ```

mod attention;
mod gate;
mod lookup;
mod loss;
mod norm;
mod rotate;

pub use crate::tensor::Scalar;
pub use attention::{AttentionSizes, SoftmaxStats, causal_attention, causal_attention_backward};
pub use gate::{silu_mul, silu_mul_backward};
pub use half::{bf16, f16};
pub use lookup::{vocab_embedding, vocab_embedding_backward};
pub use loss::{cross_entropy, cross_entropy_backward};
pub use norm::{group_rms_norm, group_rms_norm_backward};
pub use rotate::{CosSin, apply_rotary_pos_emb, apply_rotary_pos_emb_backward};

use crate::checks::{MAX_ELEMENTS, same_shape};
use crate::error::{Error, Result};

/// Refuses a slice of the wrong length.
fn length<N>(name: &'static str, expected: usize, got: &[N]) -> Result<()> {
    same_shape(name, &[expected], &[got.len()])
}

/// How many elements a shape has. None of its sizes may be 0.
fn elements(name: &'static str, shape: &[usize]) -> Result<usize> {
    if shape.contains(&0) {
        return Err(Error::Empty { name, shape: shape.to_vec() });
    }
    let elements = shape.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
    let fits = elements.filter(|elements| *elements <= MAX_ELEMENTS);
    fits.ok_or(Error::TooLarge { name, shape: shape.to_vec(), limit: MAX_ELEMENTS })
}
