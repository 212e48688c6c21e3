//! T5: the bucket of a distance, the bias that is read from a table, and its gradient.

use super::{Asked, Biases, of_length};
use crate::biases::interface::*;
use crate::biases::oracle::BiasLoops;
use crate::biases::tolerance::{self, SUM_WHY};
use crate::component::{NET, law};
use crate::graded_cases::judge::judge_graded_cases;
use crate::oracle::Oracle;
use crate::run::Run;
use crate::violation::*;

// --- buckets --------------------------------------------------------------------------------

/// T5's own sizes.
pub(in crate::biases) fn published(relative: i64, bidirectional: bool) -> BucketCase {
    BucketCase { relative, bidirectional, num_buckets: 32, max_distance: 128 }
}

fn bucket(biases: &Biases, case: &BucketCase) -> Step<usize> {
    answer("bucket", || biases.bucket(case)).map_err(|violation| violation.on(case))
}

fn has_bucket(biases: &Biases, case: &BucketCase, expected: usize) -> Step {
    let got = bucket(biases, case)?;
    holds("bucket", got == expected, || format!("the bucket is {got}, expected {expected}"))
        .map_err(|violation| violation.on(case))
}

pub(in crate::biases) fn matches_bucket(biases: &Biases, case: &BucketCase) -> Step {
    has_bucket(biases, case, Oracle.bucket(case))
}

/// Last distances of a bucket and first ones of the next, as T5's code has them: (distance, bucket).
const EDGES: [(i64, usize); 15] = [
    (0, 0),
    (1, 1),
    (15, 15),
    (16, 16),
    (18, 16),
    (19, 17),
    (20, 17),
    (21, 18),
    (45, 23),
    (46, 24),
    (112, 30),
    (113, 31),
    (127, 31),
    (128, 31),
    (1000, 31),
];

/// Those in both directions.
const EDGES_OF_BOTH: [(i64, usize); 14] = [
    (0, 0),
    (1, 1),
    (7, 7),
    (8, 8),
    (11, 8),
    (12, 9),
    (15, 9),
    (16, 10),
    (31, 11),
    (32, 12),
    (63, 13),
    (64, 14),
    (90, 14),
    (91, 15),
];

/// With 32 buckets for distances up to 128, each begins where T5's does: 15 is in bucket 15, 16 in 16, 112 in 30, 113
/// in 31.
#[law("biases/bucket-edges", see = "biases#buckets", about = Range, points = 2,
    formula = "bucket(15) = 15,  bucket(18) = 16,  bucket(19) = 17,  bucket(113) = bucket(128) = 31",
    stays = "The numbers by which a trained table is read.")]
pub(super) fn bucket_edges(biases: &Biases, _: &Run) -> Verdict {
    for (distance, expected) in EDGES {
        has_bucket(biases, &published(-distance, false), expected)?;
    }
    for (distance, expected) in EDGES_OF_BOTH {
        has_bucket(biases, &published(-distance, true), expected)?;
    }
    Ok(None)
}

/// Sizes of rules: buckets, longest distance, both directions. An odd number of them; hardly any that grow; two.
pub(in crate::biases) const RULES: [(usize, usize, bool); 8] = [
    (32, 128, false),
    (32, 128, true),
    (8, 20, false),
    (7, 30, false),
    (12, 50, true),
    (6, 10, false),
    (5, 9, true),
    (2, 4, false),
];

/// A farther key is never in an earlier bucket, and all from the longest distance on are in the last one.
#[law("biases/bucket-never-decreases", see = "biases#buckets", about = Range, points = 2,
    formula = "j ≤ i  ⇒  bucket(j) ≤ bucket(i) ≤ last,  bucket(j) = last for j ≥ longest",
    stays = "A law without an oracle, for any rule.")]
pub(super) fn bucket_never_decreases(biases: &Biases, run: &Run) -> Verdict {
    for (num_buckets, max_distance, bidirectional) in RULES {
        let count = if bidirectional { num_buckets / 2 } else { num_buckets };
        let mut before = 0;
        let far = max_distance as i64;
        let step = if run.every_size { 1 } else { 5 };
        for distance in (0..far).step_by(step).chain([far, far + 1, 10 * far, 1 << 40]) {
            let case = BucketCase { relative: -distance, bidirectional, num_buckets, max_distance };
            let got = bucket(biases, &case)?;
            let right = (before..count).contains(&got) && (distance < far || got == count - 1);
            holds("bucket", right, || {
                format!(
                    "the bucket is {got}; a nearer key has {before}, and the last is {}",
                    count - 1
                )
            })
            .map_err(|violation| violation.on(case))?;
            before = got;
        }
    }
    Ok(None)
}

/// With buckets for both directions, a later key has the bucket of the earlier one at its distance, moved to the second
/// half.
#[law("biases/bucket-halves", see = "biases#buckets", about = Mask, points = 2,
    formula = "bucket(+j) = bucket(−j) + buckets/2 for j > 0,  bucket(0) = 0",
    stays = "A law without an oracle: both directions have one rule.")]
pub(super) fn bucket_halves(biases: &Biases, _: &Run) -> Verdict {
    for (num_buckets, max_distance, bidirectional) in RULES {
        let case = |relative| BucketCase { relative, bidirectional, num_buckets, max_distance };
        if !bidirectional {
            continue;
        }
        has_bucket(biases, &case(0), 0)?;
        for distance in [1, 2, 3, 7, 8, 9, 20, 49, 127, 128, 500] {
            let earlier = bucket(biases, &case(-distance))?;
            has_bucket(biases, &case(distance), earlier + num_buckets / 2)?;
        }
    }
    Ok(None)
}

/// With buckets for one direction, a later key counts as distance 0, and earlier keys have all the buckets.
#[law("biases/bucket-of-later-keys", see = "biases#buckets", about = Mask, points = 1,
    formula = "bucket(+j) = 0,  bucket(−j) = j for j < buckets/2",
    stays = "What tells one direction from two.")]
pub(super) fn bucket_of_later_keys(biases: &Biases, _: &Run) -> Verdict {
    for distance in [0, 1, 2, 15, 16, 100, 1000] {
        has_bucket(biases, &published(distance, false), 0)?;
    }
    for distance in 0..16 {
        has_bucket(biases, &published(-distance, false), distance as usize)?;
    }
    Ok(None)
}

/// Rules whose growing buckets begin at whole distances: `e` times a power of a ratio. Each with a distance and its bucket.
fn whole_distances() -> Vec<(BucketCase, usize)> {
    let mut cases = Vec::new();
    // Each way to write the quotient of logarithms is one less in some of them.
    for num_buckets in (3..=24).chain([32, 64]) {
        let (exact, more) = (num_buckets / 2, num_buckets - num_buckets / 2);
        for (up, down) in [(2, 1), (3, 1), (5, 1), (6, 1), (10, 1), (3, 2), (5, 4)] {
            let grown = |steps: u32| {
                let (up, down) = (exact * usize::pow(up, steps), usize::pow(down, steps));
                up.is_multiple_of(down).then_some(up / down).filter(|distance| *distance < 5000)
            };
            for steps in 2..=8u32 {
                let Some(max_distance) = grown(steps) else { continue };
                let begins = |nth: &u32| (more * *nth as usize).is_multiple_of(steps as usize);
                for nth in (1..steps).filter(begins) {
                    let Some(distance) = grown(nth) else { continue };
                    let relative = -(distance as i64);
                    let case =
                        BucketCase { relative, bidirectional: false, num_buckets, max_distance };
                    cases.push((case, exact + more * nth as usize / steps as usize));
                }
            }
        }
    }
    cases
}

/// Distances of a rule with many buckets that lie beside the beginning of one: nearer than `f32` can resolve, and much
/// further than `f64` is off.
fn beside_edges() -> impl Iterator<Item = BucketCase> {
    let (num_buckets, max_distance) = (1usize << 16, 40 << 16);
    let exact = num_buckets / 2;
    let beside = move |distance: &usize| {
        let nth = Oracle.nth(*distance, exact, num_buckets, max_distance);
        (2e-4..1e-3).contains(&(nth - nth.round()).abs())
    };
    let case = move |distance: usize| {
        let relative = -(distance as i64);
        BucketCase { relative, bidirectional: false, num_buckets, max_distance }
    };
    (exact + 1..max_distance).step_by(37).filter(beside).take(100).map(case)
}

/// A value that is whole except for its last digits in f64 counts as whole, and one that is only near a whole number
/// does not: each bucket begins where it should.
#[law("biases/bucket-last-digit", see = "biases#buckets", about = Precision, points = 2,
    formula = "j = e·rᵇ, longest = e·rᵃ  ⇒  bucket(j) = e + (n − e)·b/a, if that is a whole number")]
pub(super) fn bucket_last_digit(biases: &Biases, _: &Run) -> Verdict {
    for (case, expected) in whole_distances() {
        has_bucket(biases, &case, expected)?;
        let before = BucketCase { relative: case.relative + 1, ..case };
        matches_bucket(biases, &before)?;
        let num_buckets = 2 * case.num_buckets;
        has_bucket(biases, &BucketCase { num_buckets, bidirectional: true, ..case }, expected)?;
    }
    beside_edges().try_for_each(|case| matches_bucket(biases, &case))?;
    Ok(None)
}

/// For any sizes and any distance, the bucket is the one that the rule gives.
#[law("biases/bucket-any", see = "biases#buckets", about = Range, points = 3,
    formula = "bucket(j) = e + ⌊(n − e) · ln(j/e) / ln(longest/e)⌋,  e = ⌊n/2⌋,  at most n − 1", stays = NET)]
pub(super) fn bucket_any(biases: &Biases, run: &Run) -> Verdict {
    judge_graded_cases(biases, run, "bucket")
}

// --- T5 -------------------------------------------------------------------------------------

fn t5(biases: &Biases, case: &T5Case) -> Step<Vec<f32>> {
    let [s, t] = case.shape;
    answer("t5", || biases.t5(case))
        .and_then(|bias| of_length("t5", &[case.num_heads, s, t], bias))
        .map_err(|violation| violation.on(case))
}

fn t5_backward(biases: &Biases, case: &T5Case, dy: &[f32]) -> Step<Vec<f32>> {
    answer("t5_backward", || biases.t5_backward(case, dy))
        .and_then(|dtable| of_length("t5_backward", &[case.num_buckets, case.num_heads], dtable))
        .map_err(|violation| violation.on(case))
}

const T5_WHY: &str = "the number of the table, unchanged";

pub(in crate::biases) fn matches_t5(biases: &Biases, asked: &Asked<T5Case>) -> Step {
    let Asked { manner, case, .. } = asked;
    let [s, t] = case.shape;
    answer("t5", || biases.t5_in(*manner, case))
        .and_then(|bias| {
            same_values("t5", &[case.num_heads, s, t], &bias, &Oracle.t5(case), T5_WHY)
        })
        .map_err(|violation| violation.on(asked))
}

pub(in crate::biases) fn matches_dtable(biases: &Biases, asked: &Asked<T5Case>) -> Step {
    let Asked { manner, case, dy } = asked;
    let (expected, off) = (Oracle.t5_backward(case, dy), tolerance::t5_backward(case, dy));
    answer("t5_backward", || biases.t5_backward_in(*manner, case, dy))
        .and_then(|dtable| {
            let shape = [case.num_buckets, case.num_heads];
            within("t5_backward", &shape, &dtable, &expected, |i| off[i], SUM_WHY)
        })
        .map_err(|violation| violation.on(asked))
}

/// A table whose numbers are all different, and rise.
pub(super) fn rising(shape: [usize; 2], bidirectional: bool) -> T5Case {
    let table = (0..64).map(|i| 0.25 * i as f32).collect();
    T5Case { shape, num_heads: 2, bidirectional, num_buckets: 32, max_distance: 128, table }
}

/// The bias is the learned number for its bucket and head, unchanged.
#[law("biases/t5-reads-its-bucket", see = "biases#t5", about = Lookup, points = 1,
    formula = "bias(head, m, n) = table[bucket(n − m)][head]",
    stays = "The plainest question to a table.")]
pub(super) fn t5_reads_its_bucket(biases: &Biases, _: &Run) -> Verdict {
    let case = rising([1, 130], false);
    let bias = t5(biases, &case)?;
    for (distance, bucket) in EDGES.into_iter().filter(|(distance, _)| *distance < 130) {
        for head in 0..2 {
            let (got, expected) =
                (bias[head * 130 + 129 - distance as usize], case.table[bucket * 2 + head]);
            holds("t5", got == expected, || {
                format!("head {head} at distance {distance}: {got}, expected {expected}")
            })
            .map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(None)
}

/// Two pairs at the same distance get the same bias, bit for bit.
#[law("biases/t5-relative", see = "biases#t5", about = Offset, points = 1,
    formula = "bias(m + 1, n + 1) = bias(m, n)",
    stays = "The property that gives relative positions their name. A learned table of positions breaks it.")]
pub(super) fn t5_relative(biases: &Biases, _: &Run) -> Verdict {
    for bidirectional in [false, true] {
        let case = rising([12, 12], bidirectional);
        let bias = t5(biases, &case)?;
        for at in (0..2 * 144).filter(|at| at / 12 % 12 < 11 && at % 12 < 11) {
            let (here, there) = (bias[at], bias[at + 13]);
            holds("t5", here == there, || {
                let (m, n) = (at / 12 % 12, at % 12);
                format!("bias({m}, {n}) is {here}, and one further on it is {there}")
            })
            .map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(None)
}

/// If the table rises with the bucket, the bias rises with the distance: nothing forces it to fall.
#[law("biases/t5-need-not-fall", see = "biases#t5", about = Lookup, points = 1,
    formula = "table rises  ⇒  bias(8) > bias(4) > bias(0)",
    stays = "The law of ALiBi and KERPLE that T5 does not keep, turned around.")]
pub(super) fn t5_need_not_fall(biases: &Biases, _: &Run) -> Verdict {
    let case = rising([1, 9], false);
    let bias = t5(biases, &case)?;
    for of_head in bias.chunks(9) {
        holds("t5", of_head[0] > of_head[4] && of_head[4] > of_head[8], || {
            format!("from far to near, for a table that rises with the distance: {of_head:?}")
        })
        .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// The last queries alone, with all keys, get the same biases as in the whole text.
#[law("biases/t5-decoding", see = "biases#t5", about = Offset, points = 2,
    formula = "bias(last s of t) = rows t − s … t − 1 of bias(all)",
    stays = "A law without an oracle: a text in pieces is the same text.")]
pub(super) fn t5_decoding(biases: &Biases, _: &Run) -> Verdict {
    for bidirectional in [false, true] {
        let all = t5(biases, &rising([9, 9], bidirectional))?;
        for s in [1, 2, 8] {
            let case = rising([s, 9], bidirectional);
            let place = |i: usize| i / (9 * s) * 81 + (9 - s) * 9 + i % (9 * s);
            let expected: Vec<f32> = (0..2 * s * 9).map(|i| all[place(i)]).collect();
            same_values(
                "t5",
                &[2, s, 9],
                &t5(biases, &case)?,
                &expected,
                "the rows of the whole text",
            )
            .map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(None)
}

/// On any input, T5's bias is what plain loops read from the table, bit for bit.
#[law("biases/t5-any", see = "biases#t5", about = Lookup, points = 2,
    formula = "bias = table[bucket(n − m)]", stays = NET)]
pub(super) fn t5_any(biases: &Biases, run: &Run) -> Verdict {
    judge_graded_cases(biases, run, "t5")
}

/// A gradient of ones counts how many pairs are in each bucket.
#[law("biases/t5-gradient-counts", see = "biases#t5-gradient", about = Gradient, points = 2,
    formula = "dy = 1  ⇒  dtable[bucket] = number of pairs in it",
    stays = "The gradient by hand: code that counts right adds up right.")]
pub(super) fn t5_gradient_counts(biases: &Biases, _: &Run) -> Verdict {
    let case = rising([20, 20], false);
    // Later keys are at distance 0; then 20 - j pairs at distance j; 16, 17 and 18 share a bucket.
    let mut counts: Vec<f32> =
        (0..32).map(|j| if j < 16 { 20.0 - j as f32 } else { 0.0 }).collect();
    counts[0] += 190.0;
    (counts[16], counts[17]) = (4.0 + 3.0 + 2.0, 1.0);
    let expected: Vec<f32> = counts.iter().flat_map(|count| [*count, 2.0 * *count]).collect();
    let dy: Vec<f32> = (0..800).map(|at| if at < 400 { 1.0 } else { 2.0 }).collect();
    let dtable = t5_backward(biases, &case, &dy)?;
    same_values("t5_backward", &[32, 2], &dtable, &expected, "whole numbers, counted")
        .map_err(|violation| violation.on(&case))?;
    Ok(None)
}

/// The gradient is exactly what Σ dy · bias changes by, with the implementation's own biases, if one number of the
/// table grows by 1.
#[law("biases/t5-gradient-differences", see = "biases#t5-gradient", about = Gradient, points = 2,
    formula = "dtable[e] = Σ dy · (bias(table + 1 at e) − bias(table)), exactly",
    stays = "A law without an oracle: the bias is linear in its table, so differences are exact.")]
pub(super) fn t5_gradient_differences(biases: &Biases, _: &Run) -> Verdict {
    for (shape, bidirectional) in [([5, 5], false), ([3, 6], true)] {
        let [s, t] = shape;
        // Small whole numbers, whose sums are exact.
        let (num_buckets, max_distance) = if bidirectional { (8, 6) } else { (4, 4) };
        let table: Vec<f32> = (0..2 * num_buckets).map(|i| i as f32 - 3.0).collect();
        let case = T5Case { shape, num_heads: 2, bidirectional, num_buckets, max_distance, table };
        let dy: Vec<f32> = (0..2 * s * t).map(|i| (i * 5 % 7) as f32 - 2.0).collect();
        let loss = |case: &T5Case| -> Step<f64> {
            Ok(t5(biases, case)?.iter().zip(&dy).map(|(y, dy)| f64::from(y * dy)).sum())
        };
        let dtable = t5_backward(biases, &case, &dy)?;
        let before = loss(&case)?;
        let mut expected = Vec::new();
        for place in 0..case.table.len() {
            let mut moved = case.clone();
            moved.table[place] += 1.0;
            expected.push((loss(&moved)? - before) as f32);
        }
        same_values(
            "t5_backward",
            &[num_buckets, 2],
            &dtable,
            &expected,
            "differences of whole numbers",
        )
        .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// A gradient of ones for 36 pairs in two buckets, with a large number and its opposite among those of the first.
fn large_among_ones() -> (T5Case, Vec<f32>) {
    let case = T5Case {
        shape: [6, 6],
        num_heads: 1,
        bidirectional: false,
        num_buckets: 2,
        max_distance: 4,
        table: vec![0.0; 2],
    };
    // Later keys are at distance 0: 21 of the 36 pairs are in the first bucket, of which these are the 6th and the 16th.
    let in_first: Vec<usize> = (0..36).filter(|at| at % 6 >= at / 6).collect();
    let mut dy = vec![1.0; 36];
    const LARGE: f32 = (1u32 << 28) as f32;
    (dy[in_first[5]], dy[in_first[15]]) = (LARGE, -LARGE);
    (case, dy)
}

/// The sums are computed in f64, so that nothing is lost between a large number and its opposite.
#[law("biases/t5-gradient-in-f64", see = "biases#t5-gradient", about = Precision, points = 1,
    formula = "dy = …, 1, 2²⁸, 1, …, 1, −2²⁸, 1, …  ⇒  dtable = number of ones")]
pub(super) fn t5_gradient_in_f64(biases: &Biases, _: &Run) -> Verdict {
    let (case, dy) = large_among_ones();
    let why = "nineteen ones and fifteen, whatever large numbers cancel among them";
    let dtable = t5_backward(biases, &case, &dy)?;
    same_values("t5_backward", &[2, 1], &dtable, &[19.0, 15.0], why)
        .map_err(|violation| violation.on(&case))?;
    Ok(None)
}

/// On any input, the gradient of the table is the sum over the pairs of each bucket.
#[law("biases/t5-gradient-any", see = "biases#t5-gradient", about = Gradient, points = 3,
    formula = "dtable[bucket][head] = Σ dy[head][m][n] over its pairs", stays = NET)]
pub(super) fn t5_gradient_any(biases: &Biases, run: &Run) -> Verdict {
    judge_graded_cases(biases, run, "t5_backward")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the oracle has, whole numbers have: past bucket e there are n - e more, and k of them where
    /// (j / e)^(n - e) >= (longest / e)^k.
    #[test]
    fn buckets_in_whole_numbers() {
        for (num_buckets, max_distance, bidirectional) in RULES {
            let n = if bidirectional { num_buckets / 2 } else { num_buckets };
            let (e, more) = (n / 2, (n - n / 2) as u32);
            let whole = |x: usize, power: u32| (x as f64).powi(power as i32);
            for distance in e..max_distance + 3 {
                let passed = |k: &u32| {
                    let (left, right) = (
                        whole(distance, more) * whole(e, *k),
                        whole(max_distance, *k) * whole(e, more),
                    );
                    left >= right * (1.0 - 1e-12)
                };
                let expected = e + (1..more).filter(passed).count();
                assert_eq!(
                    Oracle.bucket_of_distance(distance, n, max_distance),
                    expected,
                    "{distance} {n}"
                );
            }
        }
    }
}
