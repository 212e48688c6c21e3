//! The learner's LayerNorm as a party to the contract.

use super::{Learner, Seat, gradient_of, run_back, tensor};
use contract::component::Component;
use contract::grade::{by_bugs, by_invariants};
use contract::layernorm::party::*;
use contract::with_layernorm_sizes;
use exercises::layernorm;
use exercises::prelude::{Const, Cpu, Tensor, Trace};

/// The seat of LayerNorm.
pub const SEAT: Seat = Seat {
    slug: <dyn LayerNorm>::SLUG,
    invariants: |task, learner, run| by_invariants::<dyn LayerNorm>(task, learner, run),
    property: |task| by_bugs::<dyn LayerNorm>(task, &|party| layernorm::property(party)),
};

fn a_norm<const H: usize>(case: &LayerNormCase) -> layernorm::LayerNorm<H, Cpu> {
    let (gamma, beta) = (tensor(&case.gamma, (Const,)), tensor(&case.beta, (Const,)));
    layernorm::LayerNorm::new(gamma, beta, case.eps)
}

fn input<const H: usize>(
    case: &LayerNormCase,
    values: &[f32],
) -> Tensor<(usize, usize, Const<H>), f32, Cpu> {
    tensor(values, (case.shape[0], case.shape[1], Const::<H>))
}

impl LayerNorm for Learner {
    fn forward(&self, case: &LayerNormCase) -> Reply<Vec<f32>> {
        if self.may("forward").is_err() {
            self.may("backward")?; // differences of outputs
        }
        with_layernorm_sizes!((case.shape[2],), |H| {
            let y = a_norm::<H>(case).forward(input::<H>(case, &case.x));
            Ok(y.as_vec())
        }, _ => Err(Refusal::not_compiled("this hidden size")))
    }

    fn backward(&self, case: &LayerNormCase, dy: &[f32]) -> Reply<LayerNormGrads> {
        self.may("backward")?;
        with_layernorm_sizes!((case.shape[2],), |H| {
            let norm = a_norm::<H>(case);
            let x = input::<H>(case, &case.x);
            if self.by_hand {
                let (dx, dgamma, dbeta) = norm.backward(x, input::<H>(case, dy));
                let (dgamma, dbeta) = (dgamma.as_vec(), dbeta.as_vec());
                return Ok(LayerNormGrads { dx: dx.as_vec(), dgamma, dbeta });
            }
            let mut grads = run_back(norm.forward(x.leaky_trace()), dy);
            let dgamma = gradient_of(&mut grads, &norm.weight);
            let dbeta = gradient_of(&mut grads, &norm.bias);
            Ok(LayerNormGrads { dx: gradient_of(&mut grads, &x), dgamma, dbeta })
        }, _ => Err(Refusal::not_compiled("this hidden size")))
    }
}
