//! GroupRMSNorm: every invariant of its definition.

use crate::oracle;
use crate::support::*;
use proptest::prelude::*;
use quadrivium::functional::group_rms_norm;
use quadrivium::tensor::*;
use quadrivium::{GroupRmsNorm, GroupRmsNormConfig};

/// Values of one call. `x` and `dy` are `[b, s, h]`, `gamma` is `[h]`.
#[derive(Debug, Clone)]
struct Case {
    shape: (usize, usize),
    x: Vec<f32>,
    gamma: Vec<f32>,
    dy: Vec<f32>,
    eps: f64,
}

fn cases(h: usize) -> impl Strategy<Value = Case> {
    let eps = prop_oneof![Just(1e-5), Just(1e-6), Just(0.25)];
    let scale = prop_oneof![Just(1.0f32), Just(2.0f32.powi(-12)), Just(2.0f32.powi(12))];
    (1..4usize, 1..4usize, eps, scale).prop_flat_map(move |(b, s, eps, scale)| {
        let n = b * s * h;
        (values(n), values(h), values(n)).prop_map(move |(x, gamma, dy)| {
            let x = x.iter().map(|x| x * scale).collect();
            Case { shape: (b, s), x, gamma, dy, eps }
        })
    })
}

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

/// The outcome of a call as plain values.
struct Outcome<F> {
    y: Vec<F>,
    dx: Vec<F>,
    dgamma: Vec<F>,
}

fn run<const H: usize, const GZ: usize, F: Float>(
    (b, s): (usize, usize),
    x: &[F],
    gamma: &[F],
    dy: &[F],
    eps: f64,
) -> Outcome<F>
where
    Dev: Backend<F>,
{
    let norm = module::<H, GZ, F>(gamma, eps);
    let x = tensor(x, (b, s, Const::<H>));
    let y = norm.forward(Trace::<F, Dev>::leaky_trace(&x));
    let values = y.as_vec();
    let grads = backward(y, dy);
    let (dx, dgamma) = (grads.get(&x).as_vec(), grads.get(&norm.weight).as_vec());
    Outcome { y: values, dx, dgamma }
}

fn forward<const H: usize, const GZ: usize>(case: &Case) -> Vec<f32> {
    let x = tensor(&case.x, (case.shape.0, case.shape.1, Const::<H>));
    module::<H, GZ, f32>(&case.gamma, case.eps).forward(x).as_vec()
}

/// Calls a generic function for each shape of the menu: plain, grouped, single, odd, large.
macro_rules! for_menu {
    ($check:ident) => {
        $check::<8, 8>();
        $check::<8, 4>();
        $check::<8, 1>();
        $check::<12, 3>();
        $check::<10, 5>();
        $check::<64, 16>();
    };
}

/// Forward and both gradients against `f64` loops.
///
/// The bounds count roundings, `u = 2^-24` each. In `y`, the sum of `gz` squares takes `gz`, the
/// division and `eps` two more; the root halves them and adds one, then come a division and a
/// product: `(gz / 2 + 4) u` of the value. In `dx` the error of the root enters three times (in
/// `xhat` inside the mean, in `xhat` outside, and in the last division), and a second sum of `gz`
/// adds its own: `(5 gz / 2 + 14) u` of `dx_scale`. `dgamma` adds one rounding a row.
#[test]
fn agrees_with_f64_loops() {
    fn check<const H: usize, const GZ: usize>() {
        forall(cases(H), |case| {
            let got = run::<H, GZ, f32>(case.shape, &case.x, &case.gamma, &case.dy, case.eps);
            let (x, gamma, dy) = (widen(&case.x), widen(&case.gamma), widen(&case.dy));
            let want = oracle::norm::norm(&x, &gamma, &dy, GZ, case.eps);
            let (gz, rows) = (GZ as f64, (case.shape.0 * case.shape.1) as f64);
            let y_bound = (gz / 2.0 + 4.0) * U32;
            assert_within(&widen(&got.y), &want.y, |i| y_bound * want.y[i].abs());
            let dx_bound = (2.5 * gz + 14.0) * U32;
            assert_within(&widen(&got.dx), &want.dx, |i| dx_bound * want.dx_scale[i]);
            let dgamma_bound = (gz / 2.0 + 4.0 + rows) * U32;
            assert_within(&widen(&got.dgamma), &want.dgamma, |i| {
                dgamma_bound * want.dgamma_scale[i]
            });
        });
    }
    for_menu!(check);
}

/// The gradients are those of the forward pass: `f64` central differences.
///
/// Step `2^-17`: the method errs by `step^2 / 6 = 1e-11` times a third derivative, which is some
/// tens here, where every rms is at least 0.5, and by `u64 / step = 1e-11` times the loss.
#[test]
fn agrees_with_finite_differences() {
    fn check<const H: usize, const GZ: usize>() {
        let wave =
            |n: usize, k: f64| (0..n).map(|i| (k * (i as f64 + 1.0)).sin()).collect::<Vec<_>>();
        let (x, gamma, dy) = (wave(2 * H, 1.7), wave(H, 2.3), wave(2 * H, 3.1));
        let loss = |x: &[f64], gamma: &[f64]| -> f64 {
            let y = module::<H, GZ, f64>(gamma, 0.25).forward(tensor(x, (1, 2, Const::<H>)));
            y.as_vec().iter().zip(&dy).map(|(y, dy)| y * dy).sum()
        };
        let slope = |at: &[f64], f: &dyn Fn(&[f64]) -> f64| {
            let step = 2.0f64.powi(-17);
            let moved = |i: usize, by: f64| {
                let mut at = at.to_vec();
                at[i] += by;
                f(&at)
            };
            (0..at.len())
                .map(|i| (moved(i, step) - moved(i, -step)) / (2.0 * step))
                .collect::<Vec<_>>()
        };
        let got = run::<H, GZ, f64>((1, 2), &x, &gamma, &dy, 0.25);
        assert_within(&got.dx, &slope(&x, &|x| loss(x, &gamma)), |_| 1e-9);
        assert_within(&got.dgamma, &slope(&gamma, &|gamma| loss(&x, gamma)), |_| 1e-9);
    }
    for_menu!(check);
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

    let got = run::<8, 4, f64>((2, 3), &x.as_vec(), &gamma.as_vec(), &dy.as_vec(), 1e-2);
    assert_within(&got.y, &values, |i| 16.0 * U64 * values[i].abs());
    let (dx, dgamma) = (grads.get(&x).as_vec(), grads.get(&gamma).as_vec());
    assert_within(&got.dx, &dx, |_| 1e-13);
    assert_within(&got.dgamma, &dgamma, |_| 1e-13);
}

/// `x = sqrt(eps)` everywhere gives `1 / sqrt(2)`: eps is inside the root, and not forgotten.
#[test]
fn eps_stands_inside_the_root() {
    for eps in [1e-5, 1e-2, 0.25] {
        let x = [(eps as f32).sqrt(); 8];
        let y = module::<8, 4, f32>(&[1.0; 8], eps).forward(tensor(&x, (1, 1, Const::<8>)));
        assert_within(&widen(&y.as_vec()), &[0.5f64.sqrt(); 8], |_| 8.0 * U32);
    }
}

/// With gamma = 1: `mean(y^2) = ms / (ms + eps)`, which is "RMS = 1" with its exact eps; and
/// `|y| <= sqrt(gz)`, because one square is at most the sum of all.
#[test]
fn each_group_has_rms_one_up_to_eps() {
    fn check<const H: usize, const GZ: usize>() {
        forall(cases(H), |mut case| {
            case.gamma = vec![1.0; H];
            let y = widen(&forward::<H, GZ>(&case));
            let bound = (GZ as f64 + 9.0) * U32; // twice the relative error of y
            let mean_square = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>() / GZ as f64;
            for (x, y) in widen(&case.x).chunks(GZ).zip(y.chunks(GZ)) {
                let ms = mean_square(x);
                let want = ms / (ms + case.eps);
                assert!((mean_square(y) - want).abs() <= bound * want);
                assert!(y.iter().all(|y| y.abs() <= (GZ as f64).sqrt() * (1.0 + bound)));
            }
        });
    }
    for_menu!(check);
}

/// `N(2^j x; 4^j eps) = N(x; eps)` and `N(-x) = -N(x)`, bit for bit: scaling by a power of two
/// changes exponents only.
#[test]
fn powers_of_two_and_signs_pass_exactly() {
    fn check<const H: usize, const GZ: usize>() {
        forall((cases(H), -8i32..9), |(case, j)| {
            let y = forward::<H, GZ>(&case);
            let scale = 2.0f32.powi(j);
            let scaled = Case {
                x: case.x.iter().map(|x| x * scale).collect(),
                eps: case.eps * 4.0f64.powi(j),
                ..case.clone()
            };
            assert_same_bits(&forward::<H, GZ>(&scaled), &y);
            let negated = Case { x: case.x.iter().map(|x| -x).collect(), ..case };
            let minus_y: Vec<f32> = y.iter().map(|y| -y).collect();
            assert_same_bits(&forward::<H, GZ>(&negated), &minus_y);
        });
    }
    for_menu!(check);
}

/// A NaN in one group leaves every other bit-identical.
#[test]
fn groups_do_not_see_each_other() {
    fn check<const H: usize, const GZ: usize>() {
        forall((cases(H), any::<prop::sample::Index>()), |(case, at)| {
            let clean = forward::<H, GZ>(&case);
            let at = at.index(case.x.len());
            let mut poisoned = case;
            poisoned.x[at] = f32::NAN;
            let y = forward::<H, GZ>(&poisoned);
            for (g, (got, want)) in y.chunks(GZ).zip(clean.chunks(GZ)).enumerate() {
                if g == at / GZ {
                    assert!(got.iter().all(|y| y.is_nan()));
                } else {
                    assert_same_bits(got, want);
                }
            }
        });
    }
    for_menu!(check);
}

/// Whole groups may change places, if gamma's do too: groups are contiguous.
#[test]
fn groups_permute_with_gamma() {
    fn check<const H: usize, const GZ: usize>() {
        forall(cases(H), |case| {
            // Each row's first group goes to its end.
            let turn = |v: &[f32]| {
                let rows = v.chunks(H).flat_map(|row| [&row[GZ..], &row[..GZ]].concat());
                rows.collect::<Vec<f32>>()
            };
            let turned = Case { x: turn(&case.x), gamma: turn(&case.gamma), ..case.clone() };
            assert_same_bits(&forward::<H, GZ>(&turned), &turn(&forward::<H, GZ>(&case)));
        });
    }
    for_menu!(check);
}

/// One group of all elements is plain RMSNorm; groups are RMSNorms side by side.
#[test]
fn a_group_is_an_rms_norm_of_its_own() {
    forall(cases(8), |case| {
        let (b, s) = case.shape;
        let y = forward::<8, 4>(&case);
        for g in 0..2 {
            let part = |v: &[f32]| {
                v.chunks(8).flat_map(|row| row[4 * g..][..4].to_vec()).collect::<Vec<_>>()
            };
            let alone = module::<4, 4, f32>(&part(&case.gamma), case.eps);
            let alone = alone.forward(tensor(&part(&case.x), (b, s, Const::<4>)));
            assert_same_bits(&alone.as_vec(), &part(&y));
        }
    });
}

/// `x . dx = (xhat . gamma dy) eps / (ms + eps)` in each group. For `eps = 0` the gradient is
/// orthogonal to the input: scaling `x` changes nothing. In `f64`, each side to `(3 gz + 20) u`.
#[test]
fn the_gradient_is_orthogonal_to_the_input_but_for_eps() {
    fn check<const H: usize, const GZ: usize>() {
        forall(cases(H), |case| {
            let (x, gamma, dy) = (widen(&case.x), widen(&case.gamma), widen(&case.dy));
            let got = run::<H, GZ, f64>(case.shape, &x, &gamma, &dy, case.eps);
            for g in 0..x.len() / GZ {
                let group = || GZ * g..GZ * (g + 1);
                let sum = |f: &dyn Fn(usize) -> f64| group().map(f).sum::<f64>();
                let root = (sum(&|i| x[i] * x[i]) / GZ as f64 + case.eps).sqrt();
                let term = |i: usize| x[i] / root * gamma[i % H] * dy[i];
                let want = sum(&term) * case.eps / (root * root);
                let scale = sum(&|i| term(i).abs());
                let error = (sum(&|i| x[i] * got.dx[i]) - want).abs();
                assert!(error <= (3.0 * GZ as f64 + 20.0) * U64 * scale);
            }
        });
    }
    for_menu!(check);
}

/// A row of zeros gives zeros, and `dx = gamma dy / sqrt(eps)`.
#[test]
fn a_zero_row_stays_zero_and_passes_its_gradient() {
    let (gamma, dy) = ([2.0, -3.0, 0.5, 1.0f64], [1.0, 2.0, -4.0, 0.25]);
    let got = run::<4, 2, f64>((1, 1), &[0.0; 4], &gamma, &dy, 1e-4);
    assert_eq!(got.y, [0.0; 4]);
    let want: Vec<f64> = gamma.iter().zip(&dy).map(|(g, d)| g * d / 1e-2).collect();
    assert_within(&got.dx, &want, |i| 8.0 * U64 * want[i].abs());
    assert_eq!(got.dgamma, [0.0; 4]);
}

/// A second norm changes a normalized row only by `1 / sqrt(ms' + eps)` with
/// `ms' = ms / (ms + eps)`.
#[test]
fn normalizing_twice_is_normalizing_once_up_to_a_known_factor() {
    forall(cases(8), |mut case| {
        case.gamma = vec![1.0; 8];
        let once = forward::<8, 4>(&case);
        let twice = forward::<8, 4>(&Case { x: once.clone(), ..case.clone() });
        for g in 0..once.len() / 4 {
            let ms = widen(&case.x[4 * g..][..4]).iter().map(|x| x * x).sum::<f64>() / 4.0;
            let factor = 1.0 / (ms / (ms + case.eps) + case.eps).sqrt();
            let once = widen(&once[4 * g..][..4]);
            let want: Vec<f64> = once.iter().map(|y| y * factor).collect();
            // Both calls err by (gz/2 + 4) u, and the first one's error enters the second's mean.
            assert_within(&widen(&twice[4 * g..][..4]), &want, |i| 18.0 * U32 * want[i].abs());
        }
    });
}

/// A permuted or broadcast input gives what its contiguous copy gives, gradient included.
#[test]
fn strides_do_not_matter() {
    let norm = module::<4, 2, f32>(&[1.0, -2.0, 3.0, 0.5], 1e-5);
    let x: Tensor<(usize, usize, Const<4>), f32, Dev> = dev().sample_normal_like(&(3, 2, Const));
    let permuted = x.clone().permute::<_, Axes3<1, 0, 2>>();
    let copy = tensor(&permuted.as_vec(), (2usize, 3usize, Const::<4>));
    assert_eq!(norm.forward(permuted).as_vec(), norm.forward(copy.clone()).as_vec());

    let dy: Tensor<_, f32, Dev> = dev().sample_normal_like(&copy);
    let through =
        |y: Tensor<_, f32, Dev, OwnedTape<f32, Dev>>| (y * dy.clone()).sum::<Rank0, _>().backward();
    let grads = through(norm.forward(x.leaky_trace().permute::<_, Axes3<1, 0, 2>>()));
    let want = through(norm.forward(copy.leaky_trace())).get(&copy).permute::<_, Axes3<1, 0, 2>>();
    assert_eq!(grads.get(&x).as_vec(), want.as_vec());

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
    forall(cases(8), |case| {
        let (b, s) = case.shape;
        let shape = (b, s, Const::<8>);
        let narrow = module::<8, 4, f32>(&case.gamma, case.eps);
        let wide = module::<8, 4, f64>(&widen(&case.gamma), case.eps);
        let x64 = tensor(&widen(&case.x), shape);
        let got: Tensor<_, f64, Dev> = narrow.try_forward_mixed(x64.clone()).unwrap();
        assert_eq!(got.as_vec(), wide.forward(x64).as_vec());
        let x32 = tensor(&case.x, shape);
        let got: Tensor<_, f32, Dev> = wide.try_forward_mixed(x32.clone()).unwrap();
        assert_same_bits(&got.as_vec(), &narrow.forward(x32).as_vec());
    });
}

/// The function takes sizes at run time and gives the module's bits.
#[test]
fn the_function_is_the_module() {
    forall(cases(12), |case| {
        let (b, s) = case.shape;
        let weight = tensor(&case.gamma, (12usize,));
        let y = group_rms_norm(tensor(&case.x, (b, s, 12usize)), &weight, 3, case.eps).unwrap();
        assert_same_bits(&y.as_vec(), &forward::<12, 3>(&case));
    });
}

/// The squares are taken in `f32`, as PyTorch takes them, and no group is scaled first. So there
/// is a range: what the documentation of `group_rms_norm` says of it, at its ends.
#[test]
fn the_range_is_that_of_the_squares() {
    let two = |n: i32| 2f32.powi(n);
    let run = |x: f32, eps| run::<4, 2, f32>((1, 1), &[x, -x, x, x], &[1.0; 4], &[1.0; 4], eps);
    for eps in [0.0, 1e-5] {
        // Two squares of 2^126 have a sum; two of 2^127 have none.
        let inside = run(two(63), eps);
        assert_eq!(inside.y, [1.0, -1.0, 1.0, 1.0]);
        let outside = run(two(64), eps);
        assert_eq!(outside.y, [0.0; 4], "too large for f32: zeros");
        assert_eq!((outside.dx, outside.dgamma), (vec![0.0; 4], vec![0.0; 4]));
    }
    // Without eps: exact down to 2^-63, finite down to 2^-74, then the square is 0. On a GPU the sum of smaller squares is 0
    // at once.
    assert_eq!(run(two(-63), 0.0).y, [1.0, -1.0, 1.0, 1.0]);
    let gpu = cfg!(feature = "cuda");
    assert!(run(two(-74), 0.0).y.iter().all(|y| if gpu { y.is_infinite() } else { y.is_finite() }));
    assert!(run(two(-75), 0.0).y.iter().all(|y| y.is_infinite()));
    assert!(run(0.0, 0.0).y.iter().all(|y| y.is_nan()));
    // With eps, all of this is a number: at most x / sqrt(eps) in size, but for rounding.
    for eps in [1e-30f64, 1e-5] {
        for x in [two(-63), two(-75), two(-149), 0.0] {
            let bound = f64::from(x) / eps.sqrt() * (1.0 + 8.0 * U32) + f64::from(two(-149));
            assert!(run(x, eps).y.iter().all(|y| f64::from(y.abs()) <= bound), "{x:e}, {eps:e}");
        }
    }
    let wide = |n: i32| {
        let x = 2f64.powi(n);
        self::run::<4, 2, f64>((1, 1), &[x; 4], &[1.0; 4], &[1.0; 4], 0.0).y[0]
    };
    assert_eq!([wide(512), wide(511), wide(-511)], [0.0, 1.0, 1.0]);
}
