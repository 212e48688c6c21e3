//! Questions to a LayerNorm.

use crate::component::Fingerprint;
use crate::laws::widen;
use crate::layernorm::interface::*;

/// Asks them all.
pub fn fingerprints(norm: &dyn LayerNorm) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    for case in cases() {
        let dy: Vec<f32> = (0..case.x.len()).map(|i| 0.75 - 0.25 * (i % 7) as f32).collect();
        let grads = || norm.backward(&case, &dy);
        fingerprints.push(Fingerprint::ask("forward", || norm.forward(&case).map(|y| widen(&y))));
        fingerprints.push(Fingerprint::ask("backward (dx)", || Ok(widen(&grads()?.dx))));
        fingerprints.push(Fingerprint::ask("backward (dgamma)", || Ok(widen(&grads()?.dgamma))));
        fingerprints.push(Fingerprint::ask("backward (dbeta)", || Ok(widen(&grads()?.dbeta))));
    }
    fingerprints
}

/// Eighteen rows of two elements.
fn many_rows() -> LayerNormCase {
    let x = (0..36).map(|i| (i * 5 % 13) as f32 - 6.0).collect();
    let (gamma, beta) = (vec![2.0, -0.5], vec![1.0, 0.25]);
    LayerNormCase { shape: [2, 9, 2], eps: 0.5, gamma, beta, x }
}

/// A token whose one large element is nearly 8 standard deviations from its mean.
fn outlier() -> LayerNormCase {
    let x = (0..64).map(|j| if j == 9 { 50.0 } else { 1.0 - 2.0 * (j % 2) as f32 }).collect();
    let (gamma, beta) = (vec![1.5; 64], vec![-0.5; 64]);
    LayerNormCase { shape: [1, 1, 64], eps: 1e-5, gamma, beta, x }
}

/// Eps that dominates and eps that vanishes; a large mean; tiny, huge, equal and missing values.
fn cases() -> Vec<LayerNormCase> {
    let x = [3.0, -0.5, 2.0, 0.25, 4.0, -1.0, -0.125, 1.5, 0.75, -2.0, 0.5, 5.0f32];
    let case = |eps, change: &dyn Fn(usize, f32) -> f32| LayerNormCase {
        shape: [1, 2, 6],
        eps,
        gamma: vec![0.1, -7.0, 2.5, 0.0, 30.0, -1.5],
        beta: vec![0.5, -2.0, 10.0, 0.0, -0.25, 3.0],
        x: x.iter().enumerate().map(|(i, &x)| change(i, x)).collect(),
    };
    vec![
        case(1e-6, &|_, x| x),
        case(0.1, &|_, x| x),
        case(2.0, &|_, x| x),
        // The mean is exact in f32, so only the variance can lose digits.
        case(1e-5, &|i, _| 4096.0 + [-3.0, 1.0, -1.0, 5.0, -4.0, 2.0][i % 6] * (1 + i / 6) as f32),
        case(1e-5, &|_, x| 3e-3 * x),
        case(1e-5, &|_, x| 1e13 * x),
        case(1e-5, &|i, x| if i < 6 { 2.0 } else { x }),
        case(1e-5, &|i, x| if i < 6 { f32::NAN } else { x }),
        case(1e-12, &|_, x| 2f32.powi(-17) * x),
        case(0.0, &|_, x| x / 1024.0),
        LayerNormCase { gamma: vec![1.0; 6], ..case(1e-5, &|_, x| x) },
        many_rows(),
        outlier(),
    ]
}
