//! The formulas: sinusoids, the matrix that shifts them, and what is added to tokens.

use super::fused;
use crate::checks::{check_size, require, same_shape};
use crate::cpu::{each, rows_of_a_piece};
use crate::error::{Error, Result};
use crate::host::{add_rows, from_host, to_host};
use crate::positions::{Places, Positions};
use crate::tensor::*;
use std::ops::Range;

// ANCHOR: sinusoids
/// `P[m, 2i] = sin(m w_i)` and `P[m, 2i + 1] = cos(m w_i)` with `w_i = base^(-2i / h)`, row by row, `[positions, h]`.
///
/// Angles and values are in `f64`. An angle is off by at most `m * 2^-52` radians. Source: Vaswani et al. 2017,
/// "Attention Is All You Need"; their base is 10,000. (Their first code, and fairseq's, has all sines before all
/// cosines, which is the same table with its columns in another order.)
///
/// # Errors
/// No positions, or one past `2^53`; a `hidden_size` that is odd or 0; a `base` that is not finite or not above 1;
/// more elements than memory has addresses.
pub fn sinusoids(positions: Range<usize>, hidden_size: usize, base: f64) -> Result<Vec<f64>> {
    sinusoids_at(&Places::Row(positions), hidden_size, base)
}

/// The same at any positions, `[rows, h]`.
pub(super) fn sinusoids_at(places: &Places, hidden_size: usize, base: f64) -> Result<Vec<f64>> {
    let frequencies = frequencies(hidden_size, base)?;
    let rows = places.rows();
    check_size("the table of sinusoids", &(rows, hidden_size))?;
    let last = (places.end() - 1) as f64;
    let rule = "below 2^53, where f64 holds every whole number";
    require(places.end() as u64 <= 1 << 53, "every position", rule, last)?;
    let elements = rows * hidden_size;
    let mut table = Vec::new();
    table.try_reserve_exact(elements).map_err(Error::device)?;
    table.resize(elements, 0.0);
    let row = |m: usize, row: &mut [f64]| {
        for (pair, w) in row.chunks_mut(2).zip(&frequencies) {
            let (sin, cos) = (m as f64 * w).sin_cos();
            pair.copy_from_slice(&[sin, cos]);
        }
    };
    let piece = rows_of_a_piece(hidden_size);
    let pieces = table.chunks_mut(piece * hidden_size).zip((0..rows).step_by(piece));
    each(elements, pieces, |(rows, first)| {
        let rows = rows.chunks_mut(hidden_size).zip(first..);
        rows.for_each(|(into, nth)| row(places.of_token(nth), into));
    });
    Ok(table)
}

/// `w_i = base^(-2i / h)`, in radians per position.
pub(super) fn frequencies(hidden_size: usize, base: f64) -> Result<Vec<f64>> {
    let rule = "even and at least 2, because each frequency has a sine and a cosine";
    let even = hidden_size >= 2 && hidden_size % 2 == 0;
    require(even, "hidden_size", rule, hidden_size as f64)?;
    require(base.is_finite() && base > 1.0, "base", "finite and above 1", base)?;
    let h = hidden_size as f64;
    Ok((0..hidden_size / 2).map(|i| base.powf(-2.0 * i as f64 / h)).collect())
}
// ANCHOR_END: sinusoids

// ANCHOR: sinusoid_shift
/// The matrix that takes row `P[m]` of [`sinusoids`] to row `P[m + steps]`, for every `m`: for each pair `(sin, cos)`
/// one block `[[cos, sin], [-sin, cos]]` of the angle `steps * w_i`. All else in the matrix is 0.
///
/// A model can therefore learn to look a fixed number of positions back. Source: Vaswani et al. 2017, section 3.5.
///
/// # Errors
/// `hidden_size` and `base` as for [`sinusoids`]; more than `2^53` steps.
pub fn sinusoid_shift(steps: usize, hidden_size: usize, base: f64) -> Result<Vec<[[f64; 2]; 2]>> {
    let rule = "at most 2^53, where f64 holds every whole number";
    require(steps as u64 <= 1 << 53, "steps", rule, steps as f64)?;
    let block = |w: f64| {
        let (sin, cos) = (steps as f64 * w).sin_cos();
        [[cos, sin], [-sin, cos]]
    };
    Ok(frequencies(hidden_size, base)?.into_iter().map(block).collect())
}
// ANCHOR_END: sinusoid_shift

// ANCHOR: add_sinusoids
/// Adds to each token its position's row: `y[b, t] = x[b, t] + P[position of (b, t)]`, `[b, s, h]`. Positions are an offset,
/// which row 0 of each text has, or `position_ids`, `[b, s]`.
///
/// The rows are those of [`sinusoids`], rounded to `f32` or better; the sum is rounded once. The gradient of `x` is
/// that of `y`.
///
/// # Errors
/// As for [`sinusoids`]; `position_ids` of another shape; an empty input; an `offset + s` past the largest `usize`; what the
/// device reports.
pub fn add_sinusoids<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<(B, S, H), F, D, T>,
    positions: impl Into<Positions>,
    base: f64,
) -> Result<Tensor<(B, S, H), F, D, T>> {
    let places = positions.into().of(x.shape())?;
    let rows = sinusoids_at(&places, x.shape().2.size(), base)?; //           [s, h] or [b s, h]
    add_table(x, &rounded(&rows), &Places::Row(0..places.rows())).map_err(Error::device)
}

/// The numbers in the type that tokens are computed in.
pub(super) fn rounded<W: Float>(table: &[f64]) -> Vec<W> {
    table.iter().map(|x| W::nearest(*x)).collect()
}

/// Adds to each token of `x`, `[b, s, h]`, the row of a table, `[rows, h]`, that it takes.
pub(super) fn add_table<B: Dim, S: Dim, H: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    x: Tensor<(B, S, H), F, D, T>,
    table: &[F::Wide],
    rows: &Places,
) -> Raw<Tensor<(B, S, H), F, D, T>, D> {
    let (x, mut tape) = x.try_in_order()?.split_tape();
    if let Some(y) = fused::add_table(&x, table, rows, &mut tape)? {
        return Ok(y.put_tape(tape));
    }
    let (b, s, h) = *x.shape();
    let row = |token| table[rows.of_token(token) * h.size()..][..h.size()].iter().copied();
    let rows = (0..b.size() * s.size()).flat_map(row).collect();
    let rows = x.device().try_tensor_from_vec(rows, (b, s, h))?; //           [b, s, h]
    add_rows(x.put_tape(tape), rows, |_, _| Ok(())) //                        [b, s, h]
}
// ANCHOR_END: add_sinusoids

// ANCHOR: learned
/// Adds to each token its position's row of a table: `y[b, t] = x[b, t] + table[position of (b, t)]`, `[b, s, h]`. Positions
/// are an offset, which row 0 of each text has, or `position_ids`, `[b, s]`.
///
/// Shapes: `x` `[b, s, h]`, `table` `[ms, h]`. The gradient of `x` is that of `y`; that of a row is the sum over the
/// tokens at that position, added up in `f64`. There is nothing past the last row, so a longer text is an
/// error; it never begins again at row 0. Source: Devlin et al. 2019, "BERT"; Radford et al. 2019, GPT-2.
///
/// # Errors
/// A position past the last row; `position_ids` of another shape; rows of another length than the tokens'; an empty input
/// or table; what the device reports.
pub fn add_learned_positions<
    B: Dim,
    S: Dim,
    H: Dim,
    M: Dim,
    E: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    x: Tensor<(B, S, H), F, D, T>,
    table: &Tensor<(M, E), F, D>,
    positions: impl Into<Positions>,
) -> Result<Tensor<(B, S, H), F, D, T>> {
    let places = positions.into().of(x.shape())?;
    let ((b, s, h), (rows, width)) = (*x.shape(), *table.shape());
    check_size("the table of positions", table.shape())?;
    same_shape("the table of positions", &[rows.size(), h.size()], &[rows.size(), width.size()])?;
    places.check_below(rows.size())?;
    let run = || -> Raw<_, D> {
        let (x, tape) = x.try_in_order()?.split_tape();
        let (table, table_tape) = table.retaped::<T>().try_in_order()?.split_tape();
        let mut tape = tape.merge(table_tape);
        if let Some(y) = fused::add_learned(&x, &table, &places, &mut tape)? {
            return Ok(y.put_tape(tape));
        }
        let x = x.put_tape(tape);
        let tokens = b.size() * s.size();
        let ids = (0..tokens).map(|token| places.of_token(token)).collect();
        let ids = table.device().try_tensor_from_vec(ids, (tokens,))?; //     [b s]
        let rows = table.clone().try_gather(ids)?; //                         [b s, h]
        let rows = cast::<F, F::Wide, _, _>(&rows)?.try_reshape_like(&(b, s, h))?;
        add_rows(x, rows, move |dy, grads| {
            let mut dtable = vec![0.0; table.shape().num_elements()]; //      [ms, h]
            for (token, dy) in to_host(dy).chunks(h.size()).enumerate() {
                let sums = dtable[places.of_token(token) * h.size()..].iter_mut();
                sums.zip(dy).for_each(|(sum, dy)| *sum += dy);
            }
            let dtable = from_host(table.device(), &dtable, *table.shape())?;
            add_gradient(grads, &table, dtable)
        })
    };
    run().map_err(Error::device)
}
// ANCHOR_END: learned
