//! What the exercises see of dfdx: all that is listed here, and nothing else.
//!
//! dfdx trusts the traits of its shapes, its devices and its tapes. A dimension that says another size each time it is asked makes
//! a product of matrices read and write any memory, in code that is safe; so does a gradient that is exchanged for a shorter
//! one. Here these traits can be named in bounds and can't be implemented: each is a trait of our own for whatever has dfdx's, whose own
//! has no name. What reads or writes files has none either.
//!
//! In the process of a task that asks for a gradient by hand, [`Backward`] refuses to run the tape of a loss.

pub use quadrivium_tensor::{
    AsArray, AutoDevice, BroadcastTo, ChooseFrom, CopySlice, Cpu, CpuError, Device, GatherTo,
    HasErr, LogSumExpTo, MaxTo, MeanTo, Merge, MinTo, NoneTape, OnesTensor, OwnedTape, PermuteTo,
    PutTape, RealizeTo, ReshapeTo, Roll, SampleTensor, SelectTo, SplitTape, StddevTo, SumTo,
    Tensor, TensorFrom, TensorFromVec, TriangleTensor, TryAdd, TryConcatAlong, TryDiv, TryMatMul,
    TryMul, TryStack, TrySub, VarTo, WithEmptyTape, ZerosTensor, f16,
};
pub use shapes::*;

use quadrivium_tensor as dfdx;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shapes, their dimensions and their axes.
pub mod shapes {
    use super::dfdx;
    pub use dfdx::{
        Axes2, Axes3, Axes4, Axes5, Axes6, Axis, Const, Product, Quotient, Rank0, Rank1, Rank2,
        Rank3, Rank4, Rank5, Rank6,
    };
    // Their methods, without their names.
    pub use dfdx::{ConstDim as _, ConstShape as _, Dim as _, HasShape as _, Shape as _};

    /// A trait of dfdx's for bounds: whatever has it has this one, and nothing else can.
    macro_rules! bounds {
        ($($(#[$about:meta])* $name:ident$(<$($of:ident),+>)?;)+) => {$(
            $(#[$about])*
            pub trait $name$(<$($of),+>)?: dfdx::$name$(<$($of),+>)? {}

            impl<$($($of,)+)? X: dfdx::$name$(<$($of),+>)?> $name$(<$($of),+>)? for X {}
        )+};
    }
    bounds! {
        /// One dimension of a shape.
        Dim;
        /// One dimension, known to the compiler.
        ConstDim;
        /// A tuple of dimensions.
        Shape;
        /// A tuple of dimensions that are all known to the compiler.
        ConstShape;
        /// What has a shape: a tensor, or a shape itself.
        HasShape;
        /// One axis or several.
        Axes;
        /// A shape that has these axes.
        HasAxes<Ax>;
        /// A shape that can be reduced along these axes.
        ReduceShape<Ax>;
        /// A shape that is `S` after it was reduced along these axes.
        ReduceShapeTo<S, Ax>;
        /// A type of the elements of a tensor.
        Unit;
        /// A type of numbers that a tensor computes with.
        Dtype;
        /// `f32` and `f64`, and `f16` where the library has it.
        Float;
        /// What keeps the elements of a tensor.
        Storage<E>;
    }
}

/// Operations that are named now and then. Most are methods of [`Tensor`].
pub mod tensor_ops {
    pub use super::{
        Backward, BroadcastTo, ChooseFrom, Device, GatherTo, LogSumExpTo, MaxTo, MeanTo, MinTo,
        PermuteTo, RealizeTo, ReshapeTo, Roll, SelectTo, StddevTo, SumTo, TryAdd, TryConcatAlong,
        TryDiv, TryMatMul, TryMul, TryStack, TrySub, VarTo,
    };
    pub use quadrivium_tensor::tensor_ops::{
        TryEq, TryGe, TryGt, TryLe, TryLt, TryNe, bool_and, bool_not, bool_or, bool_xor,
        log_softmax, maximum, minimum, softmax,
    };
}

/// Gradients of a loss, by tensor.
///
/// dfdx's lets its buffers be exchanged, and writes past the end of one that is too short.
#[derive(Debug, Clone)]
pub struct Gradients<E, D: Storage<E>>(dfdx::Gradients<E, D>);

impl<E, D: Storage<E>> Gradients<E, D> {
    /// None yet.
    pub fn leaky() -> Self {
        Self(dfdx::Gradients::leaky())
    }

    /// The gradient with respect to `t`.
    ///
    /// # Panics
    /// There is none.
    pub fn get<S: Shape, T>(&self, t: &Tensor<S, E, D, T>) -> Tensor<S, E, D> {
        self.0.get(t)
    }

    /// Zeros for `t`, if there is no gradient with respect to it.
    ///
    /// # Errors
    /// What the device reports.
    pub fn try_alloc_for<S: Shape, T>(&mut self, t: &Tensor<S, E, D, T>) -> Result<(), D::Err> {
        self.0.try_alloc_for(t)
    }
}

/// Puts a gradient of one's own on the tape of `y`.
///
/// When the tape runs backward, `backward` receives `dy`, the gradient of the loss with respect to `y`, and hands on what it makes
/// of it with [`add_gradient`].
pub fn on_backward<S: Shape, F: Float, D: Device<F>, T: Tape<F, D>>(
    tape: &mut T,
    y: &Tensor<S, F, D>,
    backward: impl FnOnce(Tensor<S, F, D>, &mut Gradients<F, D>) -> Result<(), D::Err> + 'static,
) {
    dfdx::on_backward(tape, y, move |dy, grads| {
        let mut own = Gradients(std::mem::replace(grads, dfdx::Gradients::leaky()));
        let done = backward(dy, &mut own);
        *grads = own.0;
        done
    });
}

/// Adds `dx` to the gradient of `x`. `x` must be contiguous.
///
/// # Errors
/// What the device reports.
pub fn add_gradient<S: Shape, F: Float, D: Device<F>>(
    grads: &mut Gradients<F, D>,
    x: &Tensor<S, F, D>,
    dx: Tensor<S, F, D>,
) -> Result<(), D::Err> {
    dfdx::add_gradient(&mut grads.0, x, dx)
}

/// Puts a tape on a tensor that has none.
pub trait Trace<E, D: Storage<E>>: Clone {
    /// The tensor with a tape.
    type Traced;

    /// A copy with a new tape.
    fn leaky_trace(&self) -> Self::Traced {
        self.clone().leaky_traced()
    }

    /// The tensor with a new tape.
    fn leaky_traced(self) -> Self::Traced {
        self.traced(Gradients::leaky())
    }

    /// A copy with a tape that adds to these gradients.
    fn trace(&self, gradients: Gradients<E, D>) -> Self::Traced {
        self.clone().traced(gradients)
    }

    /// The tensor with a tape that adds to these gradients.
    fn traced(self, gradients: Gradients<E, D>) -> Self::Traced;
}

impl<E, D: Storage<E>, X: dfdx::Trace<E, D>> Trace<E, D> for X {
    type Traced = X::Traced;

    fn traced(self, gradients: Gradients<E, D>) -> X::Traced {
        dfdx::Trace::traced(self, gradients.0)
    }
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

impl<E, D: Storage<E>, L: dfdx::Backward<E, D>> Backward<E, D> for L {
    #[track_caller]
    fn backward(self) -> Gradients<E, D> {
        must_be_open();
        Gradients(dfdx::Backward::backward(self))
    }

    #[track_caller]
    fn try_backward(self) -> Result<Gradients<E, D>, Self::Err> {
        must_be_open();
        dfdx::Backward::try_backward(self).map(Gradients)
    }
}

/// A tape, or none: dfdx's two types of them.
pub trait Tape<E, D: Storage<E>>: dfdx::Tape<E, D> {
    /// Takes the name of dfdx's, which would hand out its own gradients: a call of two methods of one name does not compile.
    #[doc(hidden)]
    fn add_backward_op(&mut self) {}
}

impl<E, D: Storage<E>, T: dfdx::Tape<E, D>> Tape<E, D> for T {}

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
