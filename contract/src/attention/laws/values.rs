//! Heads, mask, and the values of attention.

use super::tolerance::{WHY, tolerances};
use super::{Attention, Case, case_of, cases, sizes};
use crate::attention::interface::*;
use crate::category::Category;
use crate::component::{NET, law};
use crate::describe::List;
use crate::graded_cases::Draw;
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::{U, widen};
use crate::run::Run;
use crate::violation::*;

// --- repeat ---------------------------------------------------------------------------------

/// The copies of a head are neighbours, 0, 0, 1, 1, and do not take turns, 0, 1, 0, 1.
#[law("attention/repeat-neighbours", see = "attention#groups", about = Order, points = 2,
    formula = "repeat(x, n)[j] = x[j / n]",
    stays = "The order itself, in numbers that are known by heart.")]
pub(super) fn repeat_neighbours(attention: &Attention, _: &Run) -> Verdict {
    // Two tokens of two heads, of two elements each.
    let x = [1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 4.0, -4.0];
    for (times, heads) in [(1, vec![0, 1]), (2, vec![0, 0, 1, 1]), (3, vec![0, 0, 0, 1, 1, 1])] {
        let token = |token: usize| {
            heads.iter().flat_map(move |head| x[token * 4 + head * 2..][..2].to_vec())
        };
        let expected: Vec<f32> = token(0).chain(token(1)).collect();
        let why = format!("heads {heads:?} of each token: copies are neighbours");
        answer("repeat", || attention.repeat([1, 2, 2, 2], times, &x))
            .and_then(|got| same_values("repeat", &[1, 2, 2 * times, 2], &got, &expected, &why))
            .map_err(|violation| {
                violation.on(format!("x [1, 2, 2, 2] = {}, {times} times", List(&x)))
            })?;
    }
    Ok(None)
}

/// For any number and size of heads, the copies of a head are neighbours.
#[law("attention/repeat-any-size", see = "attention#groups", about = Order, points = 1,
    formula = "repeat(x, n)[j] = x[j / n]", stays = NET)]
pub(super) fn repeat_any_size(attention: &Attention, run: &Run) -> Verdict {
    judge_graded_cases(attention, run, "repeat")
}

/// What repeated heads must be. Places are numbered, so that each differs from all others.
pub(in crate::attention) fn matches_repeat(
    attention: &Attention,
    shape: [usize; 4],
    times: usize,
    manner: Manner,
) -> Step {
    let [b, t, nkv, hd] = shape;
    let row = t * nkv * hd;
    let rows = if manner == Manner::Broadcast { 1 } else { b };
    // Values are moved, and a NaN is one.
    let number = |i: usize| if i == 1 { f32::NAN } else { i as f32 + 1.0 };
    let numbers: Vec<f32> = (0..rows * row).map(number).collect();
    let x: Vec<f32> = (0..b * row).map(|i| numbers[i % numbers.len()]).collect();
    let from = |i: usize| {
        let (token, head) = (i / (nkv * times * hd), i / hd % (nkv * times));
        x[(token * nkv + head / times) * hd + i % hd]
    };
    let expected: Vec<f32> = (0..b * row * times).map(from).collect();
    let input = format!("{}\nx {shape:?} = 1, NaN, 3, 4, .., {times} times", manner.words());
    answer("repeat", || attention.repeat_in(manner, shape, times, &x))
        .and_then(|got| {
            let why = "head j is head j / times of x";
            same_values("repeat", &[b, t, nkv * times, hd], &got, &expected, why)
        })
        .map_err(|violation| violation.on(input.trim_start()))
}

/// The gradient of a head is the sum over its copies.
#[law("attention/repeat-gradient", see = "attention#groups", about = Gradient, points = 1,
    formula = "dx[j] = Σ dy[i] over the copies i of j", stays = NET)]
pub(super) fn repeat_gradient(attention: &Attention, run: &Run) -> Verdict {
    judge_graded_cases(attention, run, "repeat_backward")
}

/// What the gradient of repeated heads must be. One `dy` may be NaN: only its own head has it.
pub(in crate::attention) fn matches_repeat_back(
    attention: &Attention,
    shape: [usize; 4],
    times: usize,
    (manner, nan): (Manner, bool),
) -> Step {
    let [b, t, nkv, hd] = shape;
    let n = b * t * nkv * hd;
    let mut dy = Draw::new(&Run::default(), (n * 3 + times) as u64).values(n * times);
    if nan {
        dy[n * times / 2] = f32::NAN;
    }
    let (mut expected, mut size) = (vec![0.0; n], vec![0.0; n]);
    for (i, dy) in dy.iter().enumerate() {
        let at = i / (times * hd) * hd + i % hd;
        expected[at] += f64::from(*dy);
        size[at] += f64::from(dy.abs());
    }
    let why = "the sum over the copies of a head; n·2⁻²⁴ of Σ|dy| for n copies";
    let input = || {
        let (words, dy) = (manner.words(), List(&dy));
        format!("{words}\nx {shape:?}, {times} times, dy = {dy}")
    };
    let call = "repeat_backward";
    answer(call, || attention.repeat_backward(manner, shape, times, &dy))
        .and_then(|dx| within(call, &shape, &dx, &expected, |i| times as f64 * U * size[i], why))
        .map_err(|violation| violation.on(input().trim_start()))
}

// --- mask -----------------------------------------------------------------------------------

/// Rows of a mask, as they are written.
pub(super) fn mask_of(rows: &[&str]) -> Vec<bool> {
    rows.iter().flat_map(|row| row.chars().map(|c| c == '1')).collect()
}

fn expect_mask(attention: &Attention, s: usize, p: usize, expected: &[bool], why: &str) -> Step {
    let number = |mask: &[bool]| -> Vec<f32> { mask.iter().map(|&m| u8::from(m).into()).collect() };
    answer("mask", || attention.mask(s, p))
        .and_then(|got| same_values("mask", &[s, p + s], &number(&got), &number(expected), why))
        .map_err(|violation| violation.on(format!("{s} new tokens after {p} in the cache")))
}

/// With nothing in the cache, row t of the mask sees columns 0 to t: a triangle with its diagonal.
#[law("attention/mask-triangle", see = "attention#mask", about = Mask, points = 1,
    formula = "p = 0  ⇒  mask[t][j] = 1 where j ≤ t",
    stays = "The mask that is known by heart.")]
pub(super) fn mask_triangle(attention: &Attention, _: &Run) -> Verdict {
    let why = "1 where row t sees column j: j ≤ t";
    expect_mask(attention, 1, 0, &mask_of(&["1"]), why)?;
    expect_mask(attention, 3, 0, &mask_of(&["100", "110", "111"]), why)?;
    expect_mask(attention, 4, 0, &mask_of(&["1000", "1100", "1110", "1111"]), why)?;
    Ok(None)
}

/// With p positions in the cache, the mask has p + s columns, and every row sees at least the first p + 1.
#[law("attention/mask-with-cache", see = "attention#mask", about = Mask, points = 2,
    formula = "mask[t][j] = 1 where j ≤ p + t",
    stays = "The mask that is known by heart, where tokens came before.")]
pub(super) fn mask_with_cache(attention: &Attention, _: &Run) -> Verdict {
    let why = "1 where row t sees column j: j ≤ p + t, so all of the cache and itself";
    expect_mask(attention, 1, 4, &mask_of(&["11111"]), why)?;
    expect_mask(attention, 3, 2, &mask_of(&["11100", "11110", "11111"]), why)?;
    expect_mask(attention, 2, 3, &mask_of(&["11110", "11111"]), why)?;
    Ok(None)
}

/// The mask of the last s tokens of a text is the last s rows of the text's mask.
#[law("attention/mask-tail", see = "attention#mask", about = Mask, points = 1,
    formula = "mask(s, t − s) = the last s rows of mask(t, 0)",
    stays = "A law without an oracle: it compares masks with each other.")]
pub(super) fn mask_tail(attention: &Attention, _: &Run) -> Verdict {
    for t in 2..7 {
        let whole = answer("mask", || attention.mask(t, 0))
            .map_err(|violation| violation.on(format!("{t} new tokens")))?;
        for s in 1..t {
            let tail = whole.get((t - s) * t..).unwrap_or_default();
            let why = format!("the last {s} rows of the mask of {t} tokens");
            expect_mask(attention, s, t - s, tail, &why)?;
        }
    }
    Ok(None)
}

/// For any number of new tokens after any p in the cache, row t sees columns 0 to p + t.
#[law("attention/mask-any-size", see = "attention#mask", about = Mask, points = 1,
    formula = "mask[t][j] = 1 where j ≤ p + t", stays = NET)]
pub(super) fn mask_any_size(attention: &Attention, run: &Run) -> Verdict {
    judge_graded_cases(attention, run, "mask")
}

/// What a mask must be.
pub(in crate::attention) fn matches_mask(attention: &Attention, s: usize, p: usize) -> Step {
    let expected: Vec<bool> = (0..s).flat_map(|i| (0..p + s).map(move |j| j <= p + i)).collect();
    expect_mask(attention, s, p, &expected, "1 where row t sees column j: j ≤ p + t")
}

// --- attention ------------------------------------------------------------------------------

pub(super) fn forward(attention: &Attention, case: &AttendCase) -> Step<Vec<f32>> {
    let y =
        answer("forward", || attention.forward(case)).map_err(|violation| violation.on(case))?;
    let length = Fault::Length { shape: case.sizes.of_queries().to_vec(), got: y.len() };
    if y.len() == case.q.len() { Ok(y) } else { Err(Violation::new("forward", length).on(case)) }
}

fn expect(case: &AttendCase, got: &[f32], expected: &[f64], times: f64, why: &str) -> Step {
    let tolerance = tolerances(case, &[]).y;
    let why = format!("{why}. {WHY}");
    within("forward", &case.sizes.of_queries(), got, expected, |i| times * tolerance[i], &why)
        .map_err(|violation| violation.on(case))
}

/// The first token of a text sees itself alone, so it gets its own value, bit for bit, however low its score is.
#[law("attention/first-token", see = "attention#definition", about = Statistics, points = 1,
    formula = "p = 0  ⇒  y₀ = v₀")]
pub(super) fn first_token(attention: &Attention, _: &Run) -> Verdict {
    for (s, heads) in [(1, (1, 1)), (1, (4, 2)), (3, (6, 2)), (3, (3, 3))] {
        let case = case_of(sizes([2, s, s], heads, 4), 1);
        let y = forward(attention, &case)?;
        let (nh, nkv) = heads;
        let first = |y: &[f32], n: usize| {
            y.chunks(s * n * 4).flat_map(|row| row[..n * 4].to_vec()).collect::<Vec<_>>()
        };
        let (got, v) = (first(&y, nh), first(&case.v, nkv));
        let from = |i: usize| v[(i / (nh * 4) * nkv + i / 4 % nh / (nh / nkv)) * 4 + i % 4];
        let expected: Vec<f32> = (0..got.len()).map(from).collect();
        let why = "its own value: the softmax of one score is 1, whatever the score";
        same_values("forward", &[2, 1, nh, 4], &got, &expected, why)
            .map_err(|violation| violation.on(&case))?;
    }
    // Its score is below any number that is taken for minus infinity, and those of later keys are not.
    for scale in [1e4, 1e12] {
        let mut case = case_of(sizes([1, 3, 3], (1, 1), 4), 1);
        let low: Vec<f32> = case.k[..4].iter().map(|k| -scale * k).collect();
        case.q[..4].copy_from_slice(&low);
        let y = forward(attention, &case)?;
        let why =
            "its own value, and nothing of what it does not see: its one score is far below 0";
        // 0/0 is an exponential without its maximum, and a mixture is a mask that is too high.
        let lost = y[..4].iter().any(|y| y.is_nan());
        let category = if lost { Category::Precision } else { Category::Mask };
        same_values("forward", &[1, 1, 1, 4], &y[..4], &case.v[..4], why)
            .map_err(|violation| violation.on(&case).about(category))?;
    }
    Ok(None)
}

/// A query of zeros gives all positions the same score, and gets the mean of the values that it sees.
#[law("attention/equal-scores", see = "attention#definition", about = Statistics, points = 2,
    formula = "q = 0  ⇒  y = mean of v₀ .. v at p + t",
    stays = "It needs no exponential: the answer is a plain mean.")]
pub(super) fn equal_scores(attention: &Attention, _: &Run) -> Verdict {
    for [s, t] in [[1, 5], [4, 4], [2, 5]] {
        let mut case = case_of(sizes([1, s, t], (2, 1), 3), 2);
        case.q.fill(0.0);
        let v = widen(&case.v);
        let mean = |i: usize| {
            let (row, d) = (i / 6, i % 3);
            let seen = t - s + row + 1;
            (0..seen).map(|j| v[j * 3 + d]).sum::<f64>() / seen as f64
        };
        let expected: Vec<f64> = (0..case.q.len()).map(mean).collect();
        expect(
            &case,
            &forward(attention, &case)?,
            &expected,
            1.0,
            "the mean of the values that are seen",
        )?;
    }
    Ok(None)
}

/// Scores are divided by the root of the head size: a product of √hd · ln 3 weighs three times as much as one of 0.
#[law("attention/score-scale", see = "attention#scale", about = Statistics, points = 2,
    formula = "q·k₀ = √hd · ln 3,  q·k₁ = 0  ⇒  weights 3/4 and 1/4")]
pub(super) fn score_scale(attention: &Attention, _: &Run) -> Verdict {
    for (heads, hd) in [((1, 1), 4), ((1, 1), 16), ((2, 1), 9), ((4, 2), 64)] {
        let sizes = sizes([1, 1, 2], heads, hd);
        let (nh, nkv) = heads;
        // q·k is √hd · ln 3 for the first key and 0 for the second.
        let part = (3f64.ln() / (hd as f64).sqrt()) as f32;
        let first =
            |n: usize, one: f32| (0..2 * n).map(|i| if i < n { one } else { 0.0 }).collect();
        let case = AttendCase {
            sizes,
            q: vec![1.0; nh * hd],
            k: first(nkv * hd, part),
            v: first(nkv * hd, 1.0),
        };
        let why = "scores ln 3 and 0, so weights 3/4 and 1/4, and values 1 and 0";
        let tolerance = tolerances(&case, &[]).y;
        // The key itself is rounded, which moves the score by one rounding.
        let tolerance = |i: usize| tolerance[i] + 2.0 * U;
        let y = forward(attention, &case)?;
        within("forward", &sizes.of_queries(), &y, &vec![0.75; nh * hd], tolerance, why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// Changing the keys and values at a position changes no row before it, not by a bit, and every row from it on.
#[law("attention/causal", see = "attention#mask", about = Mask, points = 3,
    formula = "k′, v′ differ at j  ⇒  y_t unchanged for p + t < j",
    stays = "A law without an oracle: it compares attention with itself, at each position.")]
pub(super) fn causal(attention: &Attention, _: &Run) -> Verdict {
    for [s, t] in [[4, 4], [3, 5]] {
        let case = case_of(sizes([1, s, t], (4, 2), 3), 3);
        let (y, one) = (forward(attention, &case)?, 2 * 3);
        // The second change gives scores of hundreds of thousands: no number that is subtracted hides them.
        for (at, factor) in (0..t).flat_map(|at| [(at, -1.0), (at, -1e6)]) {
            let mut changed = case.clone();
            changed.k[at * one..][..one].iter_mut().for_each(|k| *k *= factor);
            changed.v[at * one..][..one].iter_mut().for_each(|v| *v += 8.0);
            let again = forward(attention, &changed)?;
            let before = at.saturating_sub(t - s).min(s) * 12;
            let why =
                format!("position {at} has other keys and values, and these rows come before it");
            let shape = [1, before / 12, 4, 3];
            same_values("forward", &shape, &again[..before], &y[..before], &why)
                .map_err(|violation| violation.on(&changed))?;
            let unread = (before..y.len()).find(|i| again[*i] == y[*i]);
            holds("forward", unread.is_none(), || {
                let row = unread.unwrap_or(0) / 12;
                format!("row {row} is at position {} and does not read position {at}", t - s + row)
            })
            .map_err(|violation| violation.on(&changed))?;
        }
    }
    Ok(None)
}

/// A key that a row does not see has no part in it, whatever it holds, even NaN or infinity.
#[law("attention/unseen-keys", see = "attention#mask", about = Mask, points = 2,
    formula = "k_j = NaN or ±∞  ⇒  y_t unchanged for p + t < j")]
pub(super) fn unseen_keys(attention: &Attention, _: &Run) -> Verdict {
    for [s, t] in [[4, 4], [3, 5]] {
        let case = case_of(sizes([1, s, t], (4, 2), 3), 3);
        let (y, one) = (forward(attention, &case)?, 2 * 3);
        for at in t - s + 1..t {
            for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut changed = case.clone();
                // One element of each head, so that a score is infinite and not always NaN.
                changed.k[at * one..][..one].iter_mut().step_by(3).for_each(|k| *k = value);
                let again = forward(attention, &changed)?;
                let before = (at - (t - s)) * 12;
                let shape = [1, before / 12, 4, 3];
                let why = format!("the key at {at} holds {value}, and these rows come before it");
                same_values("forward", &shape, &again[..before], &y[..before], &why)
                    .map_err(|violation| violation.on(&changed))?;
            }
        }
    }
    Ok(None)
}

/// Adding one vector to all keys changes nothing: all scores of a query grow by the same number.
#[law("attention/key-shift", see = "attention#softmax", about = Statistics, points = 2,
    formula = "y(q, k + c, v) = y(q, k, v)",
    stays = "What a softmax knows of its scores: their differences. It needs no oracle.")]
pub(super) fn key_shift(attention: &Attention, _: &Run) -> Verdict {
    let mut case = case_of(sizes([1, 3, 4], (4, 2), 4), 4);
    case.k.iter_mut().for_each(|k| *k = (*k * 8.0).round() / 8.0); // so that a shift is exact
    let before = forward(attention, &case)?;
    for shift in [[1.0, 0.5, -2.0, 4.0], [-16.0, 8.0, 0.25, 32.0]] {
        let mut shifted = case.clone();
        shifted.k.iter_mut().enumerate().for_each(|(i, k)| *k += shift[i % 4]);
        let (near, far) = (tolerances(&case, &[]).y, tolerances(&shifted, &[]).y);
        let why = "the same as before: one vector added to all keys adds one number to all scores of a query";
        let y = forward(attention, &shifted)?;
        let tolerance = |i: usize| near[i] + far[i];
        within("forward", &[1, 3, 4, 4], &y, &widen(&before), tolerance, why)
            .map_err(|violation| violation.on(&shifted))?;
    }
    Ok(None)
}

/// Scores from hundreds up to a million, of either sign, give finite results, because the largest is subtracted first.
#[law("attention/large-scores", see = "attention#softmax", about = Precision, points = 2,
    formula = "softmax(x) = softmax(x − max x)")]
pub(super) fn large_scores(attention: &Attention, _: &Run) -> Verdict {
    for score in [200.0, 3000.0, 1e5, 1e6, -200.0, -3000.0, -1e5, -1e6f32] {
        // A key whose score is 150 lower, and two equal ones. hd is 4, so a score is half of the product.
        let key = |first: f32| [first, 0.0, 0.0, 0.0];
        let case = AttendCase {
            sizes: sizes([1, 1, 3], (1, 1), 4),
            q: vec![score, 0.0, 0.0, 0.0],
            k: [key(2.0 - 300.0 / score), key(2.0), key(2.0)].concat(),
            v: vec![90.0, 90.0, 90.0, 90.0, 1.0, 2.0, -1.0, 0.5, 3.0, 4.0, 2.0, -1.5],
        };
        let why = format!("scores {}, {score}, {score}: the mean of two values", score - 150.0);
        expect(&case, &forward(attention, &case)?, &[2.0, 3.0, 0.5, -0.5], 1.0, &why)?;
    }
    Ok(None)
}

/// If there are fewer queries than keys, they are the last ones: their rows are those of a call with all queries.
#[law("attention/decode", see = "attention#mask", about = Mask, points = 3,
    formula = "y(q_last, k, v) = the last rows of y(q, k, v)",
    stays = "A law without an oracle: what a cache is for.")]
pub(super) fn decode(attention: &Attention, _: &Run) -> Verdict {
    for heads in [(2, 2), (4, 2), (3, 1)] {
        let whole = case_of(sizes([2, 5, 5], heads, 4), 5);
        let (y, one) = (forward(attention, &whole)?, heads.0 * 4);
        for s in 1..5 {
            let tail = |x: &[f32]| -> Vec<f32> {
                x.chunks(5 * one).flat_map(|row| row[(5 - s) * one..].to_vec()).collect()
            };
            let case = AttendCase {
                sizes: AttendSizes { queries: s, ..whole.sizes },
                q: tail(&whole.q),
                ..whole.clone()
            };
            let why =
                format!("the last {s} rows of a call with all five queries, and the same keys");
            expect(&case, &forward(attention, &case)?, &widen(&tail(&y)), 2.0, &why)?;
        }
    }
    Ok(None)
}

/// Keys and values may change places together without changing the last token's result.
#[law("attention/past-is-a-bag", see = "attention#definition", about = Order, points = 1,
    formula = "y(q, P·k, P·v) = y(q, k, v), for a query that sees all",
    stays = "It says what attention does not know: the order of what it reads.")]
pub(super) fn past_is_a_bag(attention: &Attention, _: &Run) -> Verdict {
    let case = case_of(sizes([1, 1, 5], (4, 2), 4), 6);
    let y = widen(&forward(attention, &case)?);
    for order in [[1, 0, 2, 3, 4], [3, 2, 1, 0, 4], [4, 0, 1, 2, 3]] {
        let moved = |x: &[f32]| order.iter().flat_map(|at| x[at * 8..][..8].to_vec()).collect();
        let bag = AttendCase { k: moved(&case.k), v: moved(&case.v), ..case.clone() };
        let why = format!("the same as before: keys and values in the order {order:?}");
        expect(&bag, &forward(attention, &bag)?, &y, 2.0, &why)?;
    }
    Ok(None)
}

/// Grouped heads give the same as a call with one key head for each query head, each a copy of its group's.
#[law("attention/groups-are-copies", see = "attention#groups", about = Order, points = 2,
    formula = "y(q, k, v) = y(q, repeat(k), repeat(v))",
    stays = "A law without an oracle: it compares grouped heads with heads of their own.")]
pub(super) fn groups_are_copies(attention: &Attention, run: &Run) -> Verdict {
    run.forall(cases(), |Case { case, .. }| {
        let AttendSizes { num_heads: nh, num_kv_heads: nkv, head_dim: hd, .. } = case.sizes;
        let copied = |x: &[f32]| -> Vec<f32> {
            let token = |token: &[f32]| -> Vec<f32> {
                (0..nh).flat_map(|head| token[head / (nh / nkv) * hd..][..hd].to_vec()).collect()
            };
            x.chunks(nkv * hd).flat_map(token).collect()
        };
        let each_its_own = AttendCase {
            sizes: AttendSizes { num_kv_heads: nh, ..case.sizes },
            k: copied(&case.k),
            v: copied(&case.v),
            ..case.clone()
        };
        let expected = widen(&forward(attention, &each_its_own)?);
        let why = format!("a call with {nh} key heads, each of the {nkv} copied for its group");
        expect(case, &forward(attention, case)?, &expected, 2.0, &why)
    })?;
    Ok(None)
}

/// The query heads of one group may change places, and their results change places with them.
#[law("attention/heads-change-places", see = "attention#groups", about = Order, points = 1,
    formula = "y(P·q, k, v) = P·y(q, k, v), P within the groups",
    stays = "A law without an oracle: only the group tells a query head from another.")]
pub(super) fn heads_change_places(attention: &Attention, _: &Run) -> Verdict {
    // Heads 0, 1, 2 read key head 0, and 3, 4, 5 read key head 1.
    let case = case_of(sizes([1, 2, 3], (6, 2), 4), 7);
    let y = forward(attention, &case)?;
    for order in [[1, 0, 2, 3, 4, 5], [2, 0, 1, 5, 4, 3]] {
        let moved = |x: &[f32]| -> Vec<f32> {
            x.chunks(24)
                .flat_map(|token| order.iter().flat_map(|head| token[head * 4..][..4].to_vec()))
                .collect()
        };
        let turned = AttendCase { q: moved(&case.q), ..case.clone() };
        let why =
            format!("the same heads as before, in the order {order:?}, which mixes no groups");
        expect(&turned, &forward(attention, &turned)?, &widen(&moved(&y)), 2.0, &why)?;
    }
    Ok(None)
}

/// The weights of a row sum to 1: if all values are the same number, the result is that number.
#[law("attention/weights-sum-to-one", see = "attention#softmax", about = Statistics, points = 2,
    formula = "v = c  ⇒  y = c",
    stays = "It looks at the weights alone, without an oracle.")]
pub(super) fn weights_sum_to_one(attention: &Attention, run: &Run) -> Verdict {
    run.forall(cases(), |Case { case, .. }| {
        let flat = AttendCase { v: vec![3.0; case.v.len()], ..case.clone() };
        let expected = vec![3.0; case.q.len()];
        expect(
            &flat,
            &forward(attention, &flat)?,
            &expected,
            1.0,
            "all values are 3, and so is their mean",
        )
    })?;
    Ok(None)
}

/// A text of NaN gives NaN, and leaves the other texts of the batch as they were, bit for bit.
#[law("attention/batch-rows-apart", see = "attention#definition", about = Order, points = 1,
    formula = "row b of q, k, v is NaN  ⇒  row b of y is NaN, the others unchanged")]
pub(super) fn batch_rows_apart(attention: &Attention, _: &Run) -> Verdict {
    let case = case_of(sizes([2, 2, 3], (4, 2), 4), 8);
    let y = forward(attention, &case)?;
    for broken in [0, 1] {
        let mut changed = case.clone();
        for x in [&mut changed.q, &mut changed.k, &mut changed.v] {
            let half = x.len() / 2;
            x[broken * half..][..half].fill(f32::NAN);
        }
        let again = forward(attention, &changed)?;
        let half = |y: &[f32], row: usize| y[row * y.len() / 2..][..y.len() / 2].to_vec();
        let why = format!("batch row {broken} is NaN, and the other one is as it was");
        let kept = 1 - broken;
        same_values("forward", &[2, 4, 4], &half(&again, kept), &half(&y, kept), &why)
            .map_err(|violation| violation.on(&changed))?;
        let told = half(&again, broken).iter().all(|y| y.is_nan());
        holds("forward", told, || format!("batch row {broken} is NaN, and its result is not"))
            .map_err(|violation| violation.on(&changed))?;
    }
    Ok(None)
}

/// On any input, y is what plain f64 loops give.
#[law("attention/forward-f64-loops", see = "attention#definition", about = Statistics, points = 3,
    formula = "y = softmax(q·kᵀ / √hd + mask) · v", stays = NET)]
pub(super) fn forward_f64_loops(attention: &Attention, run: &Run) -> Verdict {
    judge_graded_cases(attention, run, "forward")
}

/// Key heads that do not divide the query heads are refused, and so are more queries than keys.
#[law("attention/forward-refuses", see = "attention#groups", about = Refusal, points = 1,
    formula = "nh mod nkv ≠ 0, or t < s  ⇒  an error")]
pub(super) fn forward_refuses(attention: &Attention, _: &Run) -> Verdict {
    for (sizes, rule) in [
        (sizes([1, 2, 2], (4, 3), 2), "3 key heads for 4 query heads"),
        (sizes([1, 2, 2], (2, 4), 2), "more key heads than query heads"),
        (sizes([1, 2, 2], (4, 0), 2), "no key head at all"),
        (sizes([2, 3, 2], (2, 1), 2), "more queries than keys: each query is at its own position"),
    ] {
        let case = case_of(sizes, 9);
        refusal("forward", rule, || attention.forward(&case))
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}
