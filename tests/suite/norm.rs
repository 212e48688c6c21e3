//! GroupRMSNorm in `f64`, for any size, beside one plain loop.

mod unasked;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::functional::group_rms_norm;
use quadrivium::tensor::*;

/// Values and gradients, and how large the terms of the gradients are.
#[derive(Default)]
pub(crate) struct Loops {
    pub y: Vec<f64>,
    pub dx: Vec<f64>,
    pub dgamma: Vec<f64>,
    pub dx_size: Vec<f64>,
    pub dgamma_size: Vec<f64>,
}

/// The definition, group by group, and its gradient.
pub(crate) fn loops(x: &[f64], gamma: &[f64], dy: &[f64], group_size: usize, eps: f64) -> Loops {
    let h = gamma.len();
    let mut all = Loops { dgamma: vec![0.0; h], dgamma_size: vec![0.0; h], ..Loops::default() };
    for start in (0..x.len()).step_by(group_size) {
        let group = start..start + group_size;
        let mean = |f: &dyn Fn(usize) -> f64| group.clone().map(f).sum::<f64>() / group_size as f64;
        let rms = (mean(&|i| x[i] * x[i]) + eps).sqrt();
        let xhat = |i: usize| x[i] / rms;
        let gamma_dy = |i: usize| gamma[i % h] * dy[i];
        let along = mean(&|i| gamma_dy(i) * xhat(i));
        let along_size = mean(&|i| (gamma_dy(i) * xhat(i)).abs());
        for i in group.clone() {
            all.y.push(xhat(i) * gamma[i % h]);
            all.dx.push((gamma_dy(i) - xhat(i) * along) / rms);
            all.dx_size.push((gamma_dy(i).abs() + xhat(i).abs() * along_size) / rms);
            all.dgamma[i % h] += dy[i] * xhat(i);
            all.dgamma_size[i % h] += (dy[i] * xhat(i)).abs();
        }
    }
    all
}

#[derive(Debug, Clone)]
struct Case {
    h: usize,
    group_size: usize,
    eps: f64,
    x: Vec<f64>,
    gamma: Vec<f64>,
    dy: Vec<f64>,
}

fn cases() -> impl Strategy<Value = Case> {
    let eps = prop_oneof![Just(1e-5), Just(1e-6), Just(0.25)];
    (1..7usize, 1..4usize, 1..9usize, eps).prop_flat_map(|(tokens, groups, group_size, eps)| {
        let h = groups * group_size;
        let values = (numbers(tokens * h), numbers(h), numbers(tokens * h));
        values.prop_map(move |(x, gamma, dy)| Case { h, group_size, eps, x, gamma, dy })
    })
}

fn forward<F: Float>(x: &[F], gamma: &[F], group_size: usize, eps: f64) -> Vec<F>
where
    Dev: Backend<F>,
{
    let h = gamma.len();
    let (x, gamma) = (tensor(x, (1, x.len() / h, h)), tensor(gamma, (h,)));
    group_rms_norm(x, &gamma, group_size, eps).unwrap().as_vec()
}

/// Values, and the gradients of x and of gamma.
fn run(Case { h, group_size, eps, x, gamma, dy }: &Case) -> [Vec<f64>; 3] {
    let (x, gamma) = (tensor(x, (1, x.len() / h, *h)), tensor(gamma, (*h,)));
    let y = group_rms_norm(x.leaky_trace(), &gamma, *group_size, *eps).unwrap();
    let values = y.as_vec();
    let grads = backward(y, dy);
    [values, grads.get(&x).as_vec(), grads.get(&gamma).as_vec()]
}

/// Sums of up to 8 squares and of 6 tokens: less than 40 roundings on either side.
#[test]
fn it_is_the_formula_and_so_is_its_gradient() {
    forall(cases(), |case| {
        let want = loops(&case.x, &case.gamma, &case.dy, case.group_size, case.eps);
        let [y, dx, dgamma] = run(&case);
        assert_within(&y, &want.y, |i| 80.0 * U64 * want.y[i].abs());
        assert_within(&dx, &want.dx, |i| 80.0 * U64 * want.dx_size[i]);
        assert_within(&dgamma, &want.dgamma, |i| 80.0 * U64 * want.dgamma_size[i]);
    });
}

/// `mean(y^2) = ms / (ms + eps)` where gamma is 1: a root mean square of 1, up to eps.
#[test]
fn each_group_has_rms_one_up_to_eps() {
    forall(cases(), |Case { group_size, eps, x, gamma, .. }| {
        let y = forward(&x, &vec![1.0; gamma.len()], group_size, eps);
        for (x, y) in x.chunks(group_size).zip(y.chunks(group_size)) {
            let [before, after] = [x, y].map(|v| dot(v, v) / group_size as f64);
            let want = before / (before + eps);
            assert!((after - want).abs() <= 60.0 * U64 * want);
        }
    });
}

/// Groups are separate norms, side by side, bit for bit.
#[test]
fn a_group_is_an_rms_norm_of_its_own() {
    forall(cases(), |Case { h, group_size, eps, x, gamma, .. }| {
        let y = forward(&x, &gamma, group_size, eps);
        for (g, (x, y)) in x.chunks(group_size).zip(y.chunks(group_size)).enumerate() {
            let gamma = &gamma[g * group_size % h..][..group_size];
            assert_eq!(forward(x, gamma, group_size, eps), y);
        }
    });
}

/// `N(2^j x; 4^j eps) = N(x; eps)` and `N(-x) = -N(x)`: powers of two change exponents, and no digit.
#[test]
fn powers_of_two_and_signs_pass_exactly() {
    forall((values(12), values(6), -8i32..9), |(x, gamma, j)| {
        let y = forward(&x, &gamma, 3, 1e-5);
        let scaled: Vec<f32> = x.iter().map(|x| x * 2f32.powi(j)).collect();
        assert_same_bits(&forward(&scaled, &gamma, 3, 1e-5 * 4f64.powi(j)), &y);
        let [minus_x, minus_y] = [&x, &y].map(|v| v.iter().map(|x| -x).collect::<Vec<f32>>());
        assert_same_bits(&forward(&minus_x, &gamma, 3, 1e-5), &minus_y);
    });
}

/// A NaN stays in its group. With quickcheck: any whole numbers, any place for it.
#[test]
fn groups_do_not_see_each_other() {
    fn apart(x: [i8; 12], at: usize) -> bool {
        let (mut x, at) = (x.map(f32::from), at % 12);
        let clean = forward(&x, &[1.0; 6], 3, 1e-5);
        x[at] = f32::NAN;
        let y = forward(&x, &[1.0; 6], 3, 1e-5);
        (0..12).all(|i| if i / 3 == at / 3 { y[i].is_nan() } else { y[i] == clean[i] })
    }
    law(apart as fn([i8; 12], usize) -> bool);
}
