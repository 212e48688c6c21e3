//! The tasks of absolute positions.
//!
//! A vector for each position is added to the tokens, `[b, s, h]`, before the first block: sinusoids, which are
//! computed, or a row of a table, which is learned.
//!
//! ```text
//! P[m, 2i] = sin(m · w_i)        P[m, 2i + 1] = cos(m · w_i)        w_i = base^(-2i / h)
//! ```
//!
//! Sources: Vaswani et al. 2017, "Attention Is All You Need"; Devlin et al. 2019, "BERT", for learned tables.

use crate::prelude::*;

/// Task `absolute/sinusoids`. The sinusoids of these positions, `[positions, h]`, row by row.
///
/// ```text
/// P[m, 2i] = sin(m · w_i)        P[m, 2i + 1] = cos(m · w_i)        w_i = base^(-2i / h),   i = 0 .. h/2 - 1
/// ```
///
/// A sine and its cosine are neighbours and have ONE frequency. Compute the angles in `f64`, and round only their sines
/// and cosines. Refuse a `hidden_size` that is odd or 0, and a `base` that is not finite and above 1.
pub fn sinusoids(positions: Range<usize>, hidden_size: usize, base: f64) -> Result<Vec<f32>> {
    // task absolute/sinusoids: begin
    if hidden_size == 0 || hidden_size % 2 != 0 {
        return Err(format!("hidden size {hidden_size} must be even and at least 2"));
    }
    if !(base.is_finite() && base > 1.0) {
        return Err(format!("base must be finite and above 1, got {base}"));
    }
    let frequency = |i: usize| base.powf(-2.0 * i as f64 / hidden_size as f64);
    let row = |m: usize| (0..hidden_size / 2).map(move |i| m as f64 * frequency(i));
    let pair = |angle: f64| [angle.sin() as f32, angle.cos() as f32];
    Ok(positions.flat_map(row).flat_map(pair).collect())
    // task absolute/sinusoids: end
}

/// Task `absolute/shift`. The matrix `S`, `[h, h]`, row by row, with `P[m + steps] = S · P[m]` for EVERY position `m`.
///
/// Rows of `P` count as columns here, so element `r` of the product is the sum over `c` of `S[r, c] · P[m, c]`. Find
/// what `S` does to one pair `(sin a, cos a)` when the angle grows by `steps · w_i`; all other elements are 0. Refuse
/// what [`sinusoids`] refuses.
pub fn shift(steps: usize, hidden_size: usize, base: f64) -> Result<Vec<f32>> {
    // task absolute/shift: begin
    let turns = sinusoids(steps..steps + 1, hidden_size, base)?; // sin and cos of each plane's turn
    let mut matrix = vec![0.0; hidden_size * hidden_size];
    for (i, turn) in turns.chunks(2).enumerate() {
        let (sin, cos, at) = (turn[0], turn[1], 2 * i * hidden_size + 2 * i);
        // sin(a + k) = cos k · sin a + sin k · cos a, and cos(a + k) = -sin k · sin a + cos k · cos a.
        (matrix[at], matrix[at + 1]) = (cos, sin);
        (matrix[at + hidden_size], matrix[at + hidden_size + 1]) = (-sin, cos);
    }
    Ok(matrix)
    // task absolute/shift: end
}

/// Task `absolute/add`. Adds sinusoids to `x`, `[b, s, h]`: row `t` of each text is at position `offset + t`.
///
/// ```text
/// y[b, t] = x[b, t] + P[offset + t]
/// ```
///
/// The rows come from [`sinusoids`], which also says what is refused. `x` keeps its tape, and nothing in the rows is
/// learned.
pub fn add_sinusoids<B: Dim, S: Dim, H: Dim, D: Device<f32>, T: Tape<f32, D>>(
    x: Tensor<(B, S, H), f32, D, T>,
    offset: usize,
    base: f64,
) -> Result<Tensor<(B, S, H), f32, D, T>> {
    // task absolute/add: begin
    let shape = *x.shape();
    let rows = sinusoids(offset..offset + shape.1.size(), shape.2.size(), base)?;
    let rows: Tensor<(S, H), f32, D> = x.device().tensor_from_vec(rows, (shape.1, shape.2)); // [s, h]
    Ok(x + rows.broadcast_like::<_, Axis<0>>(&shape)) //                    [b, s, h]
    // task absolute/add: end
}

/// Task `absolute/learned`. Adds rows of a learned table, `[ms, h]`, to `x`, `[b, s, h]`.
///
/// ```text
/// y[b, t] = x[b, t] + table[offset + t]
/// ```
///
/// The last row may be used, but there is nothing past it: a text that ends further on is an `Err` that names where it
/// ends and the number of rows. An `offset` may be as large as a `usize` can be.
///
/// Both gradients come from the tape, so the table must be on it. A row's gradient is the sum over the texts, and 0 if
/// no token used the row, even where the others are NaN.
pub fn add_learned<B: Dim, S: Dim, H: Dim, D: Device<f32>, T: Tape<f32, D>>(
    x: Tensor<(B, S, H), f32, D, T>,
    table: &Tensor<(usize, H), f32, D>,
    offset: usize,
) -> Result<Tensor<(B, S, H), f32, D, T>> {
    // task absolute/learned: begin
    let (shape, rows) = (*x.shape(), table.shape().0);
    let end = offset.saturating_add(shape.1.size());
    if end > rows {
        return Err(format!("positions {offset}..{end} are not in a table of {rows} rows"));
    }
    // The gradient of a slice is written, not added: a copy of its own, for a table that is used twice.
    let taken = (table.retaped::<T>() * 1.0).slice((offset..end, ..)); //   [s, h]
    let taken = taken.reshape_like(&(shape.1, shape.2));
    Ok(x + taken.broadcast_like::<_, Axis<0>>(&shape)) //                   [b, s, h]
    // task absolute/learned: end
}

/// Task `absolute/property`. An invariant of your own.
///
/// `positions` claims to give sinusoids and their shifts, in plain values. Return `Ok`, or an `Err` that says what is
/// wrong with it.
///
/// `positions.table(hidden_size, base, from..to)` gives rows, `[positions, h]`, and
/// `positions.shift(hidden_size, base, steps)` gives a matrix, `[h, h]`. Each may refuse: `?` makes that your `Err`,
/// with its words in `refusal.0`.
///
/// ONE matrix takes the row of every position to the row `steps` positions on: which tables and matrices break this?
/// You are graded by the known bugs that you catch, at least 12, and you may not reject a correct one, although its
/// values are rounded to `f32`.
pub fn property(positions: &dyn interface::AbsolutePositions) -> Result<()> {
    // task absolute/property: begin
    let (h, base) = (8, 10_000.0);
    let row = |m: usize| positions.table(h, base, m..m + 1);
    for steps in [1, 3, 40] {
        let matrix = positions.shift(h, base, steps)?;
        for m in [0, 1, 5, 257, 300_000] {
            let (here, there) = (row(m)?, row(m + steps)?);
            for (r, there) in there.iter().enumerate() {
                let moved: f32 = (0..h).map(|c| matrix[r * h + c] * here[c]).sum();
                if (moved - there).abs() > 1e-5 {
                    return Err(format!(
                        "from position {m} by {steps}: {moved}, and there is {there}"
                    ));
                }
            }
        }
    }
    // Each pair turns a tenth as fast as the one before. At position 0 all sines are 0.
    for m in [0, 1] {
        for (i, pair) in row(m)?.chunks(2).enumerate() {
            let angle = m as f32 * 0.1f32.powi(i as i32);
            if (pair[0] - angle.sin()).abs() > 1e-5 || (pair[1] - angle.cos()).abs() > 1e-5 {
                return Err(format!("pair {i} of position {m} is {pair:?}"));
            }
        }
    }
    Ok(())
    // task absolute/property: end
}
