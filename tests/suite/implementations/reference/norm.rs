//! GroupRMSNorm of the library.

use super::*;
use crate::implementations::{Adapter, Apart, adapter};
use contract::interface::*;
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

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(GroupRmsNorm, APART);

impl GroupRmsNorm for Library {
    fn initial_gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Reply<Vec<f32>> {
        let init_range = (f64::from(range.0), f64::from(range.1));
        let config = GroupRmsNormConfig { init_range, init_seed: seed, ..Default::default() };
        Ok(config.init().values(hidden_size))
    }

    fn forward_in(&self, manner: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        let gamma = tensor(&case.gamma, (case.shape[2],));
        let x = rows(&case.x, case.shape, manner);
        let (group_size, eps) = (case.group_size, case.eps);
        if manner == Manner::Traced {
            let y = group_rms_norm(x.leaky_trace(), &gamma, group_size, eps);
            return Ok(y.map_err(refused)?.as_vec());
        }
        Ok(group_rms_norm(x, &gamma, group_size, eps).map_err(refused)?.as_vec())
    }

    fn backward_in(&self, manner: Manner, case: &NormCase, dy: &[f32]) -> Reply<NormGrads> {
        let gamma = tensor(&case.gamma, (case.shape[2],));
        let x = rows(&case.x, case.shape, leaf_manner(manner));
        let mut grads = run_back(manner, dy, || {
            group_rms_norm(traced(&x, manner), &gamma, case.group_size, case.eps).map_err(refused)
        })?;
        let dgamma = gradient(&mut grads, &gamma);
        Ok(NormGrads { dx: gradient(&mut grads, &x), dgamma })
    }

    #[cfg(feature = "f16")]
    fn forward_half_in(&self, manner: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        let [b, s, h] = case.shape;
        let config = GroupRmsNormConfig { eps: case.eps, ..Default::default() };
        with_norm_sizes!((h, case.group_size), |H, GZ| {
            let gamma = tensor(&case.gamma, (Const,));
            let norm = quadrivium::GroupRmsNorm::<H, GZ, f32, Dev>::with_weight(gamma, config);
            // The values are values of f16.
            let x = rows(&case.x, case.shape, manner).to_dtype::<f16>();
            let x: Tensor<(usize, usize, Const<H>), f16, Dev> = x.realize();
            let mut norm = norm.map_err(refused)?;
            if let Manner::Again | Manner::Cloned = manner {
                let before: Vec<f16> = case.x.iter().rev().map(|&x| f16::from_f32(x)).collect();
                norm.try_forward_mixed(tensor(&before, (b, s, Const))).map_err(refused)?;
            }
            if manner == Manner::Cloned {
                norm = norm.clone();
            }
            let y = norm.try_forward_mixed(x);
            Ok(y.map_err(refused)?.as_vec().into_iter().map(f16::to_f32).collect())
        }, _ => Err(Refusal::not_compiled("this group size")))
    }

    #[cfg(not(feature = "f16"))]
    fn forward_half_in(&self, _: Manner, _: &NormCase) -> Reply<Vec<f32>> {
        Err(Refusal::not_asked("built without the feature f16"))
    }
}
