//! Correct variants of more rotations, in `f32` except for their tables.

use crate::component::Variant;
use crate::rotations::interface::*;

/// The variants.
pub static VARIANTS: &[Variant<dyn Rotations>] = &[
    Variant {
        id: "rotations/tables-in-f32",
        about: "cosines, sines and scales rounded to f32 and used in f32, sums from the left",
        implementation: || {
            Box::new(InF32 { sum: from_left, phi: plain_phi, tables: plain_tables, turn: by_parts })
        },
    },
    Variant {
        id: "rotations/elu-and-one",
        about: "takes elu(x) + 1 in f32, by exp(x) − 1, and adds from the right",
        implementation: || {
            Box::new(InF32 {
                sum: from_right,
                phi: elu_and_one,
                tables: plain_tables,
                turn: by_parts,
            })
        },
    },
    Variant {
        id: "rotations/angles-by-addition",
        about: "builds each row of a table from the one before, by the addition theorems, in f64",
        implementation: || {
            Box::new(InF32 { sum: from_left, phi: plain_phi, tables: by_addition, turn: by_parts })
        },
    },
    Variant {
        id: "rotations/complex",
        about: "takes a plane for a complex number, and turns it by one product",
        implementation: || {
            Box::new(InF32 {
                sum: in_lanes,
                phi: plain_phi,
                tables: plain_tables,
                turn: as_complex,
            })
        },
    },
    Variant {
        id: "rotations/fused-multiply-add",
        about: "turns with one rounding less, by fused multiply-add",
        implementation: || {
            Box::new(InF32 { sum: from_left, phi: plain_phi, tables: plain_tables, turn: fused })
        },
    },
    Variant {
        id: "rotations/swapped-places",
        about: "sums over pairs by the matrices of the running form, and runs by the sums over all pairs",
        implementation: || {
            Box::new(Exchanged(InF32 {
                sum: from_left,
                phi: plain_phi,
                tables: plain_tables,
                turn: by_parts,
            }))
        },
    },
];

fn from_left(terms: &[f32]) -> f32 {
    terms.iter().sum()
}

fn from_right(terms: &[f32]) -> f32 {
    terms.iter().rev().sum()
}

fn in_lanes(terms: &[f32]) -> f32 {
    let lane = |first: usize| terms.iter().skip(first).step_by(4).sum::<f32>();
    (lane(0) + lane(1)) + (lane(2) + lane(3))
}

fn plain_phi(x: f32) -> f32 {
    if x > 0.0 { x + 1.0 } else { x.exp() }
}

fn elu_and_one(x: f32) -> f32 {
    let elu = if x > 0.0 { x } else { x.exp() - 1.0 };
    elu + 1.0
}

/// Cosine and sine of a position times a frequency.
fn plain_tables(position: usize, theta: f64) -> [f32; 2] {
    let (sin, cos) = (position as f64 * theta).sin_cos();
    [cos as f32, sin as f32]
}

/// By doubling and adding, as a clock is set on.
fn by_addition(position: usize, theta: f64) -> [f32; 2] {
    let (mut sin, mut cos) = (0.0f64, 1.0f64);
    for bit in (0..usize::BITS).rev().skip_while(|bit| position >> bit == 0) {
        (sin, cos) = (2.0 * sin * cos, cos * cos - sin * sin);
        if position >> bit & 1 == 1 {
            let (one, of_one) = theta.sin_cos();
            (sin, cos) = (sin * of_one + cos * one, cos * of_one - sin * one);
        }
    }
    [cos as f32, sin as f32]
}

fn by_parts([x, y]: [f32; 2], [cos, sin]: [f32; 2]) -> [f32; 2] {
    [x * cos - y * sin, y * cos + x * sin]
}

/// (cos + i sin)(x + iy).
fn as_complex([x, y]: [f32; 2], [cos, sin]: [f32; 2]) -> [f32; 2] {
    [cos * x - sin * y, sin * x + cos * y]
}

fn fused([x, y]: [f32; 2], [cos, sin]: [f32; 2]) -> [f32; 2] {
    [x.mul_add(cos, -(y * sin)), y.mul_add(cos, x * sin)]
}

fn theta(i: usize, planes: usize, base: f64) -> f64 {
    1.0 / base.powf(i as f64 / planes as f64)
}

/// All of it in `f32`, with its parts as they are given.
struct InF32 {
    sum: fn(&[f32]) -> f32,
    phi: fn(f32) -> f32,
    tables: fn(usize, f64) -> [f32; 2],
    turn: fn([f32; 2], [f32; 2]) -> [f32; 2],
}

/// A way from queries, keys, their turned twins and values to the result, of one head.
type Rows = Vec<Vec<f32>>;

impl InF32 {
    fn head(&self, head: &[f32], turn: &dyn Fn(usize) -> [f32; 2]) -> Vec<f32> {
        let half = head.len() / 2;
        let mut y = vec![0.0; head.len()];
        for i in 0..half {
            [y[i], y[i + half]] = (self.turn)([head[i], head[i + half]], turn(i));
        }
        y
    }

    fn axial_turned(&self, case: &AxialCase, x: &[f32], sign: f32) -> Vec<f32> {
        let [_, s, n, hd] = case.shape;
        // For each plane its coordinate and its frequency, as a list.
        let mut list = Vec::new();
        for (axis, &planes) in case.planes.iter().enumerate() {
            for place in 0..planes {
                let one_list = case.sections == Sections::OneList;
                let i = list.len();
                let theta = if one_list {
                    theta(i, hd / 2, case.base)
                } else {
                    theta(place, planes, case.base)
                };
                list.push((axis, theta));
            }
        }
        let heads = x.chunks(hd).enumerate();
        let turned = heads.flat_map(|(token, head)| {
            let row = &case.coordinates[token / n % s * case.planes.len()..];
            self.head(head, &|i| {
                let (axis, theta) = list[i];
                let [cos, sin] = (self.tables)(row[axis], theta);
                [cos, sign * sin]
            })
        });
        turned.collect()
    }

    fn dot(&self, a: &[f32], b: &[f32]) -> f32 {
        let terms: Vec<f32> = a.iter().zip(b).map(|(a, b)| a * b).collect();
        (self.sum)(&terms)
    }

    /// Features of each row of a head, plain and turned.
    fn features(&self, case: &LinearCase, list: &[f32], [b, h]: [usize; 2]) -> [Rows; 2] {
        let [_, s, n, hd] = case.shape;
        let rows = (0..s).map(|t| &list[((b * s + t) * n + h) * hd..][..hd]);
        let plain: Rows = rows.map(|row| row.iter().map(|x| (self.phi)(*x)).collect()).collect();
        let turned = plain.iter().enumerate().map(|(t, row)| self.turned(case, row, t, 1.0));
        let turned = turned.collect();
        [plain, turned]
    }

    fn turned(&self, case: &LinearCase, row: &[f32], t: usize, sign: f32) -> Vec<f32> {
        let Some(base) = case.base else { return row.to_vec() };
        self.head(row, &|i| {
            let [cos, sin] = (self.tables)(case.offset + t, theta(i, row.len() / 2, base));
            [cos, sign * sin]
        })
    }

    /// Over all pairs.
    fn pairs(&self, case: &LinearCase) -> Vec<f32> {
        let [batch, s, n, hd] = case.shape;
        let mut y = vec![0.0; case.v.len()];
        for (b, h) in (0..batch).flat_map(|b| (0..n).map(move |h| (b, h))) {
            let [q, turned_q] = self.features(case, &case.q, [b, h]);
            let [k, turned_k] = self.features(case, &case.k, [b, h]);
            let at = |t: usize| ((b * s + t) * n + h) * hd;
            for m in 0..s {
                let plain: Vec<f32> = (0..=m).map(|n| self.dot(&q[m], &k[n])).collect();
                let weights: Vec<f32> =
                    (0..=m).map(|n| self.dot(&turned_q[m], &turned_k[n])).collect();
                for j in 0..hd {
                    let column: Vec<f32> = (0..=m).map(|n| case.v[at(n) + j]).collect();
                    y[at(m) + j] = self.dot(&weights, &column) / (self.sum)(&plain);
                }
            }
        }
        y
    }

    /// With sums that run. Where a piece ends, nothing happens.
    fn runs(&self, case: &LinearCase) -> Vec<f32> {
        let [batch, s, n, hd] = case.shape;
        let mut y = vec![0.0; case.v.len()];
        for (b, h) in (0..batch).flat_map(|b| (0..n).map(move |h| (b, h))) {
            let [q, turned_q] = self.features(case, &case.q, [b, h]);
            let [k, turned_k] = self.features(case, &case.k, [b, h]);
            // A column for each element of the value, so that a read is a product of two lists.
            let (mut columns, mut total) = (vec![vec![0.0f32; hd]; hd], vec![0.0f32; hd]);
            for t in 0..s {
                let at = ((b * s + t) * n + h) * hd;
                for i in 0..hd {
                    total[i] += k[t][i];
                    for (j, column) in columns.iter_mut().enumerate() {
                        column[i] += turned_k[t][i] * case.v[at + j];
                    }
                }
                let denominator = self.dot(&q[t], &total);
                for (j, column) in columns.iter().enumerate() {
                    y[at + j] = self.dot(&turned_q[t], column) / denominator;
                }
            }
        }
        y
    }
}

impl Rotations for InF32 {
    fn xpos_in(&self, _: Manner, case: &XPosCase) -> Reply<TurnedPair> {
        let [_, s, n, hd] = case.shape;
        let one = |x: &[f32], inverse: bool| -> Vec<f32> {
            let heads = x.chunks(hd).enumerate();
            let heads = heads.map(|(token, head)| {
                let position = case.offset + token / n % s;
                let mut y =
                    self.head(head, &|i| (self.tables)(position, theta(i, hd / 2, case.base)));
                let from_center = position as f64 - case.center as f64;
                let exponent = (from_center / case.scale_base) as f32;
                for (j, y) in y.iter_mut().enumerate() {
                    let share = (j % (hd / 2)) as f64 / (hd / 2) as f64;
                    let scale = (((share + 0.4) / 1.4) as f32).powf(exponent);
                    *y = if inverse { *y / scale } else { *y * scale };
                }
                y
            });
            heads.flatten().collect()
        };
        Ok(TurnedPair { q: one(&case.q, false), k: one(&case.k, true) })
    }

    fn axial_in(&self, _: Manner, case: &AxialCase) -> Reply<Vec<f32>> {
        Ok(self.axial_turned(case, &case.x, 1.0))
    }

    fn axial_backward_in(&self, _: Manner, case: &AxialCase, dy: &[f32]) -> Reply<Vec<f32>> {
        Ok(self.axial_turned(case, dy, -1.0))
    }

    fn linear_in(&self, _: Manner, case: &LinearCase) -> Reply<Vec<f32>> {
        Ok(self.pairs(case))
    }

    fn linear_backward_in(&self, _: Manner, case: &LinearCase, dy: &[f32]) -> Reply<LinearGrads> {
        let [batch, s, n, hd] = case.shape;
        let zero = || vec![0.0; case.v.len()];
        let (mut dq, mut dk, mut dv) = (zero(), zero(), zero());
        let y = self.pairs(case);
        for (b, h) in (0..batch).flat_map(|b| (0..n).map(move |h| (b, h))) {
            let [q, turned_q] = self.features(case, &case.q, [b, h]);
            let [k, turned_k] = self.features(case, &case.k, [b, h]);
            let at = |t: usize| ((b * s + t) * n + h) * hd;
            let row = |list: &[f32], t: usize| list[at(t)..][..hd].to_vec();
            let denominator =
                |m: usize| (self.sum)(&(0..=m).map(|n| self.dot(&q[m], &k[n])).collect::<Vec<_>>());
            let divisors: Vec<f32> = (0..s).map(denominator).collect();
            let dnumerator =
                |m: usize| -> Vec<f32> { row(dy, m).iter().map(|dy| dy / divisors[m]).collect() };
            let ddenominator = |m: usize| -self.dot(&row(dy, m), &row(&y, m)) / divisors[m];
            let sum = |rows: std::ops::Range<usize>, term: &dyn Fn(usize) -> f32| {
                (self.sum)(&rows.map(term).collect::<Vec<_>>())
            };
            for t in 0..s {
                let of_numerator: Vec<Vec<f32>> = (0..s).map(dnumerator).collect();
                let of_denominator: Vec<f32> = (0..s).map(ddenominator).collect();
                let weigh = |m: usize, n: usize| self.dot(&of_numerator[m], &row(&case.v, n));
                let turned: Vec<f32> =
                    (0..hd).map(|j| sum(0..t + 1, &|n| weigh(t, n) * turned_k[n][j])).collect();
                let back = self.turned(case, &turned, t, -1.0);
                let turned: Vec<f32> =
                    (0..hd).map(|j| sum(t..s, &|m| weigh(m, t) * turned_q[m][j])).collect();
                let back_k = self.turned(case, &turned, t, -1.0);
                for j in 0..hd {
                    let slope = |x: f32| (self.phi)(x).min(1.0);
                    let plain = sum(0..t + 1, &|n| of_denominator[t] * k[n][j]);
                    dq[at(t) + j] = (back[j] + plain) * slope(case.q[at(t) + j]);
                    let plain = sum(t..s, &|m| of_denominator[m] * q[m][j]);
                    dk[at(t) + j] = (back_k[j] + plain) * slope(case.k[at(t) + j]);
                    dv[at(t) + j] =
                        sum(t..s, &|m| self.dot(&turned_q[m], &turned_k[t]) * of_numerator[m][j]);
                }
            }
        }
        Ok(LinearGrads { dq, dk, dv })
    }

    fn running(&self, case: &LinearCase, _: &[usize]) -> Reply<Vec<f32>> {
        Ok(self.runs(case))
    }
}

/// The two forms of linear attention in each other's place.
struct Exchanged(InF32);

impl Rotations for Exchanged {
    fn xpos_in(&self, _: Manner, case: &XPosCase) -> Reply<TurnedPair> {
        self.0.xpos(case)
    }

    fn axial_in(&self, _: Manner, case: &AxialCase) -> Reply<Vec<f32>> {
        self.0.axial(case)
    }

    fn axial_backward_in(&self, _: Manner, case: &AxialCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.0.axial_backward(case, dy)
    }

    fn linear_in(&self, _: Manner, case: &LinearCase) -> Reply<Vec<f32>> {
        Ok(self.0.runs(case))
    }

    fn linear_backward_in(&self, _: Manner, case: &LinearCase, dy: &[f32]) -> Reply<LinearGrads> {
        self.0.linear_backward(case, dy)
    }

    fn running(&self, case: &LinearCase, _: &[usize]) -> Reply<Vec<f32>> {
        Ok(self.0.pairs(case))
    }
}
