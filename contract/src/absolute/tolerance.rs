//! How far a right answer may be off.

use crate::laws::U;

/// One rounding in `f64`.
const U64: f64 = 1.0 / (1u64 << 53) as f64;

/// What a sine or a cosine of the table may be off, for positions below `end`. Rounded to `f32` it is off by `U` at most,
/// since it is at most 1. Its angle is off by the roundings of its frequency, in `f64`: an exponent that is multiplied
/// by `ln base` (2 roundings), the power itself, or `h / 2` products of a power made step by step (2 each); and of the
/// product with the position, and of a row that was made step by step from the one before (2 for each position).
pub fn off(h: usize, base: f64, end: usize) -> f64 {
    U + end as f64 * (2.0 * base.ln() + h as f64 + 8.0) * U64
}

/// In words.
pub const TABLE_WHY: &str =
    "2⁻²⁴ for the rounding to f32, and m·(2·ln base + h + 8)·2⁻⁵³ for an angle in f64";

/// In words, for a row that a matrix has moved.
pub const MOVED_WHY: &str = "four factors, each off by what a value of the table may be";

/// What a sum of a token and such a value may be off: the value's own, and a rounding.
pub fn off_of_sum(sum: f64, of_table: f64) -> f64 {
    of_table + U * (sum.abs() + of_table)
}

/// In words.
pub const SUM_WHY: &str = "what the table may be off, and one rounding of the sum";
