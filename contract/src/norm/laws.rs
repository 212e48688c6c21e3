//! What GroupRMSNorm promises.

use crate::component::{NET, law, laws};
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::{U, U16, repeats, values, widen};
use crate::norm::interface::*;
use crate::norm::menu;
use crate::norm::oracle::{NormLoops, Passes};
use crate::oracle::{Oracle, random, to_f16};
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;
use std::fmt;

type Norm = dyn GroupRmsNorm;

laws! {
    initial_gamma, statistics_in_f32, eps_inside_root, zero_group, mean_square_is_one, not_centred,
    groups_are_neighbours, groups_are_independent, groups_permute, gamma_per_element, odd, tiny_and_huge,
    forward_f64_loops, gradient_at_zero, gradient_along_x, gradient_differences, gradient_of_gamma, gradient_of_x,
    half_result_is_half, half_does_not_overflow, half_rounds_once, group_size_divides,
}

// --- inputs ---------------------------------------------------------------------------------

/// A call, and a gradient of the loss with respect to its result.
#[derive(Debug, Clone)]
struct Input {
    case: NormCase,
    dy: Vec<f32>,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, dy } = self;
        write!(f, "{case}\ndy    = {}", crate::describe::List(dy))
    }
}

/// Any sizes of the menu, one or two batch rows, up to three tokens.
fn inputs() -> impl Strategy<Value = Input> {
    let sizes = (prop::sample::select(&menu::NORM[..]), 1..=2usize, 1..=3usize);
    sizes.prop_flat_map(|((h, group_size), b, s)| {
        let eps = prop::sample::select(vec![1e-6, 1e-5, 1e-3, 0.1, 1.0]);
        (values(b * s * h), values(h), eps, values(b * s * h)).prop_map(
            move |(x, gamma, eps, dy)| Input {
                case: NormCase { shape: [b, s, h], group_size, eps, gamma, x },
                dy,
            },
        )
    })
}

/// Two tokens of six elements that differ in size and sign. Gamma is far from 1 and uneven.
fn witness(group_size: usize, eps: f64) -> NormCase {
    let x = vec![3.0, -0.5, 2.0, 0.25, 4.0, -1.0, -0.125, 1.5, 0.75, -2.0, 0.5, 5.0];
    NormCase { shape: [1, 2, 6], group_size, eps, gamma: vec![0.1, -7.0, 2.5, 0.6, 30.0, -1.5], x }
}

fn ones(case: NormCase) -> NormCase {
    NormCase { gamma: vec![1.0; case.gamma.len()], ..case }
}

fn forward(norm: &Norm, case: &NormCase) -> Step<Vec<f32>> {
    let y = answer("forward", || norm.forward(case)).map_err(|violation| violation.on(case))?;
    let length = Fault::Length { shape: case.shape.to_vec(), got: y.len() };
    if y.len() == case.x.len() { Ok(y) } else { Err(Violation::new("forward", length).on(case)) }
}

fn backward(norm: &Norm, case: &NormCase, dy: &[f32]) -> Step<NormGrads> {
    answer("backward", || norm.backward(case, dy))
}

fn oracle(case: &NormCase, dy: &[f32]) -> Passes {
    Oracle.passes(case, dy)
}

/// `gz` squares are added (gz/2 roundings after the root), then: divide, add eps, root, divide,
/// multiply. Relative to the value.
fn forward_tolerance(case: &NormCase) -> f64 {
    (case.group_size as f64 / 2.0 + 4.0) * U
}

const FORWARD_WHY: &str =
    "(gz/2 + 4)·2⁻²⁴ of the value: gz squares are added in f32, then four more roundings";

/// One graded case.
pub(super) type Asked = crate::graded_cases::Asked<NormCase>;

/// What `y` must be.
pub(super) fn matches_y(norm: &Norm, asked: &Asked) -> Step {
    let Asked { manner, case, .. } = asked;
    let expected = oracle(case, &vec![0.0; case.x.len()]).y;
    let tolerance = forward_tolerance(case);
    answer("forward", || norm.forward_in(*manner, case))
        .and_then(|y| {
            let tolerance = |i: usize| tolerance * expected[i].abs();
            within("forward", &case.shape, &y, &expected, tolerance, FORWARD_WHY)
        })
        .map_err(|violation| violation.on(asked))
}

/// [`matches_y`], asked plainly.
fn matches_oracle(norm: &Norm, case: &NormCase) -> Step {
    matches_y(norm, &Asked { manner: Manner::Plain, case: case.clone(), dy: Vec::new() })
}

// --- initial values -------------------------------------------------------------------------

/// Gamma starts uniform on [low, high), with PyTorch's numbers for the seed.
#[law("norm/initial-gamma", see = "norm#initial-values", about = Seed, points = 2,
    formula = "γ_j = (r_j mod 2²⁴)·2⁻²⁴·(high − low) + low,  r = MT19937(seed)")]
fn initial_gamma(norm: &Norm, run: &Run) -> Verdict {
    judge_graded_cases(norm, run, "initial_gamma")
}

/// The first gamma, asked twice: the second call must not go on where the first one stopped.
pub(super) fn matches_draw(norm: &Norm, n: usize, range: (f32, f32), seed: u64) -> Step {
    let expected = widen(&random::uniform(n, range, seed));
    let (ulp, why) = match range {
        (0.0, 1.0) => (0.0, "nothing is multiplied or added, so nothing is rounded"),
        (low, high) => (
            f64::from(low.abs().max(high.abs())) * 2.0 * U,
            "1 ulp at the end of the range: PyTorch multiplies and adds in one step",
        ),
    };
    let ask = || {
        let gamma = answer("initial_gamma", || norm.initial_gamma(n, range, seed))?;
        within("initial_gamma", &[n], &gamma, &expected, |_| ulp, why)?;
        let inside = gamma.iter().all(|&g| range.0 <= g && g < range.1);
        holds("initial_gamma", inside, || format!("a value outside {range:?}"))
    };
    let input = || format!("hidden_size {n}, range {range:?}, seed {seed}");
    ask().and_then(|()| ask()).map_err(|violation| violation.on(input()))
}

// --- forward --------------------------------------------------------------------------------

/// `case` with values times `2^j` and eps times `4^j`: exact in every float type.
fn scaled(case: &NormCase, j: i32) -> NormCase {
    let x = case.x.iter().map(|x| x * 2.0f32.powi(j)).collect();
    NormCase { x, eps: case.eps * 4.0f64.powi(j), ..case.clone() }
}

/// Squares and means are kept in f32 or better: values of 300 and of 0.0003 give the same as values of 1, if eps is
/// scaled with their squares.
#[law("norm/statistics-in-f32", see = "norm#precision", about = Precision, points = 2,
    formula = "N(2ʲ·x; 4ʲ·ε) = N(x; ε), |j| ≤ 12",
    stays = "It compares the norm with itself at other sizes, without an oracle.")]
fn statistics_in_f32(norm: &Norm, _: &Run) -> Verdict {
    let case = witness(3, 1.0 / 1024.0);
    let y = forward(norm, &case)?;
    for j in [8, 12, -8, -12] {
        let scaled = scaled(&case, j);
        let again = forward(norm, &scaled)?;
        let why = format!("the same as for x·2^{}, except for the roundings of both", -j);
        let (expected, tolerance) = (widen(&y), 2.0 * forward_tolerance(&case));
        let at = |i: usize| tolerance * expected[i].abs();
        within("forward", &case.shape, &again, &expected, at, &why).map_err(|b| b.on(&scaled))?;
    }
    Ok(None)
}

/// Eps is added to the mean square, inside the root. Where every x is √ε, eps is half of the sum, and y is 1/√2.
#[law("norm/eps-inside-root", see = "norm#eps", about = Eps, points = 2,
    formula = "x = √ε everywhere, γ = 1  ⇒  y = 1/√2",
    stays = "A number that is known by heart, and that every wrong place of eps gets wrong.")]
fn eps_inside_root(norm: &Norm, _: &Run) -> Verdict {
    for eps in [1e-5, 1e-2, 4.0] {
        let case = ones(witness(3, eps));
        let case = NormCase { x: vec![eps.sqrt() as f32; case.x.len()], ..case };
        let y = forward(norm, &case)?;
        let expected = vec![std::f64::consts::FRAC_1_SQRT_2; y.len()];
        let tolerance = (forward_tolerance(&case) + U) * expected[0];
        let why = "(gz/2 + 5)·2⁻²⁴ of the value: gz squares are added in f32, then four more roundings; and √ε is \
                   itself rounded";
        within("forward", &case.shape, &y, &expected, |_| tolerance, why)
            .map_err(|violation| violation.on(&case))?;
    }
    // An eps of 0 adds nothing, and no other number stands in for it. Small values feel one that does.
    let case = ones(witness(3, 0.0));
    let x = vec![1.0 / 1024.0; case.x.len()];
    matches_oracle(norm, &NormCase { x, ..case })?;
    Ok(None)
}

/// A group of zeros gives zeros, because eps keeps the root away from 0.
#[law("norm/zero-group", see = "norm#eps", about = Eps, points = 1,
    formula = "x_g = 0  ⇒  y_g = 0",
    stays = "It shows what eps is for: without eps, 0 / 0 is NaN. A larger eps catches the same bugs by a number.")]
fn zero_group(norm: &Norm, _: &Run) -> Verdict {
    let mut case = witness(3, 1e-5);
    case.x[3..6].fill(0.0);
    let y = forward(norm, &case)?;
    same_values("forward", &[3], &y[3..6], &[0.0; 3], "0 divided by √ε is 0, exactly")
        .map_err(|violation| violation.on(&case))?;
    Ok(None)
}

/// After the norm, with gamma 1, the mean square of a group is 1, up to eps.
#[law("norm/mean-square-is-one", see = "norm#definition", about = Statistics, points = 2,
    formula = "mean(x̂²) = ms / (ms + ε),  ms = mean(x²)",
    stays = "It says what the norm is for, in one number, without an oracle.")]
fn mean_square_is_one(norm: &Norm, run: &Run) -> Verdict {
    run.forall(inputs(), |input| {
        let case = ones(input.case.clone());
        let y = widen(&forward(norm, &case)?);
        let gz = case.group_size;
        let mean_square = |group: &[f64]| group.iter().map(|x| x * x).sum::<f64>() / gz as f64;
        let got: Vec<f64> = y.chunks(gz).map(mean_square).collect();
        let expected = widen(&case.x);
        let expected = expected.chunks(gz).map(mean_square).map(|ms| ms / (ms + case.eps));
        let expected: Vec<f64> = expected.collect();
        let tolerance = 2.0 * forward_tolerance(&case); // a square doubles relative errors
        let shape = [case.shape[0], case.shape[1], case.shape[2] / gz];
        let why = "twice (gz/2 + 4)·2⁻²⁴: squares double a relative error";
        within_f64("forward", &shape, &got, &expected, |i| tolerance * expected[i], why)
            .map_err(|violation| violation.on(&case))
    })?;
    Ok(None)
}

/// The mean is not subtracted: a group of equal values keeps its sign and does not become 0.
#[law("norm/not-centred", see = "norm#layernorm", about = Statistics, points = 1,
    formula = "x = c everywhere, ε → 0, γ = 1  ⇒  y = sign(c)",
    stays = "It separates RMSNorm from LayerNorm by one input that can be checked by hand.")]
fn not_centred(norm: &Norm, _: &Run) -> Verdict {
    for c in [2.0f32, -2.0] {
        let case = ones(witness(3, 1e-12));
        let case = NormCase { x: vec![c; case.x.len()], ..case };
        let y = forward(norm, &case)?;
        let expected = vec![f64::from(c.signum()); y.len()];
        let tolerance = forward_tolerance(&case);
        within("forward", &case.shape, &y, &expected, |_| tolerance, FORWARD_WHY)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// Where `case` has elements of other groups than group `g`, and what `y` and `again` hold there.
fn elsewhere(case: &NormCase, g: usize, y: &[f32]) -> Vec<f32> {
    let group = |i: usize| (i % case.shape[2]) / case.group_size;
    y.iter().enumerate().filter(|(i, _)| group(*i) != g).map(|(_, &y)| y).collect()
}

fn with_group(case: &NormCase, g: usize, change: impl Fn(f32) -> f32) -> NormCase {
    let group = |i: usize| (i % case.shape[2]) / case.group_size;
    let x = case.x.iter().enumerate();
    let x = x.map(|(i, &x)| if group(i) == g { change(x) } else { x }).collect();
    NormCase { x, ..case.clone() }
}

fn others_keep(norm: &Norm, group_size: usize, change: impl Fn(f32) -> f32 + Copy) -> Step {
    let case = witness(group_size, 1e-5);
    let y = forward(norm, &case)?;
    for g in 0..case.shape[2] / group_size {
        let changed = with_group(&case, g, change);
        let again = forward(norm, &changed)?;
        let (kept, before) = (elsewhere(&case, g, &again), elsewhere(&case, g, &y));
        let why = format!("only group {g} was changed; the values of the others are compared");
        same_values("forward", &[kept.len()], &kept, &before, &why).map_err(|b| b.on(&changed))?;
    }
    Ok(())
}

/// A group is group_size NEIGHBOURS on the hidden axis: scaling one group changes nothing in the others.
#[law("norm/groups-are-neighbours", see = "norm#groups", about = Statistics, points = 2,
    formula = "groups are [0, gz), [gz, 2gz), …;  N(…, 1000·x_g, …) is the same elsewhere",
    stays = "A wrong cut shows here by name; elsewhere it is just a wrong number.")]
fn groups_are_neighbours(norm: &Norm, _: &Run) -> Verdict {
    for group_size in [3, 2, 1] {
        others_keep(norm, group_size, |x| 1000.0 * x)?;
        // Inside its group, an element is felt.
        if group_size > 1 {
            let case = witness(group_size, 1e-5);
            let mut changed = case.clone();
            changed.x[0] *= 1000.0;
            let (y, again) = (forward(norm, &case)?, forward(norm, &changed)?);
            let felt = (1..group_size).all(|j| y[j] != again[j]);
            holds("forward", felt, || {
                "x[0] grew 1000 times, but a neighbour in its group kept its value".into()
            })
            .map_err(|violation| violation.on(&changed))?;
        }
    }
    Ok(None)
}

/// A NaN in one group leaves all other groups as they were, bit for bit.
#[law("norm/groups-are-independent", see = "norm#groups", about = Statistics, points = 1,
    formula = "x_g = NaN  ⇒  y_k unchanged for k ≠ g")]
fn groups_are_independent(norm: &Norm, _: &Run) -> Verdict {
    for group_size in [3, 2, 1] {
        others_keep(norm, group_size, |_| f32::NAN)?;
    }
    Ok(None)
}

/// Whole groups may change places together with their gamma.
#[law("norm/groups-permute", see = "norm#groups", about = Weights, points = 1,
    formula = "y(P·x; P·γ) = P·y(x; γ),  P moves whole groups",
    stays = "A law without an oracle: it holds for every right norm, whatever its numbers.")]
fn groups_permute(norm: &Norm, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let turn = |values: &[f32]| -> Vec<f32> {
            let turned = values.chunks(case.shape[2]).flat_map(|row| {
                let (first, rest) = row.split_at(case.group_size);
                rest.iter().chain(first).copied()
            });
            turned.collect()
        };
        let turned = NormCase { x: turn(&case.x), gamma: turn(&case.gamma), ..case.clone() };
        let why = "groups changed places; no number may change";
        let expected = turn(&forward(norm, case)?);
        same_values("forward", &case.shape, &forward(norm, &turned)?, &expected, why)
    })?;
    Ok(None)
}

/// Gamma multiplies, one number per element: y is proportional to it.
#[law("norm/gamma-per-element", see = "norm#gamma", about = Weights, points = 2,
    formula = "y(x; γ) = γ ⊙ y(x; 1)",
    stays = "It looks at gamma alone, whatever the rest of the norm does.")]
fn gamma_per_element(norm: &Norm, _: &Run) -> Verdict {
    for group_size in [3, 2] {
        let case = witness(group_size, 1e-5);
        let plain = widen(&forward(norm, &ones(case.clone()))?);
        let expected = plain.iter().enumerate().map(|(i, y)| y * f64::from(case.gamma[i % 6]));
        let expected: Vec<f64> = expected.collect();
        // Both sides are rounded by the implementation; the sums in them are the same.
        let tolerance = 4.0 * U;
        let why = "4·2⁻²⁴ of the value: two roundings on either side";
        let y = forward(norm, &case)?;
        within("forward", &case.shape, &y, &expected, |i| tolerance * expected[i].abs(), why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// Changing the sign of x changes the sign of y, and nothing else.
#[law("norm/odd", see = "norm#definition", about = Statistics, points = 1,
    formula = "N(−x) = −N(x), bit for bit",
    stays = "A law without an oracle and without a tolerance.")]
fn odd(norm: &Norm, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, .. }| {
        let negative = NormCase { x: case.x.iter().map(|x| -x).collect(), ..case.clone() };
        let expected: Vec<f32> = forward(norm, case)?.iter().map(|y| -y).collect();
        let why = "a sign changes no digit";
        same_values("forward", &case.shape, &forward(norm, &negative)?, &expected, why)
    })?;
    Ok(None)
}

/// Values of 10⁻¹⁵ and of 10¹⁵ are normalized like all others.
#[law("norm/tiny-and-huge", see = "norm#precision", about = Precision, points = 1,
    formula = "y = x / √(mean(x²) + ε) · γ, |x| from 10⁻¹⁵ to 10¹⁵",
    stays = "It names the sizes at which squares leave f32.")]
fn tiny_and_huge(norm: &Norm, _: &Run) -> Verdict {
    for (size, eps) in [(1e-15, 1e-30), (1e15, 1e-5), (1e15, 1e30), (1e-3, 1e-8), (1e-4, 1e-12)] {
        let case = witness(3, eps);
        let x = case.x.iter().map(|x| x * size as f32).collect();
        matches_oracle(norm, &NormCase { x, ..case })?;
    }
    Ok(None)
}

/// On any input, y is what plain f64 loops give.
#[law("norm/forward-f64-loops", see = "norm#definition", about = Statistics, points = 3,
    formula = "|y − y₆₄| ≤ (gz/2 + 4)·2⁻²⁴·|y₆₄|", stays = NET)]
fn forward_f64_loops(norm: &Norm, run: &Run) -> Verdict {
    judge_graded_cases(norm, run, "forward")
}

// --- backward -------------------------------------------------------------------------------

/// How large the terms of `dx` are, `(|gamma dy| + |xhat| mean |gamma dy xhat|) / rms`.
fn dx_terms(case: &NormCase, dy: &[f32]) -> Vec<f64> {
    let absolute = |values: &[f32]| values.iter().map(|value| value.abs()).collect::<Vec<_>>();
    /// The oracle with a plus in `dx`.
    struct Terms;
    impl NormLoops for Terms {
        fn dx(&self, gamma_dy: f64, xhat: f64, along: f64, rms: f64) -> f64 {
            (gamma_dy + xhat * along) / rms
        }
    }
    let positive = NormCase { gamma: absolute(&case.gamma), x: absolute(&case.x), ..case.clone() };
    Terms.passes(&positive, &absolute(dy)).dx
}

/// At a group of zeros, the norm just multiplies by gamma / √ε, and so does its gradient.
#[law("norm/gradient-at-zero", see = "norm#gradient", about = Gradient, points = 1,
    formula = "x_g = 0  ⇒  dx = γ·dy / √ε",
    stays = "The gradient can be written down by hand here.")]
fn gradient_at_zero(norm: &Norm, _: &Run) -> Verdict {
    for eps in [1e-5, 4.0] {
        let mut case = witness(3, eps);
        case.x[3..6].fill(0.0);
        let dy: Vec<f32> = (0..12).map(|i| 0.5 - 0.25 * i as f32).collect();
        let grads = backward(norm, &case, &dy).map_err(|violation| violation.on(&case))?;
        let slope = |i: usize| f64::from(case.gamma[i]) * f64::from(dy[i]) / eps.sqrt();
        let expected: Vec<f64> = (3..6).map(slope).collect();
        let why = "4·2⁻²⁴ of the value: root of eps, product, quotient";
        let got = grads.dx.get(3..6).unwrap_or(&[]);
        within("backward (dx)", &[3], got, &expected, |i| 4.0 * U * expected[i].abs(), why)
            .map_err(|violation| violation.on(Input { case, dy }))?;
    }
    Ok(None)
}

/// Stretching x hardly changes the result, so the gradient along x is almost 0, and eps gives its exact value.
#[law("norm/gradient-along-x", see = "norm#gradient", about = Gradient, points = 2,
    formula = "Σ x·dx = Σ x̂·γ·dy · ε/(ms + ε), per group",
    stays = "It tells a gradient that takes the rms for a constant, without an oracle.")]
fn gradient_along_x(norm: &Norm, run: &Run) -> Verdict {
    run.forall(inputs(), |Input { case, dy }| {
        let gz = case.group_size;
        let dx = widen(&backward(norm, case, dy)?.dx);
        let x = widen(&case.x);
        let terms = dx_terms(case, dy);
        let sums = |f: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let starts = (0..x.len()).step_by(gz);
            starts.map(|start| (start..start + gz).map(f).sum()).collect()
        };
        let got = sums(&|i| x[i] * dx.get(i).unwrap_or(&f64::NAN));
        let xhat = oracle(case, dy).xhat;
        let along =
            sums(&|i| xhat[i] * f64::from(case.gamma[i % case.shape[2]]) * f64::from(dy[i]));
        let squares = sums(&|i| x[i] * x[i] / gz as f64);
        let expected = along.iter().zip(&squares).map(|(s, ms)| s * case.eps / (ms + case.eps));
        let expected: Vec<f64> = expected.collect();
        let size = sums(&|i| (x[i] * terms[i]).abs());
        let tolerance = dx_tolerance(case);
        let shape = [case.shape[0], case.shape[1], case.shape[2] / gz];
        within_f64("backward (dx)", &shape, &got, &expected, |g| tolerance * size[g], DX_WHY)
    })?;
    Ok(None)
}

/// The root brings `gz/2 + 2` roundings and enters three times: twice in x̂, once in the division.
/// The mean of the products brings `gz`. A dozen more are single ones.
fn dx_tolerance(case: &NormCase) -> f64 {
    (2.5 * case.group_size as f64 + 14.0) * U
}

const DX_WHY: &str =
    "(5gz/2 + 14)·2⁻²⁴ of the size of the terms, which cancel: sums over the group in f32";

/// The gradient is the slope of the implementation's own outputs, measured by finite differences.
#[law("norm/gradient-differences", see = "norm#gradient", about = Gradient, points = 2,
    formula = "dx_i ≈ (8(L(x+δ) − L(x−δ)) − (L(x+2δ) − L(x−2δ))) / 12δ",
    stays = "It needs no formula for the gradient at all, so an error in the oracle's would show.")]
fn gradient_differences(norm: &Norm, _: &Run) -> Verdict {
    let case = witness(3, 0.5);
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
    let why = "10⁻³ of Σ|γ·dy|: a difference of fourth order with steps of 1/16";
    let grads = backward(norm, &case, &dy).map_err(|violation| violation.on(&case))?;
    within("backward (dx)", &case.shape, &grads.dx, &expected, |_| 1e-3 * size, why)
        .map_err(|violation| violation.on(Input { case: case.clone(), dy: dy.clone() }))?;
    Ok(None)
}

/// Gamma's gradient sums dy · x̂ over all rows of all batches.
#[law("norm/gradient-of-gamma", see = "norm#gradient", about = Gradient, points = 2,
    formula = "dγ_j = Σ_rows dy_j · x̂_j")]
fn gradient_of_gamma(norm: &Norm, run: &Run) -> Verdict {
    judge_graded_cases(norm, run, "backward (dgamma)")
}

pub(super) fn matches_dgamma(norm: &Norm, asked: &Asked) -> Step {
    let Asked { manner, case, dy } = asked;
    let Passes { xhat, dgamma, .. } = oracle(case, dy);
    let h = case.shape[2];
    let rows = (case.shape[0] * case.shape[1]) as f64;
    let size = |j: usize| -> f64 {
        (j..dy.len()).step_by(h).map(|i| (f64::from(dy[i]) * xhat[i]).abs()).sum()
    };
    let tolerance = (rows + case.group_size as f64 / 2.0 + 4.0) * U;
    let why = "(rows + gz/2 + 4)·2⁻²⁴ of Σ|dy·x̂|: one sum over the rows in f32";
    let ask =
        || answer("backward", || norm.backward_in(*manner, case, dy)).map(|grads| grads.dgamma);
    let call = "backward (dgamma)";
    ask()
        .and_then(|got| {
            within(call, &[h], &got, &dgamma, |j| tolerance * size(j), why)?;
            repeats(call, rows as usize, &[h], &got, ask)
        })
        .map_err(|violation| violation.on(asked))
}

/// On any input, dx is what plain f64 loops give.
#[law("norm/gradient-of-x", see = "norm#gradient", about = Gradient, points = 3,
    formula = "dx = (γ·dy − x̂·mean(γ·dy·x̂)) / rms", stays = NET)]
fn gradient_of_x(norm: &Norm, run: &Run) -> Verdict {
    judge_graded_cases(norm, run, "backward (dx)")
}

pub(super) fn matches_dx(norm: &Norm, asked: &Asked) -> Step {
    let Asked { manner, case, dy } = asked;
    let expected = oracle(case, dy).dx;
    let terms = dx_terms(case, dy);
    let tolerance = dx_tolerance(case);
    answer("backward", || norm.backward_in(*manner, case, dy))
        .and_then(|NormGrads { dx, .. }| {
            let tolerance = |i: usize| tolerance * terms[i];
            within("backward (dx)", &case.shape, &dx, &expected, tolerance, DX_WHY)
        })
        .map_err(|violation| violation.on(asked))
}

// --- half precision -------------------------------------------------------------------------

fn forward_half(norm: &Norm, case: &NormCase) -> Step<Vec<f32>> {
    answer("forward_half", || norm.forward_half(case)).map_err(|violation| violation.on(case))
}

/// An f16 input gives an f16 result, even when gamma is f32.
#[law("norm/half-result-is-half", see = "norm#precision", about = Precision, points = 1,
    formula = "y ∈ f16",
    stays = "It says what is wrong: the type, and not the number.")]
fn half_result_is_half(norm: &Norm, _: &Run) -> Verdict {
    for (h, group_size) in menu::NORM.into_iter().chain(menu::LARGE) {
        let x = (0..6 * h).map(|i| (i * 37 % 64) as f32 / 16.0 - 1.9375).collect();
        let gamma = (0..h).map(|j| 0.37 + 0.11 * (j % 7) as f32).collect();
        let case = NormCase { shape: [2, 3, h], group_size, eps: 1e-5, gamma, x };
        let y = forward_half(norm, &case)?;
        let halves: Vec<f32> = y.iter().map(|&y| to_f16(f64::from(y))).collect();
        let why = "the nearest f16: an f16 input must give an f16 result";
        same_values("forward_half", &case.shape, &y, &halves, why).map_err(|b| b.on(&case))?;
    }
    Ok(None)
}

/// An f16 input of 300 gives finite results, although 300² is not an f16.
#[law("norm/half-does-not-overflow", see = "norm#precision", about = Precision, points = 2,
    formula = "x = 300  ⇒  |y| = |γ|",
    stays = "The number by which this bug became known.")]
fn half_does_not_overflow(norm: &Norm, _: &Run) -> Verdict {
    let case = ones(witness(3, 1e-5));
    let x: Vec<f32> = case.x.iter().map(|x| 300.0 * x.signum()).collect();
    let expected: Vec<f64> = x.iter().map(|x| f64::from(x.signum())).collect();
    let case = NormCase { x, ..case };
    let y = forward_half(norm, &case)?;
    let why = "1 ulp of f16 at 1";
    within("forward_half", &case.shape, &y, &expected, |_| 2.0 * U16, why)
        .map_err(|violation| violation.on(&case))?;
    Ok(None)
}

/// The result is rounded to f16 once, after the product with gamma.
#[law("norm/half-rounds-once", see = "norm#precision", about = Precision, points = 2,
    formula = "|y − y₆₄| ≤ ½ ulp₁₆ + (gz/2 + 4)·2⁻²⁴·|y₆₄|")]
fn half_rounds_once(norm: &Norm, run: &Run) -> Verdict {
    judge_graded_cases(norm, run, "forward_half")
}

pub(super) fn matches_half(norm: &Norm, asked: &Asked) -> Step {
    let case = &asked.case;
    let round = |y: f64| if y.abs() >= 65520.0 { y * f64::INFINITY } else { y };
    let expected = oracle(case, &vec![0.0; case.x.len()]).y.into_iter().map(round);
    let expected: Vec<f64> = expected.collect();
    let tolerance = |i: usize| {
        let y = expected[i].abs();
        if y.is_infinite() {
            return 0.0;
        }
        half_ulp16(y) + forward_tolerance(case) * y
    };
    let why = "half an ulp of f16, for one rounding, and (gz/2 + 4)·2⁻²⁴ of the value";
    answer("forward_half", || norm.forward_half_in(asked.manner, case))
        .and_then(|y| within("forward_half", &case.shape, &y, &expected, tolerance, why))
        .map_err(|violation| violation.on(asked))
}

/// Half the distance of neighbours in `f16` around `y`. The smallest exponent is -14.
fn half_ulp16(y: f64) -> f64 {
    let exponent = if y == 0.0 { -14 } else { (y.log2().floor() as i32).max(-14) };
    U16 * 2.0f64.powi(exponent)
}

// --- refusals -------------------------------------------------------------------------------

/// A group size that does not divide the hidden size is refused.
#[law("norm/group-size-divides", see = "norm#groups", about = Refusal, points = 1,
    formula = "h mod gz ≠ 0  ⇒  no result")]
fn group_size_divides(norm: &Norm, _: &Run) -> Verdict {
    for group_size in [4, 5, 0, 12] {
        let case = NormCase { group_size, ..witness(3, 1e-5) };
        let rule = format!("group size {group_size} does not divide hidden size 6");
        refusal("forward", &rule, || norm.forward(&case))
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}
