//! GroupRMSNorm of the library.

use super::*;
use crate::parties::{Apart, Seat, seat};
use contract::party::*;
#[cfg(feature = "f16")]
use contract::with_norm_sizes;
use quadrivium::GroupRmsNormConfig;
use quadrivium::norm::group_rms_norm;

/// Without the feature, the library has no half precision.
const APART: &[Apart] = if cfg!(feature = "f16") {
    &[]
} else {
    &[
        ("norm/half-result-is-half", "this build has no f16"),
        ("norm/half-does-not-overflow", "this build has no f16"),
        ("norm/half-rounds-once", "this build has no f16"),
    ]
};

/// The seat.
pub const SEAT: Seat<Library> = seat!(GroupRmsNorm, APART);

impl GroupRmsNorm for Library {
    fn initial_gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Reply<Vec<f32>> {
        let init_range = (f64::from(range.0), f64::from(range.1));
        let config = GroupRmsNormConfig { init_range, init_seed: seed, ..Default::default() };
        Ok(config.init().values(hidden_size))
    }

    fn forward(&self, case: &NormCase) -> Reply<Vec<f32>> {
        let [b, s, h] = case.shape;
        let gamma = tensor(&case.gamma, (h,));
        let y = group_rms_norm(tensor(&case.x, (b, s, h)), &gamma, case.group_size, case.eps);
        Ok(y.map_err(refused)?.as_vec())
    }

    fn backward(&self, case: &NormCase, dy: &[f32]) -> Reply<NormGrads> {
        let [b, s, h] = case.shape;
        let (x, gamma) = (tensor(&case.x, (b, s, h)), tensor(&case.gamma, (h,)));
        let y = group_rms_norm(x.leaky_trace(), &gamma, case.group_size, case.eps);
        let mut grads = backward(y.map_err(refused)?, dy);
        let dgamma = gradient(&mut grads, &gamma);
        Ok(NormGrads { dx: gradient(&mut grads, &x), dgamma })
    }

    #[cfg(feature = "f16")]
    fn forward_half(&self, case: &NormCase) -> Reply<Vec<f32>> {
        let [b, s, h] = case.shape;
        let config = GroupRmsNormConfig { eps: case.eps, ..Default::default() };
        let x: Vec<f16> = case.x.iter().map(|&x| f16::from_f32(x)).collect();
        with_norm_sizes!((h, case.group_size), |H, GZ| {
            let gamma = tensor(&case.gamma, (Const,));
            let norm = quadrivium::GroupRmsNorm::<H, GZ, f32, Dev>::with_weight(gamma, config);
            let y = norm.and_then(|norm| norm.try_forward_mixed(tensor(&x, (b, s, Const))));
            Ok(y.map_err(refused)?.as_vec().into_iter().map(f16::to_f32).collect())
        }, _ => Err(Refusal::not_compiled("this group size")))
    }

    #[cfg(not(feature = "f16"))]
    fn forward_half(&self, _: &NormCase) -> Reply<Vec<f32>> {
        Err(Refusal::not_asked("built without the feature f16"))
    }
}
