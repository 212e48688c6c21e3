//! ALiBi: the slopes of the heads, and the weights.

use super::{ANYTHING, Biases, of_a_mask, of_length, sees_the_past, unmoved};
use crate::biases::interface::*;
use crate::biases::oracle::{BiasLoops, softmax};
use crate::biases::tolerance::{self, SLOPE_WHY, WEIGHT_WHY};
use crate::component::{NET, law};
use crate::graded_cases::Draw;
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::widen;
use crate::oracle::Oracle;
use crate::run::Run;
use crate::violation::*;

// --- slopes ---------------------------------------------------------------------------------

/// Compares all slopes of some number of heads.
fn has_slopes(biases: &Biases, num_heads: usize, expected: &[f64]) -> Step {
    answer("slopes", || biases.slopes(num_heads))
        .and_then(|got| {
            let off = |i: usize| tolerance::slope(i + 1, num_heads, expected[i]);
            within_f64("slopes", &[num_heads], &got, expected, off, SLOPE_WHY)
        })
        .map_err(|violation| violation.on(format!("{num_heads} heads")))
}

pub(in crate::biases) fn matches_slopes(biases: &Biases, num_heads: usize) -> Step {
    has_slopes(biases, num_heads, &Oracle.slopes(num_heads))
}

fn powers_of_half(exponents: &[f64]) -> Vec<f64> {
    exponents.iter().map(|exponent| (-exponent).exp2()).collect()
}

/// For 1, 2, 4, 8 and 16 heads, the slopes are the powers of 2 that the paper gives.
#[law("biases/slopes-of-powers", see = "biases#slopes", about = Frequencies, points = 2,
    formula = "slope of head t = 2⁻⁸ᵗᐟⁿ,  t = 1 … n",
    stays = "The numbers that can be done by hand.")]
pub(super) fn slopes_of_powers(biases: &Biases, _: &Run) -> Verdict {
    let halves: Vec<f64> = (1..=16).map(|t| f64::from(t) / 2.0).collect();
    let eight: Vec<f64> = (1..=8).map(f64::from).collect();
    for exponents in [&[8.0][..], &[4.0, 8.0], &[2.0, 4.0, 6.0, 8.0], &eight, &halves] {
        has_slopes(biases, exponents.len(), &powers_of_half(exponents))?;
    }
    Ok(None)
}

/// For 6, 12 and 20 heads, the slopes are those of the published code, in its order.
#[law("biases/slopes-published", see = "biases#slopes", about = Frequencies, points = 2,
    formula = "n = 6  ⇒  2⁻², 2⁻⁴, 2⁻⁶, 2⁻⁸, 2⁻¹, 2⁻³",
    stays = "Numbers that can be compared with a trained model's code.")]
pub(super) fn slopes_published(biases: &Biases, _: &Run) -> Verdict {
    let halves = (1..=16).map(|t| f64::from(t) / 2.0);
    let twenty: Vec<f64> = halves.chain([0.25, 0.75, 1.25, 1.75]).collect();
    let twelve = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.5, 1.5, 2.5, 3.5];
    for exponents in [&[2.0, 4.0, 6.0, 8.0, 1.0, 3.0][..], &twelve, &twenty] {
        has_slopes(biases, exponents.len(), &powers_of_half(exponents))?;
    }
    Ok(None)
}

/// A slope of the second sequence is the geometric mean of two neighbours of the first one, so all slopes differ.
#[law("biases/slopes-between-neighbours", see = "biases#slopes", about = Frequencies, points = 2,
    formula = "(slope of p + i)² = (slope of i − 1) · (slope of i),  slope of 0 = 1",
    stays = "A law without an oracle, for any number of heads.")]
pub(super) fn slopes_between_neighbours(biases: &Biases, run: &Run) -> Verdict {
    for num_heads in (3..=70usize).filter(|nh| run.every_size || [3, 6, 11].contains(nh)) {
        let power = 1 << num_heads.ilog2();
        let on = |violation: Box<Violation>| violation.on(format!("{num_heads} heads"));
        let slopes = answer("slopes", || biases.slopes(num_heads)).map_err(on)?;
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

/// For any number of heads, the slopes are those of the published rule.
#[law("biases/slopes-any", see = "biases#slopes", about = Frequencies, points = 2,
    formula = "slopes of p heads, then every other one of 2p heads,  p ≤ n < 2p", stays = NET)]
pub(super) fn slopes_any(biases: &Biases, run: &Run) -> Verdict {
    judge_graded_cases(biases, run, "slopes")
}

// --- ALiBi ----------------------------------------------------------------------------------

fn alibi(biases: &Biases, case: &AlibiCase) -> Step<Vec<f32>> {
    let [s, t, nh, _] = case.shape;
    answer("alibi", || biases.alibi(case))
        .and_then(|w| of_length("alibi", &[nh, s, t], w))
        .map_err(|violation| violation.on(case))
}

/// What the loops give, and how far it may be off.
fn alibi_loops(case: &AlibiCase) -> (Vec<f64>, Vec<f64>) {
    let scores = Oracle.alibi_scores(case);
    (softmax(&scores, case.shape[1]), tolerance::alibi(case, &scores))
}

pub(in crate::biases) fn matches_alibi(biases: &Biases, case: &AlibiCase) -> Step {
    let [s, t, nh, _] = case.shape;
    let (expected, off) = alibi_loops(case);
    let got = alibi(biases, case)?;
    within("alibi", &[nh, s, t], &got, &expected, |i| off[i], WEIGHT_WHY)
        .map_err(|violation| of_a_mask(violation, &got, &expected).on(case))
}

/// Queries and keys of 0: what is left is the bias.
fn of_zeros(shape: [usize; 4]) -> AlibiCase {
    let [s, t, nh, hd] = shape;
    AlibiCase { shape, q: vec![0.0; s * nh * hd], k: vec![0.0; t * nh * hd] }
}

/// If queries and keys are 0, each step back multiplies the weight by exp(−slope).
#[law("biases/alibi-by-numbers", see = "biases#alibi", about = Statistics, points = 2,
    formula = "q = 0  ⇒  w(j) / w(j + 1) = exp(slope)")]
pub(super) fn alibi_by_numbers(biases: &Biases, _: &Run) -> Verdict {
    // Slopes 1/16 and 1/256.
    let case = of_zeros([1, 5, 2, 1]);
    let (w, off) = (widen(&alibi(biases, &case)?), alibi_loops(&case).1);
    for (head, slope) in [(0, 1.0 / 16.0f64), (1, 1.0 / 256.0)] {
        for n in 1..5 {
            let at = head * 5 + n;
            let (got, expected) = (w[at] / w[at - 1], slope.exp());
            let off = 2.0 * (off[at] / w[at] + off[at - 1] / w[at - 1]) * expected;
            within_f64("alibi", &[1], &[got], &[expected], |_| off, WEIGHT_WHY)
                .map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(None)
}

/// If queries and keys are 0, a nearer key has more weight than a farther one.
#[law("biases/alibi-falls", see = "biases#alibi", about = Statistics, points = 1,
    formula = "q = 0, j < i  ⇒  w(j) > w(i)",
    stays = "A law without numbers. T5's bias does not keep it.")]
pub(super) fn alibi_falls(biases: &Biases, run: &Run) -> Verdict {
    for nh in [1, 3, 8].into_iter().filter(|nh| run.every_size || *nh < 4) {
        let case = of_zeros([2, 6, nh, 1]);
        let w = alibi(biases, &case)?;
        for (row, w) in w.chunks(6).enumerate() {
            let seen = &w[..5 + row % 2];
            let falls = seen.windows(2).all(|pair| pair[0] < pair[1]);
            holds("alibi", falls, || format!("weights from far to near: {seen:?}"))
                .map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(None)
}

/// The bias is added after the product was divided by √hd: the head size does not change it.
#[law("biases/alibi-after-the-scale", see = "biases#alibi", about = Wiring, points = 2,
    formula = "q = 0  ⇒  w does not depend on hd")]
pub(super) fn alibi_after_the_scale(biases: &Biases, _: &Run) -> Verdict {
    let case = of_zeros([1, 4, 2, 16]);
    let plain = of_zeros([1, 4, 2, 1]);
    let (w, expected) = (alibi(biases, &case)?, widen(&alibi(biases, &plain)?));
    let off = alibi_loops(&case).1;
    within("alibi", &[2, 1, 4], &w, &expected, |i| 2.0 * off[i], WEIGHT_WHY)
        .map_err(|violation| violation.on(&case))?;
    Ok(None)
}

/// A text of some tokens, in which no two are the same.
pub(in crate::biases) fn alibi_text(shape: [usize; 4], run: &Run) -> AlibiCase {
    let [s, t, nh, hd] = shape;
    let mut draw = Draw::new(run, (s * 7 + t * 11 + nh * 13 + hd) as u64);
    let share = 0.5 / (hd as f32).sqrt();
    let mut values = |n: usize| draw.values(n).into_iter().map(|x| x * share).collect();
    AlibiCase { shape, q: values(s * nh * hd), k: values(t * nh * hd) }
}

/// The last queries alone, with all keys, get the same weights as in the whole text.
#[law("biases/alibi-decoding", see = "biases#alibi", about = Offset, points = 2,
    formula = "w(last s of t) = rows t − s … t − 1 of w(all)",
    stays = "A law without an oracle: a text in pieces is the same text.")]
pub(super) fn alibi_decoding(biases: &Biases, run: &Run) -> Verdict {
    let whole = alibi_text([6, 6, 2, 4], run);
    let all = alibi(biases, &whole)?;
    let off = alibi_loops(&whole).1;
    for s in [1, 2, 5] {
        let last =
            AlibiCase { shape: [s, 6, 2, 4], q: whole.q[(6 - s) * 8..].to_vec(), ..whole.clone() };
        let w = alibi(biases, &last)?;
        let place = |i: usize| i / (6 * s) * 36 + (6 - s) * 6 + i % (6 * s);
        let expected: Vec<f64> = (0..w.len()).map(|i| f64::from(all[place(i)])).collect();
        within("alibi", &[2, s, 6], &w, &expected, |i| 2.0 * off[place(i)], WEIGHT_WHY)
            .map_err(|violation| violation.on(&last))?;
    }
    Ok(None)
}

/// A key after its query has a weight of exactly 0, whatever it holds, even NaN or infinity, and the weights of a query
/// add up to 1.
#[law("biases/alibi-no-future", see = "biases#alibi", about = Mask, points = 1,
    formula = "n > m  ⇒  w = 0,  Σ w = 1")]
pub(super) fn alibi_no_future(biases: &Biases, run: &Run) -> Verdict {
    for shape in [[4, 4, 2, 2], [3, 7, 1, 4], [1, 1, 1, 1]] {
        let case = alibi_text(shape, run);
        let w = alibi(biases, &case)?;
        sees_the_past("alibi", &w, shape[0], shape[1]).map_err(|violation| violation.on(&case))?;
        for value in ANYTHING {
            let ([s, t, nh, hd], mut changed) = (shape, case.clone());
            changed.k[(t - 1) * nh * hd..].fill(value);
            unmoved("alibi", &w, &alibi(biases, &changed)?, [s, t])
                .map_err(|violation| violation.on(&changed))?;
        }
    }
    Ok(None)
}

/// On any input, the weights with ALiBi are what plain f64 loops give.
#[law("biases/alibi-any", see = "biases#alibi", about = Statistics, points = 3,
    formula = "w = softmax(q·k / √hd − slope · j)", stays = NET)]
pub(super) fn alibi_any(biases: &Biases, run: &Run) -> Verdict {
    judge_graded_cases(biases, run, "alibi")
}
