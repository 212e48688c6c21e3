//! What biases in the scores promise.

mod alibi;
mod kerple;
mod t5;
mod transformer_xl;

pub(super) use alibi::{alibi_text, matches_alibi, matches_slopes};
pub(super) use kerple::{matches_dr, matches_kerple};
pub(super) use t5::{
    RULES, beside_edges, large_among_ones, matches_bucket, matches_dtable, matches_t5, published,
};
pub(super) use transformer_xl::{matches_xl, xl_text};

use crate::biases::interface::*;
use crate::category::Category;
use crate::component::{Invariant, NET};
use crate::laws::U;
use crate::violation::*;
use alibi::*;
use kerple::*;
use t5::*;
use transformer_xl::*;

type Biases = dyn ScoreBiases;

/// All of them, the most telling first.
pub static INVARIANTS: &[Invariant<Biases>] = &[
    Invariant {
        id: "biases/slopes-of-powers",
        sentence: "For 1, 2, 4, 8 and 16 heads the slopes are the powers of 2 that the paper has.",
        formula: "slope of head t = 2⁻⁸ᵗᐟⁿ,  t = 1 … n",
        chapter: "biases#slopes",
        category: Category::Frequencies,
        weight: 2,
        stays: Some("The numbers that can be done by hand."),
        check: slopes_of_powers,
    },
    Invariant {
        id: "biases/slopes-published",
        sentence: "For 6, 12 and 20 heads the slopes are those of the published code, in its order.",
        formula: "n = 6  ⇒  2⁻², 2⁻⁴, 2⁻⁶, 2⁻⁸, 2⁻¹, 2⁻³",
        chapter: "biases#slopes",
        category: Category::Frequencies,
        weight: 2,
        stays: Some("Numbers that can be compared with a trained model's code."),
        check: slopes_published,
    },
    Invariant {
        id: "biases/slopes-between-neighbours",
        sentence: "A slope of the second sequence is the geometric mean of two neighbours of the first one, so all slopes \
                   differ.",
        formula: "(slope of p + i)² = (slope of i − 1) · (slope of i),  slope of 0 = 1",
        chapter: "biases#slopes",
        category: Category::Frequencies,
        weight: 2,
        stays: Some("A law without an oracle, for any number of heads."),
        check: slopes_between_neighbours,
    },
    Invariant {
        id: "biases/slopes-any",
        sentence: "For any number of heads, the slopes are those of the published rule.",
        formula: "slopes of p heads, then every other one of 2p heads,  p ≤ n < 2p",
        chapter: "biases#slopes",
        category: Category::Frequencies,
        weight: 2,
        stays: Some(NET),
        check: slopes_any,
    },
    Invariant {
        id: "biases/alibi-by-numbers",
        sentence: "If queries and keys are 0, each step back makes a weight smaller by the factor exp(−slope).",
        formula: "q = 0  ⇒  w(j) / w(j + 1) = exp(slope)",
        chapter: "biases#alibi",
        category: Category::Statistics,
        weight: 2,
        stays: None,
        check: alibi_by_numbers,
    },
    Invariant {
        id: "biases/alibi-falls",
        sentence: "If queries and keys are 0, a nearer key has more weight than a farther one.",
        formula: "q = 0, j < i  ⇒  w(j) > w(i)",
        chapter: "biases#alibi",
        category: Category::Statistics,
        weight: 1,
        stays: Some("A law without numbers. T5's bias does not keep it."),
        check: alibi_falls,
    },
    Invariant {
        id: "biases/alibi-after-the-scale",
        sentence: "The bias is added after the product was divided by √hd: the head size does not change it.",
        formula: "q = 0  ⇒  w does not depend on hd",
        chapter: "biases#alibi",
        category: Category::Wiring,
        weight: 2,
        stays: None,
        check: alibi_after_the_scale,
    },
    Invariant {
        id: "biases/alibi-decoding",
        sentence: "The last queries alone, with all keys, get the weights that they get in the whole text.",
        formula: "w(last s of t) = rows t − s … t − 1 of w(all)",
        chapter: "biases#alibi",
        category: Category::Offset,
        weight: 2,
        stays: Some("A law without an oracle: a text in pieces is the same text."),
        check: alibi_decoding,
    },
    Invariant {
        id: "biases/alibi-no-future",
        sentence: "A key behind its query has the weight 0, exactly, whatever it holds, also NaN and infinity, and the weights of \
                   a query add up to 1.",
        formula: "n > m  ⇒  w = 0,  Σ w = 1",
        chapter: "biases#alibi",
        category: Category::Mask,
        weight: 1,
        stays: None,
        check: alibi_no_future,
    },
    Invariant {
        id: "biases/alibi-any",
        sentence: "On any input, the weights with ALiBi are what plain f64 loops give.",
        formula: "w = softmax(q·k / √hd − slope · j)",
        chapter: "biases#alibi",
        category: Category::Statistics,
        weight: 3,
        stays: Some(NET),
        check: alibi_any,
    },
    Invariant {
        id: "biases/bucket-edges",
        sentence: "With 32 buckets up to 128, distances change their bucket where T5 has it: 15 is in 15, 16 in 16, 112 in \
                   30, 113 in 31.",
        formula: "bucket(15) = 15,  bucket(18) = 16,  bucket(19) = 17,  bucket(113) = bucket(128) = 31",
        chapter: "biases#buckets",
        category: Category::Range,
        weight: 2,
        stays: Some("The numbers by which a trained table is read."),
        check: bucket_edges,
    },
    Invariant {
        id: "biases/bucket-never-decreases",
        sentence: "A farther key is never in an earlier bucket, and all from the longest distance on are in the last one.",
        formula: "j ≤ i  ⇒  bucket(j) ≤ bucket(i) ≤ last,  bucket(j) = last for j ≥ longest",
        chapter: "biases#buckets",
        category: Category::Range,
        weight: 2,
        stays: Some("A law without an oracle, for any rule."),
        check: bucket_never_decreases,
    },
    Invariant {
        id: "biases/bucket-halves",
        sentence: "In both directions, a later key has the bucket of the earlier one at its distance, in the second half.",
        formula: "bucket(+j) = bucket(−j) + buckets/2 for j > 0,  bucket(0) = 0",
        chapter: "biases#buckets",
        category: Category::Mask,
        weight: 2,
        stays: Some("A law without an oracle: both directions have one rule."),
        check: bucket_halves,
    },
    Invariant {
        id: "biases/bucket-of-later-keys",
        sentence: "In one direction, a later key counts as distance 0, and an earlier one has all the buckets.",
        formula: "bucket(+j) = 0,  bucket(−j) = j for j < buckets/2",
        chapter: "biases#buckets",
        category: Category::Mask,
        weight: 1,
        stays: Some("What tells one direction from two."),
        check: bucket_of_later_keys,
    },
    Invariant {
        id: "biases/bucket-last-digit",
        sentence: "What is a whole number but for its last digits in f64 is that number, and what is only near one is not: a \
                   bucket begins where it should.",
        formula: "j = e·rᵇ, longest = e·rᵃ  ⇒  bucket(j) = e + (n − e)·b/a, if that is a whole number",
        chapter: "biases#buckets",
        category: Category::Precision,
        weight: 2,
        stays: None,
        check: bucket_last_digit,
    },
    Invariant {
        id: "biases/bucket-any",
        sentence: "For any sizes and any distance, the bucket is that of the rule.",
        formula: "bucket(j) = e + ⌊(n − e) · ln(j/e) / ln(longest/e)⌋,  e = ⌊n/2⌋,  at most n − 1",
        chapter: "biases#buckets",
        category: Category::Range,
        weight: 3,
        stays: Some(NET),
        check: bucket_any,
    },
    Invariant {
        id: "biases/t5-reads-its-bucket",
        sentence: "The bias is the learned number of the bucket and the head, as it is.",
        formula: "bias(head, m, n) = table[bucket(n − m)][head]",
        chapter: "biases#t5",
        category: Category::Lookup,
        weight: 1,
        stays: Some("The plainest question to a table."),
        check: t5_reads_its_bucket,
    },
    Invariant {
        id: "biases/t5-relative",
        sentence: "Two pairs at the same distance get the same bias, to the bit.",
        formula: "bias(m + 1, n + 1) = bias(m, n)",
        chapter: "biases#t5",
        category: Category::Offset,
        weight: 1,
        stays: Some(
            "The property that gives relative positions their name. A learned table of positions breaks it.",
        ),
        check: t5_relative,
    },
    Invariant {
        id: "biases/t5-need-not-fall",
        sentence: "If the table rises with the bucket, so does the bias with the distance: nothing promises that it falls.",
        formula: "table rises  ⇒  bias(8) > bias(4) > bias(0)",
        chapter: "biases#t5",
        category: Category::Lookup,
        weight: 1,
        stays: Some("The law of ALiBi and KERPLE that T5 does not keep, turned around."),
        check: t5_need_not_fall,
    },
    Invariant {
        id: "biases/t5-decoding",
        sentence: "The last queries alone, with all keys, get the biases that they get in the whole text.",
        formula: "bias(last s of t) = rows t − s … t − 1 of bias(all)",
        chapter: "biases#t5",
        category: Category::Offset,
        weight: 2,
        stays: Some("A law without an oracle: a text in pieces is the same text."),
        check: t5_decoding,
    },
    Invariant {
        id: "biases/t5-any",
        sentence: "On any input, T5's bias is what plain loops read, to the bit.",
        formula: "bias = table[bucket(n − m)]",
        chapter: "biases#t5",
        category: Category::Lookup,
        weight: 2,
        stays: Some(NET),
        check: t5_any,
    },
    Invariant {
        id: "biases/t5-gradient-counts",
        sentence: "A gradient of ones counts how many pairs are in each bucket.",
        formula: "dy = 1  ⇒  dtable[bucket] = number of pairs in it",
        chapter: "biases#t5-gradient",
        category: Category::Gradient,
        weight: 2,
        stays: Some("The gradient by hand: who counts right adds up right."),
        check: t5_gradient_counts,
    },
    Invariant {
        id: "biases/t5-gradient-differences",
        sentence: "The gradient is what the implementation's own biases change by, if one number of the table grows by 1.",
        formula: "dtable[e] = Σ dy · (bias(table + 1 at e) − bias(table)), exactly",
        chapter: "biases#t5-gradient",
        category: Category::Gradient,
        weight: 2,
        stays: Some(
            "A law without an oracle: the bias is linear in its table, so differences are exact.",
        ),
        check: t5_gradient_differences,
    },
    Invariant {
        id: "biases/t5-gradient-in-f64",
        sentence: "The sums are made in f64: between a large number and its opposite, nothing is lost.",
        formula: "dy = …, 1, 2²⁸, 1, …, 1, −2²⁸, 1, …  ⇒  dtable = number of ones",
        chapter: "biases#t5-gradient",
        category: Category::Precision,
        weight: 1,
        stays: None,
        check: t5_gradient_in_f64,
    },
    Invariant {
        id: "biases/t5-gradient-any",
        sentence: "On any input, the gradient of the table is the sum over the pairs of each bucket.",
        formula: "dtable[bucket][head] = Σ dy[head][m][n] over its pairs",
        chapter: "biases#t5-gradient",
        category: Category::Gradient,
        weight: 3,
        stays: Some(NET),
        check: t5_gradient_any,
    },
    Invariant {
        id: "biases/kerple-nothing-at-0",
        sentence: "At distance 0 nothing is taken away, exactly.",
        formula: "bias(0) = 0",
        chapter: "biases#kerple",
        category: Category::Statistics,
        weight: 1,
        stays: Some("The value that is known before anything is learned."),
        check: kerple_nothing_at_0,
    },
    Invariant {
        id: "biases/kerple-falls",
        sentence: "The bias of a farther key is never larger, whatever was learned.",
        formula: "j < i  ⇒  bias(j) ≥ bias(i)",
        chapter: "biases#kerple",
        category: Category::Statistics,
        weight: 1,
        stays: Some("A law without numbers, which T5's bias does not keep."),
        check: kerple_falls,
    },
    Invariant {
        id: "biases/kerple-by-numbers",
        sentence: "A logarithm with r₂ = 3 takes r₁ ln 4 away at distance 1; a power with exponent 1 is ALiBi.",
        formula: "−r₁ ln(1 + 3·1) = −r₁ ln 4,  −r₁ j¹ = −r₁ j,  −r₁ j² at 3 = −9 r₁",
        chapter: "biases#kerple",
        category: Category::Statistics,
        weight: 2,
        stays: None,
        check: kerple_by_numbers,
    },
    Invariant {
        id: "biases/kerple-bounds",
        sentence: "A number below 0.01 counts as 0.01. An exponent above 2 counts as 2, and the factor in a logarithm has no \
                   such bound.",
        formula: "bias(r₁ = −1) = bias(r₁ = 0.01),  bias(j³) = bias(j²)",
        chapter: "biases#kerple",
        category: Category::Range,
        weight: 2,
        stays: Some("The bounds themselves, at the numbers that cross them."),
        check: kerple_bounds,
    },
    Invariant {
        id: "biases/kerple-positive-definite",
        sentence: "For numbers x that add up to 0, the bias makes a form that is never negative: it is the kernel of a \
                   distance.",
        formula: "Σ x = 0  ⇒  Σ x(m) x(n) bias(|m − n|) ≥ 0",
        chapter: "biases#kerple",
        category: Category::Range,
        weight: 2,
        stays: Some(
            "What the bounds are there for. An exponent above 2 breaks it, and so does a bias that rises.",
        ),
        check: kerple_positive_definite,
    },
    Invariant {
        id: "biases/kerple-any",
        sentence: "On any input, KERPLE's bias is what plain f64 loops give.",
        formula: "bias = −r₁ ln(1 + r₂ j), or −r₁ exp(r₂ ln j)",
        chapter: "biases#kerple",
        category: Category::Statistics,
        weight: 2,
        stays: Some(NET),
        check: kerple_any,
    },
    Invariant {
        id: "biases/kerple-gradient-differences",
        sentence: "The gradients are the slopes that differences of the implementation's own biases show.",
        formula: "dr ≈ (8(L(r+δ) − L(r−δ)) − (L(r+2δ) − L(r−2δ))) / 12δ",
        chapter: "biases#kerple",
        category: Category::Gradient,
        weight: 2,
        stays: None,
        check: kerple_gradient_differences,
    },
    Invariant {
        id: "biases/kerple-gradient-at-the-bound",
        sentence: "A number that is out of bounds gets the gradient that it would have at the bound, so that it can come back.",
        formula: "dr(r₁ = −1) = dr(r₁ = 0.01)",
        chapter: "biases#kerple",
        category: Category::Gradient,
        weight: 1,
        stays: None,
        check: kerple_gradient_at_the_bound,
    },
    Invariant {
        id: "biases/kerple-gradient-any",
        sentence: "On any input, the gradients of r₁ and r₂ are what plain f64 loops give.",
        formula: "dr₁ = −Σ dy ln(1 + r₂j),  dr₂ = −Σ dy r₁j / (1 + r₂j);  or P = exp(r₂ ln j):  −Σ dy P,  −Σ dy r₁ P ln j",
        chapter: "biases#kerple",
        category: Category::Gradient,
        weight: 2,
        stays: Some(NET),
        check: kerple_gradient_any,
    },
    Invariant {
        id: "biases/xl-content-alone",
        sentence: "If W_r is 0, no distance matters: what is left is the softmax of (q + u)·k.",
        formula: "Wᵣ = 0  ⇒  w = softmax((q + u)·k / √hd)",
        chapter: "biases#transformer-xl",
        category: Category::Wiring,
        weight: 2,
        stays: None,
        check: xl_content_alone,
    },
    Invariant {
        id: "biases/xl-place-alone",
        sentence: "If q and u are 0, the keys do not matter: neighbours' weights have one ratio wherever the query stands.",
        formula: "q = u = 0  ⇒  w(m, n) / w(m, n − 1) = w(m + 1, n + 1) / w(m + 1, n)",
        chapter: "biases#transformer-xl",
        category: Category::Wiring,
        weight: 2,
        stays: None,
        check: xl_place_alone,
    },
    Invariant {
        id: "biases/xl-decoding",
        sentence: "The last queries alone, with all keys, get the weights that they get in the whole text.",
        formula: "w(last s of t) = rows t − s … t − 1 of w(all)",
        chapter: "biases#transformer-xl",
        category: Category::Offset,
        weight: 2,
        stays: Some("A law without an oracle: a text in pieces is the same text."),
        check: xl_decoding,
    },
    Invariant {
        id: "biases/xl-no-future",
        sentence: "A key behind its query has the weight 0, exactly, whatever it holds, also NaN and infinity, and the weights of \
                   a query add up to 1.",
        formula: "n > m  ⇒  w = 0,  Σ w = 1",
        chapter: "biases#transformer-xl",
        category: Category::Mask,
        weight: 1,
        stays: Some("A law without an oracle: what the shift leaves behind must be hidden."),
        check: xl_no_future,
    },
    Invariant {
        id: "biases/xl-any",
        sentence: "On any input, shifted or not, the weights are those of the direct sum.",
        formula: "w = softmax(((q + u)·k + (q + v)·WᵣRⱼ) / √hd),  j = m − n",
        chapter: "biases#transformer-xl",
        category: Category::Offset,
        weight: 3,
        stays: Some(NET),
        check: xl_any,
    },
];

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

/// What may stand in a key that is not seen.
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
