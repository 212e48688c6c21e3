//! How far an answer in `f32` may be off: each step with what its inputs bring, in roundings of `u = 2⁻²⁴`.

use crate::attention::interface::{AttendCase, AttendSizes};
use crate::attention::oracle::{AttentionLoops, Passes};
use crate::laws::U;
use crate::oracle::Oracle;

/// A weight that is smaller than the smallest normal `f32` may become 0.
const TINY: f64 = f32::MIN_POSITIVE as f64;

pub const WHY: &str = "scores: (hd + 4)·2⁻²⁴ of Σ|q·k|/√hd, twice in a weight; its exponential, and sums over t that may \
                       be rescaled at each key: (8·|score| + 9t + 17)·2⁻²⁴ of Σ weight·|v|";

pub const BACK_WHY: &str = "how far the weights may be off, times the sizes of the terms that they meet, and one rounding for \
                            each addition over keys, queries and the heads of a group";

/// The tolerances of `y`, `dq`, `dk` and `dv`, in their shapes. `weights` stays empty.
///
/// A score adds `hd` products and is divided by a root: `hd + 4` roundings of its terms. A weight is
/// `exp(score - m) / sum`. What a score is off is in the exponent, so it is the relative error of the
/// exponential, and of the sum. Beside it: the difference to `m`, or to the logarithm of the sum, with the largest
/// score in it (4 times the score's size, in two places), exponential and quotient (17 in all), and the sum over
/// `t` terms, which an online softmax rescales at every key (8 roundings each).
pub fn tolerances(case: &AttendCase, dy: &[f32]) -> Passes {
    tolerances_by(case, dy, &Oracle.passes(case, &[]).weights)
}

/// The same, where the weights are known, `[b, nh, s, t]`.
pub fn tolerances_by(case: &AttendCase, dy: &[f32], weights: &[f64]) -> Passes {
    let sizes = case.sizes;
    let AttendSizes { batch, queries: s, keys: t, num_heads: nh, num_kv_heads: nkv, head_dim: hd } =
        sizes;
    let group = nh / nkv;
    let root = (hd as f64).sqrt();
    let (n, additions) = (t as f64, (s * group) as f64);
    let abs = |x: &[f32], at: usize| f64::from(x[at].abs());
    let mut out = Passes {
        y: vec![0.0; case.q.len()],
        dq: vec![0.0; dy.len()],
        dk: vec![0.0; case.k.len()],
        dv: vec![0.0; case.v.len()],
        ..Passes::default()
    };
    for at in 0..batch * nh * s {
        let (row, head, i) = (at / s / nh, at / s % nh, at % s);
        let at_q = ((row * s + i) * nh + head) * hd;
        let at_k = |j: usize| ((row * t + j) * nkv + head / group) * hd;
        let products = |x: &[f32], y: &[f32], j: usize| -> f64 {
            (0..hd).map(|d| abs(x, at_q + d) * abs(y, at_k(j) + d)).sum()
        };
        let seen = t - s + i + 1;
        let weight = &weights[at * t..][..t];
        let scores = (0..seen).map(|j| products(&case.q, &case.k, j) / root).fold(0.0, f64::max);
        let off = 2.0 * (hd as f64 + 4.0) * U * scores + (8.0 * scores + 8.0 * n + 16.0) * U;
        for d in 0..hd {
            let found: f64 = (0..seen).map(|j| weight[j] * abs(&case.v, at_k(j) + d)).sum();
            let lost: f64 = (0..t).map(|j| TINY * abs(&case.v, at_k(j) + d)).sum();
            out.y[at_q + d] = (off + (n + 1.0) * U) * found + lost;
        }
        if dy.is_empty() {
            continue;
        }
        // The gradient of a weight, its mean over the row, and what both may be off.
        let dweights: Vec<f64> = (0..seen).map(|j| products(dy, &case.v, j)).collect();
        let along: f64 = dweights.iter().zip(weight).map(|(d, w)| w * d).sum();
        let sums = (hd as f64 + n + 2.0) * U;
        for j in 0..seen {
            let (weight, terms) = (weight[j] + TINY, dweights[j] + along);
            let dscore = weight * terms;
            let dscore_off =
                weight * ((off + 4.0 * U) * terms + (off + sums) * terms) + TINY * terms;
            for d in 0..hd {
                let (q, k) = (abs(&case.q, at_q + d), abs(&case.k, at_k(j) + d));
                out.dq[at_q + d] += (dscore_off + (n + 4.0) * U * dscore) * k / root;
                out.dk[at_k(j) + d] += (dscore_off + (additions + 4.0) * U * dscore) * q / root;
                out.dv[at_k(j) + d] +=
                    weight * abs(dy, at_q + d) * (off + (additions + 2.0) * U) + TINY;
            }
        }
    }
    out
}

/// The tolerance of a softmax's own gradient, from any `y` and `dy`: `n` products and their sum, a difference, a
/// product.
pub fn softmax_tolerance(n: usize, y: &[f32], dy: &[f32]) -> Vec<f64> {
    let rows = y.chunks(n).zip(dy.chunks(n));
    let row = |(y, dy): (&[f32], &[f32])| -> Vec<f64> {
        let terms = || y.iter().zip(dy).map(|(y, dy)| (f64::from(*y), f64::from(*dy)));
        let along: f64 = terms().map(|(y, dy)| (y * dy).abs()).sum();
        let at = |(y, dy): (f64, f64)| {
            y.abs() * ((n as f64 + 1.0) * U * along + 4.0 * U * (dy.abs() + along)) + TINY
        };
        terms().map(at).collect()
    };
    rows.flat_map(row).collect()
}

pub const SOFTMAX_WHY: &str =
    "(n + 1)·2⁻²⁴ of Σ|y·dy| for the sum, and four roundings of |dy| + Σ|y·dy|, all times |y|";
