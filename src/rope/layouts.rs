//! The two layouts of a head: which dimensions turn together, and how one becomes the other.

use super::frequencies::check_head_dim;
use crate::checks::check_size;
use crate::error::{Error, Result};
use crate::tensor::*;

/// Which two dimensions of a head turn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `(x_i, x_{i + d/2})`: Llama, GPT-NeoX. Tables have two equal halves.
    HalfSplit,
    /// `(x_{2i}, x_{2i + 1})`: GPT-J, GLM and the paper. Tables have equal neighbours.
    Interleaved,
}

/// Which dimensions of a head turn, and which two of them together: the first `rotary_dim`, in a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pairs {
    pub layout: Layout,
    pub rotary_dim: usize,
}

impl Pairs {
    /// The first `planes` pairs of a head turn.
    pub fn new(layout: Layout, head_dim: usize, planes: usize) -> Result<Self> {
        let head_dim = check_head_dim(head_dim)?;
        let rotary_dim = planes.saturating_mul(2);
        if planes == 0 || rotary_dim > head_dim {
            return Err(Error::RotaryDim { rotary_dim, head_dim });
        }
        Ok(Self { layout, rotary_dim })
    }

    /// The two dimensions of a plane.
    pub fn of(&self, plane: usize) -> [usize; 2] {
        match self.layout {
            Layout::HalfSplit => [plane, plane + self.rotary_dim / 2],
            Layout::Interleaved => [2 * plane, 2 * plane + 1],
        }
    }
}

/// Reorders each head from half-split to adjacent pairs: `(0, d/2, 1, d/2 + 1, ..)`.
///
/// Shape: `[b, s, nh, hd]`. Rotating adjacent pairs of the result equals rotating halves of `x`.
///
/// # Errors
/// A head size that is odd, below 4 or above 65,536; an empty input, or one of more elements than
/// memory has addresses.
pub fn half_split_to_interleaved<B: Dim, S: Dim, N: Dim, H: Dim, F, D, T>(
    x: Tensor<(B, S, N, H), F, D, T>,
) -> Result<Tensor<(B, S, N, H), F, D, T>>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    let half = check_heads(x.shape())? / 2;
    transpose_head(x, (2, half)).map_err(Error::device)
}

/// The inverse of [`half_split_to_interleaved`]: `(0, 2, 4, .., 1, 3, 5, ..)`.
///
/// # Errors
/// As for [`half_split_to_interleaved`].
pub fn interleaved_to_half_split<B: Dim, S: Dim, N: Dim, H: Dim, F, D, T>(
    x: Tensor<(B, S, N, H), F, D, T>,
) -> Result<Tensor<(B, S, N, H), F, D, T>>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    let half = check_heads(x.shape())? / 2;
    transpose_head(x, (half, 2)).map_err(Error::device)
}

/// Reads each head as a matrix of the given size and transposes it.
fn transpose_head<B: Dim, S: Dim, N: Dim, H: Dim, F, D, T>(
    x: Tensor<(B, S, N, H), F, D, T>,
    (rows, columns): (usize, usize),
) -> Raw<Tensor<(B, S, N, H), F, D, T>, D>
where
    F: Float,
    D: Device<F>,
    T: Tape<F, D>,
{
    let (b, s, n, h) = *x.shape();
    x.try_in_order()?
        .try_reshape_like(&(b, s, n, rows, columns))?
        .try_permute::<_, Axes5<0, 1, 2, 4, 3>>()?
        .try_reshape_like(&(b, s, n, h))
}

pub(crate) fn check_heads<B: Dim, S: Dim, N: Dim, H: Dim>(x: &(B, S, N, H)) -> Result<usize> {
    check_size("x", x)?;
    check_head_dim(x.3.size())
}
