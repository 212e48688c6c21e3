//! Initial values. PyTorch's numbers are compared in `pytorch/`; here is what else is
//! promised.

use crate::support::*;
use quadrivium::init::Init;
use quadrivium::tensor::*;
use quadrivium::{GroupRmsNorm, GroupRmsNormConfig, VocabEmbedding, VocabEmbeddingConfig};

const UNIT: Init = Init::Uniform { low: 0.0, high: 1.0, seed: 42 };
const STANDARD: Init = Init::Normal { mean: 0.0, std: 1.0, seed: 42 };

/// The first numbers that everyone who uses PyTorch has seen.
#[test]
fn seed_42_gives_the_known_values() {
    let round = |values: Vec<f32>| values.iter().map(|x| format!("{x:.4}")).collect::<Vec<_>>();
    assert_eq!(round(UNIT.values(4)), ["0.8823", "0.9150", "0.3829", "0.9593"]);
    let short = round(STANDARD.values(12));
    assert_eq!(short[..5], ["0.3367", "0.1288", "0.2345", "0.2303", "-1.1229"]);
    let long = round(STANDARD.values(24));
    assert_eq!(long[..4], ["1.9269", "1.4873", "0.9007", "-2.1055"]);
    // The tail rule: of 24 values the last 16, so [8] too, are drawn again; of 30 values not.
    assert_eq!(long[8], "0.3559");
    let other_tail = round(STANDARD.values(30));
    assert_eq!(other_tail[..8], long[..8]);
    assert_eq!(other_tail[8], "-0.7521");
}

#[test]
fn only_the_low_32_bits_of_the_seed_count() {
    let seeded = |seed| Init::Uniform { low: 0.0, high: 1.0, seed }.values::<f32>(8);
    assert_eq!(seeded(7), seeded(7 + (1 << 32)));
    assert_ne!(seeded(7), seeded(8));
}

/// A sum rounds up to `high` only where the range is narrow; then PyTorch gives `low`.
#[test]
fn uniform_never_gives_the_end_of_the_range() {
    let high = 1.0 + f64::from(f32::EPSILON);
    let values: Vec<f32> = Init::Uniform { low: 1.0, high, seed: 42 }.values(1000);
    assert!(values.iter().all(|&x| x == 1.0));
}

/// The device's own generator is neither read nor moved.
#[test]
fn ambient_random_state_is_left_alone() {
    let sample = |dev: &Dev| dev.sample_normal::<Rank1<8>>().as_vec() as Vec<f32>;
    let (touched, untouched) = (dev(), dev());
    let first = VocabEmbedding::<9, 4, f32, _>::new(&touched, Default::default()).unwrap();
    assert_eq!(sample(&touched), sample(&untouched));
    let second = VocabEmbedding::<9, 4, f32, _>::new(&touched, Default::default()).unwrap();
    assert_eq!(first.weight.as_vec(), second.weight.as_vec());
}

/// `reset_parameters` and dfdx's `reset_params` give the same numbers, from the module's own
/// settings, also inside a tuple, and keep the tensor that an optimizer knows.
#[test]
fn resetting_restores_the_first_weights() {
    let norm_config =
        GroupRmsNormConfig { init_range: (2.0, 6.0), init_seed: 7, ..Default::default() };
    let table_config = VocabEmbeddingConfig { init_mean: 3.0, init_std: 0.5, init_seed: 9 };
    let mut both = (
        VocabEmbedding::<9, 4, f32, _>::new(&dev(), table_config).unwrap(),
        GroupRmsNorm::<4, 2, f32, _>::new(&dev(), norm_config).unwrap(),
    );
    let (table, weight) = (both.0.weight.as_vec(), both.1.weight.as_vec());
    assert!(weight.iter().all(|x| (2.0..6.0).contains(x)));

    both.0.weight.fill_with_zeros();
    both.1.weight.fill_with_zeros();
    both.reset_params();
    assert_eq!((both.0.weight.as_vec(), both.1.weight.as_vec()), (table.clone(), weight.clone()));

    let known = both.1.weight.clone();
    both.0.weight.fill_with_zeros();
    both.0.reset_parameters().unwrap();
    both.1.reset_parameters().unwrap();
    assert_eq!((both.0.weight.as_vec(), both.1.weight.as_vec()), (table, weight));
    let grads = (both.1.weight.leaky_trace() * 1.0).sum::<Rank0, _>().backward();
    assert_eq!(grads.get(&known).as_vec(), [1.0; 4]);
}

/// A weight that was given as one number for all elements gets its own memory at once, so that
/// a reset fills the tensor that an optimizer knows.
#[test]
fn a_broadcast_weight_keeps_its_identity_when_it_is_reset() {
    let one: Tensor<Rank0, f32, Dev> = dev().tensor(1.0);
    let mut norm =
        GroupRmsNorm::<4, 2, f32, _>::with_weight(one.broadcast(), Default::default()).unwrap();
    let known = norm.weight.clone();
    norm.reset_parameters().unwrap();
    let grads = (norm.weight.leaky_trace() * 1.0).sum::<Rank0, _>().backward();
    assert_eq!(grads.get(&known).as_vec(), [1.0; 4]);
}

/// A module that dfdx builds has the documented defaults, regardless of what was built before it.
#[test]
fn a_built_module_has_the_default_settings() {
    let other = GroupRmsNormConfig { init_range: (2.0, 6.0), init_seed: 7, ..Default::default() };
    let mut first = GroupRmsNorm::<4, 2, f32, Dev>::new(&dev(), other).unwrap();
    optim::Sgd::<_, f32, Dev>::new(&first, Default::default());
    first.weight.fill_with_zeros();
    let built = GroupRmsNorm::<4, 2, f32, Dev>::build(&dev());
    let default = GroupRmsNorm::<4, 2, f32, Dev>::new(&dev(), Default::default()).unwrap();
    assert_eq!(built.weight.as_vec(), default.weight.as_vec());
    assert_eq!(*built.config(), GroupRmsNormConfig::default());
}
