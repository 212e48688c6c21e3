//! SwiGLU: what the contract does not ask of it. dfdx's own gradient, what is drawn, refusals.

use super::*;
use quadrivium::Error;

type Rows = (usize, usize, usize);

/// The hand-written gradient is also what dfdx derives from the formula in its own operations.
#[test]
fn agrees_with_dfdx_autograd() {
    let (n, shape) = (24, (2, 3, 4));
    let [a, b, dz] =
        [1.7, 2.9, 0.6].map(|k| wave(n, k).iter().map(|x| 3.0 * x).collect::<Vec<_>>());
    let got = run(&a, &b, &dz);
    let (a, b): (Tensor<Rows, f64, Dev>, Tensor<Rows, f64, Dev>) =
        (tensor(&a, shape), tensor(&b, shape));
    let traced = Trace::<f64, Dev>::leaky_trace(&a);
    let z = traced.with_empty_tape().sigmoid() * traced * b.retaped::<OwnedTape<f64, Dev>>();
    let values = z.as_vec();
    let grads = backward(z, &dz);
    let want = [values, grads.get(&a).as_vec(), grads.get(&b).as_vec()];
    // Some ten roundings of values of size 100.
    for (got, want) in got.iter().zip(&want) {
        assert_within(got, want, |_| 1e-13);
    }
}

/// The slope of an open gate is 1, that of a shut one 0, and nothing on the way to them is no number.
#[test]
fn gradients_of_open_and_of_shut_gates() {
    let (a, b) = ([-800.0, -40.0, 0.0, 40.0, 90.0, 800.0f64], [1.0, 2.0, 3.0, -4.0, 0.5, 1.0]);
    let [_, da, db] = run(&a, &b, &[1.0; 6]);
    let open = a.map(|a| 1.0 / (1.0 + (-a).exp()));
    let slope = |i: usize| b[i] * open[i] * (1.0 + a[i] * (1.0 - open[i]));
    assert_within(&da, &[0, 1, 2, 3, 4, 5].map(slope), |i| 1e-14 * slope(i).abs());
    assert_within(&db, &gate(&a, &[1.0; 6]), |i| 1e-14 * (a[i] * open[i]).abs());
}

/// What is drawn depends on the seed alone, and no two matrices are the same.
#[test]
fn three_matrices_from_one_seed() {
    let of = |seed| SwiGlu::<4, 4, f32, _>::new(&dev(), seed, 0.02).unwrap();
    let (one, again, other) = (of(1), of(1), of(9));
    assert_same_bits(&one.gate_proj.weight.as_vec(), &again.gate_proj.weight.as_vec());
    assert_ne!(one.gate_proj.weight.as_vec(), other.gate_proj.weight.as_vec());
    assert_ne!(one.gate_proj.weight.as_vec(), one.up_proj.weight.as_vec());
    assert_ne!(one.up_proj.weight.as_vec(), one.down_proj.weight.as_vec());
}

/// Sizes that make no sense are refused, and none of them panics.
#[test]
fn sizes_that_make_no_sense_are_errors() {
    for (h, m, c) in [(0, 1, None), (1, 0, None), (4, 4, Some(0.0)), (4, 4, Some(f64::NAN))] {
        let error = ffn_hidden_size(h, m, c).unwrap_err();
        assert!(matches!(error, Error::Setting { .. }), "{error}");
    }
    for (h, m, c) in [(usize::MAX, 1, None), (4, 7, Some(f64::INFINITY)), (4, 2, Some(1e300))] {
        assert!(ffn_hidden_size(h, m, c).is_err(), "{h} {m} {c:?}");
    }
    // Never 0, however small the multiplier.
    assert_eq!(ffn_hidden_size(1, 1, Some(1e-9)), Ok(1));
}

/// Branches of different shapes are refused; empty ones too, because dfdx can't hold them.
#[test]
fn shapes_that_do_not_fit_are_errors() {
    let of = |n: usize| tensor(&vec![1.0f32; 2 * n], (1, 2, n));
    let error = silu_mul(of(3), of(4)).unwrap_err();
    assert_eq!(error, Error::Shape { name: "up", expected: vec![1, 2, 3], got: vec![1, 2, 4] });
    let error = silu_mul(of(0), of(0)).unwrap_err();
    assert_eq!(error, Error::Empty { name: "gate", shape: vec![1, 2, 0] });
}
