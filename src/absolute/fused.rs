//! Rows that are added to tokens in one pass over memory, on a CPU. What it computes stands beside, in `formula.rs`.

use crate::cpu::{Values, each, is_fused, record, rows_of_a_piece, vector, zeros};
use crate::tensor::*;

/// Adds the rows of `table`, `[s, h]`, to each text of `x`, `[b, s, h]`. `None` on other devices. `x` must be contiguous.
pub(super) fn add_table<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: &Tensor<(B, S, H), F, D>,
    table: &[F::Wide],
    tape: &mut T,
) -> Raw<Option<Tensor<(B, S, H), F, D>>, D> {
    let h = x.shape().2.size();
    let row = |t: usize, into: &mut [F::Wide]| {
        into.copy_from_slice(&table[t * h..][..h]);
    };
    add(x, row, tape, |_, _| Ok(()))
}

/// Adds the rows of `table` from `offset` on. `None` on other devices. `x` and `table` must be contiguous.
pub(super) fn add_learned<
    B: Dim,
    S: Dim,
    H: Dim,
    M: Dim,
    E: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    x: &Tensor<(B, S, H), F, D>,
    table: &Tensor<(M, E), F, D>,
    offset: usize,
    tape: &mut T,
) -> Raw<Option<Tensor<(B, S, H), F, D>>, D> {
    let Some(values) = Values::of(table) else {
        return Ok(None);
    };
    let (_, s, h) = *x.shape();
    let (s, h, table) = (s.size(), h.size(), table.ghost());
    let row = |t: usize, into: &mut [F::Wide]| values.widen((offset + t) * h, into);
    add(x, row, tape, move |dy, grads| {
        let dtable = &mut grads.get_or_alloc_mut(&table).map(vector::<F, D>)?[offset * h..];
        if dy.len() == s * h {
            // One text: there is nothing to sum.
            let pieces = dtable.chunks_mut(h).zip(dy.chunks(h));
            each(dy.len(), pieces, |(sums, dy)| {
                sums.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += *dy);
            });
            return Ok(());
        }
        // Each row is summed over the texts in f64, and rounded once.
        each(dy.len(), dtable[..s * h].chunks_mut(h).enumerate(), |(t, sums)| {
            let mut total = vec![0.0; h];
            for dy in dy[t * h..].chunks(s * h) {
                let dy = dy.iter().map(|dy| dy.to_f64().unwrap_or(f64::NAN));
                total.iter_mut().zip(dy).for_each(|(total, dy)| *total += dy);
            }
            for (sum, total) in sums.iter_mut().zip(total) {
                *sum += F::nearest(total);
            }
        });
        Ok(())
    })
}

/// Adds a row to each token, which `row` writes for its place in the text. The gradient of `x` is that of the sum;
/// `of_rows` gets it for the rows.
fn add<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: &Tensor<(B, S, H), F, D>,
    row: impl Fn(usize, &mut [F::Wide]) + Send + Sync,
    tape: &mut T,
    of_rows: impl FnOnce(&[F], &mut Gradients<F, D>) -> Raw<(), D> + 'static,
) -> Raw<Option<Tensor<(B, S, H), F, D>>, D> {
    let (Some(values), true) = (Values::of(x), is_fused::<D>()) else {
        return Ok(None);
    };
    let (_, s, h) = *x.shape();
    let (s, h) = (s.size(), h.size());
    let mut y = zeros::<F, D>(x.device(), values.len())?;
    let piece = rows_of_a_piece(h);
    each(values.len(), y.chunks_mut(piece * h).enumerate(), |(nth, rows)| {
        let [mut x, mut added] = [vec![F::Wide::default(); h], vec![F::Wide::default(); h]];
        for (token, y) in (nth * piece..).zip(rows.chunks_mut(h)) {
            values.widen(token * h, &mut x);
            row(token % s, &mut added);
            for ((y, x), added) in y.iter_mut().zip(&x).zip(&added) {
                *y = F::narrow(*x + *added);
            }
        }
    });
    let y: Tensor<_, F, D> = x.device().try_tensor_from_vec(y, *x.shape())?;
    if T::OWNS_TAPE {
        let x = x.ghost(); // its values are not needed any more
        record(tape, &y, move |dy, grads| {
            let dx = grads.get_or_alloc_mut(&x).map(vector::<F, D>)?;
            let pieces = dx.chunks_mut(piece * h).zip(dy.chunks(piece * h));
            each(dy.len(), pieces, |(dx, dy)| {
                dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx += *dy);
            });
            of_rows(dy, grads)
        });
    }
    Ok(Some(y))
}
