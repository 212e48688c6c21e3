//! The learner's GroupRMSNorm as an implementation of the contract.

use super::{Learner, continued, gradient_of, reversed, rows, run_back, run_back_twice, tensor};
use exercises::norm;
use exercises::prelude::{Const, Cpu, Trace, f16};
use interfaces::norm::interface::*;
use interfaces::with_norm_sizes;

fn a_norm<const H: usize, const GZ: usize>(case: &NormCase) -> norm::GroupRmsNorm<H, GZ, Cpu> {
    norm::GroupRmsNorm::new(tensor(&case.gamma, (Const,)), case.eps)
}

impl GroupRmsNorm for Learner {
    fn initial_gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Reply<Vec<f32>> {
        self.may("initial_gamma")?;
        Ok(norm::uniform(hidden_size, range.0, range.1, seed))
    }

    fn forward_in(&self, manner: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        if self.may("forward").is_err() {
            self.may("backward")?; // differences of outputs
        }
        with_norm_sizes!(
            (case.shape[2], case.group_size),
            |H, GZ| forward::<H, GZ>(manner, case),
            _ => Err(Refusal::not_compiled("this group size"))
        )
    }

    fn backward_in(&self, manner: Manner, case: &NormCase, dy: &[f32]) -> Reply<NormGrads> {
        self.may("backward")?;
        with_norm_sizes!(
            (case.shape[2], case.group_size),
            |H, GZ| backward::<H, GZ>(self.by_hand, manner, case, dy),
            _ => Err(Refusal::not_compiled("this group size"))
        )
    }

    fn forward_half_in(&self, manner: Manner, case: &NormCase) -> Reply<Vec<f32>> {
        self.may("forward_half")?;
        with_norm_sizes!(
            (case.shape[2], case.group_size),
            |H, GZ| forward_half::<H, GZ>(manner, case),
            _ => Err(Refusal::not_compiled("this group size"))
        )
    }
}

/// `forward_in`, of sizes in the type.
fn forward<const H: usize, const GZ: usize>(manner: Manner, case: &NormCase) -> Reply<Vec<f32>> {
    let norm = a_norm::<H, GZ>(case);
    let x = rows::<H>(&case.x, case.shape, manner);
    let y = match manner {
        Manner::Traced => return Ok(norm.forward(x.leaky_trace()).as_vec()),
        Manner::Again | Manner::Cloned => {
            norm.forward(rows::<H>(&reversed(&case.x), case.shape, Manner::Plain));
            if manner == Manner::Again { norm.forward(x) } else { norm.clone().forward(x) }
        }
        _ => norm.forward(x),
    };
    Ok(y.as_vec())
}

/// `backward_in`, of sizes in the type.
fn backward<const H: usize, const GZ: usize>(
    by_hand: bool,
    manner: Manner,
    case: &NormCase,
    dy: &[f32],
) -> Reply<NormGrads> {
    let mut norm = a_norm::<H, GZ>(case);
    // The gradient of a broadcast tensor is that of one row. By hand, none is broadcast itself.
    let plain = manner == Manner::Broadcast && !by_hand;
    let manner = if plain { Manner::Plain } else { manner };
    let x = rows::<H>(&case.x, case.shape, manner);
    if let Manner::Again | Manner::Cloned = manner {
        let (x, dy) = (reversed(&case.x), reversed(dy));
        let x = rows::<H>(&x, case.shape, Manner::Plain);
        if by_hand {
            norm.backward(x, rows::<H>(&dy, case.shape, Manner::Plain));
        } else {
            run_back(norm.forward(x.leaky_trace()), &dy);
        }
        if manner == Manner::Cloned {
            norm = norm.clone();
        }
    }
    if by_hand {
        let (dx, dgamma) = norm.backward(x, rows::<H>(dy, case.shape, manner));
        return Ok(NormGrads { dx: dx.as_vec(), dgamma: dgamma.as_vec() });
    }
    let y = || norm.forward(x.leaky_trace());
    let mut grads = match manner {
        Manner::Continued => run_back(norm.forward(continued(&x)), dy),
        Manner::UsedTwice => run_back_twice([y(), y()], dy),
        _ => run_back(y(), dy),
    };
    let dgamma = gradient_of(&mut grads, &norm.weight);
    Ok(NormGrads { dx: gradient_of(&mut grads, &x), dgamma })
}

/// `forward_half_in`, of sizes in the type.
fn forward_half<const H: usize, const GZ: usize>(
    manner: Manner,
    case: &NormCase,
) -> Reply<Vec<f32>> {
    let mut norm = a_norm::<H, GZ>(case);
    // The values are values of f16.
    let half = |x: &[f32], manner| rows::<H>(x, case.shape, manner).to_dtype::<f16>();
    if let Manner::Again | Manner::Cloned = manner {
        norm.forward_half(half(&reversed(&case.x), Manner::Plain));
    }
    if manner == Manner::Cloned {
        norm = norm.clone();
    }
    let y = norm.forward_half(half(&case.x, manner));
    Ok(y.as_vec().into_iter().map(f16::to_f32).collect())
}
