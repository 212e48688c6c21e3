//! What LayerNorm promises.

use crate::component::{NET, law, laws};
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::{U, repeats, values, widen};
use crate::layernorm::interface::*;
use crate::layernorm::menu;
use crate::layernorm::oracle::{LayerNormLoops, Passes};
use crate::oracle::Oracle;
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;
use std::fmt;

type Norm = dyn LayerNorm;

laws! {
    shift, mean_is_zero, variance_is_one, eps_inside_root, constant_row, scale, odd, rows_are_independent,
    elements_permute, gamma_per_element, beta_is_added_last, rms_norm_if_centred, forward_f64_loops,
    gradient_of_constant_row, gradient_sums_to_zero, gradient_shift, gradient_along_x, gradient_differences,
    gradient_of_beta, gradient_of_gamma, gradient_of_x,
}

// --- inputs ---------------------------------------------------------------------------------

/// A call, and a gradient of the loss with respect to its result.
#[derive(Debug, Clone)]
struct Input {
    case: LayerNormCase,
    dy: Vec<f32>,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, dy } = self;
        write!(f, "{case}\ndy    = {}", crate::describe::List(dy))
    }
}

/// Any size of the menu, one or two batch rows, up to three tokens.
fn inputs() -> impl Strategy<Value = Input> {
    let sizes = (prop::sample::select(&menu::LAYERNORM[..]), 1..=2usize, 1..=3usize);
    sizes.prop_flat_map(|((h,), b, s)| {
        let eps = prop::sample::select(vec![1e-6, 1e-5, 1e-3, 0.1, 1.0]);
        (values(b * s * h), values(h), values(h), eps, values(b * s * h)).prop_map(
            move |(x, gamma, beta, eps, dy)| Input {
                case: LayerNormCase { shape: [b, s, h], eps, gamma, beta, x },
                dy,
            },
        )
    })
}

/// Two tokens of six elements that differ in size and sign, with means far from 0. Gamma and beta are
/// uneven, and one gamma is 0: nothing can be divided by it. All x are multiples of 1/8, so that some thousands can be added to them exactly.
fn witness(eps: f64) -> LayerNormCase {
    LayerNormCase {
        shape: [1, 2, 6],
        eps,
        gamma: vec![0.1, -7.0, 2.5, 0.0, 30.0, -1.5],
        beta: vec![0.5, -2.0, 10.0, 0.0, -0.25, 3.0],
        x: vec![3.0, -0.5, 2.0, 0.25, 4.0, -1.0, -0.125, 1.5, 0.75, -2.0, 0.5, 5.0],
    }
}

/// `case` with gamma 1 and beta 0.
fn plain(case: LayerNormCase) -> LayerNormCase {
    let h = case.gamma.len();
    LayerNormCase { gamma: vec![1.0; h], beta: vec![0.0; h], ..case }
}

fn without_beta(case: LayerNormCase) -> LayerNormCase {
    LayerNormCase { beta: vec![0.0; case.beta.len()], ..case }
}

fn with_x(case: &LayerNormCase, change: impl Fn(f32) -> f32) -> LayerNormCase {
    LayerNormCase { x: case.x.iter().map(|&x| change(x)).collect(), ..case.clone() }
}

fn forward(norm: &Norm, case: &LayerNormCase) -> Step<Vec<f32>> {
    let y = answer("forward", || norm.forward(case)).map_err(|violation| violation.on(case))?;
    let length = Fault::Length { shape: case.shape.to_vec(), got: y.len() };
    if y.len() == case.x.len() { Ok(y) } else { Err(Violation::new("forward", length).on(case)) }
}

fn backward(norm: &Norm, case: &LayerNormCase, dy: &[f32]) -> Step<LayerNormGrads> {
    answer("backward", || norm.backward(case, dy))
}

fn forward_oracle(case: &LayerNormCase) -> Passes {
    Oracle.passes(case, &vec![0.0; case.x.len()])
}

/// The mean of a row's values.
fn mean(row: &[f64]) -> f64 {
    row.iter().sum::<f64>() / row.len() as f64
}

fn mean_of_size(row: &[f64]) -> f64 {
    row.iter().map(|value| value.abs()).sum::<f64>() / row.len() as f64
}

// --- tolerances -----------------------------------------------------------------------------

/// How far each `xhat` may be off.
///
/// `x - mean` cancels, so its error is that of what is subtracted: `h` additions of numbers of the size
/// `mean|x|`, three roundings each where the mean is kept up to date from element to element, and three of
/// `x` itself where a product comes before the difference. It enters twice: in the numerator, and
/// in the variance, at first order for a mean that is kept up to date, else only squared. All else is relative to the value: the sum of `h` squares (half of it after the root), and
/// eight single roundings.
fn xhat_tolerance(case: &LayerNormCase) -> Vec<f64> {
    let h = case.shape[2];
    let Passes { xhat, std, .. } = forward_oracle(case);
    let x = widen(&case.x);
    let size: Vec<f64> = x.chunks(h).map(mean_of_size).collect();
    let at = |i: usize| {
        let centring = (3.0 * h as f64 * size[i / h] + 3.0 * x[i].abs()) * U / std[i / h];
        centring * (1.0 + xhat[i].abs()) + (h as f64 / 2.0 + 8.0) * U * xhat[i].abs()
    };
    (0..x.len()).map(at).collect()
}

/// How far each `y` may be off: `xhat`, scaled, and two roundings of what is added.
fn forward_tolerance(case: &LayerNormCase) -> Vec<f64> {
    let h = case.shape[2];
    let y = forward_oracle(case).y;
    let (xhat, gamma, beta) = (xhat_tolerance(case), widen(&case.gamma), widen(&case.beta));
    let at = |i: usize| gamma[i % h].abs() * xhat[i] + 2.0 * U * (beta[i % h].abs() + y[i].abs());
    (0..y.len()).map(at).collect()
}

const FORWARD_WHY: &str = "3h·2⁻²⁴·mean|x|/std, twice, for the mean that is subtracted, and (h/2 + 8)·2⁻²⁴ of \
                           x̂ for the root, both times γ; two roundings of y and β";

/// How far each `dx` may be off: its steps one after the other, each with what its inputs bring.
fn dx_tolerance(case: &LayerNormCase, dy: &[f32]) -> Vec<f64> {
    let h = case.shape[2];
    let Passes { xhat, std, .. } = forward_oracle(case);
    let off = xhat_tolerance(case);
    let dxhat = |i: usize| f64::from(case.gamma[i % h]) * f64::from(dy[i]);
    let mut tolerance = Vec::with_capacity(dy.len());
    for start in (0..dy.len()).step_by(h) {
        let std = std[start / h];
        let sum = |f: &dyn Fn(usize) -> f64| (start..start + h).map(f).sum::<f64>() / h as f64;
        // The two means, of absolute values, and what they may be off.
        let level = sum(&|i| dxhat(i).abs());
        let along = sum(&|i| (dxhat(i) * xhat[i]).abs());
        let additions = (h as f64 + 2.0) * U;
        let along_off = sum(&|i| dxhat(i).abs() * off[i]) + additions * along;
        // The root, relative: the mean's part of it, and the sum of squares.
        let size = (start..start + h).map(|i| f64::from(case.x[i]).abs());
        let largest = size.clone().fold(0.0, f64::max);
        let size = size.sum::<f64>() / h as f64;
        let root = (3.0 * h as f64 * size + 3.0 * largest) * U / std + (h as f64 / 2.0 + 5.0) * U;
        for i in start..start + h {
            let terms = dxhat(i).abs() + level + xhat[i].abs() * along;
            let steps = additions * level + xhat[i].abs() * along_off + off[i] * along;
            tolerance.push((steps + 4.0 * U * terms) / std + root * terms / std);
        }
    }
    tolerance
}

const DX_WHY: &str = "the roundings of each step, in the size of its terms, which cancel: two means over the \
                      token, x̂, and the root";

/// One graded case.
pub(super) type Asked = crate::graded_cases::Asked<LayerNormCase>;

/// `y` must be what the loops give.
pub(super) fn matches_y(norm: &Norm, asked: &Asked) -> Step {
    let Asked { manner, case, .. } = asked;
    let (expected, tolerance) = (forward_oracle(case).y, forward_tolerance(case));
    answer("forward", || norm.forward_in(*manner, case))
        .and_then(|y| within("forward", &case.shape, &y, &expected, |i| tolerance[i], FORWARD_WHY))
        .map_err(|violation| violation.on(asked))
}

/// [`matches_y`], asked plainly.
fn matches_oracle(norm: &Norm, case: &LayerNormCase) -> Step {
    matches_y(norm, &Asked { manner: Manner::Plain, case: case.clone(), dy: Vec::new() })
}

// --- forward --------------------------------------------------------------------------------

/// Adding one number to all elements of a token changes nothing, even a number a thousand times larger than they are.
#[law("layernorm/shift", see = "layernorm#shift", about = Statistics, points = 2,
    formula = "N(x + c) = N(x)",
    stays = "It is what LayerNorm has and RMSNorm lacks, without an oracle.")]
fn shift(norm: &Norm, _: &Run) -> Verdict {
    let case = witness(1e-5);
    let before = forward(norm, &case)?;
    for c in [1.0, -64.0, 4096.0] {
        let shifted = with_x(&case, |x| x + c); // exactly
        let (near, far) = (forward_tolerance(&case), forward_tolerance(&shifted));
        let y = forward(norm, &shifted)?;
        let why = format!(
            "the same as without the {c} that was added to all x, except for its roundings"
        );
        within("forward", &case.shape, &y, &widen(&before), |i| near[i] + far[i], &why)
            .map_err(|violation| violation.on(&shifted))?;
    }
    Ok(None)
}

/// After the norm, with gamma 1 and beta 0, the mean of a token is 0.
#[law("layernorm/mean-is-zero", see = "layernorm#definition", about = Statistics, points = 2,
    formula = "mean(x̂) = 0",
    stays = "It says what the mean is subtracted for, in one number, without an oracle.")]
fn mean_is_zero(norm: &Norm, run: &Run) -> Verdict {
    run.forall(inputs(), |input| {
        let case = plain(input.case.clone());
        let h = case.shape[2];
        let got: Vec<f64> = widen(&forward(norm, &case)?).chunks(h).map(mean).collect();
        let tolerance = forward_tolerance(&case);
        let tolerance: Vec<f64> = tolerance.chunks(h).map(mean).collect();
        let expected = vec![0.0; got.len()];
        let why = "the mean of how far the values themselves may be off";
        within_f64("forward", &case.shape[..2], &got, &expected, |row| tolerance[row], why)
            .map_err(|violation| violation.on(&case))
    })?;
    Ok(None)
}

/// After the norm, with gamma 1 and beta 0, the mean square of a token is 1, up to eps.
#[law("layernorm/variance-is-one", see = "layernorm#definition", about = Statistics, points = 2,
    formula = "mean(x̂²) = var / (var + ε)",
    stays = "It says what the root is for, in one number, without an oracle.")]
fn variance_is_one(norm: &Norm, run: &Run) -> Verdict {
    run.forall(inputs(), |input| {
        let case = plain(input.case.clone());
        let h = case.shape[2];
        let mean_square = |row: &[f64]| row.iter().map(|y| y * y).sum::<f64>() / row.len() as f64;
        let got: Vec<f64> = widen(&forward(norm, &case)?).chunks(h).map(mean_square).collect();
        let variance = |row: &[f64]| {
            let mean = mean(row);
            row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64
        };
        let variances = widen(&case.x);
        let expected = variances.chunks(h).map(variance).map(|var| var / (var + case.eps));
        let expected: Vec<f64> = expected.collect();
        let (y, off) = (forward_oracle(&case).y, forward_tolerance(&case));
        let square_off = |i: usize| (2.0 * y[i].abs() + off[i]) * off[i];
        let tolerance =
            |row: usize| (row * h..(row + 1) * h).map(square_off).sum::<f64>() / h as f64;
        let why = "how far the squares may be off: twice the value times its own tolerance";
        within_f64("forward", &case.shape[..2], &got, &expected, tolerance, why)
            .map_err(|violation| violation.on(&case))
    })?;
    Ok(None)
}

/// Eps is added to the variance, inside the root. Where x is √ε away from the mean, eps is half of the sum, and y is
/// ±1/√2.
#[law("layernorm/eps-inside-root", see = "layernorm#eps", about = Eps, points = 2,
    formula = "x = ±√ε, γ = 1, β = 0  ⇒  y = ±1/√2",
    stays = "A number that is known by heart, and that every wrong place of eps gets wrong.")]
fn eps_inside_root(norm: &Norm, _: &Run) -> Verdict {
    let sign = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0f32 };
    for eps in [1e-5, 1e-2, 4.0] {
        let case = plain(witness(eps));
        let x = (0..case.x.len()).map(|i| sign(i) * eps.sqrt() as f32).collect();
        let case = LayerNormCase { x, ..case };
        let y = forward(norm, &case)?;
        let expected = |i| f64::from(sign(i)) * std::f64::consts::FRAC_1_SQRT_2;
        let expected: Vec<f64> = (0..y.len()).map(expected).collect();
        let tolerance = forward_tolerance(&case);
        let tolerance = |i: usize| tolerance[i] + U; // x itself is rounded
        within("forward", &case.shape, &y, &expected, tolerance, FORWARD_WHY)
            .map_err(|violation| violation.on(&case))?;
    }
    // An eps of 0 adds nothing, and no other number stands in for it. Small values feel one that does.
    let case = plain(witness(0.0));
    let x = (0..case.x.len()).map(|i| sign(i) / 1024.0).collect();
    matches_oracle(norm, &LayerNormCase { x, ..case })?;
    Ok(None)
}

/// A token of equal values has nothing left after its mean is subtracted: it gives beta.
#[law("layernorm/constant-row", see = "layernorm#eps", about = Eps, points = 1,
    formula = "x = c everywhere  ⇒  y = β",
    stays = "Without eps it is 0 / 0. It can be checked by hand.")]
fn constant_row(norm: &Norm, _: &Run) -> Verdict {
    for c in [0.0, 2.0, -0.5] {
        let case = with_x(&witness(1e-5), |_| c);
        let y = forward(norm, &case)?;
        let beta = widen(&case.beta);
        let expected: Vec<f64> = (0..y.len()).map(|i| beta[i % beta.len()]).collect();
        let tolerance = forward_tolerance(&case);
        within("forward", &case.shape, &y, &expected, |i| tolerance[i], FORWARD_WHY)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// Multiplying a token by a power of 2, and eps by its square, changes nothing.
#[law("layernorm/scale", see = "layernorm#definition", about = Statistics, points = 1,
    formula = "N(2ʲ·x; 4ʲ·ε) = N(x; ε), |j| ≤ 20",
    stays = "A law without an oracle: it compares the norm with itself.")]
fn scale(norm: &Norm, _: &Run) -> Verdict {
    let case = witness(1.0 / 1024.0);
    let y = forward(norm, &case)?;
    for j in [8, 20, -8, -20] {
        let scaled = with_x(&case, |x| x * 2.0f32.powi(j));
        let scaled = LayerNormCase { eps: case.eps * 4.0f64.powi(j), ..scaled };
        let again = forward(norm, &scaled)?;
        let why = format!("the same as for x·2^{}, except for the roundings of both", -j);
        let tolerance = forward_tolerance(&case);
        let at = |i: usize| 2.0 * tolerance[i];
        within("forward", &case.shape, &again, &widen(&y), at, &why).map_err(|b| b.on(&scaled))?;
    }
    Ok(None)
}

/// With beta 0, changing the sign of x changes the sign of y, and nothing else.
#[law("layernorm/odd", see = "layernorm#definition", about = Statistics, points = 1,
    formula = "N(−x) = −N(x), bit for bit, β = 0",
    stays = "A law without an oracle and without a tolerance.")]
fn odd(norm: &Norm, run: &Run) -> Verdict {
    run.forall(inputs(), |input| {
        let case = without_beta(input.case.clone());
        let negative = with_x(&case, |x| -x);
        let expected: Vec<f32> = forward(norm, &case)?.iter().map(|y| -y).collect();
        let why = "a sign changes no digit";
        same_values("forward", &case.shape, &forward(norm, &negative)?, &expected, why)
            .map_err(|violation| violation.on(&negative))
    })?;
    Ok(None)
}

/// A NaN in one token shows in its result, and leaves all other tokens as they were, bit for bit.
#[law("layernorm/rows-are-independent", see = "layernorm#rows", about = Statistics, points = 1,
    formula = "x_t = NaN  ⇒  y_t = NaN,  y_u unchanged for u ≠ t")]
fn rows_are_independent(norm: &Norm, _: &Run) -> Verdict {
    let case = witness(1e-5);
    let y = forward(norm, &case)?;
    for (broken, kept) in [(0..6, 6..12), (6..12, 0..6)] {
        let mut changed = case.clone();
        changed.x[broken.clone()].fill(f32::NAN);
        let again = forward(norm, &changed)?;
        let why = "only the other token was changed; the values of this one are compared";
        same_values("forward", &[6], &again[kept.clone()], &y[kept], why)
            .map_err(|violation| violation.on(&changed))?;
        let told = again[broken].iter().all(|y| y.is_nan());
        holds("forward", told, || "a token of NaN gave numbers, which hide it".into())
            .map_err(|violation| violation.on(&changed))?;
    }
    Ok(None)
}

/// The elements of a token may change places together with their gamma and beta.
#[law("layernorm/elements-permute", see = "layernorm#gamma", about = Weights, points = 1,
    formula = "y(P·x; P·γ, P·β) = P·y(x; γ, β)",
    stays = "A law without an oracle: it holds for every right norm, whatever its numbers.")]
fn elements_permute(norm: &Norm, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        // Each row begins with its last element.
        let turn = |values: &[f32]| -> Vec<f32> {
            let turned = values.chunks(case.shape[2]).flat_map(|row| {
                let (last, rest) = row.split_last().expect("a token has an element");
                std::iter::once(last).chain(rest).copied()
            });
            turned.collect()
        };
        let (x, gamma, beta) = (turn(&case.x), turn(&case.gamma), turn(&case.beta));
        let turned = LayerNormCase { x, gamma, beta, ..case.clone() };
        let expected = widen(&turn(&forward(norm, case)?));
        let tolerance = forward_tolerance(&turned);
        let why = "twice the tolerance of a value: the sums have another order";
        let y = forward(norm, &turned)?;
        within("forward", &case.shape, &y, &expected, |i| 2.0 * tolerance[i], why)
    })?;
    Ok(None)
}

/// Gamma multiplies, one number per element: with beta 0, y is proportional to it.
#[law("layernorm/gamma-per-element", see = "layernorm#gamma", about = Weights, points = 2,
    formula = "y(x; γ, 0) = γ ⊙ y(x; 1, 0)",
    stays = "It looks at gamma alone, whatever the rest of the norm does.")]
fn gamma_per_element(norm: &Norm, _: &Run) -> Verdict {
    let case = without_beta(witness(1e-5));
    let one = widen(&forward(norm, &plain(case.clone()))?);
    let expected = one.iter().enumerate().map(|(i, y)| y * f64::from(case.gamma[i % 6]));
    let expected: Vec<f64> = expected.collect();
    let tolerance = forward_tolerance(&case);
    let y = forward(norm, &case)?;
    let why = "twice the tolerance of a value: both sides are the norm's own";
    within("forward", &case.shape, &y, &expected, |i| 2.0 * tolerance[i], why)
        .map_err(|violation| violation.on(&case))?;
    Ok(None)
}

/// Beta is added after gamma has multiplied, and gamma does not scale it.
#[law("layernorm/beta-is-added-last", see = "layernorm#gamma", about = Weights, points = 2,
    formula = "y(x; γ, β) = y(x; γ, 0) + β")]
fn beta_is_added_last(norm: &Norm, _: &Run) -> Verdict {
    // Also where gamma leaves everything as it is.
    for gamma in [witness(1e-5).gamma, vec![1.0; 6]] {
        let case = LayerNormCase { gamma, ..witness(1e-5) };
        let scaled = widen(&forward(norm, &without_beta(case.clone()))?);
        let expected = scaled.iter().enumerate().map(|(i, y)| y + f64::from(case.beta[i % 6]));
        let expected: Vec<f64> = expected.collect();
        let tolerance = forward_tolerance(&case);
        let y = forward(norm, &case)?;
        let why = "twice the tolerance of a value: both sides are the norm's own";
        within("forward", &case.shape, &y, &expected, |i| 2.0 * tolerance[i], why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// A token whose mean is 0 gets what RMSNorm gives it, plus beta.
#[law("layernorm/rms-norm-if-centred", see = "layernorm#rmsnorm", about = Statistics, points = 1,
    formula = "mean(x) = 0  ⇒  y = γ·x / √(mean(x²) + ε) + β",
    stays = "It says what the two norms share: all but the mean and beta.")]
fn rms_norm_if_centred(norm: &Norm, _: &Run) -> Verdict {
    for eps in [1e-5, 1.0] {
        // Pairs of opposite values: the mean is 0 in any order of addition.
        let x = vec![3.0, -3.0, 0.5, -0.5, 2.0, -2.0, 0.25, -0.25, -1.0, 1.0, 0.75, -0.75];
        let case = LayerNormCase { x, ..witness(eps) };
        let x = widen(&case.x);
        let rms = |i: usize| {
            let row = &x[i / 6 * 6..][..6];
            (row.iter().map(|x| x * x).sum::<f64>() / 6.0 + eps).sqrt()
        };
        let value =
            |i: usize| x[i] / rms(i) * f64::from(case.gamma[i % 6]) + f64::from(case.beta[i % 6]);
        let expected: Vec<f64> = (0..x.len()).map(value).collect();
        let tolerance = forward_tolerance(&case);
        let y = forward(norm, &case)?;
        within("forward", &case.shape, &y, &expected, |i| tolerance[i], FORWARD_WHY)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// One element of 64 is a hundred times larger than the others: x̂ is nearly √63 there.
fn outlier() -> LayerNormCase {
    let x = |j: usize| match j {
        5 => 100.0,
        j if j.is_multiple_of(2) => 1.0,
        _ => -1.0,
    };
    let (gamma, beta) = (vec![1.5; 64], vec![-0.5; 64]);
    LayerNormCase { shape: [1, 1, 64], eps: 1e-5, gamma, beta, x: (0..64).map(x).collect() }
}

/// On any input, y is what plain f64 loops give.
#[law("layernorm/forward-f64-loops", see = "layernorm#definition", about = Statistics, points = 3,
    formula = "y = (x − mean) / √(var + ε) · γ + β", stays = NET)]
fn forward_f64_loops(norm: &Norm, run: &Run) -> Verdict {
    judge_graded_cases(norm, run, "forward")?;
    matches_oracle(norm, &outlier())?;
    Ok(None)
}

// --- backward -------------------------------------------------------------------------------

/// At a token of equal values, the gradient can be written down: γ·dy is centred and divided by √ε.
#[law("layernorm/gradient-of-constant-row", see = "layernorm#gradient", about = Gradient, points = 1,
    formula = "x = c  ⇒  dx = (γ·dy − mean(γ·dy)) / √ε",
    stays = "The gradient can be written down by hand here.")]
fn gradient_of_constant_row(norm: &Norm, _: &Run) -> Verdict {
    for eps in [1e-5, 4.0] {
        let case = with_x(&witness(eps), |_| 0.5);
        let dy: Vec<f32> = (0..12).map(|i| 0.5 - 0.25 * i as f32).collect();
        let grads = backward(norm, &case, &dy).map_err(|violation| violation.on(&case))?;
        let dxhat = |i: usize| f64::from(case.gamma[i % 6]) * f64::from(dy[i]);
        let level = |i: usize| (i / 6 * 6..i / 6 * 6 + 6).map(dxhat).sum::<f64>() / 6.0;
        let expected: Vec<f64> = (0..12).map(|i| (dxhat(i) - level(i)) / eps.sqrt()).collect();
        let tolerance = dx_tolerance(&case, &dy);
        within("backward (dx)", &case.shape, &grads.dx, &expected, |i| tolerance[i], DX_WHY)
            .map_err(|violation| violation.on(Input { case, dy }))?;
    }
    Ok(None)
}

/// Because a shift of the token changes nothing, the gradient along it is 0.
#[law("layernorm/gradient-sums-to-zero", see = "layernorm#gradient", about = Gradient, points = 2,
    formula = "Σ dx = 0, per token",
    stays = "It tells a gradient that takes the mean for a constant, without an oracle.")]
fn gradient_sums_to_zero(norm: &Norm, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, dy }| {
        let h = case.shape[2];
        let sum =
            |values: &[f64]| -> Vec<f64> { values.chunks(h).map(|row| row.iter().sum()).collect() };
        let got = sum(&widen(&backward(norm, case, dy)?.dx));
        let (expected, tolerance) = (vec![0.0; got.len()], sum(&dx_tolerance(case, dy)));
        let why = "the sum of how far the values themselves may be off";
        within_f64("backward (dx)", &case.shape[..2], &got, &expected, |row| tolerance[row], why)
    })?;
    Ok(None)
}

/// Adding one number to all elements of a token changes no gradient, even a number a thousand times larger than they
/// are.
#[law("layernorm/gradient-shift", see = "layernorm#gradient", about = Gradient, points = 2,
    formula = "dx(x + c) = dx(x),  dγ(x + c) = dγ(x)",
    stays = "The only question about gradients where the mean is large.")]
fn gradient_shift(norm: &Norm, _: &Run) -> Verdict {
    let case = witness(1e-5);
    let dy: Vec<f32> = (0..12).map(|i| 1.0 - 0.25 * i as f32).collect();
    let before = backward(norm, &case, &dy).map_err(|violation| violation.on(&case))?;
    for c in [1.0, -64.0, 4096.0] {
        let shifted = with_x(&case, |x| x + c); // exactly
        let again = backward(norm, &shifted, &dy).map_err(|violation| violation.on(&shifted))?;
        let why = format!(
            "the same as without the {c} that was added to all x, except for its roundings"
        );
        let (near, far) = (dx_tolerance(&case, &dy), dx_tolerance(&shifted, &dy));
        let dx = widen(&before.dx);
        within("backward (dx)", &case.shape, &again.dx, &dx, |i| near[i] + far[i], &why)
            .map_err(|violation| violation.on(&shifted))?;
        let (near, far) = (dgamma_tolerance(&case, &dy), dgamma_tolerance(&shifted, &dy));
        let dgamma = widen(&before.dgamma);
        within("backward (dgamma)", &[6], &again.dgamma, &dgamma, |j| near[j] + far[j], &why)
            .map_err(|violation| violation.on(&shifted))?;
    }
    Ok(None)
}

/// Stretching a token away from its mean hardly changes the result, so the gradient in that direction is almost 0, and
/// eps gives its exact value.
#[law("layernorm/gradient-along-x", see = "layernorm#gradient", about = Gradient, points = 2,
    formula = "Σ x·dx = Σ x̂·γ·dy · ε/(var + ε), per token",
    stays = "It tells a gradient that takes the root for a constant.")]
fn gradient_along_x(norm: &Norm, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, dy }| {
        let h = case.shape[2];
        let dx = widen(&backward(norm, case, dy)?.dx);
        let x = widen(&case.x);
        let sums = |f: &dyn Fn(usize) -> f64| -> Vec<f64> {
            (0..x.len()).step_by(h).map(|start| (start..start + h).map(f).sum()).collect()
        };
        let got = sums(&|i| x[i] * dx.get(i).unwrap_or(&f64::NAN));
        let Passes { xhat, std, .. } = forward_oracle(case);
        let along = sums(&|i| xhat[i] * f64::from(case.gamma[i % h]) * f64::from(dy[i]));
        let expected = along.iter().zip(&std).map(|(along, std)| along * case.eps / std.powi(2));
        let expected: Vec<f64> = expected.collect();
        let tolerance = dx_tolerance(case, dy);
        let tolerance = sums(&|i| x[i].abs() * tolerance[i]);
        let why = "the sum of how far the values themselves may be off, times |x|";
        within_f64("backward (dx)", &case.shape[..2], &got, &expected, |row| tolerance[row], why)
    })?;
    Ok(None)
}

/// The gradient is the slope of the implementation's own outputs, measured by finite differences.
#[law("layernorm/gradient-differences", see = "layernorm#gradient", about = Gradient, points = 2,
    formula = "dx_i ≈ (8(L(x+δ) − L(x−δ)) − (L(x+2δ) − L(x−2δ))) / 12δ",
    stays = "It needs no formula for the gradient at all, so an error in the oracle's would show.")]
fn gradient_differences(norm: &Norm, _: &Run) -> Verdict {
    let case = witness(0.5);
    let dy: Vec<f32> = (0..12).map(|i| 1.0 - 0.25 * i as f32).collect();
    let loss = |i: usize, step: f32| -> Step<f64> {
        let mut moved = case.clone();
        moved.x[i] += step;
        let y = forward(norm, &moved)?;
        Ok(y.iter().zip(&dy).map(|(&y, &dy)| f64::from(y) * f64::from(dy)).sum())
    };
    let delta = 1.0 / 16.0;
    let slope = |i| -> Step<f64> {
        let near = loss(i, delta)? - loss(i, -delta)?;
        let far = loss(i, 2.0 * delta)? - loss(i, -2.0 * delta)?;
        Ok((8.0 * near - far) / (12.0 * f64::from(delta)))
    };
    let expected: Vec<f64> = (0..12).map(slope).collect::<Step<_>>()?;
    let size: f64 = (0..12).map(|i| f64::from((case.gamma[i % 6] * dy[i]).abs())).sum();
    let why = "10⁻⁴ of Σ|γ·dy|: how far the outputs may be off, 24 times for the steps of 1/16";
    let grads = backward(norm, &case, &dy).map_err(|violation| violation.on(&case))?;
    within("backward (dx)", &case.shape, &grads.dx, &expected, |_| 1e-4 * size, why)
        .map_err(|violation| violation.on(Input { case: case.clone(), dy: dy.clone() }))?;
    Ok(None)
}

/// The sum over the rows, for each element.
fn over_rows(h: usize, n: usize, f: impl Fn(usize) -> f64) -> Vec<f64> {
    (0..h).map(|j| (j..n).step_by(h).map(&f).sum()).collect()
}

/// Beta's gradient sums dy over all rows of all batches.
#[law("layernorm/gradient-of-beta", see = "layernorm#gradient", about = Gradient, points = 1,
    formula = "dβ_j = Σ_rows dy_j")]
fn gradient_of_beta(norm: &Norm, run: &Run) -> Verdict {
    judge_graded_cases(norm, run, "backward (dbeta)")
}

pub(super) fn matches_dbeta(norm: &Norm, asked: &Asked) -> Step {
    let Asked { manner, case, dy } = asked;
    let (h, n) = (case.shape[2], dy.len());
    let expected = over_rows(h, n, |i| f64::from(dy[i]));
    let size = over_rows(h, n, |i| f64::from(dy[i]).abs());
    let rows = (n / h) as f64;
    let why = "rows·2⁻²⁴ of Σ|dy|: one sum over the rows in f32";
    let ask =
        || answer("backward", || norm.backward_in(*manner, case, dy)).map(|grads| grads.dbeta);
    let call = "backward (dbeta)";
    ask()
        .and_then(|got| {
            within(call, &[h], &got, &expected, |j| rows * U * size[j], why)?;
            repeats(call, n / h, &[h], &got, ask)
        })
        .map_err(|violation| violation.on(asked))
}

/// How far each `dgamma` may be off.
fn dgamma_tolerance(case: &LayerNormCase, dy: &[f32]) -> Vec<f64> {
    let (h, n) = (case.shape[2], dy.len());
    let (xhat, off) = (forward_oracle(case).xhat, xhat_tolerance(case));
    let additions = (n / h) as f64 + 2.0;
    over_rows(h, n, |i| f64::from(dy[i]).abs() * (off[i] + additions * U * xhat[i].abs()))
}

/// Gamma's gradient sums dy · x̂ over all rows of all batches.
#[law("layernorm/gradient-of-gamma", see = "layernorm#gradient", about = Gradient, points = 2,
    formula = "dγ_j = Σ_rows dy_j · x̂_j")]
fn gradient_of_gamma(norm: &Norm, run: &Run) -> Verdict {
    judge_graded_cases(norm, run, "backward (dgamma)")
}

pub(super) fn matches_dgamma(norm: &Norm, asked: &Asked) -> Step {
    let Asked { manner, case, dy } = asked;
    let h = case.shape[2];
    let (expected, tolerance) = (Oracle.passes(case, dy).dgamma, dgamma_tolerance(case, dy));
    let why = "how far x̂ may be off, times |dy|, and (rows + 2)·2⁻²⁴ of Σ|dy·x̂| for one sum over the rows";
    let ask =
        || answer("backward", || norm.backward_in(*manner, case, dy)).map(|grads| grads.dgamma);
    let call = "backward (dgamma)";
    ask()
        .and_then(|got| {
            within(call, &[h], &got, &expected, |j| tolerance[j], why)?;
            repeats(call, dy.len() / h, &[h], &got, ask)
        })
        .map_err(|violation| violation.on(asked))
}

/// On any input, dx is what plain f64 loops give.
#[law("layernorm/gradient-of-x", see = "layernorm#gradient", about = Gradient, points = 3,
    formula = "dx = (γ·dy − mean(γ·dy) − x̂·mean(γ·dy·x̂)) / √(var + ε)", stays = NET)]
fn gradient_of_x(norm: &Norm, run: &Run) -> Verdict {
    judge_graded_cases(norm, run, "backward (dx)")
}

pub(super) fn matches_dx(norm: &Norm, asked: &Asked) -> Step {
    let Asked { manner, case, dy } = asked;
    let (expected, tolerance) = (Oracle.passes(case, dy).dx, dx_tolerance(case, dy));
    answer("backward", || norm.backward_in(*manner, case, dy))
        .and_then(|LayerNormGrads { dx, .. }| {
            within("backward (dx)", &case.shape, &dx, &expected, |i| tolerance[i], DX_WHY)
        })
        .map_err(|violation| violation.on(asked))
}
