//! The learner's LayerNorm as an implementation of the contract.

use super::{Learner, continued, gradient_of, reversed, rows, run_back, run_back_twice, tensor};
use exercises::layernorm;
use exercises::prelude::{Const, Cpu, Trace};
use interfaces::layernorm::interface::*;
use interfaces::with_layernorm_sizes;

fn a_norm<const H: usize>(case: &LayerNormCase) -> layernorm::LayerNorm<H, Cpu> {
    let (gamma, beta) = (tensor(&case.gamma, (Const,)), tensor(&case.beta, (Const,)));
    layernorm::LayerNorm::new(gamma, beta, case.eps)
}

impl LayerNorm for Learner {
    fn forward_in(&self, manner: Manner, case: &LayerNormCase) -> Reply<Vec<f32>> {
        if self.may("forward").is_err() {
            self.may("backward")?; // differences of outputs
        }
        with_layernorm_sizes!(
            (case.shape[2],),
            |H| forward::<H>(manner, case),
            _ => Err(Refusal::not_compiled("this hidden size"))
        )
    }

    fn backward_in(
        &self,
        manner: Manner,
        case: &LayerNormCase,
        dy: &[f32],
    ) -> Reply<LayerNormGrads> {
        self.may("backward")?;
        with_layernorm_sizes!(
            (case.shape[2],),
            |H| backward::<H>(self.by_hand, manner, case, dy),
            _ => Err(Refusal::not_compiled("this hidden size"))
        )
    }
}

/// `forward_in`, of sizes in the type.
fn forward<const H: usize>(manner: Manner, case: &LayerNormCase) -> Reply<Vec<f32>> {
    let norm = a_norm::<H>(case);
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
fn backward<const H: usize>(
    by_hand: bool,
    manner: Manner,
    case: &LayerNormCase,
    dy: &[f32],
) -> Reply<LayerNormGrads> {
    let mut norm = a_norm::<H>(case);
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
        let (dx, dgamma, dbeta) = norm.backward(x, rows::<H>(dy, case.shape, manner));
        let (dgamma, dbeta) = (dgamma.as_vec(), dbeta.as_vec());
        return Ok(LayerNormGrads { dx: dx.as_vec(), dgamma, dbeta });
    }
    let y = || norm.forward(x.leaky_trace());
    let mut grads = match manner {
        Manner::Continued => run_back(norm.forward(continued(&x)), dy),
        Manner::UsedTwice => run_back_twice([y(), y()], dy),
        _ => run_back(y(), dy),
    };
    let dgamma = gradient_of(&mut grads, &norm.weight);
    let dbeta = gradient_of(&mut grads, &norm.bias);
    Ok(LayerNormGrads { dx: gradient_of(&mut grads, &x), dgamma, dbeta })
}
