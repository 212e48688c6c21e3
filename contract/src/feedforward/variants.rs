//! Correct variants of SwiGLU, all in `f32`.

use crate::component::Variant;
use crate::feedforward::interface::*;

/// The variants.
pub static VARIANTS: &[Variant<dyn SwiGlu>] = &[
    Variant {
        id: "feedforward/plain-f32",
        about: "f32 throughout, one product after the other, sums from the left",
        implementation: || Box::new(InF32 { inner: from_left, sigmoid: plain }),
    },
    Variant {
        id: "feedforward/from-right",
        about: "adds from the right",
        implementation: || Box::new(InF32 { inner: from_right, sigmoid: plain }),
    },
    Variant {
        id: "feedforward/lanes",
        about: "adds in four lanes, and the lanes at last",
        implementation: || Box::new(InF32 { inner: in_lanes, sigmoid: plain }),
    },
    Variant {
        id: "feedforward/sigmoid-by-tanh",
        about: "takes (1 + tanh(a/2)) / 2 for the sigmoid",
        implementation: || {
            Box::new(InF32 { inner: from_left, sigmoid: |a| 0.5 * (1.0 + (0.5 * a).tanh()) })
        },
    },
    Variant {
        id: "feedforward/sigmoid-in-two-cases",
        about: "takes exp(a) / (1 + exp(a)) for the sigmoid where a is negative, so that exp is never large",
        implementation: || {
            let sigmoid = |a: f32| if a < 0.0 { a.exp() / (1.0 + a.exp()) } else { plain(a) };
            Box::new(InF32 { inner: from_left, sigmoid })
        },
    },
    Variant {
        id: "feedforward/fused-gate-and-up",
        about: "W₁ and W₃ as one matrix of 2f rows, one product, cut into halves; the way back likewise",
        implementation: || Box::new(Fused),
    },
];

fn plain(a: f32) -> f32 {
    1.0 / (1.0 + (-a).exp())
}

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

/// The network in `f32`, with its sums and its sigmoid as they are given.
struct InF32 {
    inner: fn(&[f32]) -> f32,
    sigmoid: fn(f32) -> f32,
}

impl InF32 {
    /// `matrix x`, for a matrix of rows of `x`'s length.
    fn product(&self, matrix: &[f32], x: &[f32]) -> Vec<f32> {
        let row = |row: &[f32]| {
            let terms: Vec<f32> = row.iter().zip(x).map(|(w, x)| w * x).collect();
            (self.inner)(&terms)
        };
        matrix.chunks(x.len()).map(row).collect()
    }

    fn silu(&self, a: f32) -> f32 {
        a * (self.sigmoid)(a)
    }
}

fn transposed(matrix: &[f32], columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|j| matrix[j..].iter().step_by(columns).copied()).collect()
}

impl SwiGlu for InF32 {
    fn size(&self, case: &SizeCase) -> Reply<usize> {
        // In floating-point numbers, as the Python source has it.
        let size = (2.0 * (4 * case.hidden_size) as f64 / 3.0).floor();
        let size = case.multiplier.map_or(size, |multiplier| (multiplier * size).floor());
        let multiple = case.multiple_of as f64;
        Ok((((size + multiple - 1.0) / multiple).floor() * multiple) as usize)
    }

    fn forward_in(&self, _: Manner, case: &SwiGluCase) -> Reply<Vec<f32>> {
        let rows = case.x.chunks(case.shape[2]).flat_map(|x| {
            let (a, b) = (self.product(&case.gate, x), self.product(&case.up, x));
            let z: Vec<f32> = a.iter().zip(&b).map(|(&a, b)| self.silu(a) * b).collect();
            self.product(&case.down, &z)
        });
        Ok(rows.collect())
    }

    fn backward_in(&self, _: Manner, case: &SwiGluCase, dy: &[f32]) -> Reply<SwiGluGrads> {
        let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
        let [gate, up] = [&case.gate, &case.up].map(|matrix| transposed(matrix, h)); // [h, f]
        let down = transposed(&case.down, f); // [f, h]
        let zero = || vec![0.0f32; f * h];
        let (mut dx, mut dgate, mut dup, mut ddown) = (Vec::new(), zero(), zero(), zero());
        for (x, dy) in case.x.chunks(h).zip(dy.chunks(h)) {
            let (a, b) = (self.product(&case.gate, x), self.product(&case.up, x));
            let dz = self.product(&down, dy);
            let db: Vec<f32> = (0..f).map(|k| dz[k] * self.silu(a[k])).collect();
            let slope = |a: f32| {
                let open = (self.sigmoid)(a);
                open * (1.0 + a * (1.0 - open))
            };
            let da: Vec<f32> = (0..f).map(|k| dz[k] * b[k] * slope(a[k])).collect();
            let (through_gate, through_up) = (self.product(&gate, &da), self.product(&up, &db));
            dx.extend(through_gate.iter().zip(&through_up).map(|(gate, up)| gate + up));
            for (k, j) in (0..f).flat_map(|k| (0..h).map(move |j| (k, j))) {
                dgate[k * h + j] += da[k] * x[j];
                dup[k * h + j] += db[k] * x[j];
                ddown[j * f + k] += dy[j] * (self.silu(a[k]) * b[k]);
            }
        }
        Ok(SwiGluGrads { dx, dgate, dup, ddown })
    }
}

/// One matrix for both branches.
struct Fused;

impl SwiGlu for Fused {
    fn size(&self, case: &SizeCase) -> Reply<usize> {
        let size = case.hidden_size * 8 / 3;
        let size = case.multiplier.map_or(size, |multiplier| (size as f64 * multiplier) as usize);
        Ok(size.next_multiple_of(case.multiple_of))
    }

    fn forward_in(&self, _: Manner, case: &SwiGluCase) -> Reply<Vec<f32>> {
        let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
        let fused = [&case.gate[..], &case.up[..]].concat(); // [2 f, h]
        let mut y = vec![0.0; case.x.len()];
        for (x, y) in case.x.chunks(h).zip(y.chunks_mut(h)) {
            let row = |row: &[f32]| row.iter().zip(x).map(|(w, x)| w * x).sum::<f32>();
            let both: Vec<f32> = fused.chunks(h).map(row).collect();
            let (a, b) = both.split_at(f);
            // Unit by unit: a column of W_2, times what passes.
            for (k, (a, b)) in a.iter().zip(b).enumerate() {
                let z = a / (1.0 + (-a).exp()) * b;
                (0..h).for_each(|j| y[j] += case.down[j * f + k] * z);
            }
        }
        Ok(y)
    }

    fn backward_in(&self, _: Manner, case: &SwiGluCase, dy: &[f32]) -> Reply<SwiGluGrads> {
        let ([_, _, h], f) = (case.shape, case.ffn_hidden_size);
        let fused = [&case.gate[..], &case.up[..]].concat(); // [2 f, h]
        let (mut dfused, mut ddown) = (vec![0.0; 2 * f * h], vec![0.0; h * f]);
        let mut dx = vec![0.0; dy.len()];
        for (t, (x, dy)) in case.x.chunks(h).zip(dy.chunks(h)).enumerate() {
            let row = |row: &[f32]| row.iter().zip(x).map(|(w, x)| w * x).sum::<f32>();
            let both: Vec<f32> = fused.chunks(h).map(row).collect();
            let (a, b) = both.split_at(f);
            let mut dboth = vec![0.0; 2 * f];
            for k in 0..f {
                let open = plain(a[k]);
                let dz: f32 = (0..h).map(|j| case.down[j * f + k] * dy[j]).sum();
                // silu' = open + silu (1 - open)
                dboth[k] = dz * b[k] * (open + a[k] * open * (1.0 - open));
                dboth[f + k] = dz * a[k] * open;
                (0..h).for_each(|j| ddown[j * f + k] += dy[j] * a[k] * open * b[k]);
            }
            for (r, d) in dboth.iter().enumerate() {
                for j in 0..h {
                    dfused[r * h + j] += d * x[j];
                    dx[t * h + j] += fused[r * h + j] * d;
                }
            }
        }
        let dup = dfused.split_off(f * h);
        Ok(SwiGluGrads { dx, dgate: dfused, dup, ddown })
    }
}
