//! LayerNorm of the library.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use quadrivium::functional::layer_norm;

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(LayerNorm, &[]);

impl LayerNorm for Library {
    fn forward_in(&self, manner: Manner, case: &LayerNormCase) -> Reply<Vec<f32>> {
        let h = case.shape[2];
        let (gamma, beta) = (tensor(&case.gamma, (h,)), tensor(&case.beta, (h,)));
        let x = rows(&case.x, case.shape, manner);
        if manner == Manner::Traced {
            let y = layer_norm(x.leaky_trace(), &gamma, &beta, case.eps);
            return Ok(y.map_err(refused)?.as_vec());
        }
        Ok(layer_norm(x, &gamma, &beta, case.eps).map_err(refused)?.as_vec())
    }

    fn backward_in(
        &self,
        manner: Manner,
        case: &LayerNormCase,
        dy: &[f32],
    ) -> Reply<LayerNormGrads> {
        let h = case.shape[2];
        let (gamma, beta) = (tensor(&case.gamma, (h,)), tensor(&case.beta, (h,)));
        let x = rows(&case.x, case.shape, leaf_manner(manner));
        let mut grads = run_back(manner, dy, || {
            layer_norm(traced(&x, manner), &gamma, &beta, case.eps).map_err(refused)
        })?;
        let (dgamma, dbeta) = (gradient(&mut grads, &gamma), gradient(&mut grads, &beta));
        Ok(LayerNormGrads { dx: gradient(&mut grads, &x), dgamma, dbeta })
    }
}
