//! The lookup as a free function, and what it checks before.
//!
//! Sizes are run-time values here, so what the compiler refuses for a module is an [`Error`] for a
//! function. It takes ids with a tape or without. Rows are copied, not computed, so dfdx's own
//! gradient is right.

use super::fused;
use crate::checks::check_size;
use crate::error::{Error, Result};
use crate::tensor::*;

// ANCHOR: embedding
/// `y[i, j] = table[ids[i, j]]`: one row of the table for each id.
///
/// Shapes: `ids` `[b, s]`, `table` `[v, e]`, result `[b, s, e]`. The ids are not changed. Rows
/// are copied, not computed, so they are bit-equal to the table. The gradient of a row is the
/// sum of the gradients at the places that looked it up, and 0 if none did.
///
/// The ids are checked on the host, so a GPU sends them there once a call. The gradient is added
/// up in the table's own type: in `f16`, more than 2048 equal ids are not counted right.
///
/// # Errors
/// An id that is not below `v`, with its place. An empty `ids` or table: dfdx panics on empty
/// tensors. More elements than memory has addresses; on a GPU, a table of `2^32` elements or more.
pub fn vocab_embedding<B: Dim, S: Dim, V: Dim, M: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    ids: Tensor<(B, S), usize, D, T>,
    table: &Tensor<(V, M), F, D>,
) -> Result<Tensor<(B, S, M), F, D, T>> {
    let (v, e) = *table.shape();
    check_table("table", table)?;
    let (ids, tape) = ids.split_tape();
    let (b, s) = *ids.shape();
    let rows = checked_ids(&ids, v.size())?;
    check_size("the result", &(b, s, e))?;
    look_up(table, tape, rows, (b, s)).map_err(Error::device) //              [b, s, e]
}

/// The rows of `table`, `[b, s, e]`. The gradient is dfdx's own: a scatter-add.
///
/// The rows are looked up as one list. For a matrix of ids, dfdx's GPU code multiplies token
/// number and table size in 32 bits, and silently gives other rows.
pub(crate) fn look_up<B: Dim, S: Dim, V: Dim, M: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    table: &Tensor<(V, M), F, D>,
    tape: T,
    rows: Vec<usize>,
    (b, s): (B, S),
) -> Raw<Tensor<(B, S, M), F, D, T>, D> {
    let (mut tape, mut rows) = (tape, rows);
    if let Some(y) = fused::look_up(table, &mut tape, || std::mem::take(&mut rows), (b, s))? {
        return Ok(y.put_tape(tape)); // on a CPU: the same in one pass
    }
    let (_, e) = *table.shape();
    let list = (b.size() * s.size(),);
    let rows = table.device().try_tensor_from_vec(rows, list)?; //            [b s]
    let found: Tensor<(usize, M), F, D, T> = table.clone().put_tape(tape).try_gather(rows)?;
    found.try_reshape_like(&(b, s, e)) //                                     [b, s, e]
}
// ANCHOR_END: embedding

/// Refuses an empty table, and one that dfdx's GPU code can't address: it counts in 32 bits.
pub(crate) fn check_table<V: Dim, M: Dim, F: Float, D: Device<F>>(
    name: &'static str,
    table: &Tensor<(V, M), F, D>,
) -> Result<()> {
    check_size(name, table.shape())?;
    let sizes = table.shape().concrete();
    let elements = sizes[0].saturating_mul(sizes[1]);
    match largest_table::<D>() {
        Some(limit) if elements > limit => Err(Error::TableTooLarge { elements, limit }),
        _ => Ok(()),
    }
}

// ANCHOR: checked_ids
/// The ids on the host, once all are known to be below `vocab_size`.
pub(crate) fn checked_ids<B: Dim, S: Dim, D: Storage<usize>>(
    ids: &Tensor<(B, S), usize, D>,
    vocab_size: usize,
) -> Result<Vec<usize>> {
    check_size("ids", ids.shape())?;
    let length = ids.shape().1.size();
    let ids = ids.as_vec();
    match ids.iter().position(|&id| id >= vocab_size) {
        None => Ok(ids),
        Some(at) => Err(Error::TokenId {
            id: ids[at],
            batch: at / length,
            position: at % length,
            vocab_size,
        }),
    }
}
// ANCHOR_END: checked_ids
