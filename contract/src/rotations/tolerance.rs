//! How far a rotation in `f32` may be off, step by step. Each step is off by what its inputs bring and by its own
//! roundings, in any order of its sums.

use crate::laws::U;
use crate::rotations::interface::*;
use crate::rotations::oracle::section;

/// A number, the sum of the sizes of the terms that it is made of, and how far it may be off.
#[derive(Debug, Clone, Copy, Default)]
pub struct Near {
    /// Itself.
    pub value: f64,
    size: f64,
    /// How far it may be off.
    pub off: f64,
}

/// In words, for what is turned.
pub const TURNED_WHY: &str = "the roundings of each step, 2⁻²⁴ each, in the size of its terms: cosine, sine and scale \
                              rounded once from f64, two products, a sum";

/// In words, for linear attention.
pub const LINEAR_WHY: &str = "the roundings of each step, 2⁻²⁴ each, in the size of its terms: n for a sum of n \
                              products, 3 of 1 for elu + 1 below 0, and what all of them bring to the next";

impl Near {
    fn exact(value: f64) -> Self {
        Self { value, size: value.abs(), off: 0.0 }
    }

    fn rounded(value: f64, off: f64) -> Self {
        Self { value, size: value.abs(), off }
    }

    /// The product, rounded once.
    fn times(self, other: Self) -> Self {
        let size = self.size * other.size;
        let brought = self.size * other.off + other.size * self.off + self.off * other.off;
        Self { value: self.value * other.value, size, off: brought + U * size }
    }

    /// The quotient, rounded once. What is divided by is above 0.
    fn over(self, other: Self) -> Self {
        let least = other.value - other.off;
        let (value, size) = (self.value / other.value, self.size / other.value);
        Self { value, size, off: (self.off + size * other.off) / least + U * size }
    }

    fn negative(self) -> Self {
        Self { value: -self.value, ..self }
    }

    /// The sum of `n` terms has `n - 1` roundings, each of the size of all terms at most.
    fn sum(terms: impl Iterator<Item = Self>) -> Self {
        let (mut sum, mut n) = (Self::default(), 0);
        for term in terms {
            sum.value += term.value;
            sum.size += term.size;
            sum.off += term.off;
            n += 1;
        }
        sum.off += f64::from((n - 1).max(0)) * U * sum.size;
        sum
    }

    /// What a product of exact sums would be off, without its own rounding: for scores that a check computes.
    pub fn product_off(a: &[Self], b: &[Self]) -> f64 {
        let off =
            |(a, b): (&Self, &Self)| a.value.abs() * b.off + b.value.abs() * a.off + a.off * b.off;
        a.iter().zip(b).map(off).sum()
    }
}

/// Cosine and sine, computed in `f64` and rounded once. The angle itself is off by 4 roundings of `f64`.
fn cos_sin(angle: f64) -> [Near; 2] {
    let of_angle = 2f64.powi(-51) * (1.0 + angle.abs());
    let (sin, cos) = angle.sin_cos();
    [cos, sin].map(|value| Near::rounded(value, U * value.abs() + of_angle))
}

/// A head turned, half-split: plane `i` by the angle of `i`.
fn turned(head: &[Near], angle: &dyn Fn(usize) -> f64) -> Vec<Near> {
    let half = head.len() / 2;
    let mut y = vec![Near::default(); head.len()];
    for i in 0..half {
        let ([cos, sin], [a, b]) = (cos_sin(angle(i)), [head[i], head[i + half]]);
        y[i] = Near::sum([a.times(cos), b.times(sin).negative()].into_iter());
        y[i + half] = Near::sum([b.times(cos), a.times(sin)].into_iter());
    }
    y
}

fn theta(i: usize, planes: usize, base: f64) -> f64 {
    base.powf(-(i as f64) / planes as f64)
}

fn exact(values: &[f32]) -> Vec<Near> {
    values.iter().map(|&value| Near::exact(f64::from(value))).collect()
}

/// Queries and keys of xPos.
///
/// The scale is off by 2 roundings, by the exponent `e` times that of zeta, and by `e |ln zeta|` times its own, where
/// `|ln zeta| <= ln 3.5 < 1.26`: for a power in `f32`.
pub fn xpos(case: &XPosCase) -> [Vec<Near>; 2] {
    let [_, s, n, hd] = case.shape;
    let one = |x: &[f32], sign: f64| -> Vec<Near> {
        let heads = x.chunks(hd).enumerate();
        let head = |(token, head): (usize, &[f32])| -> Vec<Near> {
            let position = (case.offset + token / n % s) as f64;
            let e = (position - case.center as f64) / case.scale_base;
            let y = turned(&exact(head), &|i| position * theta(i, hd / 2, case.base));
            let scaled = |(j, y): (usize, &Near)| {
                let i = j % (hd / 2);
                let zeta = (2.0 * i as f64 / hd as f64 + 0.4) / 1.4;
                let scale = zeta.powf(sign * e);
                y.times(Near::rounded(scale, (2.0 + 2.26 * e.abs()) * U * scale))
            };
            y.iter().enumerate().map(scaled).collect()
        };
        heads.flat_map(head).collect()
    };
    [one(&case.q, 1.0), one(&case.k, -1.0)]
}

/// `x` turned by its coordinates, or `dy` turned back.
pub fn axial(case: &AxialCase, x: &[f32], back: bool) -> Vec<Near> {
    let [_, s, n, hd] = case.shape;
    let angle = |row: usize, plane: usize| {
        let [axis, place] = section(case, plane);
        let theta = match case.sections {
            Sections::Anew => theta(place, case.planes[axis], case.base),
            Sections::OneList => theta(plane, hd / 2, case.base),
        };
        let angle = case.coordinates[row * case.planes.len() + axis] as f64 * theta;
        if back { -angle } else { angle }
    };
    let heads = x.chunks(hd).enumerate();
    heads.flat_map(|(token, x)| turned(&exact(x), &|i| angle(token / n % s, i))).collect()
}

/// Linear attention, forward and backward.
#[derive(Debug, Clone, Default)]
pub struct Off {
    /// `[b, s, nh, hd]`.
    pub y: Vec<Near>,
    /// `[b, s, nh, hd]`.
    pub dq: Vec<Near>,
    /// `[b, s, nh, hd]`.
    pub dk: Vec<Near>,
    /// `[b, s, nh, hd]`.
    pub dv: Vec<Near>,
}

/// `elu(x) + 1`: below 0, exp has 4 roundings, and elu + 1 has 3 of 1; above 0 there is one sum, or two.
fn phi(x: f32) -> Near {
    let x = f64::from(x);
    match x > 0.0 {
        true => Near::rounded(x + 1.0, 2.0 * U * (x + 1.0)),
        false => Near::rounded(x.exp(), U * (4.0 * x.exp() + 3.0)),
    }
}

/// The slope is the feature, up to 1.
fn slope(x: f32) -> Near {
    if x > 0.0 { Near::exact(1.0) } else { phi(x) }
}

/// All of it. Without a `dy`, that of `y` alone.
pub fn linear(case: &LinearCase, dy: &[f32]) -> Off {
    let [b, s, n, hd] = case.shape;
    let position = |token: usize| (case.offset + token / n % s) as f64;
    let turn = |token: usize, head: &[Near], sign: f64| match case.base {
        None => head.to_vec(),
        Some(base) => turned(head, &|i| sign * position(token) * theta(i, hd / 2, base)),
    };
    let plain = |list: &[f32]| -> Vec<Near> { list.iter().map(|&x| phi(x)).collect() };
    let turned_list = |list: &[Near], sign: f64| -> Vec<Near> {
        list.chunks(hd).enumerate().flat_map(|(token, head)| turn(token, head, sign)).collect()
    };
    let (q, k, v) = (plain(&case.q), plain(&case.k), exact(&case.v));
    let (turned_q, turned_k) = (turned_list(&q, 1.0), turned_list(&k, 1.0));
    let zero = || vec![Near::default(); v.len()];
    let (mut y, mut out) = (zero(), Off::default());
    // Terms of the sums over queries: what is added, and how often.
    let gathered = || vec![Vec::new(); v.len()];
    let [mut dv, mut dturned_k, mut dk] = [gathered(), gathered(), gathered()];
    let (mut dturned_q, mut dq) = (zero(), zero());
    let dy = exact(dy);
    for b in 0..b {
        for (h, m) in (0..n).flat_map(|h| (0..s).map(move |m| (h, m))) {
            let place = |row: usize| ((b * s + row) * n + h) * hd;
            let at = place(m);
            let dot = |x: &[Near], keys: &[Near], key: usize| {
                Near::sum((0..hd).map(|i| x[at + i].times(keys[key + i])))
            };
            let keys: Vec<usize> = (0..=m).map(place).collect();
            let denominator = Near::sum(keys.iter().map(|key| dot(&q, &k, *key)));
            let weights: Vec<Near> =
                keys.iter().map(|key| dot(&turned_q, &turned_k, *key)).collect();
            for j in 0..hd {
                let terms = keys.iter().zip(&weights).map(|(key, w)| w.times(v[key + j]));
                y[at + j] = Near::sum(terms).over(denominator);
            }
            if dy.is_empty() {
                continue;
            }
            let dnumerator: Vec<Near> = (0..hd).map(|j| dy[at + j].over(denominator)).collect();
            let along = Near::sum((0..hd).map(|j| dy[at + j].times(y[at + j])));
            let mut ddenominator = along.over(denominator).negative();
            // For -(dy . numerator) / denominator².
            ddenominator.off += 2.0 * U * ddenominator.size;
            let dweight = |key: usize| Near::sum((0..hd).map(|j| dnumerator[j].times(v[key + j])));
            let dweights: Vec<Near> = keys.iter().map(|key| dweight(*key)).collect();
            for j in 0..hd {
                let over_keys = |of: &dyn Fn(usize) -> Near| Near::sum((0..keys.len()).map(of));
                dturned_q[at + j] = over_keys(&|nth| dweights[nth].times(turned_k[keys[nth] + j]));
                dq[at + j] = over_keys(&|nth| ddenominator.times(k[keys[nth] + j]));
                for (nth, key) in keys.iter().enumerate() {
                    dv[key + j].push(weights[nth].times(dnumerator[j]));
                    dturned_k[key + j].push(dweights[nth].times(turned_q[at + j]));
                    dk[key + j].push(ddenominator.times(q[at + j]));
                }
            }
        }
    }
    out.y = y;
    if dy.is_empty() {
        return out;
    }
    let added = |terms: Vec<Vec<Near>>| -> Vec<Near> {
        terms.into_iter().map(|terms| Near::sum(terms.into_iter())).collect()
    };
    let through = |list: &[f32], dturned: Vec<Near>, dplain: Vec<Near>| -> Vec<Near> {
        let back = turned_list(&dturned, -1.0);
        let both = back.into_iter().zip(dplain).zip(list);
        both.map(|((turned, plain), x)| Near::sum([turned, plain].into_iter()).times(slope(*x)))
            .collect()
    };
    out.dq = through(&case.q, dturned_q, dq);
    out.dk = through(&case.k, added(dturned_k), added(dk));
    out.dv = added(dv);
    out
}
