//! The learner's SwiGLU as an implementation of the contract.

use super::{Learner, continued, gradient_of, reversed, rows, run_back, run_back_twice, tensor};
use exercises::feedforward;
use exercises::prelude::{Const, Cpu, Trace};
use interfaces::feedforward::interface::*;
use interfaces::with_feedforward_sizes;

fn a_network<const H: usize, const FF: usize>(
    case: &SwiGluCase,
) -> feedforward::SwiGlu<H, FF, Cpu> {
    feedforward::SwiGlu {
        gate: tensor(&case.gate, (Const, Const)),
        up: tensor(&case.up, (Const, Const)),
        down: tensor(&case.down, (Const, Const)),
    }
}

impl SwiGlu for Learner {
    fn size(&self, case: &SizeCase) -> Reply<usize> {
        self.may("size")?;
        let SizeCase { hidden_size, multiple_of, multiplier } = *case;
        Ok(feedforward::ffn_hidden_size(hidden_size, multiple_of, multiplier))
    }

    fn forward_in(&self, manner: Manner, case: &SwiGluCase) -> Reply<Vec<f32>> {
        self.may("forward")?;
        with_feedforward_sizes!(
            (case.shape[2], case.ffn_hidden_size),
            |H, FF| forward::<H, FF>(manner, case),
            _ => Err(Refusal::not_compiled("these sizes"))
        )
    }

    fn backward_in(&self, manner: Manner, case: &SwiGluCase, dy: &[f32]) -> Reply<SwiGluGrads> {
        self.may("backward")?;
        with_feedforward_sizes!(
            (case.shape[2], case.ffn_hidden_size),
            |H, FF| backward::<H, FF>(self.by_hand, manner, case, dy),
            _ => Err(Refusal::not_compiled("these sizes"))
        )
    }
}

/// From `a`, `c` and `dz` to the gradients of `a` and `c`.
type GateBackward<'a> = dyn Fn([&[f32]; 3]) -> (Vec<f32>, Vec<f32>) + 'a;

/// The learner's gradients of the gate.
fn gate<const FF: usize>(
    values: [&[f32]; 3],
    [b, s, _]: [usize; 3],
    manner: Manner,
) -> (Vec<f32>, Vec<f32>) {
    let [a, c, dz] = values.map(|values| rows::<FF>(values, [b, s, FF], manner));
    let (da, db) = feedforward::gate_backward(a, c, dz);
    (da.as_vec(), db.as_vec())
}

/// The gradients of the network, made of those of the gate, which are the learner's. What the matrices do is plain loops.
fn gradients_by_hand(
    case: &SwiGluCase,
    dy: &[f32],
    ff: usize,
    gate_backward: &GateBackward<'_>,
) -> SwiGluGrads {
    let SwiGluCase { shape, gate, up, down, x, .. } = case;
    let [b, s, h] = *shape;
    let inner = |n: usize, product: &dyn Fn(usize) -> f32| (0..n).map(product).sum::<f32>();
    let units = |of: &dyn Fn(usize, usize) -> f32| -> Vec<f32> {
        (0..b * s).flat_map(|t| (0..ff).map(move |k| of(t, k))).collect()
    };
    let a = units(&|t, k| inner(h, &|j| gate[k * h + j] * x[t * h + j]));
    let c = units(&|t, k| inner(h, &|j| up[k * h + j] * x[t * h + j]));
    let dz = units(&|t, k| inner(h, &|j| down[j * ff + k] * dy[t * h + j]));
    let (da, db) = gate_backward([&a, &c, &dz]);

    let silu = |a: f32| a / (1.0 + (-a).exp());
    let mut grads = SwiGluGrads {
        dx: Vec::with_capacity(x.len()),
        dgate: vec![0.0; ff * h],
        dup: vec![0.0; ff * h],
        ddown: vec![0.0; h * ff],
    };
    for (t, j) in (0..b * s).flat_map(|t| (0..h).map(move |j| (t, j))) {
        let back = |k: usize| gate[k * h + j] * da[t * ff + k] + up[k * h + j] * db[t * ff + k];
        grads.dx.push(inner(ff, &back));
        for k in 0..ff {
            let unit = t * ff + k;
            grads.dgate[k * h + j] += da[unit] * x[t * h + j];
            grads.dup[k * h + j] += db[unit] * x[t * h + j];
            grads.ddown[j * ff + k] += dy[t * h + j] * silu(a[unit]) * c[unit];
        }
    }
    grads
}

/// `forward_in`, of sizes in the type.
fn forward<const H: usize, const FF: usize>(manner: Manner, case: &SwiGluCase) -> Reply<Vec<f32>> {
    let network = a_network::<H, FF>(case);
    let x = rows::<H>(&case.x, case.shape, manner);
    let y = match manner {
        Manner::Traced => return Ok(network.forward(x.leaky_trace()).as_vec()),
        Manner::Again | Manner::Cloned => {
            network.forward(rows::<H>(&reversed(&case.x), case.shape, Manner::Plain));
            let cloned = manner == Manner::Cloned;
            if cloned { network.clone().forward(x) } else { network.forward(x) }
        }
        _ => network.forward(x),
    };
    Ok(y.as_vec())
}

/// `backward_in`, of sizes in the type.
fn backward<const H: usize, const FF: usize>(
    by_hand: bool,
    manner: Manner,
    case: &SwiGluCase,
    dy: &[f32],
) -> Reply<SwiGluGrads> {
    if by_hand {
        let of_gate = |manner| move |values: [&[f32]; 3]| gate::<FF>(values, case.shape, manner);
        if let Manner::Again | Manner::Cloned = manner {
            let other = SwiGluCase { x: reversed(&case.x), ..case.clone() };
            gradients_by_hand(&other, &reversed(dy), FF, &of_gate(Manner::Plain));
        }
        return Ok(gradients_by_hand(case, dy, FF, &of_gate(manner)));
    }
    let mut network = a_network::<H, FF>(case);
    // The gradient of a broadcast tensor is that of one row.
    let manner = if manner == Manner::Broadcast { Manner::Plain } else { manner };
    let x = rows::<H>(&case.x, case.shape, manner);
    if let Manner::Again | Manner::Cloned = manner {
        let other = rows::<H>(&reversed(&case.x), case.shape, Manner::Plain);
        run_back(network.forward(other.leaky_trace()), &reversed(dy));
        if manner == Manner::Cloned {
            network = network.clone();
        }
    }
    let y = || network.forward(x.leaky_trace());
    let mut grads = match manner {
        Manner::Continued => run_back(network.forward(continued(&x)), dy),
        Manner::UsedTwice => run_back_twice([y(), y()], dy),
        _ => run_back(y(), dy),
    };
    Ok(SwiGluGrads {
        dx: gradient_of(&mut grads, &x),
        dgate: gradient_of(&mut grads, &network.gate),
        dup: gradient_of(&mut grads, &network.up),
        ddown: gradient_of(&mut grads, &network.down),
    })
}
