//! Transformer-XL: the scores with a term for the place.

use super::{ANYTHING, Asked, Biases, of_a_mask, of_length, sees_the_past, unmoved};
use crate::biases::interface::*;
use crate::biases::oracle::{BiasLoops, softmax};
use crate::biases::tolerance::{self, WEIGHT_WHY};
use crate::component::{NET, law};
use crate::graded_cases::Draw;
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::widen;
use crate::oracle::Oracle;
use crate::run::Run;
use crate::violation::*;

fn xl(biases: &Biases, case: &XlCase) -> Step<Vec<f32>> {
    let [b, s, nh, _] = case.shape;
    answer("transformer_xl", || biases.transformer_xl(case))
        .and_then(|w| of_length("transformer_xl", &[b, nh, s, case.keys], w))
        .map_err(|violation| violation.on(case))
}

fn xl_loops(case: &XlCase) -> (Vec<f64>, Vec<f64>) {
    let scores = Oracle.xl_scores(case);
    (softmax(&scores, case.keys), tolerance::transformer_xl(case, &scores))
}

pub(in crate::biases) fn matches_xl(biases: &Biases, asked: &Asked<XlCase>) -> Step {
    let Asked { manner, case, .. } = asked;
    let [b, s, nh, _] = case.shape;
    let (expected, off) = xl_loops(case);
    answer("transformer_xl", || biases.transformer_xl_in(*manner, case))
        .and_then(|w| {
            let shape = [b, nh, s, case.keys];
            within("transformer_xl", &shape, &w, &expected, |i| off[i], WEIGHT_WHY)
                .map_err(|violation| of_a_mask(violation, &w, &expected))
        })
        .map_err(|violation| violation.on(asked))
}

/// A text in which no two tokens are the same. Scores are of size 1.
pub(in crate::biases) fn xl_text(
    shape: [usize; 4],
    keys: usize,
    hidden_size: usize,
    run: &Run,
) -> XlCase {
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

/// If W_r is 0, no distance matters: what is left is the softmax of (q + u)·k.
#[law("biases/xl-content-alone", see = "biases#transformer-xl", about = Wiring, points = 2,
    formula = "Wᵣ = 0  ⇒  w = softmax((q + u)·k / √hd)")]
pub(super) fn xl_content_alone(biases: &Biases, run: &Run) -> Verdict {
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
    let w = xl(biases, &case)?;
    within("transformer_xl", &[1, 2, 4, 6], &w, &expected, |i| off[i], WEIGHT_WHY)
        .map_err(|violation| violation.on(&case))?;
    Ok(None)
}

/// If q and u are 0, the keys do not matter: at a given distance, neighbours' weights have one ratio wherever the query
/// is.
#[law("biases/xl-place-alone", see = "biases#transformer-xl", about = Wiring, points = 2,
    formula = "q = u = 0  ⇒  w(m, n) / w(m, n − 1) = w(m + 1, n + 1) / w(m + 1, n)")]
pub(super) fn xl_place_alone(biases: &Biases, run: &Run) -> Verdict {
    let mut case = xl_text([1, 5, 1, 2], 5, 4, run);
    case.q.fill(0.0);
    case.u.fill(0.0);
    let (w, off) = (widen(&xl(biases, &case)?), xl_loops(&case).1);
    let ratio = |m: usize, n: usize| w[m * 5 + n] / w[m * 5 + n - 1];
    let relative =
        |m: usize, n: usize| off[m * 5 + n] / w[m * 5 + n] + off[m * 5 + n - 1] / w[m * 5 + n - 1];
    let same = |[m, n]: [usize; 2], [k, l]: [usize; 2]| {
        let may_be = 2.0 * ratio(m, n) * (relative(m, n) + relative(k, l));
        let why = "how far the four weights may be off";
        within_f64("transformer_xl", &[1], &[ratio(k, l)], &[ratio(m, n)], |_| may_be, why)
            .map_err(|violation| violation.on(&case))
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
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// The last queries alone, with all keys, get the same weights as in the whole text.
#[law("biases/xl-decoding", see = "biases#transformer-xl", about = Offset, points = 2,
    formula = "w(last s of t) = rows t − s … t − 1 of w(all)",
    stays = "A law without an oracle: a text in pieces is the same text.")]
pub(super) fn xl_decoding(biases: &Biases, run: &Run) -> Verdict {
    let whole = xl_text([1, 6, 2, 2], 6, 4, run);
    let all = xl(biases, &whole)?;
    let off = xl_loops(&whole).1;
    for s in [1, 2, 5] {
        let last =
            XlCase { shape: [1, s, 2, 2], q: whole.q[(6 - s) * 4..].to_vec(), ..whole.clone() };
        let w = xl(biases, &last)?;
        let place = |i: usize| i / (6 * s) * 36 + (6 - s) * 6 + i % (6 * s);
        let expected: Vec<f64> = (0..w.len()).map(|i| f64::from(all[place(i)])).collect();
        within("transformer_xl", &[1, 2, s, 6], &w, &expected, |i| 2.0 * off[place(i)], WEIGHT_WHY)
            .map_err(|violation| violation.on(&last))?;
    }
    Ok(None)
}

/// A key after its query has a weight of exactly 0, whatever it holds, even NaN or infinity, and the weights of a query
/// add up to 1.
#[law("biases/xl-no-future", see = "biases#transformer-xl", about = Mask, points = 1,
    formula = "n > m  ⇒  w = 0,  Σ w = 1",
    stays = "A law without an oracle: what the shift leaves behind must be hidden.")]
pub(super) fn xl_no_future(biases: &Biases, run: &Run) -> Verdict {
    for (shape, keys) in [([1, 4, 2, 2], 4), ([2, 3, 1, 4], 7), ([1, 1, 1, 1], 1)] {
        let case = xl_text(shape, keys, 4, run);
        let w = xl(biases, &case)?;
        sees_the_past("transformer_xl", &w, shape[1], keys)
            .map_err(|violation| violation.on(&case))?;
        for value in ANYTHING {
            let ([_, s, nh, hd], mut changed) = (shape, case.clone());
            let one = nh * hd;
            changed.k.chunks_mut(keys * one).for_each(|k| k[(keys - 1) * one..].fill(value));
            unmoved("transformer_xl", &w, &xl(biases, &changed)?, [s, keys])
                .map_err(|violation| violation.on(&changed))?;
        }
    }
    Ok(None)
}

/// On any input, the weights are those of the direct sum, whether rows are shifted or not.
#[law("biases/xl-any", see = "biases#transformer-xl", about = Offset, points = 3,
    formula = "w = softmax(((q + u)·k + (q + v)·WᵣRⱼ) / √hd),  j = m − n", stays = NET)]
pub(super) fn xl_any(biases: &Biases, run: &Run) -> Verdict {
    judge_graded_cases(biases, run, "transformer_xl")
}
