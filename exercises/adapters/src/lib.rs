//! The learner's code as implementations of the contract: plain values in, plain values out. One file a component.
//!
//! Modules with sizes in their types exist for the sizes of the contract's menus. A menu's macro repeats what it is given for each
//! size, so that is one call: what is called is checked once by the compiler, which learners wait for. Nothing here knows how it
//! is judged.

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

use exercises::prelude::shapes::*;
use exercises::prelude::{
    Axes2, Axes3, Axes4, Axis, Backward, BroadcastTo, Const, Cpu, Gradients, OwnedTape, PermuteTo,
    Rank0, Shape, SplitTape, SumTo, Tensor, TensorFromVec, Trace,
};
use interfaces::interface::{Manner, Refusal, Reply, with_axes_reversed};

/// Hands the components of the contract's registry to a macro of the judging program: slug, interface, and the
/// learner's own invariant, if there is a task about one. A component that is missing fails its tasks, by name.
#[macro_export]
macro_rules! components {
    ($given_to:ident) => {
        $given_to! {
            embedding: VocabEmbedding, Some(|shown| exercises::embedding::property(shown));
            norm: GroupRmsNorm, Some(|shown| exercises::norm::property(shown));
            layernorm: LayerNorm, Some(|shown| exercises::layernorm::property(shown));
            parallel: ParallelVocabEmbedding, Some(|shown| exercises::parallel::property(shown));
            rope: NtkAwareRope, Some(|shown| exercises::rope::property(shown));
            attention: GroupedQueryAttention, Some(|shown| exercises::attention::property(shown));
            feedforward: SwiGlu, None;
            loss: CrossEntropy, None;
            model: Llama, None;
            absolute: AbsolutePositions, Some(|shown| exercises::absolute::property(shown));
            biases: ScoreBiases, None;
            frequencies: StretchedRope, None;
            rotations: Rotations, Some(|shown| exercises::rotations::property(shown));
            collectives: Collectives, None;
        }
    };
}

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
        Manner::Permuted => tensor(&with_axes_reversed(values, &[b, s, H]), (Const::<H>, s, b))
            .permute::<_, Axes3<2, 1, 0>>(),
        Manner::Broadcast => {
            let row = tensor(&values[..s * H], (s, Const::<H>));
            row.broadcast_like::<_, Axis<0>>(&(b, s, Const::<H>))
        }
        _ => tensor(values, (b, s, Const::<H>)),
    }
}

/// The same, with a width that no type has.
fn tokens(
    values: &[f32],
    [b, s, h]: [usize; 3],
    manner: Manner,
) -> Tensor<(usize, usize, usize), f32, Cpu> {
    match manner {
        Manner::Permuted => tensor(&with_axes_reversed(values, &[b, s, h]), (h, s, b))
            .permute::<_, Axes3<2, 1, 0>>(),
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
) -> Tensor<(usize, usize, usize, usize), f32, Cpu> {
    match manner {
        Manner::Permuted => tensor(&with_axes_reversed(values, &[b, s, n, hd]), (hd, n, s, b))
            .permute::<_, Axes4<3, 2, 1, 0>>(),
        Manner::Broadcast => {
            let row = tensor(&values[..s * n * hd], (s, n, hd));
            row.broadcast_like::<_, Axis<0>>(&(b, s, n, hd))
        }
        _ => tensor(values, (b, s, n, hd)),
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
    let shape = *second.shape();
    let first = first * tensor(&every_second(dy, 0), shape);
    let second = second * tensor(&every_second(dy, 1), shape);
    (first + second).sum::<Rank0, _>().backward()
}

/// The elements at even or odd places; 0 at the others.
fn every_second(dy: &[f32], odd: usize) -> Vec<f32> {
    dy.iter().enumerate().map(|(i, &dy)| if i % 2 == odd { dy } else { 0.0 }).collect()
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
        Manner::Permuted => dev
            .tensor_from_vec(with_axes_reversed(ids, &[b, s]), (s, b))
            .permute::<_, Axes2<1, 0>>(),
        Manner::Broadcast => {
            dev.tensor_from_vec(ids[..s].to_vec(), (s,)).broadcast_like::<_, Axis<0>>(&(b, s))
        }
        _ => dev.tensor_from_vec(ids.to_vec(), (b, s)),
    }
}
