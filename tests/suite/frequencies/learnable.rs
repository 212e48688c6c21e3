//! Frequencies that are trained: values, both gradients, the weights.

use crate::fused::{TOKENS, draw, expect};
use crate::support::*;
use proptest::prelude::*;
use quadrivium::functional::*;
use quadrivium::pos_emb::*;
use quadrivium::tensor::optim::{Optimizer, Sgd, SgdConfig};
use quadrivium::tensor::*;
use quadrivium::{Error, composed};

type X<const HD: usize, F = f32> = Tensor<(usize, usize, usize, Const<HD>), F, Dev>;

#[derive(Debug, Clone)]
struct Case {
    shape: (usize, usize, usize),
    x: Vec<f32>,
    dy: Vec<f32>,
    theta: Vec<f64>,
    offset: usize,
    layout: Layout,
}

fn cases() -> impl Strategy<Value = Case> {
    let layout = prop_oneof![Just(Layout::HalfSplit), Just(Layout::Interleaved)];
    let theta = proptest::collection::vec(-1.5..1.5f64, 3);
    let sizes = (1..3usize, 1..5usize, 1..3usize);
    (sizes, theta, 0..50usize, layout).prop_flat_map(|(shape, theta, offset, layout)| {
        let count = 6 * shape.0 * shape.1 * shape.2;
        let case = move |(x, dy)| Case { shape, x, dy, theta: theta.clone(), offset, layout };
        (values(count), values(count)).prop_map(case)
    })
}

impl Case {
    /// `y` by loops, with these frequencies.
    fn forward(&self, x: &[f64], theta: &[f64]) -> Vec<f64> {
        let (_, s, n) = self.shape;
        let mut y = x.to_vec();
        for (head, (x, y)) in x.chunks(6).zip(y.chunks_mut(6)).enumerate() {
            let position = (self.offset + head / n % s) as f64;
            for (i, theta) in theta.iter().enumerate() {
                let (a, b) =
                    if self.layout == Layout::HalfSplit { (i, i + 3) } else { (2 * i, 2 * i + 1) };
                let (sin, cos) = (position * theta).sin_cos();
                (y[a], y[b]) = (x[a] * cos - x[b] * sin, x[a] * sin + x[b] * cos);
            }
        }
        y
    }

    fn loss(&self, x: &[f64], theta: &[f64]) -> f64 {
        self.forward(x, theta).iter().zip(widen(&self.dy)).map(|(y, dy)| y * dy).sum()
    }

    /// The loss's slope along one number, by central differences: `h^2 / 6` of the third derivative is left.
    fn slope(&self, of: impl Fn(f64) -> f64) -> f64 {
        let h = 1e-5;
        (of(h) - of(-h)) / (2.0 * h)
    }

    /// Values and gradients in `f64`.
    fn answer(&self) -> [Vec<f64>; 3] {
        let x: X<6, f64> =
            tensor(&widen(&self.x), (self.shape.0, self.shape.1, self.shape.2, Const));
        let theta = tensor(&self.theta, (3usize,));
        let y = rotate_by_frequencies(x.leaky_trace(), &theta, self.offset, self.layout).unwrap();
        let values = y.as_vec();
        let grads = backward(y, &widen(&self.dy));
        [values, grads.get(&x).as_vec(), grads.get(&theta).as_vec()]
    }
}

/// In `f64`, except for tables of `f32`: `u` of each of a plane's two values, of at most 4. A position multiplies that
/// in the gradient of a frequency, and each of the heads has such a term; central differences err by `(h m)^2 / 6` of
/// the same terms, `4e-8` at position 54, and by `2^-52 / h` of the loss.
#[test]
fn values_and_gradients_are_those_of_loops_and_of_differences() {
    forall(cases(), |case| {
        let (x, count) = (widen(&case.x), case.x.len() as f64);
        for [y, dx, dtheta] in [case.answer(), composed(|| case.answer())] {
            assert_within(&y, &case.forward(&x, &case.theta), |_| 2.0 * U32 * 8.0);
            let slope = |i: usize| {
                case.slope(|h| {
                    let mut x = x.clone();
                    x[i] += h;
                    case.loss(&x, &case.theta)
                })
            };
            let want: Vec<f64> = (0..x.len()).map(slope).collect();
            assert_within(&dx, &want, |_| 2.0 * U32 * 8.0 + 1e-9 * count);
            let slope = |i: usize| {
                case.slope(|h| {
                    let mut theta = case.theta.clone();
                    theta[i] += h;
                    case.loss(&x, &theta)
                })
            };
            let want: Vec<f64> = (0..3).map(slope).collect();
            let last = (case.offset + case.shape.1) as f64;
            let terms = last * count * 16.0; // one for each value of a head: dy * y of at most 16
            assert_within(&dtheta, &want, |_| terms * (2.0 * U32 + 5e-8) + 1e-9 * count);
        }
    });
}

/// The same values and the same `dx`, bit for bit, on any number of threads; sums over tokens are in another order.
#[test]
fn the_fused_rotation_by_frequencies_is_that_of_the_formula() {
    for (b, s) in TOKENS {
        for layout in [Layout::HalfSplit, Layout::Interleaved] {
            let (x, theta) = (draw(1, (b, s, 2, 18)), draw(2, (9,)));
            let run = || {
                let y = rotate_by_frequencies(x.leaky_trace(), &theta, 7, layout).unwrap();
                let (values, dy) = (y.as_vec(), draw(99, *y.shape()));
                let grads = (y * dy).sum::<Rank0, _>().backward();
                (vec![values, grads.get(&x).as_vec()], vec![grads.get(&theta).as_vec()])
            };
            expect(&format!("frequencies {b} {s} {layout:?}"), 0.0, || run().0);
            // A sum of some thousand rounded terms of either sign, beside one in f64.
            expect(&format!("their gradient {b} {s} {layout:?}"), 1e-5, || run().1);
        }
    }
}

/// Untrained, in `f64`, it is RoPE bit for bit; in any call, and broadcast, and of a view.
#[test]
fn untrained_frequencies_are_rope() {
    for layout in [Layout::HalfSplit, Layout::Interleaved] {
        let config = LearnableRopeConfig { layout, ..Default::default() };
        let learnable = LearnableRope::<8, f64, Dev>::new(&dev(), config).unwrap();
        let plain = ScaledRopeConfig::new(RotaryFrequencies::plain(8, 10_000.0).unwrap(), 64);
        let plain =
            ScaledRope::<8, Dev>::new(&dev(), ScaledRopeConfig { layout, ..plain }).unwrap();
        let x: X<8, f64> = dev().sample_normal_like(&(2, 5, 3, Const));
        assert_eq!(
            learnable.forward((x.clone(), 9)).as_vec(),
            plain.forward((x.clone(), 9)).as_vec()
        );
        assert_eq!(learnable.forward(x.clone()).as_vec(), plain.forward(x.clone()).as_vec());
        let swapped: Tensor<(usize, usize, usize, Const<8>), f64, Dev, _> =
            x.leaky_trace().permute::<_, Axes4<1, 0, 2, 3>>();
        let y = learnable.forward((swapped, 4));
        let dy: X<8, f64> = dev().sample_normal_like(&(5, 2, 3, Const));
        let want = plain.forward((x.clone().permute::<_, Axes4<1, 0, 2, 3>>(), 4));
        assert_eq!(y.as_vec(), want.as_vec());
        let dx = backward(y, &dy.as_vec()).get(&x);
        let traced = x.leaky_trace().permute::<_, Axes4<1, 0, 2, 3>>();
        let want = backward(plain.forward((traced, 4)), &dy.as_vec()).get(&x);
        assert_eq!(dx.as_vec(), want.as_vec());
    }
}

/// Queries and keys turn by the same weights, whose gradient is the sum of both; and where the distance is 0, a score
/// does not depend on them at all.
#[test]
fn both_sides_of_a_score_train_the_frequencies() {
    let rope = LearnableRope::<4, f64, Dev>::new(&dev(), Default::default()).unwrap();
    let head =
        |seed: f64| -> X<4, f64> { tensor(&[0.3 * seed, -1.0, 0.7, seed], (1, 1, 1, Const)) };
    let gradient = |m: usize, n: usize| {
        let (q, k) = (head(1.3).leaky_trace(), head(0.4));
        let score = rope.forward((q, m)) * rope.forward((k.leaky_trace(), n));
        score.sum::<Rank0, _>().backward().get(&rope.theta).as_vec()
    };
    let (far, shifted) = (gradient(7, 2), gradient(17, 12));
    assert!(far.iter().all(|g| g.abs() > 0.1), "{far:?}");
    // Tables are f32: of terms of at most 2, times 17.
    assert_within(&shifted, &far, |_| 8.0 * U32 * 2.0 * 17.0);
    assert_within(&gradient(9, 9), &[0.0; 2], |_| 8.0 * U32 * 2.0 * 9.0);
}

/// A model that was turned by other frequencies is found by steps downhill.
#[test]
fn frequencies_are_learned() {
    let mut rope = LearnableRope::<4, f32, Dev>::new(&dev(), Default::default()).unwrap();
    let truth = tensor(&[0.9f32, 0.06], (2usize,));
    let x: X<4> = tensor(&[1.0; 4 * 12], (1, 12, 1, Const));
    let want = rotate_by_frequencies(x.clone(), &truth, 0, Layout::HalfSplit).unwrap();
    let mut sgd = Sgd::new(&rope, SgdConfig { lr: 2e-3, ..Default::default() });
    let mut losses = vec![];
    for _ in 0..200 {
        let y = rope.forward(x.clone().traced(rope.alloc_grads()));
        let loss = (y - want.clone()).square().mean::<Rank0, _>();
        losses.push(loss.array());
        let grads = loss.backward();
        sgd.update(&mut rope, &grads).unwrap();
    }
    assert!(losses[199] < losses[0] / 1000.0, "{} {}", losses[0], losses[199]);
    assert_within(&widen(&rope.theta.as_vec()), &[0.9, 0.06], |_| 1e-2);
}

/// They are weights: counted, saved, loaded, converted, reset to their own base.
#[test]
fn frequencies_are_weights() {
    let config = LearnableRopeConfig { base: 100.0, layout: Layout::Interleaved };
    let mut rope = LearnableRope::<4, f32, Dev>::new(&dev(), config).unwrap();
    assert_eq!(NumParams::<f32, Dev>::num_trainable_params(&rope), 2);
    assert_eq!(rope.theta.as_vec(), [1.0, 0.1]);
    rope.theta = tensor(&[0.5, 0.25], Default::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rope.safetensors");
    quadrivium::weights::save_weights::<f32, Dev, _>(&rope, &path).unwrap();
    let mut loaded = LearnableRope::<4, f32, Dev>::new(&dev(), config).unwrap();
    quadrivium::weights::load_weights::<f32, Dev, _>(&mut loaded, &path).unwrap();
    assert_eq!(loaded.theta.as_vec(), [0.5, 0.25]);

    let wide = rope.to_dtype::<f64>();
    assert_eq!((wide.theta.as_vec(), wide.config()), (vec![0.5, 0.25], &config));
    assert_eq!(ToDevice::<f32, Dev, Dev>::to_device(&rope, &dev()).config(), &config);
    ResetParams::<f32, Dev>::reset_params(&mut rope);
    assert_eq!(rope.theta.as_vec(), [1.0, 0.1]);
    assert_eq!(rope.to_string(), "LearnableRope(head_dim=4, base=100, layout=interleaved)");
}

#[test]
fn frequencies_that_do_not_fit_are_refused() {
    let x = || -> X<4> { tensor(&[1.0; 4], (1, 1, 1, Const)) };
    let turn = |theta: &[f32], offset| {
        rotate_by_frequencies(x(), &tensor(theta, (theta.len(),)), offset, Layout::HalfSplit)
            .map(drop)
    };
    let shape = Error::Shape { name: "theta", expected: vec![2], got: vec![3] };
    assert_eq!(turn(&[1.0; 3], 0), Err(shape));
    let nan = turn(&[1.0, f32::NAN], 5).unwrap_err();
    assert!(matches!(nan, Error::Setting { name: "every frequency", .. }), "{nan}");
    let far = Error::PositionOverflow { offset: usize::MAX, length: 1 };
    assert_eq!(turn(&[1.0; 2], usize::MAX), Err(far));
    let config = LearnableRopeConfig { base: 1.0, ..Default::default() };
    assert!(LearnableRope::<4, f32, Dev>::new(&dev(), config).is_err());
}

/// Values and gradients are the `f32` ones, rounded once.
#[test]
#[cfg(feature = "f16")]
fn frequencies_in_f16_are_the_f32_ones_rounded() {
    let halves = |values: &[f32]| values.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>();
    let singles = |values: &[f16]| values.iter().map(|x| x.to_f32()).collect::<Vec<_>>();
    let x: X<8> = dev().sample_normal_like(&(2, 5, 2, Const));
    let (x, dy, shape) = (halves(&x.as_vec()), halves(&[0.5; 160]), *x.shape());
    let theta = halves(&[1.0, 0.3, 0.01, 0.002]);
    let run = || {
        let (x16, x32) = (tensor(&x, shape), tensor(&singles(&x), shape));
        let (t16, t32) = (tensor(&theta, (4usize,)), tensor(&singles(&theta), (4usize,)));
        let y16 = rotate_by_frequencies(x16.leaky_trace(), &t16, 3, Layout::HalfSplit).unwrap();
        let y32 = rotate_by_frequencies(x32.leaky_trace(), &t32, 3, Layout::HalfSplit).unwrap();
        assert_eq!(y16.as_vec(), halves(&y32.as_vec()));
        let (g16, g32) = (backward(y16, &dy), backward(y32, &singles(&dy)));
        assert_eq!(g16.get(&x16).as_vec(), halves(&g32.get(&x32).as_vec()));
        assert_eq!(g16.get(&t16).as_vec(), halves(&g32.get(&t32).as_vec()));
    };
    run();
    composed(run);
}
