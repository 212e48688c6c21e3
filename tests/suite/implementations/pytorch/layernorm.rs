//! LayerNorm of PyTorch.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;

fn question(call: &str, case: &LayerNormCase) -> Value {
    let LayerNormCase { shape, eps, gamma, beta, x } = case;
    let (gamma, beta, x) = (plain(gamma), plain(beta), plain(x));
    json!({"call": call, "shape": shape, "eps": eps, "gamma": gamma, "beta": beta, "x": x})
}

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(LayerNorm, &[]);

impl LayerNorm for PyTorch {
    fn forward_in(&self, _: Manner, case: &LayerNormCase) -> Reply<Vec<f32>> {
        self.ask_f32(question("layernorm.forward", case))
    }

    fn backward_in(&self, _: Manner, case: &LayerNormCase, dy: &[f32]) -> Reply<LayerNormGrads> {
        let mut dx = self.ask_f32(with_dy(question("layernorm.backward", case), dy))?;
        let mut dgamma = dx.split_off(case.x.len());
        let dbeta = dgamma.split_off(case.gamma.len());
        Ok(LayerNormGrads { dx, dgamma, dbeta })
    }
}
