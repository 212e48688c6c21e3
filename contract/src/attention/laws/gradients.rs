//! The gradients of attention, and the softmax's own.

use super::tolerance::{BACK_WHY, SOFTMAX_WHY, WHY, softmax_tolerance, tolerances, tolerances_by};
use super::values::forward;
use super::{Attention, Case, case_of, cases, sizes};
use crate::attention::interface::*;
use crate::attention::oracle::{AttentionLoops, Passes};
use crate::component::{NET, law};
use crate::graded_cases::judge::judge_graded_cases;
use crate::graded_cases::{self, Draw};
use crate::laws::{U, widen};
use crate::oracle::Oracle;
use crate::oracle::known::{Known, Question};
use crate::run::Run;
use crate::violation::*;
use std::rc::Rc;

fn backward(attention: &Attention, case: &AttendCase, dy: &[f32]) -> Step<AttendGrads> {
    answer("backward", || attention.backward(case, dy)).map_err(|violation| violation.on(case))
}

/// The gradients are the slopes of the implementation's own outputs, measured by finite differences.
#[law("attention/gradient-differences", see = "attention#gradient", about = Gradient, points = 2,
    formula = "dx ≈ (8(L(x+δ) − L(x−δ)) − (L(x+2δ) − L(x−2δ))) / 12δ")]
pub(super) fn gradient_differences(attention: &Attention, _: &Run) -> Verdict {
    let case = case_of(sizes([1, 2, 3], (2, 1), 2), 11);
    let dy: Vec<f32> = (0..case.q.len()).map(|i| 1.0 - 0.25 * i as f32).collect();
    let delta = 1.0 / 16.0;
    let loss = |change: &dyn Fn(&mut AttendCase)| -> Step<f64> {
        let mut moved = case.clone();
        change(&mut moved);
        let y = forward(attention, &moved)?;
        Ok(y.iter().zip(&dy).map(|(&y, &dy)| f64::from(y) * f64::from(dy)).sum())
    };
    let slope = |of: fn(&mut AttendCase) -> &mut Vec<f32>, i: usize| -> Step<f64> {
        let at = |step: f32| loss(&|case| of(case)[i] += step);
        let (near, far) = (at(delta)? - at(-delta)?, at(2.0 * delta)? - at(-2.0 * delta)?);
        Ok((8.0 * near - far) / (12.0 * f64::from(delta)))
    };
    let slopes = |of: fn(&mut AttendCase) -> &mut Vec<f32>| -> Step<Vec<f64>> {
        let n = of(&mut case.clone()).len();
        (0..n).map(|i| slope(of, i)).collect()
    };
    let expected =
        [slopes(|case| &mut case.q)?, slopes(|case| &mut case.k)?, slopes(|case| &mut case.v)?];
    let AttendGrads { dq, dk, dv } = backward(attention, &case, &dy)?;
    let (of_q, of_k) = (case.sizes.of_queries(), case.sizes.of_keys());
    // What the outputs are off, by 18 of them in 12 steps; and what a step of 1/16 leaves out.
    let size: f64 = dy.iter().map(|dy| f64::from(dy.abs())).sum();
    let off = tolerances(&case, &[]).y;
    let off: f64 = off.iter().zip(&dy).map(|(off, dy)| off * f64::from(dy.abs())).sum();
    let tolerance = 24.0 * 2.0 * off + 1e-4 * size;
    let why = "the slope of the outputs: 24 times how far they may be off, and 10⁻⁴ of Σ|dy| for steps of 1/16";
    let parts = [("dq", of_q, dq), ("dk", of_k, dk), ("dv", of_k, dv)];
    for ((name, shape, got), expected) in parts.into_iter().zip(&expected) {
        within(&format!("backward ({name})"), &shape, &got, expected, |_| tolerance, why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// What a token does not see gets no gradient from it: exactly 0.
#[law("attention/gradient-of-the-future", see = "attention#gradient", about = Mask, points = 2,
    formula = "dy is 0 except for the first new token  ⇒  dk, dv are 0 behind p",
    stays = "Exactly 0, without a tolerance: it says what a mask means for a gradient.")]
pub(super) fn gradient_of_the_future(attention: &Attention, _: &Run) -> Verdict {
    // Only the first of three new tokens is asked about. It is at position p.
    for p in [0, 2] {
        let case = case_of(sizes([1, 3, p + 3], (4, 2), 4), 12);
        let mut dy = vec![0.0; case.q.len()];
        dy[..16].fill(1.0);
        let AttendGrads { dq, dk, dv } = backward(attention, &case, &dy)?;
        let parts = [("dq", dq, 16, 1), ("dk", dk, 8, p + 1), ("dv", dv, 8, p + 1)];
        for (name, got, one, first) in parts {
            let late = got.get(first * one..).unwrap_or_default();
            let why = format!(
                "dy is 0 except for the first new token, at position {p}: later ones have no part in it"
            );
            let (call, n) = (format!("backward ({name})"), late.len());
            same_values(&call, &[n / one, one], late, &vec![0.0; n], &why)
                .map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(None)
}

/// The sum over the tokens, for each batch row, key head and element; of `n` heads, those of a group together.
fn over_tokens(x: &[f64], [b, t, n, hd]: [usize; 4], nkv: usize) -> Vec<f64> {
    let mut sums = vec![0.0; b * nkv * hd];
    for (i, x) in x.iter().enumerate() {
        let (row, head, d) = (i / (t * n * hd), i / hd % n, i % hd);
        sums[(row * nkv + head / (n / nkv)) * hd + d] += x;
    }
    sums
}

/// The gradients of all values of a head add up to the sum of dy over all queries and all heads of its group.
#[law("attention/gradient-of-values-adds-up", see = "attention#gradient", about = Gradient, points = 2,
    formula = "Σ_j dv_j = Σ_t Σ_group dy_t",
    stays = "A sum that needs no softmax: it tells whether a group's heads are all counted.")]
pub(super) fn gradient_of_values_adds_up(attention: &Attention, run: &Run) -> Verdict {
    run.forall(cases(), |Case { case, dy }| {
        let (sizes, nkv) = (case.sizes, case.sizes.num_kv_heads);
        let [b, _, _, hd] = sizes.of_keys();
        let dv = widen(&backward(attention, case, dy)?.dv);
        let got = over_tokens(&dv, sizes.of_keys(), nkv);
        let expected = over_tokens(&widen(dy), sizes.of_queries(), nkv);
        let tolerance = over_tokens(&tolerances(case, dy).dv, sizes.of_keys(), nkv);
        let why = "the sum of dy over queries and the heads of a group, since weights sum to 1; how far each dv may be off";
        within_f64("backward (dv)", &[b, nkv, hd], &got, &expected, |i| tolerance[i], why)
    })?;
    Ok(None)
}

/// The gradients of all keys of a head add up to 0, because adding one vector to all keys changes nothing.
#[law("attention/gradient-of-keys-cancels", see = "attention#gradient", about = Gradient, points = 2,
    formula = "Σ_j dk_j = 0",
    stays = "It follows from key-shift, and needs no oracle.")]
pub(super) fn gradient_of_keys_cancels(attention: &Attention, run: &Run) -> Verdict {
    run.forall(cases(), |Case { case, dy }| {
        let (sizes, nkv) = (case.sizes, case.sizes.num_kv_heads);
        let [b, _, _, hd] = sizes.of_keys();
        let dk = widen(&backward(attention, case, dy)?.dk);
        let got = over_tokens(&dk, sizes.of_keys(), nkv);
        let tolerance = over_tokens(&tolerances(case, dy).dk, sizes.of_keys(), nkv);
        let why =
            "adding one vector to all keys changes nothing; the sum of how far each dk may be off";
        let expected = vec![0.0; got.len()];
        within_f64("backward (dk)", &[b, nkv, hd], &got, &expected, |i| tolerance[i], why)
    })?;
    Ok(None)
}

/// On any input, dq is what plain f64 loops give.
#[law("attention/gradient-of-queries", see = "attention#gradient", about = Gradient, points = 2,
    formula = "dq_t = Σ_j w_tj (dw_tj − Σ w·dw) k_j / √hd", stays = NET)]
pub(super) fn gradient_of_queries(attention: &Attention, run: &Run) -> Verdict {
    judge_graded_cases(attention, run, "backward (dq)")
}

/// On any input, dk is what plain f64 loops give.
#[law("attention/gradient-of-keys", see = "attention#gradient", about = Gradient, points = 2,
    formula = "dk_j = Σ_group Σ_t w_tj (dw_tj − Σ w·dw) q_t / √hd", stays = NET)]
pub(super) fn gradient_of_keys(attention: &Attention, run: &Run) -> Verdict {
    judge_graded_cases(attention, run, "backward (dk)")
}

/// On any input, dv is what plain f64 loops give.
#[law("attention/gradient-of-values", see = "attention#gradient", about = Gradient, points = 2,
    formula = "dv_j = Σ_group Σ_t w_tj dy_t", stays = NET)]
pub(super) fn gradient_of_values(attention: &Attention, run: &Run) -> Verdict {
    judge_graded_cases(attention, run, "backward (dv)")
}

/// What the loops give, and how far each value may be off.
fn loops(case: &AttendCase, dy: &[f32]) -> Rc<(Passes, Passes)> {
    thread_local!(static KNOWN: Known<(Passes, Passes)> = Known::default());
    let AttendSizes { batch, queries, keys, num_heads, num_kv_heads, head_dim } = case.sizes;
    let sizes = [batch, queries, keys, num_heads, num_kv_heads, head_dim];
    let AttendCase { q, k, v, .. } = case;
    let question = Question::default().sizes(&sizes).values(q).values(k).values(v).values(dy);
    KNOWN.with(|known| {
        known.get(question, || {
            let passes = Oracle.passes(case, dy);
            let off = tolerances_by(case, dy, &passes.weights);
            (Passes { weights: Vec::new(), ..passes }, off)
        })
    })
}

/// One graded case.
pub(in crate::attention) type Asked = graded_cases::Asked<AttendCase>;

/// `y` must be what the loops give.
pub(in crate::attention) fn matches_y(attention: &Attention, asked: &Asked) -> Step {
    let Asked { manner, case, .. } = asked;
    let truth = loops(case, &[]);
    let (expected, tolerance) = (&truth.0.y, &truth.1.y);
    let shape = case.sizes.of_queries();
    answer("forward", || attention.forward_in(*manner, case))
        .and_then(|y| within("forward", &shape, &y, expected, |i| tolerance[i], WHY))
        .map_err(|violation| violation.on(asked))
}

pub(in crate::attention) fn matches_dq(attention: &Attention, asked: &Asked) -> Step {
    let Asked { manner, case, dy } = asked;
    let truth = loops(case, dy);
    let (expected, tolerance) = (&truth.0.dq, &truth.1.dq);
    let (shape, call) = (case.sizes.of_queries(), "backward (dq)");
    answer("backward", || attention.backward_in(*manner, case, dy))
        .and_then(|got| within(call, &shape, &got.dq, expected, |i| tolerance[i], BACK_WHY))
        .map_err(|violation| violation.on(asked))
}

pub(in crate::attention) fn matches_dk(attention: &Attention, asked: &Asked) -> Step {
    let Asked { manner, case, dy } = asked;
    let truth = loops(case, dy);
    let (expected, tolerance) = (&truth.0.dk, &truth.1.dk);
    let (shape, call) = (case.sizes.of_keys(), "backward (dk)");
    answer("backward", || attention.backward_in(*manner, case, dy))
        .and_then(|got| within(call, &shape, &got.dk, expected, |i| tolerance[i], BACK_WHY))
        .map_err(|violation| violation.on(asked))
}

pub(in crate::attention) fn matches_dv(attention: &Attention, asked: &Asked) -> Step {
    let Asked { manner, case, dy } = asked;
    let truth = loops(case, dy);
    let (expected, tolerance) = (&truth.0.dv, &truth.1.dv);
    let (shape, call) = (case.sizes.of_keys(), "backward (dv)");
    answer("backward", || attention.backward_in(*manner, case, dy))
        .and_then(|got| within(call, &shape, &got.dv, expected, |i| tolerance[i], BACK_WHY))
        .map_err(|violation| violation.on(asked))
}

// --- the softmax's own gradient --------------------------------------------------------------

/// Weights of rows of `n`, which sum to 1, and a `dy`.
fn rows(run: &Run, [b, nh, s, t]: [usize; 4]) -> (Vec<f32>, Vec<f32>) {
    let mut draw = Draw::new(run, (b * 100 + nh * 10 + s * 7 + t) as u64);
    let scores: Vec<f64> = widen(&draw.values(b * nh * s * t));
    let y = scores.chunks(t).flat_map(|row| Oracle.softmax(row)).map(|y| y as f32).collect();
    (y, draw.values(b * nh * s * t))
}

fn softmax_backward(
    attention: &Attention,
    shape: [usize; 4],
    y: &[f32],
    dy: &[f32],
) -> Step<Vec<f32>> {
    answer("softmax_backward", || attention.softmax_backward(shape, y, dy))
}

fn shown(shape: [usize; 4], y: &[f32], dy: &[f32]) -> String {
    use crate::describe::List;
    format!("y and dy {shape:?}\ny  = {}\ndy = {}", List(y), List(dy))
}

/// The gradients of a row's scores add up to 0, because its weights always add up to 1.
#[law("attention/softmax-gradient-sums-to-zero", see = "attention#softmax-gradient", about = Gradient, points = 2,
    formula = "Σ dx = 0, per row",
    stays = "It tells a gradient that forgets the sum, without an oracle.")]
pub(super) fn softmax_gradient_sums_to_zero(attention: &Attention, run: &Run) -> Verdict {
    for shape in [[1, 1, 1, 3], [2, 2, 3, 5]] {
        let (n, (y, dy)) = (shape[3], rows(run, shape));
        let sums = |x: &[f64]| -> Vec<f64> { x.chunks(n).map(|row| row.iter().sum()).collect() };
        let why = "weights that sum to 1 keep doing so; how far each value may be off, and y's own roundings";
        let off = softmax_tolerance(n, &y, &dy);
        // The rounded weights sum to 1 up to n roundings.
        let size: Vec<f64> = dy.iter().map(|dy| f64::from(dy.abs()) * U).collect();
        let (off, size) = (sums(&off), sums(&size));
        softmax_backward(attention, shape, &y, &dy)
            .and_then(|got| {
                let got = sums(&widen(&got));
                let expected = vec![0.0; y.len() / n];
                let tolerance = |row: usize| off[row] + n as f64 * size[row];
                within_f64("softmax_backward", &shape[..3], &got, &expected, tolerance, why)
            })
            .map_err(|violation| violation.on(shown(shape, &y, &dy)))?;
    }
    Ok(None)
}

/// A row that gives all its weight to one position has no gradient, whatever dy is.
#[law("attention/softmax-gradient-of-certainty", see = "attention#softmax-gradient", about = Gradient, points = 1,
    formula = "y = 0 and 1 only  ⇒  dx = 0",
    stays = "The answer is known by heart, and it is why attention can stop learning.")]
pub(super) fn softmax_gradient_of_certainty(attention: &Attention, _: &Run) -> Verdict {
    let y = [0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0];
    let dy = [2.0, -3.0, 0.5, 1.0, 1.5, -0.25, 4.0, -1.0, 8.0];
    let why = "weights of 1 and 0 have no slope";
    softmax_backward(attention, [1, 1, 3, 3], &y, &dy)
        .and_then(|got| same_values("softmax_backward", &[1, 1, 3, 3], &got, &[0.0; 9], why))
        .map_err(|violation| violation.on(shown([1, 1, 3, 3], &y, &dy)))?;
    Ok(None)
}

/// Adding one number to all dy of a row changes nothing.
#[law("attention/softmax-gradient-of-a-level", see = "attention#softmax-gradient", about = Gradient, points = 1,
    formula = "dx(y, dy + c) = dx(y, dy)",
    stays = "A law without an oracle: it compares the gradient with itself.")]
pub(super) fn softmax_gradient_of_a_level(attention: &Attention, run: &Run) -> Verdict {
    let shape = [1, 2, 2, 4];
    let (y, dy) = rows(run, shape);
    for level in [1.0, -8.0] {
        let raised: Vec<f32> = dy.iter().map(|dy| dy + level).collect();
        let (off, far) = (softmax_tolerance(4, &y, &dy), softmax_tolerance(4, &y, &raised));
        let before = widen(&softmax_backward(attention, shape, &y, &dy)?);
        // y sums to 1 up to four roundings, and dy was rounded when it was raised.
        let tolerance = |i: usize| off[i] + far[i] + 16.0 * U * f64::from(level.abs() + 4.0);
        let why = format!("the same as without the {level} that was added to all dy");
        softmax_backward(attention, shape, &y, &raised)
            .and_then(|got| within("softmax_backward", &shape, &got, &before, tolerance, &why))
            .map_err(|violation| violation.on(shown(shape, &y, &raised)))?;
    }
    Ok(None)
}

/// On any rows, even those that do not sum to 1, dx is what plain f64 loops give.
#[law("attention/softmax-gradient-f64-loops", see = "attention#softmax-gradient", about = Gradient, points = 2,
    formula = "dx = y · (dy − Σ y·dy)", stays = NET)]
pub(super) fn softmax_gradient_f64_loops(attention: &Attention, run: &Run) -> Verdict {
    judge_graded_cases(attention, run, "softmax_backward")
}

/// Rows of any numbers: the gradient's formula knows nothing of their sum.
#[derive(Debug, Clone, Copy)]
pub(in crate::attention) struct Rows {
    pub shape: [usize; 4],
    pub manner: Manner,
    /// Whether one `dy` is NaN, and the last `y`.
    pub nan: bool,
}

pub(in crate::attention) fn matches_softmax_back(
    attention: &Attention,
    rows: Rows,
    run: &Run,
) -> Step {
    let Rows { shape, manner, nan } = rows;
    let (n, total): (usize, usize) = (shape[3], shape.iter().product());
    let mut draw = Draw::new(run, (total * 31 + n) as u64);
    let [mut y, mut dy] = [draw.values(total), draw.values(total)];
    if nan {
        dy[total / 2] = f32::NAN;
        y[total - 1] = f32::NAN;
    }
    if manner == Manner::Broadcast {
        let row = total / shape[0];
        for x in [&mut y, &mut dy] {
            (row..total).for_each(|i| x[i] = x[i - row]);
        }
    }
    let pairs = y.chunks(n).zip(dy.chunks(n));
    let expected = pairs.flat_map(|(y, dy)| Oracle.softmax_back(&widen(y), &widen(dy)));
    let (expected, tolerance): (Vec<f64>, _) = (expected.collect(), softmax_tolerance(n, &y, &dy));
    let call = "softmax_backward";
    answer(call, || attention.softmax_backward_in(manner, shape, &y, &dy))
        .and_then(|got| within(call, &shape, &got, &expected, |i| tolerance[i], SOFTMAX_WHY))
        .map_err(|violation| {
            violation.on(format!("{}\n{}", manner.words(), shown(shape, &y, &dy)).trim_start())
        })
}
