//! How far right answers in `f32` may be off. Each step is off by what its inputs bring and by its own roundings, in any
//! order of its sums.

use super::interface::*;
use super::oracle::{BiasLoops, of_distances, softmax};
use crate::laws::{U, widen};
use crate::oracle::Oracle;

/// Slopes, in words.
pub const SLOPE_WHY: &str =
    "a power of a base that was rounded to f32: (t + 4)·2⁻²⁴ of the slope with exponent t";

/// Weights, in words.
pub const WEIGHT_WHY: &str = "the roundings of each score, and of the softmax: a weight is off by as much, relatively, as \
                              its score and the mean score are off";

/// KERPLE, in words.
pub const KERPLE_WHY: &str =
    "roundings of r·j, of 1 + r₂j, of a logarithm or a power, and of the product with r₁";

/// Sums, in words.
pub const SUM_WHY: &str =
    "one rounding of 2⁻²⁴ for each term, in any order, and what each term is off";

/// How far a slope may be off. `base^t` with a base that was rounded is off by `t` roundings; `pow` adds 3 at most, and
/// the result is rounded once more.
pub fn slope(nth: usize, num_heads: usize, slope: f64) -> f64 {
    let power = 1 << num_heads.ilog2();
    let exponent = if nth <= power { nth } else { 2 * (nth - power) - 1 };
    (exponent as f64 + 4.0) * U * slope
}

/// How far weights may be off whose scores are off by `off`, `[.., t]` each. Minus infinity is exact.
///
/// A weight is `exp(x - max) / sum`. Relatively it is off by what `x` is off, and by the mean of what all of the row are off,
/// weighted; `x - max` is rounded; the exponential has 2 roundings, the sum `t`, the quotient 1, the result 1 and what is left
/// is of second order. Weights below the smallest normal number may become 0.
pub fn weights(scores: &[f64], off: &[f64], t: usize) -> Vec<f64> {
    let weights = softmax(scores, t);
    let mut tolerance = Vec::with_capacity(weights.len());
    for ((scores, off), weights) in scores.chunks(t).zip(off.chunks(t)).zip(weights.chunks(t)) {
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let seen = |n: &usize| scores[*n] != f64::NEG_INFINITY;
        let each = |n: usize| off[n] + U * (scores[n] - largest).abs();
        let mean: f64 = (0..t).filter(seen).map(|n| weights[n] * each(n)).sum();
        let of_key = |n: usize| match seen(&n) {
            true => {
                let relative = each(n) + mean + (t as f64 + 6.0) * U;
                weights[n] * relative.exp_m1() + f64::from(f32::MIN_POSITIVE)
            }
            false => 0.0,
        };
        tolerance.extend((0..t).map(of_key));
    }
    tolerance
}

/// How far the weights with ALiBi may be off. The bias may be written as `slope n`, which differs by the same number in each row:
/// so it is as large as `slope m`, and not only `slope j`.
pub fn alibi(case: &AlibiCase, scores: &[f64]) -> Vec<f64> {
    let [s, t, nh, hd] = case.shape;
    let slopes = Oracle.slopes(nh);
    let off = |at: usize| {
        let (head, i, n) = (at / (s * t), at / t % s, at % t);
        if scores[at] == f64::NEG_INFINITY {
            return 0.0;
        }
        let term = |d: usize| {
            let (q, k) = (case.q[(i * nh + head) * hd + d], case.k[(n * nh + head) * hd + d]);
            f64::from(q * k).abs()
        };
        let product: f64 = (0..hd).map(term).sum::<f64>() / (hd as f64).sqrt();
        let bias = slopes[head] * (t - s + i) as f64;
        let of_slope = slope(head + 1, nh, bias);
        // The product has hd terms and is divided by a rounded root; the bias is one product; their sum is rounded.
        of_slope + U * ((hd as f64 + 4.0) * product + bias + (product + bias))
    };
    let off: Vec<f64> = (0..scores.len()).map(off).collect();
    weights(scores, &off, t)
}

/// How far the weights of Transformer-XL may be off, whose sinusoids may have angles in `f32`.
pub fn transformer_xl(case: &XlCase, scores: &[f64]) -> Vec<f64> {
    let ([b, s, nh, hd], t, h) = (case.shape, case.keys, case.hidden_size);
    let distances = of_distances(&Oracle, case);
    // A frequency is a power of the base: its exponent is rounded, which counts ln base times, and 3 roundings come
    // after it; the angle is a product; sine and cosine have 2 roundings.
    let sinusoid_off = |j: usize, c: usize| {
        let angle = j as f64 * case.base.powf(-((c / 2 * 2) as f64) / h as f64);
        U * (angle * (case.base.ln() + 5.0) + 2.0)
    };
    // What W_r R_j is off: each term by its sinusoid, and h + 1 roundings.
    let of_distance = |j: usize| -> Vec<f64> {
        let inner = |row: &[f32]| {
            let term = |(c, w): (usize, &f32)| {
                let sinusoid = Oracle.sinusoid(j as f64, c, h, case.base).abs();
                f64::from(w.abs()) * (sinusoid_off(j, c) + (h as f64 + 1.0) * U * sinusoid)
            };
            row.iter().enumerate().map(term).sum::<f64>()
        };
        case.weight.chunks(h).map(inner).collect()
    };
    let distances_off: Vec<Vec<f64>> = (0..t).map(of_distance).collect();
    let [q, k, u, v] = [&case.q, &case.k, &case.u, &case.v].map(|values| widen(values));
    let mut off = Vec::with_capacity(scores.len());
    for (at, score) in scores.iter().enumerate() {
        if *score == f64::NEG_INFINITY {
            off.push(0.0);
            continue;
        }
        let (text, head, i, n) = (at / (nh * s * t) % b, at / (s * t) % nh, at / t % s, at % t);
        let j = t - s + i - n;
        // Sums q + u and q + v may be formed or not; their sizes are those of both parts.
        let term = |d: usize| {
            let of_head = head * hd + d;
            let q = q[((text * s + i) * nh + head) * hd + d].abs();
            let k = k[((text * t + n) * nh + head) * hd + d].abs();
            let (to_key, to_place) = (q + u[of_head].abs(), q + v[of_head].abs());
            let r = distances[j][of_head].abs();
            to_place * distances_off[j][of_head]
                + (2.0 * hd as f64 + 6.0) * U * (to_key * k + to_place * r)
        };
        off.push((0..hd).map(term).sum::<f64>() / (hd as f64).sqrt());
    }
    weights(scores, &off, t)
}

/// What `ln(1 + r2 j)` or `j^r2` may be off. The bound 0.01 may be rounded to `f32` too.
///
/// `r2 j` and `1 + r2 j` are off by 3 roundings relatively, so the logarithm by 3 absolutely, and its own 2. A power
/// may be `exp(r2 ln j)`: its argument is off by 4 roundings, and it adds 3.
fn fallen(kernel: Kernel, r2: f64, j: f64) -> f64 {
    let value = Oracle.fallen(kernel, r2, j);
    match kernel {
        _ if j == 0.0 => 0.0,
        Kernel::Logarithmic => U * (3.0 + 2.0 * value),
        Kernel::Power => U * value * (3.0 + 4.0 * r2 * j.ln()),
    }
}

/// `r1` and `r2` of each head, as they count.
fn kept(case: &KerpleCase) -> impl Iterator<Item = [f64; 2]> + '_ {
    let pairs = case.r1.iter().zip(&case.r2);
    pairs.map(|(&r1, &r2)| {
        [Oracle.kept_r1(f64::from(r1)), Oracle.kept_r2(case.kernel, f64::from(r2))]
    })
}

/// How far KERPLE's bias may be off, `[nh, t]`: `r1` may be a rounded bound, and the product is rounded.
pub fn kerple(case: &KerpleCase) -> Vec<f64> {
    let row = |[r1, r2]: [f64; 2]| {
        let off = move |j: usize| {
            let (value, off) =
                (Oracle.fallen(case.kernel, r2, j as f64), fallen(case.kernel, r2, j as f64));
            r1 * (off + 3.0 * U * value)
        };
        (0..case.positions).map(off).collect::<Vec<_>>()
    };
    kept(case).flat_map(row).collect()
}

/// How far its gradients may be off, `[nh]` each.
pub fn kerple_backward(case: &KerpleCase, dy: &[f32]) -> [Vec<f64>; 2] {
    let t = case.positions as f64;
    let (mut of_r1, mut of_r2) = (Vec::new(), Vec::new());
    for (kept, dy) in kept(case).zip(dy.chunks(case.positions)) {
        let (mut first, mut second) = (0.0, 0.0);
        for (j, dy) in dy.iter().enumerate() {
            let (j, dy) = (j as f64, f64::from(dy.abs()));
            let slopes = [
                Oracle.slope_of_r1(case.kernel, kept, j).abs(),
                Oracle.slope_of_r2(case.kernel, kept, j).abs(),
            ];
            first += dy * (fallen(case.kernel, kept[1], j) + (t + 1.0) * U * slopes[0]);
            // r1 j / (1 + r2 j) has 6 roundings. r1 j^r2 ln j has 5 beside those of the power.
            let of_power = match case.kernel {
                Kernel::Power if j > 0.0 => 3.0 + 4.0 * kept[1] * j.ln(),
                _ => 1.0,
            };
            second += dy * U * slopes[1] * (t + 1.0 + 5.0 + of_power);
        }
        of_r1.push(first);
        of_r2.push(second);
    }
    [of_r1, of_r2]
}

/// How far the gradient of T5's table may be off: a rounding for each term.
pub fn t5_backward(case: &T5Case, dy: &[f32]) -> Vec<f64> {
    let sizes: Vec<f32> = dy.iter().map(|dy| dy.abs()).collect();
    let ones = vec![1.0; dy.len()];
    let (sums, counts) = (Oracle.t5_backward(case, &sizes), Oracle.t5_backward(case, &ones));
    sums.iter().zip(counts).map(|(sum, count)| count * U * sum).collect()
}

/// Whether the bucket of a distance does not hang on the last digits of a logarithm in `f32`, which is `nth` roundings of 2⁻²⁴
/// and more off. The published sizes are asked everywhere: there, PyTorch's `f32` and whole numbers agree.
pub fn is_decided(case: &BucketCase) -> bool {
    let count = Oracle.buckets_of_direction(case);
    let (exact, distance) = (Oracle.exact(count), Oracle.bucket_distance(case));
    if distance <= exact
        || distance >= case.max_distance
        || (case.num_buckets, case.max_distance) == (32, 128)
    {
        return true;
    }
    let nth = Oracle.nth(distance, exact, count, case.max_distance);
    // Both logarithms, the quotient and the product are rounded; a logarithm of a number near 1 is off by more of itself.
    let largest = (case.max_distance as f64 / exact as f64).ln();
    (nth - nth.round()).abs() > 8.0 * U * (nth + (count - exact) as f64 / largest)
}
