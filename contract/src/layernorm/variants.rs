//! Correct variants of LayerNorm, all in `f32`.

use crate::component::Variant;
use crate::layernorm::interface::*;

/// The variants.
pub static VARIANTS: &[Variant<dyn LayerNorm>] = &[
    Variant {
        id: "layernorm/plain-f32",
        about: "f32 throughout, sums from the left, mean first and variance after it",
        implementation: || Box::new(InF32 { statistics: two_passes, y: centred_first }),
    },
    Variant {
        id: "layernorm/from-right",
        about: "adds from the right",
        implementation: || Box::new(InF32 { statistics: from_right, y: centred_first }),
    },
    Variant {
        id: "layernorm/welford",
        about: "mean and variance in one pass, by Welford's recurrence, as PyTorch does",
        implementation: || Box::new(InF32 { statistics: welford, y: centred_first }),
    },
    Variant {
        id: "layernorm/shifted-squares",
        about: "the mean of squares minus the squared mean, after the first element is subtracted from \
                all; good while that one is no outlier",
        implementation: || Box::new(InF32 { statistics: shifted, y: centred_first }),
    },
    Variant {
        id: "layernorm/reciprocal-root",
        about: "multiplies by 1 / root, as fused kernels do",
        implementation: || {
            let y = |x: f32, mean, var: f32, gamma, beta| {
                (x - mean) * (1.0 / var.sqrt()) * gamma + beta
            };
            Box::new(InF32 { statistics: two_passes, y })
        },
    },
    Variant {
        id: "layernorm/scale-and-shift",
        about: "one scale and one shift an element: x · (γ/std) + (β − mean · γ/std)",
        implementation: || {
            let y = |x: f32, mean: f32, var: f32, gamma: f32, beta: f32| {
                let scale = gamma / var.sqrt();
                x * scale + (beta - mean * scale)
            };
            Box::new(InF32 { statistics: two_passes, y })
        },
    },
];

/// Mean and variance of a row.
type Statistics = fn(&[f32]) -> (f32, f32);

fn two_passes(row: &[f32]) -> (f32, f32) {
    let n = row.len() as f32;
    let mean = row.iter().sum::<f32>() / n;
    (mean, row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n)
}

fn from_right(row: &[f32]) -> (f32, f32) {
    let turned: Vec<f32> = row.iter().rev().copied().collect();
    two_passes(&turned)
}

fn welford(row: &[f32]) -> (f32, f32) {
    let (mut mean, mut squares) = (0.0, 0.0);
    for (i, &x) in row.iter().enumerate() {
        let before = x - mean;
        mean += before / (i + 1) as f32;
        squares += before * (x - mean);
    }
    (mean, squares / row.len() as f32)
}

fn shifted(row: &[f32]) -> (f32, f32) {
    let n = row.len() as f32;
    let near: Vec<f32> = row.iter().map(|x| x - row[0]).collect();
    let mean = near.iter().sum::<f32>() / n;
    let mean_square = near.iter().map(|x| x * x).sum::<f32>() / n;
    (row[0] + mean, (mean_square - mean * mean).max(0.0))
}

/// `y` of `x`, mean, variance with eps, gamma and beta.
type Y = fn(f32, f32, f32, f32, f32) -> f32;

fn centred_first(x: f32, mean: f32, variance: f32, gamma: f32, beta: f32) -> f32 {
    (x - mean) / variance.sqrt() * gamma + beta
}

/// The norm in `f32`, with its statistics and its last step as they are given.
struct InF32 {
    statistics: Statistics,
    y: Y,
}

impl LayerNorm for InF32 {
    fn forward_in(&self, _: Manner, case: &LayerNormCase) -> Reply<Vec<f32>> {
        let h = case.shape[2];
        let rows = case.x.chunks(h).flat_map(|row| {
            let (mean, variance) = (self.statistics)(row);
            let variance = variance + case.eps as f32;
            let y = move |(j, &x)| (self.y)(x, mean, variance, case.gamma[j], case.beta[j]);
            row.iter().enumerate().map(y)
        });
        Ok(rows.collect())
    }

    fn backward_in(&self, _: Manner, case: &LayerNormCase, dy: &[f32]) -> Reply<LayerNormGrads> {
        let h = case.shape[2];
        let mut dx = Vec::with_capacity(dy.len());
        let (mut dgamma, mut dbeta) = (vec![0.0; h], vec![0.0; h]);
        for (row, dy) in case.x.chunks(h).zip(dy.chunks(h)) {
            let (mean, variance) = (self.statistics)(row);
            let std = (variance + case.eps as f32).sqrt();
            let xhat: Vec<f32> = row.iter().map(|x| (x - mean) / std).collect();
            let dxhat: Vec<f32> = (0..h).map(|j| case.gamma[j] * dy[j]).collect();
            let level = dxhat.iter().sum::<f32>() / h as f32;
            let along = dxhat.iter().zip(&xhat).map(|(d, xhat)| d * xhat).sum::<f32>() / h as f32;
            for j in 0..h {
                dgamma[j] += dy[j] * xhat[j];
                dbeta[j] += dy[j];
                dx.push((dxhat[j] - level - xhat[j] * along) / std);
            }
        }
        Ok(LayerNormGrads { dx, dgamma, dbeta })
    }
}
