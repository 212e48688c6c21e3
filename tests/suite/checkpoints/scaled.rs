//! RoPE that is scaled: each rule in each spelling, beside transformers, and written back.

use super::{Tensors, tensors, write};
use crate::support::*;
use quadrivium::checkpoint::*;
use quadrivium::model::*;
use quadrivium::tensor::*;
use safetensors::tensor::SafeTensors;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

type Model = LlamaTransformer<31, 32, 2, 1, 16, 16, 1, f32, Dev>;

fn goldens() -> PathBuf {
    root().join("tests/goldens/llama/scaled")
}

fn cases() -> Value {
    serde_json::from_str(&fs::read_to_string(goldens().join("cases.json")).unwrap()).unwrap()
}

/// The settings that all cases share, with others beside them.
fn with(settings: &Value) -> Value {
    let mut config = cases()["shared"].clone();
    let object = config.as_object_mut().unwrap();
    object.extend(settings.as_object().unwrap().clone());
    config
}

/// A checkpoint of these settings, with the weights of the goldens.
fn checkpoint(folder: &Path, settings: &Value) -> quadrivium::error::Result<Checkpoint> {
    fs::copy(goldens().join("model.safetensors"), folder.join("model.safetensors")).unwrap();
    fs::write(folder.join("config.json"), with(settings).to_string()).unwrap();
    Checkpoint::open(folder)
}

fn logits(model: &Model, text: &[usize]) -> Vec<f32> {
    model.try_forward(ids(text, (1, text.len()))).unwrap().as_vec()
}

#[test]
fn each_rule_in_each_spelling_is_that_of_transformers() {
    let bytes = fs::read(goldens().join("expected.safetensors")).unwrap();
    let expected = SafeTensors::deserialize(&bytes).unwrap();
    let text = expected.tensor("ids").unwrap().data().to_vec();
    let text: Vec<usize> =
        text.chunks(8).map(|id| u64::from_le_bytes(id.try_into().unwrap()) as usize).collect();
    let (folder, again) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut rules = std::collections::HashSet::new();
    for case in cases()["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let opened = checkpoint(folder.path(), &case["settings"]).unwrap();
        let model = Model::from_checkpoint(&dev(), &opened).unwrap();
        let length = case["length"].as_u64().unwrap() as usize;
        let found = logits(&model, &text[..length]);
        let want = expected.tensor(name).unwrap().data().to_vec();
        let want: Vec<f32> =
            want.chunks(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect();
        let largest = want.iter().fold(0f32, |largest, x| largest.max(x.abs()));
        assert_eq!(want.len(), 8 * 31);
        for (i, (got, want)) in found[found.len() - 8 * 31..].iter().zip(&want).enumerate() {
            // Some hundred roundings; PyTorch's frequencies and angles are in f32.
            assert!((got - want).abs() <= 1e-4 * largest, "{name} {i}: {got}, not {want}");
        }

        // Written back, it is the same model.
        save_checkpoint(&model, opened.config(), again.path()).unwrap();
        let reopened = Checkpoint::open(again.path()).unwrap();
        assert_eq!(reopened.config(), opened.config(), "{name}");
        let reread = Model::from_checkpoint(&dev(), &reopened).unwrap();
        assert_same_bits(&logits(&reread, &text[..length]), &found);
        rules.insert(std::mem::discriminant(&opened.config().rope_scaling));
    }
    assert_eq!(rules.len(), 6, "a rule is missing");
}

/// Spellings that no file of transformers has for a Llama, each beside the plain one.
#[test]
fn other_spellings_say_the_same() {
    let linear = json!({"rope_type": "linear", "factor": 2, "rope_theta": 100.0});
    let long = json!({"short_factor": (vec![1.0; 8]), "long_factor": (vec![2.0; 8]), "original_max_position_embeddings": 16});
    let of = |name: &str| {
        let mut rule = long.clone();
        rule["type"] = name.into();
        rule
    };
    let same: [(Value, Value); 9] = [
        // For each type of layers, as models with several types have it.
        (
            json!({"rope_parameters": {"full_attention": linear}}),
            json!({"rope_parameters": linear}),
        ),
        (
            json!({"rope_parameters": {"full_attention": linear, "chunked_attention": linear}}),
            json!({"rope_parameters": linear}),
        ),
        (
            json!({"rope_theta": 100, "rope_scaling": {"type": "linear", "rope_type": "linear", "factor": 2.0}}),
            json!({"rope_parameters": linear}),
        ),
        // The same twice.
        (
            json!({"rope_theta": 100, "rope_scaling": linear, "rope_parameters": linear}),
            json!({"rope_parameters": linear}),
        ),
        (json!({"rope_scaling": of("su")}), json!({"rope_scaling": of("longrope")})),
        // The trained length counts for other rules.
        (
            json!({"original_max_position_embeddings": 16, "rope_parameters": linear}),
            json!({"rope_parameters": linear}),
        ),
        // Nothing is said.
        (json!({"rope_scaling": {}, "rope_parameters": null}), json!({})),
        (json!({"rope_scaling": {"type": "default"}}), json!({})),
        (
            json!({"rope_theta": 100, "rope_scaling": {"rope_theta": 100}}),
            json!({"rope_theta": 100}),
        ),
    ];
    let parse = |settings: &Value| CheckpointConfig::parse(&with(settings).to_string()).unwrap();
    for (one, other) in same {
        assert_eq!(parse(&one), parse(&other), "{one}");
    }
    let nested = json!({"rope_parameters": {"full_attention": {"rope_theta": 500_000.0}}});
    assert_eq!(parse(&nested).rope_theta, 500_000.0);
    // The length is the trained one times the factor, where the file does not count it in.
    assert_eq!(parse(&json!({"rope_parameters": linear})).positions(), 4096);
    // Where the lists change, keys do not fit any more.
    let long = parse(&json!({"rope_scaling": of("longrope"), "max_position_embeddings": 64}));
    assert_eq!((long.positions(), long.cached_positions()), (64, 16));
}

/// What says two things, or nothing that is computed, and what the message has to name.
#[test]
fn what_is_not_computed_as_written_is_refused() {
    let yarn = |more: Value| {
        let mut rule =
            json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"rope_theta": 100.0, "rope_scaling": rule})
    };
    let cases: Vec<(Value, &str)> = vec![
        (
            json!({"rope_scaling": {"factor": 8.0}}),
            "`rope_scaling.factor` must be absent where there is no `rope_type`",
        ),
        (
            json!({"rope_parameters": {"rope_theta": 5e5, "factor": 8.0}}),
            "`rope_parameters.factor`",
        ),
        (json!({"rope_scaling": {"rope_type": "default", "factor": 8.0}}), "`rope_scaling.factor`"),
        (
            json!({"rope_parameters": {"full_attention": {"factor": 2.0}}}),
            "`rope_parameters.full_attention.factor`",
        ),
        (
            json!({"rope_parameters": {"full_attention": {"rope_theta": 5e5}, "sliding_attention": {"rope_theta": 1e4}}}),
            "`rope_parameters.full_attention.rope_theta` and `rope_parameters.sliding_attention.rope_theta` contradict",
        ),
        (
            json!({"rope_parameters": {"full_attention": {"rope_theta": 5e5}, "factor": 2.0}}),
            "`rope_parameters.f",
        ),
        (
            json!({"rope_theta": 1e4, "rope_parameters": {"rope_theta": 5e5}}),
            "`rope_theta` and `rope_parameters.rope_theta` contradict",
        ),
        (
            json!({"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": {"rope_type": "default"}}),
            "`rope_scaling` and `rope_parameters` contradict",
        ),
        (
            json!({"rope_scaling": {"type": "linear", "rope_type": "dynamic", "factor": 2.0}}),
            "contradict",
        ),
        (json!({"rope_scaling": {"type": "linear"}}), "`rope_scaling.factor` is missing"),
        (
            json!({"rope_scaling": {"type": "linear", "factor": 0.5}}),
            "factor must be finite and at least 1",
        ),
        (
            json!({"rope_scaling": {"type": "linear", "factor": "2"}}),
            "`rope_scaling.factor` must be a number",
        ),
        (
            json!({"rope_scaling": {"type": "linear", "factor": 2.0, "low_freq_factor": 1.0}}),
            "`rope_scaling.low_freq_factor`",
        ),
        (
            json!({"rope_scaling": {"type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 16}}),
            "`rope_scaling.original_max_position_embeddings`",
        ),
        (
            json!({"rope_scaling": {"type": "llama3", "factor": 8.0}}),
            "`rope_scaling.low_freq_factor` is missing",
        ),
        (
            json!({"rope_scaling": {"type": "longrope", "long_factor": (vec![1.0; 8])}}),
            "`rope_scaling.short_factor` is missing",
        ),
        (
            json!({"rope_scaling": {"type": "longrope", "short_factor": (vec![1.0; 7]), "long_factor": (vec![1.0; 8])}}),
            "short_factor must have shape [8]",
        ),
        (
            json!({"rope_scaling": {"type": "longrope", "short_factor": 2, "long_factor": (vec![1.0; 8])}}),
            "must be a list of numbers",
        ),
        (
            json!({"original_max_position_embeddings": 8, "rope_scaling": {"type": "llama3", "factor": 8.0,
                "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}}),
            "`original_max_position_embeddings` contradict",
        ),
        (
            yarn(json!({"original_max_position_embeddings": 1})),
            "original_max_position_embeddings must be so long that",
        ),
        (json!({"rope_scaling": {"type": "ntk", "factor": 2.0}}), "`rope_scaling.type` is \"ntk\""),
        (json!({"rope_scaling": {"rope_type": "proportional"}}), "is \"proportional\""),
        (json!({"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}), "is \"mrope\""),
        (
            json!({"rope_scaling": {"rope_type": 7}}),
            "`rope_scaling.rope_type` must be the name of a rule, got 7",
        ),
        (json!({"rope_scaling": "linear"}), "`rope_scaling` must be an object"),
        (
            json!({"rope_parameters": {"sliding_attention": {"rope_type": "linear", "factor": 2.0}}}),
            "`rope_parameters` must be with `full_attention`",
        ),
        (
            json!({"rope_parameters": {"foo": {"rope_type": "linear", "factor": 2.0}}}),
            "`rope_parameters.foo` must be",
        ),
        (
            json!({"rope_scaling": {"type": "yarn", "original_max_position_embeddings": 1 << 20}}),
            "`rope_scaling.original_max_position_embeddings` must be at most `max_position_embeddings`",
        ),
        (
            json!({"rope_scaling": {"type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5}}),
            "`rope_scaling.partial_rotary_factor` is 0.5",
        ),
        (yarn(json!({"beta_slow": -1.0})), "beta_slow must be above 0"),
        (yarn(json!({"attention_factor": 0.0})), "attention_factor must be finite and above 0"),
        (yarn(json!({"truncate": 1})), "`rope_scaling.truncate` must be true or false"),
    ];
    for (settings, words) in cases {
        let error = CheckpointConfig::parse(&with(&settings).to_string()).unwrap_err().to_string();
        assert!(error.contains(words), "{settings}: {error}");
    }
    let fine = yarn(json!({"finetuned": true, "mscale": null, "partial_rotary_factor": 1.0}));
    CheckpointConfig::parse(&with(&fine).to_string()).unwrap();
}

/// Where frequencies follow the length, keys that were kept would not fit, and a cache is refused past the trained length.
#[test]
fn a_cache_ends_where_frequencies_change() {
    let folder = tempfile::tempdir().unwrap();
    let text: Vec<usize> = (0..40).map(|n| (n * 7 + 3) % 31).collect();
    for case in cases()["cases"].as_array().unwrap() {
        let opened = checkpoint(folder.path(), &case["settings"]).unwrap();
        let model = Model::from_checkpoint(&dev(), &opened).unwrap();
        let whole = logits(&model, &text);
        let mut cache = LlamaCache::new(40);
        let cut = opened.config().cached_positions().min(40);
        // Those of the short call: a whole text of 40 may have other frequencies.
        let short = logits(&model, &text[..cut]);
        for at in 0..cut {
            let next = model.try_decode(ids(&text[at..at + 1], (1, 1)), &mut cache).unwrap();
            for (got, want) in next.as_vec().iter().zip(&short[at * 31..]) {
                assert!((got - want).abs() < 1e-4, "{} at {at}: {got}, not {want}", case["name"]);
            }
        }
        if cut < 40 {
            let next = model.try_decode(ids(&text[cut..cut + 1], (1, 1)), &mut cache).unwrap_err();
            assert!(next.to_string().contains("no longer fit"), "{next}");
            assert!(whole.iter().zip(&short).any(|(one, other)| (one - other).abs() > 1e-3));
        }
    }
}

/// The settings of published checkpoints, as they are in their files. None of them is refused, and each is that of its
/// type.
#[test]
fn published_settings_are_read() {
    let llama = json!({
        "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 128000,
        "eos_token_id": 128001, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
        "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
        "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1,
        "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
        "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0",
        "use_cache": true, "vocab_size": 128256
    });
    let smol = json!({
        "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 0,
        "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 576, "initializer_range": 0.041666666666666664,
        "intermediate_size": 1536, "is_llama_config": true, "max_position_embeddings": 2048, "mlp_bias": false,
        "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads": 3,
        "pad_token_id": null, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false,
        "rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
        "transformers_version": "4.40.1", "use_cache": true, "vocab_size": 49152
    });
    let tiny = json!({
        "architectures": ["LlamaForCausalLM"], "attention_bias": false, "bos_token_id": 1, "eos_token_id": 2,
        "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 5632,
        "max_position_embeddings": 2048, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 22,
        "num_key_value_heads": 4, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
        "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
        "transformers_version": "4.35.0", "use_cache": true, "vocab_size": 32000
    });
    let folder = tempfile::tempdir().unwrap();
    let open = |config: &Value| {
        fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        Checkpoint::open(folder.path()).unwrap()
    };
    // Only the weights are missing, which are gigabytes.
    let only_weights = |error: quadrivium::Error| {
        assert!(error.to_string().contains("model.safetensors: there is no such file"), "{error}");
    };
    let opened = open(&llama);
    only_weights(Llama32Of1B::<f32, Dev>::from_checkpoint(&dev(), &opened).map(drop).unwrap_err());
    let Ok(LlamaRopeConfig::Scaled(rope)) = opened.config().rope() else { panic!("not scaled") };
    // Plane 0 turns 1,303 times over 8,192 positions and stays; plane 31 not once, and turns 32 times slower.
    let slowest = 500_000f64.powf(-62.0 / 64.0) / 32.0;
    assert_eq!(rope.frequencies.frequencies()[0], 1.0);
    assert_within(&rope.frequencies.frequencies()[31..], &[slowest], |_| 1e-12 * slowest);
    assert_eq!(rope.max_position, 131_072);
    only_weights(
        SmolLm135M::<f32, Dev>::from_checkpoint(&dev(), &open(&smol)).map(drop).unwrap_err(),
    );
    only_weights(
        TinyLlama1B::<f32, Dev>::from_checkpoint(&dev(), &open(&tiny)).map(drop).unwrap_err(),
    );
}

/// Llama 3.2's settings in a model that fits a test: opened as it is published, saved, and opened again.
#[test]
fn a_small_llama_3_2_goes_there_and_back() {
    type Small = LlamaTransformer<50, 128, 2, 1, 64, 32, 1, f32, Dev, Tied>;
    let folder = tempfile::tempdir().unwrap();
    let drawn = Small::tied(&dev(), LlamaConfig { init_std: 0.3, ..Default::default() }).unwrap();
    let mut weights = Tensors::new();
    let file = folder.path().join("model.safetensors");
    quadrivium::weights::save_weights(&drawn, &file).unwrap();
    weights.extend(tensors(&file));
    write(&file, &weights);
    let config = json!({
        "model_type": "llama", "vocab_size": 50, "hidden_size": 128, "intermediate_size": 32, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "rms_norm_eps": 1e-05,
        "max_position_embeddings": 131072, "rope_theta": 500000.0, "tie_word_embeddings": true,
        "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192, "rope_type": "llama3"}
    });
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let opened = Checkpoint::open(folder.path()).unwrap();
    let model = Small::from_checkpoint(&dev(), &opened).unwrap();
    save_checkpoint(&model, opened.config(), folder.path()).unwrap();
    let json: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("config.json")).unwrap())
            .unwrap();
    assert_eq!(json["rope_scaling"], config["rope_scaling"]);
    assert_eq!(json["rope_theta"], config["rope_theta"]);
    let text: Vec<usize> = (0..30).map(|n| n * 7 % 50).collect();
    let of = |model: &Small| model.try_forward(ids(&text, (1, 30))).unwrap().as_vec();
    let again = Small::from_checkpoint(&dev(), &Checkpoint::open(folder.path()).unwrap()).unwrap();
    assert_same_bits(&of(&again), &of(&model));
    assert!(of(&model).iter().zip(of(&drawn)).any(|(one, other)| (one - other).abs() > 1e-3));
}
