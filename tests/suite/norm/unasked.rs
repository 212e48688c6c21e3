//! GroupRMSNorm: what the contract does not ask. The module, differences, views that are used twice, other types, the ends
//! of the range.

use crate::support::*;
use quadrivium::functional::group_rms_norm;
use quadrivium::tensor::*;
use quadrivium::{GroupRmsNorm, GroupRmsNormConfig};

fn module<const H: usize, const GZ: usize, F: Float>(
    gamma: &[F],
    eps: f64,
) -> GroupRmsNorm<H, GZ, F, Dev>
where
    Dev: Backend<F>,
{
    let config = GroupRmsNormConfig { eps, ..Default::default() };
    let mut norm = GroupRmsNorm::new(&dev(), config).unwrap();
    norm.weight = tensor(gamma, (Const::<H>,));
    norm
}

/// Values of the module, and the gradients of x and of the weight.
fn run<const H: usize, const GZ: usize, F: Float>(
    x: &[F],
    gamma: &[F],
    dy: &[F],
    eps: f64,
) -> [Vec<F>; 3]
where
    Dev: Backend<F>,
{
    let norm = module::<H, GZ, F>(gamma, eps);
    let x = tensor(x, (1, x.len() / H, Const::<H>));
    let y = norm.forward(Trace::<F, Dev>::leaky_trace(&x));
    let values = y.as_vec();
    let grads = backward(y, dy);
    [values, grads.get(&x).as_vec(), grads.get(&norm.weight).as_vec()]
}

/// The gradients are those of the forward pass. Every rms is at least 0.5, so third derivatives are some tens.
#[test]
fn agrees_with_finite_differences() {
    fn check<const H: usize, const GZ: usize>() {
        let (x, gamma, dy) = (wave(2 * H, 1.7), wave(H, 2.3), wave(2 * H, 3.1));
        let loss = |x: &[f64], gamma: &[f64]| dot(&run::<H, GZ, f64>(x, gamma, &dy, 0.25)[0], &dy);
        let [_, dx, dgamma] = run::<H, GZ, f64>(&x, &gamma, &dy, 0.25);
        assert_within(&dx, &slopes(&x, |x| loss(x, &gamma)), |_| 1e-9);
        assert_within(&dgamma, &slopes(&gamma, |gamma| loss(&x, gamma)), |_| 1e-9);
    }
    check::<8, 8>();
    check::<8, 4>();
    check::<8, 1>();
    check::<12, 3>();
    check::<10, 5>();
    check::<64, 16>();
}

/// The hand-written gradient is also what dfdx derives from the formula in its own operations.
#[test]
fn agrees_with_dfdx_autograd() {
    type X = (usize, usize, Const<2>, Const<4>);
    let x: Tensor<X, f64, Dev> = dev().sample_normal_like(&(2, 3, Const, Const));
    let gamma: Tensor<Rank2<2, 4>, f64, Dev> = dev().sample_normal();
    let dy: Tensor<X, f64, Dev> = dev().sample_normal_like(&(2, 3, Const, Const));
    let shape = *x.shape();

    let taped = x.leaky_trace();
    let mean_square = taped.with_empty_tape().square().mean::<(usize, usize, Const<2>), Axis<3>>();
    let root = (mean_square + 1e-2).sqrt().try_broadcast_like::<_, Axis<3>>(&shape).unwrap();
    let scale = gamma.retaped::<OwnedTape<f64, Dev>>();
    let y = taped / root * scale.try_broadcast_like::<_, Axes2<0, 1>>(&shape).unwrap();
    let values = y.as_vec();
    let grads = (y * dy.clone()).sum::<Rank0, _>().backward();

    let [y, dx, dgamma] = run::<8, 4, f64>(&x.as_vec(), &gamma.as_vec(), &dy.as_vec(), 1e-2);
    assert_within(&y, &values, |i| 16.0 * U64 * values[i].abs());
    assert_within(&dx, &grads.get(&x).as_vec(), |_| 1e-13);
    assert_within(&dgamma, &grads.get(&gamma).as_vec(), |_| 1e-13);
}

/// Gradients of views that are used twice: one row for all tokens, and one number as the scale of all elements.
#[test]
fn views_that_are_used_twice_collect_their_gradient() {
    let norm = module::<4, 2, f32>(&[1.0, -2.0, 3.0, 0.5], 1e-5);
    // One row seen as six, and used twice: its gradient is the sum over all twelve.
    let row: Tensor<Rank1<4>, f32, Dev> = dev().sample_normal();
    let shape = (3usize, 2usize, Const::<4>);
    let wide = row.leaky_trace().broadcast_like::<_, Axes2<0, 1>>(&shape);
    let copy = tensor(&wide.as_vec(), shape);
    let dy: Tensor<_, f32, Dev> = dev().sample_normal_like(&copy);
    let twice = norm.forward(wide.with_empty_tape()) + norm.forward(wide);
    let grads = (twice * dy.clone()).sum::<Rank0, _>().backward();
    let copied = (norm.forward(copy.leaky_trace()) * dy).sum::<Rank0, _>().backward();
    let once: Tensor<Rank1<4>, f32, Dev> = copied.get(&copy).sum::<_, Axes2<0, 1>>();
    let (got, want) = (widen(&grads.get(&row).as_vec()), widen(&(once * 2.0).as_vec()));
    assert_within(&got, &want, |_| 1e-5); // another order of summation

    // One number as the scale of all elements, used twice.
    let scale: Tensor<Rank0, f64, Dev> = dev().tensor(3.0);
    let gamma = scale.clone().broadcast_like::<_, Axis<0>>(&(4usize,));
    let x = tensor(&[1.0f64, 2.0, -2.0, 1.0], (1usize, 1usize, 4usize));
    let norm = |x| group_rms_norm(x, &gamma, 2, 0.0).unwrap();
    let twice = norm(x.leaky_trace()) + norm(x.leaky_trace());
    let got = twice.sum::<Rank0, _>().backward().get(&scale).as_vec()[0];
    let want = 2.0 * (3.0 - 1.0) / 2.5f64.sqrt(); // twice the sum of xhat
    assert!((got - want).abs() <= 1e-14, "{got} and {want}");
}

/// A gradient is added to what other uses of the same tensor sent: `2x + norm(2x)`, the residual
/// connection of every Transformer.
#[test]
fn gradients_of_several_uses_add_up() {
    let norm = module::<4, 2, f64>(&[1.0, -2.0, 3.0, 0.5], 1e-5);
    let x: Tensor<(usize, usize, Const<4>), f64, Dev> = dev().sample_normal_like(&(1, 2, Const));
    let doubled = x.clone() * 2.0;
    let alone = norm.forward(doubled.leaky_trace()).sum::<Rank0, _>().backward();
    let want: Vec<f64> = alone.get(&doubled).as_vec().iter().map(|d| 2.0 * (d + 1.0)).collect();

    let doubled = x.leaky_trace() * 2.0;
    let residual = doubled.with_empty_tape();
    let grads = (norm.forward(doubled) + residual).sum::<Rank0, _>().backward();
    assert_within(&grads.get(&x).as_vec(), &want, |i| 4.0 * U64 * (want[i].abs() + 2.0));
    assert_eq!(grads.get(&norm.weight).as_vec(), alone.get(&norm.weight).as_vec());
}

/// An input of another type than the weight's: the result has the input's type.
#[test]
fn an_input_may_have_another_type_than_the_weight() {
    forall((values(24), values(8)), |(x, gamma)| {
        let shape = (1, 3, Const::<8>);
        let narrow = module::<8, 4, f32>(&gamma, 1e-5);
        let wide = module::<8, 4, f64>(&widen(&gamma), 1e-5);
        let x64 = tensor(&widen(&x), shape);
        let got: Tensor<_, f64, Dev> = narrow.try_forward_mixed(x64.clone()).unwrap();
        assert_eq!(got.as_vec(), wide.forward(x64).as_vec());
        let x32 = tensor(&x, shape);
        let got: Tensor<_, f32, Dev> = wide.try_forward_mixed(x32.clone()).unwrap();
        assert_same_bits(&got.as_vec(), &narrow.forward(x32).as_vec());
    });
}

/// The function takes sizes at run time and gives the module's bits.
#[test]
fn the_function_is_the_module() {
    forall((values(24), values(12)), |(x, gamma)| {
        let weight = tensor(&gamma, (12usize,));
        let y = group_rms_norm(tensor(&x, (2, 1, 12usize)), &weight, 3, 1e-5).unwrap();
        let x = tensor(&x, (2, 1, Const::<12>));
        assert_same_bits(&y.as_vec(), &module::<12, 3, f32>(&gamma, 1e-5).forward(x).as_vec());
    });
}

/// The squares are taken in `f32`, as PyTorch takes them, and no group is scaled first. There is therefore a range:
/// what the documentation of `group_rms_norm` says of it, at its ends.
#[test]
fn the_range_is_that_of_the_squares() {
    let two = |n: i32| 2f32.powi(n);
    let run = |x: f32, eps| run::<4, 2, f32>(&[x, -x, x, x], &[1.0; 4], &[1.0; 4], eps);
    for eps in [0.0, 1e-5] {
        // Two squares of 2^126 have a sum; two of 2^127 have none.
        assert_eq!(run(two(63), eps)[0], [1.0, -1.0, 1.0, 1.0]);
        assert_eq!(run(two(64), eps), [[0.0; 4]; 3], "too large for f32: zeros");
    }
    // Without eps: exact down to 2^-63, finite down to 2^-74, then the square is 0. On a GPU the sum of smaller squares is 0
    // at once.
    assert_eq!(run(two(-63), 0.0)[0], [1.0, -1.0, 1.0, 1.0]);
    let gpu = cfg!(feature = "cuda");
    assert!(run(two(-74), 0.0)[0].iter().all(|y| y.is_finite() != gpu));
    assert!(run(two(-75), 0.0)[0].iter().all(|y| y.is_infinite()));
    assert!(run(0.0, 0.0)[0].iter().all(|y| y.is_nan()));
    // With eps, all of this is a number: at most x / sqrt(eps) in size, up to rounding.
    for eps in [1e-30f64, 1e-5] {
        for x in [two(-63), two(-75), two(-149), 0.0] {
            let bound = f64::from(x) / eps.sqrt() * (1.0 + 8.0 * U32) + f64::from(two(-149));
            assert!(run(x, eps)[0].iter().all(|y| f64::from(y.abs()) <= bound), "{x:e}, {eps:e}");
        }
    }
    let wide = |n: i32| {
        let x = 2f64.powi(n);
        self::run::<4, 2, f64>(&[x; 4], &[1.0; 4], &[1.0; 4], 0.0)[0][0]
    };
    assert_eq!([wide(512), wide(511), wide(-511)], [0.0, 1.0, 1.0]);
}
