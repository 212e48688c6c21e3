//! The components are real dfdx modules: tuples, optimizers, conversions, files.

use crate::support::*;
use quadrivium::functional::Layout;
use quadrivium::tensor::optim::{Adam, AdamConfig, Optimizer, Sgd, SgdConfig};
use quadrivium::tensor::*;
use quadrivium::weights::{load_weights, save_weights};
use quadrivium::*;

fn norm(seed: u64) -> GroupRmsNorm<4, 2, f32, Dev> {
    let config = GroupRmsNormConfig { eps: 0.25, init_range: (0.5, 2.0), init_seed: seed };
    GroupRmsNorm::new(&dev(), config).unwrap()
}

fn embedding(seed: u64) -> VocabEmbedding<6, 4, f32, Dev> {
    VocabEmbedding::new(&dev(), VocabEmbeddingConfig { init_seed: seed, ..Default::default() })
        .unwrap()
}

fn shard(seed: u64) -> ParallelVocabEmbedding<6, 4, 2, f32, Dev> {
    let config =
        ParallelVocabEmbeddingConfig { rank: 1, init_base_seed: seed, ..Default::default() };
    ParallelVocabEmbedding::new(&dev(), config).unwrap()
}

fn rope() -> NtkAwareRope<4, Dev> {
    let config = NtkAwareRopeConfig {
        base: 500.0,
        max_seq_len: 3,
        ratio: 2,
        dynamic: true,
        layout: Layout::Interleaved,
        past_cache: PastCache::Rescale,
    };
    NtkAwareRope::new(&dev(), config).unwrap()
}

#[test]
fn modules_chain_in_tuples_and_count_their_parameters() {
    let front_end = (embedding(1), norm(2));
    let y = front_end.forward(ids(&[0, 5, 3], (1, 3)));
    let want = front_end.1.forward(front_end.0.forward(ids(&[0, 5, 3], (1, 3))));
    assert_same_bits(&y.as_vec(), &want.as_vec());
    assert_eq!(NumParams::<f32, Dev>::num_trainable_params(&front_end), 6 * 4 + 4);
    assert_eq!(NumParams::<f32, Dev>::num_trainable_params(&shard(1)), 3 * 4);
    assert_eq!(NumParams::<f32, Dev>::num_trainable_params(&rope()), 0);
}

/// One step of SGD is `w - lr * grad`; unused rows of the table do not move.
#[test]
fn sgd_takes_the_gradient_it_should() {
    let mut model = (embedding(1), norm(2));
    let mut sgd = Sgd::new(&model, SgdConfig { lr: 0.5, ..Default::default() });
    let before = (model.0.weight.as_vec(), model.1.weight.as_vec());
    let grads = model.alloc_grads();
    let tokens = ids(&[0, 5, 0], (1, 3));
    let loss = model.forward_mut(tokens.traced(grads)).square().sum::<Rank0, _>();
    let grads = loss.backward();
    let step = (grads.get(&model.0.weight).as_vec(), grads.get(&model.1.weight).as_vec());
    sgd.update(&mut model, &grads).unwrap();
    let moved =
        |w: &[f32], g: &[f32]| w.iter().zip(g).map(|(w, g)| w - 0.5 * g).collect::<Vec<_>>();
    assert_same_bits(&model.0.weight.as_vec(), &moved(&before.0, &step.0));
    assert_same_bits(&model.1.weight.as_vec(), &moved(&before.1, &step.1));
    assert_same_bits(&model.0.weight.as_vec()[4..20], &before.0[4..20]);
}

/// Training works end to end: Adam teaches shard and norm to give a target.
#[test]
fn adam_learns_through_all_modules() {
    let mut model = (shard(1), norm(2));
    let mut adam = Adam::new(&model, AdamConfig { lr: 0.05, ..Default::default() });
    let target = tensor(&[0.5, -0.25, 1.0, 0.75, -0.5, 0.25, 0.1, -1.0], (1, 2, Const::<4>));
    let mut grads = model.alloc_grads();
    let mut losses = Vec::new();
    for _ in 0..200 {
        let y = model.forward_mut(ids(&[3, 5], (1, 2)).traced(grads));
        let loss = losses::mse_loss(y, target.clone());
        losses.push(loss.as_vec()[0]);
        grads = loss.backward();
        adam.update(&mut model, &grads).unwrap();
        model.zero_grads(&mut grads);
    }
    assert!(losses[199] < 1e-3 * losses[0], "{} -> {}", losses[0], losses[199]);
}

/// Two backward passes into the same gradients add up; an average of weights moves the weights.
#[test]
fn gradients_accumulate_and_weights_average() {
    let mut model = (embedding(1), norm(2));
    let pass = |model: &(_, GroupRmsNorm<4, 2, f32, Dev>), grads| {
        let (embedding, norm): (&VocabEmbedding<6, 4, f32, Dev>, _) = (&model.0, &model.1);
        let x = embedding.forward(ids(&[0, 5], (1, 2)).traced(grads));
        norm.forward(x).sum::<Rank0, _>().backward()
    };
    let once = pass(&model, model.alloc_grads());
    let twice = pass(&model, pass(&model, model.alloc_grads()));
    let doubled: Vec<f32> = once.get(&model.1.weight).as_vec().iter().map(|g| 2.0 * g).collect();
    assert_same_bits(&twice.get(&model.1.weight).as_vec(), &doubled);

    let other = (embedding(3), norm(4));
    let halfway =
        |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a + b) / 2.0).collect::<Vec<_>>();
    let want = halfway(&model.1.weight.as_vec(), &other.1.weight.as_vec());
    nn::ModelEMA::<f32, Dev>::ema(&mut model, &other, 0.5);
    assert_eq!(model.1.weight.as_vec(), want);
}

/// Conversions keep the settings, alone and in a tuple. (dfdx's own LayerNorm loses its eps.)
#[test]
fn converting_keeps_values_and_settings() {
    let model = ((embedding(1), norm(2)), shard(3));
    let wide: (
        (VocabEmbedding<6, 4, f64, Dev>, GroupRmsNorm<4, 2, f64, Dev>),
        ParallelVocabEmbedding<6, 4, 2, f64, Dev>,
    ) = model.to_dtype::<f64>();
    assert_eq!(wide.0.0.weight.as_vec(), widen(&model.0.0.weight.as_vec()));
    assert_eq!(wide.0.1.weight.as_vec(), widen(&model.0.1.weight.as_vec()));
    assert_eq!(wide.1.weight.as_vec(), widen(&model.1.weight.as_vec()));
    assert_eq!(wide.0.0.config(), model.0.0.config());
    assert_eq!(wide.0.1.config(), model.0.1.config());
    assert_eq!(wide.1.config(), model.1.config());

    let moved = ToDevice::<f32, Dev, Dev>::to_device(&model, &dev());
    assert_same_bits(&moved.0.0.weight.as_vec(), &model.0.0.weight.as_vec());
    assert_eq!(moved.0.1.config(), model.0.1.config());
    assert_eq!(moved.1.owned_ids(), 3..6);
}

/// RoPE moves too: settings, grown ratio, and the same table bits on the new device.
#[test]
fn rope_moves_with_its_settings() {
    let mut rope = rope();
    let x: Tensor<(usize, usize, usize, Const<4>), f32, Dev> =
        dev().sample_normal_like(&(1, 9, 1, Const));
    rope.forward_mut(x.clone());
    assert_eq!(rope.ratio(), 4);
    let moved = ToDevice::<f32, Dev, Dev>::to_device(&rope, &dev());
    let wide = ToDtype::<f32, Dev>::to_dtype::<f64>(&rope);
    for other in [&moved, &wide] {
        assert_eq!(other.config(), rope.config());
        assert_same_bits(&other.forward(x.clone()).as_vec(), &rope.forward(x.clone()).as_vec());
    }
}

#[test]
fn weights_survive_a_file_and_rope_is_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let saved = ((embedding(1), norm(2)), rope());
    save_weights::<f32, Dev, _>(&saved, &path).unwrap();

    let bytes = std::fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut names = file.names();
    names.sort();
    assert_eq!(names, ["0.0.weight", "0.1.weight"]);

    let mut loaded = ((embedding(8), norm(9)), rope());
    load_weights::<f32, Dev, _>(&mut loaded, &path).unwrap();
    assert_same_bits(&loaded.0.0.weight.as_vec(), &saved.0.0.weight.as_vec());
    assert_same_bits(&loaded.0.1.weight.as_vec(), &saved.0.1.weight.as_vec());
    assert_eq!(loaded.0.1.config().init_seed, 9, "settings are not in the file");

    // dfdx reads and writes the same files.
    let mut by_dfdx = ((embedding(8), norm(9)), rope());
    LoadFromSafetensors::<f32, Dev>::load_safetensors(&mut by_dfdx, &path).unwrap();
    assert_same_bits(&by_dfdx.0.0.weight.as_vec(), &saved.0.0.weight.as_vec());
    let other = folder.path().join("dfdx.safetensors");
    SaveToSafetensors::<f32, Dev>::save_safetensors(&saved, &other).unwrap();
    load_weights::<f32, Dev, _>(&mut loaded, &other).unwrap();
    assert_same_bits(&loaded.0.1.weight.as_vec(), &saved.0.1.weight.as_vec());
}

/// A file that does not fit is refused before anything changes: wrong numbers, wrong shape, a
/// tensor missing after one that fits, not a weight file, no file.
#[test]
fn a_file_that_does_not_fit_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let mut model = (embedding(1), norm(2));
    let before = (model.0.weight.as_vec(), model.1.weight.as_vec());
    let mut refused = |reason: &str| {
        let error = load_weights::<f32, Dev, _>(&mut model, &path).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!((model.0.weight.as_vec(), model.1.weight.as_vec()), before);
    };

    refused("No such file");
    std::fs::write(&path, "not a weight file").unwrap();
    refused("not a .safetensors file");
    save_weights::<f32, Dev, _>(&(embedding(3),), &path).unwrap();
    refused("no tensor is called \"1.weight\"; the file has: 0.weight");
    let other = GroupRmsNorm::<6, 2, f32, Dev>::new(&dev(), Default::default()).unwrap();
    save_weights::<f32, Dev, _>(&(embedding(3), other), &path).unwrap();
    refused("\"1.weight\" has shape [6], expected [4]");
    // The second is too large for the type that it would become.
    let mut wide = (embedding(3), norm(4)).to_dtype::<f64>();
    wide.1.weight = dev().ones::<Rank1<4>>() * 1e300;
    save_weights::<f64, Dev, _>(&wide, &path).unwrap();
    refused("\"1.weight\" has 1e300 at place 0, which is no number in F32");
}

/// Same input, same bits: from call to call and from thread to thread.
#[test]
fn results_do_not_depend_on_the_thread() {
    let run = || {
        let model = (embedding(1), norm(2));
        let traced = Trace::<f32, Dev>::leaky_trace(&ids(&[0, 5, 3], (1, 3)));
        let y = model.forward(traced);
        let values = y.as_vec();
        (values, y.sum::<Rank0, _>().backward().get(&model.0.weight).as_vec())
    };
    let want = run();
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(run)).collect();
    for thread in threads {
        let got = thread.join().unwrap();
        assert_same_bits(&got.0, &want.0);
        assert_same_bits(&got.1, &want.1);
    }
}
