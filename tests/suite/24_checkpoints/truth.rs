//! What is written is what the model is, and what is read is what was written: also where files of another checkpoint lie
//! beside it, and where a save was ended in its middle.

use super::{Tensors, tensors, write};
use crate::support::*;
use quadrivium::checkpoint::*;
use quadrivium::frequencies::*;
use quadrivium::layernorm::LayerNorm;
use quadrivium::loss::cross_entropy;
use quadrivium::model::*;
use quadrivium::pos_emb::{XPos, XPosConfig, ntk_base};
use quadrivium::position::*;
use quadrivium::tensor::*;
use quadrivium::weights::{load_weights, save_weights};
use quadrivium::*;
use safetensors::tensor::{Dtype as FileDtype, SafeTensors};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const V: usize = 31;
const MS: usize = 64;
type Model = LlamaTransformer<V, 16, 2, 1, 8, 24, 1, f32, Dev>;

fn plain(base: f64) -> NtkAwareRopeConfig {
    let past_cache = PastCache::Refuse;
    NtkAwareRopeConfig { base, max_seq_len: MS, past_cache, ..Default::default() }
}

fn drawn(rope: NtkAwareRopeConfig, eps: f64, init_seed: u64) -> Model {
    Model::new(&dev(), LlamaConfig { eps, rope, init_std: 0.2, init_seed }).unwrap()
}

fn model(seed: u64) -> Model {
    drawn(plain(10_000.0), 1e-6, seed)
}

fn config() -> CheckpointConfig {
    CheckpointConfig {
        vocab_size: V,
        hidden_size: 16,
        intermediate_size: 24,
        num_hidden_layers: 1,
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 8,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        rope_scaling: RopeScaling::None,
        max_position_embeddings: MS,
        tie_word_embeddings: false,
        eos_token_id: vec![2],
    }
}

fn with(change: impl FnOnce(&mut CheckpointConfig)) -> CheckpointConfig {
    let mut config = config();
    change(&mut config);
    config
}

fn read(folder: &Path) -> error::Result<Model> {
    Model::from_checkpoint(&dev(), &Checkpoint::open(folder)?)
}

fn bits(model: &Model) -> Vec<f32> {
    let text: Vec<usize> = (0..20).map(|n| n * 7 % V).collect();
    model.try_forward(ids(&text, (1, 20))).unwrap().as_vec()
}

/// Refused with these words, and nothing is written.
#[track_caller]
fn refused<M: TensorCollection<f32, Dev> + AsLlama>(
    model: &M,
    config: &CheckpointConfig,
    words: &str,
) {
    let folder = tempfile::tempdir().unwrap();
    let error = save_checkpoint(model, config, folder.path()).unwrap_err().to_string();
    assert!(error.contains(words), "{error}\nwithout {words:?}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "something was written");
}

/// The last good checkpoint is worth more than one that nobody can read.
#[test]
fn a_model_that_diverged_is_not_saved() {
    for value in [f32::NAN, f32::INFINITY] {
        let mut diverged = model(1);
        let mut gamma = diverged.norm.weight.as_vec();
        gamma[3] = value;
        diverged.norm.weight = dev().tensor_from_vec(gamma, (Const,));
        refused(
            &diverged,
            &config(),
            &format!("\"model.norm.weight\" has {value} at place 3, and no reader"),
        );
    }
}

/// Saved, read again, and the same bits.
#[track_caller]
fn goes_there_and_back<M>(model: &M, config: &CheckpointConfig)
where
    M: TensorCollection<f32, Dev> + AsLlama,
    M: Module<
            Tensor<(usize, usize), usize, Dev>,
            Output = Tokens<usize, usize, V, f32, Dev>,
            Error = Error,
        >,
{
    let folder = tempfile::tempdir().unwrap();
    save_checkpoint(model, config, folder.path()).unwrap();
    assert_eq!(Checkpoint::open(folder.path()).unwrap().config(), config);
    let text: Vec<usize> = (0..20).map(|n| n * 7 % V).collect();
    let want = model.try_forward(ids(&text, (1, 20))).unwrap().as_vec();
    assert_same_bits(&bits(&read(folder.path()).unwrap()), &want);
}

#[test]
fn settings_that_are_not_the_models_are_refused() {
    let model = model(42);
    goes_there_and_back(&model, &config());
    let refused = |change: fn(&mut CheckpointConfig), words: &str| {
        refused(&model, &with(change), words);
    };
    refused(
        |c| c.rope_theta = 5e5,
        "`rope_theta` is 500000 in the settings and 10000 in the model",
    );
    refused(
        |c| c.rms_norm_eps = 1e-5,
        "`rms_norm_eps` is 0.00001 in the settings and 1e-6 in the model",
    );
    refused(
        |c| c.max_position_embeddings = 128,
        "`max_position_embeddings` is 128 in the settings and 64 in",
    );
    refused(
        |c| c.num_attention_heads = 4,
        "`num_attention_heads` is 4 in the settings and 2 in the model",
    );
    refused(
        |c| c.num_key_value_heads = 2,
        "`num_key_value_heads` is 2 in the settings and 1 in the model",
    );
    // The same shapes of all tensors, cut into other heads.
    refused(
        |c| (c.num_attention_heads, c.num_key_value_heads, c.head_dim) = (4, 2, 4),
        "`num_attention_heads` is 4 in the settings and 2 in the model, `num_key_value_heads` is 2 in the settings and 1 in \
         the model, `head_dim` is 4 in the settings and 8 in the model",
    );
    refused(|c| c.hidden_size = 32, "`hidden_size` is 32 in the settings and 16 in the model");
    refused(
        |c| c.intermediate_size = 16,
        "`intermediate_size` is 16 in the settings and 24 in the model",
    );
    refused(|c| c.vocab_size = 32, "`vocab_size` is 32 in the settings and 31 in the model");
    refused(
        |c| c.num_hidden_layers = 2,
        "`num_hidden_layers` is 2 in the settings and 1 in the model",
    );
    refused(
        |c| c.tie_word_embeddings = true,
        "`tie_word_embeddings` is true in the settings and false in",
    );
    refused(
        |c| c.rope_scaling = RopeScaling::Linear { factor: 8.0 },
        "`rope_scaling` is one that turns plane 0 by 0.125",
    );
    refused(
        |c| c.rope_scaling = RopeScaling::Dynamic { factor: 2.0 },
        "`rope_scaling` is one with frequencies by length",
    );
    // A norm of one block that differs from the rest.
    let mut other = self::model(42);
    let eps = GroupRmsNormConfig { eps: 0.5, ..Default::default() };
    let weight = other.layers.modules[0].input_layernorm.weight.clone();
    other.layers.modules[0].input_layernorm = GroupRmsNorm::with_weight(weight, eps).unwrap();
    self::refused(&other, &config(), "`rms_norm_eps` is 1e-6 in the settings and 0.5 in the model");
}

fn scaled(frequencies: error::Result<RotaryFrequencies>, positions: usize) -> ScaledRope<8, Dev> {
    ScaledRope::new(&dev(), ScaledRopeConfig::new(frequencies.unwrap(), positions)).unwrap()
}

/// Frequencies that are scaled are written as what they are, or not at all.
#[test]
fn scaled_frequencies_are_written_as_what_they_are() {
    const BASE: f64 = 10_000.0;
    let llama3 = Llama3 { max_seq_len: 16, ..Llama3::default() };
    let yarn = Yarn { factor: 4.0, max_seq_len: 16, beta_fast: 16.0, ..Yarn::default() };
    let scalings = [
        (RotaryFrequencies::interpolated(8, BASE, 8.0), RopeScaling::Linear { factor: 8.0 }),
        (RotaryFrequencies::yarn(8, BASE, yarn), RopeScaling::Yarn(yarn)),
        (RotaryFrequencies::llama3(8, BASE, llama3), RopeScaling::Llama3(llama3)),
    ];
    for (frequencies, scaling) in scalings {
        let rope = scaled(frequencies, MS);
        let model = model(42).with_position(|_| Ok(rope.clone()), NoPosition).unwrap();
        refused(&model, &config(), "`rope_scaling` is one ");
        goes_there_and_back(&model, &with(|c| c.rope_scaling = scaling));
    }
    // Other parameters of the same rule.
    let rope = scaled(RotaryFrequencies::llama3(8, BASE, llama3), MS);
    let llama = model(42).with_position(|_| Ok(rope.clone()), NoPosition).unwrap();
    let other = Llama3 { low_freq_factor: 1.5, ..llama3 };
    refused(
        &llama,
        &with(|c| c.rope_scaling = RopeScaling::Llama3(other)),
        "`rope_scaling` is one that",
    );
    // Shared by all blocks, it is the same.
    let shared = model(42).with_position(|_| Ok(NoPosition), rope).unwrap();
    goes_there_and_back(&shared, &with(|c| c.rope_scaling = RopeScaling::Llama3(llama3)));

    let ntk = DynamicNtk { factor: 2.0, max_seq_len: MS };
    let dynamic = DynamicNtkRopeConfig { ntk, ..Default::default() };
    let dynamic = DynamicNtkRope::<8, _>::new(&dev(), dynamic).unwrap();
    let dynamic = model(42).with_position(|_| Ok(dynamic.clone()), NoPosition).unwrap();
    refused(
        &dynamic,
        &config(),
        "`rope_scaling` is one with frequencies for all lengths in the settings",
    );
    refused(
        &dynamic,
        &with(|c| c.rope_scaling = RopeScaling::Dynamic { factor: 3.0 }),
        "`rope_scaling` is",
    );
    goes_there_and_back(&dynamic, &with(|c| c.rope_scaling = RopeScaling::Dynamic { factor: 2.0 }));

    let rule = |long: f64, max_seq_len| LongRope {
        short_factor: vec![1.0; 4],
        long_factor: vec![long; 4],
        max_seq_len,
        factor: 4.0,
        attention_factor: Some(1.0),
    };
    let by_length =
        |long, trained| with(|c| c.rope_scaling = RopeScaling::LongRope(rule(long, trained)));
    let long = by_length(2.0, 16);
    let rope = LlamaRope::<8, _>::new(&dev(), long.rope().unwrap()).unwrap();
    let model_of_two = model(42).with_position(|_| Ok(rope.clone()), NoPosition).unwrap();
    goes_there_and_back(&model_of_two, &long);
    refused(&model_of_two, &config(), "one with frequencies for all lengths in the settings");
    refused(&model_of_two, &by_length(3.0, 16), "`rope_scaling` is one that turns plane 0 by ");
    let words = "`original_max_position_embeddings` is 32 in the settings and 16 in the model";
    refused(&model_of_two, &by_length(2.0, 32), words);

    // An NTK ratio is a larger theta, and a longer table.
    let ratio = drawn(NtkAwareRopeConfig { ratio: 4, max_seq_len: 16, ..plain(BASE) }, 1e-6, 42);
    let theta = ntk_base(BASE, 8, 4.0).unwrap();
    refused(
        &ratio,
        &config(),
        &format!("`rope_theta` is 10000 in the settings and {theta} in the model"),
    );
    goes_there_and_back(&ratio, &with(|c| c.rope_theta = theta));
    let fixed = scaled(RotaryFrequencies::ntk(8, BASE, 4.0), MS);
    let fixed = model(42).with_position(|_| Ok(fixed.clone()), NoPosition).unwrap();
    goes_there_and_back(&fixed, &with(|c| c.rope_theta = theta));
    // One block of two that turns otherwise.
    let slower = |factor| scaled(RotaryFrequencies::interpolated(8, BASE, factor), MS);
    type Two = LlamaTransformer<V, 16, 2, 1, 8, 24, 2, f32, Dev>;
    let two = Two::new(&dev(), LlamaConfig { rope: plain(BASE), ..Default::default() }).unwrap();
    let two = two.with_position(|nth| Ok(slower(1.0 + nth as f64)), NoPosition).unwrap();
    refused(
        &two,
        &with(|c| c.num_hidden_layers = 2),
        "`rope_scaling` is one that turns plane 0 by 1 a",
    );
}

/// What no Llama has is refused by name: it would be computed as something else.
#[test]
fn parts_that_no_llama_has_are_refused() {
    let c = config();
    let none = |_| Ok(NoPosition);
    refused(&model(1).with_position(none, NoPosition).unwrap(), &c, "it has no position encoding");
    refused(
        &model(1).with_position(none, Alibi::<2>).unwrap(),
        &c,
        "encoded by NoPosition and Alibi<2>",
    );
    let turning = scaled(RotaryFrequencies::plain(8, 10_000.0), MS);
    let both = model(1).with_position(|_| Ok(turning.clone()), Alibi::<2>).unwrap();
    refused(&both, &c, "Alibi<2>: no `config.json` of a Llama can say that");
    let twice = model(1).with_position(|_| Ok(turning.clone()), turning.clone()).unwrap();
    refused(&twice, &c, "encoded by ScaledRope<8");
    refused(&model(1).with_position(none, Sinusoidal::default()).unwrap(), &c, "Sinusoidal");
    let learned = LearnedPositions::<MS, 16, f32, Dev>::new(&dev(), Default::default()).unwrap();
    refused(&model(1).with_position(none, learned).unwrap(), &c, "LearnedPositions<64, 16");
    let xpos =
        XPos::<8, _>::new(&dev(), XPosConfig { max_position: MS, ..Default::default() }).unwrap();
    refused(&model(1).with_position(|_| Ok(xpos.clone()), NoPosition).unwrap(), &c, "XPos<8");
    let pairs = NtkAwareRopeConfig { layout: functional::Layout::Interleaved, ..plain(10_000.0) };
    refused(&drawn(pairs, 1e-6, 1), &c, "its RoPE turns adjacent pairs");
    let mut part = ScaledRopeConfig::new(RotaryFrequencies::plain(4, 10_000.0).unwrap(), MS);
    part.rotary_dim = Some(4);
    let part = ScaledRope::<8, _>::new(&dev(), part).unwrap();
    refused(
        &model(1).with_position(|_| Ok(part.clone()), NoPosition).unwrap(),
        &c,
        "its RoPE turns 4 of the 8 elements of a head",
    );

    // Norms of another kind, with the same tensors.
    type Normed<N> = LlamaTransformer<
        V,
        16,
        2,
        1,
        8,
        24,
        0,
        f32,
        Dev,
        Tied,
        VocabEmbedding<V, 16, f32, Dev>,
        N,
        NoPosition,
    >;
    let of = model(1);
    let groups =
        GroupRmsNorm::<16, 4, f32, _>::with_weight(of.norm.weight.clone(), Default::default());
    let grouped: Normed<GroupRmsNorm<16, 4, f32, Dev>> = LlamaTransformer {
        embed_tokens: of.embed_tokens.clone(),
        position: NoPosition,
        layers: modules::Repeated { modules: Vec::new() },
        norm: groups.unwrap(),
        lm_head: Tied,
    };
    let none = with(|c| (c.num_hidden_layers, c.tie_word_embeddings) = (0, true));
    let words = grouped.check_llama(&none).unwrap_err().to_string();
    assert!(
        words.contains("its norm is no RMSNorm of whole tokens, but GroupRmsNorm<16, 4"),
        "{words}"
    );
    let layernorm: Normed<LayerNorm<16, f32, Dev>> = LlamaTransformer {
        embed_tokens: of.embed_tokens.clone(),
        position: NoPosition,
        layers: modules::Repeated { modules: Vec::new() },
        norm: LayerNorm::new(&dev(), Default::default()).unwrap(),
        lm_head: Tied,
    };
    let words = layernorm.check_llama(&none).unwrap_err().to_string();
    assert!(words.contains("but LayerNorm<16"), "{words}");
}

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
    // A file that somebody else has put there.
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

/// Between the two renames of a save there are no settings, so nobody reads new weights by old ones.
#[test]
fn a_save_that_was_ended_in_its_middle_is_no_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    save_checkpoint(&model(1), &config(), folder.path()).unwrap();
    // As it is when the process is killed there: the old settings stand aside, and the weights are new.
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
    // A save that can't set both aside changes neither.
    for name in [".config.json.old", ".model.safetensors.old"] {
        fs::create_dir(at(name)).unwrap();
        save_checkpoint(&model(1), &config(), folder.path()).unwrap_err();
        fs::remove_dir(at(name)).unwrap();
        assert_same_bits(&bits(&read(folder.path()).unwrap()), &bits(&other));
    }
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

/// Settings that change what a Llama computes, and those that do not.
#[test]
fn settings_are_computed_or_refused() {
    let parse = |name: &str, value: &Value| {
        let mut json: Value = serde_json::from_str(&config().to_json()).unwrap();
        json[name] = value.clone();
        CheckpointConfig::parse(&json.to_string())
    };
    for (name, value) in [
        ("hidden_act", json!("gelu")),
        ("hidden_activation", json!("gelu_pytorch_tanh")),
        ("attention_multiplier", json!(0.0078125)),
        ("embedding_multiplier", json!(12.0)),
        ("residual_multiplier", json!(0.22)),
        ("logits_scaling", json!(8.0)),
        ("logit_scale", json!(0.0625)),
        ("scale_emb", json!(12)),
        ("query_pre_attn_scalar", json!(256)),
        ("attn_logit_softcapping", json!(50.0)),
        ("final_logit_softcapping", json!(30.0)),
        ("rope_interleaved", json!(true)),
        ("rope_interleave", json!(true)),
        ("rope_local_base_freq", json!(10_000.0)),
        ("partial_rotary_factor", json!(0.5)),
        ("rotary_pct", json!(0.25)),
        ("rotary_dim", json!(4)),
        ("attention_bias", json!(true)),
        ("mlp_bias", json!(true)),
        ("qkv_bias", json!(true)),
        ("use_qk_norm", json!(true)),
        ("qk_layernorm", json!(true)),
        ("sliding_window", json!(32)),
        ("layer_types", json!(["sliding_attention"])),
        ("attention_chunk_size", json!(8192)),
        ("clip_qkv", json!(8.0)),
        ("alibi", json!(true)),
        ("position_embedding_type", json!("alibi")),
        ("is_causal", json!(false)),
        ("use_bidirectional_attention", json!(true)),
        ("num_local_experts", json!(8)),
        ("quantization_config", json!({"bits": 4})),
        ("compression_config", json!({"format": "int"})),
        ("model_type", json!("granite")),
        ("add_cross_attention", json!(true)),
        ("lora_rank", json!(16)),
        ("is_quantized", json!(true)),
        ("moe_intermediate_size", json!(1408)),
        ("expert_capacity", json!(64)),
        ("use_mup", json!(true)),
        ("rope_scale_after", json!(true)),
        ("mrope_interleaved", json!(true)),
        ("interleave_layers", json!(true)),
        ("sliding_layers", json!(4)),
        ("attention_window", json!(256)),
        ("residual_scalar", json!(0.5)),
        ("rotary_emb_base", json!(5000)),
        ("logit_softcap", json!(30.0)),
        ("ssm_multipliers", json!([0.5, 2.0])),
        ("attn_temperature_tuning", json!(4)),
        ("architectures", json!(["GemmaForCausalLM"])),
        ("logit_cap", json!(30.0)),
        ("logits_soft_cap", json!(30.0)),
        ("activation", json!("gelu")),
        ("act_fn", json!("gelu")),
        ("norm_type", json!("layernorm")),
        ("layernorm_epsilon", json!(1e-3)),
        ("normalize_embedding", json!(true)),
        ("use_parallel_residual", json!(true)),
        ("attention_sinks", json!(true)),
        ("v_head_dim", json!(16)),
        ("head_size", json!(16)),
        ("causal", json!(false)),
        ("is_encoder_decoder", json!(true)),
        ("prefix_lm", json!(true)),
        ("local_attention", json!(128)),
        ("global_attn_every_n_layers", json!(3)),
        ("theta", json!(5000)),
        ("attention_factor", json!(2.0)),
        ("layer_types", json!(["full_attention", "full_attention"])),
    ] {
        let error = parse(name, &value).expect_err(name).to_string();
        assert!(
            error.contains(&format!("`{name}` is {value}, and this crate computes")),
            "{error}"
        );
    }
    for (name, value) in [
        ("hidden_act", json!("swish")),
        ("attention_multiplier", json!(1.0 / 8f64.sqrt())),
        ("query_pre_attn_scalar", json!(8)),
        ("embedding_multiplier", json!(1.0)),
        ("logits_scaling", json!(1)),
        ("attn_logit_softcapping", Value::Null),
        ("rope_interleaved", json!(false)),
        ("partial_rotary_factor", json!(1.0)),
        ("rotary_dim", json!(8)),
        ("sliding_window", json!(64)),
        ("layer_types", json!(["full_attention"])),
        ("max_window_layers", json!(28)),
        ("architectures", json!(["LlamaForCausalLM"])),
        ("no_rope_layers", json!([1])),
        ("v_head_dim", json!(8)),
        ("is_encoder_decoder", json!(false)),
        ("num_local_experts", json!(0)),
        ("use_qk_norm", json!(false)),
        ("is_causal", json!(true)),
        ("pretraining_tp", json!(2)),
        ("torch_dtype", json!("bfloat16")),
        ("dtype", json!("float16")),
        ("transformers_version", json!("4.46.0")),
        ("use_cache", json!(false)),
        ("attention_dropout", json!(0.1)),
        ("initializer_range", json!(0.02)),
        ("bos_token_id", json!(1)),
        ("pad_token_id", json!(0)),
        ("_name_or_path", json!("somewhere")),
        ("auto_map", json!({"AutoModel": "a.B"})),
        ("note", json!("written by hand")),
    ] {
        let read = parse(name, &value);
        assert_eq!(read.as_ref(), Ok(&config()), "{name} {value}");
    }
    let unused = json!({"sliding_window": 32, "use_sliding_window": false, "max_window_layers": 1});
    let mut json: Value = serde_json::from_str(&config().to_json()).unwrap();
    json.as_object_mut().unwrap().extend(unused.as_object().unwrap().clone());
    assert_eq!(CheckpointConfig::parse(&json.to_string()), Ok(config()));
}

/// Whoever looks into the header of a file sees what transformers asks for, and the same bytes each time.
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
    assert!(error.contains("it is no JSON object"), "{error}");
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
