//! What the invariants of all components share.
//!
//! A **witness** asks about an input that was picked by hand, so that one term matters. A
//! **property** asks about random inputs, which are shrunk when it breaks. Both look at plain
//! values only. Tolerances are counted in roundings, [`U`] each.

use crate::category::Category;
use crate::graded_cases::BLOCK;
use crate::violation::{Step, same_values};

/// The relative error of one rounding in `f32`: half an ulp of 1.
pub const U: f64 = 1.0 / (1u64 << 24) as f64;

/// The same in `f16`.
pub const U16: f64 = 1.0 / (1u64 << 11) as f64;

/// `n` random values, neither tiny nor huge. They shrink to 0.
pub(crate) fn values(n: usize) -> impl proptest::strategy::Strategy<Value = Vec<f32>> {
    proptest::collection::vec(-4.0f32..4.0, n)
}

/// Values in `f64`.
pub(crate) fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// Asks again for what is summed over many tokens. Threads may share the work, and the sum may not show which
/// of them came first.
pub(crate) fn repeats(
    call: &str,
    tokens: usize,
    shape: &[usize],
    got: &[f32],
    mut ask: impl FnMut() -> Step<Vec<f32>>,
) -> Step {
    const WHY: &str = "the same call gave other bits before";
    for _ in 0..if tokens > BLOCK { 3 } else { 0 } {
        same_values(call, shape, &ask()?, got, WHY).map_err(|mut violation| {
            violation.category = Some(Category::State);
            violation
        })?;
    }
    Ok(())
}
