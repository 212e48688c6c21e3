//! Code that the book shows, run. Each piece is between two marks, and a chapter includes it.

use crate::support::*;
use quadrivium::functional::group_rms_norm;
use quadrivium::tensor::*;
use quadrivium::{GroupRmsNorm, GroupRmsNormConfig, VocabEmbedding};

// --- Shapes as types ------------------------------------------------------------------------

#[test]
fn sizes_of_two_kinds() {
    // ANCHOR: sizes
    // All three sizes belong to the type.
    let fixed: Tensor<(Const<1>, Const<2>, Const<4>), f32, Dev> = dev().zeros();
    // Two sizes are values, one belongs to the type.
    let mixed: Tensor<(usize, usize, Const<4>), f32, Dev> = dev().zeros_like(&(1, 2, Const));
    // All three sizes are values.
    let free: Tensor<(usize, usize, usize), f32, Dev> = dev().zeros_like(&(1, 2, 4));

    assert_eq!(fixed.shape().concrete(), [1, 2, 4]);
    assert_eq!(mixed.shape().concrete(), [1, 2, 4]);
    assert_eq!(free.shape().concrete(), [1, 2, 4]);
    // ANCHOR_END: sizes
}

#[test]
fn one_norm_for_all_lengths() {
    // ANCHOR: one_norm
    let norm = GroupRmsNorm::<8, 4, f32, _>::new(&dev(), GroupRmsNormConfig::default()).unwrap();
    for (b, s) in [(1, 1), (2, 5), (3, 64)] {
        let x: Tensor<(usize, usize, Const<8>), f32, Dev> = dev().zeros_like(&(b, s, Const));
        let y: Tensor<(usize, usize, Const<8>), f32, Dev> = norm.forward(x);
        assert_eq!(y.shape().concrete(), [b, s, 8]);
    }
    // ANCHOR_END: one_norm
}

#[test]
fn a_reshape_forgets_and_recalls() {
    // ANCHOR: reshape
    let x: Tensor<(usize, usize, Const<6>), f32, Dev> = dev().ones_like(&(2, 3, Const));

    // [2, 3, 6] seen as [2, 3, 2, 3]: the groups of a norm with group size 3.
    let groups: Tensor<(usize, usize, usize, Const<3>), f32, Dev> =
        x.try_reshape_like(&(2, 3, 2, Const)).unwrap();

    // The sum over the last axis has one number for each group.
    let sums: Tensor<(usize, usize, usize), f32, Dev> = groups.sum::<_, Axis<3>>();
    assert_eq!(sums.as_vec(), [3.0; 2 * 3 * 2]);
    // ANCHOR_END: reshape
}

#[test]
fn a_group_is_centred() {
    // ANCHOR: reduce
    let shape = (1, 1, 2, Const::<3>); // one token, two groups of three
    let x = dev().tensor_from_vec(vec![1.0f32, 2.0, 6.0, 10.0, 10.0, 40.0], shape);

    // Reduce: the axis is gone. Broadcast: it is back, and along it all numbers are equal.
    let means: Tensor<(usize, usize, usize), f32, Dev> = x.clone().mean::<_, Axis<3>>();
    assert_eq!(means.as_vec(), [3.0, 20.0]);
    let means = means.broadcast_like::<_, Axis<3>>(&shape);
    assert_eq!(means.as_vec(), [3.0, 3.0, 3.0, 20.0, 20.0, 20.0]);

    // Now the shapes are equal, and the two can be subtracted.
    assert_eq!((x - means).as_vec(), [-2.0, -1.0, 3.0, -10.0, -10.0, 20.0]);
    // ANCHOR_END: reduce
}

#[test]
fn a_number_has_the_type_of_the_tensor() {
    // ANCHOR: add_number
    let variance = dev().tensor([0.25f32, 4.0]);
    let floor: f64 = 0.75; //                   a setting, kept in f64
    let raised = variance + floor as f32; //    without `as f32` it does not compile
    assert_eq!(raised.array(), [1.0, 4.75]);
    // ANCHOR_END: add_number
}

#[test]
fn one_number_an_element_is_spread_over_the_rows() {
    // ANCHOR: spread
    let shift = dev().tensor([10.0f32, 20.0, 30.0]); // [h]
    let shape = (2, 2, Const::<3>);
    let x: Tensor<(usize, usize, Const<3>), f32, Dev> = dev().zeros_like(&shape);

    let rows = shift.retaped::<OwnedTape<f32, Dev>>().broadcast_like::<_, Axes2<0, 1>>(&shape);
    let y = x.leaky_trace() + rows; //               [b, s, h]
    let grads = y.sum().backward();

    // Each of the three numbers was used in four rows, so its gradient is a sum of four.
    assert_eq!(grads.get(&shift).array(), [4.0, 4.0, 4.0]);
    // ANCHOR_END: spread
}

#[test]
fn a_tape_travels() {
    // ANCHOR: tape
    let x = dev().tensor([3.0f32, 4.0]);

    let taped = x.leaky_trace(); //         the same numbers, and an empty tape
    let loss = taped.square().sum(); //     the tape has two entries now
    let grads = loss.backward(); //         the tape is run and used up

    assert_eq!(grads.get(&x).array(), [6.0, 8.0]); // the slope of x² is 2x
    // ANCHOR_END: tape
}

#[test]
fn a_weight_is_put_on_the_tape() {
    // ANCHOR: retaped
    let x = dev().tensor([3.0f32, 4.0]);
    let gamma = dev().tensor([10.0f32, 100.0]);

    let scale = gamma.retaped::<OwnedTape<f32, Dev>>(); // has its own tape
    let y = x.leaky_trace() * scale; //                    their tapes are merged
    let grads = y.sum().backward();

    assert_eq!(grads.get(&x).array(), [10.0, 100.0]); // dx = gamma
    assert_eq!(grads.get(&gamma).array(), [3.0, 4.0]); // dgamma = x
    // ANCHOR_END: retaped
}

#[test]
fn a_tensor_is_used_twice() {
    // ANCHOR: twice
    let x = dev().tensor([3.0f32, 4.0]);

    let taped = x.leaky_trace();
    // The same tensor, with its own tape.
    let again = taped.with_empty_tape();
    let y = taped.square() + again; // x² + x
    let grads = y.sum().backward();

    assert_eq!(grads.get(&x).array(), [7.0, 9.0]); // 2x + 1
    // ANCHOR_END: twice
}

// ANCHOR: const_block
/// The halves of a row. A row of odd length has none, and such a call does not compile.
fn halves<const N: usize>(row: &[f32; N]) -> (&[f32], &[f32]) {
    const { assert!(N % 2 == 0, "a row of odd length has no halves") };
    row.split_at(N / 2)
}
// ANCHOR_END: const_block

#[test]
fn a_row_has_halves() {
    assert_eq!(halves(&[1.0, 2.0, 3.0, 4.0]), (&[1.0f32, 2.0][..], &[3.0f32, 4.0][..]));
}

#[test]
fn the_width_is_in_the_type() {
    // ANCHOR: widths
    let embedding = VocabEmbedding::<10, 8, f32, Dev>::new(&dev(), Default::default()).unwrap();
    let norm = GroupRmsNorm::<8, 4, f32, Dev>::new(&dev(), Default::default()).unwrap();

    let tokens: Tensor<(usize, usize), usize, Dev> = ids(&[7, 0, 7], (1, 3));
    let x: Tensor<(usize, usize, Const<8>), f32, Dev> = embedding.forward(tokens);
    let y = norm.forward(x); // Const<8> fits Const<8>: nothing is checked when this runs
    // ANCHOR_END: widths
    assert_eq!(y.shape().concrete(), [1, 3, 8]);
}

#[test]
fn a_function_refuses_what_a_module_would_not_compile() {
    // ANCHOR: run_time_error
    let x: Tensor<(usize, usize, usize), f32, Dev> = dev().ones_like(&(1, 1, 8));
    let weight: Tensor<(usize,), f32, Dev> = dev().ones_like(&(8,));
    let error = group_rms_norm(x, &weight, 3, 1e-5).unwrap_err();
    assert!(error.to_string().starts_with("group size 3 does not divide hidden size 8"));
    // ANCHOR_END: run_time_error
}

// --- Testing as proof -----------------------------------------------------------------------

// ANCHOR: law
/// `N(-x) = -N(x)`, bit for bit. `x` is any number of tokens of 6 elements, in groups of 3.
fn is_odd(x: &[f32]) -> bool {
    let norm = |x: Vec<f32>| {
        let weight = tensor(&[1.0, -2.0, 0.5, 3.0, 1.5, -0.25], (6usize,));
        let x = tensor(&x, (1usize, x.len() / 6, 6usize));
        group_rms_norm(x, &weight, 3, 1e-5).unwrap().as_vec()
    };
    let minus = |values: &[f32]| values.iter().map(|value| -value).collect::<Vec<f32>>();
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
    bits(norm(minus(x))) == bits(minus(&norm(x.to_vec())))
}
// ANCHOR_END: law

// ANCHOR: with_proptest
/// proptest: a STRATEGY says which inputs there are. It knows how to shrink them.
#[test]
fn the_norm_is_odd_with_proptest() {
    use proptest::prelude::*;
    let tokens =
        (1..4usize).prop_flat_map(|tokens| proptest::collection::vec(-4.0f32..4.0, 6 * tokens));
    let config = ProptestConfig {
        cases: 64,
        rng_seed: proptest::test_runner::RngSeed::Fixed(42),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(x in tokens)| {
        prop_assert!(is_odd(&x));
    });
}
// ANCHOR_END: with_proptest

// ANCHOR: with_quickcheck
/// One to three tokens of six elements.
#[derive(Debug, Clone)]
struct Tokens(Vec<f32>);

/// quickcheck: a TYPE says which inputs there are, and how to shrink one.
impl quickcheck::Arbitrary for Tokens {
    fn arbitrary(random: &mut quickcheck::Gen) -> Self {
        let tokens = 1 + usize::arbitrary(random) % 3;
        let value = |random: &mut _| f32::from(i16::arbitrary(random)) / 8192.0; // in [-4, 4)
        Self((0..6 * tokens).map(|_| value(random)).collect())
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        let (x, tokens) = (self.0.clone(), self.0.len() / 6);
        Box::new((1..tokens).map(move |fewer| Self(x[..6 * fewer].to_vec())))
    }
}

#[test]
fn the_norm_is_odd_with_quickcheck() {
    fn law(Tokens(x): Tokens) -> bool {
        is_odd(&x)
    }
    let random = quickcheck::Gen::from_size_and_seed(100, 42);
    quickcheck::QuickCheck::new().rng(random).tests(64).quickcheck(law as fn(Tokens) -> bool);
}
// ANCHOR_END: with_quickcheck

// ANCHOR: loose
/// A norm without its eps, and a test that is content with it.
#[test]
fn a_loose_tolerance_accepts_a_norm_without_eps() {
    let norm = |x: &[f32], eps: f32| -> Vec<f32> {
        let mean_square = x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32;
        x.iter().map(|x| x / (mean_square + eps).sqrt()).collect()
    };
    let farthest = |x: &[f32]| -> f32 {
        let (right, wrong) = (norm(x, 1e-5), norm(x, 0.0));
        right.iter().zip(&wrong).map(|(right, wrong)| (right - wrong).abs()).fold(0.0, f32::max)
    };
    // Values of size 1: the mistake is far below the tolerance.
    assert!(farthest(&[0.5, -1.5, 1.0, -0.5, 2.0, -1.0]) < 1e-4);
    // Values of the size of the root of eps: it is 0.29.
    assert!(farthest(&[1e-5f32.sqrt(); 6]) > 0.29);
}
// ANCHOR_END: loose
