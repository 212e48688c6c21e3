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
    todo!("task absolute/sinusoids")
    // task absolute/sinusoids: end
}

/// Task `absolute/shift`. The matrix `S`, `[h, h]`, row by row, with `P[m + steps] = S · P[m]` for EVERY position `m`.
///
/// Rows of `P` count as columns here, so element `r` of the product is the sum over `c` of `S[r, c] · P[m, c]`. Find
/// what `S` does to one pair `(sin a, cos a)` when the angle grows by `steps · w_i`; all other elements are 0. Refuse
/// what [`sinusoids`] refuses.
pub fn shift(steps: usize, hidden_size: usize, base: f64) -> Result<Vec<f32>> {
    // task absolute/shift: begin
    todo!("task absolute/shift")
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
    todo!("task absolute/add")
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
    todo!("task absolute/learned")
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
    todo!("task absolute/property")
    // task absolute/property: end
}
