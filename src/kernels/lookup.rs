//! VocabEmbedding.

use super::{length, rows};
use crate::embedding::fused::{gather, scatter};
use crate::error::{Error, Result};
use crate::tensor::Scalar;

/// The row of the table for each id.
///
/// Shapes: `table` `[v, e]`, `ids` `[tokens]`, `y` `[tokens, e]`.
///
/// # Errors
/// A width of 0; an id that is not below `v`; a slice of another length. Then nothing is written.
pub fn lookup<N: Scalar>(table: &[N], ids: &[usize], e: usize, y: &mut [N]) -> Result<()> {
    checked(table, ids, e, y)?;
    gather(&table, ids, e, y);
    Ok(())
}

/// Adds each row of `dy`, `[tokens, e]`, to the row of `dtable`, `[v, e]`, that it was read from, in the order of the tokens.
///
/// # Errors
/// As for [`lookup`].
pub fn lookup_backward<N: Scalar>(
    ids: &[usize],
    e: usize,
    dy: &[N],
    dtable: &mut [N],
) -> Result<()> {
    checked(dtable, ids, e, dy)?;
    scatter(ids, e, dy, dtable);
    Ok(())
}

fn checked<N>(table: &[N], ids: &[usize], e: usize, y: &[N]) -> Result<()> {
    let vocab_size = rows("table", e, table)?;
    if let Some(position) = ids.iter().position(|id| *id >= vocab_size) {
        return Err(Error::TokenId { id: ids[position], batch: 0, position, vocab_size });
    }
    length("y", ids.len() * e, y)
}
