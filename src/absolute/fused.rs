//! Rows that are added to tokens in one pass over memory, on a CPU. What it computes is defined in `formula.rs`.

use crate::cpu::{Source, Values, each, is_fused, record, rows_of_a_piece, vector, zeros};
use crate::positions::Places;
use crate::tensor::*;

/// Adds to each token of `x`, `[b, s, h]`, the row of `table`, `[rows, h]`, that it takes. `None` on other devices. `x` must be
/// contiguous.
pub(super) fn add_table<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: &Tensor<(B, S, H), F, D>,
    table: &[F::Wide],
    rows: &Places,
    tape: &mut T,
) -> Raw<Option<Tensor<(B, S, H), F, D>>, D> {
    let h = x.shape().2.size();
    let row = |token: usize, into: &mut [F::Wide]| {
        into.copy_from_slice(&table[rows.of_token(token) * h..][..h]);
    };
    add(x, row, tape, |_, _| Ok(()))
}

/// The same with a table that is learned. `x` and `table` must be contiguous.
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
    rows: &Places,
    tape: &mut T,
) -> Raw<Option<Tensor<(B, S, H), F, D>>, D> {
    let Some(values) = Values::of(table) else {
        return Ok(None);
    };
    let (h, table, rows) = (x.shape().2.size(), table.ghost(), rows.clone());
    let of_token = rows.clone();
    let row = |token: usize, into: &mut [F::Wide]| values.widen(of_token.of_token(token) * h, into);
    add(x, row, tape, move |dy, grads| {
        let dtable = grads.get_or_alloc_mut(&table).map(vector::<F, D>)?;
        // The tokens in the order of their rows, so that each row finds its own.
        let mut tokens: Vec<usize> = (0..dy.len() / h).collect();
        tokens.sort_by_key(|&token| rows.of_token(token));
        // Each row is summed over its tokens in f64, and rounded once.
        each(dy.len(), dtable.chunks_mut(h).enumerate(), |(row, sums)| {
            let first = tokens.partition_point(|&token| rows.of_token(token) < row);
            let mut own = tokens[first..].iter().take_while(|token| rows.of_token(**token) == row);
            let Some(one) = own.next() else { return };
            let of = |token: usize| dy[token * h..][..h].iter();
            let wide = |dy: &F| dy.to_f64().unwrap_or(f64::NAN);
            let mut total: Vec<f64> = of(*one).map(wide).collect();
            for token in own {
                total.iter_mut().zip(of(*token)).for_each(|(total, dy)| *total += wide(dy));
            }
            for (sum, total) in sums.iter_mut().zip(total) {
                *sum += F::nearest(total);
            }
        });
        Ok(())
    })
}

/// Adds a row to each token, which `row` writes for the token's number, counted through all texts. The gradient of `x` is
/// that of the sum; `of_rows` gets it for the rows.
fn add<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: &Tensor<(B, S, H), F, D>,
    row: impl Fn(usize, &mut [F::Wide]) + Send + Sync,
    tape: &mut T,
    of_rows: impl FnOnce(&[F], &mut Gradients<F, D>) -> Raw<(), D> + 'static,
) -> Raw<Option<Tensor<(B, S, H), F, D>>, D> {
    let (Some(values), true) = (Values::of(x), is_fused::<D>()) else {
        return Ok(None);
    };
    let h = x.shape().2.size();
    let mut y = zeros::<F, D>(x.device(), values.len())?;
    let piece = rows_of_a_piece(h);
    each(values.len(), y.chunks_mut(piece * h).enumerate(), |(nth, rows)| {
        let [mut x, mut added] = [vec![F::Wide::default(); h], vec![F::Wide::default(); h]];
        for (token, y) in (nth * piece..).zip(rows.chunks_mut(h)) {
            values.widen(token * h, &mut x);
            row(token, &mut added);
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
