//! GroupRMSNorm of PyTorch.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;

fn norm_question(call: &str, case: &NormCase) -> Value {
    let NormCase { shape, group_size, eps, gamma, x } = case;
    let (gamma, x) = (plain(gamma), plain(x));
    json!({"call": call, "shape": shape, "group_size": group_size, "eps": eps, "gamma": gamma, "x": x})
}

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(GroupRmsNorm, &[]);

impl GroupRmsNorm for PyTorch {
    fn initial_gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Reply<Vec<f32>> {
        let call = "norm.initial_gamma";
        self.ask_f32(
            json!({"call": call, "hidden_size": hidden_size, "range": range, "seed": seed}),
        )
    }

    fn forward_in(&self, _: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        self.ask_f32(norm_question("norm.forward", case))
    }

    fn backward_in(&self, _: Manner, case: &NormCase, dy: &[f32]) -> Reply<NormGrads> {
        let mut dx = self.ask_f32(with_dy(norm_question("norm.backward", case), dy))?;
        let dgamma = dx.split_off(case.x.len());
        Ok(NormGrads { dx, dgamma })
    }

    fn forward_half_in(&self, _: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        self.ask_f32(norm_question("norm.forward_half", case))
    }
}
