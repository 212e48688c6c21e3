//! Parts of families in a model whose sizes are types, beside the decoder that reads them from a folder; and their gradients.

use crate::support::*;
use quadrivium::attention::{QkNorm, SlidingWindow, sliding_window_mask};
use quadrivium::checkpoint::{CheckpointConfig, RopeScaling, save_checkpoint};
use quadrivium::error::Error;
use quadrivium::inference::LlamaModel;
use quadrivium::model::{LlamaCache, LlamaConfig, LlamaRope, LlamaTransformer};
use quadrivium::position::{
    NoPosition, PositionEncoding, ScoreBias, TransformerXl, TransformerXlConfig,
};
use quadrivium::tensor::*;
use quadrivium::{NtkAwareRope, NtkAwareRopeConfig, composed};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

const IDS: [usize; 9] = [3, 1, 4, 1, 5, 9, 2, 6, 5];

type Llama<P = LlamaRope<4, Cpu>, X = NoPosition> = LlamaTransformer<
    11,
    12,
    3,
    1,
    4,
    10,
    2,
    f32,
    Cpu,
    quadrivium::linear::Linear<Const<12>, Const<11>, f32, Cpu>,
    quadrivium::VocabEmbedding<11, 12, f32, Cpu>,
    quadrivium::GroupRmsNorm<12, 12, f32, Cpu>,
    P,
    X,
>;

fn model() -> Llama {
    let config = LlamaConfig { init_std: 0.5, ..Default::default() };
    Llama::new(&Cpu::default(), config).unwrap()
}

/// The model as a checkpoint of a family, with more settings and more tensors.
fn saved(folder: &Path, settings: Value, more: &[(String, Vec<f32>)]) -> LlamaModel {
    let config = CheckpointConfig {
        vocab_size: 11,
        hidden_size: 12,
        intermediate_size: 10,
        num_hidden_layers: 2,
        num_attention_heads: 3,
        num_key_value_heads: 1,
        head_dim: 4,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        rope_scaling: RopeScaling::None,
        max_position_embeddings: 2048,
        tie_word_embeddings: false,
        eos_token_id: Vec::new(),
    };
    save_checkpoint(&model(), &config, folder).unwrap();
    let file = folder.join("config.json");
    let mut said: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    said.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    std::fs::write(&file, said.to_string()).unwrap();

    let file = folder.join("model.safetensors");
    let old = std::fs::read(&file).unwrap();
    let bytes: Vec<_> = more
        .iter()
        .map(|(name, values)| {
            (name, values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
        })
        .collect();
    let mut all: BTreeMap<String, TensorView> =
        SafeTensors::deserialize(&old).unwrap().iter().map(|(n, t)| (n.to_string(), t)).collect();
    for (name, bytes) in &bytes {
        let view = TensorView::new(Dtype::F32, vec![bytes.len() / 4], bytes).unwrap();
        all.insert(name.to_string(), view);
    }
    let header = SafeTensors::read_metadata(&old).unwrap().1.metadata().clone();
    std::fs::write(&file, safetensors::serialize(all, header).unwrap()).unwrap();
    LlamaModel::open(folder).unwrap()
}

/// Whole, and token by token.
fn assert_equal<P, X>(typed: &Llama<P, X>, read: &LlamaModel)
where
    P: PositionEncoding<4, f32, Cpu>,
    X: PositionEncoding<4, f32, Cpu>,
{
    let want = widen(&read.logits(&IDS).unwrap());
    let bound = 1e-5 * want.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    let whole = || typed.try_forward(tensor_of(&IDS)).unwrap().as_vec();
    assert_within(&widen(&whole()), &want, |_| bound);
    assert_within(&widen(&composed(whole)), &want, |_| bound);
    let mut cache = LlamaCache::new(IDS.len());
    let piece =
        |ids: &[usize], cache: &mut _| typed.try_decode(tensor_of(ids), cache).unwrap().as_vec();
    let mut pieces = piece(&IDS[..4], &mut cache);
    IDS[4..].iter().for_each(|id| pieces.extend(piece(&[*id], &mut cache)));
    assert_within(&widen(&pieces), &want, |_| bound);
}

fn tensor_of(ids: &[usize]) -> Tensor<(usize, usize), usize, Cpu> {
    Cpu::default().tensor_from_vec(ids.to_vec(), (1, ids.len()))
}

fn rope() -> LlamaRope<4, Cpu> {
    model().layers.modules[0].self_attn.position.clone()
}

#[test]
fn a_window_is_mistrals() {
    let typed = model().with_position(|_| Ok(rope()), SlidingWindow::<3>).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = json!({"model_type": "mistral", "sliding_window": 3});
    assert_equal(&typed, &saved(folder.path(), settings, &[]));
    // Without it, the tokens past the window are others.
    let all = model().try_forward(tensor_of(&IDS)).unwrap().as_vec();
    let seen = typed.try_forward(tensor_of(&IDS)).unwrap().as_vec();
    let (near, far) = (3 * 11, 4 * 11);
    assert_within(&widen(&seen[..near]), &widen(&all[..near]), |_| 1e-5);
    assert!(seen[far..].iter().zip(&all[far..]).any(|(a, b)| (a - b).abs() > 1e-2));
}

#[test]
fn norms_of_queries_and_keys_are_qwen3s() {
    let gains = |nth: usize, shift: f32| -> Vec<f32> {
        (0..4).map(|i| 0.5 + shift + 0.25 * (i + nth) as f32).collect()
    };
    let normed = |nth: usize| {
        let dev = Cpu::default();
        let mut normed = QkNorm::new(&dev, 1e-6, rope())?;
        normed.q_norm.weight = dev.tensor_from_vec(gains(nth, 0.0), Default::default());
        normed.k_norm.weight = dev.tensor_from_vec(gains(nth, 1.5), Default::default());
        Ok(normed)
    };
    let typed = model().with_position(normed, NoPosition).unwrap();
    let more: Vec<_> = (0..2)
        .flat_map(|nth| {
            let name = |of| format!("model.layers.{nth}.self_attn.{of}.weight");
            [(name("q_norm"), gains(nth, 0.0)), (name("k_norm"), gains(nth, 1.5))]
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let settings = json!({"model_type": "qwen3"});
    assert_equal(&typed, &saved(folder.path(), settings, &more));
    assert_eq!(typed.num_trainable_params(), model().num_trainable_params() + 2 * 2 * 4);
}

/// Central differences in `f64` at a step of `2^-12`, as for biases.
#[test]
fn gradients_go_through_both() {
    type Attention<P> = quadrivium::attention::GroupedQueryAttention<8, 2, 1, 4, f64, Dev, P>;
    let x: Tensor<Rank3<1, 5, 8>, f64, Dev> = tensor(&wave(40, 0.7), Default::default());
    let rope = || NtkAwareRope::<4, _>::new(&dev(), NtkAwareRopeConfig::default()).unwrap();
    let attention = || {
        let normed = QkNorm::new(&dev(), 1e-6, rope()).unwrap();
        Attention::<QkNorm<4, f64, Dev, _>>::new(&dev(), 42, 0.5, normed).unwrap()
    };
    let run =
        |of: &Attention<_>| of.try_forward_with(x.leaky_trace(), &SlidingWindow::<2>, 0).unwrap();
    let value = |of: &Attention<_>| -> f64 { run(of).square().mean::<Rank0, _>().array() };
    let of = attention();
    let grads = run(&of).square().mean::<Rank0, _>().backward();
    let step = 2f64.powi(-12);
    for nth in 0..4 {
        let slope = |gain: fn(&mut Attention<_>) -> &mut Tensor<(Const<4>,), f64, Dev>| {
            let moved = |by: f64| {
                let mut of = attention();
                let mut gains = vec![1.0; 4];
                gains[nth] += by;
                *gain(&mut of) = tensor(&gains, Default::default());
                value(&of)
            };
            (moved(step) - moved(-step)) / (2.0 * step)
        };
        let q = slope(|of| &mut of.position.q_norm.weight);
        let k = slope(|of| &mut of.position.k_norm.weight);
        assert!((grads.get(&of.position.q_norm.weight).as_vec()[nth] - q).abs() < 1e-7);
        assert!((grads.get(&of.position.k_norm.weight).as_vec()[nth] - k).abs() < 1e-7);
    }
    // The last token's result depends on the last two tokens alone.
    let last: Tensor<(usize, usize, Const<8>), f64, Dev, _> =
        run(&of).slice((.., 4.., ..)).realize();
    let dx = last.square().sum::<Rank0, _>().backward().get(&x).as_vec();
    assert!(dx[..24].iter().all(|d| *d == 0.0) && dx[24..].iter().all(|d| *d != 0.0), "{dx:?}");
}

/// Transformer-XL asks the queries for a bias. It gets them as they meet the keys.
#[test]
fn a_bias_is_that_of_the_normed_queries() {
    let config = TransformerXlConfig { init_std: 0.5, ..Default::default() };
    let xl = || TransformerXl::<8, 2, 4, f64, Dev>::new(&dev(), config).unwrap();
    let mut normed = QkNorm::new(&dev(), 1e-6, xl()).unwrap();
    normed.q_norm.weight = tensor(&[0.5, 1.0, 1.5, 2.0], Default::default());
    let queries: Tensor<Rank4<1, 3, 2, 4>, f64, Dev> = tensor(&wave(24, 0.9), Default::default());
    let bias =
        |of: Result<ScoreBias<_, _, f64, Dev>, Error>| of.unwrap().by_score.unwrap().as_vec();
    let got = bias(normed.on_scores(queries.clone(), 5));
    let raw = bias(xl().on_scores(queries.clone(), 5));
    let by_hand = normed.q_norm.try_forward_heads(queries).unwrap();
    assert_eq!(got, bias(xl().on_scores(by_hand, 5)));
    assert_ne!(got, raw);
}

#[test]
fn no_window_is_refused() {
    let refused = sliding_window_mask(0, 2, 2, 0).unwrap_err();
    let rule = "at least 1";
    assert_eq!(refused, Error::Setting { name: "window", rule, got: 0.0 });
    assert_eq!(sliding_window_mask(usize::MAX, 1, 2, usize::MAX).unwrap(), [false, true]);
}
