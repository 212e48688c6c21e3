//! The fused loops on plain slices, forward and backward, for storage that is not dfdx's: arrow, candle's `CustomOp`, burn, a mapped file.
//!
//! They are the same loops that tensors take on a CPU, with the same bits, in threads if there is enough to do. Numbers may be `f32`,
//! `f64`, `f16` or `bf16`; halves are computed in `f32` and rounded once. All slices are contiguous, the last axis first in memory.
//! A forward pass overwrites its result. A backward pass *adds* to its gradients, as a tape does; begin with zeros.
//!
//! ```
//! use quadrivium::kernels::{norm, norm_backward};
//!
//! let (x, weight) = ([3.0f32, 4.0, 0.6, -0.8], [1.0; 4]);
//! let mut y = [0.0; 4];
//! norm(&x, &weight, 2, 0.0, &mut y)?; // each group of 2 divided by its root mean square
//! assert!((y[0] - 0.8485).abs() < 1e-4);
//!
//! let (mut dx, mut dweight) = ([0.0; 4], [0.0; 4]);
//! norm_backward(&x, &weight, 2, 0.0, &[1.0; 4], (&mut dx, &mut dweight))?;
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
pub use attention::{AttentionSizes, Softmaxes, attention, attention_backward};
pub use gate::{silu_mul, silu_mul_backward};
pub use lookup::{lookup, lookup_backward};
pub use loss::{cross_entropy, cross_entropy_backward};
pub use norm::{norm, norm_backward};
pub use rotate::{RotaryAngles, rotate, rotate_backward};

use crate::checks::same_shape;
use crate::error::{Error, Result};

/// Refuses a slice of another length.
fn length<N>(name: &'static str, expected: usize, got: &[N]) -> Result<()> {
    same_shape(name, &[expected], &[got.len()])
}

/// How many rows of `width` numbers a slice has.
fn rows<N>(name: &'static str, width: usize, got: &[N]) -> Result<usize> {
    if width == 0 {
        return Err(Error::Empty { name, shape: vec![got.len(), 0] });
    }
    let rows = got.len() / width;
    length(name, rows * width, got)?;
    Ok(rows)
}
