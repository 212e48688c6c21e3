//! SwiGLU: what the contract does not ask of it. `f64`, dfdx's own gradient, the module, refusals, views.

use crate::support::*;
use quadrivium::Error;
use quadrivium::feedforward::{SwiGlu, ffn_hidden_size, silu_mul};
use quadrivium::tensor::*;

type Rows = (usize, usize, usize);

fn wave(n: usize, k: f64) -> Vec<f64> {
    (0..n).map(|i| 3.0 * (k * (i as f64 + 1.0)).sin()).collect()
}

/// The gate in `f64`: its value, and the gradients of both branches.
fn gate(shape: Rows, a: &[f64], b: &[f64], dz: &[f64]) -> [Vec<f64>; 3] {
    let (a, b) = (tensor(a, shape), tensor(b, shape));
    let z = silu_mul(Trace::<f64, Dev>::leaky_trace(&a), b.retaped()).unwrap();
    let values = z.as_vec();
    let grads = backward(z, dz);
    [values, grads.get(&a).as_vec(), grads.get(&b).as_vec()]
}

/// The hand-written gradient is also what dfdx derives from the formula in its own operations.
#[test]
fn agrees_with_dfdx_autograd() {
    let (n, shape) = (24, (2, 3, 4));
    let [a, b, dz] = [wave(n, 1.7), wave(n, 2.9), wave(n, 0.6)];
    let got = gate(shape, &a, &b, &dz);
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

/// The gradients are those of the forward pass: `f64` central differences, with step `2^-17`. The method errs by
/// `step^2 / 6 = 1e-11` times a third derivative, which is below 30 here, and by the rounding of the sum divided by the
/// step, about `1e-9`.
#[test]
fn agrees_with_finite_differences() {
    let (n, shape) = (6, (1, 2, 3));
    let [a, b, dz] = [wave(n, 1.7), wave(n, 2.9), wave(n, 0.6)];
    let loss = |a: &[f64], b: &[f64]| -> f64 {
        let [z, ..] = gate(shape, a, b, &dz);
        z.iter().zip(&dz).map(|(z, dz)| z * dz).sum()
    };
    let [_, da, db] = gate(shape, &a, &b, &dz);
    let step = 2.0f64.powi(-17);
    for i in 0..n {
        let moved = |values: &[f64], by: f64| {
            let mut values = values.to_vec();
            values[i] += by;
            values
        };
        let of_a = (loss(&moved(&a, step), &b) - loss(&moved(&a, -step), &b)) / (2.0 * step);
        let of_b = (loss(&a, &moved(&b, step)) - loss(&a, &moved(&b, -step))) / (2.0 * step);
        assert_within(&[da[i], db[i]], &[of_a, of_b], |_| 3e-9);
    }
}

/// The module is its three matrices and the gate, and each token goes by itself.
#[test]
fn the_module_is_the_formula() {
    let network = SwiGlu::<3, 5, f64, _>::new(&dev(), 7, 0.5).unwrap();
    let x = wave(12, 1.3);
    let y = network.try_forward(tensor(&x, (2, 2, Const::<3>))).unwrap().as_vec();
    let product = |weight: Vec<f64>, x: &[f64]| -> Vec<f64> {
        weight.chunks(x.len()).map(|row| row.iter().zip(x).map(|(w, x)| w * x).sum()).collect()
    };
    let (gate, up) = (network.gate_proj.weight.as_vec(), network.up_proj.weight.as_vec());
    let down = network.down_proj.weight.as_vec();
    let token = |x: &[f64]| {
        let silu = |a: f64| a / (1.0 + (-a).exp());
        let (a, b) = (product(gate.clone(), x), product(up.clone(), x));
        let z: Vec<f64> = a.iter().zip(&b).map(|(a, b)| silu(*a) * b).collect();
        product(down.clone(), &z)
    };
    let want: Vec<f64> = x.chunks(3).flat_map(token).collect();
    assert_within(&y, &want, |i| 1e-14 * want[i].abs().max(1.0));
}

/// What is drawn depends on the seed alone, and no two matrices are alike.
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
