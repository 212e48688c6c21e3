//! Training as a whole: a model that learns a batch by heart, an optimizer that is put away and taken up again, and a
//! checkpoint that is written.

use crate::support::*;
use quadrivium::checkpoint::*;
use quadrivium::loss::cross_entropy;
use quadrivium::model::*;
use quadrivium::tensor::*;
use quadrivium::training::*;
use quadrivium::weights::{Stored, load_weights, save_weights};
use safetensors::tensor::{SafeTensors, TensorView};
use std::collections::HashMap;
use std::path::Path;

const V: usize = 31;
type Model = LlamaTransformer<V, 16, 2, 1, 8, 48, 2, f32, Dev>;

fn model(seed: u64) -> Model {
    let config = LlamaConfig { init_std: 0.1, init_seed: seed, ..Default::default() };
    Model::new(&dev(), config).unwrap()
}

fn config() -> CheckpointConfig {
    CheckpointConfig {
        vocab_size: V,
        hidden_size: 16,
        intermediate_size: 48,
        num_hidden_layers: 2,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 8,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        rope_scaling: RopeScaling::None,
        max_position_embeddings: 2048,
        tie_word_embeddings: false,
        eos_token_id: Vec::new(),
    }
}

/// Two rows of twelve tokens without any pattern, so that nothing but memory helps.
fn batch() -> (Tensor<(usize, usize), usize, Dev>, Tensor<(usize, usize), usize, Dev>) {
    let text: Vec<usize> = (0..26).map(|n| (n * n * 7 + n * 3 + 5) % V).collect();
    let rows = |shift| [&text[shift..shift + 12], &text[13 + shift..25 + shift]].concat();
    let tensor = |ids| dev().tensor_from_vec(ids, (2, 12));
    (tensor(rows(0)), tensor(rows(1)))
}

/// A step on [`batch`]; the loss before it.
fn step(model: &mut Model, adam: &mut AdamW<f32, Dev>, rate: f64) -> f32 {
    let (ids, next) = batch();
    let logits = model.try_forward(ids.traced(model.alloc_grads())).unwrap();
    let loss = cross_entropy(logits, &next).unwrap();
    let seen = loss.array();
    let mut grads = loss.backward();
    clip_gradients(model, &mut grads, 1.0).unwrap();
    adam.update(model, &mut grads, rate).unwrap();
    seen
}

#[test]
fn a_model_learns_a_batch_by_heart() {
    let (mut model, mut adam) = (model(42), AdamW::new(AdamWConfig::default()).unwrap());
    let schedule = Schedule { peak: 0.01, warmup: 20, steps: 500, end: 0.001 };
    let losses: Vec<f32> =
        (0..500).map(|nth| step(&mut model, &mut adam, schedule.rate(nth))).collect();
    // At first all tokens are equally likely to it: ln 31 is 3.43.
    assert!((losses[0] - (V as f32).ln()).abs() < 0.5, "{}", losses[0]);
    assert!(losses[499] < 0.05, "{}", losses[499]);
}

/// `get_cosine_schedule_with_warmup` of transformers, with its own end.
fn transformers(step: usize, Schedule { peak, warmup, steps, end }: Schedule) -> f64 {
    let (step, warmup, steps) = (step as f64, warmup as f64, steps as f64);
    if step < warmup {
        return peak * step / warmup.max(1.0);
    }
    let progress = (step - warmup) / (steps - warmup).max(1.0);
    end + (peak - end) * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
}

#[test]
fn a_schedule_is_transformers_one_step_ahead() {
    for (warmup, steps) in
        [(1, 2), (1, 12), (2, 12), (4, 12), (10, 12), (11, 12), (12, 12), (75, 1500)]
    {
        let schedule = Schedule { peak: 0.5, warmup, steps, end: 0.05 };
        for step in 0..steps {
            let (got, want) = (schedule.rate(step), transformers(step + 1, schedule));
            // A few roundings of numbers up to 1.
            assert!((got - want).abs() < 1e-15, "{schedule:?}: {got} in step {step}, not {want}");
        }
    }
}

#[test]
fn a_schedule_at_its_edges() {
    let of = |warmup, steps| Schedule { peak: 1.0, warmup, steps, end: 0.25 };
    let rates = |schedule: Schedule| (0..7).map(|step| schedule.rate(step)).collect::<Vec<_>>();
    let is = |schedule: Schedule, want: [f64; 7]| {
        let got = rates(schedule);
        // A few roundings of numbers up to 1.
        let near = got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-15);
        assert!(near, "{schedule:?}: {got:?}, not {want:?}");
    };
    // Without a warm-up step 0 has the peak, as PyTorch's CosineAnnealingLR(T_max=4, eta_min=0.25) has it: the cosines of
    // 0, 45, 90, 135 and 180 degrees.
    let half = 0.375 * 0.5f64.sqrt();
    is(of(0, 5), [1.0, 0.625 + half, 0.625, 0.625 - half, 0.25, 0.25, 0.25]);
    is(of(1, 5), [1.0, 0.625 + half, 0.625, 0.625 - half, 0.25, 0.25, 0.25]);
    is(of(0, 2), [1.0, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25]);
    is(of(0, 1), [0.25; 7]); // the last step is the first one
    is(of(1, 1), [1.0, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25]);
    is(of(0, 0), [0.25; 7]);
    // The warm-up is as long as the run, one step shorter, longer: after the last step the rate is `end`.
    is(of(4, 4), [0.25, 0.5, 0.75, 1.0, 0.25, 0.25, 0.25]);
    is(of(4, 5), [0.25, 0.5, 0.75, 1.0, 0.25, 0.25, 0.25]);
    is(of(8, 4), [0.125, 0.25, 0.375, 0.5, 0.25, 0.25, 0.25]);
    is(of(8, 0), [0.25; 7]);
    assert_eq!(of(0, 5).rate(usize::MAX), 0.25);
    assert_eq!(of(usize::MAX, usize::MAX).rate(usize::MAX), 0.25);
}

fn weights(model: &Model, folder: &Path) -> Vec<u8> {
    let file = folder.join("weights.safetensors");
    save_weights(model, &file).unwrap();
    std::fs::read(file).unwrap()
}

#[test]
fn an_optimizer_that_is_put_away_goes_on_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let (state, kept) = (folder.path().join("adam"), folder.path().join("kept"));
    let config = AdamWConfig::default();
    for made in [0, 1, 7] {
        let (mut one, mut adam) = (model(42), AdamW::new(config).unwrap());
        for _ in 0..made {
            step(&mut one, &mut adam, 0.01);
        }
        adam.save(&one, &state).unwrap();
        save_weights(&one, &kept).unwrap();

        let mut other = model(7);
        load_weights(&mut other, &kept).unwrap();
        let mut taken_up = AdamW::load(config, &other, &state).unwrap();
        assert_eq!(taken_up.steps(), made);
        let mut forgotten = AdamW::new(config).unwrap();
        let mut third = model(7);
        load_weights(&mut third, &kept).unwrap();
        for _ in 0..3 {
            let loss = step(&mut one, &mut adam, 0.01);
            assert_eq!(step(&mut other, &mut taken_up, 0.01).to_bits(), loss.to_bits());
            step(&mut third, &mut forgotten, 0.01);
        }
        let of = |model: &Model| weights(model, folder.path());
        assert!(of(&one) == of(&other), "after {made} steps");
        // Without its state the optimizer would go elsewhere: that is what the file is for.
        assert_eq!(of(&one) == of(&third), made == 0);
    }
}

/// Changes the optimizer's file, whose tensors are given by name, shape and bytes.
fn changed(file: &Path, change: impl FnOnce(&mut HashMap<String, (Vec<usize>, Vec<u8>)>)) {
    let bytes = std::fs::read(file).unwrap();
    let header = SafeTensors::read_metadata(&bytes).unwrap().1.metadata().clone();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let entry = |(name, view): (&str, TensorView<'_>)| {
        (name.to_string(), (view.shape().to_vec(), view.data().to_vec()))
    };
    let mut tensors: HashMap<_, _> = tensors.iter().map(entry).collect();
    change(&mut tensors);
    let views = tensors.iter().map(|(name, (shape, bytes))| {
        (name, TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes).unwrap())
    });
    std::fs::write(file, safetensors::serialize(views, header).unwrap()).unwrap();
}

#[test]
fn a_broken_state_of_an_optimizer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("adam");
    let (mut model, mut adam) = (model(42), AdamW::new(AdamWConfig::default()).unwrap());
    step(&mut model, &mut adam, 0.01);
    let refused = |words: &str, break_it: &dyn Fn(&Path)| {
        let (mut own, mut adam) = (self::model(42), AdamW::new(AdamWConfig::default()).unwrap());
        step(&mut own, &mut adam, 0.01);
        adam.save(&own, &file).unwrap();
        break_it(&file);
        let error = AdamW::<f32, Dev>::load(AdamWConfig::default(), &own, &file).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    let (mean, square) = ("mean.model.norm.weight", "square.model.norm.weight");
    let first = |name: &'static str, value: f32| {
        move |file: &Path| {
            changed(file, |tensors| {
                tensors.get_mut(name).unwrap().1[..4].copy_from_slice(&value.to_le_bytes());
            });
        }
    };
    refused("No such file", &|file| std::fs::remove_file(file).unwrap());
    refused("not a .safetensors file", &|file| std::fs::write(file, "").unwrap());
    refused("not a .safetensors file", &|file| {
        let bytes = std::fs::read(file).unwrap();
        std::fs::write(file, &bytes[..bytes.len() - 1]).unwrap();
    });
    refused("does not say how many steps", &|file| save_weights(&model, file).unwrap());
    refused("no tensor is called \"mean.model.norm.weight\"", &|file| {
        changed(file, |tensors| drop(tensors.remove(mean)));
    });
    refused("has shape [2, 8], expected [16]", &|file| {
        changed(file, |tensors| tensors.get_mut(square).unwrap().0 = vec![2, 8]);
    });
    refused("has NaN at place 0", &first(mean, f32::NAN));
    refused("has inf at place 0", &first(square, f32::INFINITY));
    refused("has -1 at place 0", &first(square, -1.0));
    // A mean may be negative.
    adam.save(&model, &file).unwrap();
    first(mean, -1.0)(&file);
    AdamW::<f32, Dev>::load(AdamWConfig::default(), &model, &file).unwrap();
    let config = AdamWConfig { eps: 0.0, ..Default::default() };
    assert!(AdamW::<f32, Dev>::load(config, &model, &file).is_err());
    // What is a number in f64 may be 0, 1 or infinite in the weights' own type.
    for config in [
        AdamWConfig { eps: 1e-46, ..Default::default() },
        AdamWConfig { betas: [0.9, 0.99999999], ..Default::default() },
        AdamWConfig { betas: [-0.1, 0.9], ..Default::default() },
    ] {
        assert!(AdamW::<f32, Dev>::new(config).is_err(), "{config:?}");
    }
    assert!(AdamW::<f64, Dev>::new(AdamWConfig { eps: 1e-46, ..Default::default() }).is_ok());
}

#[test]
fn what_is_saved_as_a_checkpoint_is_loaded_as_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(42);
    save_checkpoint(&model, &config(), folder.path()).unwrap();
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(*checkpoint.config(), config());
    let loaded = Model::from_checkpoint(&dev(), &checkpoint).unwrap();
    let ids = batch().0;
    let bits = |model: &Model| -> Vec<u32> {
        model.forward(ids.clone()).as_vec().into_iter().map(f32::to_bits).collect()
    };
    assert_eq!(bits(&model), bits(&loaded));
}

#[test]
fn a_checkpoint_with_other_sizes_than_its_model_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |change: fn(&mut CheckpointConfig), words: &str| {
        let mut config = config();
        change(&mut config);
        let error = save_checkpoint(&model(42), &config, folder.path()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "something was written");
    };
    refused(
        |config| config.intermediate_size = 40,
        "`intermediate_size` is 40 in the settings and 48",
    );
    refused(
        |config| config.num_hidden_layers = 3,
        "`num_hidden_layers` is 3 in the settings and 2",
    );
    refused(|config| config.num_hidden_layers = 1 << 40, "`num_hidden_layers` is 1099511627776");
    refused(
        |config| config.num_hidden_layers = 1,
        "`num_hidden_layers` is 1 in the settings and 2",
    );
    refused(|config| config.tie_word_embeddings = true, "`tie_word_embeddings` is true");
    refused(|config| config.rms_norm_eps = f64::NAN, "config.json can't hold");
    let whole = || save_checkpoint(&model(42), &config(), folder.path().join("none"));
    assert!(whole().unwrap_err().to_string().contains("there is no folder"));

    // A file that can't be replaced: the other stays as it was.
    let weights = folder.path().join("model.safetensors");
    std::fs::create_dir(&weights).unwrap();
    std::fs::write(folder.path().join("config.json"), "old").unwrap();
    let error = save_checkpoint(&model(42), &config(), folder.path()).unwrap_err();
    assert!(error.to_string().contains("this is a folder"), "{error}");
    assert_eq!(std::fs::read_to_string(folder.path().join("config.json")).unwrap(), "old");
    assert_eq!(folder.path().read_dir().unwrap().count(), 2, "something was left");
}

/// What is saved in another float type says so, and is read.
#[test]
fn a_checkpoint_has_the_float_type_of_its_model() {
    fn saved<F: Stored>(of: &Model, name: &str)
    where
        Dev: Backend<F>,
    {
        let folder = tempfile::tempdir().unwrap();
        let model = of.try_to_dtype::<F>().unwrap();
        save_checkpoint(&model, &config(), folder.path()).unwrap();
        let json = std::fs::read_to_string(folder.path().join("config.json")).unwrap();
        assert!(json.contains(&format!("\"torch_dtype\": \"{name}\"")), "{json}");
        type Read<F> = LlamaTransformer<V, 16, 2, 1, 8, 48, 2, F, Dev>;
        let checkpoint = Checkpoint::open(folder.path()).unwrap();
        let read = Read::<F>::from_checkpoint(&dev(), &checkpoint).unwrap();
        assert_eq!(read.lm_head.weight.as_vec(), model.lm_head.weight.as_vec());
    }
    let model = model(42);
    saved::<f32>(&model, "float32");
    saved::<f64>(&model, "float64");
    #[cfg(feature = "f16")]
    saved::<f16>(&model, "float16");
}

/// A bound that is small beside the gradients: no factor of it is 0 in a narrow type.
#[test]
#[cfg(feature = "f16")]
fn narrow_gradients_are_not_clipped_away() {
    let module = quadrivium::linear::Linear::<Const<2>, Const<2>, f16, Dev>::with_weight(
        dev().tensor([[1.0, 2.0], [3.0, 4.0]].map(|row| row.map(f16::from_f32))),
        Default::default(),
    )
    .unwrap();
    let x = dev().tensor([[[3e4, 3e4]]].map(|row| row.map(|row| row.map(f16::from_f32))));
    let run = || {
        let mut module = module.clone();
        let y = module.try_forward(x.leaky_trace()).unwrap();
        let mut grads = y.sum::<Rank0, _>().backward();
        clip_gradients(&mut module, &mut grads, 1e-3).unwrap();
        grads.get(&module.weight).as_vec()
    };
    for g in [run(), quadrivium::composed(run)].concat() {
        // Four equal gradients, together of norm 0.001.
        assert!((g.to_f32() - 5e-4).abs() < 1e-6, "{g}");
    }
}
