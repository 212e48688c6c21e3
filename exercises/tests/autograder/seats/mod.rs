//! The learner's code as parties to the contract: plain values in, plain values out. One file a component.
//!
//! Modules with sizes in their types exist for the sizes of the contract's menus.

// A property is written for every lifetime of its party; a closure fits, the function itself does not.
#![allow(clippy::redundant_closure)]

mod embedding;
mod layernorm;
mod norm;
mod parallel;
mod rope;

use contract::grade::Grade;
use contract::run::Run;
use contract::seam::{Refusal, Reply};
use contract::task::Task;
use exercises::prelude::{
    Backward, Cpu, Gradients, HasShape, OwnedTape, Rank0, Shape, SumTo, Tensor, TensorFromVec,
};

/// How the tasks of one component are graded.
pub struct Seat {
    /// The component.
    pub slug: &'static str,
    /// A task that is graded by invariants.
    pub invariants: fn(&Task, &Learner, &Run) -> Grade,
    /// A task about a property.
    pub property: fn(&Task) -> Grade,
}

/// A seat for each component of the contract's registry. One that is missing fails its tasks, by name.
pub static SEATS: &[Seat] =
    &[norm::SEAT, embedding::SEAT, parallel::SEAT, rope::SEAT, layernorm::SEAT];

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

fn ids_tensor(ids: &[usize], [b, s]: [usize; 2]) -> Tensor<(usize, usize), usize, Cpu> {
    Cpu::default().tensor_from_vec(ids.to_vec(), (b, s))
}
