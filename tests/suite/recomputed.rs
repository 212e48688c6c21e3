//! Activations that are computed again: the same bits, by fused code and by the formulas, and twice the work.
//!
//! A CPU's sums have an order; the last test is for any device.

use crate::support::*;
use quadrivium::error::{Error, Result};
use quadrivium::frequencies::LearnableRope;
use quadrivium::linear::Linear;
use quadrivium::loss::cross_entropy;
use quadrivium::model::*;
use quadrivium::norm::GroupRmsNorm;
use quadrivium::position::*;
use quadrivium::tensor::nn::tensor_collection::{RecursiveWalker, TensorVisitor, ViewTensorRef};
use quadrivium::tensor::*;
use quadrivium::training::recomputed;
use quadrivium::{composed, in_threads};
use std::cell::Cell;
use std::rc::Rc;

/// All gradients of a module, in the order of its tensors.
struct Taken<'g, F: Float>(&'g Gradients<F, Cpu>, Vec<Vec<u64>>);

impl<F: Float> TensorVisitor<F, Cpu> for Taken<'_, F>
where
    Cpu: Backend<F>,
{
    type Viewer = ViewTensorRef;
    type Err = CpuError;
    type E2 = F;
    type D2 = Cpu;

    fn visit<S: Shape>(
        &mut self,
        _: TensorOptions<S, F, Cpu>,
        weight: &Tensor<S, F, Cpu>,
    ) -> std::result::Result<Option<Tensor<S, F, Cpu>>, CpuError> {
        self.1.push(bits(&self.0.get(weight).as_vec()));
        Ok(None)
    }
}

/// Of each number, as an `f64` has it; -0 is not 0.
fn bits<F: Float>(values: &[F]) -> Vec<u64> {
    values.iter().map(|value| value.to_f64().unwrap().to_bits()).collect()
}

fn all<F: Float, M: TensorCollection<F, Cpu>>(
    module: &M,
    grads: &Gradients<F, Cpu>,
) -> Vec<Vec<u64>>
where
    Cpu: Backend<F>,
{
    let mut taken = Taken(grads, Vec::new());
    M::iter_tensors(&mut RecursiveWalker { m: module, f: &mut taken }).unwrap();
    taken.1
}

fn ids(shift: usize) -> Tensor<(usize, usize), usize, Cpu> {
    let ids = (0..14).map(|n| (n * n * 5 + n + shift) % 11).collect();
    Cpu::default().tensor_from_vec(ids, (2, 7))
}

type Table<F> = quadrivium::VocabEmbedding<11, 12, F, Cpu>;
type Llama<F, P, X> = LlamaTransformer<
    11,
    12,
    3,
    1,
    4,
    10,
    2,
    F,
    Cpu,
    Tied,
    Table<F>,
    GroupRmsNorm<12, 12, F, Cpu>,
    P,
    X,
>;

/// The losses of two batches, one after the other, and the gradients of both together. What was recorded by the `formula`
/// has its gradients by it, wherever they are asked for.
fn two_batches<F: Float, P, X>(
    model: &Llama<F, P, X>,
    positions: &Positions,
    (again, formula): (bool, bool),
) -> (Vec<u64>, Vec<Vec<u64>>)
where
    Cpu: Backend<F>,
    P: PositionEncoding<4, F, Cpu> + TensorCollection<F, Cpu> + Clone + 'static,
    X: PositionEncoding<4, F, Cpu> + TensorCollection<F, Cpu> + Clone + 'static,
{
    let mut grads = model.alloc_grads();
    let mut losses = Vec::new();
    for shift in [0, 3] {
        let ids = ids(shift).traced(grads);
        let logits = || match again {
            true => model.try_forward_recomputed(ids, positions),
            false => model.try_forward_at(ids, positions),
        };
        let logits = if formula { composed(logits) } else { logits() };
        let loss = cross_entropy(logits.unwrap(), &self::ids(shift + 1)).unwrap();
        losses.extend(bits(&loss.as_vec()));
        grads = loss.backward();
    }
    (losses, all(model, &grads))
}

fn assert_same<F: Float, P, X>(model: &Llama<F, P, X>)
where
    Cpu: Backend<F>,
    P: PositionEncoding<4, F, Cpu> + TensorCollection<F, Cpu> + Clone + 'static,
    X: PositionEncoding<4, F, Cpu> + TensorCollection<F, Cpu> + Clone + 'static,
{
    let packed: Tensor<Rank2<2, 7>, usize, _> =
        Cpu::default().tensor([[0, 1, 2, 0, 1, 2, 3], [4, 5, 6, 7, 8, 9, 10]]);
    for positions in [Positions::from(0), Positions::padded(&[3, 0], 0, 7), (&packed).into()] {
        let run = |again, formula| two_batches(model, &positions, (again, formula));
        let [kept, formula] = [false, true].map(|formula| run(false, formula));
        assert!(kept.1.iter().all(|of| of.iter().any(|g| *g != 0)), "each weight has one");
        assert_ne!(formula.1, kept.1, "so that their last digits tell them apart");
        assert_eq!(run(true, false), kept);
        assert_eq!(run(true, true), formula);
        assert_eq!(in_threads(|| run(true, false)), kept);
    }
}

fn config() -> LlamaConfig {
    LlamaConfig { init_std: 0.5, ..Default::default() }
}

fn model<F: Float>() -> Llama<F, LlamaRope<4, Cpu>, NoPosition>
where
    Cpu: Backend<F>,
{
    Llama::tied(&Cpu::default(), config()).unwrap()
}

#[test]
fn a_model_has_the_same_gradients() {
    assert_same(&model::<f32>());
    assert_same(&model::<f64>());
    #[cfg(feature = "f16")]
    assert_same(&model::<f16>());
}

/// Biases that all blocks share have a part of their gradient from each, and positions are added below them.
#[test]
fn encodings_that_learn_have_the_same_gradients() {
    let dev = Cpu::default();
    let t5 = T5BiasConfig { max_distance: 6, ..Default::default() };
    let t5 = || T5Bias::<3, 8, f32, _>::new(&dev, t5);
    let kerple = Kerple::<3, f32, _>::new(&dev, Default::default()).unwrap();
    let learned = LearnedPositions::<16, 12, f32, _>::new(&dev, Default::default()).unwrap();
    let rope = |_| LearnableRope::<4, f32, _>::new(&dev, Default::default());
    assert_same(&model().with_position(|_| t5(), NoPosition).unwrap());
    assert_same(&model().with_position(|_| Ok(NoPosition), t5().unwrap()).unwrap());
    assert_same(&model().with_position(|_| t5(), learned).unwrap());
    assert_same(&model().with_position(rope, kerple).unwrap());
}

type Square<D = Cpu> = Linear<Const<3>, Const<3>, f32, D>;
type Rows<D = Cpu, T = OwnedTape<f32, D>> = Tensor<Rank3<1, 2, 3>, f32, D, T>;

fn square() -> Square {
    Square::new(&Cpu::default(), Default::default()).unwrap()
}

fn rows() -> Rows<Cpu, NoneTape> {
    Cpu::default().tensor([[[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]]])
}

/// Once for the result, and once for its gradient; not for a result that is only looked at.
#[test]
fn forward_runs_once_more() {
    let calls = Rc::new(Cell::new(0));
    let counting = {
        let calls = calls.clone();
        move |layer: &Square, x: Rows| {
            calls.set(calls.get() + 1);
            layer.try_forward(x)
        }
    };
    let y = recomputed(&square(), rows().leaky_traced(), counting).unwrap();
    assert_eq!(calls.get(), 1);
    let loss = y.sum::<Rank0, _>();
    assert_eq!(calls.get(), 1);
    loss.backward();
    assert_eq!(calls.get(), 2);
    assert_eq!(Rc::strong_count(&calls), 1, "nothing is left of it");
}

/// A module may have the same weights at two places, an input may be used beside it, and one may stand inside another.
#[test]
fn shared_weights_and_inputs_have_the_same_gradients() {
    type Two = (Square, Square);
    let inner = |(first, second): &Two, x: Rows| {
        let beside = x.with_empty_tape();
        Ok(second.try_forward(first.try_forward(x)?)? * beside)
    };
    let nested = move |two: &Two, x: Rows| {
        let beside = x.with_empty_tape();
        Ok(recomputed(two, x, inner)? + beside)
    };
    let plain = move |two: &Two, x: Rows| {
        let beside = x.with_empty_tape();
        Ok(inner(two, x)? + beside)
    };
    let layer = square();
    let (two, x) = ((layer.clone(), layer.clone()), rows());
    let run = |again: &dyn Fn(Rows) -> Result<Rows>| {
        let traced = x.clone().leaky_traced();
        let beside = traced.with_empty_tape();
        let loss = (again(traced).unwrap() * beside).square().sum::<Rank0, _>();
        let value = loss.array();
        let grads = loss.backward();
        (value, grads.get(&x).as_vec(), grads.get(&layer.weight).as_vec())
    };
    let kept = run(&|x| plain(&two, x));
    assert!(kept.1.iter().chain(&kept.2).all(|g| *g != 0.0));
    assert_eq!(run(&|x| recomputed(&two, x, plain)), kept);
    assert_eq!(run(&|x| recomputed(&two, x, nested)), kept);
}

/// The gradient of an intermediate result in another order of its memory, and of one that is broadcast.
#[test]
fn a_result_may_lie_in_memory_in_any_order() {
    let layer = square();
    let transposed = |layer: &Square, x: Rows| {
        let y = layer.try_forward(x)?;
        y.try_permute::<Rank3<1, 3, 2>, Axes3<0, 2, 1>>().map_err(Error::device)
    };
    let broadcast = |layer: &Square, x: Rows| {
        let y: Tensor<Rank2<1, 2>, _, _, _> = layer.try_forward(x)?.sum();
        y.try_broadcast::<Rank3<1, 3, 2>, _>().map_err(Error::device)
    };
    let factor: Tensor<Rank3<1, 3, 2>, f32, _> =
        Cpu::default().tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]]);
    let gradient = |y: Tensor<Rank3<1, 3, 2>, f32, Cpu, OwnedTape<f32, Cpu>>| {
        let grads = (y * factor.clone()).sum::<Rank0, _>().backward();
        grads.get(&layer.weight).as_vec()
    };
    let x = || rows().leaky_traced();
    let kept = gradient(transposed(&layer, x()).unwrap());
    assert_eq!(gradient(recomputed(&layer, x(), transposed).unwrap()), kept);
    let kept = gradient(broadcast(&layer, x()).unwrap());
    assert_eq!(gradient(recomputed(&layer, x(), broadcast).unwrap()), kept);
}

/// What `forward` hands on is `x` itself, and `x` may be one of the weights.
#[test]
fn an_input_may_be_the_result_or_a_weight() {
    let layer = square();
    let identity = |_: &Square, x: Rows| Ok(x);
    let x = rows();
    let y = recomputed(&layer, x.leaky_trace(), identity).unwrap();
    let twice = x.as_vec().iter().map(|x| 2.0 * x).collect::<Vec<_>>();
    assert_eq!(y.square().sum::<Rank0, _>().backward().get(&x).as_vec(), twice);

    type Weight = Tensor<Rank2<3, 3>, f32, Cpu, OwnedTape<f32, Cpu>>;
    let product = |layer: &Square, x: Weight| Ok(x.square() * layer.weight.clone());
    let gradient = |again: bool| {
        let weight = layer.weight.leaky_trace();
        let y = if again { recomputed(&layer, weight, product) } else { product(&layer, weight) };
        y.unwrap().sum::<Rank0, _>().backward().get(&layer.weight).as_vec()
    };
    assert_eq!(gradient(true), gradient(false));
}

/// The backward pass sees the weights of its forward pass, and what `grads` had before is still there, also if `forward` drops
/// the tape that it is given.
#[test]
fn weights_and_gradients_may_change_between_the_passes() {
    let mut layer = square();
    let x = rows();
    let want = {
        let loss = layer.try_forward(x.leaky_trace()).unwrap().square().sum::<Rank0, _>();
        loss.backward().get(&x).as_vec()
    };
    let y = recomputed(&layer, x.leaky_trace(), |layer, x| layer.try_forward(x)).unwrap();
    layer.weight.fill_with_zeros();
    assert_eq!(y.square().sum::<Rank0, _>().backward().get(&x).as_vec(), want);

    let layer = square();
    let gradient = |forward: fn(&Square, Rows) -> Result<Rows>| {
        let grads = layer.try_forward(x.leaky_trace()).unwrap().sum::<Rank0, _>().backward();
        let y = recomputed(&layer, x.clone().traced(grads), forward).unwrap();
        y.sum::<Rank0, _>().backward().get(&layer.weight).as_vec()
    };
    let want = gradient(|layer, x| layer.try_forward(x));
    assert_eq!(gradient(|layer, x| layer.try_forward(x.retaped())), want);
}

#[test]
fn what_is_refused_is_refused_at_once() {
    let refuse = |_: &Square, _: Rows| -> Result<Rows> { Err(Error::Device("no".into())) };
    let refused = recomputed(&square(), rows().leaky_traced(), refuse).err();
    assert_eq!(refused, Some(Error::Device("no".into())));

    let model = model::<f32>();
    let ids = || ids(0).traced(model.alloc_grads());
    let far = usize::MAX - 3;
    let refused = model.try_forward_recomputed(ids(), far).err();
    assert_eq!(refused, model.try_forward_at(ids(), far).err());
    assert!(refused.is_some());
}

#[test]
fn a_layer_has_the_same_gradients_on_any_device() {
    let layer = Square::<Dev>::new(&dev(), Default::default()).unwrap();
    let x: Rows<Dev, NoneTape> = dev().tensor([[[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]]]);
    let of = |layer: &Square<Dev>, x: Rows<Dev>| layer.try_forward(layer.try_forward(x)?);
    let run = |again: bool| {
        let x = x.leaky_trace();
        let y = if again { recomputed(&layer, x, of) } else { of(&layer, x) };
        y.unwrap().square().sum::<Rank0, _>().backward()
    };
    let [again, kept] = [true, false].map(run);
    assert_same_sums(&again.get(&x).as_vec(), &kept.get(&x).as_vec());
    assert_same_sums(&again.get(&layer.weight).as_vec(), &kept.get(&layer.weight).as_vec());
}
