//! SwiGLU in `f64`, for any size, beside one plain loop.

mod unasked;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::feedforward::{SwiGlu, ffn_hidden_size, silu_mul};
use quadrivium::tensor::*;

/// `matrix x`, the matrix `[o, i]`.
fn product(matrix: &[f64], x: &[f64]) -> Vec<f64> {
    matrix.chunks(x.len()).map(|row| dot(row, x)).collect()
}

/// `silu(a) * b`: what comes up, as far as the gate lets it through.
fn gate(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a / (1.0 + (-a).exp()) * b).collect()
}

/// Of the library: the gated values, and the gradients of both branches.
fn run(a: &[f64], b: &[f64], dz: &[f64]) -> [Vec<f64>; 3] {
    let shape = (1usize, 1usize, a.len());
    let (a, b) = (tensor(a, shape), tensor(b, shape));
    let z = silu_mul(Trace::<f64, Dev>::leaky_trace(&a), b.retaped()).unwrap();
    let values = z.as_vec();
    let grads = backward(z, dz);
    [values, grads.get(&a).as_vec(), grads.get(&b).as_vec()]
}

/// Also where the gate is practically open or shut.
fn gates(n: usize) -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(prop_oneof![-4.0..4.0f64, -800.0..800.0f64], n)
}

/// A few roundings of each value. Where the loop's `exp` is no number of `f64`, both are practically 0.
#[test]
fn the_gate_is_the_formula() {
    forall((gates(6), numbers(6)), |(a, b)| {
        let want = gate(&a, &b);
        let [z, ..] = run(&a, &b, &b);
        assert_within(&z, &want, |i| 16.0 * U64 * want[i].abs() + 1e-300);
    });
}

/// What a gate lets through, less what its negative lets through, is the plain product.
#[test]
fn a_gate_and_its_negative_are_open_together() {
    forall((gates(6), numbers(6)), |(a, b)| {
        let minus_a: Vec<f64> = a.iter().map(|a| -a).collect();
        let [z, minus_z] = [&a, &minus_a].map(|a| run(a, &b, &b)[0].clone());
        for i in 0..6 {
            let want = a[i] * b[i];
            assert!((z[i] - minus_z[i] - want).abs() <= 16.0 * U64 * want.abs());
        }
    });
}

/// The gradients are those of the forward pass. Values are below 4, so third derivatives are below 30, and the loss is below 400:
/// its roundings, divided by the step, are the larger part.
#[test]
fn agrees_with_finite_differences() {
    forall((numbers(6), numbers(6), numbers(6)), |(a, b, dz)| {
        let [_, da, db] = run(&a, &b, &dz);
        let loss = |a: &[f64], b: &[f64]| dot(&gate(a, b), &dz);
        assert_within(&da, &slopes(&a, |a| loss(a, &b)), |_| 1e-7);
        assert_within(&db, &slopes(&b, |b| loss(&a, b)), |_| 1e-7);
    });
}

/// The module is its three matrices and the gate, and each token goes by itself. Some tens of roundings of numbers below 100.
#[test]
fn the_module_is_the_formula() {
    let network = SwiGlu::<3, 5, f64, _>::new(&dev(), 7, 0.5).unwrap();
    let [w1, w3, w2] = [
        network.gate_proj.weight.as_vec(),
        network.up_proj.weight.as_vec(),
        network.down_proj.weight.as_vec(),
    ];
    forall(numbers(12), |x| {
        let y = network.try_forward(tensor(&x, (2, 2, Const::<3>))).unwrap().as_vec();
        let token = |x| product(&w2, &gate(&product(&w1, x), &product(&w3, x)));
        let want: Vec<f64> = x.chunks(3).flat_map(token).collect();
        assert_within(&y, &want, |_| 1e-12);
    });
}

/// `8h / 3`, times a multiplier, rounded up to a multiple. With quickcheck: any whole numbers.
#[test]
fn the_size_between_is_a_multiple() {
    fn multiple(h: u16, multiple_of: u8) -> bool {
        let (h, m) = (usize::from(h) + 1, usize::from(multiple_of) + 1);
        let (f, least) = (ffn_hidden_size(h, m, None).unwrap(), 8 * h / 3);
        f % m == 0 && f >= least && f < least + m
    }
    law(multiple as fn(u16, u8) -> bool);
}
