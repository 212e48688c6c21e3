//! What the tests share: the device, tensors from slices, comparisons, the property runner.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use quadrivium::tensor::*;
use std::fmt::Debug;
use std::path::PathBuf;

/// The device of the whole suite, named here and nowhere else. `Cuda` with the feature `cuda`.
pub type Dev = AutoDevice;

pub fn dev() -> Dev {
    Dev::default()
}

/// The checkout. Cargo names it when it runs a test; a test that was carried to another machine gets it there.
pub fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or(".".into(), PathBuf::from)
}

/// Half an ulp of 1: the relative error of one rounding in `f32`.
pub const U32: f64 = 1.0 / (1u64 << 24) as f64;
/// The same in `f64`.
pub const U64: f64 = f64::EPSILON / 2.0;

pub fn tensor<S: Shape, F: Float>(values: &[F], shape: S) -> Tensor<S, F, Dev>
where
    Dev: Device<F>,
{
    dev().tensor_from_vec(values.to_vec(), shape)
}

pub fn ids<S: Shape>(values: &[usize], shape: S) -> Tensor<S, usize, Dev> {
    dev().tensor_from_vec(values.to_vec(), shape)
}

pub fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| f64::from(x)).collect()
}

/// Runs `y` backward with `dy` as the gradient of the loss with respect to `y`.
pub fn backward<S: Shape, F: Float>(
    y: Tensor<S, F, Dev, OwnedTape<F, Dev>>,
    dy: &[F],
) -> Gradients<F, Dev>
where
    Dev: Device<F>,
{
    let dy = tensor(dy, *y.shape());
    (y * dy).sum::<Rank0, _>().backward()
}

/// Every bit the same. `NaN` equals `NaN` of the same bits.
#[track_caller]
pub fn assert_same_bits(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len(), "lengths differ");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!(
            g.to_bits() == w.to_bits(),
            "index {i}: got {g:?} ({:#010x}), want {w:?} ({:#010x})",
            g.to_bits(),
            w.to_bits()
        );
    }
}

/// Every bit the same. On a GPU sums have no fixed order, and a few roundings are allowed.
#[track_caller]
pub fn assert_same_sums(got: &[f32], want: &[f32]) {
    if cfg!(feature = "cuda") {
        let bound = |i: usize| 8.0 * U32 * f64::from(want[i].abs().max(1.0));
        return assert_within(&widen(got), &widen(want), bound);
    }
    assert_same_bits(got, want);
}

/// `|got - want| <= bound(i)` for every `i`, also when a value is `NaN`.
#[track_caller]
pub fn assert_within(got: &[f64], want: &[f64], bound: impl Fn(usize) -> f64) {
    assert_eq!(got.len(), want.len(), "lengths differ");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let (error, bound) = ((g - w).abs(), bound(i));
        assert!(error <= bound, "index {i}: got {g:e}, want {w:e}: off by {error:e} > {bound:e}");
    }
}

/// Runs `property` on inputs from `strategy`; assertions in it fail it.
///
/// The seed is fixed, so that a run can be repeated. On a failure the input is shrunk and shown.
#[track_caller]
pub fn forall<S: Strategy>(strategy: S, property: impl Fn(S::Value))
where
    S::Value: Debug,
{
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(42);
    }
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 64;
    }
    let outcome = TestRunner::new(config.clone()).run(&strategy, |input| {
        property(input);
        Ok::<(), TestCaseError>(())
    });
    if let Err(failure) = outcome {
        let (seed, cases) = (config.rng_seed, config.cases);
        panic!("{failure}\nreplay with PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases}");
    }
}

/// Checks an integer law on 200 inputs from a fixed seed, with quickcheck.
#[track_caller]
pub fn law<L: quickcheck::Testable>(law: L) {
    let random = quickcheck::Gen::from_size_and_seed(100, 42);
    quickcheck::QuickCheck::new().rng(random).tests(200).quickcheck(law);
}

/// A float that is neither tiny nor huge, or exactly zero.
pub fn value() -> impl Strategy<Value = f32> {
    use proptest::prelude::*;
    prop_oneof![9 => -4.0f32..4.0, 1 => Just(0.0f32)]
}

pub fn values(n: usize) -> impl Strategy<Value = Vec<f32>> {
    proptest::collection::vec(value(), n)
}

/// The same in `f64`, with all its digits.
pub fn numbers(n: usize) -> impl Strategy<Value = Vec<f64>> {
    use proptest::prelude::*;
    proptest::collection::vec(prop_oneof![9 => -4.0f64..4.0, 1 => Just(0.0f64)], n)
}

/// `n` values of either sign, no two the same.
pub fn wave(n: usize, k: f64) -> Vec<f64> {
    (0..n).map(|i| (k * (i as f64 + 1.0)).sin()).collect()
}

pub fn dot<F: Copy + Into<f64>>(a: &[F], b: &[F]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (*a).into() * (*b).into()).sum()
}

pub fn length<F: Copy + Into<f64>>(a: &[F]) -> f64 {
    dot(a, a).sqrt()
}

/// How `loss` grows with each number of `at`: central differences with step `2^-17`. The method errs by `step^2 / 6 = 1e-11` times a
/// third derivative, and by the rounding of the loss divided by the step.
pub fn slopes(at: &[f64], loss: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let step = 2.0f64.powi(-17);
    let moved = |i: usize, by: f64| {
        let mut at = at.to_vec();
        at[i] += by;
        loss(&at)
    };
    (0..at.len()).map(|i| (moved(i, step) - moved(i, -step)) / (2.0 * step)).collect()
}
