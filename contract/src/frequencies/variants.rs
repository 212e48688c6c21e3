//! Correct variants of stretched RoPE.

use crate::component::Variant;
use crate::frequencies::interface::*;
use std::f32::consts::TAU as TAU32;
use std::f64::consts::TAU;

/// The variants.
pub static VARIANTS: &[Variant<dyn StretchedRope>] = &[
    Variant {
        id: "frequencies/plain-f32",
        about: "f32 throughout: powers, ramps, angles, sums from the left",
        implementation: || Box::new(InF32 { backward: false }),
    },
    Variant {
        id: "frequencies/f32-from-right",
        about: "f32 throughout, and sums from the last head to the first",
        implementation: || Box::new(InF32 { backward: true }),
    },
    Variant {
        id: "frequencies/exponential",
        about: "frequencies as exp of a multiple of ln base, with two lists and a mask, as transformers has them",
        implementation: || Box::new(InF64 { power: by_exp, masked: true, gradient: from_y }),
    },
    Variant {
        id: "frequencies/recurrence",
        about: "each frequency from the one before, by one product",
        implementation: || Box::new(InF64 { power: by_products, masked: false, gradient: from_y }),
    },
    Variant {
        id: "frequencies/reciprocals",
        about: "1 over a power, and by a product with 1/s",
        implementation: || {
            Box::new(InF64 { power: by_reciprocal, masked: false, gradient: from_y })
        },
    },
    Variant {
        id: "frequencies/gradient-from-dx",
        about: "the gradient of a frequency from x and dx, both turned back: that changes no area",
        implementation: || Box::new(InF64 { power: by_exp, masked: false, gradient: from_dx }),
    },
];

fn by_exp(i: usize, d: usize, base: f64) -> f64 {
    (-(2.0 * i as f64 / d as f64) * base.ln()).exp()
}

fn by_products(i: usize, d: usize, base: f64) -> f64 {
    let quotient = base.powf(-2.0 / d as f64);
    (0..i).fold(1.0, |theta, _| theta * quotient)
}

fn by_reciprocal(i: usize, d: usize, base: f64) -> f64 {
    1.0 / base.powf((2 * i) as f64 / d as f64)
}

type Gradient = fn(x: [f64; 2], y: [f64; 2], dy: [f64; 2], dx: [f64; 2]) -> f64;

fn from_y(_: [f64; 2], y: [f64; 2], dy: [f64; 2], _: [f64; 2]) -> f64 {
    y[0] * dy[1] - y[1] * dy[0]
}

fn from_dx(x: [f64; 2], _: [f64; 2], _: [f64; 2], dx: [f64; 2]) -> f64 {
    x[0] * dx[1] - x[1] * dx[0]
}

/// Powers in `f64`; turns by tables in `f32`.
struct InF64 {
    power: fn(usize, usize, f64) -> f64,
    /// Two lists and a mask, or one product.
    masked: bool,
    gradient: Gradient,
}

impl InF64 {
    fn theta(&self, d: usize, base: f64) -> Vec<f64> {
        (0..d / 2).map(|i| (self.power)(i, d, base)).collect()
    }

    /// Planes of which the shares `kept` stay.
    fn mixed(&self, theta: &[f64], s: f64, kept: impl Fn(usize) -> f64) -> Vec<f64> {
        let slow: Vec<f64> = theta.iter().map(|theta| theta * (1.0 / s)).collect();
        let mix = |i: usize| match self.masked {
            true => slow[i] * (1.0 - kept(i)) + theta[i] * kept(i),
            false => theta[i] * ((1.0 + (s - 1.0) * kept(i)) / s),
        };
        (0..theta.len()).map(mix).collect()
    }
}

impl StretchedRope for InF64 {
    fn frequencies(&self, case: &FrequenciesCase) -> Reply<Frequencies> {
        let FrequenciesCase { ref rule, rotary_dim: d, base, offset, seq_len, .. } = *case;
        let (theta, power) = (self.theta(d, base), d as f64 / (d as f64 - 2.0));
        let mut scale = 1.0;
        let frequencies = match *rule {
            Stretch::Plain => theta,
            Stretch::Interpolated { factor } => self.mixed(&theta, factor, |_| 0.0),
            Stretch::Ntk { factor } => self.theta(d, base * factor.powf(power)),
            Stretch::DynamicNtk { factor, max_seq_len } => {
                // 1 + f (L − ms)/ms, which is 1 up to ms.
                let past = (offset + seq_len).saturating_sub(max_seq_len) as f64;
                let ratio = 1.0 + factor * past / max_seq_len as f64;
                self.theta(d, base * (power * ratio.ln()).exp())
            }
            Stretch::Yarn { factor, max_seq_len, beta_fast, beta_slow, truncate } => {
                scale = factor.log10() / 10.0 * std::f64::consts::LN_10 + 1.0;
                // The plane with this frequency: i = −d/2 · log_base(theta).
                let plane = |turns: f64| {
                    -(d as f64) / 2.0 * (turns * TAU / max_seq_len as f64).ln() / base.ln()
                };
                let (mut low, mut high) = (plane(beta_fast), plane(beta_slow));
                if truncate {
                    (low, high) = (low.floor(), high.ceil());
                }
                let (low, high) = (low.max(0.0), high.min(d as f64 - 1.0));
                self.mixed(&theta, factor, |i| ((high - i as f64) / (high - low)).clamp(0.0, 1.0))
            }
            Stretch::Llama3 { factor, max_seq_len, low_freq_factor, high_freq_factor } => {
                let ms = max_seq_len as f64;
                let kept = |i: usize| {
                    let wave = TAU / theta[i];
                    if wave < ms / high_freq_factor {
                        1.0
                    } else if wave > ms / low_freq_factor {
                        0.0
                    } else {
                        (ms / wave - low_freq_factor) / (high_freq_factor - low_freq_factor)
                    }
                };
                self.mixed(&theta, factor, kept)
            }
            Stretch::LongRope { factor, max_seq_len, ref short_factor, ref long_factor } => {
                let ms = max_seq_len as f64;
                scale = ((ms * factor).ln() / ms.ln()).sqrt();
                let long = offset + seq_len > max_seq_len;
                let list = if long { long_factor } else { short_factor };
                theta.iter().zip(list).map(|(theta, by)| 1.0 / (by * (1.0 / theta))).collect()
            }
        };
        Ok(Frequencies { frequencies, scale })
    }

    fn forward_in(&self, _: Manner, case: &StretchedRopeCase) -> Reply<Vec<f32>> {
        let mut y = case.x.clone();
        walk(case, |_, [a, b], [cos, sin]| {
            let (x, z) = (case.x[a], case.x[b]);
            (y[a], y[b]) = (x * cos - z * sin, z * cos + x * sin);
        });
        Ok(y)
    }

    fn backward_in(
        &self,
        _: Manner,
        case: &StretchedRopeCase,
        dy: &[f32],
    ) -> Reply<StretchedRopeGrads> {
        let (mut dx, y) = (dy.to_vec(), self.forward(case)?);
        let mut dtheta = vec![0.0f64; case.frequencies.len()];
        walk(case, |(i, position), pair, [cos, sin]| {
            let [a, b] = pair;
            (dx[a], dx[b]) = (dy[a] * cos + dy[b] * sin, dy[b] * cos - dy[a] * sin);
            let wide = |values: &[f32]| pair.map(|j| f64::from(values[j]));
            let slope = (self.gradient)(wide(&case.x), wide(&y), wide(dy), wide(&dx));
            dtheta[i] += position as f64 * slope;
        });
        Ok(StretchedRopeGrads { dx, dtheta: dtheta.into_iter().map(|x| x as f32).collect() })
    }
}

/// Each plane of each head: its number and position, its two elements, and the scaled cosine and sine of its angle.
fn walk(case: &StretchedRopeCase, mut at: impl FnMut((usize, usize), [usize; 2], [f32; 2])) {
    let ([_, s, nh, hd], planes) = (case.shape, case.frequencies.len());
    for head in 0..case.x.len() / hd {
        let position = case.offset + head / nh % s;
        for (i, theta) in case.frequencies.iter().enumerate() {
            let (sin, cos) = (position as f64 * theta).sin_cos();
            let turns = [cos, sin].map(|value| (value * case.scale) as f32);
            at((i, position), [head * hd + i, head * hd + i + planes], turns);
        }
    }
}

/// Everything in `f32`.
struct InF32 {
    backward: bool,
}

impl InF32 {
    fn theta(d: usize, base: f32) -> Vec<f32> {
        (0..d / 2).map(|i| 1.0 / base.powf(2.0 * i as f32 / d as f32)).collect()
    }
}

impl StretchedRope for InF32 {
    fn frequencies(&self, case: &FrequenciesCase) -> Reply<Frequencies> {
        let FrequenciesCase { ref rule, rotary_dim: d, base, offset, seq_len, .. } = *case;
        let (base, length) = (base as f32, (offset + seq_len) as f32);
        let theta = Self::theta(d, base);
        let ntk = |s: f32| Self::theta(d, base * s.powf(d as f32 / (d as f32 - 2.0)));
        let mix = |s: f32, kept: &dyn Fn(usize, f32) -> f32| -> Vec<f32> {
            let mix = |(i, &theta): (usize, &f32)| {
                (1.0 - kept(i, theta)) * theta / s + kept(i, theta) * theta
            };
            theta.iter().enumerate().map(mix).collect()
        };
        let mut scale = 1.0f32;
        let frequencies = match *rule {
            Stretch::Plain => theta,
            Stretch::Interpolated { factor } => {
                theta.iter().map(|theta| theta / factor as f32).collect()
            }
            Stretch::Ntk { factor } => ntk(factor as f32),
            Stretch::DynamicNtk { factor, max_seq_len } => {
                let (f, ms) = (factor as f32, max_seq_len as f32);
                ntk(if length > ms { f * length / ms - (f - 1.0) } else { 1.0 })
            }
            Stretch::Yarn { factor, max_seq_len, beta_fast, beta_slow, truncate } => {
                let (s, ms) = (factor as f32, max_seq_len as f32);
                scale = 0.1 * s.ln() + 1.0;
                let plane =
                    |turns: f64| d as f32 * (ms / (turns as f32 * TAU32)).ln() / (2.0 * base.ln());
                let ends = [plane(beta_fast), plane(beta_slow)];
                let [low, high] = if truncate { [ends[0].floor(), ends[1].ceil()] } else { ends };
                let (low, high) = (low.max(0.0), high.min(d as f32 - 1.0));
                mix(s, &|i, _| 1.0 - ((i as f32 - low) / (high - low)).clamp(0.0, 1.0))
            }
            Stretch::Llama3 { factor, max_seq_len, low_freq_factor, high_freq_factor } => {
                let [low, high] = [low_freq_factor, high_freq_factor].map(|limit| limit as f32);
                let kept = |_, theta| (max_seq_len as f32 * theta / TAU32 - low) / (high - low);
                mix(factor as f32, &|i, theta| kept(i, theta).clamp(0.0, 1.0))
            }
            Stretch::LongRope { factor, max_seq_len, ref short_factor, ref long_factor } => {
                scale = (1.0 + (factor as f32).ln() / (max_seq_len as f32).ln()).sqrt();
                let list = if offset + seq_len > max_seq_len { long_factor } else { short_factor };
                theta.iter().zip(list).map(|(theta, by)| theta / *by as f32).collect()
            }
        };
        let frequencies = frequencies.into_iter().map(f64::from).collect();
        Ok(Frequencies { frequencies, scale: f64::from(scale) })
    }

    fn forward_in(&self, _: Manner, case: &StretchedRopeCase) -> Reply<Vec<f32>> {
        let ([_, s, nh, hd], planes) = (case.shape, case.frequencies.len());
        let mut y = case.x.clone();
        for (head, y) in y.chunks_mut(hd).enumerate() {
            let position = (case.offset + head / nh % s) as f32;
            let (first, second) = y.split_at_mut(planes);
            for (i, (a, b)) in first.iter_mut().zip(second).enumerate() {
                let angle = position * case.frequencies[i] as f32;
                let scale = case.scale as f32;
                let (cos, sin) = (angle.cos() * scale, angle.sin() * scale);
                (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
            }
        }
        Ok(y)
    }

    fn backward_in(
        &self,
        _: Manner,
        case: &StretchedRopeCase,
        dy: &[f32],
    ) -> Reply<StretchedRopeGrads> {
        let ([_, s, nh, hd], planes) = (case.shape, case.frequencies.len());
        // Turning back is turning by the negative frequencies.
        let frequencies = case.frequencies.iter().map(|theta| -theta).collect();
        let back = StretchedRopeCase { frequencies, x: dy.to_vec(), ..case.clone() };
        let (dx, y) = (self.forward(&back)?, self.forward(case)?);
        let mut dtheta = vec![0.0f32; planes];
        let mut heads: Vec<usize> = (0..dy.len() / hd).collect();
        if self.backward {
            heads.reverse();
        }
        for head in heads {
            let position = (case.offset + head / nh % s) as f32;
            for (i, slope) in dtheta.iter_mut().enumerate() {
                let (a, b) = (head * hd + i, head * hd + i + planes);
                *slope += position * (dy[b] * y[a] - dy[a] * y[b]);
            }
        }
        Ok(StretchedRopeGrads { dx, dtheta })
    }
}
