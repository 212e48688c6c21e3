//! How far a loss in `f32` may be off, step by step.

use super::oracle::{Passes, Row, row};
use crate::laws::U;
use crate::loss::interface::{LossCase, Part};
use crate::oracle::Oracle;

/// In words.
pub const LOSS_WHY: &str = "of each place (4v + 4)·2⁻²⁴ for the sum of exponentials, what their exponents lose, and one \
                            rounding each of the largest logit and the loss; (n + 2)·2⁻²⁴ for the mean over n places";

/// The same for the gradient.
pub const GRADIENT_WHY: &str = "what the logarithm of the sum and the exponent may be off, times the probability; six \
                                roundings of the result";

/// A result of `exp` or of a product that is smaller may be 0: the smallest normal number of `f32`.
const TINY: f64 = f32::MIN_POSITIVE as f64;

/// What is off in the logarithm of the sum. A difference from the largest logit is rounded once, and `exp` carries it
/// on; so does a sum that is kept up to date while the largest logit is still looked for, which has up to three
/// roundings more a term. A sum of `v` terms rounds `v` times.
fn log_total_off(row: &Row) -> f64 {
    let v = row.logits.len() as f64;
    let lost = |logit: &f64| {
        let below = row.largest - logit;
        let probability = (-below - row.log_total).exp();
        // A logit of minus infinity takes no part.
        if probability == 0.0 { 0.0 } else { probability * below }
    };
    let exponents: f64 = row.logits.iter().map(lost).sum();
    U * (exponents + 4.0 * v + 4.0 + 2.0 * row.log_total.abs())
}

/// How far the loss may be off.
pub fn loss_off(case: &LossCase, passes: &Passes) -> f64 {
    let v = case.shape[2];
    let places = case.logits.chunks(v).zip(&case.targets);
    let place = |(logits, target): (&[f32], &Option<usize>)| {
        let (row, target) = (row(&Oracle, logits), (*target)?);
        let below = row.largest - row.logits[target];
        let loss = below + row.log_total;
        // The largest logit is added back before or after the target's is subtracted.
        Some(log_total_off(&row) + U * (row.largest.abs() + row.log_total + below + loss))
    };
    let of_places: f64 = places.filter_map(place).sum();
    let n = passes.losses.len() as f64;
    let size: f64 = passes.losses.iter().map(|loss| loss.abs()).sum();
    (of_places + (n + 2.0) * U * size) / n
}

/// How far each element of the gradient may be off.
pub fn gradient_off(case: &LossCase, passes: &Passes, dloss: f32) -> Vec<f64> {
    let v = case.shape[2];
    let share = f64::from(dloss.abs()) / passes.losses.len() as f64;
    let of_place = |(nth, (logits, target)): (usize, (&[f32], &Option<usize>))| {
        let row = row(&Oracle, logits);
        let total = log_total_off(&row) + U * (row.largest.abs() + row.log_total + 3.0);
        let at = |id: usize| {
            let below = row.largest - row.logits[id];
            let probability = (-below - row.log_total).exp();
            let value = passes.dlogits[nth * v + id].abs();
            match (target.is_some(), probability == 0.0) {
                (false, _) => 0.0,
                (true, true) => 6.0 * U * value + TINY,
                (true, false) => {
                    let exponent = total + U * (below + row.log_total);
                    share * probability * exponent.exp_m1() + 6.0 * U * value + TINY * (1.0 + share)
                }
            }
        };
        (0..v).map(at).collect::<Vec<_>>()
    };
    case.logits.chunks(v).zip(&case.targets).enumerate().flat_map(of_place).collect()
}

/// How far a perplexity may be off: a product for each part, two sums, a quotient and `exp`.
pub fn perplexity_off(parts: &[Part], perplexity: f64) -> f64 {
    let places: f64 = parts.iter().map(|part| part.places as f64).sum();
    let size: f64 = parts.iter().map(|part| f64::from(part.loss) * part.places as f64).sum();
    let mean_off = (2.0 * parts.len() as f64 + 3.0) * U * size / places;
    perplexity * (mean_off.exp_m1() + 3.0 * U)
}

/// In words.
pub const PERPLEXITY_WHY: &str = "(2n + 3)·2⁻²⁴ of the mean over n parts, which exp makes a share of the result, and 3 \
                                  roundings";
