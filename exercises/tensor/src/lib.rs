//! What the exercises see of dfdx: the library's own door, with a tape that can be closed.
//!
//! Some tasks ask for a gradient by hand. A judge sees values, and not how they came; dfdx's tape has the same ones. So
//! in the process of such a task, nothing runs the tape. `Backward` here looks at that first. It stands in the place of dfdx's
//! trait, and `Tape` in the place of the one by which a tape of one's own could be written: dfdx's are not to be named.

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
    /// The device has no memory left, or the task asks for a gradient by hand.
    fn backward(self) -> Gradients<E, D>;

    /// The same.
    ///
    /// # Errors
    /// What the device reports.
    ///
    /// # Panics
    /// The task asks for a gradient by hand.
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

/// From now on no tape of this process is run. There is no way back.
#[doc(hidden)]
pub fn close_tape() {
    CLOSED.store(true, Ordering::Relaxed);
}

#[track_caller]
fn must_be_open() {
    assert!(
        !CLOSED.load(Ordering::Relaxed),
        "`backward` runs dfdx's tape, and this task asks for the gradient's formula, by hand"
    );
}
