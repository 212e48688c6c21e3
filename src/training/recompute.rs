//! Activations that are computed again in the backward pass, instead of being kept for it.

use crate::cpu::{on_this_way, way};
use crate::error::Result;
use crate::tensor::nn::tensor_collection::{RecursiveWalker, TensorVisitor, ViewTensorRef};
use crate::tensor::*;

/// A tensor whose gradients are being recorded.
type Recorded<S, F, D> = Tensor<S, F, D, OwnedTape<F, D>>;

/// What `forward` makes of `x` with `module`. Of all that it computes with, only `x` is kept for the backward pass, which runs it
/// again.
///
/// For a stack of `n` blocks, memory then holds `n` inputs and the activations of one block, instead of those of all, and a training
/// step runs each block forward twice. The loss and the gradients are the same, on a CPU to the last bit. Source: Chen et al. 2016,
/// "Training Deep Nets with Sublinear Memory Cost".
///
/// `forward` must compute the same whenever it is called, so it must not draw random numbers: unlike PyTorch's `checkpoint`, this does not
/// go back to an earlier state of their generator. `x` and all tensors of `module` get a gradient, even if it is 0. Nothing else does, be it
/// a weight that `forward` captures or a result in the middle of it.
///
/// ```
/// use quadrivium::linear::Linear;
/// use quadrivium::tensor::*;
/// use quadrivium::training::recomputed;
///
/// let dev = Cpu::default();
/// let layer = Linear::<Const<2>, Const<3>, f32, _>::new(&dev, Default::default())?;
/// let x: Tensor<Rank3<1, 1, 2>, f32, _> = dev.tensor([[[1.0, 2.0]]]);
///
/// let y = layer.try_forward(x.leaky_trace())?; //                          [b, s, 3]
/// let kept = y.square().sum().try_backward()?.get(&layer.weight);
/// let y = recomputed(&layer, x.leaky_trace(), |layer, x| layer.try_forward(x))?;
/// let again = y.square().sum().try_backward()?.get(&layer.weight);
/// assert_eq!(again.array(), kept.array());
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// # Errors
/// What `forward` refuses.
///
/// # Panics
/// In the backward pass, if `forward` then fails on an input that it accepted before, as it may where memory has run out.
pub fn recomputed<X: Shape, Y: Shape, F: Float, D: Backend<F>, M>(
    module: &M,
    x: Recorded<X, F, D>,
    forward: impl Fn(&M, Recorded<X, F, D>) -> Result<Recorded<Y, F, D>> + 'static,
) -> Result<Recorded<Y, F, D>>
where
    M: TensorCollection<F, D> + Clone + 'static,
{
    let (x, mut tape) = x.split_tape();
    let (y, _) = forward(module, x.leaky_trace())?.split_tape(); // what it has recorded is dropped
    let (module, result, way) = (module.clone(), y.ghost(), way());
    tape.add_backward_op(move |grads| {
        let again = on_this_way(way, || forward(&module, x.leaky_trace()));
        let again = again.expect("`forward` succeeded once and failed when it was run again");
        let (again, mut tape) = again.split_tape();
        let mut inner = Gradients::leaky();
        Copied { from: grads, to: &mut inner }.all(&module, &x)?;
        *inner.get_or_alloc_mut(&again)? = grads.get_or_alloc_mut(&result)?.clone();
        tape.add_backward_op(move |grads| {
            *grads = inner;
            Ok(())
        });
        // dfdx runs a tape from a number only. This one is computed from nothing.
        let end = x.device().try_zeros::<Rank0>()?.put_tape(tape);
        Copied { from: &mut end.try_backward()?, to: grads }.all(&module, &x)
    });
    Ok(y.put_tape(tape))
}

/// Copies the gradients of an input and of a module's weights, as they lie in memory. Each sum then goes on from the value that it would have
/// without this, so the same numbers are added in the same order.
///
/// They are copied and not swapped, because a module may have the same weights at two places.
struct Copied<'g, F: Float, D: Backend<F>> {
    from: &'g mut Gradients<F, D>,
    to: &'g mut Gradients<F, D>,
}

impl<F: Float, D: Backend<F>> Copied<'_, F, D> {
    fn one<S: Shape>(&mut self, tensor: &Tensor<S, F, D>) -> std::result::Result<(), D::Err> {
        *self.to.get_or_alloc_mut(tensor)? = self.from.get_or_alloc_mut(tensor)?.clone();
        Ok(())
    }

    fn all<S: Shape, M: TensorCollection<F, D>>(
        &mut self,
        module: &M,
        x: &Tensor<S, F, D>,
    ) -> std::result::Result<(), D::Err> {
        self.one(x)?;
        M::iter_tensors(&mut RecursiveWalker { m: module, f: self }).map(drop)
    }
}

impl<F: Float, D: Backend<F>> TensorVisitor<F, D> for Copied<'_, F, D> {
    type Viewer = ViewTensorRef;
    type Err = D::Err;
    type E2 = F;
    type D2 = D;

    fn visit<S: Shape>(
        &mut self,
        _: TensorOptions<S, F, D>,
        weight: &Tensor<S, F, D>,
    ) -> std::result::Result<Option<Tensor<S, F, D>>, D::Err> {
        self.one(weight)?;
        Ok(None)
    }
}
