//! What the exercises see of dfdx: the library's own door, with a tape that can be closed.
//!
//! In the process of a task that asks for a gradient by hand, [`Backward`] refuses to run the tape of a loss. It stands in the
//! place of dfdx's trait, and [`Tape`] in the place of the one by which a tape of one's own could be written. Those of dfdx
//! have no name here.

pub use quadrivium_tensor::*;

use std::sync::atomic::{AtomicBool, Ordering};

/// All of dfdx's operations, as functions and for bounds that name one.
pub mod tensor_ops {
    pub use super::Backward;
    pub use quadrivium_tensor::tensor_ops::*;
}

/// Runs the tape of a loss.
pub trait Backward<E, D: Storage<E>>: HasErr {
    /// The gradients of the loss.
    ///
    /// # Panics
    /// The device has no memory left, or the tape is closed.
    fn backward(self) -> Gradients<E, D>;

    /// The same.
    ///
    /// # Errors
    /// What the device reports.
    ///
    /// # Panics
    /// The tape is closed.
    fn try_backward(self) -> Result<Gradients<E, D>, Self::Err>;
}

impl<E, D: Storage<E>, L: quadrivium_tensor::Backward<E, D>> Backward<E, D> for L {
    #[track_caller]
    fn backward(self) -> Gradients<E, D> {
        must_be_open();
        quadrivium_tensor::Backward::backward(self)
    }

    #[track_caller]
    fn try_backward(self) -> Result<Gradients<E, D>, Self::Err> {
        must_be_open();
        quadrivium_tensor::Backward::try_backward(self)
    }
}

/// A tape, or none: dfdx's two types of them.
pub trait Tape<E, D: Storage<E>>: quadrivium_tensor::Tape<E, D> {}

impl<E, D: Storage<E>, T: quadrivium_tensor::Tape<E, D>> Tape<E, D> for T {}

static CLOSED: AtomicBool = AtomicBool::new(false);

/// From now on [`Backward`] refuses, in all of this process. Safe code can't open it again.
#[doc(hidden)]
pub fn close_tape() {
    CLOSED.store(true, Ordering::Relaxed);
}

#[track_caller]
fn must_be_open() {
    assert!(
        !CLOSED.load(Ordering::Relaxed),
        "`backward` runs dfdx's tape, and this task is to be solved without it: compute the gradient by its formula"
    );
}
