//! Weights and keys in fewer bytes, beside `f32`.

use super::*;
use quadrivium::checkpoint::Checkpoint;
use quadrivium::model::{LlamaTransformer, SamplingConfig, Tied};
use quadrivium::tensor::*;
use std::ops::ControlFlow;

pub(super) const KINDS: [WeightKind; 7] = [
    WeightKind::AsStored,
    WeightKind::F32,
    WeightKind::Bf16,
    WeightKind::F16,
    WeightKind::Int8,
    WeightKind::Int4 { group_size: 32 },
    WeightKind::Int4 { group_size: 128 },
];

fn golden(name: &str) -> PathBuf {
    root().join("tests/goldens").join(name)
}

/// What one number that is kept is off by at most, beside the largest that shares a factor with it.
fn unit(kind: WeightKind) -> f64 {
    match kind {
        WeightKind::Bf16 => 2f64.powi(-8),
        WeightKind::F16 => 2f64.powi(-11),
        // The factor is rounded up to a bf16.
        WeightKind::Int8 => 0.5 / 127.0 * (1.0 + 2f64.powi(-7)),
        WeightKind::Int4 { .. } => 0.5 / 7.0 * (1.0 + 2f64.powi(-7)),
        _ => 0.0,
    }
}

#[test]
fn weights_are_off_by_what_their_kind_says() {
    for folder in folders() {
        let largest = largest_weight(&folder);
        for kind in KINDS {
            let error = LlamaModel::open_with(&folder, kind).unwrap().weights().error;
            assert!(
                error.largest <= unit(kind) * largest + 1e-7,
                "{} {kind}: {error:?}",
                name(&folder)
            );
            assert_eq!(error.largest == 0.0, error.relative() == 0.0);
            let must_differ = matches!(kind, WeightKind::Int8 | WeightKind::Int4 { .. });
            assert!(!must_differ || error.relative() > 1e-3, "{} {kind}: {error:?}", name(&folder));
        }
    }
}

fn largest_weight(folder: &Path) -> f64 {
    let mut largest = 0f64;
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let is_weights = file.extension().is_some_and(|end| end == "safetensors");
        if !is_weights || file.ends_with("expected.safetensors") {
            continue;
        }
        let bytes = fs::read(&file).unwrap();
        for (_, tensor) in SafeTensors::deserialize(&bytes).unwrap().iter() {
            let of = |x: &[u8]| match tensor.dtype() {
                safetensors::Dtype::F32 => f32::from_le_bytes(x.try_into().unwrap()).into(),
                safetensors::Dtype::F16 => half::f16::from_le_bytes(x.try_into().unwrap()).into(),
                _ => half::bf16::from_le_bytes(x.try_into().unwrap()).into(),
            };
            let size = tensor.dtype().bitsize() / 8;
            largest =
                tensor.data().chunks(size).map(of).fold(largest, |a: f64, x: f64| a.max(x.abs()));
        }
    }
    largest
}

/// The fewer bits, the farther; and `f32` is what the file has.
#[test]
fn logits_of_each_kind() {
    for folder in folders() {
        let text = ids(&expected(&folder)["ids"]);
        let of = |kind| LlamaModel::open_with(&folder, kind).unwrap().logits(&text).unwrap();
        let stored = of(WeightKind::AsStored);
        assert_eq!(stored, of(WeightKind::F32));
        let size =
            (stored.iter().map(|x| f64::from(x * x)).sum::<f64>() / stored.len() as f64).sqrt();
        let off = |found: &[f32]| {
            let squares = found.iter().zip(&stored).map(|(a, b)| f64::from(a - b).powi(2));
            (squares.sum::<f64>() / stored.len() as f64).sqrt() / size
        };
        for (kind, most) in KINDS[2..].iter().zip([0.05, 0.01, 0.15, 1.2, 1.2]) {
            let off = off(&of(*kind));
            assert!(off < most, "{} {kind}: {off}", name(&folder));
        }
    }
}

/// The typed model, which computes with dfdx, is the reference.
#[test]
fn a_llama_computes_what_the_typed_model_computes() {
    type Typed<const NKV: usize, O> = LlamaTransformer<61, 24, 6, NKV, 4, 40, 2, f32, Dev, O>;
    fn compare<const NKV: usize>(name: &str) {
        let checkpoint = Checkpoint::open(golden("llama").join(name)).unwrap();
        let ids: Vec<usize> = (0..40).map(|t| (t * 7 + t * t) % 61).collect();
        let shaped = crate::support::ids(&ids, (1, 40));
        let want = match checkpoint.config().tie_word_embeddings {
            true => Typed::<NKV, Tied>::from_checkpoint(&dev(), &checkpoint).unwrap().try_forward(shaped),
            false => Typed::<NKV, quadrivium::linear::Linear<Const<24>, Const<61>, f32, Dev>>::from_checkpoint(&dev(), &checkpoint)
                .unwrap()
                .try_forward(shaped),
        };
        let want: Vec<f64> = want.unwrap().as_vec().iter().map(|x| f64::from(*x)).collect();
        let largest = want.iter().fold(0.0f64, |a, x| a.max(x.abs()));
        let model = LlamaModel::open(golden("llama").join(name)).unwrap();
        let off = farthest(&model.logits(&ids).unwrap(), &want) / largest;
        assert!(off < 2e-6, "{name}: {off}");
    }
    compare::<6>("plain");
    compare::<2>("grouped");
    compare::<1>("one-key");
    compare::<2>("tied");
    compare::<2>("sharded");
}

/// A text is the same in one call, in pieces of any size, and token by token, whatever is beside it.
#[test]
fn a_text_in_pieces_is_the_text() {
    for folder in folders() {
        let model = LlamaModel::open(&folder).unwrap();
        if model.config().llama.rope_scaling != quadrivium::checkpoint::RopeScaling::None {
            continue; // frequencies may follow the length of a call
        }
        let v = model.config().llama.vocab_size;
        let text: Vec<usize> = (0..100).map(|t| (t * t + 3 * t) % v).collect();
        let whole = model.logits(&text).unwrap();
        let largest = whole.iter().fold(0f32, |a, x| a.max(x.abs()));
        for piece in [1, 3, 17, 64] {
            let mut caches = vec![model.cache(CacheKind::F32), model.cache(CacheKind::F32)];
            let mut end = 0;
            for new in text.chunks(piece) {
                end += new.len();
                if caches[0].len() > 40 {
                    caches[0] = model.cache(CacheKind::F32);
                }
                let logits = model.decode(&[&text[..1 + end % 3], new], &mut caches).unwrap();
                let want = &whole[(end - 1) * v..end * v];
                for (a, b) in logits[v..].iter().zip(want) {
                    assert!((a - b).abs() < 1e-5 * largest, "{} {piece} {end}", name(&folder));
                }
            }
            assert_eq!(caches[1].ids(), text);
        }
    }
}

#[test]
fn keys_in_fewer_bytes() {
    for folder in folders() {
        let model = LlamaModel::open(&folder).unwrap();
        let expected = expected(&folder);
        let prompt = ids(&expected["prompt_1"]);
        let of = |kind| {
            let mut caches = [model.cache(kind)];
            let first = model.decode(&[&prompt], &mut caches).unwrap();
            let after = model.decode(&[&[1, 2, 3]], &mut caches).unwrap();
            ([first, after].concat(), caches[0].bytes())
        };
        let (want, bytes) = of(CacheKind::F32);
        let largest = want.iter().fold(0f32, |a, x| a.max(x.abs()));
        for (kind, most, share) in [(CacheKind::F16, 0.01, 0.5), (CacheKind::Int8, 0.2, 0.51)] {
            let (found, fewer) = of(kind);
            let off = found.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
            assert!(
                off / largest < most && off > 0.0,
                "{} {kind:?}: {}",
                name(&folder),
                off / largest
            );
            assert!(
                fewer as f64 <= share * bytes as f64,
                "{} {kind:?}: {fewer} of {bytes}",
                name(&folder)
            );
        }
    }
}

/// A text that was cut goes on as if it had never been longer, also where frequencies follow its length.
#[test]
fn a_text_that_was_cut_goes_on() {
    let mut cut = 0;
    for folder in folders() {
        let model = LlamaModel::open(&folder).unwrap();
        let v = model.config().llama.vocab_size;
        let text: Vec<usize> = (0..44).map(|t| (t * t + 5 * t) % v).collect();
        let mut caches = [model.cache(CacheKind::F32)];
        model.decode(&[&text], &mut caches).unwrap();
        caches[0].truncate(10).unwrap();
        let found = model.decode(&[&[3]], &mut caches).unwrap();
        let mut fresh = [model.cache(CacheKind::F32)];
        let want = model.decode(&[&[&text[..10], &[3]].concat()], &mut fresh).unwrap();
        let largest = want.iter().fold(0f32, |a, x| a.max(x.abs()));
        let off = found.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
        assert!(off < 1e-5 * largest, "{}: {off}", name(&folder));
        assert_eq!(caches[0].ids().len(), 11);
        cut += 1;
    }
    assert!(cut > 0);
}

/// A window of more than a page, on a text of several: in one call, and token by token.
#[test]
fn a_window_of_several_pages() {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(golden("families/mistral-0")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let file = folder.path().join("config.json");
    let mut json: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    json["max_position_embeddings"] = 1024.into();
    json["rope_parameters"] = serde_json::json!({"rope_type": "default", "rope_theta": 10_000.0});
    for window in [1, 64, 65, 150, 4096] {
        json["sliding_window"] = window.into();
        fs::write(&file, json.to_string()).unwrap();
        let model = LlamaModel::open(folder.path()).unwrap();
        let v = model.config().llama.vocab_size;
        let text: Vec<usize> = (0..400).map(|t| (t * t + 3 * t) % v).collect();
        let whole = model.logits(&text).unwrap();
        let largest = whole.iter().fold(0f32, |a, x| a.max(x.abs()));
        let mut caches = [model.cache(CacheKind::F32)];
        for (t, id) in text.iter().enumerate() {
            let logits = model.decode(&[&[*id]], &mut caches).unwrap();
            let want = &whole[t * v..][..v];
            let off = logits.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
            assert!(off < 1e-5 * largest, "{window} {t}: {off}");
        }
        // What is seen is what the window says.
        for weights in model.attention(&text[..200]).unwrap() {
            let row = &weights[199 * 200..][..200];
            assert_eq!(row.iter().filter(|weight| **weight > 0.0).count(), 200.min(window));
        }
    }
}

/// Pages that no layer looks back on are given back.
#[test]
fn a_window_bounds_the_cache() {
    let mut bounded = 0;
    for folder in folders() {
        let model = LlamaModel::open(&folder).unwrap();
        let Some(window) = model.config().layers[0].window else { continue };
        if model.config().layers.iter().any(|layer| layer.window != Some(window)) {
            continue;
        }
        let mut caches = [model.cache(CacheKind::F32)];
        let mut most = 0;
        for t in 0..120 {
            model.decode(&[&[t % 7]], &mut caches).unwrap();
            most = most.max(caches[0].bytes());
        }
        let page =
            2 * 64 * 4 * model.config().llama.num_key_value_heads * model.config().llama.head_dim;
        assert!(most <= 2 * page * model.config().layers.len(), "{}", name(&folder));
        let error = caches[0].truncate(10).unwrap_err().to_string();
        assert!(error.contains("begin with a new cache"), "{error}");
        bounded += 1;
    }
    assert!(bounded > 0);
}

#[test]
fn texts_of_a_batch_end_at_different_times() {
    let folder = golden("families/llama-0");
    let model = LlamaModel::open(&folder).unwrap();
    let sampling =
        SamplingConfig { temperature: 0.9, repetition_penalty: 1.1, seed: 7, ..Default::default() };
    let v = model.config().llama.vocab_size;
    // Some token that comes early in one text and not in the other.
    let free = GenerateConfig {
        sampling,
        max_new_tokens: 20,
        eos_token_id: Some(vec![]),
        ..Default::default()
    };
    let prompts: [&[usize]; 2] = [&[1, 2, 3], &[4]];
    let go_on = |_: usize, _: usize| ControlFlow::Continue(());
    let all = model.generate(&prompts, &free, go_on).unwrap();
    assert!(all.iter().all(|text| text.len() == 20));
    let end = all[0][4];
    let ends = GenerateConfig { eos_token_id: Some(vec![end]), ..free.clone() };
    let cut = model.generate(&prompts, &ends, go_on).unwrap();
    for (cut, all) in cut.iter().zip(&all) {
        let want = all.iter().position(|id| *id == end).map_or(20, |place| place + 1);
        assert_eq!(cut, &all[..want]);
    }
    // Text 1 alone, with the seed that it has beside text 0.
    let alone = GenerateConfig { sampling: SamplingConfig { seed: 8, ..sampling }, ..free.clone() };
    assert_eq!(model.generate(&prompts[1..], &alone, go_on).unwrap()[0], all[1]);
    // A stop word ends one text.
    let mut told = Vec::new();
    let stopped = model.generate(&prompts, &free, |nth, id| {
        told.push((nth, id));
        if nth == 0 && told.len() > 6 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let stopped = stopped.unwrap();
    assert!(stopped[0].len() < 6 && stopped[1] == all[1], "{stopped:?}");
    assert_eq!(told.len(), stopped[0].len() + 20);
    // A text ends where the model has no more positions; the last token needs none.
    let (long, longer) = (vec![1; 120], GenerateConfig { max_new_tokens: 100, ..free.clone() });
    assert_eq!(model.positions(), 128);
    assert_eq!(model.generate(&[&long], &longer, go_on).unwrap()[0].len(), 9);
    // What is suppressed is never drawn.
    let none = GenerateConfig { suppress_tokens: (0..v).filter(|id| *id != 5).collect(), ..free };
    assert_eq!(model.generate(&prompts, &none, go_on).unwrap(), vec![vec![5; 20]; 2]);
}

#[test]
fn processors_are_those_of_transformers() {
    let bytes = fs::read(golden("sampling.safetensors")).unwrap();
    let (_, about) = SafeTensors::read_metadata(&bytes).unwrap();
    let cases: serde_json::Value =
        serde_json::from_str(&about.metadata().as_ref().unwrap()["cases"]).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut cut = 0;
    for case in cases.as_array().unwrap() {
        let of = |what: &str| {
            file.tensor(&format!("{}.{what}", case["name"].as_str().unwrap())).unwrap()
        };
        let number = |what: &str| case[what].as_f64().unwrap();
        let config = SamplingConfig {
            temperature: number("temperature"),
            top_k: Some(number("top_k") as usize).filter(|k| *k > 0),
            top_p: number("top_p"),
            min_p: number("min_p"),
            repetition_penalty: number("repetition_penalty"),
            ..Default::default()
        };
        let (logits, text) = (of("logits"), of("text"));
        let mut logits: Vec<f32> =
            logits.data().chunks(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect();
        let text: Vec<usize> = text
            .data()
            .chunks(8)
            .map(|x| u64::from_le_bytes(x.try_into().unwrap()) as usize)
            .collect();
        config.penalize(&mut logits, &text).unwrap();
        let found = config.probabilities(&logits).unwrap();
        let want = of("probabilities");
        for (found, want) in found.iter().zip(want.data().chunks(8)) {
            let want = f64::from_le_bytes(want.try_into().unwrap());
            assert!((found - want).abs() < 1e-5, "{case}: {found} {want}");
            assert_eq!(*found < 1e-12, want < 1e-12, "{case}");
            cut += usize::from(want == 0.0);
        }
    }
    assert!(cut > 100);
}

/// A header of an odd length puts all numbers at odd places: they are copied, and are the same.
#[test]
fn numbers_at_odd_places_are_copied() {
    for folder in folders() {
        let odd = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let mut bytes = fs::read(entry.path()).unwrap();
            if entry.path().extension().is_some_and(|end| end == "safetensors") {
                let header = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                bytes[..8].copy_from_slice(&(header + 1).to_le_bytes());
                bytes.insert(8 + header as usize, b' ');
            }
            fs::write(odd.path().join(entry.file_name()), bytes).unwrap();
        }
        fs::remove_file(odd.path().join("expected.safetensors")).unwrap();
        let (mapped, copied) =
            (LlamaModel::open(&folder).unwrap(), LlamaModel::open(odd.path()).unwrap());
        let text = ids(&expected(&folder)["ids"]);
        assert_eq!(mapped.logits(&text).unwrap(), copied.logits(&text).unwrap());
        assert_eq!(copied.weights().own_bytes, copied.weights().bytes);
        assert!(mapped.weights().own_bytes < mapped.weights().bytes / 2, "{}", name(&folder));
    }
}

/// What transformers takes where a file is silent, and the older spelling of its settings.
#[test]
fn silent_and_older_files() {
    let parse = |json: serde_json::Value| DecoderConfig::parse(&json.to_string()).unwrap();
    let with = |more: serde_json::Value| {
        let mut json = serde_json::json!({
            "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 8, "num_attention_heads": 32,
        });
        json.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parse(json)
    };
    let one = serde_json::json!({"model_type": "llama", "num_attention_heads": 8, "attention_bias": true});
    let llama = with(one);
    assert_eq!((llama.llama.num_key_value_heads, llama.llama.head_dim), (8, 8));
    assert_eq!(
        (llama.qkv_bias, llama.output_bias, llama.mlp_bias, llama.qk_norm),
        (true, true, false, false)
    );
    let mistral =
        with(serde_json::json!({"model_type": "mistral", "head_dim": 4, "rope_theta": 5000.0}));
    assert_eq!((mistral.llama.num_key_value_heads, mistral.llama.rope_theta), (8, 5000.0));
    assert_eq!(mistral.llama.max_position_embeddings, 131_072);
    assert!(mistral.layers.iter().all(|layer| layer.window == Some(4096)));
    let none =
        with(serde_json::json!({"model_type": "mistral", "head_dim": 4, "sliding_window": null}));
    assert!(none.layers.iter().all(|layer| layer.window.is_none()));
    let qwen2 = with(serde_json::json!({
        "model_type": "qwen2", "num_attention_heads": 8, "num_key_value_heads": 2, "use_sliding_window": true,
        "sliding_window": 7, "max_window_layers": 6,
    }));
    assert_eq!((qwen2.qkv_bias, qwen2.output_bias), (true, false));
    let windows: Vec<_> = qwen2.layers.iter().map(|layer| layer.window).collect();
    assert_eq!(windows, [[None; 6].as_slice(), &[Some(7); 2]].concat());
    let qwen3 = with(
        serde_json::json!({"model_type": "qwen3", "rope_scaling": {"type": "yarn", "factor": 4.0}}),
    );
    assert_eq!(
        (qwen3.llama.head_dim, qwen3.llama.num_key_value_heads, qwen3.qk_norm),
        (128, 32, true)
    );
    assert_eq!((qwen3.llama.positions(), qwen3.layers[7].window), (4 * 32_768, None));
    let smollm = with(
        serde_json::json!({"model_type": "smollm3", "num_attention_heads": 16, "rope_theta": null}),
    );
    assert_eq!((smollm.llama.rope_theta, smollm.llama.tie_word_embeddings), (2_000_000.0, true));
    let rotates: Vec<_> = smollm.layers.iter().map(|layer| layer.rotates).collect();
    assert_eq!(rotates, [true, true, true, false, true, true, true, false]);
    let factors = vec![1.5; 4];
    let phi = with(serde_json::json!({
        "model_type": "phi3", "num_attention_heads": 8, "rms_norm_eps": null, "max_position_embeddings": 131_072,
        "rope_scaling": {"type": "su", "short_factor": factors, "long_factor": factors},
    }));
    assert_eq!((phi.llama.rms_norm_eps, phi.llama.cached_positions()), (1e-5, 4096));
}

/// Callers that decode at once: one of them works in the pool of threads, the others beside it.
#[test]
fn callers_do_not_disturb_each_other() {
    let model = LlamaModel::open(&folders()[0]).unwrap();
    let ids = [3, 1, 4, 1, 5];
    let text = || {
        let mut caches = [model.cache(CacheKind::F32)];
        let of = |id: &usize| model.decode(&[&[*id]], &mut caches).unwrap();
        quadrivium::in_threads(|| ids.iter().map(of).collect::<Vec<_>>())
    };
    let alone = text();
    std::thread::scope(|scope| {
        let callers: Vec<_> =
            (0..4).map(|_| scope.spawn(|| (0..20).map(|_| text()).collect::<Vec<_>>())).collect();
        for caller in callers {
            assert!(caller.join().unwrap().iter().all(|logits| *logits == alone));
        }
    });
}
