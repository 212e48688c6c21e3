//! `f16`: statistics and angles in `f32`, one rounding at the end.

use crate::support::*;
use quadrivium::functional::vocab_embedding;
use quadrivium::position::{LearnedPositions, Sinusoidal};
use quadrivium::tensor::*;
use quadrivium::*;

fn halves(values: &[f32]) -> Vec<f16> {
    values.iter().map(|&x| f16::from_f32(x)).collect()
}

fn singles(values: &[f16]) -> Vec<f32> {
    values.iter().map(|x| x.to_f32()).collect()
}

/// 300 squared is 90,000, more than any `f16`; 1e-4 squared is below the smallest one.
#[test]
fn the_squares_of_large_and_small_inputs_are_taken_in_f32() {
    let mut norm = GroupRmsNorm::<4, 4, f16, Dev>::new(&dev(), Default::default()).unwrap();
    norm.weight = tensor(&halves(&[1.0; 4]), (Const,));
    let x = tensor(&halves(&[300.0, -300.0, 300.0, 300.0]), (1, 1, Const::<4>));
    assert_eq!(singles(&norm.forward(x).as_vec()), [1.0, -1.0, 1.0, 1.0]);

    let config = GroupRmsNormConfig { eps: 0.0, ..Default::default() };
    let mut norm = GroupRmsNorm::<4, 4, f16, Dev>::new(&dev(), config).unwrap();
    norm.weight = tensor(&halves(&[1.0; 4]), (Const,));
    let x = tensor(&halves(&[1e-4; 4]), (1, 1, Const::<4>));
    assert_eq!(singles(&norm.forward(x).as_vec()), [1.0; 4]);
}

/// Forward and backward are the `f32` module's, rounded once.
#[test]
fn the_norm_is_the_f32_norm_rounded() {
    let config = GroupRmsNormConfig { init_range: (-2.0, 2.0), ..Default::default() };
    let half = GroupRmsNorm::<8, 4, f16, Dev>::new(&dev(), config).unwrap();
    let single = half.to_dtype::<f32>();
    let x: Tensor<(usize, usize, Const<8>), f32, Dev> = dev().sample_normal_like(&(2, 3, Const));
    let (x, dy) = (halves(&(x * 100.0).as_vec()), halves(&[0.5; 48]));
    let x16 = tensor(&x, (2usize, 3usize, Const::<8>));
    let x32 = tensor(&singles(&x), (2usize, 3usize, Const::<8>));
    let (y16, y32) = (half.forward(x16.leaky_trace()), single.forward(x32.leaky_trace()));
    assert_eq!(y16.as_vec(), halves(&y32.as_vec()));
    let (g16, g32) = (backward(y16, &dy), backward(y32, &singles(&dy)));
    assert_eq!(g16.get(&x16).as_vec(), halves(&g32.get(&x32).as_vec()));
    assert_eq!(g16.get(&half.weight).as_vec(), halves(&g32.get(&single.weight).as_vec()));

    let mixed: Tensor<_, f16, Dev> = single.try_forward_mixed(x16.clone()).unwrap();
    assert_eq!(mixed.as_vec(), half.forward(x16).as_vec());
}

#[test]
fn the_rotation_is_the_f32_rotation_rounded() {
    let rope = NtkAwareRope::<8, Dev>::new(&dev(), Default::default()).unwrap();
    let x: Tensor<(usize, usize, usize, Const<8>), f32, Dev> =
        dev().sample_normal_like(&(1, 5, 2, Const));
    let (x, dy) = (halves(&x.as_vec()), halves(&[0.5; 80]));
    let shape = (1usize, 5usize, 2usize, Const::<8>);
    let (x16, x32) = (tensor(&x, shape), tensor(&singles(&x), shape));
    let (y16, y32) =
        (rope.forward((x16.leaky_trace(), 700)), rope.forward((x32.leaky_trace(), 700)));
    assert_eq!(y16.as_vec(), halves(&y32.as_vec()));
    let (g16, g32) = (backward(y16, &dy), backward(y32, &singles(&dy)));
    assert_eq!(g16.get(&x16).as_vec(), halves(&g32.get(&x32).as_vec()));
}

/// Positions are whole numbers and never `f16`: 2049 is none.
#[test]
fn position_ids_are_not_rounded() {
    let position_ids = ids(&[2049, 2050, 0, 1, 2, 0], (2, 3));
    let (x, dy) = (halves(&[0.5; 48]), halves(&[0.25; 48]));
    let heads = (2usize, 3usize, 1usize, Const::<8>);
    let rope = NtkAwareRope::<8, Dev>::new(&dev(), Default::default()).unwrap();
    let (x16, x32) = (tensor(&x, heads), tensor(&singles(&x), heads));
    let y16 = rope.forward((x16.leaky_trace(), &position_ids));
    let y32 = rope.forward((x32.leaky_trace(), &position_ids));
    assert_eq!(y16.as_vec(), halves(&y32.as_vec()));
    let (g16, g32) = (backward(y16, &dy), backward(y32, &singles(&dy)));
    assert_eq!(g16.get(&x16).as_vec(), halves(&g32.get(&x32).as_vec()));

    let tokens = (2usize, 3usize, Const::<8>);
    let (x16, x32) = (tensor(&x, tokens), tensor(&singles(&x), tokens));
    let sinusoidal = Sinusoidal::default();
    let y16 = sinusoidal.forward((x16.leaky_trace(), &position_ids));
    let y32 = sinusoidal.forward((x32, &position_ids));
    assert_eq!(y16.as_vec(), halves(&y32.as_vec()));
    assert_eq!(backward(y16, &dy).get(&x16).as_vec(), dy);

    let learned = LearnedPositions::<2051, 8, f16, Dev>::new(&dev(), Default::default()).unwrap();
    let y = learned.forward((x16.leaky_trace(), &position_ids));
    let row = |m: usize| learned.table.weight.as_vec()[m * 8..][..8].to_vec();
    let want: Vec<f16> = [2049, 2050, 0, 1, 2, 0].into_iter().flat_map(row).collect();
    let want = want.into_iter().map(|x| f16::from_f32(x.to_f32() + 0.5)).collect::<Vec<_>>();
    assert_eq!(y.as_vec(), want);
    let dtable = backward(y, &dy).get(&learned.table.weight).as_vec();
    assert_eq!(dtable[..24], halves(&[[0.5; 8], [0.25; 8], [0.25; 8]].concat()));
}

#[test]
fn tables_are_the_f32_draws_rounded_and_rows_are_copied() {
    let half = VocabEmbedding::<9, 3, f16, Dev>::new(&dev(), Default::default()).unwrap();
    let single = VocabEmbedding::<9, 3, f32, Dev>::new(&dev(), Default::default()).unwrap();
    assert_eq!(half.weight.as_vec(), halves(&single.weight.as_vec()));
    let y: Tensor<_, f16, Dev> = vocab_embedding(ids(&[8, 0], (1, 2)), &half.weight).unwrap();
    assert_eq!(y.as_vec()[..3], half.weight.as_vec()[24..]);
    let shard =
        ParallelVocabEmbedding::<8, 3, 2, f16, Dev>::new(&dev(), Default::default()).unwrap();
    assert_eq!(shard.forward(ids(&[7, 1], (1, 2))).as_vec()[..3], halves(&[0.0; 3]));
}

#[test]
fn half_precision_weights_survive_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("half.safetensors");
    let saved = VocabEmbedding::<9, 3, f16, Dev>::new(&dev(), Default::default()).unwrap();
    weights::save_weights::<f16, Dev, _>(&saved, &path).unwrap();
    let mut loaded = saved.clone();
    loaded.weight = tensor(&halves(&[0.0; 27]), (Const, Const));
    weights::load_weights::<f16, Dev, _>(&mut loaded, &path).unwrap();
    assert_eq!(loaded.weight.as_vec(), saved.weight.as_vec());
}
