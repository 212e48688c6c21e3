//! What SwiGLU promises.

use super::tolerance::{Off, SIZE_WHY, off};
use crate::component::{NET, law, laws};
use crate::feedforward::interface::*;
use crate::feedforward::menu;
use crate::feedforward::oracle::{Passes, SwiGluLoops};
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::{repeats, values, widen};
use crate::oracle::Oracle;
use crate::oracle::known::{Known, Question};
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;
use std::fmt;
use std::rc::Rc;

type Network = dyn SwiGlu;

laws! {
    size_of_llama, size_is_a_multiple, size_any, silu_by_numbers, closed_gate, open_gate, gate_and_its_negative,
    linear_in_up_and_down, units_permute, tokens_are_independent, forward_f64_loops, gradient_at_a_closed_gate,
    gradient_along_the_weights, gradient_differences, gradient_of_x, gradient_of_the_gate, gradient_of_up,
    gradient_of_down,
}

// --- inputs ---------------------------------------------------------------------------------

/// A call, and a gradient of the loss with respect to its result.
#[derive(Debug, Clone)]
struct Input {
    case: SwiGluCase,
    dy: Vec<f32>,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, dy } = self;
        write!(f, "{case}\ndy   = {}", crate::describe::List(dy))
    }
}

/// Any sizes of the menu, one or two batch rows, up to three tokens. Gates from shut to open.
fn inputs() -> impl Strategy<Value = Input> {
    let sizes = (prop::sample::select(&menu::FEEDFORWARD[..]), 1..=2usize, 1..=3usize);
    sizes.prop_flat_map(|((h, f), b, s)| {
        let weights = (values(f * h), values(f * h), values(h * f));
        (weights, values(b * s * h), values(b * s * h)).prop_map(
            move |((gate, up, down), x, dy)| {
                let shape = [b, s, h];
                Input { case: SwiGluCase { shape, ffn_hidden_size: f, gate, up, down, x }, dy }
            },
        )
    })
}

/// Two tokens of three elements, five units between. No two weights are equal, and W_1, W_2 and W_3 differ in size.
fn witness() -> SwiGluCase {
    let (h, f) = menu::FEEDFORWARD[0];
    let weights = |first: f32, step: f32| -> Vec<f32> {
        let sign = |i: usize| if i % 3 == 1 { -1.0 } else { 1.0 };
        (0..f * h).map(|i| sign(i) * (first + step * (i * 7 % 15) as f32)).collect()
    };
    SwiGluCase {
        shape: [1, 2, h],
        ffn_hidden_size: f,
        gate: weights(0.125, 0.0625),
        up: weights(0.75, 0.125),
        down: weights(0.5, 0.25),
        x: vec![1.5, -0.5, 0.75, -0.25, 1.0, -1.25],
    }
}

fn witness_dy() -> Vec<f32> {
    (0..6).map(|i| 1.0 - 0.375 * i as f32).collect()
}

/// One number through a network of one unit.
fn single(x: f32, gate: f32, up: f32, down: f32) -> SwiGluCase {
    let [gate, up, down, x] = [gate, up, down, x].map(|value| vec![value]);
    SwiGluCase { shape: [1, 1, 1], ffn_hidden_size: 1, gate, up, down, x }
}

fn times(values: &[f32], factor: f32) -> Vec<f32> {
    values.iter().map(|value| value * factor).collect()
}

fn forward(swiglu: &Network, case: &SwiGluCase) -> Step<Vec<f32>> {
    let y = answer("forward", || swiglu.forward(case)).map_err(|violation| violation.on(case))?;
    let length = Fault::Length { shape: case.shape.to_vec(), got: y.len() };
    if y.len() == case.x.len() { Ok(y) } else { Err(Violation::new("forward", length).on(case)) }
}

fn backward(swiglu: &Network, case: &SwiGluCase, dy: &[f32]) -> Step<SwiGluGrads> {
    let on =
        |violation: Box<Violation>| violation.on(Input { case: case.clone(), dy: dy.to_vec() });
    answer("backward", || swiglu.backward(case, dy)).map_err(on)
}

/// The loops' values, and how far each may be off.
fn loops(case: &SwiGluCase, dy: &[f32]) -> Rc<(Passes, Off)> {
    thread_local!(static KNOWN: Known<(Passes, Off)> = Known::default());
    let SwiGluCase { shape, ffn_hidden_size, x, gate, up, down } = case;
    let sizes = Question::default().sizes(shape).sizes(&[*ffn_hidden_size]);
    let question = sizes.values(x).values(gate).values(up).values(down).values(dy);
    KNOWN.with(|known| {
        known.get(question, || {
            let passes = Oracle.passes(case, dy);
            let off = off(case, dy, &passes);
            (passes, off)
        })
    })
}

fn forward_loops(case: &SwiGluCase) -> (Vec<f64>, Vec<f64>) {
    let (passes, off) = &*loops(case, &[]);
    (passes.y.clone(), off.y.clone())
}

/// One graded case.
pub(super) type Asked = crate::graded_cases::Asked<SwiGluCase>;

/// `y` must be what the loops give.
pub(super) fn matches_y(swiglu: &Network, asked: &Asked) -> Step {
    let Asked { manner, case, .. } = asked;
    let (expected, tolerance) = forward_loops(case);
    answer("forward", || swiglu.forward_in(*manner, case))
        .and_then(|y| within("forward", &case.shape, &y, &expected, |i| tolerance[i], SIZE_WHY))
        .map_err(|violation| violation.on(asked))
}

// --- the size -------------------------------------------------------------------------------

/// Published: Llama 7B, 13B, 30B and 65B; Llama 2 70B; Llama 3 8B; Llama 3.2 1B and 3B.
const LLAMA: [(usize, usize, Option<f64>, usize); 8] = [
    (4096, 256, None, 11_008),
    (5120, 256, None, 13_824),
    (6656, 256, None, 17_920),
    (8192, 256, None, 22_016),
    (8192, 4096, Some(1.3), 28_672),
    (4096, 1024, Some(1.3), 14_336),
    (2048, 256, Some(1.5), 8192),
    (3072, 256, Some(1.0), 8192),
];

/// Compares one size. It is a whole number, and nearly right is wrong.
pub(super) fn matches_size(swiglu: &Network, case: &SizeCase, expected: usize) -> Step {
    answer("size", || swiglu.size(case))
        .and_then(|got| {
            holds("size", got == expected, || format!("the size is {got}, expected {expected}"))
        })
        .map_err(|violation| violation.on(case))
}

/// The rule gives the sizes that trained models have.
#[law("feedforward/size-of-llama", see = "feedforward#size", about = Extent, points = 2,
    formula = "h = 4096, multiple of 256  ⇒  f = 11008")]
fn size_of_llama(swiglu: &Network, _: &Run) -> Verdict {
    for (hidden_size, multiple_of, multiplier, expected) in LLAMA {
        matches_size(swiglu, &SizeCase { hidden_size, multiple_of, multiplier }, expected)?;
    }
    Ok(None)
}

/// The size is a multiple of m, and less than m above what is rounded up.
#[law("feedforward/size-is-a-multiple", see = "feedforward#size", about = Extent, points = 1,
    formula = "m | f,  n ≤ f < n + m,  n = ⌊8h/3⌋")]
fn size_is_a_multiple(swiglu: &Network, run: &Run) -> Verdict {
    run.integers(|&(h, m): &(u8, u8)| {
        let (hidden_size, multiple_of) = (usize::from(h) + 1, usize::from(m) + 1);
        let case = SizeCase { hidden_size, multiple_of, multiplier: None };
        let got = answer("size", || swiglu.size(&case)).map_err(|violation| violation.on(case))?;
        let least = 8 * hidden_size / 3;
        let right = got.is_multiple_of(multiple_of) && (least..least + multiple_of).contains(&got);
        holds("size", right, || {
            let next = least + multiple_of;
            format!(
                "the size is {got}, expected the multiple of {multiple_of} from {least} on, below {next}"
            )
        })
        .map_err(|violation| violation.on(case))
    })?;
    Ok(None)
}

/// For any h, multiple and multiplier, the size follows the rule step by step.
#[law("feedforward/size-any", see = "feedforward#size", about = Extent, points = 2,
    formula = "f = ⌈⌊c·⌊8h/3⌋⌋ / m⌉ · m", stays = NET)]
fn size_any(swiglu: &Network, run: &Run) -> Verdict {
    judge_graded_cases(swiglu, run, "size")
}

// --- forward --------------------------------------------------------------------------------

/// Silu has the values that can be computed by hand: at ln 3 the gate is open by 3/4, at −ln 3 by 1/4.
#[law("feedforward/silu-by-numbers", see = "feedforward#definition", about = Gate, points = 2,
    formula = "silu(ln 3) = ¾·ln 3,  silu(−ln 3) = −¼·ln 3")]
fn silu_by_numbers(swiglu: &Network, _: &Run) -> Verdict {
    let ln3 = 3.0f64.ln();
    // silu(1) = 1 / (1 + 1/e)
    let one = 1.0 / (1.0 + (-1.0f64).exp());
    for (a, silu) in
        [(0.0, 0.0), (1.0, one), (-1.0, one - 1.0), (ln3, 0.75 * ln3), (-ln3, -0.25 * ln3)]
    {
        // x is 1 and passes as it is.
        let case = single(1.0, a as f32, 1.0, 1.0);
        let y = forward(swiglu, &case)?;
        let tolerance = forward_loops(&case).1[0] + 1.1 * crate::laws::U * a.abs(); // a itself is rounded
        within("forward", &case.shape, &y, &[silu], |_| tolerance, SIZE_WHY)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// A gate of 0 lets nothing through, whatever the up branch gives.
#[law("feedforward/closed-gate", see = "feedforward#gate", about = Gate, points = 1,
    formula = "W₁ = 0  ⇒  y = 0, exactly",
    stays = "It can be checked by hand.")]
fn closed_gate(swiglu: &Network, _: &Run) -> Verdict {
    let case = SwiGluCase { gate: vec![0.0; 15], ..witness() };
    let why = "silu(0) is 0, and 0 times anything is 0";
    same_values("forward", &case.shape, &forward(swiglu, &case)?, &[0.0; 6], why)
        .map_err(|violation| violation.on(&case))?;
    Ok(None)
}

/// Far from 0 the gate is fully open or shut, and the result is a number although exp leaves the range of f32.
#[law("feedforward/open-gate", see = "feedforward#gate", about = Precision, points = 1,
    formula = "a = 1000  ⇒  silu(a) = a;  a = −1000  ⇒  silu(a) = 0")]
fn open_gate(swiglu: &Network, _: &Run) -> Verdict {
    for x in [100.0, 1000.0, -100.0, -1000.0] {
        let case = single(x, 1.0, 0.5, -2.0);
        let (expected, tolerance) = forward_loops(&case);
        let y = forward(swiglu, &case)?;
        within("forward", &case.shape, &y, &expected, |i| tolerance[i], SIZE_WHY)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// What a gate lets through, less what its negative lets through, is the plain product.
#[law("feedforward/gate-and-its-negative", see = "feedforward#gate", about = Gate, points = 1,
    formula = "y(W₁) − y(−W₁) = W₂((W₁x) ⊙ (W₃x))",
    stays = "silu(a) − silu(−a) = a: a law of silu that needs no exp.")]
fn gate_and_its_negative(swiglu: &Network, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let negative = SwiGluCase { gate: times(&case.gate, -1.0), ..case.clone() };
        let (here, there) = (widen(&forward(swiglu, case)?), widen(&forward(swiglu, &negative)?));
        let got: Vec<f64> = here.iter().zip(&there).map(|(here, there)| here - there).collect();
        let Passes { a, b, .. } = Oracle.passes(case, &[]);
        let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
        let plain = |i: usize| {
            let (row, j) = (i / h, i % h);
            let unit = |k: usize| f64::from(case.down[j * f + k]) * a[row * f + k] * b[row * f + k];
            (0..f).map(unit).sum::<f64>()
        };
        let expected: Vec<f64> = (0..got.len()).map(plain).collect();
        let (off, other) = (forward_loops(case).1, forward_loops(&negative).1);
        let why = "how far both sides may be off";
        within_f64("forward", &case.shape, &got, &expected, |i| off[i] + other[i], why)
    })?;
    Ok(None)
}

/// Only the gate is nonlinear: W₃ or W₂ times a power of 2 gives y times that power, bit for bit.
#[law("feedforward/linear-in-up-and-down", see = "feedforward#gate", about = Gate, points = 2,
    formula = "y(2ʲ·W₃) = y(2ʲ·W₂) = 2ʲ·y, bit for bit",
    stays = "A law without an oracle and without a tolerance.")]
fn linear_in_up_and_down(swiglu: &Network, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let y = forward(swiglu, case)?;
        for factor in [8.0, -0.25] {
            let expected = times(&y, factor);
            let up = SwiGluCase { up: times(&case.up, factor), ..case.clone() };
            let down = SwiGluCase { down: times(&case.down, factor), ..case.clone() };
            for (name, scaled) in [("W_3", up), ("W_2", down)] {
                let why =
                    format!("{name} is {factor} times as large, and a power of 2 rounds nothing");
                same_values("forward", &case.shape, &forward(swiglu, &scaled)?, &expected, &why)
                    .map_err(|violation| violation.on(&scaled))?;
            }
        }
        Ok(())
    })?;
    Ok(None)
}

/// The f hidden units may change places, together with their rows of W₁ and W₃ and their column of W₂.
#[law("feedforward/units-permute", see = "feedforward#definition", about = Order, points = 1,
    formula = "y(P·W₁, P·W₃, W₂·Pᵀ) = y(W₁, W₃, W₂)",
    stays = "A law without an oracle: no unit knows its place.")]
fn units_permute(swiglu: &Network, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
        let mut turned = case.clone();
        // The first unit comes last.
        turned.gate.rotate_left(h);
        turned.up.rotate_left(h);
        turned.down.chunks_mut(f).for_each(|row| row.rotate_left(1));
        let expected = widen(&forward(swiglu, case)?);
        let tolerance = forward_loops(case).1;
        let why = "twice the tolerance of a value: the sum over the units has another order";
        let y = forward(swiglu, &turned)?;
        within("forward", &case.shape, &y, &expected, |i| 2.0 * tolerance[i], why)
            .map_err(|violation| violation.on(&turned))
    })?;
    Ok(None)
}

/// A NaN in one token shows in its result, and leaves all other tokens as they were, bit for bit.
#[law("feedforward/tokens-are-independent", see = "feedforward#definition", about = Order, points = 1,
    formula = "x_t = NaN  ⇒  y_t = NaN,  y_u unchanged for u ≠ t")]
fn tokens_are_independent(swiglu: &Network, _: &Run) -> Verdict {
    let case = witness();
    let y = forward(swiglu, &case)?;
    for (broken, kept) in [(0..3, 3..6), (3..6, 0..3)] {
        let mut changed = case.clone();
        changed.x[broken.start] = f32::NAN;
        let again = forward(swiglu, &changed)?;
        let why = "only the other token was changed; the values of this one are compared";
        same_values("forward", &[3], &again[kept.clone()], &y[kept], why)
            .map_err(|violation| violation.on(&changed))?;
        let told = again[broken].iter().all(|y| y.is_nan());
        holds("forward", told, || "a token with a NaN gave numbers, which hide it".into())
            .map_err(|violation| violation.on(&changed))?;
    }
    Ok(None)
}

/// On any input, y is what plain f64 loops give.
#[law("feedforward/forward-f64-loops", see = "feedforward#definition", about = Gate, points = 3,
    formula = "y = W₂(silu(W₁x) ⊙ (W₃x))", stays = NET)]
fn forward_f64_loops(swiglu: &Network, run: &Run) -> Verdict {
    judge_graded_cases(swiglu, run, "forward")
}

// --- backward -------------------------------------------------------------------------------

/// At a gate of 0, where the slope of silu is ½, only W₁ has a gradient, and it can be written down.
#[law("feedforward/gradient-at-a-closed-gate", see = "feedforward#gradient", about = Gradient, points = 2,
    formula = "W₁ = 0  ⇒  dW₁ = ½ Σ (W₂ᵀdy ⊙ W₃x)·xᵀ,  dx = dW₂ = dW₃ = 0",
    stays = "The gradient by hand. A network whose gate is 0 can learn only because of it.")]
fn gradient_at_a_closed_gate(swiglu: &Network, _: &Run) -> Verdict {
    let (case, dy) = (SwiGluCase { gate: vec![0.0; 15], ..witness() }, witness_dy());
    let on = |violation: Box<Violation>| violation.on(Input { case: case.clone(), dy: dy.clone() });
    let grads = backward(swiglu, &case, &dy)?;
    let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
    let sum = |n: usize, term: &dyn Fn(usize) -> f64| (0..n).map(term).sum::<f64>();
    let wide = |values: &[f32], i: usize| f64::from(values[i]);
    let half = |i: usize| {
        let (k, j) = (i / h, i % h);
        sum(2, &|t| {
            let dz = sum(h, &|l| wide(&case.down, l * f + k) * wide(&dy, t * h + l));
            let b = sum(h, &|l| wide(&case.up, k * h + l) * wide(&case.x, t * h + l));
            0.5 * dz * b * wide(&case.x, t * h + j)
        })
    };
    let expected: Vec<f64> = (0..f * h).map(half).collect();
    let tolerance = &loops(&case, &dy).1.dgate;
    within("backward (dgate)", &[f, h], &grads.dgate, &expected, |i| tolerance[i], SIZE_WHY)
        .map_err(on)?;
    let why = "silu(0) is 0: nothing comes through";
    same_values("backward (dup)", &[f, h], &grads.dup, &vec![0.0; f * h], why).map_err(on)?;
    same_values("backward (ddown)", &[h, f], &grads.ddown, &vec![0.0; f * h], why).map_err(on)?;
    let why = "W₁ is 0, and so is what comes through W₃";
    same_values("backward (dx)", &case.shape, &grads.dx, &[0.0; 6], why).map_err(on)?;
    Ok(None)
}

/// y is proportional to W₃ and to W₂, so the gradients of either, multiplied by the weights, add up to Σ y·dy.
#[law("feedforward/gradient-along-the-weights", see = "feedforward#gradient", about = Gradient, points = 1,
    formula = "Σ W₃·dW₃ = Σ W₂·dW₂ = Σ y·dy")]
fn gradient_along_the_weights(swiglu: &Network, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, dy }| {
        let along = |weights: &[f32], grads: &[f32]| -> f64 {
            weights.iter().zip(grads).map(|(w, d)| f64::from(*w) * f64::from(*d)).sum()
        };
        let SwiGluGrads { dup, ddown, .. } = backward(swiglu, case, dy)?;
        let got = [along(&case.up, &dup), along(&case.down, &ddown)];
        let y = forward(swiglu, case)?;
        let expected = [along(&y, dy); 2];
        let (_, off) = &*loops(case, dy);
        let share = |values: &[f32], off: &[f64]| -> f64 {
            values.iter().zip(off).map(|(value, off)| f64::from(value.abs()) * off).sum()
        };
        let of_loss = share(dy, &off.y);
        let tolerance = [share(&case.up, &off.dup), share(&case.down, &off.ddown)];
        let why =
            "Σ of how far the gradients may be off, times |W|, and how far y may be off, times |dy|";
        for (nth, call) in ["backward (dup)", "backward (ddown)"].into_iter().enumerate() {
            let at = |_| tolerance[nth] + of_loss;
            within_f64(call, &[], &got[nth..=nth], &expected[nth..=nth], at, why)?;
        }
        Ok(())
    })?;
    Ok(None)
}

/// No derivative of silu from the second to the fifth is larger.
const BENT: f64 = 1.0;

/// The gradient is the slope of the implementation's own outputs, measured by finite differences.
#[law("feedforward/gradient-differences", see = "feedforward#gradient", about = Gradient, points = 2,
    formula = "dx_i ≈ (8(L(x+δ) − L(x−δ)) − (L(x+2δ) − L(x−2δ))) / 12δ")]
fn gradient_differences(swiglu: &Network, _: &Run) -> Verdict {
    let (case, dy) = (witness(), witness_dy());
    let loss = |i: usize, step: f32| -> Step<f64> {
        let mut moved = case.clone();
        moved.x[i] += step;
        let y = forward(swiglu, &moved)?;
        Ok(y.iter().zip(&dy).map(|(&y, &dy)| f64::from(y) * f64::from(dy)).sum())
    };
    let delta = 1.0 / 32.0;
    let slope = |i| -> Step<f64> {
        let near = loss(i, delta)? - loss(i, -delta)?;
        let far = loss(i, 2.0 * delta)? - loss(i, -2.0 * delta)?;
        Ok((8.0 * near - far) / (12.0 * f64::from(delta)))
    };
    let expected: Vec<f64> = (0..6).map(slope).collect::<Step<_>>()?;
    let (Passes { b, dz, .. }, off) = &*loops(&case, &dy);
    let (h, f) = (case.shape[2], case.ffn_hidden_size);
    // The values are off by roundings, and 18 of them are divided by 12δ; the method leaves δ⁴/30 of the fifth
    // derivative.
    let tolerance = |i: usize| {
        let (row, j, delta) = (i / h, i % h, f64::from(delta));
        let loss_off: f64 = off.y.iter().zip(&dy).map(|(off, dy)| off * f64::from(dy.abs())).sum();
        let fifth = |k: usize| {
            let [gate, up] = [&case.gate, &case.up].map(|w| f64::from(w[k * h + j].abs()));
            let at = row * f + k;
            dz[at].abs() * BENT * (gate.powi(5) * b[at].abs() + 5.0 * gate.powi(4) * up)
        };
        let left = delta.powi(4) / 30.0 * (0..f).map(fifth).sum::<f64>();
        2.0 * 1.5 * loss_off / delta + 2.0 * left + off.dx[i]
    };
    let why = "24·2⁻²⁴ and more of the terms of the loss, for differences at steps of 1/32, and δ⁴/30 of the fifth \
               derivative; twice, since x moves";
    let grads = backward(swiglu, &case, &dy)?;
    within("backward (dx)", &case.shape, &grads.dx, &expected, tolerance, why)
        .map_err(|violation| violation.on(Input { case: case.clone(), dy: dy.clone() }))?;
    Ok(None)
}

/// On any input, dx is what plain f64 loops give: the part through the gate plus the part through the up branch.
#[law("feedforward/gradient-of-x", see = "feedforward#gradient", about = Gradient, points = 3,
    formula = "dx = W₁ᵀda + W₃ᵀdc", stays = NET)]
fn gradient_of_x(swiglu: &Network, run: &Run) -> Verdict {
    judge_graded_cases(swiglu, run, "backward (dx)")
}

pub(super) fn matches_dx(swiglu: &Network, asked: &Asked) -> Step {
    let Asked { manner, case, dy } = asked;
    let (expected, off) = &*loops(case, dy);
    answer("backward", || swiglu.backward_in(*manner, case, dy))
        .and_then(|SwiGluGrads { dx, .. }| {
            within("backward (dx)", &case.shape, &dx, &expected.dx, |i| off.dx[i], SIZE_WHY)
        })
        .map_err(|violation| violation.on(asked))
}

/// On any input, the gradient of W₁ is what plain f64 loops give: silu's slope times the up branch.
#[law("feedforward/gradient-of-the-gate", see = "feedforward#gradient", about = Gradient, points = 2,
    formula = "dW₁ = Σ_tokens da·xᵀ,  da = dz ⊙ c ⊙ σ(a)(1 + a(1 − σ(a)))", stays = NET)]
fn gradient_of_the_gate(swiglu: &Network, run: &Run) -> Verdict {
    judge_graded_cases(swiglu, run, "backward (dgate)")
}

/// On any input, the gradient of W₃ is what plain f64 loops give: dz, times what the gate lets through.
#[law("feedforward/gradient-of-up", see = "feedforward#gradient", about = Gradient, points = 1,
    formula = "dW₃ = Σ_tokens dc·xᵀ,  dc = dz ⊙ silu(a)", stays = NET)]
fn gradient_of_up(swiglu: &Network, run: &Run) -> Verdict {
    judge_graded_cases(swiglu, run, "backward (dup)")
}

/// On any input, the gradient of W₂ is what plain f64 loops give.
#[law("feedforward/gradient-of-down", see = "feedforward#gradient", about = Gradient, points = 1,
    formula = "dW₂ = Σ_tokens dy·zᵀ,  z = silu(a) ⊙ c", stays = NET)]
fn gradient_of_down(swiglu: &Network, run: &Run) -> Verdict {
    judge_graded_cases(swiglu, run, "backward (ddown)")
}

pub(super) fn matches_dgate(swiglu: &Network, asked: &Asked) -> Step {
    let [h, f] = [asked.case.shape[2], asked.case.ffn_hidden_size];
    let (of, off) = (|all: &Passes| all.dgate.clone(), |off: &Off| off.dgate.clone());
    matches_sum(swiglu, asked, ("backward (dgate)", [f, h]), |grads| grads.dgate, of, off)
}

pub(super) fn matches_dup(swiglu: &Network, asked: &Asked) -> Step {
    let [h, f] = [asked.case.shape[2], asked.case.ffn_hidden_size];
    let (of, off) = (|all: &Passes| all.dup.clone(), |off: &Off| off.dup.clone());
    matches_sum(swiglu, asked, ("backward (dup)", [f, h]), |grads| grads.dup, of, off)
}

pub(super) fn matches_ddown(swiglu: &Network, asked: &Asked) -> Step {
    let [h, f] = [asked.case.shape[2], asked.case.ffn_hidden_size];
    let (of, off) = (|all: &Passes| all.ddown.clone(), |off: &Off| off.ddown.clone());
    matches_sum(swiglu, asked, ("backward (ddown)", [h, f]), |grads| grads.ddown, of, off)
}

/// What is summed over the tokens must be what the loops give, each time.
fn matches_sum(
    swiglu: &Network,
    asked: &Asked,
    (call, shape): (&str, [usize; 2]),
    got: fn(SwiGluGrads) -> Vec<f32>,
    expected: fn(&Passes) -> Vec<f64>,
    tolerance: fn(&Off) -> Vec<f64>,
) -> Step {
    let Asked { manner, case, dy } = asked;
    let (passes, off) = &*loops(case, dy);
    let (expected, tolerance) = (expected(passes), tolerance(off));
    let ask = || answer("backward", || swiglu.backward_in(*manner, case, dy)).map(got);
    ask()
        .and_then(|got| {
            within(call, &shape, &got, &expected, |i| tolerance[i], SIZE_WHY)?;
            repeats(call, dy.len() / case.shape[2], &shape, &got, ask)
        })
        .map_err(|violation| violation.on(asked))
}
