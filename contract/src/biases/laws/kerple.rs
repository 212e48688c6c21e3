//! KERPLE: two kernels, their bounds and their gradients.

use super::{Asked, Biases, of_length};
use crate::biases::interface::*;
use crate::biases::oracle::{BiasLoops, LARGEST, LEAST};
use crate::biases::tolerance::{self, KERPLE_WHY, SUM_WHY};
use crate::component::{NET, law};
use crate::graded_cases::Draw;
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::widen;
use crate::oracle::Oracle;
use crate::run::Run;
use crate::violation::*;

const KERNELS: [Kernel; 2] = [Kernel::Logarithmic, Kernel::Power];

fn kerple(biases: &Biases, case: &KerpleCase) -> Step<Vec<f32>> {
    answer("kerple", || biases.kerple(case))
        .and_then(|bias| of_length("kerple", &[case.r1.len(), case.positions], bias))
        .map_err(|violation| violation.on(case))
}

fn one_head(kernel: Kernel, r1: f32, r2: f32, positions: usize) -> KerpleCase {
    KerpleCase { kernel, r1: vec![r1], r2: vec![r2], positions }
}

pub(in crate::biases) fn matches_kerple(biases: &Biases, asked: &Asked<KerpleCase>) -> Step {
    let Asked { manner, case, .. } = asked;
    let (expected, off) = (Oracle.kerple(case), tolerance::kerple(case));
    answer("kerple", || biases.kerple_in(*manner, case))
        .and_then(|bias| {
            let shape = [case.r1.len(), case.positions];
            within("kerple", &shape, &bias, &expected, |i| off[i], KERPLE_WHY)
        })
        .map_err(|violation| violation.on(asked))
}

pub(in crate::biases) fn matches_dr(biases: &Biases, asked: &Asked<KerpleCase>) -> Step {
    let Asked { manner, case, dy } = asked;
    let (expected, off) = (Oracle.kerple_backward(case, dy), tolerance::kerple_backward(case, dy));
    answer("kerple_backward", || biases.kerple_backward_in(*manner, case, dy))
        .and_then(|KerpleGrads { dr1, dr2 }| {
            let shape = [case.r1.len()];
            within("kerple_backward", &shape, &dr1, &expected[0], |i| off[0][i], SUM_WHY)?;
            within("kerple_backward", &shape, &dr2, &expected[1], |i| off[1][i], SUM_WHY)
        })
        .map_err(|violation| violation.on(asked))
}

/// At distance 0 the bias is exactly 0.
#[law("biases/kerple-nothing-at-0", see = "biases#kerple", about = Statistics, points = 1,
    formula = "bias(0) = 0",
    stays = "The value that is known before anything is learned.")]
pub(super) fn kerple_nothing_at_0(biases: &Biases, _: &Run) -> Verdict {
    for kernel in KERNELS {
        let case = KerpleCase { kernel, r1: vec![1.0, -3.0], r2: vec![0.5, 7.0], positions: 2 };
        let bias = kerple(biases, &case)?;
        holds("kerple", bias[0] == 0.0 && bias[2] == 0.0, || {
            format!("at distance 0 the biases are {} and {}", bias[0], bias[2])
        })
        .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// The bias of a farther key is never larger, whatever was learned.
#[law("biases/kerple-falls", see = "biases#kerple", about = Statistics, points = 1,
    formula = "j < i  ⇒  bias(j) ≥ bias(i)",
    stays = "A law without numbers, which T5's bias does not keep.")]
pub(super) fn kerple_falls(biases: &Biases, _: &Run) -> Verdict {
    for kernel in KERNELS {
        let case = KerpleCase {
            kernel,
            r1: vec![1.0, 0.25, -2.0, 0.0],
            r2: vec![0.5, 1.75, 1.0, -1.0],
            positions: 12,
        };
        for bias in kerple(biases, &case)?.chunks(12) {
            holds("kerple", bias.is_sorted_by(|near, far| near >= far), || {
                format!("from near to far: {bias:?}")
            })
            .map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(None)
}

/// With r₂ = 3, the logarithm takes r₁ ln 4 away at distance 1, and a power with exponent 1 is ALiBi.
#[law("biases/kerple-by-numbers", see = "biases#kerple", about = Statistics, points = 2,
    formula = "−r₁ ln(1 + 3·1) = −r₁ ln 4,  −r₁ j¹ = −r₁ j,  −r₁ j² at 3 = −9 r₁")]
pub(super) fn kerple_by_numbers(biases: &Biases, _: &Run) -> Verdict {
    let ln = f64::ln;
    for (case, expected) in [
        (one_head(Kernel::Logarithmic, 2.0, 3.0, 3), [0.0, -2.0 * ln(4.0), -2.0 * ln(7.0)]),
        (one_head(Kernel::Logarithmic, 0.5, 1.0, 3), [0.0, -0.5 * ln(2.0), -0.5 * ln(3.0)]),
        (one_head(Kernel::Power, 0.5, 1.0, 3), [0.0, -0.5, -1.0]),
        (one_head(Kernel::Power, 3.0, 2.0, 3), [0.0, -3.0, -12.0]),
        (one_head(Kernel::Power, 1.0, 0.5, 3), [0.0, -1.0, -f64::sqrt(2.0)]),
    ] {
        let (bias, off) = (kerple(biases, &case)?, tolerance::kerple(&case));
        within("kerple", &[1, 3], &bias, &expected, |i| off[i], KERPLE_WHY)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// A learned number below 0.01 counts as 0.01, and an exponent above 2 counts as 2, while the factor in a logarithm has
/// no such bound.
#[law("biases/kerple-bounds", see = "biases#kerple", about = Range, points = 2,
    formula = "bias(r₁ = −1) = bias(r₁ = 0.01),  bias(j³) = bias(j²)",
    stays = "The bounds themselves, at the numbers that cross them.")]
pub(super) fn kerple_bounds(biases: &Biases, _: &Run) -> Verdict {
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
        let (bias, expected) = (kerple(biases, &given)?, widen(&kerple(biases, &counts)?));
        let off = tolerance::kerple(&given);
        within("kerple", &[5, 6], &bias, &expected, |i| 2.0 * off[i], KERPLE_WHY)
            .map_err(|violation| violation.on(&given))?;
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

/// For numbers x that add up to 0, the quadratic form of the bias is never negative: the bias is a conditionally
/// positive definite kernel.
#[law("biases/kerple-positive-definite", see = "biases#kerple", about = Range, points = 2,
    formula = "Σ x = 0  ⇒  Σ x(m) x(n) bias(|m − n|) ≥ 0",
    stays = "What the bounds are there for. An exponent above 2 breaks it, and so does a bias that rises.")]
pub(super) fn kerple_positive_definite(biases: &Biases, run: &Run) -> Verdict {
    for kernel in KERNELS {
        for (r1, r2) in [(1.0, 0.5), (2.0, 1.0), (1.0, 1.75), (1.0, 2.0), (1.0, 3.0), (-1.0, 1.5)] {
            let case = one_head(kernel, r1, r2, 8);
            let bias = widen(&kerple(biases, &case)?);
            let off = tolerance::kerple(&case);
            for x in balanced(run) {
                let sum = form(&bias, &x)[0];
                let may_be = form(&off, &x)[1];
                holds("kerple", sum >= -may_be, || {
                    format!("for x = {x:?} the quadratic form is {sum}")
                })
                .map_err(|violation| violation.on(&case))?;
            }
        }
    }
    Ok(None)
}

/// On any input, KERPLE's bias is what plain f64 loops give.
#[law("biases/kerple-any", see = "biases#kerple", about = Statistics, points = 2,
    formula = "bias = −r₁ ln(1 + r₂ j), or −r₁ exp(r₂ ln j)", stays = NET)]
pub(super) fn kerple_any(biases: &Biases, run: &Run) -> Verdict {
    judge_graded_cases(biases, run, "kerple")
}

fn kerple_backward(biases: &Biases, case: &KerpleCase, dy: &[f32]) -> Step<[Vec<f32>; 2]> {
    let nh = [case.r1.len()];
    answer("kerple_backward", || biases.kerple_backward(case, dy))
        .and_then(|KerpleGrads { dr1, dr2 }| {
            let dr1 = of_length("kerple_backward", &nh, dr1)?;
            Ok([dr1, of_length("kerple_backward", &nh, dr2)?])
        })
        .map_err(|violation| violation.on(case))
}

/// The gradients are the slopes of the implementation's own biases, measured by finite differences.
#[law("biases/kerple-gradient-differences", see = "biases#kerple", about = Gradient, points = 2,
    formula = "dr ≈ (8(L(r+δ) − L(r−δ)) − (L(r+2δ) − L(r−2δ))) / 12δ")]
pub(super) fn kerple_gradient_differences(biases: &Biases, _: &Run) -> Verdict {
    const DELTA: f32 = 1.0 / 32.0;
    let delta = f64::from(DELTA);
    let dy = [1.0f32, -0.5, 0.75, 0.25, -1.0];
    for kernel in KERNELS {
        let case = one_head(kernel, 0.75, 1.25, 5);
        let loss = |nth: usize, step: f32| -> Step<f64> {
            let mut moved = case.clone();
            [&mut moved.r1, &mut moved.r2][nth][0] += step;
            Ok(kerple(biases, &moved)?
                .iter()
                .zip(&dy)
                .map(|(y, dy)| f64::from(*y) * f64::from(*dy))
                .sum())
        };
        let grads = kerple_backward(biases, &case, &dy)?;
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
                .map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(None)
}

/// A number that is out of bounds gets the gradient that it would have at the bound, so that it can come back.
#[law("biases/kerple-gradient-at-the-bound", see = "biases#kerple", about = Gradient, points = 1,
    formula = "dr(r₁ = −1) = dr(r₁ = 0.01)")]
pub(super) fn kerple_gradient_at_the_bound(biases: &Biases, _: &Run) -> Verdict {
    let dy = [1.0f32, -0.5, 0.75, 0.25, -1.0];
    let [least, largest] = [LEAST, LARGEST].map(|bound| bound as f32);
    for kernel in KERNELS {
        for (given, bound) in [
            (one_head(kernel, -1.0, 1.0, 5), one_head(kernel, least, 1.0, 5)),
            (one_head(kernel, 1.0, -1.0, 5), one_head(kernel, 1.0, least, 5)),
            (one_head(Kernel::Power, 1.0, 3.0, 5), one_head(Kernel::Power, 1.0, largest, 5)),
        ] {
            let [got, expected] =
                [kerple_backward(biases, &given, &dy)?, kerple_backward(biases, &bound, &dy)?];
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
                .map_err(|violation| violation.on(&given))?;
            }
        }
    }
    Ok(None)
}

/// On any input, the gradients of r₁ and r₂ are what plain f64 loops give.
#[law("biases/kerple-gradient-any", see = "biases#kerple", about = Gradient, points = 2,
    formula = "dr₁ = −Σ dy ln(1 + r₂j),  dr₂ = −Σ dy r₁j / (1 + r₂j);  or P = exp(r₂ ln j):  −Σ dy P,  −Σ dy r₁ P ln j",
    stays = NET)]
pub(super) fn kerple_gradient_any(biases: &Biases, run: &Run) -> Verdict {
    judge_graded_cases(biases, run, "kerple_backward")
}

#[cfg(test)]
mod tests {
    use super::super::t5::rising;
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
}
