//! The library as an implementation: plain values in, plain values out.
//!
//! The free functions have sizes at run time and are asked for all of them. The modules have sizes
//! in their types; they are asked for the sizes of the contract's menu.

mod absolute;
mod attention;
mod biases;
pub(crate) mod collectives;
mod embedding;
mod feedforward;
mod frequencies;
mod layernorm;
mod loss;
mod model;
mod norm;
mod parallel;
mod rope;
mod rotations;

use crate::implementations::Adapter;
use crate::support::*;
use contract::interface::with_axes_reversed;
use contract::interface::{Manner, Refusal, Reply};
use quadrivium::Error;
use quadrivium::position::Positions;
use quadrivium::tensor::*;

/// An adapter for each component of the contract's registry.
pub static ADAPTERS: &[Adapter<Library>] = &[
    norm::ADAPTER,
    embedding::ADAPTER,
    parallel::ADAPTER,
    rope::ADAPTER,
    layernorm::ADAPTER,
    attention::ADAPTER,
    feedforward::ADAPTER,
    loss::ADAPTER,
    model::ADAPTER,
    absolute::ADAPTER,
    biases::ADAPTER,
    frequencies::ADAPTER,
    rotations::ADAPTER,
    collectives::ADAPTER,
];

/// The library.
pub struct Library;

fn refused(error: Error) -> Refusal {
    Refusal::new(error)
}

/// The gradient of `of`; zeros if none reached it.
fn gradient<S: Shape>(grads: &mut Gradients<f32, Dev>, of: &Tensor<S, f32, Dev>) -> Vec<f32> {
    grads.try_alloc_for(of).unwrap();
    grads.get(of).as_vec()
}

/// `[b, s, h]` values, as a tensor that lies in memory as the manner says.
fn rows(values: &[f32], [b, s, h]: [usize; 3], manner: Manner) -> Rows {
    match manner {
        Manner::Permuted => {
            let turned = with_axes_reversed(values, &[b, s, h]);
            tensor(&turned, (h, s, b)).permute::<_, Axes3<2, 1, 0>>()
        }
        Manner::Broadcast => {
            tensor(&values[..s * h], (s, h)).broadcast_like::<_, Axis<0>>(&(b, s, h))
        }
        _ => tensor(values, (b, s, h)),
    }
}

/// The same of `[b, s, nh, hd]` values.
fn heads(
    [b, s, n, hd]: [usize; 4],
    values: &[f32],
    manner: Manner,
) -> Tensor<(usize, usize, usize, usize), f32, Dev> {
    match manner {
        Manner::Permuted => {
            let turned = with_axes_reversed(values, &[b, s, n, hd]);
            tensor(&turned, (hd, n, s, b)).permute::<_, Axes4<3, 2, 1, 0>>()
        }
        Manner::Broadcast => {
            tensor(&values[..s * n * hd], (s, n, hd)).broadcast_like::<_, Axis<0>>(&(b, s, n, hd))
        }
        _ => tensor(values, (b, s, n, hd)),
    }
}

/// `[b, s]` ids, likewise.
fn ids_in(values: &[usize], [b, s]: [usize; 2], manner: Manner) -> Ids {
    match manner {
        Manner::Permuted => {
            let turned: Vec<usize> = (0..s * b).map(|at| values[at % b * s + at / b]).collect();
            ids(&turned, (s, b)).permute::<_, Axes2<1, 0>>()
        }
        Manner::Broadcast => ids(&values[..s], (s,)).broadcast_like::<_, Axis<0>>(&(b, s)),
        _ => ids(values, (b, s)),
    }
}

/// The positions of rows of `s` tokens, likewise; of one row, if their number is that of no rows. Each row has its own.
fn positions(position_ids: &[usize], s: usize, manner: Manner) -> Positions {
    let n = position_ids.len();
    let shape = if n % s == 0 { [n / s, s] } else { [1, n] };
    (&ids_in(position_ids, shape, leaf_manner(manner))).into()
}

type Rows = Tensor<(usize, usize, usize), f32, Dev>;
type Ids = Tensor<(usize, usize), usize, Dev>;
type Traced<S> = Tensor<S, f32, Dev, OwnedTape<f32, Dev>>;

/// What a traced call is given: a leaf, or what was computed from it on the same tape.
fn traced<S: Shape>(leaf: &Tensor<S, f32, Dev>, manner: Manner) -> Traced<S> {
    if manner == Manner::Continued { leaf.leaky_trace() * 1.0 } else { leaf.leaky_trace() }
}

/// The tensor of which a gradient is asked. That of a broadcast one would be the gradient of one row.
fn leaf_manner(manner: Manner) -> Manner {
    if manner == Manner::Broadcast { Manner::Plain } else { manner }
}

/// The gradients of what `call` gives, when `dy` is the loss's gradient with respect to it, in a manner:
/// after another call, or through two calls that share `dy`.
fn run_back<S: Shape>(
    manner: Manner,
    dy: &[f32],
    mut call: impl FnMut() -> Reply<Traced<S>>,
) -> Reply<Gradients<f32, Dev>> {
    if let Manner::Again | Manner::Cloned = manner {
        backward(call()?, &dy.iter().rev().copied().collect::<Vec<_>>());
    }
    if manner != Manner::UsedTwice {
        return Ok(backward(call()?, dy));
    }
    let mut part = |odd: usize| {
        let part = |(i, &dy): (usize, &f32)| if i % 2 == odd { dy } else { 0.0 };
        let y = call()?;
        let dy = tensor(&dy.iter().enumerate().map(part).collect::<Vec<_>>(), *y.shape());
        Ok(y * dy)
    };
    Ok((part(0)? + part(1)?).sum::<Rank0, _>().backward())
}
