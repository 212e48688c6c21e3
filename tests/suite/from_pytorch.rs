//! The page "From PyTorch", run: each phrase of its tables is a line here, and each piece of its Rust is between two
//! marks.

use crate::support::*;
use quadrivium::attention::causal_attention;
use quadrivium::checkpoint::Checkpoint;
use quadrivium::embedding::vocab_embedding;
use quadrivium::error::{Error, Result};
use quadrivium::feedforward::{SwiGlu, silu_mul};
use quadrivium::frequencies::{LearnableRope, LearnableRopeConfig};
use quadrivium::functional::{
    apply_rotary_pos_emb, kerple_bias, linear_attention, repeat_kv, sinusoids,
};
use quadrivium::layernorm::layer_norm;
use quadrivium::linear::{Linear, LinearConfig, linear};
use quadrivium::loss::{cross_entropy, next_tokens, perplexity};
use quadrivium::model::{LlamaCache, LlamaTransformer, Sampler, SamplingConfig};
use quadrivium::norm::group_rms_norm;
use quadrivium::position::KerpleKernel;
use quadrivium::tensor::optim::{Optimizer, Sgd, SgdConfig};
use quadrivium::tensor::tensor_ops::TryGt;
use quadrivium::tensor::*;
use quadrivium::training::{AdamW, AdamWConfig, Schedule, clip_gradients};
use quadrivium::weights::{load_weights, save_weights};
use quadrivium::*;

// --- The tables -------------------------------------------------------------------------------

#[test]
fn tensors_are_made() -> Result<()> {
    let (dev, values) = (dev(), vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let x = dev.tensor([[1.0f32, 2.0], [3.0, 4.0]]);
    assert_eq!(x.array(), [[1.0, 2.0], [3.0, 4.0]]);
    let x = dev.tensor_from_vec(values, (2, Const::<3>));
    assert_eq!(x.shape().concrete(), [2, 3]);
    let ones: Tensor<_, f32, _> = dev.ones_like(&x);
    assert_eq!((x + ones).as_vec(), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let x: Tensor<Rank2<2, 3>, f32, _> = dev.zeros();
    assert_eq!(x.array(), [[0.0; 3]; 2]);
    let x: Tensor<Rank2<2, 3>, f32, _> = dev.sample_normal();
    assert_eq!(x.shape().concrete(), [2, 3]);
    let seen: Tensor<Rank2<2, 2>, f32, _> = dev.lower_tri(1.0, None);
    assert_eq!(seen.array(), [[1.0, 0.0], [1.0, 1.0]]);
    let wide = x.to_dtype::<f64>();
    assert_eq!(wide.shape().concrete(), [2, 3]);
    let there = wide.to_device(&dev);
    assert_eq!(there.as_vec().len(), 6);
    let loss = dev.tensor(2.5f32);
    assert_eq!(loss.array(), 2.5);
    Ok(())
}

#[test]
fn shapes_change() -> Result<()> {
    let dev = dev();
    let x = tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], (1, 1, Const::<6>));
    let (b, s, h) = *x.shape();
    assert_eq!((b, s, h.size()), (1, 1, 6));
    let groups = x.clone().reshape_like(&(b, s, 2, Const::<3>));
    assert_eq!(groups.shape().concrete(), [1, 1, 2, 3]);
    let flat = x.reshape_like(&(6,));
    assert_eq!(flat.as_vec()[5], 6.0);
    let known = flat.realize::<Rank1<6>>();
    assert_eq!(known.array()[5], 6.0);
    let heads = groups.permute::<_, Axes4<0, 2, 1, 3>>();
    assert_eq!(heads.shape().concrete(), [1, 2, 1, 3]);
    let row = dev.tensor([1.0f32, 2.0, 3.0]);
    let rows = row.broadcast_like::<_, Axis<0>>(&(2, Const::<3>));
    assert_eq!(rows.as_vec(), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    let rows = rows.contiguous();
    let rest = rows.clone().slice((.., 1..));
    assert_eq!(rest.as_vec(), [2.0, 3.0, 2.0, 3.0]);
    let (a, b) = (rows.clone(), rows.clone());
    let both = (a, b).concat_along(Axis::<0>);
    assert_eq!(both.shape().concrete(), [4, 3]);
    let (a, b) = (rows.clone(), rows.clone());
    let pair = [a, b].stack();
    assert_eq!(pair.shape().concrete(), [2, 2, 3]);
    let swapped = rows.roll::<Axis<1>>(1);
    assert_eq!(swapped.as_vec(), [3.0, 1.0, 2.0, 3.0, 1.0, 2.0]);
    Ok(())
}

#[test]
fn tensors_are_indexed() {
    let dev = dev();
    let table = dev.tensor([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    let ids = dev.tensor([[2, 0, 2]]);
    let rows = table.clone().gather(ids);
    assert_eq!(rows.array(), [[[5.0, 6.0], [1.0, 2.0], [5.0, 6.0]]]);
    let places = dev.tensor([1, 0, 0]);
    let chosen = table.select(places);
    assert_eq!(chosen.array(), [2.0, 3.0, 5.0]);
    let (a, b) = (dev.tensor([1.0f32, 2.0]), dev.tensor([-1.0f32, -2.0]));
    let mask = a.gt(1.5);
    assert_eq!(mask.choose(a, b).array(), [-1.0, 2.0]);
}

#[test]
fn tensors_are_reduced() -> Result<()> {
    let dev = dev();
    let x = dev.tensor([[[1.0f32, 3.0], [5.0, 7.0]]]); // [b, s, h]
    assert_eq!(x.clone().sum::<Rank0, _>().array(), 16.0);
    assert_eq!(x.clone().mean::<_, Axis<2>>().array(), [[2.0, 6.0]]);
    assert_eq!(x.clone().max::<_, Axis<2>>().array(), [[3.0, 7.0]]);
    assert_eq!(x.clone().var::<_, Axis<2>>().array(), [[1.0, 1.0]]);
    assert_eq!(x.clone().sum::<_, Axes2<0, 1>>().array(), [6.0, 10.0]);
    assert_eq!(x.clone().square().sqrt().array(), x.array());
    assert_eq!(x.clone().recip().array()[0][0][0], 1.0);
    let (weights, logs) = (x.clone().softmax::<Axis<2>>(), x.clone().log_softmax::<Axis<2>>());
    assert!((weights.as_vec()[0].ln() - logs.as_vec()[0]).abs() < 1e-6);
    assert!(x.clone().logsumexp::<_, Axis<2>>().as_vec()[0] > 3.0);
    let (a, b) = (dev.tensor([[1.0f32, 2.0]]), dev.tensor([[3.0f32], [4.0]]));
    assert_eq!(a.matmul(b).array(), [[11.0]]);
    let weight = dev.tensor([[1.0f32, 0.0], [0.0, 1.0], [1.0, 1.0]]); // [o, i]
    assert_eq!(linear(x, &weight)?.array(), [[[1.0, 3.0, 4.0], [5.0, 7.0, 12.0]]]);
    Ok(())
}

#[test]
fn gradients() -> Result<()> {
    let dev = dev();
    let x = dev.tensor([3.0f32, 4.0]);
    let taped = x.leaky_trace();
    let loss = taped.square().sum::<Rank0, _>();
    let grads = loss.backward();
    assert_eq!(grads.get(&x).array(), [6.0, 8.0]);

    let y = x.leaky_trace() * 2.0;
    let dy = dev.tensor([1.0f32, 10.0]);
    let grads = (y * dy).sum::<Rank0, _>().backward();
    assert_eq!(grads.get(&x).array(), [2.0, 20.0]);

    let gamma = dev.tensor([10.0f32, 100.0]);
    let y = x.leaky_trace() * gamma.retaped::<OwnedTape<f32, Dev>>();
    let again = y.with_empty_tape();
    let (constant, tape) = again.split_tape();
    assert_eq!(constant.put_tape(tape).array(), [30.0, 400.0]);

    // Two passes into one set of gradients.
    let mut norm = GroupRmsNorm::<2, 2, f32, _>::new(&dev, Default::default())?;
    let x = dev.tensor([[[3.0f32, 4.0]]]);
    let grads = norm.alloc_grads();
    let grads = norm.try_forward(x.clone().traced(grads))?.sum::<Rank0, _>().backward();
    let once = grads.get(&norm.weight).array();
    let mut grads = norm.try_forward(x.clone().traced(grads))?.sum::<Rank0, _>().backward();
    assert_eq!(grads.get(&norm.weight).array(), once.map(|slope| 2.0 * slope));
    norm.zero_grads(&mut grads);
    assert_eq!(grads.get(&norm.weight).array(), [0.0; 2]);
    // No tape came in, so nothing is recorded.
    let y: Tensor<_, f32, _, NoneTape> = norm.try_forward(x)?;
    assert_eq!(y.shape().concrete(), [1, 1, 2]);
    norm.reset_parameters()
}

#[test]
fn modules_are_built_and_kept() -> Result<()> {
    let dev = dev();
    let gamma = dev.tensor([1.0f32, 2.0, 3.0, 4.0]);
    let norm = GroupRmsNorm::<4, 2, f32, _>::with_weight(gamma, Default::default())?;
    assert_eq!(norm.weight.array()[3], 4.0);
    let product = Linear::<Const<4>, Const<8>, f32, _>::new(&dev, LinearConfig::default())?;
    assert_eq!(product.weight.shape().concrete(), [8, 4]);
    let with_bias: modules::Linear<4, 8, f32, _> = BuildModule::build(&dev);
    assert_eq!(with_bias.num_trainable_params(), 40);
    let settings = VocabEmbeddingConfig { init_seed: 7, init_std: 0.02, ..Default::default() };
    let embedding = VocabEmbedding::<9, 4, f32, _>::new(&dev, settings)?;
    let mut model = (embedding, norm);
    assert_eq!(model.num_trainable_params(), 9 * 4 + 4);
    let ids = dev.tensor([[7, 0, 7]]);
    let y = model.try_forward(ids.clone())?;
    assert_eq!(y.shape().concrete(), [1, 3, 4]);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    save_weights(&model, &path)?;
    model.0.reset_parameters()?;
    load_weights(&mut model, &path)?;
    let wide = model.to_dtype::<f64>();
    assert_eq!(wide.try_forward(ids)?.shape().concrete(), [1, 3, 4]);
    let copy = model.clone();
    assert_eq!(copy.0.weight.array(), model.0.weight.array());

    let mut dropout = modules::Dropout { p: 0.5 };
    let x = dev.tensor([1.0f32; 64]);
    assert_eq!(dropout.forward(x.clone()).array(), [1.0; 64]);
    assert_ne!(dropout.forward_mut(x.leaky_trace()).array(), [1.0; 64]);

    let folder = root().join("tests/goldens/llama/plain");
    let checkpoint = Checkpoint::open(folder)?;
    assert!(checkpoint.config().to_json().contains("hidden_size"));
    Ok(())
}

#[test]
fn a_model_is_trained() -> Result<()> {
    let dev = dev();
    let mut model =
        LlamaTransformer::<9, 8, 2, 1, 4, 24, 1, f32, _>::new(&dev, Default::default())?;
    let text = dev.tensor([[1, 7, 2, 8]]);
    let (ids, next) = next_tokens(&text)?;
    let schedule = Schedule { peak: 0.02, warmup: 5, steps: 60, end: 0.002 };
    let mut adam = AdamW::new(AdamWConfig { weight_decay: 0.01, ..Default::default() })?;
    let mut grads = model.try_alloc_grads()?;
    let mut losses = Vec::new();
    for step in 0..60 {
        let logits = model.try_forward(ids.clone().traced(grads))?; // [b, s, v]
        let loss = cross_entropy(logits, &next)?;
        losses.push(loss.array());
        grads = loss.try_backward()?;
        clip_gradients(&mut model, &mut grads, 1.0)?;
        adam.update(&mut model, &mut grads, schedule.rate(step))?;
        model.try_zero_grads(&mut grads)?;
    }
    assert!(losses[59] < 0.2 * losses[0], "{losses:?}");
    assert!(perplexity(losses[59].into()) >= 1.0);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("adam.safetensors");
    adam.save(&model, &path)?;
    let adam = AdamW::load(AdamWConfig::default(), &model, &path)?;
    assert_eq!(adam.steps(), 60);

    let mut sgd = Sgd::new(&model, SgdConfig { lr: 0.1, ..Default::default() });
    let logits = model.try_forward_recomputed(ids.traced(grads), 0)?;
    let mut grads = cross_entropy(logits, &next)?.backward();
    sgd.update(&mut model, &grads)?;
    model.zero_grads(&mut grads);

    let mut cache = LlamaCache::new(64);
    let mut sampler = Sampler::new(SamplingConfig { top_k: Some(3), ..Default::default() })?;
    let prompt = dev.tensor([[1, 7]]);
    let logits = model.try_decode(prompt, &mut cache)?; // [b, s, v]
    let id = sampler.next(&logits.as_vec()[9..])?;
    assert!(id < 9 && cache.positions() == 2);
    Ok(())
}

#[test]
fn components() -> Result<()> {
    let dev = dev();
    let embedding = VocabEmbedding::<12, 8, f32, _>::new(&dev, Default::default())?;
    let ids = dev.tensor([[7, 0, 11]]);
    let x = embedding.try_forward(ids.clone())?;
    let same = vocab_embedding(ids.clone(), &embedding.weight)?;
    assert_eq!(x.array(), same.array());

    let settings = ParallelVocabEmbeddingConfig { rank: 1, ..Default::default() };
    let shard = ParallelVocabEmbedding::<12, 8, 4, f32, _>::new(&dev, settings)?;
    assert_eq!(shard.try_forward(ids)?.array()[0][0], [0.0; 8]); // id 7 belongs to rank 2

    let ones = GroupRmsNormConfig { init_range: (1.0, 1.0), ..Default::default() };
    let norm = GroupRmsNorm::<8, 8, f32, _>::new(&dev, ones)?;
    let same = group_rms_norm(x.clone(), &norm.weight, 8, 1e-5)?;
    assert_eq!(norm.try_forward(x.clone())?.array(), same.array());
    let norm = LayerNorm::<8, f32, _>::new(&dev, Default::default())?;
    let same = layer_norm(x.clone(), &norm.weight, &norm.bias, 1e-5)?;
    assert_eq!(norm.try_forward(x.clone())?.array(), same.array());

    let seed = 42;
    let mlp = SwiGlu::<8, 24, f32, _>::new(&dev, seed, 0.02)?;
    assert_eq!(mlp.try_forward(x.clone())?.shape().concrete(), [1, 3, 8]);
    let (gate, up) = (x.clone(), x.clone() * 1.0);
    assert_eq!(silu_mul(gate, up)?.shape().concrete(), [1, 3, 8]);

    let rope = NtkAwareRope::<4, _>::new(&dev, Default::default())?;
    let q = x.clone().reshape::<Rank4<1, 3, 2, 4>>();
    let k = x.slice((.., .., ..4)).realize::<Rank3<1, 3, 4>>().reshape::<Rank4<1, 3, 1, 4>>();
    let v = k.clone() * 2.0;
    let tables = rope.rows(&dev, 0..3)?;
    let (cos, sin) = (tables.cos, tables.sin);
    let turned = apply_rotary_pos_emb(q.clone(), &cos, &sin)?;
    assert_eq!(turned.array(), rope.try_forward(q.clone())?.array());
    let offset = 5;
    let later = rope.try_forward((q.clone(), offset))?;
    assert_ne!(later.array(), turned.array());
    assert_eq!(repeat_kv(k.clone(), 2)?.shape().concrete(), [1, 3, 2, 4]);
    let y = causal_attention(q, k, v, &[])?;
    assert_eq!(y.shape().concrete(), [1, 3, 2, 4]);
    Ok(())
}

/// What the sections "In PyTorch" show beside the layers of `tests/goldens/layers.py`.
#[test]
fn chapters() -> Result<()> {
    let dev = dev();
    let norm = GroupRmsNorm::<8, 4, f32, _>::new(&dev, GroupRmsNormConfig::default())?;
    assert_eq!(norm.weight.shape().concrete(), [8]);
    let embedding = VocabEmbedding::<12, 8, f32, _>::new(&dev, VocabEmbeddingConfig::default())?;
    assert_eq!(embedding.weight.shape().concrete(), [12, 8]);
    let norm = LayerNorm::<8, f32, _>::new(&dev, LayerNormConfig::default())?;
    assert_eq!(norm.bias.array(), [0.0; 8]);
    let rope = NtkAwareRope::<8, _>::new(&dev, NtkAwareRopeConfig::default())?;
    assert_eq!(rope.ratio(), 1);
    let model = LlamaTransformer::<50, 16, 4, 2, 4, 48, 2, f32, _>::new(&dev, Default::default())?;
    let targets = dev.tensor([[42, 7, 8]]);
    let logits = model.try_forward(dev.tensor([[7, 42, 7]]))?;
    let loss = cross_entropy(logits, &targets)?;
    assert!((loss.array() - 50f32.ln()).abs() < 1.0);

    let table = sinusoids(0..16, 8, 10_000.0)?;
    assert_eq!(table[..2], [0.0, 1.0]);
    let (r1, r2) = (dev.tensor([1.0f32, 2.0]), dev.tensor([0.5f32, 1.0]));
    let bias = kerple_bias::<_, _, _, NoneTape>(KerpleKernel::Logarithmic, &r1, &r2, 16)?;
    assert_eq!(bias.shape().concrete(), [2, 16]);
    let tables = rope.rows(&dev, 0..3)?;
    let rope = LearnableRope::<8, f32, _>::new(&dev, LearnableRopeConfig::default())?;
    assert_eq!(rope.theta.as_vec()[0], 1.0);
    let q: Tensor<Rank4<1, 3, 2, 8>, f32, _> = dev.sample_normal();
    let (k, v) = (q.clone() * 0.5, q.clone() * 2.0);
    let y = linear_attention(q, k, v, Some(&tables))?;
    assert_eq!(y.shape().concrete(), [1, 3, 2, 8]);
    Ok(())
}

// --- What surprises first -----------------------------------------------------------------------

#[test]
fn a_value_moves() {
    // ANCHOR: moves
    let x = dev().tensor([3.0f32, 4.0]);
    let y = x.clone(); // without `.clone()`, x could not be used below
    let y = y + 1.0; //   a new tensor, under the old name
    assert_eq!(x.array(), [3.0, 4.0]);
    // ANCHOR_END: moves
    assert_eq!(y.array(), [4.0, 5.0]);
}

#[test]
fn nothing_is_in_place() {
    // ANCHOR: in_place
    let (weight, step) = (dev().tensor([1.0f32, 2.0]), dev().tensor([0.5f32, 0.5]));
    let weight = weight - step;
    let weight = weight.clamp(0.75, f64::INFINITY);
    assert_eq!(weight.array(), [0.75, 1.5]);
    // ANCHOR_END: in_place
}

#[test]
fn an_error_is_a_value() {
    // ANCHOR: errors
    let embedding = VocabEmbedding::<10, 4, f32, Dev>::new(&dev(), Default::default()).unwrap();
    match embedding.try_forward(dev().tensor([[7, 10]])) {
        Ok(rows) => println!("{:?}", rows.array()),
        Err(error) => assert!(matches!(error, Error::TokenId { id: 10, position: 1, .. })),
    }
    // ANCHOR_END: errors
}

// ANCHOR: devices
/// Any float type, any device: both are the same on both sides, or the call does not compile.
fn doubled<F: Float, D: Backend<F>>(x: Tensor<Rank1<3>, F, D>) -> Tensor<Rank1<3>, F, D> {
    let two = x.device().ones() * F::nearest(2.0);
    x * two
}
// ANCHOR_END: devices

#[test]
fn the_device_is_a_type() {
    assert_eq!(doubled(dev().tensor([1.0f32, 2.0, 3.0])).array(), [2.0, 4.0, 6.0]);
}

// --- The page -------------------------------------------------------------------------------------

/// All Rust in the tables is in this file, and the line beside each layer in a chapter.
#[test]
fn every_phrase_compiles() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let code = squeezed(&read("tests/suite/from_pytorch.rs"));
    let page = read("book/src/from-pytorch.md");
    let mut phrases = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cell = row.split(" | ").nth(1).unwrap_or_default();
        for phrase in cell.split('`').skip(1).step_by(2) {
            phrases += 1;
            assert!(code.contains(&squeezed(phrase)), "this phrase is not compiled: {phrase}");
        }
    }
    assert!(phrases > 60, "{phrases}");
    for of in contract::registry::COMPONENTS {
        let chapter = read(&format!("book/src/{}.md", of.slug));
        let Some((_, text)) = chapter.split_once("\n## In PyTorch {#in-pytorch}\n") else {
            continue;
        };
        let (_, line) = text.split_once("```rust\n").unwrap();
        let line = line.lines().next().unwrap();
        assert!(code.contains(&squeezed(line)), "{}: this is not compiled: {line}", of.slug);
        let layer = format!("tests/goldens/layers.py:{}}}}}", of.slug);
        assert!(text.contains(&layer), "{}: no layer in Python", of.slug);
    }
}
