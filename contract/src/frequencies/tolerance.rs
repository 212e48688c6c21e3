//! How far answers in `f32` may be off, step by step. An implementation may compute in `f64`, as the library does, or in `f32`
//! throughout, as a plain program does.

use crate::frequencies::interface::*;
use crate::frequencies::oracle::StretchedRopeLoops;
use crate::laws::U;
use crate::oracle::Oracle;

/// In words.
pub const FREQUENCY_WHY: &str = "(6 + 3·ln(1/θ))·2⁻²⁴ of the value, for a power in f32 whose base and exponent are rounded, and \
                                 what the roundings of a ramp or a ratio bring on top";

/// In words.
pub const SCALE_WHY: &str = "4·2⁻²⁴ of the value: a logarithm, a quotient, a sum, a root";

/// In words.
pub const TURN_WHY: &str = "(2·mθ + 6)·2⁻²⁴ of the scaled pair at position m: an angle in f32, its cosine and sine, two products \
                            and a sum";

/// In words.
pub const THETA_WHY: &str = "of n terms, (2·mθ + 10 + n)·2⁻²⁴ of each one's size: a turned pair, two products, the position, and a \
                             sum in any order";

/// The relative error of a power `base^-e` in `f32`: `e` has two roundings, which count `ln(1/theta)` times; the base after
/// NTK has been through a power itself, whose exponent is rounded, which counts `ln k` times, and that is not more;
/// the power, the product and a reciprocal have six together.
fn of_power(theta: f64) -> f64 {
    (6.0 + 3.0 * (1.0 / theta).ln().abs()) * U
}

/// How far an end of YaRN's ramp may be off. The quotient whose logarithm is taken has two roundings, and so the
/// logarithm is off by two of 1 and by its own; it is then multiplied and divided three times.
fn of_end(turns: f64, d: f64, base: f64, ms: f64) -> f64 {
    let planes = d / (2.0 * base.ln());
    let log = (ms / (turns * std::f64::consts::TAU)).ln().abs();
    planes * (2.0 + 4.0 * log) * U
}

/// How far each frequency may be off, and the scale. `right` is what the oracle says.
pub fn of_frequencies(case: &FrequenciesCase, right: &Frequencies) -> (Vec<f64>, f64) {
    let FrequenciesCase { rule, rotary_dim, base, .. } = case;
    let (d, base) = (*rotary_dim as f64, *base);
    let theta = |i: usize| Oracle.theta(i, d, base);
    let plane = |(i, &slowed): (usize, &f64)| {
        let relative = match *rule {
            Stretch::Plain | Stretch::Ntk { .. } => of_power(slowed),
            Stretch::Interpolated { .. } | Stretch::LongRope { .. } => of_power(theta(i)) + 2.0 * U,
            // f·L/ms − (f − 1) is off by 3 roundings of its first term, which is at most f times the ratio, and by its own.
            Stretch::DynamicNtk { factor, .. } => of_power(slowed) + (3.0 * factor + 1.0) * U,
            Stretch::Yarn { factor, max_seq_len, beta_fast, beta_slow, truncate } => {
                let ms = max_seq_len as f64;
                let ends = Oracle.yarn_ends([beta_fast, beta_slow], d, base, ms);
                let [first, last] = Oracle.yarn_within(Oracle.yarn_rounded(ends, truncate), d);
                let off = [beta_fast, beta_slow].map(|turns| of_end(turns, d, base, ms));
                let off = if truncate { 0.0 } else { off[0] + off[1] };
                let kept = 2.0 * off / (last - first) + 3.0 * U;
                of_power(theta(i)) + 4.0 * U + mixed(theta(i), factor, kept) / slowed
            }
            Stretch::Llama3 { factor, max_seq_len, low_freq_factor, high_freq_factor } => {
                let turns = Oracle.llama3_turns(theta(i), max_seq_len as f64);
                // Far from the ramp nothing comes of it.
                let on_ramp = (0.99 * low_freq_factor..1.01 * high_freq_factor).contains(&turns);
                let off = (of_power(theta(i)) + 4.0 * U) * turns;
                let kept = if on_ramp { off / (high_freq_factor - low_freq_factor) } else { 0.0 };
                of_power(theta(i)) + 4.0 * U + mixed(theta(i), factor, kept + 3.0 * U) / slowed
            }
        };
        relative * slowed
    };
    let planes = right.frequencies.iter().enumerate().map(plane).collect();
    (planes, 4.0 * U * right.scale)
}

/// What a share that is off by `kept` does to a mixture of `theta` and `theta / factor`.
fn mixed(theta: f64, factor: f64, kept: f64) -> f64 {
    (theta - theta / factor) * kept
}

/// How far each turned value may be off: of `y` for x, of `dx` for dy.
pub fn of_turn(case: &StretchedRopeCase, values: &[f32]) -> Vec<f64> {
    let (planes, [_, s, nh, hd]) = (case.frequencies.len(), case.shape);
    let off = |j: usize| {
        let (row, in_head) = (j / hd / nh % s, j % hd);
        if in_head >= 2 * planes {
            return 0.0; // it stays, bit for bit
        }
        let partner = j - in_head + (in_head + planes) % (2 * planes);
        let size = f64::from(values[j].abs()) + f64::from(values[partner].abs());
        let angle = (case.offset + row) as f64 * case.frequencies[in_head % planes].abs();
        (2.0 * angle + 6.0) * U * case.scale * size
    };
    (0..values.len()).map(off).collect()
}

/// How far the gradient of each frequency may be off.
pub fn of_dtheta(case: &StretchedRopeCase, dy: &[f32]) -> Vec<f64> {
    let (planes, [b, s, nh, hd]) = (case.frequencies.len(), case.shape);
    let n = (b * s * nh) as f64;
    let size = |values: &[f32], at: usize| {
        f64::from(values[at].abs()) + f64::from(values[at + planes].abs())
    };
    let off = |i: usize| {
        let head = |head: usize| {
            let position = (case.offset + head / nh % s) as f64;
            let angle = position * case.frequencies[i].abs();
            let at = head * hd + i;
            let sizes = case.scale * size(&case.x, at) * size(dy, at);
            position * sizes * (2.0 * angle + 10.0 + n) * U
        };
        (0..b * s * nh).map(head).sum()
    };
    (0..planes).map(off).collect()
}
