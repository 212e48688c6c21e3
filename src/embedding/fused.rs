//! The lookup in one pass over memory, on a CPU, of a whole table or of a shard. What it computes stands in the
//! two `formula.rs`.

use crate::cpu::{ROWS, Values, each, gradient, is_fused, record, zeros};
use crate::tensor::*;

/// The rows of `table`, one for each place; where there is none, zeros. With the gradient on the tape. `None` on
/// other devices. `table` must be contiguous.
///
/// Kept for the backward pass: the rows' numbers. It touches the gradient of the table at these rows only.
pub(crate) fn look_up<B: Dim, S: Dim, V: Dim, M: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    table: &Tensor<(V, M), F, D>,
    tape: &mut T,
    rows: impl Iterator<Item = Option<usize>>,
    (b, s): (B, S),
) -> Raw<Option<Tensor<(B, S, M), F, D>>, D> {
    if !is_fused::<D>() {
        return Ok(None);
    }
    let (table, table_tape) = table.retaped::<T>().try_contiguous()?.split_tape();
    *tape = std::mem::take(tape).merge(table_tape);
    let Some(values) = Values::of(&table) else {
        return Ok(None);
    };
    let m = table.shape().1;
    let e = m.size();
    let rows: Vec<Option<usize>> = rows.collect();
    let mut y = zeros::<F, D>(table.device(), rows.len() * e)?;
    let elements = y.len();
    each(elements, y.chunks_mut(ROWS * e).zip(rows.chunks(ROWS)), |(y, rows)| {
        for (y, row) in y.chunks_mut(e).zip(rows) {
            if let Some(row) = row {
                values.read(row * e, y);
            }
        }
    });
    let y: Tensor<_, F, D> = table.device().try_tensor_from_vec(y, (b, s, m))?;
    if T::OWNS_TAPE {
        record(tape, &y, move |dy, grads| {
            scatter(&rows, e, dy, gradient(grads, &table)?);
            Ok(())
        });
    }
    Ok(Some(y))
}

/// Adds each row of `dy` to the row of the table that it was read from, in the order of the places.
fn scatter<F: Float>(rows: &[Option<usize>], e: usize, dy: &[F], dtable: &mut [F]) {
    let numbered = rows.iter().enumerate().filter_map(|(place, row)| row.map(|row| (row, place)));
    let mut places: Vec<(usize, usize)> = numbered.collect();
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
    each(places.len() * e, touched.chunks_mut(ROWS), |touched| {
        for (row, same) in touched {
            for (_, place) in *same {
                row.iter_mut().zip(&dy[place * e..]).for_each(|(sum, dy)| *sum += *dy);
            }
        }
    });
}
