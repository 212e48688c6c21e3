//! LayerNorm of the library.

use super::*;
use crate::parties::{Seat, seat};
use contract::party::*;
use quadrivium::functional::layer_norm;

/// The seat.
pub const SEAT: Seat<Library> = seat!(LayerNorm, &[]);

impl LayerNorm for Library {
    fn forward(&self, case: &LayerNormCase) -> Reply<Vec<f32>> {
        let [b, s, h] = case.shape;
        let (gamma, beta) = (tensor(&case.gamma, (h,)), tensor(&case.beta, (h,)));
        let y = layer_norm(tensor(&case.x, (b, s, h)), &gamma, &beta, case.eps);
        Ok(y.map_err(refused)?.as_vec())
    }

    fn backward(&self, case: &LayerNormCase, dy: &[f32]) -> Reply<LayerNormGrads> {
        let [b, s, h] = case.shape;
        let x = tensor(&case.x, (b, s, h));
        let (gamma, beta) = (tensor(&case.gamma, (h,)), tensor(&case.beta, (h,)));
        let y = layer_norm(x.leaky_trace(), &gamma, &beta, case.eps);
        let mut grads = backward(y.map_err(refused)?, dy);
        let (dgamma, dbeta) = (gradient(&mut grads, &gamma), gradient(&mut grads, &beta));
        Ok(LayerNormGrads { dx: gradient(&mut grads, &x), dgamma, dbeta })
    }
}
