//! Checkpoints in Hugging Face's layout: tiny ones that transformers has written, with what transformers computes; and
//! broken ones, of which each is refused by name.

mod folders;
mod scaled;
mod truth;

use crate::support::*;
use quadrivium::checkpoint::{Checkpoint, CheckpointProblem};
use quadrivium::loss::cross_entropy;
use quadrivium::model::*;
use quadrivium::tensor::nn::tensor_collection::{
    RecursiveWalker, TensorVisitor, ViewTensorName, ViewTensorRef,
};
use quadrivium::tensor::*;
use quadrivium::training::*;
use quadrivium::*;
use safetensors::tensor::{Dtype as FileDtype, SafeTensors, TensorView};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const V: usize = 61;
type Own<const NKV: usize> = LlamaTransformer<V, 24, 6, NKV, 4, 40, 2, f32, Dev>;
type TiedModel = LlamaTransformer<V, 24, 6, 2, 4, 40, 2, f32, Dev, Tied>;

/// What transformers computes.
struct Expected {
    ids: Vec<usize>,
    text: Vec<usize>,
    logits: Vec<f32>,
    loss: f32,
    losses: Vec<f32>,
    norms: Vec<f32>,
    gradients: BTreeMap<String, Vec<f32>>,
}

fn expected(name: &str) -> Expected {
    let file = root().join("tests/goldens/llama").join(name).join("expected.safetensors");
    let bytes = fs::read(file).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let bytes = |name: &str| file.tensor(name).unwrap().data().to_vec();
    let ids = |name: &str| -> Vec<usize> {
        bytes(name)
            .chunks(8)
            .map(|id| u64::from_le_bytes(id.try_into().unwrap()) as usize)
            .collect()
    };
    let floats = |name: &str| -> Vec<f32> {
        bytes(name).chunks(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect()
    };
    let (logits, loss) = (floats("logits"), floats("loss")[0]);
    let weight = |name: &str| name.strip_prefix("gradient.").map(str::to_string);
    let gradients = file.names().into_iter().filter_map(|name| Some((weight(name)?, floats(name))));
    let gradients = gradients.collect();
    let (losses, norms) = (floats("losses"), floats("norms"));
    Expected { ids: ids("ids"), text: ids("text"), logits, loss, losses, norms, gradients }
}

fn checkpoint(name: &str) -> Checkpoint {
    Checkpoint::open(root().join("tests/goldens/llama").join(name)).unwrap()
}

/// Gradients by the names of their weights.
struct Named<'g> {
    grads: &'g Gradients<f32, Dev>,
    found: BTreeMap<String, Vec<f32>>,
}

impl TensorVisitor<f32, Dev> for Named<'_> {
    type Viewer = (ViewTensorRef, ViewTensorName);
    type Err = Error;
    type E2 = f32;
    type D2 = Dev;

    fn visit<S: Shape>(
        &mut self,
        _: TensorOptions<S, f32, Dev>,
        (tensor, name): (&Tensor<S, f32, Dev>, String),
    ) -> std::result::Result<Option<Tensor<S, f32, Dev>>, Error> {
        self.found.insert(name, self.grads.get(tensor).as_vec());
        Ok(None)
    }
}

/// Logits, loss, all gradients, and the greedy text, which meets every position of the cache.
fn is_that_of_transformers<
    const NKV: usize,
    O: Head<V, 24, f32, Dev> + TensorCollection<f32, Dev>,
>(
    name: &str,
    model: LlamaTransformer<V, 24, 6, NKV, 4, 40, 2, f32, Dev, O>,
) {
    let expected = expected(name);
    let grads = model.try_alloc_grads().unwrap();
    let logits = model.try_forward(ids(&expected.ids, (2, 12)).traced(grads)).unwrap();
    let largest = expected.logits.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    for (i, (got, want)) in logits.as_vec().iter().zip(&expected.logits).enumerate() {
        // Some hundred roundings; PyTorch's angles are in f32.
        assert!((got - want).abs() <= 1e-4 * largest, "{name} {i}: {got}, not {want}");
    }
    let rows = expected.ids.chunks(12);
    let targets: Vec<usize> =
        rows.flat_map(|row| row[1..].iter().copied().chain([loss::IGNORE])).collect();
    let loss = cross_entropy(logits, &ids(&targets, (2, 12))).unwrap();
    assert!(
        (loss.array() - expected.loss).abs() < 1e-4 * expected.loss,
        "{name}: {}",
        loss.array()
    );
    let grads = loss.try_backward().unwrap();
    let mut named = Named { grads: &grads, found: BTreeMap::new() };
    let walker = &mut RecursiveWalker { m: (&model, String::new()), f: &mut named };
    TensorCollection::iter_tensors(walker).unwrap();
    let found = named.found;
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.gradients.keys().collect::<Vec<_>>());
    for (weight, want) in &expected.gradients {
        let largest = want.iter().fold(0f32, |largest, x| largest.max(x.abs()));
        for (i, (got, want)) in found[weight].iter().zip(want).enumerate() {
            assert!((got - want).abs() <= 1e-4 * largest, "{name} {weight} {i}: {got}, not {want}");
        }
    }

    let mut cache = LlamaCache::new(12 + 64);
    let mut greedy = Sampler::new(SamplingConfig::greedy()).unwrap();
    let (mut new, mut text) = (expected.ids[..12].to_vec(), Vec::<usize>::new());
    for _ in 0..64 {
        let s = new.len();
        let logits = model.try_decode(ids(&new, (1, s)), &mut cache).unwrap().as_vec();
        new = vec![greedy.next(&logits[(s - 1) * V..]).unwrap()];
        text.extend(&new);
    }
    assert_eq!(text, expected.text, "{name}");
    assert!(
        text.iter().collect::<std::collections::BTreeSet<_>>().len() > 4,
        "{text:?} says nothing"
    );
}

/// Twelve steps: AdamW, its schedule, and one bound on all gradients together.
fn trains_as_pytorch_does<const NKV: usize, O: Head<V, 24, f32, Dev> + TensorCollection<f32, Dev>>(
    name: &str,
    mut model: LlamaTransformer<V, 24, 6, NKV, 4, 40, 2, f32, Dev, O>,
) where
    LlamaTransformer<V, 24, 6, NKV, 4, 40, 2, f32, Dev, O>: TensorCollection<f32, Dev>,
{
    let expected = expected(name);
    let rows = expected.ids.chunks(12);
    let targets: Vec<usize> =
        rows.flat_map(|row| row[1..].iter().copied().chain([loss::IGNORE])).collect();
    let (text, targets) = (ids(&expected.ids, (2, 12)), ids(&targets, (2, 12)));
    let schedule = Schedule { peak: 0.01, warmup: 3, steps: 12, end: 0.001 };
    let mut adam = AdamW::new(AdamWConfig::default()).unwrap();
    let mut grads = model.try_alloc_grads().unwrap();
    for step in 0..12 {
        let loss = cross_entropy(model.try_forward(text.clone().traced(grads)).unwrap(), &targets);
        let loss = loss.unwrap();
        let (got, want) = (loss.array(), expected.losses[step]);
        // Rounding grows from step to step.
        assert!((got - want).abs() <= 1e-3 * want, "{name}, step {step}: {got}, not {want}");
        grads = loss.try_backward().unwrap();
        let (got, want) =
            (clip_gradients(&mut model, &mut grads, 1.0).unwrap(), expected.norms[step]);
        assert!((got as f32 - want).abs() <= 5e-3 * want, "{name}, step {step}: {got}, not {want}");
        adam.update(&mut model, &mut grads, schedule.rate(step)).unwrap();
        model.try_zero_grads(&mut grads).unwrap();
    }
    assert_eq!(adam.steps(), 12);
    let (first, last) = (expected.losses[0], expected.losses[11]);
    assert!(last < 0.7 * first, "{first} to {last}: nothing was learned");
}

#[test]
fn training_is_that_of_pytorch() {
    trains_as_pytorch_does(
        "grouped",
        Own::<2>::from_checkpoint(&dev(), &checkpoint("grouped")).unwrap(),
    );
    trains_as_pytorch_does(
        "tied",
        TiedModel::from_checkpoint(&dev(), &checkpoint("tied")).unwrap(),
    );
}

#[test]
fn transformers_computes_the_same() {
    is_that_of_transformers(
        "plain",
        Own::<6>::from_checkpoint(&dev(), &checkpoint("plain")).unwrap(),
    );
    is_that_of_transformers(
        "grouped",
        Own::<2>::from_checkpoint(&dev(), &checkpoint("grouped")).unwrap(),
    );
    is_that_of_transformers(
        "one-key",
        Own::<1>::from_checkpoint(&dev(), &checkpoint("one-key")).unwrap(),
    );
    is_that_of_transformers(
        "tied",
        TiedModel::from_checkpoint(&dev(), &checkpoint("tied")).unwrap(),
    );
    is_that_of_transformers(
        "sharded",
        Own::<2>::from_checkpoint(&dev(), &checkpoint("sharded")).unwrap(),
    );
}

/// A checkpoint's tensors by name: type, shape, bytes.
type Tensors = BTreeMap<String, (FileDtype, Vec<usize>, Vec<u8>)>;

fn tensors(file: &Path) -> Tensors {
    let bytes = fs::read(file).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let of = |(name, view): (&str, TensorView<'_>)| {
        (name.to_string(), (view.dtype(), view.shape().to_vec(), view.data().to_vec()))
    };
    file.iter().map(of).collect()
}

fn write(file: &Path, tensors: &Tensors) {
    let views = tensors.iter().map(|(name, (dtype, shape, bytes))| {
        (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap())
    });
    fs::write(file, safetensors::serialize(views, None).unwrap()).unwrap();
}

/// A copy of a good checkpoint that is broken by `break_it`, and what is said of it.
fn refused(name: &str, break_it: impl FnOnce(&Path)) -> Error {
    let folder = tempfile::tempdir().unwrap();
    for file in fs::read_dir(root().join("tests/goldens/llama").join(name)).unwrap().flatten() {
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    break_it(folder.path());
    let error = match Checkpoint::open(folder.path()) {
        Err(error) => error,
        Ok(checkpoint) if name == "tied" => {
            TiedModel::from_checkpoint(&dev(), &checkpoint).map(drop).unwrap_err()
        }
        Ok(checkpoint) => Own::<2>::from_checkpoint(&dev(), &checkpoint).map(drop).unwrap_err(),
    };
    assert!(!error.to_string().is_empty());
    error
}

fn with_setting(name: &'static str, value: Value) -> impl FnOnce(&Path) {
    move |folder| {
        let file = folder.join("config.json");
        let mut json: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        json[name] = value;
        fs::write(file, json.to_string()).unwrap();
    }
}

/// Settings that are wrong, and what the message has to name.
#[test]
fn wrong_settings_are_named() {
    let cases: Vec<(&'static str, Value, &str)> = vec![
        ("vocab_size", Value::Null, "`vocab_size` is missing"),
        ("hidden_size", Value::Null, "`hidden_size` is missing"),
        ("intermediate_size", Value::Null, "`intermediate_size` is missing"),
        ("num_hidden_layers", Value::Null, "`num_hidden_layers` is missing"),
        ("num_attention_heads", Value::Null, "`num_attention_heads` is missing"),
        ("vocab_size", json!(0), "`vocab_size` must be a whole number from 1 on, got 0"),
        ("hidden_size", json!(-24), "`hidden_size` must be a whole number"),
        ("num_hidden_layers", json!(2.5), "`num_hidden_layers` must be a whole number"),
        ("num_attention_heads", json!("6"), "`num_attention_heads` must be a whole number"),
        ("rms_norm_eps", json!("small"), "`rms_norm_eps` must be a number"),
        (
            "rms_norm_eps",
            json!(-1e-5),
            "`rms_norm_eps` must be 0, or a positive number, got -0.00001",
        ),
        ("tie_word_embeddings", json!("no"), "`tie_word_embeddings` must be true or false"),
        ("eos_token_id", json!("</s>"), "`eos_token_id` must be a token id"),
        ("vocab_size", json!(62), "`vocab_size` is 62 in the file and 61 in the type"),
        ("hidden_size", json!(48), "`hidden_size` is 48 in the file and 24 in the type"),
        ("intermediate_size", json!(41), "`intermediate_size` is 41 in the file"),
        ("num_hidden_layers", json!(3), "`num_hidden_layers` is 3 in the file"),
        ("num_attention_heads", json!(3), "`num_attention_heads` is 3 in the file"),
        ("num_key_value_heads", json!(3), "`num_key_value_heads` is 3 in the file"),
        ("head_dim", json!(8), "`head_dim` is 8 in the file"),
        ("tie_word_embeddings", json!(true), "`tie_word_embeddings` is true in the file"),
        ("model_type", json!("mistral"), "`model_type` is \"mistral\""),
        ("hidden_act", json!("gelu"), "`hidden_act` is \"gelu\""),
        ("attention_bias", json!(true), "`attention_bias` is true"),
        ("mlp_bias", json!(true), "`mlp_bias` is true"),
        ("quantization_config", json!({"bits": 4}), "`quantization_config` is"),
        ("partial_rotary_factor", json!(0.5), "`partial_rotary_factor` is 0.5"),
        ("rope_parameters", json!("default"), "`rope_parameters` must be an object"),
        (
            "rope_parameters",
            json!({"rope_theta": 0.5}),
            "`rope_parameters.rope_theta` must be above 1, got 0.5",
        ),
        (
            "rope_parameters",
            json!({"rope_theta": "1e4"}),
            "`rope_parameters.rope_theta` must be a number",
        ),
        ("rope_theta", json!(0), "`rope_theta` must be above 1, got 0"),
        ("max_position_embeddings", json!(1u64 << 40), "at most 16777216"),
    ];
    for (name, value, words) in cases {
        let error = refused("grouped", with_setting(name, value.clone())).to_string();
        assert!(error.contains(words), "{name} {value}: {error}");
    }
    let of = |text: &'static str| {
        refused("grouped", move |folder: &Path| {
            fs::write(folder.join("config.json"), text).unwrap()
        })
    };
    for (text, words) in [
        ("", "it is not a JSON object"),
        ("[1, 2]", "it is not a JSON object"),
        ("{\"vocab_size\": 61", "it is not a JSON object"),
        ("{}", "is missing"),
    ] {
        assert!(of(text).to_string().contains(words), "{text}: {}", of(text));
    }
    let none = refused("grouped", |folder| fs::remove_file(folder.join("config.json")).unwrap());
    assert!(none.to_string().contains("config.json: there is no such file"), "{none}");
    assert!(Checkpoint::open("").is_err());
}

/// Files that are wrong, and what the message has to name.
#[test]
fn wrong_files_are_named() {
    const WHOLE: &str = "model.safetensors";
    let changed = |change: &dyn Fn(&mut Tensors)| {
        refused("grouped", |folder| {
            let file = folder.join(WHOLE);
            let mut all = tensors(&file);
            change(&mut all);
            write(&file, &all);
        })
        .to_string()
    };
    const Q: &str = "model.layers.1.self_attn.q_proj.weight";
    let word = |all: &mut Tensors, place: usize, value: f32| {
        all.get_mut(Q).unwrap().2[4 * place..][..4].copy_from_slice(&value.to_le_bytes());
    };
    let cases: [(&dyn Fn(&mut Tensors), &str); 12] = [
        (
            &|all| drop(all.remove(Q)),
            "no tensor is called \"model.layers.1.self_attn.q_proj.weight\"",
        ),
        (&|all| drop(all.remove("lm_head.weight")), "no tensor is called \"lm_head.weight\""),
        (&|all| drop(all.remove("model.norm.weight")), "no tensor is called \"model.norm.weight\""),
        (
            &|all| {
                let bias = (FileDtype::F32, vec![24], vec![0; 96]);
                all.insert("model.layers.0.self_attn.q_proj.bias".into(), bias);
            },
            "\"model.layers.0.self_attn.q_proj.bias\" has no place",
        ),
        (
            &|all| {
                let layer = all[Q].clone();
                all.insert("model.layers.2.self_attn.q_proj.weight".into(), layer);
            },
            "\"model.layers.2.self_attn.q_proj.weight\" has no place",
        ),
        (&|all| all.get_mut(Q).unwrap().1 = vec![12, 48], "has shape [12, 48], expected [24, 24]"),
        (&|all| all.get_mut(Q).unwrap().1 = vec![576], "has shape [576], expected [24, 24]"),
        (&|all| all.get_mut(Q).unwrap().0 = FileDtype::I32, "holds I32"),
        (
            &|all| {
                let table = all.get_mut(Q).unwrap();
                *table = (FileDtype::F8_E4M3, table.1.clone(), vec![0; 576]);
            },
            "holds F8_E4M3",
        ),
        (&|all| word(all, 5, f32::NAN), "has NaN at place 5"),
        (&|all| word(all, 575, f32::INFINITY), "has inf at place 575"),
        (&|all| word(all, 0, f32::NEG_INFINITY), "has -inf at place 0"),
    ];
    for (change, words) in cases {
        let error = changed(change);
        assert!(error.contains(words), "{words}: {error}");
    }

    let bytes = fs::read(root().join("tests/goldens/llama/grouped").join(WHOLE)).unwrap();
    let length = bytes.len();
    let mut lying = bytes.clone();
    lying[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let mut longer = bytes.clone();
    longer.push(0);
    let mut other = bytes.clone();
    other[8..40].fill(b'x');
    for broken in [
        Vec::new(),
        bytes[..7].to_vec(),
        bytes[..100].to_vec(),
        bytes[..length - 1].to_vec(),
        bytes[..length / 2].to_vec(),
        lying,
        longer,
        other,
    ] {
        let size = broken.len();
        let error =
            refused("grouped", |folder| fs::write(folder.join(WHOLE), broken).unwrap()).to_string();
        assert!(error.contains("not a complete .safetensors file"), "{size} bytes: {error}");
    }
    let none = refused("grouped", |folder| fs::remove_file(folder.join(WHOLE)).unwrap());
    assert!(none.to_string().contains("model.safetensors: there is no such file"), "{none}");
    let pickle = refused("grouped", |folder| {
        fs::rename(folder.join(WHOLE), folder.join("pytorch_model.bin")).unwrap();
    });
    assert!(pickle.to_string().contains("the weights are in a pickle"), "{pickle}");
    let one_of_two = refused("tied", |folder| {
        let file = folder.join(WHOLE);
        let mut all = tensors(&file);
        let table = all.remove("model.embed_tokens.weight").unwrap();
        all.insert("lm_head.weight".into(), table);
        write(&file, &all);
    });
    assert!(one_of_two.to_string().contains("saved as lm_head.weight"), "{one_of_two}");

    let shard = "model-00002-of-00003.safetensors";
    let gone = refused("sharded", |folder| fs::remove_file(folder.join(shard)).unwrap());
    assert!(gone.to_string().contains(&format!("{shard}: there is no such file")), "{gone}");
    let index = |change: fn(&mut Value)| {
        refused("sharded", |folder| {
            let file = folder.join("model.safetensors.index.json");
            let mut json = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
            change(&mut json);
            fs::write(file, json.to_string()).unwrap();
        })
        .to_string()
    };
    const NORM: &str = "model.norm.weight";
    let cases: [(fn(&mut Value), &str); 6] = [
        (|json| *json = json!({}), "`weight_map` is missing"),
        (|json| *json = json!("none"), "it is not a JSON object"),
        (
            |json| json["weight_map"][NORM] = json!("../model.safetensors"),
            "`weight_map.model.norm.weight` must be",
        ),
        (|json| json["weight_map"][NORM] = json!(3), "the name of a file in this folder, got 3"),
        (|json| json["weight_map"] = json!({}), "no tensor is called"),
        (|json| json["weight_map"] = json!([NORM]), "an object, of tensors and their files"),
    ];
    for (change, words) in cases {
        assert!(index(change).contains(words), "{words}: {}", index(change));
    }

    // A file that is larger than the model can be is not read: here 4 GiB of nothing, which take no room on the disk.
    let long = refused("grouped", |folder| {
        fs::File::options().write(true).open(folder.join(WHOLE)).unwrap().set_len(1 << 32).unwrap();
    });
    assert!(long.to_string().contains("it has 4294967296 bytes"), "{long}");
    let directory = refused("grouped", |folder| {
        fs::remove_file(folder.join(WHOLE)).unwrap();
        fs::create_dir(folder.join(WHOLE)).unwrap();
    });
    assert!(directory.to_string().contains("it is no file"), "{directory}");
    #[cfg(unix)]
    for (of, name) in [
        ("grouped", "config.json"),
        ("grouped", WHOLE),
        ("sharded", "model.safetensors.index.json"),
    ] {
        let pipe = refused(of, |folder| {
            let _ = fs::remove_file(folder.join(name));
            let made = std::process::Command::new("mkfifo").arg(folder.join(name)).status();
            assert!(made.unwrap().success());
        });
        assert!(
            pipe.to_string().contains(&format!("{name}: it can't be read: it is no file")),
            "{pipe}"
        );
    }
    // A tensor in two of the files: the index names one of them, and no one knows which is right.
    let in_two = refused("sharded", |folder| {
        let [first, last] =
            ["1", "3"].map(|n| folder.join(format!("model-0000{n}-of-00003.safetensors")));
        let (from, mut to) = (tensors(&first), tensors(&last));
        let (name, tensor) = from.into_iter().next().unwrap();
        to.insert(name, tensor);
        write(&last, &to);
    });
    assert!(in_two.to_string().contains("is in two files"), "{in_two}");

    let twice = refused("tied", |folder| {
        let file = folder.join(WHOLE);
        let mut all = tensors(&file);
        let mut table = all["model.embed_tokens.weight"].clone();
        table.2[1] ^= 0x80;
        all.insert("lm_head.weight".into(), table);
        write(&file, &all);
    });
    let problem = |error: &Error| match error {
        Error::Checkpoint { problem, .. } => problem.clone(),
        other => panic!("{other}"),
    };
    assert_eq!(problem(&twice), CheckpointProblem::NotTied);
}

/// What has no meaning for the numbers is let through: old files hold RoPE's frequencies, tied ones the table twice.
#[test]
fn harmless_entries_are_let_through() {
    let folder = tempfile::tempdir().unwrap();
    let from = root().join("tests/goldens/llama/tied");
    fs::copy(from.join("config.json"), folder.path().join("config.json")).unwrap();
    let mut all = tensors(&from.join("model.safetensors"));
    let frequencies = (FileDtype::F32, vec![2], vec![0; 8]);
    all.insert("model.layers.0.self_attn.rotary_emb.inv_freq".into(), frequencies);
    let table = all["model.embed_tokens.weight"].clone();
    all.insert("lm_head.weight".into(), table);
    write(&folder.path().join("model.safetensors"), &all);
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    assert_eq!(checkpoint.config().eos_token_id, [2]);
    is_that_of_transformers("tied", TiedModel::from_checkpoint(&dev(), &checkpoint).unwrap());
}
