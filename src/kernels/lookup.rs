//! VocabEmbedding.

use super::elements;
use crate::checks::same_shape;
use crate::embedding::fused::{gather, scatter};
use crate::error::{Error, Result};
use crate::tensor::Scalar;

/// The row of the table for each id.
///
/// Shapes: `table` `[v, e]`, `ids` `[tokens]`, `y` `[tokens, e]`.
///
/// # Errors
/// An `e` of 0; an id of `v` or more; a slice of the wrong length.
pub fn vocab_embedding<N: Scalar>(table: &[N], ids: &[usize], e: usize, y: &mut [N]) -> Result<()> {
    checked(("table", table.len()), ids, e, ("y", y.len()))?;
    if !ids.is_empty() {
        gather(&table, ids, e, y);
    }
    Ok(())
}

/// Accumulates each row of `dy`, `[tokens, e]`, into the row of `dtable`, `[v, e]`, that its token looked up, in the order of the tokens.
///
/// As with tensors, the sum is kept in the table's own type. A sum of ones gets stuck at 256 in `bf16` and at 2048 in `f16`, so convert both
/// slices to `f32` if frequent tokens matter.
///
/// # Errors
/// As for [`vocab_embedding`].
pub fn vocab_embedding_backward<N: Scalar>(
    ids: &[usize],
    e: usize,
    dy: &[N],
    dtable: &mut [N],
) -> Result<()> {
    checked(("dtable", dtable.len()), ids, e, ("dy", dy.len()))?;
    if !ids.is_empty() {
        scatter(ids, e, dy, dtable);
    }
    Ok(())
}

fn checked(
    (table, len): (&'static str, usize),
    ids: &[usize],
    e: usize,
    (y, y_len): (&'static str, usize),
) -> Result<()> {
    elements(y, &[e])?;
    let vocab_size = len / e;
    same_shape(table, &[vocab_size * e], &[len])?;
    if let Some(position) = ids.iter().position(|id| *id >= vocab_size) {
        return Err(Error::TokenId { id: ids[position], batch: 0, position, vocab_size });
    }
    let fits = if ids.is_empty() { 0 } else { elements(y, &[ids.len(), e])? };
    same_shape(y, &[fits], &[y_len])
}
