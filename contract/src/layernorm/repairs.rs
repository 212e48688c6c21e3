//! Repairs of a LayerNorm.

use crate::layernorm::interface::*;
use crate::layernorm::oracle::{LayerNormLoops, Passes};
use crate::oracle::Oracle;
use crate::repair::{Repair, line, number, same};

type Norm = dyn LayerNorm;

/// They are tried in this order.
pub static REPAIRS: &[Repair<Norm>] = &[
    Repair { call: "forward", explain: mean_and_deviation },
    Repair { call: "forward", explain: scale_and_shift },
];

fn case() -> LayerNormCase {
    let x = vec![3.0, -0.5, 2.0, 0.25, 4.0, -1.0, -0.125, 1.5, 0.75, -2.0, 0.5, 5.0];
    let (gamma, beta) =
        (vec![0.1, -7.0, 2.5, 0.6, 30.0, -1.5], vec![0.5, -2.0, 10.0, 1.0, -0.25, 3.0]);
    LayerNormCase { shape: [1, 2, 6], eps: 0.5, gamma, beta, x }
}

/// What was subtracted from each row, and what it was divided by.
fn mean_and_deviation(norm: &Norm) -> Option<String> {
    let (case, y) = answered(norm)?;
    for row in 0..2 {
        let x = &case.x[row * 6..][..6];
        let xhat: Vec<f32> =
            (0..6).map(|j| (y[row * 6 + j] - case.beta[j]) / case.gamma[j]).collect();
        let right: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        let mean = Oracle.mean(&right);
        let std = Oracle.std(Oracle.variance(&right, mean), case.eps);
        let (a, b) = line(&xhat, x)?;
        let (got_mean, got_std) = (-a / b, 1.0 / b);
        let of = |name: &str, right: f64, got: f64| {
            let (right, got) = (number(right), number(got));
            (right != got).then(|| format!("{name} of {x:?} is {right}, but {got} was used"))
        };
        let close = |right: f64, got: f64| (right - got).abs() <= 1e-4 * std;
        let mean = (!close(mean, got_mean)).then(|| of("the mean", mean, got_mean)).flatten();
        let std = (!close(std, got_std)).then(|| of("√(variance + eps)", std, got_std)).flatten();
        match (mean, std) {
            (None, None) => {}
            (Some(one), None) | (None, Some(one)) => return Some(one),
            (Some(mean), Some(std)) => return Some(format!("{mean}, and {std}")),
        }
    }
    None
}

/// What each element was scaled by, and what was added.
fn scale_and_shift(norm: &Norm) -> Option<String> {
    let (case, y) = answered(norm)?;
    let Passes { xhat, .. } = Oracle.passes(&case, &[0.0; 12]);
    // Two rows give the two numbers of an element, so nothing is left to confirm them. Most elements do.
    let mut wrong = Vec::new();
    for j in 0..6 {
        let [got, other] = [j, j + 6].map(|i| f64::from(y[i]));
        let scale = (got - other) / (xhat[j] - xhat[j + 6]);
        let shift = got - scale * xhat[j];
        let (gamma, beta) = (f64::from(case.gamma[j]), f64::from(case.beta[j]));
        if !(same(scale, gamma) && (shift - beta).abs() <= 1e-4 * gamma.abs().max(beta.abs())) {
            wrong.push((j, scale, shift));
        }
    }
    let [(j, scale, shift)] = wrong[..] else { return None };
    let (scale, shift) = (number(scale), number(shift));
    Some(format!("only gamma and beta of element {j} were taken as {scale} and {shift}"))
}

fn answered(norm: &Norm) -> Option<(LayerNormCase, Vec<f32>)> {
    let y = norm.forward(&case()).ok().filter(|y| y.len() == 12)?;
    Some((case(), y))
}
