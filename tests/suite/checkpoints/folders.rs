//! The files of a checkpoint and their folder: also where those of another one lie beside them, and where a save was ended in
//! its middle.

use super::truth::*;
use super::{Tensors, tensors, write};
use crate::support::*;
use quadrivium::checkpoint::*;
use quadrivium::loss::cross_entropy;
use quadrivium::model::*;
use quadrivium::tensor::*;
use quadrivium::weights::{load_weights, save_weights};
use quadrivium::*;
use safetensors::tensor::{Dtype as FileDtype, SafeTensors};
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The single file is the newer one: it is what transformers reads.
#[test]
fn a_list_that_is_left_over_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let old = |names: &[&str]| {
        save_checkpoint(&model(1), &config(), folder.path()).unwrap();
        let file = folder.path().join("model.safetensors");
        let mut map = serde_json::Map::new();
        let all = tensors(&file);
        for (nth, name) in names.iter().enumerate() {
            let of = |at: &usize| at % names.len() == nth;
            let some: Tensors = all
                .iter()
                .enumerate()
                .filter(|(at, _)| of(at))
                .map(|(_, (name, tensor))| (name.clone(), tensor.clone()))
                .collect();
            map.extend(some.keys().map(|tensor| (tensor.clone(), json!(name))));
            write(&folder.path().join(name), &some);
        }
        fs::remove_file(file).unwrap();
        let index = json!({"metadata": {}, "weight_map": map});
        fs::write(folder.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    };
    let [one, two] = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    old(&[one, two]);
    assert_same_bits(&bits(&read(folder.path()).unwrap()), &bits(&model(1)));
    // A file that another user has put there.
    let other = tempfile::tempdir().unwrap();
    save_checkpoint(&model(2), &config(), other.path()).unwrap();
    fs::copy(other.path().join("model.safetensors"), folder.path().join("model.safetensors"))
        .unwrap();
    assert_same_bits(&bits(&read(folder.path()).unwrap()), &bits(&model(2)));
    // One that the library saves; then nothing of the old one is left, and all else is.
    for names in [&[one, two][..], &[one]] {
        old(names);
        for name in ["tokenizer.json", "model-1-of-2.safetensors", "generation_config.json"] {
            fs::write(folder.path().join(name), "mine").unwrap();
        }
        save_checkpoint(&model(3), &config(), folder.path()).unwrap();
        assert_same_bits(&bits(&read(folder.path()).unwrap()), &bits(&model(3)));
        let mut left: Vec<_> =
            folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        let mine = [
            "config.json",
            "generation_config.json",
            "model-1-of-2.safetensors",
            "model.safetensors",
            "tokenizer.json",
        ];
        assert_eq!(left, mine);
    }
    // Without the single file the list is asked, also for a broken one.
    old(&[one, two]);
    fs::remove_file(folder.path().join(two)).unwrap();
    let error = read(folder.path()).map(drop).unwrap_err().to_string();
    let words =
        format!("{two}: there is no such file: model.safetensors.index.json lists it; fetch it");
    assert!(error.contains(&words), "{error}");
}

/// As in Hugging Face's cache, where a folder has links to files that it shares with others.
#[cfg(unix)]
#[test]
fn what_a_link_leads_to_stays_as_it_is() {
    let (shared, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    save_checkpoint(&model(1), &config(), shared.path()).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::os::unix::fs::symlink(shared.path().join(name), folder.path().join(name)).unwrap();
    }
    assert_same_bits(&bits(&read(folder.path()).unwrap()), &bits(&model(1)));
    save_checkpoint(&model(2), &config(), folder.path()).unwrap();
    assert_same_bits(&bits(&read(folder.path()).unwrap()), &bits(&model(2)));
    assert_same_bits(&bits(&read(shared.path()).unwrap()), &bits(&model(1)));
}

/// Between the two renames of a save there are no settings, so new weights are never read by old ones.
#[test]
fn a_save_that_was_ended_in_its_middle_is_no_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    save_checkpoint(&model(1), &config(), folder.path()).unwrap();
    // As it is when the process is killed there: the old settings are set aside, and the weights are new.
    fs::rename(at("config.json"), at(".config.json.old")).unwrap();
    fs::rename(at("model.safetensors"), at(".model.safetensors.old")).unwrap();
    let other = drawn(plain(500.0), 1e-6, 2);
    save_weights(&other, at("model.safetensors")).unwrap();
    let error = read(folder.path()).map(drop).unwrap_err().to_string();
    assert!(
        error.contains("config.json: there is no such file: a save was ended in its middle"),
        "{error}"
    );
    // The old ones again, as it says; or a new save.
    fs::rename(at(".config.json.old"), at("config.json")).unwrap();
    fs::rename(at(".model.safetensors.old"), at("model.safetensors")).unwrap();
    assert_same_bits(&bits(&read(folder.path()).unwrap()), &bits(&model(1)));
    fs::rename(at("config.json"), at(".config.json.old")).unwrap();
    save_checkpoint(&other, &with(|c| c.rope_theta = 500.0), folder.path()).unwrap();
    assert_same_bits(&bits(&read(folder.path()).unwrap()), &bits(&other));
    // What an earlier save has left aside is not taken for what this one sets aside.
    for (name, old) in [("config.json", &model(1)), ("model.safetensors", &model(1))] {
        let kept = tempfile::tempdir().unwrap();
        save_checkpoint(old, &config(), kept.path()).unwrap();
        fs::copy(kept.path().join(name), at(&format!(".{name}.old"))).unwrap();
        fs::write(at(&format!(".{name}.a1B2c3.new")), "as a kill leaves it").unwrap();
    }
    save_checkpoint(&model(1), &config(), folder.path()).unwrap();
    let hidden = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    assert!(!fs::read_dir(folder.path()).unwrap().flatten().any(hidden));
    // Of a save that was ended, the old ones come back before the next begins: that may be ended, too.
    fs::rename(at("config.json"), at(".config.json.old")).unwrap();
    fs::rename(at("model.safetensors"), at(".model.safetensors.old")).unwrap();
    fs::create_dir(at("model.safetensors")).unwrap();
    save_checkpoint(&other, &config(), folder.path()).unwrap_err();
    fs::remove_dir(at("model.safetensors")).unwrap();
    save_checkpoint(&other, &with(|c| c.rope_theta = 500.0), folder.path()).unwrap();
    assert_same_bits(&bits(&read(folder.path()).unwrap()), &bits(&other));
    // A save that can't set both aside changes neither.
    for name in [".config.json.old", ".model.safetensors.old"] {
        fs::create_dir(at(name)).unwrap();
        save_checkpoint(&model(1), &config(), folder.path()).unwrap_err();
        fs::remove_dir(at(name)).unwrap();
        assert_same_bits(&bits(&read(folder.path()).unwrap()), &bits(&other));
    }
}

/// transformers would put it on the weights.
#[test]
fn an_adapter_beside_the_weights_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    save_checkpoint(&model(1), &config(), folder.path()).unwrap();
    fs::write(folder.path().join("adapter_config.json"), "{}").unwrap();
    let error = read(folder.path()).map(drop).unwrap_err().to_string();
    assert!(error.contains("adapter_config.json: it says that an adapter changes"), "{error}");
}

/// Readers beside a writer get the one checkpoint or the other, also where the first one comes back while they read.
#[test]
fn readers_beside_a_writer_get_no_mixture() {
    let folder = tempfile::tempdir().unwrap();
    let other = drawn(plain(500.0), 1e-6, 2);
    let [one, two] = [bits(&model(1)), bits(&other)];
    save_checkpoint(&model(1), &config(), folder.path()).unwrap();
    let (over, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !over.load(Relaxed) {
                let Ok(model) = read(folder.path()) else { continue };
                let got = bits(&model);
                assert!(got == one || got == two, "a mixture");
                reads.fetch_add(1, Relaxed);
            }
        });
        // On a busy machine the reader gets a core now and then.
        for nth in 0..20_000 {
            if reader.is_finished() || nth >= 200 && reads.load(Relaxed) > 0 {
                break;
            }
            save_checkpoint(&other, &with(|c| c.rope_theta = 500.0), folder.path()).unwrap();
            save_checkpoint(&model(1), &config(), folder.path()).unwrap();
        }
        over.store(true, Relaxed);
    });
    assert!(reads.load(Relaxed) > 0, "nobody read");
}

/// A reader that has the settings of the old checkpoint does not compute the new weights by them.
#[test]
fn a_folder_that_is_saved_into_while_it_is_open() {
    let folder = tempfile::tempdir().unwrap();
    save_checkpoint(&model(1), &config(), folder.path()).unwrap();
    let opened = Checkpoint::open(folder.path()).unwrap();
    let other = drawn(plain(500.0), 1e-6, 2);
    save_checkpoint(&other, &with(|c| c.rope_theta = 500.0), folder.path()).unwrap();
    let error = Model::from_checkpoint(&dev(), &opened).map(drop).unwrap_err().to_string();
    assert!(
        error.contains("the checkpoint was changed after it was opened; open it again"),
        "{error}"
    );
    assert_same_bits(&bits(&read(folder.path()).unwrap()), &bits(&other));
    // New weights of the same model are no mixture.
    let opened = Checkpoint::open(folder.path()).unwrap();
    save_checkpoint(&drawn(plain(500.0), 1e-6, 3), &with(|c| c.rope_theta = 500.0), folder.path())
        .unwrap();
    Model::from_checkpoint(&dev(), &opened).unwrap();
}

/// The header of a file shows what transformers asks for, and the same bytes each time.
#[test]
fn files_say_that_they_are_pytorchs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let notes = |name: &str| {
        let bytes = fs::read(at(name)).unwrap();
        SafeTensors::deserialize(&bytes).unwrap(); // still one
        SafeTensors::read_metadata(&bytes).unwrap().1.metadata().clone().unwrap()
    };
    save_checkpoint(&model(1), &config(), folder.path()).unwrap();
    save_weights(&model(1), at("weights")).unwrap();
    let (mut model, mut adam) = (model(1), training::AdamW::new(Default::default()).unwrap());
    let text = ids(&[1, 2, 3], (1, 3));
    let logits = model.try_forward(text.clone().traced(model.alloc_grads())).unwrap();
    let mut grads = cross_entropy(logits, &text).unwrap().backward();
    adam.update(&mut model, &mut grads, 0.1).unwrap();
    for name in ["model.safetensors", "weights"] {
        assert_eq!(notes(name), [("format".to_string(), "pt".to_string())].into(), "{name}");
    }
    let mut files = std::collections::BTreeSet::new();
    for _ in 0..20 {
        adam.save(&model, at("optimizer")).unwrap();
        files.insert(fs::read(at("optimizer")).unwrap());
    }
    assert_eq!(files.len(), 1, "the same state has several files");
    let pairs = [("format", "pt"), ("steps", "1")];
    assert_eq!(
        notes("optimizer"),
        pairs.map(|(name, note)| (name.to_string(), note.to_string())).into()
    );
    assert_eq!(
        training::AdamW::<f32, Dev>::load(Default::default(), &model, at("optimizer"))
            .unwrap()
            .steps(),
        1
    );
}

/// Some editors begin a file with a mark.
#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    save_checkpoint(&model(1), &config(), folder.path()).unwrap();
    let at = |name: &str| folder.path().join(name);
    let marked = |text: &str| format!("\u{FEFF}{text}");
    let text = fs::read_to_string(at("config.json")).unwrap();
    fs::write(at("config.json"), marked(&text)).unwrap();
    fs::rename(at("model.safetensors"), at("all.safetensors")).unwrap();
    let map: Value = tensors(&at("all.safetensors"))
        .into_keys()
        .map(|name| (name, json!("all.safetensors")))
        .collect();
    fs::write(at("model.safetensors.index.json"), marked(&json!({"weight_map": map}).to_string()))
        .unwrap();
    assert_same_bits(&bits(&read(folder.path()).unwrap()), &bits(&model(1)));
    // In the middle it is one.
    let error = CheckpointConfig::parse("{\"vocab_size\": \u{FEFF}9}").unwrap_err().to_string();
    assert!(error.contains("it is not a JSON object"), "{error}");
}

/// What can't be loaded into a type says what would help.
#[test]
fn words_about_types() {
    let folder = tempfile::tempdir().unwrap();
    save_checkpoint(&model(1), &config(), folder.path()).unwrap();
    type TiedModel = LlamaTransformer<V, 16, 2, 1, 8, 24, 1, f32, Dev, Tied>;
    let opened = Checkpoint::open(folder.path()).unwrap();
    let error = TiedModel::from_checkpoint(&dev(), &opened).map(drop).unwrap_err().to_string();
    let words = "`tie_word_embeddings` is false in the file and true in the type: choose the type whose output is a matrix of \
                 its own, and not `Tied`";
    assert!(error.ends_with(words), "{error}");
    let tied =
        TiedModel::tied(&dev(), LlamaConfig { rope: plain(1e4), ..Default::default() }).unwrap();
    save_checkpoint(&tied, &with(|c| c.tie_word_embeddings = true), folder.path()).unwrap();
    let error = read(folder.path()).map(drop).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "is true in the file and false in the type: choose the type whose output is `Tied`"
        ),
        "{error}"
    );
    let mut json: Value = serde_json::from_str(&config().to_json()).unwrap();
    json["head_dim"] = json!(16);
    fs::write(folder.path().join("config.json"), json.to_string()).unwrap();
    let error = read(folder.path()).map(drop).unwrap_err().to_string();
    assert!(error.contains("`head_dim` is 16 in the file, and this crate computes hidden_size / num_attention_heads only, which is 8"), "{error}");
    assert!(!error.contains("choose the type"), "{error}");
    let missing = tempfile::tempdir().unwrap();
    let error = Checkpoint::open(missing.path()).unwrap_err().to_string();
    assert!(
        error.contains("config.json: there is no such file: a checkpoint has its settings there"),
        "{error}"
    );
    // And a program that reads settings alone hands the problem on.
    let parse = || -> error::Result<CheckpointConfig> { Ok(CheckpointConfig::parse("{}")?) };
    assert!(parse().unwrap_err().to_string().starts_with("config.json: `hidden_size` is missing"));
}

/// Weights of another float type become the nearest ones, as in a checkpoint.
#[test]
fn weights_of_another_type_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weights");
    let model = model(1);
    save_weights(&model, &file).unwrap();
    let all = tensors(&file);
    let words = |bytes: &[u8]| -> Vec<f32> {
        bytes.chunks(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect()
    };
    let ways: [(FileDtype, fn(f32) -> Vec<u8>, fn(f32) -> f32); 3] = [
        (FileDtype::F64, |x| f64::from(x).to_le_bytes().into(), |x| x),
        (
            FileDtype::F16,
            |x| half::f16::from_f32(x).to_le_bytes().into(),
            |x| half::f16::from_f32(x).to_f32(),
        ),
        (
            FileDtype::BF16,
            |x| half::bf16::from_f32(x).to_le_bytes().into(),
            |x| half::bf16::from_f32(x).to_f32(),
        ),
    ];
    for (dtype, write_one, rounded) in ways {
        let converted: Tensors = all
            .iter()
            .map(|(name, (_, shape, bytes))| {
                let bytes = words(bytes).into_iter().flat_map(write_one).collect();
                (name.clone(), (dtype, shape.clone(), bytes))
            })
            .collect();
        write(&file, &converted);
        let mut loaded = self::model(2);
        load_weights(&mut loaded, &file).unwrap();
        let want: Vec<f32> = model.lm_head.weight.as_vec().into_iter().map(rounded).collect();
        assert_same_bits(&loaded.lm_head.weight.as_vec(), &want);
    }
    let mut large = all.clone();
    let head = large.get_mut("lm_head.weight").unwrap();
    *head = (
        FileDtype::F64,
        head.1.clone(),
        [1e300f64].repeat(V * 16).into_iter().flat_map(f64::to_le_bytes).collect(),
    );
    write(&file, &large);
    let mut other = self::model(2);
    let before = bits(&other);
    let error = load_weights(&mut other, &file).unwrap_err().to_string();
    assert!(
        error.contains("\"lm_head.weight\" has 1e300 at place 0, which is no number in F32"),
        "{error}"
    );
    assert_same_bits(&bits(&other), &before);
    let head = large.get_mut("lm_head.weight").unwrap();
    *head = (FileDtype::I32, head.1.clone(), vec![0; V * 16 * 4]);
    write(&file, &large);
    let error = load_weights(&mut other, &file).unwrap_err().to_string();
    assert!(error.contains("holds I32, and F64, F32, F16 and BF16 are read"), "{error}");
}
