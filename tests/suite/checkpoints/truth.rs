//! What is written is what the model is, and what is read is computed as it was written.

use crate::support::*;
use quadrivium::attention::{QkNorm, SlidingWindow};
use quadrivium::checkpoint::*;
use quadrivium::frequencies::*;
use quadrivium::layernorm::LayerNorm;
use quadrivium::model::*;
use quadrivium::pos_emb::{XPos, XPosConfig, ntk_base};
use quadrivium::position::*;
use quadrivium::rope::Layout;
use quadrivium::tensor::*;
use quadrivium::*;
use serde_json::{Value, json};
use std::path::Path;

pub(super) const V: usize = 31;
const MS: usize = 64;
pub(super) type Model = LlamaTransformer<V, 16, 2, 1, 8, 24, 1, f32, Dev>;

pub(super) fn plain(base: f64) -> NtkAwareRopeConfig {
    let past_cache = PastCache::Refuse;
    NtkAwareRopeConfig { base, max_seq_len: MS, past_cache, ..Default::default() }
}

pub(super) fn drawn(rope: NtkAwareRopeConfig, eps: f64, init_seed: u64) -> Model {
    Model::new(&dev(), LlamaConfig { eps, rope, init_std: 0.2, init_seed }).unwrap()
}

pub(super) fn model(seed: u64) -> Model {
    drawn(plain(10_000.0), 1e-6, seed)
}

pub(super) fn config() -> CheckpointConfig {
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

pub(super) fn with(change: impl FnOnce(&mut CheckpointConfig)) -> CheckpointConfig {
    let mut config = config();
    change(&mut config);
    config
}

pub(super) fn read(folder: &Path) -> error::Result<Model> {
    Model::from_checkpoint(&dev(), &Checkpoint::open(folder)?)
}

pub(super) fn bits(model: &Model) -> Vec<f32> {
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

/// The last good checkpoint is worth more than one that can't be read.
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

/// A block more than the type says is computed by a forward pass, and no file has it.
#[test]
fn a_model_with_another_number_of_blocks_than_its_type_is_not_saved() {
    let mut longer = model(1);
    longer.layers.modules.push(longer.layers.modules[0].clone());
    refused(&longer, &config(), "`num_hidden_layers` is 1 in the settings and 2 in the model");
    let mut cache = LlamaCache::new(8);
    let error = longer.try_decode(ids(&[1], (1, 1)), &mut cache).unwrap_err();
    let (name, expected, got) = ("the model's blocks", vec![2], vec![1]);
    assert_eq!(error, Error::Shape { name, expected, got });
    longer.layers.modules.clear();
    refused(&longer, &config(), "`num_hidden_layers` is 1 in the settings and 0 in the model");
}

/// Both sides of a rotation that changes with the length are compared in all that they turn.
#[test]
fn a_rotation_by_length_is_saved_if_both_sides_are_the_files() {
    let rule = LongRope {
        short_factor: vec![1.0; 4],
        long_factor: vec![2.0; 4],
        max_seq_len: 16,
        factor: 4.0,
        attention_factor: None,
    };
    let config = with(|config| config.rope_scaling = RopeScaling::LongRope(rule));
    let LlamaRopeConfig::Long { short, long } = config.rope().unwrap() else { panic!("not Long") };
    let of = |short, long| {
        let rope = LlamaRope::new(&dev(), LlamaRopeConfig::Long { short, long }).unwrap();
        model(1).with_position(|_| Ok(rope.clone()), NoPosition).unwrap()
    };
    goes_there_and_back(&of(short.clone(), long.clone()), &config);
    let adjacent = ScaledRopeConfig { layout: Layout::Interleaved, ..short.clone() };
    refused(&of(adjacent, long.clone()), &config, "its RoPE turns adjacent pairs");
    let half = RotaryFrequencies::plain(4, 10_000.0).unwrap();
    let half = ScaledRopeConfig { frequencies: half, rotary_dim: Some(4), ..long };
    refused(&of(short, half), &config, "its RoPE turns 4 of the 8 elements of a head");
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
    let window = model(1).with_position(|_| Ok(turning.clone()), SlidingWindow::<3>).unwrap();
    refused(&window, &c, "SlidingWindow<3>");
    let normed = |_| QkNorm::<8, f32, Dev, _>::new(&dev(), 1e-6, turning.clone());
    refused(&model(1).with_position(normed, NoPosition).unwrap(), &c, "QkNorm<8");
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
        ("architectures", json!(["LlamaBidirectionalModel"])),
        ("transformers_weights", json!("other.safetensors")),
        ("per_layer_config", json!({"1": {"rms_norm_eps": 0.5}})),
        ("mlp_activation", json!("gelu")),
        ("zero_centered_gamma", json!(true)),
        ("embed_mult", json!(2.0)),
        ("gated_mlp", json!({"no": 1})),
        ("ALIBI", json!(true)),
        ("rope-scaling", json!({"type": "linear"})),
        ("num_kv_shared_layers", json!(2)),
        ("norm_eps", json!(0.5)),
        ("rope_base", json!(500)),
        ("rope_pct", json!(0.5)),
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
        ("architectures", json!("LLaMAForCausalLM")),
        ("transformers_weights", json!("model.safetensors")),
        ("activation", json!("swiglu")),
        ("use_rope", json!(true)),
        ("norm_type", json!("RMSNorm")),
        ("norm_eps", json!(1e-6)),
        ("rope_base", json!(10000)),
        ("rope_pct", json!(1.0)),
        ("tensor_parallel_degree", json!(2)),
        ("max_grad_norm", json!(1.0)),
        ("global_step", json!(7)),
        ("initializer_factor", json!(0.1)),
        ("label_smoothing_factor", json!(0.0)),
        ("fuse_norm", json!(true)),
        ("local_attention", json!(-1)),
        ("expert_count", json!(0.0)),
        ("num_local_experts", json!(1)),
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
