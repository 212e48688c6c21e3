//! RoPE.

use super::{length, rows};
use crate::error::{Error, Result};
use crate::rope::Layout;
use crate::rope::fused::Turn;
use crate::rope::layouts::Pairs;
use crate::tensor::Scalar;

/// Cosines and sines of positions, each `[positions, rotary_dim]`: one number for each dimension that turns, so both of a pair have
/// theirs.
#[derive(Debug, Clone, Copy)]
pub struct RotaryAngles<'t> {
    /// Cosines.
    pub cos: &'t [f32],
    /// Sines.
    pub sin: &'t [f32],
    /// The dimensions of a head that turn: its first ones.
    pub rotary_dim: usize,
    /// Which two of them turn together.
    pub layout: Layout,
}

/// Turns each head of each token by the row of the tables that is the token's position.
///
/// Shapes: `x` and `y` `[tokens, heads, head_dim]`, `positions` `[tokens]`. See [`apply_rotary`](crate::functional::apply_rotary).
///
/// # Errors
/// A head of other than 4 to 65,536 dimensions, or of an odd number; more dimensions that turn than there are; a position past the
/// tables; a slice of another length. Then nothing is written.
pub fn rotate<N: Scalar>(
    x: &[N],
    tables: RotaryAngles<'_>,
    positions: &[usize],
    head_dim: usize,
    y: &mut [N],
) -> Result<()> {
    length("y", x.len(), y)?;
    if let Some(turn) = checked(x.len(), tables, positions, head_dim)? {
        turn.forward(&x, y);
    }
    Ok(())
}

/// Adds to `dx`, given `dy`, both `[tokens, heads, head_dim]`.
///
/// # Errors
/// As for [`rotate`].
pub fn rotate_backward<N: Scalar>(
    dy: &[N],
    tables: RotaryAngles<'_>,
    positions: &[usize],
    head_dim: usize,
    dx: &mut [N],
) -> Result<()> {
    length("dx", dy.len(), dx)?;
    if let Some(turn) = checked(dy.len(), tables, positions, head_dim)? {
        turn.backward(dy, dx);
    }
    Ok(())
}

type Of<'t> = Turn<&'t [f32], Box<dyn Fn(usize) -> usize + Sync + 't>>;

/// `None` if there are no tokens.
fn checked<'t>(
    elements: usize,
    tables: RotaryAngles<'t>,
    positions: &'t [usize],
    head_dim: usize,
) -> Result<Option<Of<'t>>> {
    let RotaryAngles { cos, sin, rotary_dim, layout } = tables;
    if rotary_dim % 2 != 0 {
        return Err(Error::RotaryDim { rotary_dim, head_dim });
    }
    let pairs = Pairs::new(layout, head_dim, rotary_dim / 2)?;
    let end = rows("cos", rotary_dim, cos)?;
    length("sin", cos.len(), sin)?;
    if positions.is_empty() && elements == 0 {
        return Ok(None);
    }
    let nh = elements / positions.len().max(1) / head_dim;
    crate::checks::same_shape("x", &[positions.len() * nh.max(1) * head_dim], &[elements])?;
    if let Some(position) = positions.iter().find(|position| **position >= end) {
        return Err(Error::PastCache { end: position.saturating_add(1), cached_len: end });
    }
    let place = Box::new(|token: usize| positions[token]);
    Ok(Some(Turn { cos, sin, width: rotary_dim, place, nh, hd: head_dim, pairs }))
}
