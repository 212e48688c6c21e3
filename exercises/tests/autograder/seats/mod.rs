//! The learner's code as parties to the contract: plain values in, plain values out. One file a component.
//!
//! Modules with sizes in their types exist for the sizes of the contract's menus. Nothing here knows how it is judged.

// A property is written for every lifetime of its party; a closure fits, the function itself does not.
#![allow(clippy::redundant_closure)]

mod absolute;
mod attention;
mod biases;
mod collectives;
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

use crate::seat::Seat;
use exercises::prelude::{
    Axes2, Axes3, Axis, Backward, BroadcastTo, Const, Cpu, Gradients, HasShape, OwnedTape,
    PermuteTo, Rank0, Shape, SplitTape, SumTo, Tensor, TensorFromVec, Trace,
};
use seams::seam::{Manner, Refusal, Reply};

/// A seat for each component of the contract's registry. One that is missing fails its tasks, by name.
pub static SEATS: &[Seat] = &[
    norm::SEAT,
    embedding::SEAT,
    parallel::SEAT,
    rope::SEAT,
    layernorm::SEAT,
    attention::SEAT,
    feedforward::SEAT,
    loss::SEAT,
    model::SEAT,
    absolute::SEAT,
    biases::SEAT,
    frequencies::SEAT,
    rotations::SEAT,
    collectives::SEAT,
];

/// The learner's code, as far as one task goes.
///
/// Calls that the task is not about are refused before they reach the code: other tasks may be
/// unfinished, and an endless loop in one must not stop another.
pub struct Learner {
    /// The calls that may reach the code.
    pub calls: &'static [&'static str],
    /// Whether gradients come from the functions that are written by hand, or from the tape.
    pub by_hand: bool,
}

impl Learner {
    fn may(&self, call: &str) -> Reply<()> {
        let named = |allowed: &&'static str| allowed.split(' ').next() == Some(call);
        if self.calls.iter().any(named) {
            return Ok(());
        }
        let words = format!(
            "`{call}` belongs to another task. This is a mistake of the course, in `calls` of its tasks.rs"
        );
        Err(Refusal::not_asked(words))
    }
}

fn tensor<S: Shape>(values: &[f32], shape: S) -> Tensor<S, f32, Cpu> {
    Cpu::default().tensor_from_vec(values.to_vec(), shape)
}

/// `[b, s, h]` values, as a tensor that lies in memory as the manner says.
fn rows<const H: usize>(
    values: &[f32],
    [b, s, _]: [usize; 3],
    manner: Manner,
) -> Tensor<(usize, usize, Const<H>), f32, Cpu> {
    match manner {
        Manner::Permuted => {
            let at = |k| move |j| (0..b).map(move |i| (i * s + j) * H + k);
            let turned = (0..H).flat_map(|k| (0..s).flat_map(at(k)));
            let turned: Vec<f32> = turned.map(|at| values[at]).collect();
            tensor(&turned, (Const::<H>, s, b)).permute::<_, Axes3<2, 1, 0>>()
        }
        Manner::Broadcast => {
            let row = tensor(&values[..s * H], (s, Const::<H>));
            row.broadcast_like::<_, Axis<0>>(&(b, s, Const::<H>))
        }
        _ => tensor(values, (b, s, Const::<H>)),
    }
}

/// Another input of the same size, for a call before the one that is asked.
fn reversed<E: Copy>(values: &[E]) -> Vec<E> {
    values.iter().rev().copied().collect()
}

/// Ids for a call before the one that is asked: no call refuses them.
fn other_ids(ids: &[usize], vocab_size: usize) -> Vec<usize> {
    ids.iter().rev().map(|id| id % vocab_size).collect()
}

/// [`run_back`] through two results of the same tensor: each gets every second element of `dy`.
fn run_back_twice<S: Shape>(
    [first, second]: [Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>>; 2],
    dy: &[f32],
) -> Gradients<f32, Cpu> {
    let part = |odd: usize| -> Vec<f32> {
        dy.iter().enumerate().map(|(i, &dy)| if i % 2 == odd { dy } else { 0.0 }).collect()
    };
    let first = first * tensor(&part(0), *second.shape());
    let shape = *second.shape();
    let second = second * tensor(&part(1), shape);
    (first + second).sum::<Rank0, _>().backward()
}

/// What was computed from a leaf, on its tape: a call that is given it goes on where that ended.
fn continued<S: Shape>(leaf: &Tensor<S, f32, Cpu>) -> Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>> {
    leaf.leaky_trace() * 1.0
}

/// [`run_back`] through a lookup whose ids came with a tape that has an operation on it. A tape that is lost
/// takes that operation's gradient with it.
fn run_back_continued<S: Shape>(
    dy: &[f32],
    lookup: impl FnOnce(OwnedTape<f32, Cpu>) -> Reply<Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>>>,
) -> Reply<Gradients<f32, Cpu>> {
    let leaf: Tensor<Rank0, f32, Cpu> = tensor(&[0.5], ());
    let (before, tape) = continued(&leaf).split_tape();
    let y = lookup(tape)?;
    let dy = tensor(dy, *y.shape());
    let mut grads = ((y * dy).sum::<Rank0, _>() + before).backward();
    if gradient_of(&mut grads, &leaf) != [1.0] {
        let words = "the ids came with a tape, and what was on it has no gradient any more";
        return Err(Refusal::new(words));
    }
    Ok(grads)
}

/// The gradients of a traced result, when `dy` is the loss's gradient with respect to it.
fn run_back<S: Shape>(
    y: Tensor<S, f32, Cpu, OwnedTape<f32, Cpu>>,
    dy: &[f32],
) -> Gradients<f32, Cpu> {
    let dy = tensor(dy, *y.shape());
    (y * dy).sum::<Rank0, _>().backward()
}

/// The gradient of a tensor; zeros if none reached it.
fn gradient_of<S: Shape>(grads: &mut Gradients<f32, Cpu>, of: &Tensor<S, f32, Cpu>) -> Vec<f32> {
    grads.try_alloc_for(of).expect("the CPU has memory for a small gradient");
    grads.get(of).as_vec()
}

fn ids_tensor(
    ids: &[usize],
    [b, s]: [usize; 2],
    manner: Manner,
) -> Tensor<(usize, usize), usize, Cpu> {
    let dev = Cpu::default();
    match manner {
        Manner::Permuted => {
            let turned: Vec<usize> = (0..s * b).map(|at| ids[at % b * s + at / b]).collect();
            dev.tensor_from_vec(turned, (s, b)).permute::<_, Axes2<1, 0>>()
        }
        Manner::Broadcast => {
            dev.tensor_from_vec(ids[..s].to_vec(), (s,)).broadcast_like::<_, Axis<0>>(&(b, s))
        }
        _ => dev.tensor_from_vec(ids.to_vec(), (b, s)),
    }
}
