//! Questions to a GroupRMSNorm.

use crate::component::Fingerprint;
use crate::laws::widen;
use crate::norm::interface::*;
use crate::oracle::to_f16;

/// Asks them all.
pub fn fingerprints(norm: &dyn GroupRmsNorm) -> Vec<Fingerprint> {
    let mut fingerprints = Vec::new();
    for (range, seed) in [((-1.0, 1.0), 42), ((0.5, 1.5), 7)] {
        fingerprints.push(Fingerprint::ask("initial_gamma", || {
            norm.initial_gamma(12, range, seed).map(|gamma| widen(&gamma))
        }));
    }
    for case in cases() {
        let dy: Vec<f32> = (0..case.x.len()).map(|i| 0.75 - 0.25 * (i % 7) as f32).collect();
        let grads = || norm.backward(&case, &dy);
        fingerprints.push(Fingerprint::ask("forward", || norm.forward(&case).map(|y| widen(&y))));
        fingerprints.push(Fingerprint::ask("backward (dx)", || Ok(widen(&grads()?.dx))));
        fingerprints.push(Fingerprint::ask("backward (dgamma)", || Ok(widen(&grads()?.dgamma))));
        let x = case.x.iter().map(|&x| to_f16(f64::from(x))).collect();
        let half = NormCase { x, ..case };
        fingerprints
            .push(Fingerprint::ask("forward_half", || norm.forward_half(&half).map(|y| widen(&y))));
    }
    fingerprints
}

/// Eps that dominates and eps that vanishes; two group sizes; tiny, huge and missing values.
fn cases() -> Vec<NormCase> {
    let gamma = vec![0.1, -7.0, 2.5, 0.6003, 30.0, -1.5];
    let x = [3.0, -0.5, 2.0, 0.25, 4.0, -1.0, -0.125, 1.5, 0.75, -2.0, 0.5, 5.0f32];
    let case = |group_size, eps, change: &dyn Fn(usize, f32) -> f32| NormCase {
        shape: [1, 2, 6],
        group_size,
        eps,
        gamma: gamma.clone(),
        x: x.iter().enumerate().map(|(i, &x)| change(i, x)).collect(),
    };
    vec![
        case(3, 1e-6, &|_, x| x),
        case(2, 0.1, &|_, x| x),
        case(3, 2.0, &|_, x| x),
        case(3, 1e-5, &|_, x| 100.0 * x),
        case(2, 1e-5, &|_, x| 3e-3 * x),
        case(3, 1e-5, &|_, x| 1e13 * x),
        case(3, 1e-5, &|i, x| if i < 3 { 0.0 } else { x }),
        case(3, 1e-5, &|i, x| if i < 3 { f32::NAN } else { x }),
        case(3, 0.0, &|_, x| x / 1024.0),
        case(4, 1e-5, &|_, x| x), // 4 does not divide 6
    ]
}
