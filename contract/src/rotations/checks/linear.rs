//! Checks of linear attention, over all pairs and as a state that runs.

use super::off;
use crate::component::{NET, law};
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::{U, values, widen};
use crate::oracle::Oracle;
use crate::oracle::known::{Known, Question};
use crate::rotations::interface::*;
use crate::rotations::oracle::{LinearPasses, RotationsLoops};
use crate::rotations::tolerance::{self, LINEAR_WHY, Near, Off};
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;
use std::fmt;
use std::rc::Rc;

type Any = dyn Rotations;

/// One graded case.
pub(in crate::rotations) type LinearAsked = crate::graded_cases::Asked<LinearCase>;

fn attended(rotations: &Any, case: &LinearCase) -> Step<Vec<f32>> {
    full("linear", case, answer("linear", || rotations.linear(case)))
}

fn ran(rotations: &Any, case: &LinearCase, pieces: &[usize]) -> Step<Vec<f32>> {
    full("running", case, answer("running", || rotations.running(case, pieces)))
}

fn full(call: &str, case: &LinearCase, y: Step<Vec<f32>>) -> Step<Vec<f32>> {
    y.and_then(|y| {
        let (got, expected) = (y.len(), case.v.len());
        holds(call, got == expected, || format!("{got} values came back for {expected}"))?;
        Ok(y)
    })
    .map_err(|violation| violation.on(case))
}

/// What the loops give, and how far each value may be off.
fn loops(case: &LinearCase, dy: &[f32]) -> Rc<(LinearPasses, Off)> {
    thread_local!(static KNOWN: Known<(LinearPasses, Off)> = Known::default());
    let LinearCase { shape, base, offset, q, k, v } = case;
    let sizes = Question::default().sizes(shape).sizes(&[*offset]);
    // No base is below 1.
    let question = sizes.settings(&[base.unwrap_or(0.0)]).values(q).values(k).values(v).values(dy);
    KNOWN.with(|known| {
        known.get(question, || (Oracle.linear(case, dy), tolerance::linear(case, dy)))
    })
}

/// `y` must be what the loops over all pairs give.
pub(in crate::rotations) fn matches_linear(rotations: &Any, asked: &LinearAsked) -> Step {
    let LinearAsked { manner, case, .. } = asked;
    let (expected, near) = &*loops(case, &[]);
    answer("linear", || rotations.linear_in(*manner, case))
        .and_then(|y| within("linear", &case.shape, &y, &expected.y, off(&near.y), LINEAR_WHY))
        .map_err(|violation| violation.on(asked))
}

/// And so must the running state.
pub(in crate::rotations) fn matches_running(
    rotations: &Any,
    case: &LinearCase,
    pieces: &[usize],
) -> Step {
    answers_running(rotations, case, pieces, case)
}

/// What is asked must be answered as `other` should be.
pub(in crate::rotations) fn answers_running(
    rotations: &Any,
    case: &LinearCase,
    pieces: &[usize],
    other: &LinearCase,
) -> Step {
    let (expected, near) = &*loops(other, &[]);
    answer("running", || rotations.running(case, pieces))
        .and_then(|y| within("running", &case.shape, &y, &expected.y, off(&near.y), LINEAR_WHY))
        .map_err(|violation| violation.on(format!("{case}\npieces {pieces:?}")))
}

/// And so must a gradient.
fn matches_gradient(
    rotations: &Any,
    asked: &LinearAsked,
    call: &str,
    got: fn(LinearGrads) -> Vec<f32>,
    expected: fn(&LinearPasses) -> &[f64],
    near: fn(&Off) -> &[Near],
) -> Step {
    let LinearAsked { manner, case, dy } = asked;
    let (passes, tolerance) = &*loops(case, dy);
    let (expected, near) = (expected(passes), near(tolerance));
    answer("linear_backward", || rotations.linear_backward_in(*manner, case, dy))
        .and_then(|grads| within(call, &case.shape, &got(grads), expected, off(near), LINEAR_WHY))
        .map_err(|violation| violation.on(asked))
}

pub(in crate::rotations) fn matches_dq(rotations: &Any, asked: &LinearAsked) -> Step {
    let call = "linear_backward (dq)";
    matches_gradient(rotations, asked, call, |got| got.dq, |passes| &passes.dq, |off| &off.dq)
}

pub(in crate::rotations) fn matches_dk(rotations: &Any, asked: &LinearAsked) -> Step {
    let call = "linear_backward (dk)";
    matches_gradient(rotations, asked, call, |got| got.dk, |passes| &passes.dk, |off| &off.dk)
}

pub(in crate::rotations) fn matches_dv(rotations: &Any, asked: &LinearAsked) -> Step {
    let call = "linear_backward (dv)";
    matches_gradient(rotations, asked, call, |got| got.dv, |passes| &passes.dv, |off| &off.dv)
}

/// A case and the gradient that comes back.
#[derive(Debug, Clone)]
struct Input {
    case: LinearCase,
    dy: Vec<f32>,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\ndy = {}", self.case, crate::describe::List(&self.dy))
    }
}

/// Four tokens of one head of 4, or two of two heads, turned or not. Elements of q and k are below 2, so that no
/// feature is near 0.
fn inputs() -> impl Strategy<Value = Input> {
    let shape = prop_oneof![Just([1, 4, 1, 4]), Just([1, 2, 2, 4])];
    let base = prop_oneof![Just(None), Just(Some(100.0))];
    let lists = (values(16), values(16), values(16), values(16));
    (shape, base, 0usize..50, lists).prop_map(|(shape, base, offset, (q, k, v, dy))| {
        let [q, k] = [q, k].map(|list| list.iter().map(|x| x / 2.0).collect());
        Input { case: LinearCase { shape, base, offset, q, k, v }, dy }
    })
}

// --- forward --------------------------------------------------------------------------------

/// The feature of 1 is 2, that of 0 is 1, and that of −ln 2 is 1/2: they can be read from the weights.
#[law("rotations/linear-phi-by-numbers", see = "rotations#linear", about = Wiring, points = 2,
    formula = "φ(x) = elu(x) + 1",
    stays = "Numbers by hand, without RoPE in the way.")]
pub(in crate::rotations) fn phi_by_numbers(rotations: &Any, _: &Run) -> Verdict {
    let ln2 = std::f64::consts::LN_2;
    for (x, phi) in [(1.0, 2.0), (0.0, 1.0), (-ln2, 0.5), (3.0, 4.0), (-2.0 * ln2, 0.25)] {
        // Two keys, of x and of 0; only the first has a value. Then y = phi(x) / (phi(x) + 1), for every query.
        let mut k = vec![x as f32; 4];
        k.extend([0.0; 4]);
        let v = vec![1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0];
        let q = vec![0.5, -1.0, 0.25, 0.0, 0.5, -1.0, 0.25, 0.0];
        let case = LinearCase { shape: [1, 2, 1, 4], base: None, offset: 0, q, k, v };
        let y = attended(rotations, &case)?;
        let near = tolerance::linear(&case, &[]).y;
        // x itself is rounded.
        let may = |i: usize| near[4 + i].off + U * x.abs();
        within("linear", &[4], &y[4..], &[phi / (phi + 1.0); 4], may, LINEAR_WHY)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// The first token sees only itself, so it gets its own value.
#[law("rotations/linear-first-token", see = "rotations#linear", about = Mask, points = 1,
    formula = "y₀ = v₀",
    stays = "It can be checked by hand: one weight, and its own sum.")]
pub(in crate::rotations) fn first_token(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let y = attended(rotations, case)?;
        let (n, near) = (4 * case.shape[2], tolerance::linear(case, &[]).y);
        within("linear", &[n], &y[..n], &widen(&case.v[..n]), off(&near), LINEAR_WHY)
    })?;
    Ok(None)
}

/// If nothing turns, the weights of a query add up to 1: equal values come out as they are.
#[law("rotations/linear-constant-values", see = "rotations#linear", about = Wiring, points = 1,
    formula = "no RoPE, v = c  ⇒  y = c",
    stays = "It holds without RoPE alone, and its opposite is the law that follows.")]
pub(in crate::rotations) fn constant_values(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let case = LinearCase { base: None, v: vec![1.5; 16], ..case.clone() };
        let (y, near) = (attended(rotations, &case)?, tolerance::linear(&case, &[]).y);
        within("linear", &case.shape, &y, &[1.5; 16], off(&near), LINEAR_WHY)
            .map_err(|violation| violation.on(&case))
    })?;
    Ok(None)
}

/// Small enough that its feature is practically 0: `exp(-20)`.
const NOTHING: f32 = -20.0;

/// RoPE turns only the numerator, so weights need not add up to 1: for 5 equal tokens, the last one's add up to less
/// than 0, and their sum could be no denominator.
#[law("rotations/linear-numerator-alone", see = "rotations#linear", about = Wiring, points = 3,
    formula = "φ = (4, 0, ..), v = 1  ⇒  yₘ = Σ cos(j) / (m+1),  j = 0 .. m;  y₄ < 0",
    stays = "The counter-example in one line: the sum that could be no denominator.")]
pub(in crate::rotations) fn numerator_alone(rotations: &Any, _: &Run) -> Verdict {
    let head = [3.0, NOTHING, NOTHING, NOTHING];
    let q: Vec<f32> = head.into_iter().cycle().take(20).collect();
    let case = LinearCase {
        shape: [1, 5, 1, 4],
        base: Some(100.0),
        offset: 0,
        k: q.clone(),
        q,
        v: vec![1.0; 20],
    };
    let y = attended(rotations, &case)?;
    let near = tolerance::linear(&case, &[]).y;
    let mean = |m: usize| (0..=m).map(|j| (j as f64).cos()).sum::<f64>() / (m + 1) as f64;
    let expected: Vec<f64> = (0..20).map(|at| mean(at / 4)).collect();
    // Beside 16 cos(j), a weight has 2 products of 4 and such a feature; its denominator is 16.
    let may = |i: usize| near[i].off + f64::from(NOTHING).exp();
    let why = "the roundings, and what features of exp(-20) bring";
    within("linear", &case.shape, &y, &expected, may, why)
        .map_err(|violation| violation.on(&case))?;
    Ok(None)
}

/// What comes later changes nothing, bit for bit.
#[law("rotations/linear-causal", see = "rotations#linear", about = Mask, points = 2,
    formula = "kₙ, vₙ changed for n > m  ⇒  yₘ unchanged",
    stays = "A law without an oracle and without a tolerance.")]
pub(in crate::rotations) fn causal(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let y = attended(rotations, case)?;
        let row = case.shape[2] * 4;
        for kept in 1..case.shape[1] {
            let mut changed = case.clone();
            for list in [&mut changed.q, &mut changed.k, &mut changed.v] {
                list[kept * row..].iter_mut().for_each(|x| *x = 1.0 - *x);
            }
            let again = attended(rotations, &changed)?;
            let why = format!("only tokens from the one in row {kept} on were changed");
            let head = ..kept * row;
            same_values("linear", &[kept * row], &again[head], &y[head], &why)
                .map_err(|violation| violation.on(&changed))?;
        }
        Ok(())
    })?;
    Ok(None)
}

/// The offset of a call changes nothing, because only distances count.
#[law("rotations/linear-relative", see = "rotations#linear", about = Offset, points = 1,
    formula = "y(offset + a) = y(offset)",
    stays = "What RoPE promises, for attention without a softmax.")]
pub(in crate::rotations) fn linear_relative(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let case = LinearCase { base: Some(100.0), ..case.clone() };
        let moved = LinearCase { offset: case.offset + 37, ..case.clone() };
        let expected = widen(&attended(rotations, &case)?);
        let [here, there] = [&case, &moved].map(|case| tolerance::linear(case, &[]).y);
        let may = |i: usize| here[i].off + there[i].off;
        let why = "what both calls may be off";
        within("linear", &case.shape, &attended(rotations, &moved)?, &expected, may, why)
            .map_err(|violation| violation.on(&moved))
    })?;
    Ok(None)
}

/// A head, or a text of the batch, knows nothing of the others.
#[law("rotations/linear-heads-are-apart", see = "rotations#linear", about = Order, points = 1,
    formula = "one head changed  ⇒  all others unchanged, bit for bit",
    stays = "A law without an oracle and without a tolerance.")]
pub(in crate::rotations) fn heads_are_apart(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        for shape in [[1, 2, 2, 4], [2, 2, 1, 4]] {
            let case = LinearCase { shape, ..case.clone() };
            let y = attended(rotations, &case)?;
            // Where the second head, or the second batch row, begins, and how long a part of it is.
            let other = |i: usize| if shape[0] == 1 { i / 4 % 2 == 1 } else { i >= 8 };
            for changes_other in [true, false] {
                let mut changed = case.clone();
                for list in [&mut changed.q, &mut changed.k, &mut changed.v] {
                    let places = (0..16).filter(|i| other(*i) == changes_other);
                    places.for_each(|i| list[i] = 1.0 - list[i]);
                }
                let again = attended(rotations, &changed)?;
                let kept = |y: &[f32]| -> Vec<f32> {
                    (0..16).filter(|i| other(*i) != changes_other).map(|i| y[i]).collect()
                };
                let why = "another head or batch row alone was changed";
                same_values("linear", &[8], &kept(&again), &kept(&y), why)
                    .map_err(|violation| violation.on(&changed))?;
            }
        }
        Ok(())
    })?;
    Ok(None)
}

/// On any input, y is what plain f64 loops over all pairs give.
#[law("rotations/linear-any-input", see = "rotations#linear", about = Wiring, points = 3,
    formula = "yₘ = Σ (Rₘφ(qₘ) · Rₙφ(kₙ))·vₙ / Σ φ(qₘ) · φ(kₙ),  n ≤ m", stays = NET)]
pub(in crate::rotations) fn linear_any_input(rotations: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rotations, run, "linear")
}

// --- the gradient ---------------------------------------------------------------------------

fn gradients(rotations: &Any, case: &LinearCase, dy: &[f32]) -> Step<LinearGrads> {
    let grads = answer("linear_backward", || rotations.linear_backward(case, dy))
        .map_err(|violation| violation.on(case))?;
    let lengths = [grads.dq.len(), grads.dk.len(), grads.dv.len()];
    holds("linear_backward", lengths == [case.v.len(); 3], || {
        format!("{lengths:?} values came back for {} each", case.v.len())
    })
    .map_err(|violation| violation.on(case))?;
    Ok(grads)
}

/// Scaling all features of a query changes nothing, and neither does scaling those of the keys: along them the
/// gradient is 0.
#[law("rotations/linear-gradient-of-scale", see = "rotations#gradient", about = Gradient, points = 2,
    formula = "Σ dq·φ(q)/φ′(q) = 0,  Σ dk·φ(k)/φ′(k) = 0",
    stays = "A law without an oracle: a gradient that forgets the denominator breaks it.")]
pub(in crate::rotations) fn gradient_of_scale(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, dy }| {
        let grads = gradients(rotations, case, dy)?;
        let near = tolerance::linear(case, dy);
        // phi / phi' is 1 below 0, and phi above.
        let share = |x: f32| if x > 0.0 { f64::from(x) + 1.0 } else { 1.0 };
        let along = |list: &[f32], d: &[f32], near: &[Near], places: &[usize]| {
            let sum: f64 = places.iter().map(|&i| f64::from(d[i]) * share(list[i])).sum();
            let off: f64 = places.iter().map(|&i| near[i].off * share(list[i])).sum();
            (sum, off)
        };
        let why = "Σ of what the gradients may be off, times φ/φ′";
        for head in 0..4 {
            let places: Vec<usize> = (4 * head..4 * head + 4).collect();
            let (sum, off) = along(&case.q, &grads.dq, &near.dq, &places);
            super::one("linear_backward (dq)", sum, 0.0, off, why)?;
        }
        let heads = case.shape[2];
        for head in 0..heads {
            let places: Vec<usize> = (0..16).filter(|i| i / 4 % heads == head).collect();
            let (sum, off) = along(&case.k, &grads.dk, &near.dk, &places);
            super::one("linear_backward (dk)", sum, 0.0, off, why)?;
        }
        Ok(())
    })?;
    Ok(None)
}

/// If nothing turns, the weights add up to 1, and so the gradients of the values add up to those of the results.
#[law("rotations/linear-gradient-of-constants", see = "rotations#gradient", about = Gradient, points = 1,
    formula = "no RoPE  ⇒  Σ dvₙ = Σ dyₘ",
    stays = "A law without an oracle, for the gradient of the values.")]
pub(in crate::rotations) fn gradient_of_constants(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, dy }| {
        let case = LinearCase { base: None, ..case.clone() };
        let grads = gradients(rotations, &case, dy)?;
        let near = tolerance::linear(&case, dy).dv;
        let row = 4 * case.shape[2];
        let sum =
            |list: &dyn Fn(usize) -> f64, j: usize| -> f64 { (j..16).step_by(row).map(list).sum() };
        let got: Vec<f64> = (0..row).map(|j| sum(&|i| f64::from(grads.dv[i]), j)).collect();
        let expected: Vec<f64> = (0..row).map(|j| sum(&|i| f64::from(dy[i]), j)).collect();
        let may = |j: usize| sum(&|i| near[i].off, j);
        let why = "Σ of what the gradients of the values may be off";
        within_f64("linear_backward (dv)", &[row], &got, &expected, may, why)
            .map_err(|violation| violation.on(&case))
    })?;
    Ok(None)
}

/// Three tokens. No element is so near to 0, where phi is bent, that a step would cross it.
fn witness() -> Input {
    let list = |step: usize, shift: f32| -> Vec<f32> {
        (0..12).map(|i| ((i * step % 11) as f32 - 5.0) / 4.0 + shift).collect()
    };
    let (q, k, v) = (list(3, 0.125), list(5, -0.125), list(7, 0.5));
    let case = LinearCase { shape: [1, 3, 1, 4], base: Some(100.0), offset: 2, q, k, v };
    Input { case, dy: list(4, 0.25) }
}

/// The loss with one element moved: its formula, written once more, and in one sum.
fn loss(case: &LinearCase, dy: &[f32], moved: (usize, usize, f64)) -> f64 {
    let mut lists = [&case.q, &case.k, &case.v].map(|list| widen(list));
    lists[moved.0][moved.1] += moved.2;
    let [q, k, v] = lists;
    let phi = |x: f64| if x > 0.0 { x + 1.0 } else { x.exp() };
    let base = case.base.unwrap_or(f64::INFINITY);
    let mut sum = 0.0;
    for m in 0..3 {
        let (mut numerator, mut denominator) = ([0.0; 4], 0.0);
        for n in 0..=m {
            let mut weight = 0.0;
            for i in 0..2 {
                // The product of two turned planes depends on the distance alone.
                let (sin, cos) = ((m - n) as f64 * base.powf(-(i as f64) / 2.0)).sin_cos();
                let [a, b] = [q[4 * m + i], q[4 * m + i + 2]].map(phi);
                let [c, d] = [k[4 * n + i], k[4 * n + i + 2]].map(phi);
                weight += (a * c + b * d) * cos + (a * d - b * c) * sin;
                denominator += a * c + b * d;
            }
            (0..4).for_each(|j| numerator[j] += weight * v[4 * n + j]);
        }
        sum += (0..4).map(|j| f64::from(dy[4 * m + j]) * numerator[j] / denominator).sum::<f64>();
    }
    sum
}

/// The gradients are the slopes of the loss, measured by finite differences.
#[law("rotations/linear-gradient-differences", see = "rotations#gradient", about = Gradient, points = 2,
    formula = "dq ≈ (8·(L(+δ) − L(−δ)) − (L(+2δ) − L(−2δ))) / 12δ",
    stays = "The slope of the loss, with a formula that is written in another way.")]
pub(in crate::rotations) fn gradient_differences(rotations: &Any, _: &Run) -> Verdict {
    let Input { case, dy } = witness();
    let LinearGrads { dq, dk, dv } = gradients(rotations, &case, &dy)?;
    let near = tolerance::linear(&case, &dy);
    let delta = 2f64.powi(-10);
    let all = [("dq", dq, near.dq), ("dk", dk, near.dk), ("dv", dv, near.dv)];
    for (list, (name, got, near)) in all.into_iter().enumerate() {
        let at = |i: usize, steps: f64| loss(&case, &dy, (list, i, steps * delta));
        let slope = |i: usize| {
            (8.0 * (at(i, 1.0) - at(i, -1.0)) - (at(i, 2.0) - at(i, -2.0))) / (12.0 * delta)
        };
        let expected: Vec<f64> = (0..12).map(slope).collect();
        // In f64 the differences are off by 2⁻⁵²·18/(12δ) and by δ⁴/30 of the fifth derivative: both are below 2⁻³⁴
        // of losses as small as these.
        let may = |i: usize| near[i].off + 2f64.powi(-34);
        let why = "what a gradient may be off; the differences, in f64, are off by 2⁻³⁴";
        within(&format!("linear_backward ({name})"), &case.shape, &got, &expected, may, why)
            .map_err(|violation| violation.on(Input { case: case.clone(), dy: dy.clone() }))?;
    }
    Ok(None)
}

/// On any input, dq is what plain f64 loops give.
#[law("rotations/linear-gradient-of-queries", see = "rotations#gradient", about = Gradient, points = 2,
    formula = "dq = (Rₘᵀ Σ dw·Rₙφ(kₙ) + Σ dD·φ(kₙ)) ⊙ φ′(q)", stays = NET)]
pub(in crate::rotations) fn gradient_of_queries(rotations: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rotations, run, "linear_backward (dq)")
}

/// On any input, dk is what plain f64 loops give.
#[law("rotations/linear-gradient-of-keys", see = "rotations#gradient", about = Gradient, points = 2,
    formula = "dk = (Rₙᵀ Σ dw·Rₘφ(qₘ) + Σ dD·φ(qₘ)) ⊙ φ′(k)", stays = NET)]
pub(in crate::rotations) fn gradient_of_keys(rotations: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rotations, run, "linear_backward (dk)")
}

/// On any input, dv is what plain f64 loops give.
#[law("rotations/linear-gradient-of-values", see = "rotations#gradient", about = Gradient, points = 2,
    formula = "dvₙ = Σ wₘₙ·dyₘ / Dₘ,  m ≥ n", stays = NET)]
pub(in crate::rotations) fn gradient_of_values(rotations: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rotations, run, "linear_backward (dv)")
}

// --- a state that runs ----------------------------------------------------------------------

/// A token's own key and value are in the state when its query reads: the first gets its own value.
#[law("rotations/running-own-token", see = "rotations#running", about = State, points = 1,
    formula = "y₀ = v₀",
    stays = "It can be checked by hand, and says in which order a token goes in and reads.")]
pub(in crate::rotations) fn running_own_token(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let y = ran(rotations, case, &[case.shape[1]])?;
        let (n, near) = (4 * case.shape[2], tolerance::linear(case, &[]).y);
        within("running", &[n], &y[..n], &widen(&case.v[..n]), off(&near), LINEAR_WHY)
    })?;
    Ok(None)
}

/// The running sums give what the sums over all pairs give.
#[law("rotations/running-is-all-pairs", see = "rotations#running", about = State, points = 2,
    formula = "q·Σ(k vᵀ) = Σ(q·k)v",
    stays = "Why the sums may be carried along at all.")]
pub(in crate::rotations) fn running_is_all_pairs(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| matches_running(rotations, case, &[case.shape[1]]))?;
    Ok(None)
}

/// A text may be cut into two pieces anywhere, or into single tokens, because the state carries all that is needed.
#[law("rotations/running-cut-anywhere", see = "rotations#running", about = State, points = 3,
    formula = "y(a, s−a) = y(s)")]
pub(in crate::rotations) fn running_cut(rotations: &Any, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let s = case.shape[1];
        let expected = widen(&ran(rotations, case, &[s])?);
        let near = tolerance::linear(case, &[]).y;
        let cuts = (1..s).map(|a| vec![a, s - a]).chain([vec![1; s]]);
        for pieces in cuts {
            let why = "what either may be off: other pieces may have other roundings";
            let may = |i: usize| 2.0 * near[i].off;
            within("running", &case.shape, &ran(rotations, case, &pieces)?, &expected, may, why)
                .map_err(|violation| violation.on(format!("{case}\npieces {pieces:?}")))?;
        }
        Ok(())
    })?;
    Ok(None)
}

/// On any input and for any pieces, y is what plain f64 loops over all pairs give.
#[law("rotations/running-any-input", see = "rotations#running", about = State, points = 3,
    formula = "S += Rₙφ(kₙ)·vₙᵀ,  z += φ(kₙ),  y = Sᵀ·Rₘφ(qₘ) / (z·φ(qₘ))", stays = NET)]
pub(in crate::rotations) fn running_any_input(rotations: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rotations, run, "running")
}
