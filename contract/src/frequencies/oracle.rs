//! Stretched RoPE: each plane turns by `position * theta_i`, where a rule has slowed `theta_i`.

use crate::frequencies::interface::*;
use crate::oracle::{Loops, Oracle};
use std::f64::consts::TAU;
use std::rc::Rc;

/// Any loops as a trait object. What goes over many steps is written for these, below the trait, so that it is compiled
/// once and not once a bug.
pub trait AsStretchedRopeLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn StretchedRopeLoops;
}

impl<L: StretchedRopeLoops> AsStretchedRopeLoops for L {
    fn as_loops(&self) -> &dyn StretchedRopeLoops {
        self
    }
}

/// The steps. A bug writes one of them wrong. `d` is the part of a head that turns, `ms` the trained length, `k` the factor.
pub trait StretchedRopeLoops: AsStretchedRopeLoops {
    // --- what all rules have ------------------------------------------------------------------

    /// The length of the text that ends with this call.
    fn length(&self, offset: usize, seq_len: usize) -> usize {
        offset + seq_len
    }

    /// What the exponents are counted in.
    fn width(&self, rotary_dim: usize, _head_dim: usize) -> usize {
        rotary_dim
    }

    /// `theta_i` of plain RoPE, in radians per position.
    fn theta(&self, i: usize, d: f64, base: f64) -> f64 {
        base.powf(-2.0 * i as f64 / d)
    }

    /// A plane of which the share `kept` stays as it is, and the rest is interpolated.
    fn mix(&self, theta: f64, k: f64, kept: f64) -> f64 {
        theta * kept + theta / k * (1.0 - kept)
    }

    // --- position interpolation, NTK, dynamic NTK ---------------------------------------------

    /// Plane `i` after interpolation.
    fn interpolated(&self, i: usize, d: f64, base: f64, k: f64) -> f64 {
        self.theta(i, d, base) / k
    }

    /// The power of the factor that multiplies the base.
    fn ntk_power(&self, d: f64) -> f64 {
        d / (d - 2.0)
    }

    /// Plane `i` after NTK.
    fn ntk(&self, i: usize, d: f64, base: f64, k: f64) -> f64 {
        self.theta(i, d, base * k.powf(self.ntk_power(d)))
    }

    /// The factor of NTK in a text of this length.
    fn dynamic_ratio(&self, f: f64, ms: f64, length: f64) -> f64 {
        if length > ms { f * length / ms - (f - 1.0) } else { 1.0 }
    }

    // --- YaRN ---------------------------------------------------------------------------------

    /// The length over which turns are counted.
    fn yarn_length(&self, ms: f64, _s: f64) -> f64 {
        ms
    }

    /// The plane, not whole, that turns so often over `ms`.
    fn yarn_plane(&self, turns: f64, d: f64, base: f64, ms: f64) -> f64 {
        d * (ms / (turns * TAU)).ln() / (2.0 * base.ln())
    }

    /// Where the ramp begins and ends, by how often the planes there turn.
    fn yarn_ends(&self, [fast, slow]: [f64; 2], d: f64, base: f64, ms: f64) -> [f64; 2] {
        [self.yarn_plane(fast, d, base, ms), self.yarn_plane(slow, d, base, ms)]
    }

    /// The ends of the ramp as whole planes.
    fn yarn_rounded(&self, [first, last]: [f64; 2], truncate: bool) -> [f64; 2] {
        if truncate { [first.floor(), last.ceil()] } else { [first, last] }
    }

    /// The ends of the ramp within the head.
    fn yarn_within(&self, [first, last]: [f64; 2], d: f64) -> [f64; 2] {
        [first.max(0.0), last.min(d - 1.0)]
    }

    /// The share of plane `i` that stays: 1 before the ramp, 0 after it.
    fn yarn_kept(&self, i: f64, [first, last]: [f64; 2], _turns: f64) -> f64 {
        1.0 - ((i - first) / (last - first)).clamp(0.0, 1.0)
    }

    /// The scale of queries and keys.
    fn yarn_scale(&self, k: f64) -> f64 {
        0.1 * k.ln() + 1.0
    }

    // --- Llama 3 ------------------------------------------------------------------------------

    /// The length over which turns are counted.
    fn llama3_length(&self, ms: f64, _s: f64) -> f64 {
        ms
    }

    /// How often a plane turns over `ms`.
    fn llama3_turns(&self, theta: f64, ms: f64) -> f64 {
        ms * theta / TAU
    }

    /// The share of a plane that stays: 0 below `low` turns, 1 above `high`.
    fn llama3_kept(&self, turns: f64, low: f64, high: f64) -> f64 {
        ((turns - low) / (high - low)).clamp(0.0, 1.0)
    }

    /// A plane after Llama 3's rule.
    fn llama3(&self, theta: f64, k: f64, ms: f64, [low, high]: [f64; 2]) -> f64 {
        let turns = self.llama3_turns(theta, self.llama3_length(ms, k));
        self.mix(theta, k, self.llama3_kept(turns, low, high))
    }

    // --- LongRoPE -----------------------------------------------------------------------------

    /// Whether a text of this length takes the long list.
    fn is_long(&self, length: usize, ms: usize) -> bool {
        length > ms
    }

    /// A plane and its own divisor.
    fn divided(&self, theta: f64, divisor: f64, _s: f64) -> f64 {
        theta / divisor
    }

    /// The scale of queries and keys.
    fn long_scale(&self, k: f64, ms: f64, _is_long: bool) -> f64 {
        (1.0 + k.ln() / ms.ln()).sqrt()
    }

    /// All frequencies, and the scale.
    fn frequencies(&self, case: &FrequenciesCase) -> Frequencies {
        frequencies(self.as_loops(), case)
    }

    // --- the rotation -------------------------------------------------------------------------

    /// The two elements of plane `i` where `planes` of a head of `hd` turn.
    fn pair(&self, i: usize, planes: usize, _hd: usize) -> [usize; 2] {
        [i, i + planes]
    }

    /// The position of row `t`.
    fn position(&self, offset: usize, t: usize) -> f64 {
        (offset + t) as f64
    }

    /// The scale of the values that the cosine and the sine make.
    fn scales(&self, scale: f64) -> [f64; 2] {
        [scale, scale]
    }

    /// The scale of what does not turn.
    fn scale_behind(&self, _scale: f64) -> f64 {
        1.0
    }

    /// What the slope of a plane is multiplied by: it has the scale already, since `y` has it.
    fn scale_of_theta(&self, _scale: f64) -> f64 {
        1.0
    }

    /// A pair turned by an angle. The cosine and the sine are scaled.
    fn turn(&self, [a, b]: [f64; 2], [cos, sin]: [f64; 2]) -> [f64; 2] {
        [a * cos - b * sin, b * cos + a * sin]
    }

    /// The gradient of a pair: its transpose.
    fn turn_back(&self, [a, b]: [f64; 2], [cos, sin]: [f64; 2]) -> [f64; 2] {
        [a * cos + b * sin, b * cos - a * sin]
    }

    /// The scales on the way back.
    fn scales_back(&self, scale: f64) -> [f64; 2] {
        self.scales(scale)
    }

    /// The slope of the loss with respect to the angle, from the turned pair.
    fn dangle(&self, _x: [f64; 2], y: [f64; 2], dy: [f64; 2]) -> f64 {
        dy[1] * y[0] - dy[0] * y[1]
    }

    /// What the angle's slope is multiplied by for that of the frequency.
    fn angle_per_theta(&self, offset: usize, t: usize) -> f64 {
        self.position(offset, t)
    }

    /// What batch row `b` and head `n` count for in the gradient of a frequency.
    fn counts(&self, [_b, _t, _n]: [usize; 3], _shape: [usize; 4]) -> f64 {
        1.0
    }

    /// `y`, `[b, s, nh, hd]`.
    fn forward(&self, case: &StretchedRopeCase) -> Vec<f64> {
        forward(self.as_loops(), case)
    }

    /// `dx`, `[b, s, nh, hd]`, and `dtheta`, `[d / 2]`.
    fn backward(&self, case: &StretchedRopeCase, dy: &[f32]) -> (Vec<f64>, Vec<f64>) {
        backward(self.as_loops(), case, dy)
    }
}

impl StretchedRopeLoops for Oracle {}

// --- what goes over many steps ----------------------------------------------------------------

#[inline(never)]
fn frequencies(loops: &dyn StretchedRopeLoops, case: &FrequenciesCase) -> Frequencies {
    let FrequenciesCase { ref rule, head_dim, rotary_dim, base, offset, seq_len } = *case;
    let d = loops.width(rotary_dim, head_dim) as f64;
    let length = loops.length(offset, seq_len);
    let theta = |i| loops.theta(i, d, base);
    let mut scale = 1.0;
    let of_plane: Box<dyn Fn(usize) -> f64 + '_> = match *rule {
        Stretch::Plain => Box::new(theta),
        Stretch::Interpolated { factor } => {
            Box::new(move |i| loops.interpolated(i, d, base, factor))
        }
        Stretch::Ntk { factor } => Box::new(move |i| loops.ntk(i, d, base, factor)),
        Stretch::DynamicNtk { factor, max_seq_len } => {
            let ratio = loops.dynamic_ratio(factor, max_seq_len as f64, length as f64);
            Box::new(move |i| loops.ntk(i, d, base, ratio))
        }
        Stretch::Yarn { factor, max_seq_len, beta_fast, beta_slow, truncate } => {
            scale = loops.yarn_scale(factor);
            let ms = loops.yarn_length(max_seq_len as f64, factor);
            let ends = loops.yarn_ends([beta_fast, beta_slow], d, base, ms);
            let ends = loops.yarn_within(loops.yarn_rounded(ends, truncate), d);
            Box::new(move |i| {
                let turns = ms * theta(i) / TAU;
                loops.mix(theta(i), factor, loops.yarn_kept(i as f64, ends, turns))
            })
        }
        Stretch::Llama3 { factor, max_seq_len, low_freq_factor, high_freq_factor } => {
            let band = [low_freq_factor, high_freq_factor];
            Box::new(move |i| loops.llama3(theta(i), factor, max_seq_len as f64, band))
        }
        Stretch::LongRope { factor, max_seq_len, ref short_factor, ref long_factor } => {
            let is_long = loops.is_long(length, max_seq_len);
            scale = loops.long_scale(factor, max_seq_len as f64, is_long);
            let divisors = if is_long { long_factor } else { short_factor };
            Box::new(move |i| loops.divided(theta(i), divisors[i], factor))
        }
    };
    Frequencies { frequencies: (0..rotary_dim / 2).map(of_plane).collect(), scale }
}

/// Where each head of a case begins, with its batch row, row and number.
fn heads([b, s, nh, hd]: [usize; 4]) -> impl Iterator<Item = (usize, [usize; 3])> {
    (0..b * s * nh).map(move |head| (head * hd, [head / nh / s, head / nh % s, head % nh]))
}

/// The cosine and the sine of an angle, scaled.
fn cos_sin(angle: f64, scales: [f64; 2]) -> [f64; 2] {
    let (sin, cos) = angle.sin_cos();
    [cos * scales[0], sin * scales[1]]
}

#[inline(never)]
fn forward(loops: &dyn StretchedRopeLoops, case: &StretchedRopeCase) -> Vec<f64> {
    let (planes, hd) = (case.frequencies.len(), case.shape[3]);
    let behind = loops.scale_behind(case.scale);
    let mut y: Vec<f64> = case.x.iter().map(|x| f64::from(*x) * behind).collect();
    for (first, [_, t, _]) in heads(case.shape) {
        for (i, &theta) in case.frequencies.iter().enumerate() {
            let pair = loops.pair(i, planes, hd).map(|j| first + j);
            let position = loops.position(case.offset, t);
            let turns = cos_sin(position * theta, loops.scales(case.scale));
            let turned = loops.turn(pair.map(|j| f64::from(case.x[j])), turns);
            (y[pair[0]], y[pair[1]]) = (turned[0], turned[1]);
        }
    }
    y
}

#[inline(never)]
fn backward(
    loops: &dyn StretchedRopeLoops,
    case: &StretchedRopeCase,
    dy: &[f32],
) -> (Vec<f64>, Vec<f64>) {
    let (planes, hd) = (case.frequencies.len(), case.shape[3]);
    let behind = loops.scale_behind(case.scale);
    let mut dx: Vec<f64> = dy.iter().map(|dy| f64::from(*dy) * behind).collect();
    let mut dtheta = vec![0.0; planes];
    for (first, place) in heads(case.shape) {
        for (i, &theta) in case.frequencies.iter().enumerate() {
            let pair = loops.pair(i, planes, hd).map(|j| first + j);
            let position = loops.position(case.offset, place[1]);
            let back = pair.map(|j| f64::from(dy[j]));
            let turns = cos_sin(position * theta, loops.scales_back(case.scale));
            let turned = loops.turn_back(back, turns);
            (dx[pair[0]], dx[pair[1]]) = (turned[0], turned[1]);

            let x = pair.map(|j| f64::from(case.x[j]));
            let turns = cos_sin(position * theta, loops.scales(case.scale));
            let slope = loops.dangle(x, loops.turn(x, turns), back);
            let per_theta = loops.angle_per_theta(case.offset, place[1]);
            let scaled = slope * loops.scale_of_theta(case.scale);
            dtheta[i] += loops.counts(place, case.shape) * per_theta * scaled;
        }
    }
    (dx, dtheta)
}

/// The implementation of some loops.
pub fn implementation(loops: impl StretchedRopeLoops + 'static) -> Box<dyn StretchedRope> {
    Box::new(Loops::<dyn StretchedRopeLoops>(Rc::new(loops)))
}

fn narrow(values: Vec<f64>) -> Vec<f32> {
    values.into_iter().map(|value| value as f32).collect()
}

impl StretchedRope for Loops<dyn StretchedRopeLoops> {
    fn frequencies(&self, case: &FrequenciesCase) -> Reply<Frequencies> {
        Ok(self.0.frequencies(case))
    }

    fn forward_in(&self, _: Manner, case: &StretchedRopeCase) -> Reply<Vec<f32>> {
        Ok(narrow(self.0.forward(case)))
    }

    fn backward_in(
        &self,
        _: Manner,
        case: &StretchedRopeCase,
        dy: &[f32],
    ) -> Reply<StretchedRopeGrads> {
        let (dx, dtheta) = self.0.backward(case, dy);
        Ok(StretchedRopeGrads { dx: narrow(dx), dtheta: narrow(dtheta) })
    }
}
