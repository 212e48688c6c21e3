//! The lookup in one pass over memory, on a CPU, of a whole table or of a shard. What it computes is defined in the
//! two `formula.rs`.

use crate::cpu::{Source, Values, each, is_fused, record, rows_of_a_piece, vector, zeros};
use crate::tensor::*;

/// The place of a row that the table does not have.
pub(crate) const NO_ROW: usize = usize::MAX;

/// The rows of `table`, one for each place; where it is [`NO_ROW`], zeros. With the gradient on the tape. `None` on
/// other devices. `table` must be contiguous.
///
/// Kept for the backward pass: the rows' numbers. It touches the gradient of the table at these rows only.
pub(crate) fn look_up<B: Dim, S: Dim, V: Dim, M: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    table: &Tensor<(V, M), F, D>,
    tape: &mut T,
    rows: impl FnOnce() -> Vec<usize>,
    (b, s): (B, S),
) -> Raw<Option<Tensor<(B, S, M), F, D>>, D> {
    if !is_fused::<D>() {
        return Ok(None);
    }
    let (table, table_tape) = table.retaped::<T>().try_in_order()?.split_tape();
    *tape = std::mem::take(tape).merge(table_tape);
    let Some(values) = Values::of(&table) else {
        return Ok(None);
    };
    let m = table.shape().1;
    let e = m.size();
    let rows = rows();
    let mut y = zeros::<F, D>(table.device(), rows.len() * e)?;
    gather(&values, &rows, e, &mut y);
    let y: Tensor<_, F, D> = table.device().try_tensor_from_vec(y, (b, s, m))?;
    if T::OWNS_TAPE {
        let table = table.ghost(); // its values are not needed any more
        record(tape, &y, move |dy, grads| {
            scatter(&rows, e, dy, vector::<F, D>(grads.get_or_alloc_mut(&table)?));
            Ok(())
        });
    }
    Ok(Some(y))
}

/// Copies a row of the table for each place. Where there is none, that row of `y` is left as it is.
pub(crate) fn gather<F: Scalar>(table: &impl Source<F>, rows: &[usize], e: usize, y: &mut [F]) {
    let (elements, piece) = (y.len(), rows_of_a_piece(e));
    each(elements, y.chunks_mut(piece * e).zip(rows.chunks(piece)), |(y, rows)| {
        for (y, row) in y.chunks_mut(e).zip(rows).filter(|(_, row)| **row != NO_ROW) {
            table.read(row * e, y);
        }
    });
}

/// Adds each row of `dy` to the row of the table that it was read from, in the order of the places.
pub(crate) fn scatter<F: Scalar>(rows: &[usize], e: usize, dy: &[F], dtable: &mut [F]) {
    let numbered = rows.iter().enumerate().map(|(place, row)| (*row, place));
    let mut places: Vec<(usize, usize)> = numbered.filter(|(row, _)| *row != NO_ROW).collect();
    places.sort_unstable();
    // Each row that was looked up, with its places: no two threads have the same row.
    let mut touched = Vec::new();
    let (mut rest, mut begin) = (dtable, 0);
    for same in places.chunk_by(|one, next| one.0 == next.0) {
        let (_, from_row) = rest.split_at_mut((same[0].0 - begin) * e);
        let (row, after) = from_row.split_at_mut(e);
        (rest, begin) = (after, same[0].0 + 1);
        touched.push((row, same));
    }
    each(places.len() * e, touched.chunks_mut(rows_of_a_piece(e)), |touched| {
        for (row, same) in touched {
            for (_, place) in *same {
                let sums = row.iter_mut().zip(&dy[place * e..]);
                sums.for_each(|(sum, dy)| *sum = F::narrow(sum.wide() + dy.wide()));
            }
        }
    });
}
