//! What biases in the scores promise.

mod alibi;
mod kerple;
mod t5;
mod transformer_xl;

pub(super) use alibi::{alibi_text, matches_alibi, matches_slopes};
pub(super) use kerple::{matches_dr, matches_kerple};
pub(super) use t5::{RULES, matches_bucket, matches_dtable, matches_t5, published};
pub(super) use transformer_xl::{matches_xl, xl_text};

use crate::biases::interface::*;
use crate::category::Category;
use crate::component::laws;
use crate::laws::U;
use crate::violation::*;
use alibi::*;
use kerple::*;
use t5::*;
use transformer_xl::*;

type Biases = dyn ScoreBiases;

laws! {
    slopes_of_powers, slopes_published, slopes_between_neighbours, slopes_any, alibi_by_numbers, alibi_falls,
    alibi_after_the_scale, alibi_decoding, alibi_no_future, alibi_any, bucket_edges, bucket_never_decreases,
    bucket_halves, bucket_of_later_keys, bucket_last_digit, bucket_any, t5_reads_its_bucket, t5_relative,
    t5_need_not_fall, t5_decoding, t5_any, t5_gradient_counts, t5_gradient_differences, t5_gradient_in_f64,
    t5_gradient_any, kerple_nothing_at_0, kerple_falls, kerple_by_numbers, kerple_bounds, kerple_positive_definite,
    kerple_any, kerple_gradient_differences, kerple_gradient_at_the_bound, kerple_gradient_any, xl_content_alone,
    xl_place_alone, xl_decoding, xl_no_future, xl_any,
}

/// One graded case.
pub(super) type Asked<C> = crate::graded_cases::Asked<C>;

/// As many values as there should be, or a violation.
fn of_length(call: &str, shape: &[usize], values: Vec<f32>) -> Step<Vec<f32>> {
    let length = Fault::Length { shape: shape.to_vec(), got: values.len() };
    let whole = values.len() == shape.iter().product::<usize>();
    if whole { Ok(values) } else { Err(Violation::new(call, length)) }
}

/// Of weights that are wrong: a key that has weight where it should have none, or the reverse, is wrong about the mask.
fn of_a_mask(violation: Box<Violation>, got: &[f32], expected: &[f64]) -> Box<Violation> {
    let mut pairs = got.iter().zip(expected);
    let moved = pairs
        .any(|(&got, &expected)| (got > 0.0 && expected == 0.0) || (got == 0.0 && expected > 1e-3));
    if moved && !violation.is_rearranged() { violation.about(Category::Mask) } else { violation }
}

/// What a key that is not seen may hold.
const ANYTHING: [f32; 3] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];

/// The last key alone was changed. The rows of `s` queries that do not see it, all but the last, are what they were.
fn unmoved(call: &str, before: &[f32], after: &[f32], [s, t]: [usize; 2]) -> Step {
    let rows = after.chunks(t).zip(before.chunks(t)).enumerate();
    for (_, (after, before)) in rows.filter(|(row, _)| row % s + 1 < s) {
        let why = "the last key alone was changed, and this query does not see it";
        same_values(call, &[t], after, before, why)?;
    }
    Ok(())
}

/// Zeros for what is not seen, and rows whose sum is 1.
fn sees_the_past(call: &str, w: &[f32], s: usize, t: usize) -> Step {
    for (row, w) in w.chunks(t).enumerate() {
        let m = t - s + row % s;
        holds(call, w[m + 1..].iter().all(|w| *w == 0.0), || {
            format!("row {}: weights of later keys are {:?}", row % s, &w[m + 1..])
        })?;
        let sum: f64 = w.iter().map(|w| f64::from(*w)).sum();
        // Each weight is a quotient by one sum of t terms.
        let right = (sum - 1.0).abs() <= (t as f64 + 4.0) * U;
        holds(call, right, || format!("row {}: the weights add up to {sum}", row % s))?;
    }
    Ok(())
}
