//! Correct variants of GroupRMSNorm, all in `f32`.

use crate::component::Variant;
use crate::norm::interface::*;
use crate::norm::oracle::NormLoops;
use crate::oracle::{Oracle, to_f16};

/// The variants.
pub static VARIANTS: &[Variant<dyn GroupRmsNorm>] = &[
    Variant {
        id: "norm/plain-f32",
        about: "f32 throughout, sums from the left, division by the root",
        implementation: || Box::new(InF32 { sum: from_left, xhat: |x, ms| x / ms.sqrt() }),
    },
    Variant {
        id: "norm/reciprocal-root",
        about: "multiplies by 1 / root, as fused kernels do",
        implementation: || Box::new(InF32 { sum: from_left, xhat: |x, ms| x * (1.0 / ms.sqrt()) }),
    },
    Variant {
        id: "norm/pairwise-sum",
        about: "adds in halves of halves, as libraries and GPUs do",
        implementation: || Box::new(InF32 { sum: in_halves, xhat: |x, ms| x / ms.sqrt() }),
    },
    Variant {
        id: "norm/from-right",
        about: "adds from the right",
        implementation: || {
            Box::new(InF32 { sum: |v| from_left_of(v.iter().rev()), xhat: |x, ms| x / ms.sqrt() })
        },
    },
    Variant {
        id: "norm/newton-root",
        about: "the reciprocal root by two Newton steps",
        implementation: || Box::new(InF32 { sum: from_left, xhat: |x, ms| x * newton_rsqrt(ms) }),
    },
];

fn from_left(values: &[f32]) -> f32 {
    from_left_of(values.iter())
}

fn from_left_of<'a>(values: impl Iterator<Item = &'a f32>) -> f32 {
    values.fold(0.0, |sum, value| sum + value)
}

fn in_halves(values: &[f32]) -> f32 {
    match values {
        [] => 0.0,
        [value] => *value,
        _ => {
            let (left, right) = values.split_at(values.len() / 2);
            in_halves(left) + in_halves(right)
        }
    }
}

/// `1 / sqrt(x)`: a start within one part in a thousand, then Newton's steps.
fn newton_rsqrt(x: f32) -> f32 {
    let start = (1.0 / x.sqrt()) * 1.0005;
    (0..2).fold(start, |y, _| y * (1.5 - 0.5 * x * y * y))
}

/// The norm in `f32`, with its sum and its quotient as they are given.
struct InF32 {
    sum: fn(&[f32]) -> f32,
    /// `x / sqrt(ms)`, where `ms` has eps in it.
    xhat: fn(f32, f32) -> f32,
}

impl InF32 {
    /// `xhat` and `ms + eps` of every group, in row-major order.
    fn xhat(&self, case: &NormCase) -> (Vec<f32>, Vec<f32>) {
        let mut xhat = Vec::with_capacity(case.x.len());
        let mut mean_squares = Vec::new();
        for group in case.x.chunks(case.group_size) {
            let squares: Vec<f32> = group.iter().map(|x| x * x).collect();
            let ms = (self.sum)(&squares) / group.len() as f32 + case.eps as f32;
            xhat.extend(group.iter().map(|&x| (self.xhat)(x, ms)));
            mean_squares.push(ms);
        }
        (xhat, mean_squares)
    }
}

impl GroupRmsNorm for InF32 {
    fn initial_gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Reply<Vec<f32>> {
        Ok(Oracle.gamma(hidden_size, range, seed))
    }

    fn forward_in(&self, _: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        Oracle.check(case)?;
        let (xhat, _) = self.xhat(case);
        let h = case.shape[2];
        Ok(xhat.iter().enumerate().map(|(i, xhat)| xhat * case.gamma[i % h]).collect())
    }

    fn backward_in(&self, _: Manner, case: &NormCase, dy: &[f32]) -> Reply<NormGrads> {
        Oracle.check(case)?;
        let (xhat, mean_squares) = self.xhat(case);
        let (h, gz) = (case.shape[2], case.group_size);
        let gamma_dy: Vec<f32> = (0..dy.len()).map(|i| case.gamma[i % h] * dy[i]).collect();
        let mut dx = vec![0.0; dy.len()];
        for (g, ms) in mean_squares.iter().enumerate() {
            let group = g * gz..(g + 1) * gz;
            let products: Vec<f32> = group.clone().map(|i| gamma_dy[i] * xhat[i]).collect();
            let along = (self.sum)(&products) / gz as f32;
            for i in group {
                dx[i] = (self.xhat)(gamma_dy[i] - xhat[i] * along, *ms);
            }
        }
        let dgamma = |j: usize| {
            let products: Vec<f32> = (j..dy.len()).step_by(h).map(|i| dy[i] * xhat[i]).collect();
            (self.sum)(&products)
        };
        Ok(NormGrads { dx, dgamma: (0..h).map(dgamma).collect() })
    }

    fn forward_half_in(&self, _: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        Ok(self.forward(case)?.into_iter().map(|y| to_f16(f64::from(y))).collect())
    }
}
