//! The third step: each group of a token's vector is divided by its root mean square.

use super::*;
use crate::finding::Claim;
use quadrivium::{GroupRmsNorm, GroupRmsNormConfig};

/// The norm of the tour: 4 groups of 32.
pub type Norm = GroupRmsNorm<HIDDEN, GROUP, f32, Cpu>;

/// Rounding of one normalized value, relative: `(gz/2 + 4) u`.
///
/// A square and its place in a sum of `gz` positive terms cost at most `gz` roundings; the mean
/// and `+ eps` cost 2; the root halves these and adds 1; the division adds 1 and gamma 1.
/// Together `(gz + 2)/2 + 3 = gz/2 + 4`. Without gamma it is `gz/2 + 3`.
pub const NORM_BOUND: f64 = (GROUP as f64 / 2.0 + 4.0) * U;

/// Rounding of `x . dx` over a group, relative to `sum |xhat p|` with `p = gamma dy`:
/// `(3 gz + 18) u`.
///
/// `dx_j = (p_j - xhat_j a)/rms` with `a = mean(p xhat)`. In units of `u`: `xhat` is off by
/// `gz/2 + 3`, `p` by 1, so `a` by `gz/2 + 5` for its terms and `gz` for their mean. The term
/// `xhat_j a` is off by `(gz/2 + 3) + (3 gz/2 + 5) + 1`. The difference adds 1, the division
/// `gz/2 + 3`. Therefore `p_j` carries `gz/2 + 5` and `xhat_j a` carries `5 gz/2 + 13`. Times
/// `x_j / rms = xhat_j` and summed, the first part is at most `sum |xhat p|`, and so is the
/// second, because `sum xhat^2 <= gz`. Together `3 gz + 18`.
pub const GRADIENT_BOUND: f64 = (3.0 * GROUP as f64 + 18.0) * U;

/// What the norm gives, and what the figure shows.
#[derive(Debug, Clone)]
pub struct Normed {
    /// `[1, s, h]`, multiplied by gamma.
    pub y: Hidden,
    /// Root mean square of each group before, `[s, g]`.
    pub before: Vec<f64>,
    /// Root mean square of each group after, without gamma, `[s, g]`.
    pub after: Vec<f64>,
}

const RMS: Claim = Claim {
    component: "norm",
    invariant: "rms-one-per-group",
    words: "Every group leaves with root mean square 1, up to eps. How much eps takes away is \
            known exactly.",
    formula: "mean(xhat^2) = q/(q + eps), q = mean(x^2); bound 2 (gz/2 + 4) u",
};
const BOUNDED: Claim = Claim {
    component: "norm",
    invariant: "bounded-by-sqrt-gz",
    words: "No value can be larger than the root of the group size, however large the input: one \
            value alone can't exceed the whole sum of squares.",
    formula: "max |xhat| <= sqrt(gz) (1 + (gz/2 + 4) u)",
};
const ORACLE: Claim = Claim {
    component: "norm",
    invariant: "matches-f64-loop",
    words: "The result is that of the plain loop in f64, up to the rounding of f32.",
    formula: "|y - loop(x)| <= (gz/2 + 4) u |loop(x)|",
};
const INDEPENDENT: Claim = Claim {
    component: "norm",
    invariant: "groups-independent",
    words: "A group does not see the others: with NaN in the first group of every token, the \
            other groups keep their bits.",
    formula: "Y_g depends on X_g only",
};
const SCALE: Claim = Claim {
    component: "norm",
    invariant: "scale-invariance",
    words: "Twice the input with four times the eps gives the same bits. Powers of two are exact \
            in floating point, so no bound is needed.",
    formula: "N(2x; 4 eps) = N(x; eps), bit for bit",
};
const GRADIENT: Claim = Claim {
    component: "norm",
    invariant: "gradient-identity",
    words: "A longer x gives almost the same y, so the gradient has almost no part along x. What \
            is left is due to eps, and is known exactly.",
    formula: "x . dx = (xhat . gamma dy) eps/(q + eps), q = mean(x^2); bound (3 gz + 18) u",
};

/// Normalizes `x`.
///
/// # Errors
/// What a component or the device reports.
pub fn run(dev: &Cpu, x: &Hidden) -> Result<Step<Normed>> {
    let (mut forward, mut checks) = (Duration::ZERO, Duration::ZERO);
    let norm = Norm::new(dev, GroupRmsNormConfig::default())?;
    let y = timed(&mut forward, || norm.try_forward(x.clone()))?;
    let (findings, before, after) = timed(&mut checks, || check(dev, &norm, x, &y))?;
    Ok(Step { output: Normed { y, before, after }, findings, forward, checks })
}

fn check(
    dev: &Cpu,
    norm: &Norm,
    x: &Hidden,
    y: &Hidden,
) -> Result<(Vec<Finding>, Vec<f64>, Vec<f64>)> {
    let eps = norm.config().eps;
    let mut plain = norm.clone();
    plain.weight = dev.try_ones().map_err(Error::device)?;
    let xhat = plain.try_forward(x.clone())?.as_vec(); // [1, s, h]
    let values = x.as_vec(); // [1, s, h]

    let mean_square = |group: &[f32]| dot(group, group) / GROUP as f64;
    let ms: Vec<f64> = values.chunks_exact(GROUP).map(mean_square).collect(); // [s, g]
    let ms_after: Vec<f64> = xhat.chunks_exact(GROUP).map(mean_square).collect(); // [s, g]
    let rms_error = worst(ms.iter().zip(&ms_after).map(|(ms, after)| {
        let expected = ms / (ms + eps);
        (after / expected - 1.0).abs()
    }));

    let largest = worst(xhat.iter().map(|&x| f64::from(x).abs()));
    let sqrt_gz = (GROUP as f64).sqrt();

    let loop_y = f64_loop(&values, &norm.weight.as_vec(), eps);
    let loop_error = worst(y.as_vec().iter().zip(&loop_y).map(|(&y, &expected)| {
        // Where gamma is 0 both are 0; then 0/0 must not count as an error.
        if f64::from(y) == expected { 0.0 } else { (f64::from(y) / expected - 1.0).abs() }
    }));

    let others = values.len() / GROUPS * (GROUPS - 1);
    Ok((
        vec![
            RMS.measured(rms_error, 2.0 * NORM_BOUND, "relative"),
            BOUNDED.measured(largest, sqrt_gz * (1.0 + NORM_BOUND), "largest value"),
            ORACLE.measured(loop_error, NORM_BOUND, "relative"),
            INDEPENDENT.exceptions(changed_by_nan(dev, norm, &values, y)?, others, "values"),
            SCALE.exceptions(changed_by_scale(dev, norm, x, y)?, values.len(), "values"),
            GRADIENT.measured(gradient_error(dev, norm, x, &ms)?, GRADIENT_BOUND, "relative"),
        ],
        ms.iter().map(|ms| ms.sqrt()).collect(),
        ms_after.iter().map(|ms| ms.sqrt()).collect(),
    ))
}

/// The definition, as a loop: `x / sqrt(mean(x^2) + eps) * gamma`.
fn f64_loop(x: &[f32], gamma: &[f32], eps: f64) -> Vec<f64> {
    let mut y = Vec::with_capacity(x.len());
    for token in x.chunks_exact(HIDDEN) {
        for (group, gamma) in token.chunks_exact(GROUP).zip(gamma.chunks_exact(GROUP)) {
            let mut sum = 0.0;
            for &x in group {
                sum += f64::from(x) * f64::from(x);
            }
            let rms = (sum / GROUP as f64 + eps).sqrt();
            for (&x, &gamma) in group.iter().zip(gamma) {
                y.push(f64::from(x) / rms * f64::from(gamma));
            }
        }
    }
    y
}

/// How many values outside the first group change when the first group is NaN.
fn changed_by_nan(dev: &Cpu, norm: &Norm, x: &[f32], y: &Hidden) -> Result<usize> {
    let mut x = x.to_vec();
    for token in x.chunks_exact_mut(HIDDEN) {
        token[..GROUP].fill(f32::NAN);
    }
    let other = norm.try_forward(hidden_tensor(dev, x)?)?.as_vec();
    let y = y.as_vec();
    Ok((other.chunks_exact(HIDDEN).zip(y.chunks_exact(HIDDEN)))
        .map(|(other, y)| different_bits(&other[GROUP..], &y[GROUP..]))
        .sum())
}

/// How many values change when the input is doubled and eps is multiplied by four.
fn changed_by_scale(dev: &Cpu, norm: &Norm, x: &Hidden, y: &Hidden) -> Result<usize> {
    let config = GroupRmsNormConfig { eps: 4.0 * norm.config().eps, ..*norm.config() };
    let doubled = x.clone().try_mul(2.0).map_err(Error::device)?;
    let other = Norm::new(dev, config)?.try_forward(doubled)?;
    Ok(different_bits(&other.as_vec(), &y.as_vec()))
}

/// The largest `|x . dx - (xhat . gamma dy) eps/(ms + eps)| / sum |xhat gamma dy|`.
fn gradient_error(dev: &Cpu, norm: &Norm, x: &Hidden, ms: &[f64]) -> Result<f64> {
    let eps = norm.config().eps;
    let dy = gradient_from_above(dev, x.shape().1)?;
    let y = norm.try_forward(Trace::<f32, Cpu>::leaky_trace(x))?;
    let dx = backward(y, dy.clone())?.get(x).as_vec(); // [1, s, h]
    let (x, dy, gamma) = (x.as_vec(), dy.as_vec(), norm.weight.as_vec());
    Ok(worst(ms.iter().enumerate().map(|(group, ms)| {
        let at = group * GROUP..(group + 1) * GROUP;
        let gamma = &gamma[group % GROUPS * GROUP..][..GROUP];
        let rms = (ms + eps).sqrt();
        let along: Vec<f64> = (x[at.clone()].iter().zip(&dy[at.clone()]).zip(gamma))
            .map(|((&x, &dy), &gamma)| f64::from(x) / rms * f64::from(gamma) * f64::from(dy))
            .collect(); // xhat gamma dy
        let expected = along.iter().sum::<f64>() * eps / (ms + eps);
        let scale: f64 = along.iter().map(|a| a.abs()).sum();
        (dot(&x[at.clone()], &dx[at]) - expected).abs() / scale
    })))
}
