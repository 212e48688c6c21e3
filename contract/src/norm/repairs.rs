//! Repairs of a GroupRMSNorm.

use crate::norm::interface::*;
use crate::norm::oracle::{NormLoops, Passes};
use crate::oracle::{Oracle, random};
use crate::repair::{Repair, line, number, one_value, same};

type Norm = dyn GroupRmsNorm;

/// They are tried in this order.
pub static REPAIRS: &[Repair<Norm>] = &[
    Repair { call: "initial_gamma", explain: range },
    Repair { call: "forward", explain: rms },
    Repair { call: "forward", explain: scale },
    Repair { call: "backward (dx)", explain: along },
];

fn case() -> NormCase {
    let x = vec![3.0, -0.5, 2.0, 0.25, 4.0, -1.0, -0.125, 1.5, 0.75, -2.0, 0.5, 5.0];
    let gamma = vec![0.1, -7.0, 2.5, 0.6, 30.0, -1.5];
    NormCase { shape: [1, 2, 6], group_size: 3, eps: 0.5, gamma, x }
}

fn range(norm: &Norm) -> Option<String> {
    let gamma = norm.initial_gamma(6, (0.5, 1.5), 42).ok()?;
    let (low, width) = line(&gamma, &random::uniform(6, (0.0, 1.0), 42))?;
    let right = same(low, 0.5) && same(width, 1.0);
    let (low, high) = (number(low), number(low + width));
    (!right).then(|| format!("the range [0.5, 1.5) was taken as [{low}, {high})"))
}

/// What each group was divided by.
fn rms(norm: &Norm) -> Option<String> {
    let (case, y) = answered(norm)?;
    let right = Oracle.passes(&case, &[0.0; 12]).xhat;
    let value = |i: usize| f64::from(case.x[i]) * f64::from(case.gamma[i % 6]) / f64::from(y[i]);
    let mut first = None;
    for group in 0..4 {
        let (from, to) = (group * 3, group * 3 + 3);
        let got = one_value((from..to).map(value))?;
        let right = f64::from(case.x[from]) / right[from];
        if !same(got, right) {
            first.get_or_insert((from, to, got, right));
        }
    }
    let (from, to, got, right) = first?;
    let (got, right) = (number(got), number(right));
    Some(format!(
        "the rms of {:?} with eps {} is {right}, but {got} was used",
        &case.x[from..to],
        case.eps
    ))
}

/// What each element was scaled by.
fn scale(norm: &Norm) -> Option<String> {
    let (case, y) = answered(norm)?;
    let Passes { xhat, .. } = Oracle.passes(&case, &[0.0; 12]);
    let mut first = None;
    for j in 0..6 {
        let got = one_value([j, j + 6].map(|i| f64::from(y[i]) / xhat[i]))?;
        if !same(got, case.gamma[j].into()) {
            first.get_or_insert((j, got));
        }
    }
    let (j, got) = first?;
    let (gamma, got) = (&case.gamma, number(got));
    Some(format!("element {j} of gamma {gamma:?} was taken as {got}"))
}

/// What was subtracted along x̂.
fn along(norm: &Norm) -> Option<String> {
    let case = case();
    let dy: Vec<f32> = (0..12).map(|i| 1.0 - 0.25 * i as f32).collect();
    let dx = norm.backward(&case, &dy).ok().filter(|grads| grads.dx.len() == 12)?.dx;
    let Passes { xhat, dx: right, .. } = Oracle.passes(&case, &dy);
    let mean = |i: usize, dx: f64| {
        let rms = f64::from(case.x[i]) / xhat[i];
        (f64::from(case.gamma[i % 6]) * f64::from(dy[i]) - dx * rms) / xhat[i]
    };
    let mut first = None;
    for group in 0..4 {
        let members = group * 3..group * 3 + 3;
        let got = one_value(members.clone().map(|i| mean(i, dx[i].into())))?;
        let right = mean(members.start, right[members.start]);
        if !same(got, right) {
            first.get_or_insert((group, got, right));
        }
    }
    let (group, got, right) = first?;
    let (got, right) = (number(got), number(right));
    Some(format!("mean(γ·dy·x̂) of group {group} is {right}, but {got} was used"))
}

fn answered(norm: &Norm) -> Option<(NormCase, Vec<f32>)> {
    let y = norm.forward(&case()).ok().filter(|y| y.len() == 12)?;
    Some((case(), y))
}
