//! RoPE.

use super::{elements, length};
use crate::checks::same_shape;
use crate::error::{Error, Result};
use crate::rope::Layout;
use crate::rope::fused::Turn;
use crate::rope::layouts::Pairs;
use crate::tensor::Scalar;

/// Cosines and sines of positions, each `[positions, rotary_dim]`: one entry for each dimension that rotates, so both dimensions of a pair have
/// their own.
#[derive(Debug, Clone, Copy)]
pub struct CosSin<'t> {
    /// Cosines.
    pub cos: &'t [f32],
    /// Sines.
    pub sin: &'t [f32],
    /// How many dimensions of a head rotate, counted from the first.
    pub rotary_dim: usize,
    /// How they are paired.
    pub layout: Layout,
}

/// Rotates the first `rotary_dim` dimensions of each head by the table row at the token's position, and copies the rest.
///
/// Shapes: `x` and `y` `[tokens, heads, head_dim]`, `positions` `[tokens]`. See
/// [`functional::apply_rotary_pos_emb`](crate::functional::apply_rotary_pos_emb).
///
/// # Errors
/// A head size of 0; a `rotary_dim` that is odd, 0 or larger than the head; a position past the tables; a slice of the wrong length.
pub fn apply_rotary_pos_emb<N: Scalar>(
    x: &[N],
    tables: CosSin<'_>,
    positions: &[usize],
    head_dim: usize,
    y: &mut [N],
) -> Result<()> {
    let turn = checked(("x", x.len()), tables, positions, head_dim)?;
    length("y", x.len(), y)?;
    if !x.is_empty() {
        turn.forward(&x, y);
    }
    Ok(())
}

/// Given `dy`, accumulates into `dx`, both `[tokens, heads, head_dim]`.
///
/// # Errors
/// As for [`apply_rotary_pos_emb`].
pub fn apply_rotary_pos_emb_backward<N: Scalar>(
    dy: &[N],
    tables: CosSin<'_>,
    positions: &[usize],
    head_dim: usize,
    dx: &mut [N],
) -> Result<()> {
    let turn = checked(("dy", dy.len()), tables, positions, head_dim)?;
    length("dx", dy.len(), dx)?;
    if !dy.is_empty() {
        turn.backward(dy, dx);
    }
    Ok(())
}

fn checked<'t>(
    (name, len): (&'static str, usize),
    tables: CosSin<'t>,
    positions: &'t [usize],
    head_dim: usize,
) -> Result<Turn<&'t [f32], impl Fn(usize) -> usize + Sync + 't>> {
    let CosSin { cos, sin, rotary_dim, layout } = tables;
    if rotary_dim == 0 || rotary_dim % 2 != 0 || rotary_dim > head_dim {
        return Err(Error::RotaryDim { rotary_dim, head_dim });
    }
    length("cos", cos.len().next_multiple_of(rotary_dim), cos)?;
    length("sin", cos.len(), sin)?;
    let nh = len / positions.len().max(1) / head_dim;
    let fits = if positions.is_empty() {
        0
    } else {
        elements(name, &[positions.len(), nh.max(1), head_dim])?
    };
    same_shape(name, &[fits], &[len])?;
    let rows = cos.len() / rotary_dim;
    if let Some(token) = positions.iter().position(|position| *position >= rows) {
        return Err(Error::PositionId { id: positions[token], batch: 0, token, rows });
    }
    let place = |token: usize| positions[token];
    let pairs = Pairs { layout, rotary_dim };
    Ok(Turn { cos, sin, width: rotary_dim, place, nh, hd: head_dim, pairs })
}
