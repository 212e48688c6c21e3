//! The learner's GroupRMSNorm as a party to the contract.

use super::{Learner, Seat, gradient_of, run_back, tensor};
use contract::component::Component;
use contract::grade::{by_bugs, by_invariants};
use contract::norm::party::*;
use contract::with_norm_sizes;
use exercises::norm;
use exercises::prelude::{Const, Cpu, Tensor, TensorFromVec, Trace, f16};

/// The seat of GroupRMSNorm.
pub const SEAT: Seat = Seat {
    slug: <dyn GroupRmsNorm>::SLUG,
    invariants: |task, learner, run| by_invariants::<dyn GroupRmsNorm>(task, learner, run),
    property: |task| by_bugs::<dyn GroupRmsNorm>(task, &|party| norm::property(party)),
};

fn a_norm<const H: usize, const GZ: usize>(case: &NormCase) -> norm::GroupRmsNorm<H, GZ, Cpu> {
    norm::GroupRmsNorm::new(tensor(&case.gamma, (Const,)), case.eps)
}

fn norm_input<const H: usize>(
    case: &NormCase,
    values: &[f32],
) -> Tensor<(usize, usize, Const<H>), f32, Cpu> {
    tensor(values, (case.shape[0], case.shape[1], Const::<H>))
}

impl GroupRmsNorm for Learner {
    fn initial_gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Reply<Vec<f32>> {
        self.may("initial_gamma")?;
        Ok(norm::uniform(hidden_size, range.0, range.1, seed))
    }

    fn forward(&self, case: &NormCase) -> Reply<Vec<f32>> {
        if self.may("forward").is_err() {
            self.may("backward")?; // differences of outputs
        }
        with_norm_sizes!((case.shape[2], case.group_size), |H, GZ| {
            let y = a_norm::<H, GZ>(case).forward(norm_input::<H>(case, &case.x));
            Ok(y.as_vec())
        }, _ => Err(Refusal::not_compiled("this group size")))
    }

    fn backward(&self, case: &NormCase, dy: &[f32]) -> Reply<NormGrads> {
        self.may("backward")?;
        with_norm_sizes!((case.shape[2], case.group_size), |H, GZ| {
            let norm = a_norm::<H, GZ>(case);
            let x = norm_input::<H>(case, &case.x);
            if self.by_hand {
                let (dx, dgamma) = norm.backward(x, norm_input::<H>(case, dy));
                return Ok(NormGrads { dx: dx.as_vec(), dgamma: dgamma.as_vec() });
            }
            let mut grads = run_back(norm.forward(x.leaky_trace()), dy);
            let dgamma = gradient_of(&mut grads, &norm.weight);
            Ok(NormGrads { dx: gradient_of(&mut grads, &x), dgamma })
        }, _ => Err(Refusal::not_compiled("this group size")))
    }

    fn forward_half(&self, case: &NormCase) -> Reply<Vec<f32>> {
        self.may("forward_half")?;
        with_norm_sizes!((case.shape[2], case.group_size), |H, GZ| {
            let x: Vec<f16> = case.x.iter().map(|&x| f16::from_f32(x)).collect();
            let shape = (case.shape[0], case.shape[1], Const::<H>);
            let x: Tensor<_, f16, Cpu> = Cpu::default().tensor_from_vec(x, shape);
            let y = a_norm::<H, GZ>(case).forward_half(x);
            Ok(y.as_vec().into_iter().map(f16::to_f32).collect())
        }, _ => Err(Refusal::not_compiled("this group size")))
    }
}
