//! LayerNorm in `f64`, for any size, beside one plain loop.

mod unasked;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::functional::layer_norm;
use quadrivium::tensor::*;

/// The definition, token by token.
fn loops(x: &[f64], gamma: &[f64], beta: &[f64], eps: f64) -> Vec<f64> {
    let h = gamma.len();
    let mut y = Vec::new();
    for token in x.chunks(h) {
        let mean = token.iter().sum::<f64>() / h as f64;
        let variance = token.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / h as f64;
        for (j, x) in token.iter().enumerate() {
            y.push((x - mean) / (variance + eps).sqrt() * gamma[j] + beta[j]);
        }
    }
    y
}

/// Of the library: y, and the gradients of x, gamma and beta.
fn run(x: &[f64], gamma: &[f64], beta: &[f64], dy: &[f64], eps: f64) -> [Vec<f64>; 4] {
    let h = gamma.len();
    let (gamma, beta) = (tensor(gamma, (h,)), tensor(beta, (h,)));
    let x = tensor(x, (1, x.len() / h, h));
    let y = layer_norm(Trace::<f64, Dev>::leaky_trace(&x), &gamma, &beta, eps).unwrap();
    let values = y.as_vec();
    let grads = backward(y, dy);
    [values, grads.get(&x).as_vec(), grads.get(&gamma).as_vec(), grads.get(&beta).as_vec()]
}

#[derive(Debug, Clone)]
struct Case {
    x: Vec<f64>,
    gamma: Vec<f64>,
    beta: Vec<f64>,
    eps: f64,
}

fn cases() -> impl Strategy<Value = Case> {
    (1..7usize, 1..9usize, prop_oneof![Just(0.01), Just(0.25)]).prop_flat_map(|(tokens, h, eps)| {
        let values = (numbers(tokens * h), numbers(h), numbers(h));
        values.prop_map(move |(x, gamma, beta)| Case { x, gamma, beta, eps })
    })
}

/// Some tens of roundings of numbers of size 4, divided by a deviation of at least 0.1 and multiplied by gamma.
const NEAR: f64 = 1e-12;

#[test]
fn it_is_the_formula() {
    forall(cases(), |Case { x, gamma, beta, eps }| {
        let [y, ..] = run(&x, &gamma, &beta, &x, eps);
        assert_within(&y, &loops(&x, &gamma, &beta, eps), |_| NEAR);
    });
}

/// One number added to all elements of a token changes nothing.
#[test]
fn a_shift_changes_nothing() {
    forall((cases(), -4.0..4.0f64), |(Case { x, gamma, beta, eps }, c)| {
        let shifted: Vec<f64> = x.iter().map(|x| x + c).collect();
        let [here, there] = [&x, &shifted].map(|x| run(x, &gamma, &beta, x, eps));
        assert_within(&there[0], &here[0], |_| 4.0 * NEAR);
    });
}

/// Because a shift changes nothing, the gradient along it is 0.
#[test]
fn the_gradient_of_a_token_sums_to_zero() {
    forall(cases(), |Case { x, gamma, beta, eps }| {
        let [_, dx, ..] = run(&x, &gamma, &beta, &x, eps);
        for dx in dx.chunks(gamma.len()) {
            assert!(dx.iter().sum::<f64>().abs() <= 10.0 * NEAR);
        }
    });
}

/// The gradients are those of the forward pass. Third derivatives are below 1 here.
#[test]
fn agrees_with_finite_differences() {
    for h in [1, 2, 7] {
        let [x, dy] = [wave(6 * h, 1.7), wave(6 * h, 3.1)];
        let [gamma, beta] = [wave(h, 2.3), wave(h, 0.9)];
        let loss = |x: &[f64], gamma: &[f64], beta: &[f64]| dot(&loops(x, gamma, beta, 0.25), &dy);
        let [_, dx, dgamma, dbeta] = run(&x, &gamma, &beta, &dy, 0.25);
        assert_within(&dx, &slopes(&x, |x| loss(x, &gamma, &beta)), |_| 1e-9);
        assert_within(&dgamma, &slopes(&gamma, |gamma| loss(&x, gamma, &beta)), |_| 1e-9);
        assert_within(&dbeta, &slopes(&beta, |beta| loss(&x, &gamma, beta)), |_| 1e-9);
    }
}

/// A token of equal values has nothing but its mean, and gives beta. With quickcheck: any whole number, so nothing is rounded.
#[test]
fn a_constant_token_gives_beta() {
    fn constant(c: i16, beta: Vec<i8>) -> bool {
        let h = beta.len() + 1;
        let beta: Vec<f64> = beta.into_iter().chain([1]).map(f64::from).collect();
        run(&vec![c.into(); h], &vec![3.0; h], &beta, &beta, 1e-5)[0] == beta
    }
    law(constant as fn(i16, Vec<i8>) -> bool);
}
