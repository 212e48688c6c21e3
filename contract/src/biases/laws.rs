//! What biases in the scores promise.

use super::oracle::{BiasLoops, LARGEST, LEAST, softmax};
use super::tolerance::{self, KERPLE_WHY, SLOPE_WHY, SUM_WHY, WEIGHT_WHY};
use crate::aspect::Aspect;
use crate::biases::party::*;
use crate::breach::*;
use crate::component::{Invariant, NET};
use crate::ladder::{Draw, climb};
use crate::laws::{U, widen};
use crate::oracle::Oracle;
use crate::run::Run;

type Biases = dyn ScoreBiases;

/// All of them, the most telling first.
pub static INVARIANTS: &[Invariant<Biases>] = &[
    Invariant {
        id: "biases/slopes-of-powers",
        sentence: "For 1, 2, 4, 8 and 16 heads the slopes are the powers of 2 that the paper has.",
        formula: "slope of head t = 2⁻⁸ᵗᐟⁿ,  t = 1 … n",
        chapter: "biases#slopes",
        aspect: Aspect::Frequencies,
        weight: 2,
        stays: Some("The numbers that can be done by hand."),
        check: slopes_of_powers,
    },
    Invariant {
        id: "biases/slopes-published",
        sentence: "For 6, 12 and 20 heads the slopes are those of the published code, in its order.",
        formula: "n = 6  ⇒  2⁻², 2⁻⁴, 2⁻⁶, 2⁻⁸, 2⁻¹, 2⁻³",
        chapter: "biases#slopes",
        aspect: Aspect::Frequencies,
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
        aspect: Aspect::Frequencies,
        weight: 2,
        stays: Some("A law without an oracle, for any number of heads."),
        check: slopes_between_neighbours,
    },
    Invariant {
        id: "biases/slopes-any",
        sentence: "For any number of heads, the slopes are those of the published rule.",
        formula: "slopes of p heads, then every other one of 2p heads,  p ≤ n < 2p",
        chapter: "biases#slopes",
        aspect: Aspect::Frequencies,
        weight: 2,
        stays: Some(NET),
        check: slopes_any,
    },
    Invariant {
        id: "biases/alibi-by-numbers",
        sentence: "If queries and keys are 0, each step back makes a weight smaller by the factor exp(−slope).",
        formula: "q = 0  ⇒  w(j) / w(j + 1) = exp(slope)",
        chapter: "biases#alibi",
        aspect: Aspect::Statistics,
        weight: 2,
        stays: None,
        check: alibi_by_numbers,
    },
    Invariant {
        id: "biases/alibi-falls",
        sentence: "If queries and keys are 0, a nearer key has more weight than a farther one.",
        formula: "q = 0, j < i  ⇒  w(j) > w(i)",
        chapter: "biases#alibi",
        aspect: Aspect::Statistics,
        weight: 1,
        stays: Some("A law without numbers. T5's bias does not keep it."),
        check: alibi_falls,
    },
    Invariant {
        id: "biases/alibi-after-the-scale",
        sentence: "The bias is added after the product was divided by √hd: the head size does not change it.",
        formula: "q = 0  ⇒  w does not depend on hd",
        chapter: "biases#alibi",
        aspect: Aspect::Wiring,
        weight: 2,
        stays: None,
        check: alibi_after_the_scale,
    },
    Invariant {
        id: "biases/alibi-decoding",
        sentence: "The last queries alone, with all keys, get the weights that they get in the whole text.",
        formula: "w(last s of t) = rows t − s … t − 1 of w(all)",
        chapter: "biases#alibi",
        aspect: Aspect::Offset,
        weight: 2,
        stays: Some("A law without an oracle: a text in pieces is the same text."),
        check: alibi_decoding,
    },
    Invariant {
        id: "biases/alibi-no-future",
        sentence: "A key behind its query has the weight 0, exactly, and the weights of a query add up to 1.",
        formula: "n > m  ⇒  w = 0,  Σ w = 1",
        chapter: "biases#alibi",
        aspect: Aspect::Mask,
        weight: 1,
        stays: None,
        check: alibi_no_future,
    },
    Invariant {
        id: "biases/alibi-any",
        sentence: "On any input, the weights with ALiBi are what plain f64 loops give.",
        formula: "w = softmax(q·k / √hd − slope · j)",
        chapter: "biases#alibi",
        aspect: Aspect::Statistics,
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
        aspect: Aspect::Range,
        weight: 2,
        stays: Some("The numbers by which a trained table is read."),
        check: bucket_edges,
    },
    Invariant {
        id: "biases/bucket-never-decreases",
        sentence: "A farther key is never in an earlier bucket, and all from the longest distance on are in the last one.",
        formula: "j ≤ i  ⇒  bucket(j) ≤ bucket(i) ≤ last,  bucket(j) = last for j ≥ longest",
        chapter: "biases#buckets",
        aspect: Aspect::Range,
        weight: 2,
        stays: Some("A law without an oracle, for any rule."),
        check: bucket_never_decreases,
    },
    Invariant {
        id: "biases/bucket-halves",
        sentence: "In both directions, a later key has the bucket of the earlier one at its distance, in the second half.",
        formula: "bucket(+j) = bucket(−j) + buckets/2 for j > 0,  bucket(0) = 0",
        chapter: "biases#buckets",
        aspect: Aspect::Mask,
        weight: 2,
        stays: Some("A law without an oracle: both directions have one rule."),
        check: bucket_halves,
    },
    Invariant {
        id: "biases/bucket-of-later-keys",
        sentence: "In one direction, a later key counts as distance 0, and an earlier one has all the buckets.",
        formula: "bucket(+j) = 0,  bucket(−j) = j for j < buckets/2",
        chapter: "biases#buckets",
        aspect: Aspect::Mask,
        weight: 1,
        stays: Some("What tells one direction from two."),
        check: bucket_of_later_keys,
    },
    Invariant {
        id: "biases/bucket-any",
        sentence: "For any sizes and any distance, the bucket is that of the rule.",
        formula: "bucket(j) = e + ⌊(n − e) · ln(j/e) / ln(longest/e)⌋,  e = ⌊n/2⌋,  at most n − 1",
        chapter: "biases#buckets",
        aspect: Aspect::Range,
        weight: 3,
        stays: Some(NET),
        check: bucket_any,
    },
    Invariant {
        id: "biases/t5-reads-its-bucket",
        sentence: "The bias is the learned number of the bucket and the head, as it is.",
        formula: "bias(head, m, n) = table[bucket(n − m)][head]",
        chapter: "biases#t5",
        aspect: Aspect::Lookup,
        weight: 1,
        stays: Some("The plainest question to a table."),
        check: t5_reads_its_bucket,
    },
    Invariant {
        id: "biases/t5-relative",
        sentence: "Two pairs at the same distance get the same bias, to the bit.",
        formula: "bias(m + 1, n + 1) = bias(m, n)",
        chapter: "biases#t5",
        aspect: Aspect::Offset,
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
        aspect: Aspect::Lookup,
        weight: 1,
        stays: Some("The law of ALiBi and KERPLE that T5 does not keep, turned around."),
        check: t5_need_not_fall,
    },
    Invariant {
        id: "biases/t5-decoding",
        sentence: "The last queries alone, with all keys, get the biases that they get in the whole text.",
        formula: "bias(last s of t) = rows t − s … t − 1 of bias(all)",
        chapter: "biases#t5",
        aspect: Aspect::Offset,
        weight: 2,
        stays: Some("A law without an oracle: a text in pieces is the same text."),
        check: t5_decoding,
    },
    Invariant {
        id: "biases/t5-any",
        sentence: "On any input, T5's bias is what plain loops read, to the bit.",
        formula: "bias = table[bucket(n − m)]",
        chapter: "biases#t5",
        aspect: Aspect::Lookup,
        weight: 2,
        stays: Some(NET),
        check: t5_any,
    },
    Invariant {
        id: "biases/t5-gradient-counts",
        sentence: "A gradient of ones counts how many pairs are in each bucket.",
        formula: "dy = 1  ⇒  dtable[bucket] = number of pairs in it",
        chapter: "biases#t5-gradient",
        aspect: Aspect::Gradient,
        weight: 2,
        stays: Some("The gradient by hand: who counts right adds up right."),
        check: t5_gradient_counts,
    },
    Invariant {
        id: "biases/t5-gradient-differences",
        sentence: "The gradient is what the party's own biases change by, if one number of the table grows by 1.",
        formula: "dtable[e] = Σ dy · (bias(table + 1 at e) − bias(table)), exactly",
        chapter: "biases#t5-gradient",
        aspect: Aspect::Gradient,
        weight: 2,
        stays: Some(
            "A law without an oracle: the bias is linear in its table, so differences are exact.",
        ),
        check: t5_gradient_differences,
    },
    Invariant {
        id: "biases/t5-gradient-any",
        sentence: "On any input, the gradient of the table is the sum over the pairs of each bucket.",
        formula: "dtable[bucket][head] = Σ dy[head][m][n] over its pairs",
        chapter: "biases#t5-gradient",
        aspect: Aspect::Gradient,
        weight: 3,
        stays: Some(NET),
        check: t5_gradient_any,
    },
    Invariant {
        id: "biases/kerple-nothing-at-0",
        sentence: "At distance 0 nothing is taken away, exactly.",
        formula: "bias(0) = 0",
        chapter: "biases#kerple",
        aspect: Aspect::Statistics,
        weight: 1,
        stays: Some("The value that is known before anything is learned."),
        check: kerple_nothing_at_0,
    },
    Invariant {
        id: "biases/kerple-falls",
        sentence: "The bias of a farther key is never larger, whatever was learned.",
        formula: "j < i  ⇒  bias(j) ≥ bias(i)",
        chapter: "biases#kerple",
        aspect: Aspect::Statistics,
        weight: 1,
        stays: Some("A law without numbers, which T5's bias does not keep."),
        check: kerple_falls,
    },
    Invariant {
        id: "biases/kerple-by-numbers",
        sentence: "A logarithm with r₂ = 3 takes r₁ ln 4 away at distance 1; a power with exponent 1 is ALiBi.",
        formula: "−r₁ ln(1 + 3·1) = −r₁ ln 4,  −r₁ j¹ = −r₁ j,  −r₁ j² at 3 = −9 r₁",
        chapter: "biases#kerple",
        aspect: Aspect::Statistics,
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
        aspect: Aspect::Range,
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
        aspect: Aspect::Range,
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
        aspect: Aspect::Statistics,
        weight: 2,
        stays: Some(NET),
        check: kerple_any,
    },
    Invariant {
        id: "biases/kerple-gradient-differences",
        sentence: "The gradients are the slopes that differences of the party's own biases show.",
        formula: "dr ≈ (8(L(r+δ) − L(r−δ)) − (L(r+2δ) − L(r−2δ))) / 12δ",
        chapter: "biases#kerple",
        aspect: Aspect::Gradient,
        weight: 2,
        stays: None,
        check: kerple_gradient_differences,
    },
    Invariant {
        id: "biases/kerple-gradient-at-the-bound",
        sentence: "A number that is out of bounds gets the gradient that it would have at the bound, so that it can come back.",
        formula: "dr(r₁ = −1) = dr(r₁ = 0.01)",
        chapter: "biases#kerple",
        aspect: Aspect::Gradient,
        weight: 1,
        stays: None,
        check: kerple_gradient_at_the_bound,
    },
    Invariant {
        id: "biases/kerple-gradient-any",
        sentence: "On any input, the gradients of r₁ and r₂ are what plain f64 loops give.",
        formula: "dr₁ = −Σ dy ln(1 + r₂j),  dr₂ = −Σ dy r₁j / (1 + r₂j);  or P = exp(r₂ ln j):  −Σ dy P,  −Σ dy r₁ P ln j",
        chapter: "biases#kerple",
        aspect: Aspect::Gradient,
        weight: 2,
        stays: Some(NET),
        check: kerple_gradient_any,
    },
    Invariant {
        id: "biases/xl-content-alone",
        sentence: "If W_r is 0, no distance matters: what is left is the softmax of (q + u)·k.",
        formula: "Wᵣ = 0  ⇒  w = softmax((q + u)·k / √hd)",
        chapter: "biases#transformer-xl",
        aspect: Aspect::Wiring,
        weight: 2,
        stays: None,
        check: xl_content_alone,
    },
    Invariant {
        id: "biases/xl-place-alone",
        sentence: "If q and u are 0, the keys do not matter: neighbours' weights have one ratio wherever the query stands.",
        formula: "q = u = 0  ⇒  w(m, n) / w(m, n − 1) = w(m + 1, n + 1) / w(m + 1, n)",
        chapter: "biases#transformer-xl",
        aspect: Aspect::Offset,
        weight: 2,
        stays: None,
        check: xl_place_alone,
    },
    Invariant {
        id: "biases/xl-decoding",
        sentence: "The last queries alone, with all keys, get the weights that they get in the whole text.",
        formula: "w(last s of t) = rows t − s … t − 1 of w(all)",
        chapter: "biases#transformer-xl",
        aspect: Aspect::Offset,
        weight: 2,
        stays: Some("A law without an oracle: a text in pieces is the same text."),
        check: xl_decoding,
    },
    Invariant {
        id: "biases/xl-no-future",
        sentence: "A key behind its query has the weight 0, exactly, and the weights of a query add up to 1.",
        formula: "n > m  ⇒  w = 0,  Σ w = 1",
        chapter: "biases#transformer-xl",
        aspect: Aspect::Mask,
        weight: 1,
        stays: Some("A law without an oracle: what the shift leaves behind must be hidden."),
        check: xl_no_future,
    },
    Invariant {
        id: "biases/xl-any",
        sentence: "On any input, shifted or not, the weights are those of the direct sum.",
        formula: "w = softmax(((q + u)·k + (q + v)·WᵣRⱼ) / √hd),  j = m − n",
        chapter: "biases#transformer-xl",
        aspect: Aspect::Offset,
        weight: 3,
        stays: Some(NET),
        check: xl_any,
    },
];

/// One question of the ladder.
pub(super) type Asked<C> = crate::ladder::Asked<C>;

/// As many values as there should be, or a breach.
fn of_length(call: &str, shape: &[usize], values: Vec<f32>) -> Step<Vec<f32>> {
    let length = Fault::Length { shape: shape.to_vec(), got: values.len() };
    let whole = values.len() == shape.iter().product::<usize>();
    if whole { Ok(values) } else { Err(Breach::new(call, length)) }
}

// --- slopes ---------------------------------------------------------------------------------

/// Compares all slopes of some number of heads.
fn has_slopes(party: &Biases, num_heads: usize, expected: &[f64]) -> Step {
    answer("slopes", || party.slopes(num_heads))
        .and_then(|got| {
            let off = |i: usize| tolerance::slope(i + 1, num_heads, expected[i]);
            within_f64("slopes", &[num_heads], &got, expected, off, SLOPE_WHY)
        })
        .map_err(|breach| breach.on(format!("{num_heads} heads")))
}

pub(super) fn matches_slopes(party: &Biases, num_heads: usize) -> Step {
    has_slopes(party, num_heads, &Oracle.slopes(num_heads))
}

fn powers_of_half(exponents: &[f64]) -> Vec<f64> {
    exponents.iter().map(|exponent| (-exponent).exp2()).collect()
}

fn slopes_of_powers(party: &Biases, _: &Run) -> Verdict {
    let halves: Vec<f64> = (1..=16).map(|t| f64::from(t) / 2.0).collect();
    let eight: Vec<f64> = (1..=8).map(f64::from).collect();
    for exponents in [&[8.0][..], &[4.0, 8.0], &[2.0, 4.0, 6.0, 8.0], &eight, &halves] {
        has_slopes(party, exponents.len(), &powers_of_half(exponents))?;
    }
    Ok(None)
}

fn slopes_published(party: &Biases, _: &Run) -> Verdict {
    let halves = (1..=16).map(|t| f64::from(t) / 2.0);
    let twenty: Vec<f64> = halves.chain([0.25, 0.75, 1.25, 1.75]).collect();
    let twelve = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.5, 1.5, 2.5, 3.5];
    for exponents in [&[2.0, 4.0, 6.0, 8.0, 1.0, 3.0][..], &twelve, &twenty] {
        has_slopes(party, exponents.len(), &powers_of_half(exponents))?;
    }
    Ok(None)
}

fn slopes_between_neighbours(party: &Biases, run: &Run) -> Verdict {
    for num_heads in (3..=70usize).filter(|nh| run.every_size || [3, 6, 11].contains(nh)) {
        let power = 1 << num_heads.ilog2();
        let on = |breach: Box<Breach>| breach.on(format!("{num_heads} heads"));
        let slopes = answer("slopes", || party.slopes(num_heads)).map_err(on)?;
        let many = slopes.len() == num_heads;
        holds("slopes", many, || format!("{} slopes", slopes.len())).map_err(on)?;
        for nth in power..num_heads {
            let i = nth - power;
            let before = if i == 0 { 1.0 } else { slopes[i - 1] };
            let (square, product) = (slopes[nth] * slopes[nth], before * slopes[i]);
            // What the three of them may be off: twice the one, and the two others.
            let off = |nth: usize| tolerance::slope(nth + 1, num_heads, 1.0);
            let right = (square - product).abs() <= product * (2.0 * off(nth) + 2.0 * off(i));
            holds("slopes", right, || {
                format!("the square of slope {} is {square}, expected {product}", nth + 1)
            })
            .map_err(on)?;
        }
    }
    Ok(None)
}

fn slopes_any(party: &Biases, run: &Run) -> Verdict {
    climb(party, run, "slopes")
}

// --- ALiBi ----------------------------------------------------------------------------------

fn alibi(party: &Biases, case: &AlibiCase) -> Step<Vec<f32>> {
    let [s, t, nh, _] = case.shape;
    answer("alibi", || party.alibi(case))
        .and_then(|w| of_length("alibi", &[nh, s, t], w))
        .map_err(|breach| breach.on(case))
}

/// What the loops give, and how far it may be off.
fn alibi_loops(case: &AlibiCase) -> (Vec<f64>, Vec<f64>) {
    let scores = Oracle.alibi_scores(case);
    (softmax(&scores, case.shape[1]), tolerance::alibi(case, &scores))
}

pub(super) fn matches_alibi(party: &Biases, case: &AlibiCase) -> Step {
    let [s, t, nh, _] = case.shape;
    let (expected, off) = alibi_loops(case);
    let got = alibi(party, case)?;
    within("alibi", &[nh, s, t], &got, &expected, |i| off[i], WEIGHT_WHY)
        .map_err(|breach| breach.on(case))
}

/// Queries and keys of 0: what is left is the bias.
fn of_zeros(shape: [usize; 4]) -> AlibiCase {
    let [s, t, nh, hd] = shape;
    AlibiCase { shape, q: vec![0.0; s * nh * hd], k: vec![0.0; t * nh * hd] }
}

fn alibi_by_numbers(party: &Biases, _: &Run) -> Verdict {
    // Slopes 1/16 and 1/256.
    let case = of_zeros([1, 5, 2, 1]);
    let (w, off) = (widen(&alibi(party, &case)?), alibi_loops(&case).1);
    for (head, slope) in [(0, 1.0 / 16.0f64), (1, 1.0 / 256.0)] {
        for n in 1..5 {
            let at = head * 5 + n;
            let (got, expected) = (w[at] / w[at - 1], slope.exp());
            let off = 2.0 * (off[at] / w[at] + off[at - 1] / w[at - 1]) * expected;
            within_f64("alibi", &[1], &[got], &[expected], |_| off, WEIGHT_WHY)
                .map_err(|breach| breach.on(&case))?;
        }
    }
    Ok(None)
}

fn alibi_falls(party: &Biases, run: &Run) -> Verdict {
    for nh in [1, 3, 8].into_iter().filter(|nh| run.every_size || *nh < 4) {
        let case = of_zeros([2, 6, nh, 1]);
        let w = alibi(party, &case)?;
        for (row, w) in w.chunks(6).enumerate() {
            let seen = &w[..5 + row % 2];
            let falls = seen.windows(2).all(|pair| pair[0] < pair[1]);
            holds("alibi", falls, || format!("weights from far to near: {seen:?}"))
                .map_err(|breach| breach.on(&case))?;
        }
    }
    Ok(None)
}

fn alibi_after_the_scale(party: &Biases, _: &Run) -> Verdict {
    let case = of_zeros([1, 4, 2, 16]);
    let plain = of_zeros([1, 4, 2, 1]);
    let (w, expected) = (alibi(party, &case)?, widen(&alibi(party, &plain)?));
    let off = alibi_loops(&case).1;
    within("alibi", &[2, 1, 4], &w, &expected, |i| 2.0 * off[i], WEIGHT_WHY)
        .map_err(|breach| breach.on(&case))?;
    Ok(None)
}

/// A text of some tokens, in which no two are alike.
pub(super) fn alibi_text(shape: [usize; 4], run: &Run) -> AlibiCase {
    let [s, t, nh, hd] = shape;
    let mut draw = Draw::new(run, (s * 7 + t * 11 + nh * 13 + hd) as u64);
    let share = 0.5 / (hd as f32).sqrt();
    let mut values = |n: usize| draw.values(n).into_iter().map(|x| x * share).collect();
    AlibiCase { shape, q: values(s * nh * hd), k: values(t * nh * hd) }
}

fn alibi_decoding(party: &Biases, run: &Run) -> Verdict {
    let whole = alibi_text([6, 6, 2, 4], run);
    let all = alibi(party, &whole)?;
    let off = alibi_loops(&whole).1;
    for s in [1, 2, 5] {
        let last =
            AlibiCase { shape: [s, 6, 2, 4], q: whole.q[(6 - s) * 8..].to_vec(), ..whole.clone() };
        let w = alibi(party, &last)?;
        let place = |i: usize| i / (6 * s) * 36 + (6 - s) * 6 + i % (6 * s);
        let expected: Vec<f64> = (0..w.len()).map(|i| f64::from(all[place(i)])).collect();
        within("alibi", &[2, s, 6], &w, &expected, |i| 2.0 * off[place(i)], WEIGHT_WHY)
            .map_err(|breach| breach.on(&last))?;
    }
    Ok(None)
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

fn alibi_no_future(party: &Biases, run: &Run) -> Verdict {
    for shape in [[4, 4, 2, 2], [3, 7, 1, 4], [1, 1, 1, 1]] {
        let case = alibi_text(shape, run);
        let w = alibi(party, &case)?;
        sees_the_past("alibi", &w, shape[0], shape[1]).map_err(|breach| breach.on(&case))?;
    }
    Ok(None)
}

fn alibi_any(party: &Biases, run: &Run) -> Verdict {
    climb(party, run, "alibi")
}

// --- buckets --------------------------------------------------------------------------------

/// T5's own sizes.
pub(super) fn published(relative: i64, bidirectional: bool) -> BucketCase {
    BucketCase { relative, bidirectional, num_buckets: 32, max_distance: 128 }
}

fn bucket(party: &Biases, case: &BucketCase) -> Step<usize> {
    answer("bucket", || party.bucket(case)).map_err(|breach| breach.on(case))
}

fn has_bucket(party: &Biases, case: &BucketCase, expected: usize) -> Step {
    let got = bucket(party, case)?;
    holds("bucket", got == expected, || format!("the bucket is {got}, expected {expected}"))
        .map_err(|breach| breach.on(case))
}

pub(super) fn matches_bucket(party: &Biases, case: &BucketCase) -> Step {
    has_bucket(party, case, Oracle.bucket(case))
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

fn bucket_edges(party: &Biases, _: &Run) -> Verdict {
    for (distance, expected) in EDGES {
        has_bucket(party, &published(-distance, false), expected)?;
    }
    for (distance, expected) in EDGES_OF_BOTH {
        has_bucket(party, &published(-distance, true), expected)?;
    }
    Ok(None)
}

/// Sizes of rules: buckets, longest distance, both directions. An odd number of them; hardly any that grow; two.
pub(super) const RULES: [(usize, usize, bool); 8] = [
    (32, 128, false),
    (32, 128, true),
    (8, 20, false),
    (7, 30, false),
    (12, 50, true),
    (6, 10, false),
    (5, 9, true),
    (2, 4, false),
];

fn bucket_never_decreases(party: &Biases, run: &Run) -> Verdict {
    for (num_buckets, max_distance, bidirectional) in RULES {
        let count = if bidirectional { num_buckets / 2 } else { num_buckets };
        let mut before = 0;
        let far = max_distance as i64;
        let step = if run.every_size { 1 } else { 5 };
        for distance in (0..far).step_by(step).chain([far, far + 1, 10 * far, 1 << 40]) {
            let case = BucketCase { relative: -distance, bidirectional, num_buckets, max_distance };
            let got = bucket(party, &case)?;
            let right = (before..count).contains(&got) && (distance < far || got == count - 1);
            holds("bucket", right, || {
                format!(
                    "the bucket is {got}; a nearer key has {before}, and the last is {}",
                    count - 1
                )
            })
            .map_err(|breach| breach.on(case))?;
            before = got;
        }
    }
    Ok(None)
}

fn bucket_halves(party: &Biases, _: &Run) -> Verdict {
    for (num_buckets, max_distance, bidirectional) in RULES {
        let case = |relative| BucketCase { relative, bidirectional, num_buckets, max_distance };
        if !bidirectional {
            continue;
        }
        has_bucket(party, &case(0), 0)?;
        for distance in [1, 2, 3, 7, 8, 9, 20, 49, 127, 128, 500] {
            let earlier = bucket(party, &case(-distance))?;
            has_bucket(party, &case(distance), earlier + num_buckets / 2)?;
        }
    }
    Ok(None)
}

fn bucket_of_later_keys(party: &Biases, _: &Run) -> Verdict {
    for distance in [0, 1, 2, 15, 16, 100, 1000] {
        has_bucket(party, &published(distance, false), 0)?;
    }
    for distance in 0..16 {
        has_bucket(party, &published(-distance, false), distance as usize)?;
    }
    Ok(None)
}

fn bucket_any(party: &Biases, run: &Run) -> Verdict {
    climb(party, run, "bucket")
}

// --- T5 -------------------------------------------------------------------------------------

fn t5(party: &Biases, case: &T5Case) -> Step<Vec<f32>> {
    let [s, t] = case.shape;
    answer("t5", || party.t5(case))
        .and_then(|bias| of_length("t5", &[case.num_heads, s, t], bias))
        .map_err(|breach| breach.on(case))
}

fn t5_backward(party: &Biases, case: &T5Case, dy: &[f32]) -> Step<Vec<f32>> {
    answer("t5_backward", || party.t5_backward(case, dy))
        .and_then(|dtable| of_length("t5_backward", &[case.num_buckets, case.num_heads], dtable))
        .map_err(|breach| breach.on(case))
}

const T5_WHY: &str = "the number of the table, as it is";

pub(super) fn matches_t5(party: &Biases, asked: &Asked<T5Case>) -> Step {
    let Asked { manner, case, .. } = asked;
    let [s, t] = case.shape;
    answer("t5", || party.t5_in(*manner, case))
        .and_then(|bias| {
            same_values("t5", &[case.num_heads, s, t], &bias, &Oracle.t5(case), T5_WHY)
        })
        .map_err(|breach| breach.on(asked))
}

pub(super) fn matches_dtable(party: &Biases, asked: &Asked<T5Case>) -> Step {
    let Asked { manner, case, dy } = asked;
    let (expected, off) = (Oracle.t5_backward(case, dy), tolerance::t5_backward(case, dy));
    answer("t5_backward", || party.t5_backward_in(*manner, case, dy))
        .and_then(|dtable| {
            let shape = [case.num_buckets, case.num_heads];
            within("t5_backward", &shape, &dtable, &expected, |i| off[i], SUM_WHY)
        })
        .map_err(|breach| breach.on(asked))
}

/// A table whose numbers are all different, and rise.
fn rising(shape: [usize; 2], bidirectional: bool) -> T5Case {
    let table = (0..64).map(|i| 0.25 * i as f32).collect();
    T5Case { shape, num_heads: 2, bidirectional, num_buckets: 32, max_distance: 128, table }
}

fn t5_reads_its_bucket(party: &Biases, _: &Run) -> Verdict {
    let case = rising([1, 130], false);
    let bias = t5(party, &case)?;
    for (distance, bucket) in EDGES.into_iter().filter(|(distance, _)| *distance < 130) {
        for head in 0..2 {
            let (got, expected) =
                (bias[head * 130 + 129 - distance as usize], case.table[bucket * 2 + head]);
            holds("t5", got == expected, || {
                format!("head {head} at distance {distance}: {got}, expected {expected}")
            })
            .map_err(|breach| breach.on(&case))?;
        }
    }
    Ok(None)
}

fn t5_relative(party: &Biases, _: &Run) -> Verdict {
    for bidirectional in [false, true] {
        let case = rising([12, 12], bidirectional);
        let bias = t5(party, &case)?;
        for at in (0..2 * 144).filter(|at| at / 12 % 12 < 11 && at % 12 < 11) {
            let (here, there) = (bias[at], bias[at + 13]);
            holds("t5", here == there, || {
                let (m, n) = (at / 12 % 12, at % 12);
                format!("bias({m}, {n}) is {here}, and one further on it is {there}")
            })
            .map_err(|breach| breach.on(&case))?;
        }
    }
    Ok(None)
}

fn t5_need_not_fall(party: &Biases, _: &Run) -> Verdict {
    let case = rising([1, 9], false);
    let bias = t5(party, &case)?;
    for of_head in bias.chunks(9) {
        holds("t5", of_head[0] > of_head[4] && of_head[4] > of_head[8], || {
            format!("from far to near, for a table that rises with the distance: {of_head:?}")
        })
        .map_err(|breach| breach.on(&case))?;
    }
    Ok(None)
}

fn t5_decoding(party: &Biases, _: &Run) -> Verdict {
    for bidirectional in [false, true] {
        let all = t5(party, &rising([9, 9], bidirectional))?;
        for s in [1, 2, 8] {
            let case = rising([s, 9], bidirectional);
            let place = |i: usize| i / (9 * s) * 81 + (9 - s) * 9 + i % (9 * s);
            let expected: Vec<f32> = (0..2 * s * 9).map(|i| all[place(i)]).collect();
            same_values(
                "t5",
                &[2, s, 9],
                &t5(party, &case)?,
                &expected,
                "the rows of the whole text",
            )
            .map_err(|breach| breach.on(&case))?;
        }
    }
    Ok(None)
}

fn t5_any(party: &Biases, run: &Run) -> Verdict {
    climb(party, run, "t5")
}

fn t5_gradient_counts(party: &Biases, _: &Run) -> Verdict {
    let case = rising([20, 20], false);
    // Later keys are at distance 0; then 20 - j pairs at distance j; 16, 17 and 18 share a bucket.
    let mut counts: Vec<f32> =
        (0..32).map(|j| if j < 16 { 20.0 - j as f32 } else { 0.0 }).collect();
    counts[0] += 190.0;
    (counts[16], counts[17]) = (4.0 + 3.0 + 2.0, 1.0);
    let expected: Vec<f32> = counts.iter().flat_map(|count| [*count, 2.0 * *count]).collect();
    let dy: Vec<f32> = (0..800).map(|at| if at < 400 { 1.0 } else { 2.0 }).collect();
    let dtable = t5_backward(party, &case, &dy)?;
    same_values("t5_backward", &[32, 2], &dtable, &expected, "whole numbers, counted")
        .map_err(|breach| breach.on(&case))?;
    Ok(None)
}

fn t5_gradient_differences(party: &Biases, _: &Run) -> Verdict {
    for (shape, bidirectional) in [([5, 5], false), ([3, 6], true)] {
        let [s, t] = shape;
        // Small whole numbers, whose sums are exact.
        let (num_buckets, max_distance) = if bidirectional { (8, 6) } else { (4, 4) };
        let table: Vec<f32> = (0..2 * num_buckets).map(|i| i as f32 - 3.0).collect();
        let case = T5Case { shape, num_heads: 2, bidirectional, num_buckets, max_distance, table };
        let dy: Vec<f32> = (0..2 * s * t).map(|i| (i * 5 % 7) as f32 - 2.0).collect();
        let loss = |case: &T5Case| -> Step<f64> {
            Ok(t5(party, case)?.iter().zip(&dy).map(|(y, dy)| f64::from(y * dy)).sum())
        };
        let dtable = t5_backward(party, &case, &dy)?;
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
        .map_err(|breach| breach.on(&case))?;
    }
    Ok(None)
}

fn t5_gradient_any(party: &Biases, run: &Run) -> Verdict {
    climb(party, run, "t5_backward")
}

// --- KERPLE ---------------------------------------------------------------------------------

const KERNELS: [Kernel; 2] = [Kernel::Logarithmic, Kernel::Power];

fn kerple(party: &Biases, case: &KerpleCase) -> Step<Vec<f32>> {
    answer("kerple", || party.kerple(case))
        .and_then(|bias| of_length("kerple", &[case.r1.len(), case.positions], bias))
        .map_err(|breach| breach.on(case))
}

fn one_head(kernel: Kernel, r1: f32, r2: f32, positions: usize) -> KerpleCase {
    KerpleCase { kernel, r1: vec![r1], r2: vec![r2], positions }
}

pub(super) fn matches_kerple(party: &Biases, asked: &Asked<KerpleCase>) -> Step {
    let Asked { manner, case, .. } = asked;
    let (expected, off) = (Oracle.kerple(case), tolerance::kerple(case));
    answer("kerple", || party.kerple_in(*manner, case))
        .and_then(|bias| {
            let shape = [case.r1.len(), case.positions];
            within("kerple", &shape, &bias, &expected, |i| off[i], KERPLE_WHY)
        })
        .map_err(|breach| breach.on(asked))
}

pub(super) fn matches_dr(party: &Biases, asked: &Asked<KerpleCase>) -> Step {
    let Asked { manner, case, dy } = asked;
    let (expected, off) = (Oracle.kerple_backward(case, dy), tolerance::kerple_backward(case, dy));
    answer("kerple_backward", || party.kerple_backward_in(*manner, case, dy))
        .and_then(|KerpleGrads { dr1, dr2 }| {
            let shape = [case.r1.len()];
            within("kerple_backward", &shape, &dr1, &expected[0], |i| off[0][i], SUM_WHY)?;
            within("kerple_backward", &shape, &dr2, &expected[1], |i| off[1][i], SUM_WHY)
        })
        .map_err(|breach| breach.on(asked))
}

fn kerple_nothing_at_0(party: &Biases, _: &Run) -> Verdict {
    for kernel in KERNELS {
        let case = KerpleCase { kernel, r1: vec![1.0, -3.0], r2: vec![0.5, 7.0], positions: 2 };
        let bias = kerple(party, &case)?;
        holds("kerple", bias[0] == 0.0 && bias[2] == 0.0, || {
            format!("at distance 0 the biases are {} and {}", bias[0], bias[2])
        })
        .map_err(|breach| breach.on(&case))?;
    }
    Ok(None)
}

fn kerple_falls(party: &Biases, _: &Run) -> Verdict {
    for kernel in KERNELS {
        let case = KerpleCase {
            kernel,
            r1: vec![1.0, 0.25, -2.0, 0.0],
            r2: vec![0.5, 1.75, 1.0, -1.0],
            positions: 12,
        };
        for bias in kerple(party, &case)?.chunks(12) {
            holds("kerple", bias.is_sorted_by(|near, far| near >= far), || {
                format!("from near to far: {bias:?}")
            })
            .map_err(|breach| breach.on(&case))?;
        }
    }
    Ok(None)
}

fn kerple_by_numbers(party: &Biases, _: &Run) -> Verdict {
    let ln = f64::ln;
    for (case, expected) in [
        (one_head(Kernel::Logarithmic, 2.0, 3.0, 3), [0.0, -2.0 * ln(4.0), -2.0 * ln(7.0)]),
        (one_head(Kernel::Logarithmic, 0.5, 1.0, 3), [0.0, -0.5 * ln(2.0), -0.5 * ln(3.0)]),
        (one_head(Kernel::Power, 0.5, 1.0, 3), [0.0, -0.5, -1.0]),
        (one_head(Kernel::Power, 3.0, 2.0, 3), [0.0, -3.0, -12.0]),
        (one_head(Kernel::Power, 1.0, 0.5, 3), [0.0, -1.0, -f64::sqrt(2.0)]),
    ] {
        let (bias, off) = (kerple(party, &case)?, tolerance::kerple(&case));
        within("kerple", &[1, 3], &bias, &expected, |i| off[i], KERPLE_WHY)
            .map_err(|breach| breach.on(&case))?;
    }
    Ok(None)
}

fn kerple_bounds(party: &Biases, _: &Run) -> Verdict {
    let [least, largest] = [LEAST, LARGEST].map(|bound| bound as f32);
    for kernel in KERNELS {
        let above = if kernel == Kernel::Power { largest } else { 3.0 };
        let given = KerpleCase {
            kernel,
            r1: vec![-1.0, 0.0, 1.0, 1.0, 0.005],
            r2: vec![1.0, 0.5, -2.0, 3.0, 0.001],
            positions: 6,
        };
        let counts = KerpleCase {
            r1: vec![least, least, 1.0, 1.0, least],
            r2: vec![1.0, 0.5, least, above, least],
            ..given.clone()
        };
        let (bias, expected) = (kerple(party, &given)?, widen(&kerple(party, &counts)?));
        let off = tolerance::kerple(&given);
        within("kerple", &[5, 6], &bias, &expected, |i| 2.0 * off[i], KERPLE_WHY)
            .map_err(|breach| breach.on(&given))?;
    }
    Ok(None)
}

/// `Σ x(m) x(n) bias(|m - n|)`, and the sum of its terms' sizes.
fn form(bias: &[f64], x: &[f64]) -> [f64; 2] {
    let pairs = (0..x.len() * x.len()).map(|at| (at / x.len(), at % x.len()));
    let terms = pairs.map(|(m, n)| x[m] * x[n] * bias[m.abs_diff(n)]);
    terms.fold([0.0; 2], |[sum, size], term| [sum + term, size + term.abs()])
}

/// Whole numbers that add up to 0: second and fourth differences, and drawn ones.
fn balanced(run: &Run) -> Vec<Vec<f64>> {
    let mut draw = Draw::new(run, 31);
    let mut all =
        vec![vec![1.0, -2.0, 1.0], vec![1.0, -4.0, 6.0, -4.0, 1.0], vec![1.0, 0.0, 0.0, -1.0]];
    for _ in 0..3 {
        let mut x: Vec<f64> = (0..7).map(|_| draw.below(9) as f64 - 4.0).collect();
        x.push(-x.iter().sum::<f64>());
        all.push(x);
    }
    all
}

fn kerple_positive_definite(party: &Biases, run: &Run) -> Verdict {
    for kernel in KERNELS {
        for (r1, r2) in [(1.0, 0.5), (2.0, 1.0), (1.0, 1.75), (1.0, 2.0), (1.0, 3.0), (-1.0, 1.5)] {
            let case = one_head(kernel, r1, r2, 8);
            let bias = widen(&kerple(party, &case)?);
            let off = tolerance::kerple(&case);
            for x in balanced(run) {
                let sum = form(&bias, &x)[0];
                let may_be = form(&off, &x)[1];
                holds("kerple", sum >= -may_be, || format!("for x = {x:?} the form is {sum}"))
                    .map_err(|breach| breach.on(&case))?;
            }
        }
    }
    Ok(None)
}

fn kerple_any(party: &Biases, run: &Run) -> Verdict {
    climb(party, run, "kerple")
}

fn kerple_backward(party: &Biases, case: &KerpleCase, dy: &[f32]) -> Step<[Vec<f32>; 2]> {
    let nh = [case.r1.len()];
    answer("kerple_backward", || party.kerple_backward(case, dy))
        .and_then(|KerpleGrads { dr1, dr2 }| {
            let dr1 = of_length("kerple_backward", &nh, dr1)?;
            Ok([dr1, of_length("kerple_backward", &nh, dr2)?])
        })
        .map_err(|breach| breach.on(case))
}

fn kerple_gradient_differences(party: &Biases, _: &Run) -> Verdict {
    const DELTA: f32 = 1.0 / 32.0;
    let delta = f64::from(DELTA);
    let dy = [1.0f32, -0.5, 0.75, 0.25, -1.0];
    for kernel in KERNELS {
        let case = one_head(kernel, 0.75, 1.25, 5);
        let loss = |nth: usize, step: f32| -> Step<f64> {
            let mut moved = case.clone();
            [&mut moved.r1, &mut moved.r2][nth][0] += step;
            Ok(kerple(party, &moved)?
                .iter()
                .zip(&dy)
                .map(|(y, dy)| f64::from(*y) * f64::from(*dy))
                .sum())
        };
        let grads = kerple_backward(party, &case, &dy)?;
        let own = tolerance::kerple_backward(&case, &dy);
        // The values are off by their roundings, and 18 of them are divided by 12δ. A little more than at r: they move.
        let sizes =
            dy.iter().zip(tolerance::kerple(&case)).map(|(dy, off)| f64::from(dy.abs()) * off);
        let rounding = 1.2 * 1.5 * sizes.sum::<f64>() / delta;
        for nth in 0..2 {
            let near = loss(nth, DELTA)? - loss(nth, -DELTA)?;
            let far = loss(nth, 2.0 * DELTA)? - loss(nth, -2.0 * DELTA)?;
            let slope = (8.0 * near - far) / (12.0 * delta);
            // The fifth derivative by r2 of r1 ln(1 + r2 j) is 24 r1 (j / (1 + r2 j))^5, and that of r1 j^r2 is
            // r1 j^r2 (ln j)^5. By r1 there is none.
            let fifth = |(j, dy): (usize, &f32)| {
                let (j, r2) = (j as f64, 1.25 - 2.0 * delta);
                let of_kernel = match kernel {
                    Kernel::Logarithmic => 24.0 * (j / (1.0 + r2 * j)).powi(5),
                    Kernel::Power => j.powf(1.25 + 2.0 * delta) * j.max(1.0).ln().powi(5),
                };
                f64::from(dy.abs()) * 0.75 * of_kernel
            };
            let left = delta.powi(4) / 30.0 * dy.iter().enumerate().map(fifth).sum::<f64>();
            let off = rounding + own[nth][0] + if nth == 1 { left } else { 0.0 };
            let why = "18 values over 12δ, and δ⁴/30 of the fifth derivative";
            within("kerple_backward", &[1], &grads[nth], &[slope], |_| off, why)
                .map_err(|breach| breach.on(&case))?;
        }
    }
    Ok(None)
}

fn kerple_gradient_at_the_bound(party: &Biases, _: &Run) -> Verdict {
    let dy = [1.0f32, -0.5, 0.75, 0.25, -1.0];
    let [least, largest] = [LEAST, LARGEST].map(|bound| bound as f32);
    for kernel in KERNELS {
        for (given, bound) in [
            (one_head(kernel, -1.0, 1.0, 5), one_head(kernel, least, 1.0, 5)),
            (one_head(kernel, 1.0, -1.0, 5), one_head(kernel, 1.0, least, 5)),
            (one_head(Kernel::Power, 1.0, 3.0, 5), one_head(Kernel::Power, 1.0, largest, 5)),
        ] {
            let [got, expected] =
                [kerple_backward(party, &given, &dy)?, kerple_backward(party, &bound, &dy)?];
            let off = tolerance::kerple_backward(&given, &dy);
            for nth in 0..2 {
                let expected = widen(&expected[nth]);
                within(
                    "kerple_backward",
                    &[1],
                    &got[nth],
                    &expected,
                    |_| 2.0 * off[nth][0],
                    SUM_WHY,
                )
                .map_err(|breach| breach.on(&given))?;
            }
        }
    }
    Ok(None)
}

fn kerple_gradient_any(party: &Biases, run: &Run) -> Verdict {
    climb(party, run, "kerple_backward")
}

// --- Transformer-XL -------------------------------------------------------------------------

fn xl(party: &Biases, case: &XlCase) -> Step<Vec<f32>> {
    let [b, s, nh, _] = case.shape;
    answer("transformer_xl", || party.transformer_xl(case))
        .and_then(|w| of_length("transformer_xl", &[b, nh, s, case.keys], w))
        .map_err(|breach| breach.on(case))
}

fn xl_loops(case: &XlCase) -> (Vec<f64>, Vec<f64>) {
    let scores = Oracle.xl_scores(case);
    (softmax(&scores, case.keys), tolerance::transformer_xl(case, &scores))
}

pub(super) fn matches_xl(party: &Biases, asked: &Asked<XlCase>) -> Step {
    let Asked { manner, case, .. } = asked;
    let [b, s, nh, _] = case.shape;
    let (expected, off) = xl_loops(case);
    answer("transformer_xl", || party.transformer_xl_in(*manner, case))
        .and_then(|w| {
            let shape = [b, nh, s, case.keys];
            within("transformer_xl", &shape, &w, &expected, |i| off[i], WEIGHT_WHY)
        })
        .map_err(|breach| breach.on(asked))
}

/// A text in which no two tokens are alike. Scores are of size 1.
pub(super) fn xl_text(shape: [usize; 4], keys: usize, hidden_size: usize, run: &Run) -> XlCase {
    let [b, s, nh, hd] = shape;
    let salt = b * 3 + s * 7 + keys * 11 + nh * 13 + hd * 17 + hidden_size * 19;
    let mut draw = Draw::new(run, salt as u64);
    let mut values = |n: usize, share: f32| -> Vec<f32> {
        draw.values(n).into_iter().map(|x| x * share).collect()
    };
    let (q, k) = (values(b * s * nh * hd, 0.5), values(b * keys * nh * hd, 0.5 / hd as f32));
    let (u, v) = (values(nh * hd, 0.5), values(nh * hd, 0.5));
    let weight = values(nh * hd * hidden_size, 0.5 / hidden_size as f32);
    XlCase { shape, keys, hidden_size, base: 10_000.0, q, k, u, v, weight }
}

fn xl_content_alone(party: &Biases, run: &Run) -> Verdict {
    let mut case = xl_text([1, 4, 2, 2], 6, 4, run);
    case.weight.fill(0.0);
    let score = |at: usize| {
        let (head, i, n) = (at / 24, at / 6 % 4, at % 6);
        if n > 2 + i {
            return f64::NEG_INFINITY;
        }
        let of = |d: usize| {
            let q = f64::from(case.q[(i * 2 + head) * 2 + d]) + f64::from(case.u[head * 2 + d]);
            q * f64::from(case.k[(n * 2 + head) * 2 + d])
        };
        (of(0) + of(1)) / f64::sqrt(2.0)
    };
    let scores: Vec<f64> = (0..48).map(score).collect();
    let (expected, off) = (softmax(&scores, 6), tolerance::transformer_xl(&case, &scores));
    let w = xl(party, &case)?;
    within("transformer_xl", &[1, 2, 4, 6], &w, &expected, |i| off[i], WEIGHT_WHY)
        .map_err(|breach| breach.on(&case))?;
    Ok(None)
}

fn xl_place_alone(party: &Biases, run: &Run) -> Verdict {
    let mut case = xl_text([1, 5, 1, 2], 5, 4, run);
    case.q.fill(0.0);
    case.u.fill(0.0);
    let (w, off) = (widen(&xl(party, &case)?), xl_loops(&case).1);
    let ratio = |m: usize, n: usize| w[m * 5 + n] / w[m * 5 + n - 1];
    let relative =
        |m: usize, n: usize| off[m * 5 + n] / w[m * 5 + n] + off[m * 5 + n - 1] / w[m * 5 + n - 1];
    let same = |[m, n]: [usize; 2], [k, l]: [usize; 2]| {
        let may_be = 2.0 * ratio(m, n) * (relative(m, n) + relative(k, l));
        let why = "what the four weights may be off";
        within_f64("transformer_xl", &[1], &[ratio(k, l)], &[ratio(m, n)], |_| may_be, why)
            .map_err(|breach| breach.on(&case))
    };
    for m in 1..4 {
        for n in 1..=m {
            same([m, n], [m + 1, n + 1])?;
        }
    }
    // And it is the ratio of the distances themselves: v W_r R_j.
    let place = |j: usize| -> f64 {
        let term = |at: usize| {
            let (d, c) = (at / 4, at % 4);
            f64::from(case.v[d])
                * f64::from(case.weight[at])
                * Oracle.sinusoid(j as f64, c, 4, case.base)
        };
        (0..8).map(term).sum::<f64>() / f64::sqrt(2.0)
    };
    for n in 1..5 {
        let expected = (place(4 - n) - place(5 - n)).exp();
        let may_be = 2.0 * expected * relative(4, n);
        within_f64("transformer_xl", &[1], &[ratio(4, n)], &[expected], |_| may_be, WEIGHT_WHY)
            .map_err(|breach| breach.on(&case))?;
    }
    Ok(None)
}

fn xl_decoding(party: &Biases, run: &Run) -> Verdict {
    let whole = xl_text([1, 6, 2, 2], 6, 4, run);
    let all = xl(party, &whole)?;
    let off = xl_loops(&whole).1;
    for s in [1, 2, 5] {
        let last =
            XlCase { shape: [1, s, 2, 2], q: whole.q[(6 - s) * 4..].to_vec(), ..whole.clone() };
        let w = xl(party, &last)?;
        let place = |i: usize| i / (6 * s) * 36 + (6 - s) * 6 + i % (6 * s);
        let expected: Vec<f64> = (0..w.len()).map(|i| f64::from(all[place(i)])).collect();
        within("transformer_xl", &[1, 2, s, 6], &w, &expected, |i| 2.0 * off[place(i)], WEIGHT_WHY)
            .map_err(|breach| breach.on(&last))?;
    }
    Ok(None)
}

fn xl_no_future(party: &Biases, run: &Run) -> Verdict {
    for (shape, keys) in [([1, 4, 2, 2], 4), ([2, 3, 1, 4], 7), ([1, 1, 1, 1], 1)] {
        let case = xl_text(shape, keys, 4, run);
        let w = xl(party, &case)?;
        sees_the_past("transformer_xl", &w, shape[1], keys).map_err(|breach| breach.on(&case))?;
    }
    Ok(None)
}

fn xl_any(party: &Biases, run: &Run) -> Verdict {
    climb(party, run, "transformer_xl")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The law can fail: an exponent of 3 has a negative form, and so has a bias that rises. ALiBi's has none.
    #[test]
    fn not_every_bias_is_a_kernel() {
        let of =
            |bias: fn(f64) -> f64| -> Vec<f64> { (0..8).map(|j| bias(f64::from(j))).collect() };
        let least = |bias: Vec<f64>| {
            let forms = balanced(&Run::default());
            forms.iter().map(|x| form(&bias, x)[0]).fold(f64::INFINITY, f64::min)
        };
        assert!(least(of(|j| -j)) >= 0.0);
        assert!(least(of(|j| -j * j)) >= 0.0);
        assert!(least(of(|j| -(1.0 + 3.0 * j).ln())) >= 0.0);
        assert!(least(of(|j| -j * j * j)) < 0.0);
        assert!(least(of(|j| j)) < 0.0);
    }

    /// T5's bias need not be one, and need not fall.
    #[test]
    fn a_learned_table_promises_less() {
        let bias: Vec<f64> =
            Oracle.t5(&rising([1, 9], false)).iter().take(9).rev().map(|&y| f64::from(y)).collect();
        assert!(bias.is_sorted_by(|near, far| near < far));
        assert!(balanced(&Run::default()).iter().any(|x| form(&bias, x)[0] < 0.0));
    }

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
