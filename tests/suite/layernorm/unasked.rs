//! LayerNorm: what the contract does not ask of it. dfdx's own gradient, settings, refusals, views, half precision.

use super::*;
use quadrivium::{Error, LayerNorm, LayerNormConfig};

type Rows = (usize, usize, usize);

/// The hand-written gradient is also what dfdx derives from the formula in its own operations.
#[test]
fn agrees_with_dfdx_autograd() {
    let (h, shape) = (5, (2, 3, 5));
    let [x, dy] = [wave(30, 1.7), wave(30, 3.1)];
    let [gamma, beta] = [wave(h, 2.3), wave(h, 0.9)];
    let got = run(&x, &gamma, &beta, &dy, 0.25);

    let x: Tensor<Rows, f64, Dev> = tensor(&x, shape);
    let (gamma, beta) = (tensor(&gamma, (h,)), tensor(&beta, (h,)));
    let y = Trace::<f64, Dev>::leaky_trace(&x).normalize::<Axis<2>>(0.25);
    let over = |v: &Tensor<(usize,), f64, Dev>| {
        v.retaped::<OwnedTape<f64, Dev>>().broadcast_like::<_, Axes2<0, 1>>(&shape)
    };
    let y = y * over(&gamma) + over(&beta);
    let values = y.as_vec();
    let grads = backward(y, &dy);
    let want =
        [values, grads.get(&x).as_vec(), grads.get(&gamma).as_vec(), grads.get(&beta).as_vec()];
    for (got, want) in got.iter().zip(&want) {
        assert_within(got, want, |_| 1e-13);
    }
}

/// It starts as PyTorch's: all ones, all zeros. dfdx's reset sets them so again.
#[test]
fn starts_at_one_and_zero() {
    let mut norm = LayerNorm::<4, f32, Dev>::new(&dev(), LayerNormConfig::default()).unwrap();
    assert_eq!((norm.weight.as_vec(), norm.bias.as_vec()), (vec![1.0; 4], vec![0.0; 4]));
    norm.weight = tensor(&[2.0; 4], (Const,));
    norm.bias = tensor(&[3.0; 4], (Const,));
    norm.reset_params();
    assert_eq!((norm.weight.as_vec(), norm.bias.as_vec()), (vec![1.0; 4], vec![0.0; 4]));
    assert_eq!(NumParams::<f32, Dev>::num_trainable_params(&norm), 8);
    assert_eq!(norm.to_string(), "LayerNorm(hidden_size=4, eps=1e-5)");
}

/// dfdx's own LayerNorm loses its eps on the way to another type.
#[test]
fn settings_travel_with_the_module() {
    let config = LayerNormConfig { eps: 0.25 };
    let mut norm = LayerNorm::<4, f32, Dev>::new(&dev(), config).unwrap();
    norm.bias = tensor(&[0.5, -1.0, 2.0, 0.0], (Const,));
    let wide = norm.to_dtype::<f64>();
    assert_eq!(wide.config(), &config);
    assert_eq!(wide.bias.as_vec(), [0.5, -1.0, 2.0, 0.0]);
    assert_eq!(norm.clone().config(), &config);
    // The module uses it.
    let x = tensor(&[0.5, -0.5, 0.5, -0.5], (1, 1, Const::<4>));
    let y = widen(&norm.forward(x).as_vec());
    let root = 0.5f64.sqrt();
    assert_within(&y, &[root + 0.5, -root - 1.0, root + 2.0, -root], |_| 4.0 * U32);
}

#[test]
fn a_description_builds_it() {
    type Model = (quadrivium::builder::VocabEmbedding<6, 4>, quadrivium::builder::LayerNorm<4>);
    let model = dev().build_module::<Model, f32>();
    let y = model.forward(ids(&[0, 5, 3], (1, 3)));
    for row in widen(&y.as_vec()).chunks(4) {
        assert!(row.iter().sum::<f64>().abs() < 1e-5);
    }
}

#[test]
fn what_does_not_fit_is_refused_and_says_why() {
    let ones = |n: usize| tensor(&vec![1.0f32; n], (n,));
    let x = || tensor(&[1.0f32; 8], (1, 2, 4));
    let refused = |x: Tensor<Rows, f32, Dev>, h: usize, eps| {
        layer_norm(x, &ones(4), &ones(h), eps).unwrap_err().to_string()
    };
    let shape = refused(x(), 3, 1e-5);
    assert_eq!(shape, "bias must have shape [4] to fit the other arguments, got [3]");
    let error = layer_norm(x(), &ones(5), &ones(4), 1e-5).unwrap_err();
    assert!(matches!(error, Error::Shape { name: "weight", .. }));
    for eps in [-1e-5, f64::NAN, f64::INFINITY, 1e-60] {
        let rule = "eps must be 0, or a positive number that its float type can hold";
        assert!(refused(x(), 4, eps).starts_with(rule), "{eps}");
        let error = LayerNorm::<4, f32, Dev>::new(&dev(), LayerNormConfig { eps }).unwrap_err();
        assert!(error.to_string().starts_with(rule), "{eps}");
    }
    let empty = dev().zeros_like(&(1, 0, 4));
    assert!(matches!(layer_norm(empty, &ones(4), &ones(4), 1e-5), Err(Error::Empty { .. })));
    // More elements than any memory, as a view of one number.
    let huge = dev().zeros_like(&()).broadcast_like(&(usize::MAX / 4, 2usize, 4usize));
    assert!(matches!(layer_norm(huge, &ones(4), &ones(4), 1e-5), Err(Error::TooLarge { .. })));
}

/// A permuted or broadcast input gives the values and the gradient of the same numbers in order.
#[test]
fn views_of_the_input_and_of_the_weights() {
    let x = tensor(&(0..24).map(|i| (i * i % 13) as f32).collect::<Vec<_>>(), (2, 3, 4));
    let (gamma, beta) = (tensor(&[0.5, -2.0, 3.0], (3,)), tensor(&[1.0, 0.0, -1.0], (3,)));
    let dy: Vec<f32> = (0..24).map(|i| (i * 7 % 5) as f32 - 2.0).collect();

    // [2, 3, 4] seen as [2, 4, 3]; the gradient comes back to x as it lies.
    let turned = x.leaky_trace().permute::<(usize, usize, usize), Axes3<0, 2, 1>>();
    let y = layer_norm(turned, &gamma, &beta, 1e-5).unwrap();
    let copied = tensor(&x.clone().permute::<Rows, Axes3<0, 2, 1>>().as_vec(), (2, 4, 3));
    let in_order = layer_norm(copied.leaky_trace(), &gamma, &beta, 1e-5).unwrap();
    assert_same_bits(&y.as_vec(), &in_order.as_vec());
    let (of_view, of_copy) = (backward(y, &dy), backward(in_order, &dy));
    let want = of_copy.get(&copied).permute::<Rows, Axes3<0, 2, 1>>();
    assert_same_bits(&of_view.get(&x).as_vec(), &want.as_vec());

    // One number for all elements: its gradient is the sum of theirs.
    let one = tensor(&[2.0f32], (1,));
    let taped = one.retaped::<OwnedTape<f32, Dev>>();
    let scale = taped.reshape_like(&()).broadcast_like::<(usize,), Axis<0>>(&(3,));
    let (scale, tape) = scale.split_tape();
    let y = layer_norm(copied.clone().put_tape(tape), &scale, &beta, 1e-5).unwrap();
    let dgamma = backward(y, &dy);
    let twos = tensor(&[2.0f32; 3], (3,));
    let y = layer_norm(copied.leaky_trace(), &twos, &beta, 1e-5).unwrap();
    let sum = backward(y, &dy).get(&twos).as_vec().iter().sum::<f32>();
    let got = dgamma.get(&one).as_vec()[0];
    assert!((got - sum).abs() <= 1e-5 * sum.abs().max(1.0), "{got}, {sum}");
}

/// As the documentation has it: squares that are no `f32` give the bias, and a sum that is none gives NaN.
#[test]
fn the_ends_of_the_range() {
    let (ones, half) = (tensor(&[1.0; 4], (4,)), tensor(&[0.5; 4], (4,)));
    let norm =
        |x: [f32; 4]| layer_norm(tensor(&x, (1, 1, 4)), &ones, &half, 1e-5).unwrap().as_vec();
    assert_eq!(norm([1e20, -1e20, 1e20, -1e20]), [0.5; 4]);
    assert!(norm([3e38, 3e38, 1.0, 1.0]).iter().all(|y| y.is_nan()));
    // Sums of four such numbers are exact, so the large mean costs nothing.
    assert_eq!(norm([8193.0, 8191.0, 8193.0, 8191.0]), norm([1.0, -1.0, 1.0, -1.0]));
}

/// `f16`: the statistics are kept in `f32`, and the result is rounded once.
#[test]
#[cfg(feature = "f16")]
fn halves_are_rounded_once() {
    let half = |values: &[f32]| values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
    let norm = LayerNorm::<4, f16, Dev>::new(&dev(), LayerNormConfig::default()).unwrap();
    // 400 from their mean: the square is larger than any f16.
    let x = half(&[1000.0, 200.0, 1000.0, 200.0]);
    let y = norm.forward(tensor(&x, (1, 1, Const::<4>)));
    assert_eq!(y.as_vec(), half(&[1.0, -1.0, 1.0, -1.0]));
}
