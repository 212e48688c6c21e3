//! The one place where dfdx is imported.
//!
//! dfdx 0.13 is from 2023, and there is no newer release. Everything the crate takes from it passes
//! through this file, so that it is known what is used. What dfdx lacks is added here: float types
//! with an arithmetic type, dimensions that are quotients, and hand-written gradients.

pub use dfdx::dtypes::{Dtype, HasDtype, Unit};
pub use dfdx::losses;
pub use dfdx::nn::{self, modules};
pub use dfdx::nn::{
    BuildModule, BuildOnDevice, DeviceBuildExt, LoadFromSafetensors, ModelEMA, Module, ModuleMut,
    ModuleVisitor, NonMutableModule, NumParams, ResetParams, SaveToSafetensors, TensorCollection,
    TensorOptions, ToDevice, ToDtype, ZeroGrads, ZeroSizedModule,
};
pub use dfdx::optim;
/// All of dfdx's shapes, for bounds that name one; the usual ones are here already.
pub use dfdx::shapes;
pub use dfdx::shapes::{
    Axes, Axes2, Axes3, Axes4, Axes5, Axes6, Axis, Const, ConstDim, ConstShape, Dim, HasAxes,
    HasShape, Rank0, Rank1, Rank2, Rank3, Rank4, Rank5, Rank6, ReduceShape, ReduceShapeTo, Shape,
};
pub use dfdx::tensor::{
    AsArray, AutoDevice, Cache, CopySlice, Cpu, CpuError, Gradients, HasErr, Merge, NoneTape,
    OnesTensor, OwnedTape, PutTape, SampleTensor, SplitTape, Storage, Synchronize, Tape, Tensor,
    TensorFrom, TensorFromVec, Trace, TriangleTensor, WithEmptyTape, ZerosTensor,
};
#[cfg(feature = "cuda")]
pub use dfdx::tensor::{Cuda, CudaError};
/// All of dfdx's operations, as functions and for bounds that name one. The usual traits are here
/// already, and most operations are methods of [`Tensor`].
pub use dfdx::tensor_ops;
pub use dfdx::tensor_ops::{
    Backward, BroadcastTo, ChooseFrom, Device, GatherTo, LogSumExpTo, MaxTo, MeanTo, MinTo,
    PermuteTo, RealizeTo, ReshapeTo, Roll, SelectTo, StddevTo, SumTo, TryAdd, TryConcatAlong,
    TryDiv, TryMatMul, TryMul, TryStack, TrySub, VarTo,
};
/// Half precision, with the feature `f16`. dfdx has no bf16.
#[cfg(feature = "f16")]
pub use half::f16;
/// What dfdx's own layers ask of the float type that they draw their weights in.
pub use rand_distr::uniform::SampleUniform;

use std::any::{Any, TypeId};
use std::convert::identity;

mod sealed {
    /// Only this crate implements [`super::Scalar`] and [`super::Float`]: PyTorch's random draws are reproduced for these types only.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
}

/// A type that numbers can be stored in: `f32`, `f64`, `f16` or `bf16`.
pub trait Scalar: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The type to compute in: `f64` for `f64`, else `f32`.
    type Wide: Float<Wide = Self::Wide>;

    /// The same value in the type to compute in.
    #[doc(hidden)]
    fn wide(self) -> Self::Wide;

    /// The nearest value of this type to one that was computed.
    #[doc(hidden)]
    fn narrow(value: Self::Wide) -> Self;

    /// The same values, if they already have the type to compute in.
    #[doc(hidden)]
    fn as_wide(values: &[Self]) -> Option<&[Self::Wide]>;
}

macro_rules! scalars {
    ($($scalar:ty, $wide:ty, $to:expr, $from:expr, $as:expr;)*) => {$(
        impl Scalar for $scalar {
            type Wide = $wide;

            #[inline(always)]
            fn wide(self) -> $wide {
                $to(self)
            }

            #[inline(always)]
            fn narrow(value: $wide) -> Self {
                $from(value)
            }

            fn as_wide(values: &[Self]) -> Option<&[$wide]> {
                $as(values)
            }
        }
    )*};
}
scalars! {
    f32, f32, identity, identity, Some;
    f64, f64, identity, identity, Some;
    half::f16, f32, half::f16::to_f32, half::f16::from_f32, |_| None;
    half::bf16, f32, half::bf16::to_f32, half::bf16::from_f32, |_| None;
}

/// A float type of tensors: `f32`, `f64`, and `f16` with the feature of that name.
pub trait Float: Scalar + Dtype + num_traits::Float + std::fmt::Display {
    /// Digits of its significand in base 2, the leading one included.
    #[doc(hidden)]
    const SIGNIFICANT_BITS: u32;

    /// The nearest value of this type.
    fn nearest(value: f64) -> Self;

    /// `exp(x)` of an `x` that is not above 0.
    #[doc(hidden)]
    fn exp_below_zero(self) -> Self;

    /// Converts a tensor. Use [`cast`], which copies nothing when the type is right already.
    #[doc(hidden)]
    fn convert<A: Float, S: Shape, D: Device<A> + Device<Self>>(
        tensor: Tensor<S, A, D>,
    ) -> std::result::Result<Tensor<S, Self, D>, D::Err>;
}

impl Float for f32 {
    const SIGNIFICANT_BITS: u32 = f32::MANTISSA_DIGITS;

    fn nearest(value: f64) -> Self {
        value as f32
    }

    /// Without branches, so that a processor computes several at once. Off by less than `2^-22` of the result; below
    /// the smallest normal number it is 0.
    #[inline(always)]
    fn exp_below_zero(self) -> Self {
        // exp(x) = 2^n exp(r) with the whole number n nearest to x / ln 2. Its addition to 3 * 2^22 rounds.
        const ROUND: f32 = 12_582_912.0;
        let shifted = self * std::f32::consts::LOG2_E + ROUND;
        let n = shifted - ROUND;
        // ln 2 in two parts, the first of few digits: n times it is exact.
        let r = (self - n * 0.693_359_4) + n * 2.121_944_4e-4; // |r| <= ln 2 / 2
        // A polynomial that is nearest to exp there; the coefficients are those of Cephes' expf (Moshier 1992).
        let p = ((1.987_569_2e-4 * r + 1.398_199_9e-3) * r + 8.333_452e-3) * r + 4.166_579_6e-2;
        let p = ((p * r + 1.666_666_5e-1) * r + 0.5) * r * r + r + 1.0;
        let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
        let y = p * f32::from_bits(exponent << 23); // 2^n; NaN stays NaN
        if self < -87.336_54 { 0.0 } else { y }
    }

    fn convert<A: Float, S: Shape, D: Device<A> + Device<Self>>(
        tensor: Tensor<S, A, D>,
    ) -> std::result::Result<Tensor<S, Self, D>, D::Err> {
        tensor.try_to_dtype::<f32>()
    }
}

impl Float for f64 {
    const SIGNIFICANT_BITS: u32 = f64::MANTISSA_DIGITS;

    fn nearest(value: f64) -> Self {
        value
    }

    fn exp_below_zero(self) -> Self {
        self.exp()
    }

    fn convert<A: Float, S: Shape, D: Device<A> + Device<Self>>(
        tensor: Tensor<S, A, D>,
    ) -> std::result::Result<Tensor<S, Self, D>, D::Err> {
        tensor.try_to_dtype::<f64>()
    }
}

#[cfg(feature = "f16")]
impl Float for f16 {
    const SIGNIFICANT_BITS: u32 = f16::MANTISSA_DIGITS;

    fn nearest(value: f64) -> Self {
        f16::from_f64(value)
    }

    fn exp_below_zero(self) -> Self {
        f16::from_f32(self.to_f32().exp_below_zero())
    }

    fn convert<A: Float, S: Shape, D: Device<A> + Device<Self>>(
        tensor: Tensor<S, A, D>,
    ) -> std::result::Result<Tensor<S, Self, D>, D::Err> {
        tensor.try_to_dtype::<f64>()?.try_to_dtype::<f16>() // exact, then one rounding
    }
}

/// A result with the device's own error.
#[doc(hidden)]
pub type Raw<T, D> = std::result::Result<T, <D as HasErr>::Err>;

/// A device that computes in `F` and in its arithmetic type. [`Cpu`] and `Cuda` do.
pub trait Backend<F: Float>:
    Device<F> + Device<F::Wide> + Device<f32> + TensorFromVec<bool>
{
}

impl<F: Float, D> Backend<F> for D where
    D: Device<F> + Device<F::Wide> + Device<f32> + TensorFromVec<bool>
{
}

/// The same values in another float type. Shares the data if the type is the same.
///
/// # Errors
/// What the device reports.
pub fn cast<A: Float, B: Float, S: Shape, D: Device<A> + Device<B>>(
    tensor: &Tensor<S, A, D>,
) -> std::result::Result<Tensor<S, B, D>, D::Err> {
    match (tensor as &dyn Any).downcast_ref::<Tensor<S, B, D>>() {
        Some(same) => Ok(same.clone()),
        None => B::convert(tensor.clone()),
    }
}

/// The dimension `A / B`, rounded down, known to the compiler.
///
/// Stable Rust can't write `Const<{ A / B }>`. Used where a size is derived: `n = v / w` rows per
/// shard.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Quotient<const A: usize, const B: usize>;

impl<const A: usize, const B: usize> Dim for Quotient<A, B> {
    fn size(&self) -> usize {
        Self::SIZE
    }

    fn from_size(size: usize) -> Option<Self> {
        (size == Self::SIZE).then_some(Self)
    }
}

impl<const A: usize, const B: usize> ConstDim for Quotient<A, B> {
    const SIZE: usize = A / B;
}

/// The dimension `A * B`, known to the compiler. Used where heads lie side by side: `nkv * hd`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Product<const A: usize, const B: usize>;

impl<const A: usize, const B: usize> Dim for Product<A, B> {
    fn size(&self) -> usize {
        Self::SIZE
    }

    fn from_size(size: usize) -> Option<Self> {
        (size == Self::SIZE).then_some(Self)
    }
}

impl<const A: usize, const B: usize> ConstDim for Product<A, B> {
    const SIZE: usize = A * B;
}

/// The most elements that a table may have on `D`, if there is a limit.
///
/// dfdx's GPU code computes addresses in 32 bits and gives other rows past that, silently.
#[doc(hidden)]
pub fn largest_table<D: 'static>() -> Option<usize> {
    if on_cpu::<D>() { None } else { Some(u32::MAX as usize) }
}

fn on_cpu<D: 'static>() -> bool {
    TypeId::of::<D>() == TypeId::of::<Cpu>()
}

/// A tensor whose values lie in the order of its shape, each at its own place.
///
/// dfdx's `try_contiguous` does that, but its gradient of a broadcast is wrong on a GPU: the kernel takes as many parts of it
/// as there are places after the broadcast, and leaves out the rest (`tensor_ops/reshape_to/cuda_kernel.rs`). There,
/// such a tensor is multiplied with ones, which changes no bit.
#[doc(hidden)]
pub trait InOrder: HasErr {
    /// # Errors
    /// What the device reports.
    fn try_in_order(self) -> std::result::Result<Self, Self::Err>;
}

impl<S: Shape, E: Dtype, D: Device<E>, T: Tape<E, D>> InOrder for Tensor<S, E, D, T> {
    fn try_in_order(self) -> std::result::Result<Self, D::Err> {
        if on_cpu::<D>() || !T::OWNS_TAPE {
            return self.try_contiguous();
        }
        // A gradient has as many numbers as memory has; nothing else shows it.
        let mut gradient = Gradients::leaky();
        let places = Storage::<E>::len(self.device(), gradient.get_or_alloc_mut(&self)?);
        if places >= self.shape().num_elements() {
            return self.try_contiguous();
        }
        let ones = self.device().try_ones_like(self.shape())?;
        self.try_mul(ones)
    }
}

/// Puts a hand-written gradient on the tape of `y`.
///
/// When the tape runs backward, `backward` receives `dy`, the gradient of the loss with respect
/// to `y`, and hands on what it makes of it with [`add_gradient`].
#[doc(hidden)]
pub fn on_backward<S: Shape, F: Float, D: Device<F>, T: Tape<F, D>>(
    tape: &mut T,
    y: &Tensor<S, F, D>,
    backward: impl FnOnce(Tensor<S, F, D>, &mut Gradients<F, D>) -> std::result::Result<(), D::Err>
    + 'static,
) {
    let y = y.ghost(); // shape and identity, without holding the data
    tape.add_backward_op(move |grads| {
        grads.try_alloc_for(&y)?;
        let dy = grads.get(&y);
        backward(dy, grads)
    });
}

/// Adds `dx` to the gradient of `x`. `x` must be contiguous.
///
/// On a GPU, only dfdx's own operations can write into a gradient. The sum is therefore handed in as the gradient of
/// `<x, total>` with respect to `x`, which is `total` itself.
#[doc(hidden)]
pub fn add_gradient<S: Shape, F: Float, D: Device<F>>(
    grads: &mut Gradients<F, D>,
    x: &Tensor<S, F, D>,
    dx: Tensor<S, F, D>,
) -> std::result::Result<(), D::Err> {
    grads.try_alloc_for(x)?;
    let total = grads.get(x).try_add(dx)?;
    set_gradient(grads, x, total)
}

/// Puts `dx` in the place of the gradient of `x`. `x` must be contiguous.
#[doc(hidden)]
pub fn set_gradient<S: Shape, F: Float, D: Device<F>>(
    grads: &mut Gradients<F, D>,
    x: &Tensor<S, F, D>,
    dx: Tensor<S, F, D>,
) -> std::result::Result<(), D::Err> {
    let product = Trace::<F, D>::leaky_trace(x).try_mul(dx)?;
    let mut handed_in = product.try_sum::<Rank0, _>()?.try_backward()?;
    std::mem::swap(grads.get_or_alloc_mut(x)?, handed_in.get_or_alloc_mut(x)?);
    Ok(())
}
