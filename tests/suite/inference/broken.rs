//! Folders that are no checkpoint, or that of a model that is not computed. The error names file and setting.

use super::*;
use serde_json::{Value, json};

/// A copy of a golden, changed.
fn changed(name: &str, change: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(root().join("tests/goldens/families").join(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    change(folder.path());
    match LlamaModel::open(folder.path()) {
        Ok(_) => String::from("it was opened"),
        Err(error) => error.to_string().replace(&folder.path().display().to_string(), "DIR"),
    }
}

fn set(name: &str, setting: &str, value: Value) -> String {
    changed(name, |folder| {
        let file = folder.join("config.json");
        let mut json: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        if setting == "model_type" {
            json["architectures"] = Value::Null; // it says the same
        }
        match setting.split_once('.') {
            Some((outer, inner)) => json[outer][inner] = value,
            None => json[setting] = value,
        }
        fs::write(file, json.to_string()).unwrap();
    })
}

#[test]
fn settings_that_are_not_computed_are_refused_by_name() {
    for (name, setting, value) in [
        ("llama-0", "model_type", json!("gemma2")),
        ("llama-0", "model_type", json!(7)),
        ("llama-0", "architectures", json!(["MistralForCausalLM"])),
        ("llama-0", "sliding_window", json!(4)),
        ("llama-0", "hidden_act", json!("gelu")),
        ("llama-0", "attention_bias", json!("yes")),
        ("llama-0", "mlp_bias", json!(1)),
        ("llama-0", "num_key_value_heads", json!(100)),
        ("llama-0", "num_attention_heads", json!(0)),
        ("llama-0", "num_hidden_layers", json!(1e300)),
        ("llama-0", "num_hidden_layers", json!(1u64 << 40)),
        ("llama-0", "hidden_size", json!(-1)),
        ("llama-0", "head_dim", json!(5)),
        ("llama-0", "vocab_size", Value::Null),
        ("llama-0", "rms_norm_eps", json!(-1.0)),
        ("llama-0", "rope_parameters.rope_type", json!("mrope")),
        ("llama-0", "rope_parameters.rope_theta", json!(0.5)),
        ("llama-0", "logit_scale", json!(0.1)),
        ("llama-0", "final_logit_softcapping", json!(30.0)),
        ("llama-0", "num_local_experts", json!(8)),
        ("llama-0", "quantization_config", json!({"bits": 4})),
        ("llama-0", "max_position_embeddings", json!(1u64 << 40)),
        ("llama-0", "eos_token_id", json!("end")),
        ("mistral-0", "sliding_window", json!("wide")),
        ("mistral-0", "sliding_window", json!(0)),
        ("mistral-0", "attention_bias", json!(true)),
        ("mistral-0", "hidden_act", json!("relu")),
        ("qwen2-0", "use_sliding_window", json!("no")),
        ("qwen2-0", "layer_types", vec!["full_attention"; 99].into()),
        ("qwen2-0", "layer_types", vec!["chunked_attention"; 4].into()),
        ("qwen2-0", "layer_types", json!([])),
        ("qwen2-0", "max_window_layers", json!("two")),
        ("qwen2-0", "mlp_bias", json!(true)),
        ("qwen3-0", "attention_bias", json!(3)),
        ("qwen3-0", "num_experts", json!(16)),
        ("smollm3-0", "no_rope_layers", json!([1])),
        ("smollm3-0", "no_rope_layers", json!([1, 2, 1, 0])),
        ("smollm3-0", "no_rope_layer_interval", json!(0)),
        ("phi3-0", "partial_rotary_factor", json!(0.3)),
        ("phi3-0", "rope_parameters.partial_rotary_factor", json!(7.0)),
        ("phi3-0", "rope_parameters.rope_type", json!("longrope")),
        ("phi3-0", "attention_bias", json!(true)),
    ] {
        let error = set(name, setting, value.clone());
        let setting = setting.rsplit('.').next().unwrap();
        // Some are refused only where they meet the weights.
        let told = error.contains(setting)
            || error.contains("has shape")
            || error.contains("short_factor");
        assert!(error.starts_with("DIR/") && told, "{name} {setting} {value}: {error}");
    }
}

#[test]
fn files_that_are_broken_are_named() {
    let weights = |folder: &Path| {
        let found = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> = found.filter(|file| name(file).starts_with("model")).collect();
        all.retain(|file| file.extension().is_some_and(|end| end == "safetensors"));
        all.sort();
        all.swap_remove(0)
    };
    let cut =
        |file: PathBuf, len: usize| fs::write(&file, &fs::read(&file).unwrap()[..len]).unwrap();
    let changes: [(&str, &dyn Fn(&Path)); 16] = [
        ("config.json", &|f| fs::remove_file(f.join("config.json")).unwrap()),
        ("config.json", &|f| fs::write(f.join("config.json"), "").unwrap()),
        ("config.json", &|f| fs::write(f.join("config.json"), "[1, 2]").unwrap()),
        ("config.json", &|f| fs::write(f.join("config.json"), [0xFF, 0xFE]).unwrap()),
        ("config.json", &|f| fs::write(f.join("config.json"), "{\"hidden_size\": 8").unwrap()),
        ("config.json", &|f| {
            fs::remove_file(f.join("config.json")).unwrap();
            fs::create_dir(f.join("config.json")).unwrap();
        }),
        ("model", &|f| fs::remove_file(weights(f)).unwrap()),
        ("model", &|f| fs::write(weights(f), "").unwrap()),
        ("model", &|f| cut(weights(f), 4)),
        ("model", &|f| cut(weights(f), 100)),
        ("model", &|f| {
            let file = weights(f);
            let len = fs::metadata(&file).unwrap().len() as usize;
            cut(file, len - 1);
        }),
        ("model", &|f| {
            let mut bytes = fs::read(weights(f)).unwrap();
            bytes[..8].fill(0xFF);
            fs::write(weights(f), bytes).unwrap();
        }),
        ("model", &|f| {
            let mut bytes = fs::read(weights(f)).unwrap();
            let last = bytes.len();
            bytes[last - 64..].fill(0xFF); // no number in any float type
            fs::write(weights(f), bytes).unwrap();
        }),
        ("generation_config.json", &|f| fs::write(f.join("generation_config.json"), "[").unwrap()),
        ("generation_config.json", &|f| {
            fs::write(f.join("generation_config.json"), r#"{"eos_token_id": "x"}"#).unwrap();
        }),
        ("adapter_config.json", &|f| fs::write(f.join("adapter_config.json"), "{}").unwrap()),
    ];
    for folder in folders() {
        for (nth, (file, change)) in changes.iter().enumerate() {
            if !folder.starts_with(root()) {
                continue;
            }
            let error = changed(name(&folder), change);
            assert!(
                error.starts_with("DIR/") && error.contains(file),
                "{} {nth}: {error}",
                name(&folder)
            );
        }
    }
    let nothing = LlamaModel::open("/no/such/folder").unwrap_err().to_string();
    assert!(nothing.contains("config.json"), "{nothing}");
}

/// Weights that a file has and the settings don't, or the other way round.
#[test]
fn tensors_that_do_not_fit_are_named() {
    for (name, setting, value, tensor) in [
        ("qwen2-0", "model_type", json!("llama"), "layer_types"),
        ("qwen3-0", "model_type", json!("qwen2"), "bias"),
        ("llama-0", "intermediate_size", json!(4000), "shape"),
        ("llama-0", "num_hidden_layers", json!(7), "model.layers."),
        ("mistral-0", "head_dim", json!(64), "shape"),
    ] {
        let error = set(name, setting, value.clone());
        assert!(
            error.starts_with("DIR") && error.contains(tensor),
            "{name} {setting} {value}: {error}"
        );
    }
}

#[test]
fn calls_that_are_refused_change_nothing() {
    let folder = |name: &str| root().join("tests/goldens/families").join(name);
    let model = LlamaModel::open(folder("llama-1")).unwrap();
    let other = LlamaModel::open(folder("smollm3-1")).unwrap();
    assert_eq!((model.positions(), other.config().layers.len()), (128, 4));
    let mut caches = vec![model.cache(CacheKind::F32)];
    model.decode(&[&[1, 2, 3]], &mut caches).unwrap();
    let v = model.config().llama.vocab_size;
    let long = vec![0; 128];
    let refused: [(&[&[usize]], &str); 5] = [
        (&[], "caches"),
        (&[&[]], "new tokens"),
        (&[&[1, v]], "must be below"),
        (&[&[1], &[2]], "caches"),
        (&[&long], "positions"),
    ];
    for (new, words) in refused {
        let error = model.decode(new, &mut caches).unwrap_err().to_string();
        assert!(error.contains(words), "{new:?}: {error}");
        assert_eq!(caches[0].ids(), [1, 2, 3]);
    }
    // Also one of another model of the same sizes.
    let same = LlamaModel::open(folder("llama-1")).unwrap();
    for other in [other, same] {
        let error = model.decode(&[&[1]], &mut [other.cache(CacheKind::F32)]).unwrap_err();
        assert!(error.to_string().contains("this model's own"), "{error}");
    }
    let error = LlamaModel::open_with(folder("llama-0"), WeightKind::Int4 { group_size: 5 });
    assert!(error.unwrap_err().to_string().contains("group_size must be 32, 64 or 128"));
    // Going back, and another way on.
    caches[0].truncate(1).unwrap();
    let again = model.decode(&[&[2, 3]], &mut caches).unwrap();
    let mut again_whole = vec![model.cache(CacheKind::F32)];
    let want = model.decode(&[&[1, 2, 3]], &mut again_whole).unwrap();
    assert!(again.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-5));
    assert!(caches[0].truncate(4).is_err());
}

/// Heads whose elements can't turn in pairs, whatever the rule of the rotation.
#[test]
fn sizes_of_heads_are_refused_by_name() {
    for folder in folders().iter().filter(|folder| folder.starts_with(root())) {
        for head_dim in [1, 2, 5, 65_538] {
            let error = set(name(folder), "head_dim", json!(head_dim));
            let told = error.contains("`head_dim`") || error.contains("short_factor");
            assert!(error.starts_with("DIR/config.json") && told, "{} {error}", name(folder));
        }
    }
}

/// A weight that is no number, in whatever way weights are kept.
#[test]
fn weights_that_are_no_numbers_are_named() {
    for folder in folders().iter().filter(|folder| folder.starts_with(root())) {
        let copy = tempfile::tempdir().unwrap();
        let mut changed = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let mut bytes = fs::read(entry.path()).unwrap();
            if name(&entry.path()).starts_with("model")
                && name(&entry.path()).ends_with(".safetensors")
            {
                let begin = bytes.as_ptr() as usize;
                let file = SafeTensors::deserialize(&bytes).unwrap();
                let weight =
                    file.iter().find(|(name, _)| name.ends_with("layers.0.mlp.down_proj.weight"));
                let place = weight.map(|(_, tensor)| {
                    let size = tensor.dtype().bitsize() / 8;
                    (tensor.data().as_ptr() as usize - begin + 5 * size, size)
                });
                if let Some((at, size)) = place {
                    // The highest bits of any of these types.
                    bytes[at..at + size].fill(0xFF);
                    changed += 1;
                }
            }
            fs::write(copy.path().join(entry.file_name()), bytes).unwrap();
        }
        assert_eq!(changed, 1);
        for kind in super::kinds::KINDS {
            let error = LlamaModel::open_with(copy.path(), kind).unwrap_err().to_string();
            let told = error.contains("layers.0.mlp.down_proj.weight\" has NaN at place 5");
            assert!(told, "{} {kind}: {error}", name(folder));
        }
    }
}
