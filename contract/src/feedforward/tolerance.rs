//! How far a network in `f32` may be off, step by step. Each step is off by what its inputs bring and by its own
//! roundings, in any order of its sums.

use crate::feedforward::interface::SwiGluCase;
use crate::feedforward::oracle::Passes;
use crate::laws::{U, widen};

/// What each value of a call may be off.
pub struct Off {
    /// `[b, s, h]`.
    pub y: Vec<f64>,
    /// `[b, s, h]`.
    pub dx: Vec<f64>,
    /// `[f, h]`.
    pub dgate: Vec<f64>,
    /// `[f, h]`.
    pub dup: Vec<f64>,
    /// `[h, f]`.
    pub ddown: Vec<f64>,
}

/// In words.
pub const SIZE_WHY: &str = "the roundings of each step, in the size of its terms: n·2⁻²⁴ of Σ|terms| for a sum of n \
                            products, 6·2⁻²⁴ for the sigmoid, and what all of them bring to the next";

/// Beyond this the sigmoid is 0 or 1 in `f32`, however it is computed.
const FLAT: f64 = 100.0;

/// Some number, and how far it may be off.
type Near = (f64, f64);

/// What a product of such numbers may be off, before its own roundings.
fn product(factors: &[Near]) -> f64 {
    let largest: f64 = factors.iter().map(|(value, off)| value.abs() + off).product();
    let size: f64 = factors.iter().map(|(value, _)| value.abs()).product();
    largest - size
}

/// Σ of products of weights and such numbers, with one rounding for each of its terms.
fn sum(terms: &mut dyn ExactSizeIterator<Item = (f64, Near)>) -> f64 {
    let n = terms.len() as f64;
    terms.map(|(weight, (value, off))| weight.abs() * (off + n * U * (value.abs() + off))).sum()
}

/// `silu(a)`. Its slope is below 1.1. The sigmoid is off by 2 roundings of 1 (as `(1 + tanh(a/2)) / 2` is) and by
/// its own 4: exp has 2, a sum and a quotient have 1 each. The product with `a` has one more.
fn silu((a, off): Near) -> Near {
    let open = 1.0 / (1.0 + (-a).exp());
    let value = a * open;
    (value, 1.1 * off + U * (a.abs().min(FLAT) * (2.0 + 4.0 * open) + value.abs()))
}

/// The slope of silu, `open (1 + a (1 - open))`. Its own slope is at most ½. `open` and `1 - open` are off by 7
/// roundings of 1 at most; they meet `a`, and each other, in 4 operations.
fn slope((a, off): Near) -> Near {
    let open = 1.0 / (1.0 + (-a).exp());
    let value = open * (1.0 + a * (1.0 - open));
    (value, 0.5 * off + U * (16.0 * a.abs().min(FLAT) + 10.0))
}

/// All of them. `passes` is what the loops give. Without a `dy`, those of `y` alone.
pub fn off(case: &SwiGluCase, dy: &[f32], passes: &Passes) -> Off {
    let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
    let [gate, up, down] = [&case.gate, &case.up, &case.down].map(|weights| widen(weights));
    let tokens = (case.x.len() / h) as f64;
    let (mut y, mut dx) = (Vec::new(), Vec::new());
    // Terms of the sums over the tokens: their sizes, and what they bring.
    let zero = || vec![(0.0, 0.0); f * h];
    let [mut dgate, mut dup, mut ddown] = [zero(), zero(), zero()];
    for (t, x) in case.x.chunks(h).enumerate() {
        let x = widen(x);
        let row =
            |weights: &[f64], k: usize| sum(&mut (0..h).map(|j| (weights[k * h + j], (x[j], 0.0))));
        let branches: Vec<[Near; 2]> = (0..f)
            .map(|k| [(passes.a[t * f + k], row(&gate, k)), (passes.b[t * f + k], row(&up, k))])
            .collect();
        let z = |(k, [a, b]): (usize, &[Near; 2])| {
            let z = passes.z[t * f + k];
            (z, product(&[silu(*a), *b]) + U * z.abs())
        };
        let z: Vec<Near> = branches.iter().enumerate().map(z).collect();
        y.extend((0..h).map(|j| sum(&mut (0..f).map(|k| (down[j * f + k], z[k])))));

        let Some(dy) = dy.chunks(h).nth(t) else { continue };
        let dy = widen(dy);
        let back = |(k, [a, b]): (usize, &[Near; 2])| {
            let at = t * f + k;
            let dz = sum(&mut (0..h).map(|j| (down[j * f + k], (dy[j], 0.0))));
            let (dz, da, db) = ((passes.dz[at], dz), passes.da[at], passes.db[at]);
            [
                (da, product(&[dz, *b, slope(*a)]) + 3.0 * U * da.abs()),
                (db, product(&[dz, silu(*a)]) + U * db.abs()),
            ]
        };
        let back: Vec<[Near; 2]> = branches.iter().enumerate().map(back).collect();
        for j in 0..h {
            let term = |nth: usize| match (nth / 2, nth % 2) {
                (k, 0) => (gate[k * h + j], back[k][0]),
                (k, _) => (up[k * h + j], back[k][1]),
            };
            dx.push(sum(&mut (0..2 * f).map(term)));
            for (k, [da, db]) in back.iter().enumerate() {
                let add = |to: &mut Near, weight: f64, (value, off): Near| {
                    to.0 += weight.abs() * (value.abs() + off);
                    to.1 += weight.abs() * off;
                };
                add(&mut dgate[k * h + j], x[j], *da);
                add(&mut dup[k * h + j], x[j], *db);
                add(&mut ddown[j * f + k], dy[j], z[k]);
            }
        }
    }
    let over_tokens = |sums: Vec<Near>| {
        sums.into_iter().map(|(size, brought)| brought + tokens * U * size).collect()
    };
    let [dgate, dup, ddown] = [dgate, dup, ddown].map(over_tokens);
    Off { y, dx, dgate, dup, ddown }
}
