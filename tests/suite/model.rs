//! The decoder and its parts: against loops in `f64`, and against themselves. What one call computes, pieces and
//! single tokens compute too; nobody sees the future, padding, or another row of the batch.

use crate::oracle::model as oracle;
use crate::support::*;
use oracle::{Sizes, Weights};
use quadrivium::attention::*;
use quadrivium::feedforward::{ffn_hidden_size, silu_mul};
use quadrivium::loss::{IGNORE, cross_entropy, perplexity};
use quadrivium::model::*;
use quadrivium::position::NoPosition;
use quadrivium::tensor::nn::tensor_collection::{
    RecursiveWalker, TensorVisitor, ViewTensorMut, ViewTensorName,
};
use quadrivium::tensor::*;
use quadrivium::*;

const V: usize = 11;
const H: usize = 12;
const FF: usize = 10;
const L: usize = 2;
const HD: usize = 4;
const NH: usize = 3;

type Llama<const NKV: usize, F = f64> = LlamaTransformer<V, H, NH, NKV, HD, FF, L, F, Dev>;

fn sizes(nkv: usize) -> Sizes {
    Sizes { h: H, nh: NH, nkv, layers: L, eps: 1e-6, base: 10_000.0 }
}

/// Reads all weights, or moves one element of one.
struct Visit<'w> {
    weights: &'w mut Weights,
    grads: Option<&'w Gradients<f64, Dev>>,
}

impl TensorVisitor<f64, Dev> for Visit<'_> {
    type Viewer = (ViewTensorMut, ViewTensorName);
    type Err = Error;
    type E2 = f64;
    type D2 = Dev;

    fn visit<S: Shape>(
        &mut self,
        _: TensorOptions<S, f64, Dev>,
        (tensor, name): (&mut Tensor<S, f64, Dev>, String),
    ) -> Result<Option<Tensor<S, f64, Dev>>, Error> {
        let values = match self.grads {
            None => tensor.as_vec(),
            Some(grads) => grads.get(tensor).as_vec(),
        };
        self.weights.insert(name, values);
        Ok(None)
    }
}

/// The weights of a model, or its gradients, by name.
pub(crate) fn named<M: TensorCollection<f64, Dev>>(
    model: &mut M,
    grads: Option<&Gradients<f64, Dev>>,
) -> Weights {
    let mut weights = Weights::new();
    let mut visit = Visit { weights: &mut weights, grads };
    let walker = &mut RecursiveWalker { m: (model, String::new()), f: &mut visit };
    M::iter_tensors(walker).unwrap();
    weights
}

/// Weights that are large enough for attention to choose.
fn config(seed: u64) -> LlamaConfig {
    LlamaConfig { init_std: 0.5, init_seed: seed, ..Default::default() }
}

fn text(b: usize, s: usize, seed: usize) -> Vec<usize> {
    (0..b * s).map(|i| ((i + seed) * 2_654_435_761 % 1_000_003) % V).collect()
}

fn against_the_loops<const NKV: usize>() {
    for (b, s) in [(1, 1), (1, 5), (3, 4)] {
        let mut model = Llama::<NKV>::new(&dev(), config(1)).unwrap();
        let (ids_of, targets) = (text(b, s, 3), text(b, s, 8));
        let weights = named(&mut model, None);
        let mut want = Vec::new();
        for row in ids_of.chunks(s) {
            want.extend(oracle::logits(sizes(NKV), &weights, row));
        }
        let got = model.try_forward(ids(&ids_of, (b, s))).unwrap();
        // Some hundred roundings of values of size 10.
        assert_within(&got.as_vec(), &want, |i| 1e-12 * want[i].abs().max(1.0));

        let asked: Vec<Option<usize>> =
            targets.iter().enumerate().map(|(i, id)| (i % 3 != 1).then_some(*id)).collect();
        let loss_of = |weights: &Weights| {
            let rows = ids_of.chunks(s).flat_map(|row| oracle::logits(sizes(NKV), weights, row));
            oracle::cross_entropy(&rows.collect::<Vec<_>>(), V, &asked)
        };
        let targets: Vec<usize> = asked.iter().map(|id| id.unwrap_or(IGNORE)).collect();
        let grads = model.try_alloc_grads().unwrap();
        let traced = ids(&ids_of, (b, s)).traced(grads);
        let loss = cross_entropy(model.try_forward(traced).unwrap(), &ids(&targets, (b, s)));
        let loss = loss.unwrap();
        assert_within(&[loss.array()], &[loss_of(&weights)], |_| 1e-12 * loss.array().abs());
        let grads = named(&mut model, Some(&loss.try_backward().unwrap()));
        for (name, gradient) in &grads {
            // Every seventh element: central differences of the fourth order.
            for at in (0..gradient.len()).step_by(7) {
                let step = 1e-4;
                let moved = |by: f64| {
                    let mut weights = weights.clone();
                    weights.get_mut(name).unwrap()[at] += by;
                    loss_of(&weights)
                };
                let near = moved(step) - moved(-step);
                let far = moved(2.0 * step) - moved(-2.0 * step);
                let slope = (8.0 * near - far) / (12.0 * step);
                let off = (slope - gradient[at]).abs();
                assert!(off < 1e-9, "{name}[{at}]: {}, not {slope}", gradient[at]);
            }
        }
    }
}

#[test]
fn multi_head_grouped_and_multi_query_are_the_loops() {
    against_the_loops::<3>();
    against_the_loops::<1>();
}

/// The assignment's own size.
#[test]
fn the_assignments_size() {
    const FF: usize = 704;
    assert_eq!(ffn_hidden_size(256, 64, None).unwrap(), FF);
    let model = LlamaTransformer::<1000, 256, 8, 2, 32, FF, 2, f32, Dev>::new(&dev(), config(1));
    let model = model.unwrap();
    let ids: Tensor<Rank2<2, 16>, usize, Dev> = ids(&[5; 32], Default::default());
    assert_eq!(model.try_forward(ids).unwrap().shape().concrete(), [2, 16, 1000]);
}

fn in_pieces<const NKV: usize>() {
    let model = Llama::<NKV>::new(&dev(), config(2)).unwrap();
    for (b, pieces) in [(1, vec![1; 7]), (1, vec![3, 4]), (3, vec![2, 1, 4]), (3, vec![1; 7])] {
        let text = text(b, 7, 1);
        let whole = model.try_forward(ids(&text, (b, 7))).unwrap().as_vec();
        let mut cache = LlamaCache::new(7);
        let mut first = 0;
        for s in pieces {
            let rows = text.chunks(7).flat_map(|row| &row[first..first + s]).copied();
            let piece = ids(&rows.collect::<Vec<_>>(), (b, s));
            let logits = model.try_decode(piece, &mut cache).unwrap().as_vec();
            for (row, logits) in logits.chunks(s * V).enumerate() {
                let want = &whole[(row * 7 + first) * V..][..s * V];
                assert_within(logits, want, |i| 1e-13 * want[i].abs().max(1.0));
            }
            first += s;
            assert_eq!(cache.positions(), first);
        }
        let full = model.try_decode(ids(&vec![1; b], (b, 1)), &mut cache).unwrap_err();
        assert_eq!(full, Error::CacheFull { positions: 7, capacity: 7, asked: 1 });
        assert_eq!(cache.positions(), 7);
    }
}

#[test]
fn one_call_is_pieces_is_token_by_token() {
    in_pieces::<3>();
    in_pieces::<1>();
}

/// A changed token changes no logit before it, not by a bit; and it changes its own.
#[test]
fn nobody_sees_the_future() {
    let model = Llama::<1, f32>::new(&dev(), config(3)).unwrap();
    let before = text(2, 6, 5);
    let logits = |text: &[usize]| model.try_forward(ids(text, (2, 6))).unwrap().as_vec();
    let whole = logits(&before);
    for at in 0..6 {
        let mut changed = before.clone();
        changed[at] = (changed[at] + 1) % V;
        let got = logits(&changed);
        assert_same_bits(&got[..at * V], &whole[..at * V]);
        assert_ne!(got[at * V..][..V], whole[at * V..][..V]);
        // Nor does the other row of the batch.
        assert_same_bits(&got[6 * V..], &whole[6 * V..]);
    }
}

/// Texts of different lengths in one batch, filled up at their starts, say what they say alone.
#[test]
fn nobody_sees_padding() {
    let mut model = Llama::<1>::new(&dev(), config(4)).unwrap();
    let weights = named(&mut model, None);
    let (text, padding) = (text(3, 6, 2), [0, 2, 5]);
    let got = model.try_forward_padded(ids(&text, (3, 6)), &padding).unwrap().as_vec();
    let mut cache = LlamaCache::with_padding(6, padding.to_vec()).unwrap();
    let mut decoded = Vec::new();
    for t in 0..6 {
        let token: Vec<usize> = text.chunks(6).map(|row| row[t]).collect();
        decoded.push(model.try_decode(ids(&token, (3, 1)), &mut cache).unwrap().as_vec());
    }
    for (row, pad) in padding.into_iter().enumerate() {
        let ids_of = &text[row * 6..][..6];
        // A token of padding sees only itself: it is a text of its own.
        let texts = ids_of[..pad].chunks(1).chain([&ids_of[pad..]]);
        let want: Vec<f64> =
            texts.flat_map(|text| oracle::logits(sizes(1), &weights, text)).collect();
        let got = &got[row * 6 * V..][..6 * V];
        assert_within(got, &want, |i| 1e-12 * want[i].abs().max(1.0));
        for t in 0..6 {
            let (got, want) = (&decoded[t][row * V..][..V], &want[t * V..][..V]);
            assert_within(got, want, |i| 1e-12 * want[i].abs().max(1.0));
        }
    }
    let refused = model.try_forward_padded(ids(&text, (3, 6)), &[0, 6, 0]).unwrap_err();
    assert_eq!(refused, Error::Padding { row: 1, padding: 6, length: 6 });
    assert!(model.try_forward_padded(ids(&text, (3, 6)), &[0, 1]).is_err());
}

/// The sharded table, the tied output and a model without positions.
#[test]
fn other_parts_fit() {
    let whole = Llama::<3>::new(&dev(), config(5)).unwrap();
    let text = ids(&text(2, 5, 1), (2, 5));
    let want = whole.try_forward(text.clone()).unwrap().as_vec();
    let sharded = LlamaTransformer {
        embed_tokens: Shards::<V, H, 11, f64, Dev>::of(&whole.embed_tokens.weight).unwrap(),
        position: NoPosition,
        layers: whole.layers.clone(),
        norm: whole.norm.clone(),
        lm_head: whole.lm_head.clone(),
    };
    assert_eq!(sharded.try_forward(text.clone()).unwrap().as_vec(), want);

    type TiedLlama = LlamaTransformer<V, H, NH, 1, HD, FF, L, f64, Dev, Tied>;
    let mut tied = TiedLlama::tied(&dev(), config(6)).unwrap();
    let weights = named(&mut tied, None);
    assert!(!weights.contains_key("lm_head.weight"));
    let got = tied.try_forward(text.clone()).unwrap().as_vec();
    let rows = text.as_vec();
    let want: Vec<f64> =
        rows.chunks(5).flat_map(|row| oracle::logits(sizes(1), &weights, row)).collect();
    assert_within(&got, &want, |i| 1e-12 * want[i].abs().max(1.0));
    let sharded = LlamaTransformer {
        embed_tokens: Shards::<V, H, 11, f64, Dev>::of(&tied.embed_tokens.weight).unwrap(),
        position: NoPosition,
        layers: tied.layers.clone(),
        norm: tied.norm.clone(),
        lm_head: Tied,
    };
    // A GPU multiplies with a part of the table in another order than with all of it.
    assert_within(&sharded.try_forward(text).unwrap().as_vec(), &got, |i| 1e-12 * got[i].abs());
}

/// Without an encoding, the last token sees a bag: the order of the earlier ones changes nothing.
#[test]
fn without_an_encoding_the_past_is_a_bag() {
    let attention =
        GroupedQueryAttention::<H, NH, 1, HD, f64, Dev, _>::new(&dev(), 7, 0.5, NoPosition)
            .unwrap();
    let x: Vec<f64> = (0..4 * H).map(|i| ((i * 37) % 17) as f64 / 8.0 - 1.0).collect();
    let last = |order: [usize; 4]| {
        let rows = order.into_iter().flat_map(|t| x[t * H..][..H].to_vec()).collect::<Vec<_>>();
        let x: Tensor<Rank3<1, 4, H>, f64, Dev> = tensor(&rows, Default::default());
        attention.try_forward(x).unwrap().as_vec()[3 * H..].to_vec()
    };
    let want = last([0, 1, 2, 3]);
    assert_within(&last([2, 0, 1, 3]), &want, |i| 1e-14 * want[i].abs().max(1.0));
    assert_ne!(last([0, 1, 3, 2]), want);
}

/// Query heads 0 and 1 read key head 0: interleaved, not tiled.
#[test]
fn heads_are_interleaved() {
    let x: Tensor<Rank4<1, 1, 2, 1>, f32, Dev> = tensor(&[1.0, 2.0], Default::default());
    assert_eq!(repeat_kv(x.clone(), 2).unwrap().as_vec(), [1.0, 1.0, 2.0, 2.0]);
    let y = repeat_kv(x.leaky_trace(), 3).unwrap();
    let weights: Tensor<(Const<1>, Const<1>, usize, Const<1>), f32, Dev> =
        tensor(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0], (Const, Const, 6, Const));
    let grads = (y * weights).sum::<Rank0, _>().backward();
    assert_eq!(grads.get(&x).as_vec(), [7.0, 56.0]);
    assert!(repeat_kv(x, 0).is_err());
}

/// Zero output matrices make a block the identity: what is behind the norms only adds.
#[test]
fn a_block_adds() {
    let mut model = Llama::<1>::new(&dev(), config(8)).unwrap();
    let block = &mut model.layers.modules[0];
    block.self_attn.o_proj.weight = dev().zeros();
    block.mlp.down_proj.weight = dev().zeros();
    let x: Tensor<Rank3<2, 3, H>, f64, Dev> = dev().sample_normal();
    assert_eq!(block.try_forward(x.clone()).unwrap().array(), x.array());
}

#[test]
fn the_size_between_is_rounded_up() {
    let size = |h, multiple, factor| ffn_hidden_size(h, multiple, factor).unwrap();
    assert_eq!(size(4096, 256, None), 11_008);
    assert_eq!(size(4096, 1024, Some(1.3)), 14_336);
    assert_eq!(size(8192, 4096, Some(1.3)), 28_672);
    assert_eq!(size(3, 8, None), 8); // already a multiple
    assert_eq!(size(4, 8, None), 16); // 10 is not
    assert_eq!(size(1, 1, None), 2);
    assert_eq!(size(1, 4, Some(0.1)), 4); // at least something
    for (h, multiple, factor) in [
        (0, 1, None),
        (1, 0, None),
        (usize::MAX, 1, None),
        (8, 1, Some(0.0)),
        (8, 1, Some(f64::NAN)),
    ] {
        assert!(ffn_hidden_size(h, multiple, factor).is_err(), "{h} {multiple} {factor:?}");
    }
}

#[test]
fn the_gate_is_the_loops() {
    let (gate, up) = ([-40.0, -1.0, 0.0, 0.5, 90.0, -800.0], [1.0, 2.0, 3.0, -4.0, 0.5, 1.0]);
    let shape = (Const::<1>, Const::<2>, Const::<3>);
    let (a, b) = (tensor(&gate, shape), tensor(&up, shape));
    let want = oracle::silu_mul(&gate, &up);
    let y = silu_mul(a.leaky_trace(), b.retaped::<OwnedTape<f64, Dev>>()).unwrap();
    assert_within(&y.as_vec(), &want, |i| 1e-15 * want[i].abs());
    let grads = y.sum::<Rank0, _>().backward();
    for i in 0..6 {
        let open = 1.0 / (1.0 + (-gate[i]).exp());
        let want = up[i] * open * (1.0 + gate[i] * (1.0 - open));
        let got = grads.get(&a).as_vec()[i];
        assert!((got - want).abs() <= 1e-14 * want.abs(), "{i}: {got}, not {want}");
        let (got, want) = (grads.get(&b).as_vec()[i], gate[i] * open);
        assert!((got - want).abs() <= 1e-14 * want.abs(), "up {i}: {got}, not {want}");
    }
}

/// Of uniform logits the loss is ln v, and each row of the gradient sums to 0.
#[test]
fn the_loss() {
    let logits: Tensor<Rank3<1, 2, 5>, f64, Dev> = dev().zeros();
    let loss = cross_entropy(logits, &ids(&[3, 0], (Const::<1>, Const::<2>))).unwrap().array();
    assert_within(&[loss, perplexity(loss)], &[5.0_f64.ln(), 5.0], |_| 1e-14);

    let values: Vec<f64> = (0..15).map(|i| ((i * 7) % 11) as f64 * 100.0 - 500.0).collect();
    let logits: Tensor<Rank3<1, 3, 5>, f64, Dev> = tensor(&values, Default::default());
    let targets = ids(&[4, IGNORE, 2], (Const::<1>, Const::<3>));
    let loss = cross_entropy(logits.leaky_trace(), &targets).unwrap();
    let want = oracle::cross_entropy(&values, 5, &[Some(4), None, Some(2)]);
    assert_within(&[loss.array()], &[want], |_| 1e-13 * want);
    let dlogits = loss.backward().get(&logits).as_vec();
    for (nth, row) in dlogits.chunks(5).enumerate() {
        assert!(row.iter().sum::<f64>().abs() < 1e-15, "{row:?}");
        assert_eq!(row.iter().all(|d| *d == 0.0), nth == 1, "{row:?}");
    }

    let refused = |targets: &[usize]| {
        cross_entropy(logits.clone(), &ids(targets, (Const::<1>, Const::<3>))).unwrap_err()
    };
    assert_eq!(refused(&[0, 5, 1]), Error::TokenId { id: 5, batch: 0, position: 1, vocab_size: 5 });
    assert!(refused(&[IGNORE; 3]).to_string().contains("asked about"), "{}", refused(&[IGNORE; 3]));
}

#[test]
fn tokens_are_drawn() {
    let logits = [0.0, 2.0, 1.0, f32::NEG_INFINITY, 2.0];
    let draw = |config: SamplingConfig, times: usize| -> Vec<usize> {
        let mut sampler = Sampler::new(config).unwrap();
        (0..times).map(|_| sampler.next(&logits).unwrap()).collect()
    };
    assert_eq!(draw(SamplingConfig::greedy(), 3), [1; 3]);
    let near = SamplingConfig { temperature: 1e-9, top_k: Some(1), ..Default::default() };
    assert_eq!(draw(near, 3), [1; 3]);
    let two = SamplingConfig { top_k: Some(2), ..Default::default() };
    assert!(draw(two, 100).iter().all(|id| [1, 4].contains(id)));
    // Probabilities 0.054, 0.395, 0.145, 0, 0.395: two tokens are 0.79.
    let nucleus = SamplingConfig { top_p: 0.7, ..Default::default() };
    assert!(draw(nucleus, 100).iter().all(|id| [1, 4].contains(id)));
    let wider = SamplingConfig { top_p: 0.8, ..Default::default() };
    assert!(draw(wider, 100).contains(&2) && !draw(wider, 100).contains(&0));

    let drawn = draw(SamplingConfig::default(), 20_000);
    assert_eq!(drawn, draw(SamplingConfig::default(), 20_000));
    assert_ne!(drawn, draw(SamplingConfig { seed: 1, ..Default::default() }, 20_000));
    let total: f64 = logits.iter().map(|x| f64::from(*x).exp()).sum();
    for (id, logit) in logits.iter().enumerate() {
        let (p, n) = (f64::from(*logit).exp() / total, drawn.len() as f64);
        let got = drawn.iter().filter(|&&drawn| drawn == id).count() as f64;
        // Five standard deviations of a binomial; the seed is fixed.
        assert!(
            (got - n * p).abs() <= 5.0 * (n * p * (1.0 - p)).sqrt(),
            "{id}: {got} of {}",
            n * p
        );
    }

    let mut sampler = Sampler::new(SamplingConfig::default()).unwrap();
    assert!(sampler.next(&[]).is_err());
    assert!(sampler.next(&[f32::NEG_INFINITY]).is_err());
    assert!(sampler.next(&[0.0, f32::NAN]).is_err());
    for bad in [
        SamplingConfig { temperature: -1.0, ..Default::default() },
        SamplingConfig { temperature: f64::NAN, ..Default::default() },
        SamplingConfig { top_k: Some(0), ..Default::default() },
        SamplingConfig { top_p: 0.0, ..Default::default() },
        SamplingConfig { top_p: 1.1, ..Default::default() },
    ] {
        assert!(Sampler::new(bad).is_err(), "{bad:?}");
    }
}

/// Views of other strides give the values and the gradients of what they show.
#[test]
fn views_are_read_in_their_order() {
    type Three = Tensor<(usize, usize, usize), f64, Dev>;
    type Traced3 = Tensor<(usize, usize, usize), f64, Dev, OwnedTape<f64, Dev>>;
    let draw = |count: usize| -> Vec<f64> {
        (0..count).map(|i| ((i * 7919) % 101) as f64 / 50.0 - 1.0).collect()
    };
    let weigh = |y: Traced3| {
        let weights = tensor(&draw(y.shape().num_elements()), *y.shape());
        (y * weights).sum::<Rank0, _>()
    };
    let weight: Tensor<(usize, usize), f64, Dev> = tensor(&draw(5 * 4), (5, 4));
    let up: Three = tensor(&draw(24), (2, 3, 4));
    let targets = ids(&[1, 3, 0, 2, 1, 1], (2, 3));
    let loss_of = |which: usize, x: Traced3| match which {
        0 => weigh(functional::linear(x, &weight).unwrap()),
        1 => weigh(silu_mul(x, up.retaped::<OwnedTape<f64, Dev>>()).unwrap()),
        2 => cross_entropy(x, &targets).unwrap(),
        _ => {
            let heads = x.reshape_like(&(2, 3, 2, 2));
            let [k, v] = [1, 2].map(|_| heads.with_empty_tape());
            let y = causal_attention(heads, k, v, &[]).unwrap();
            weigh(y.reshape_like(&(2, 3, 4)))
        }
    };
    for which in 0..4 {
        let across: Three = tensor(&draw(24), (3, 2, 4));
        let plain: Three = across.clone().permute::<_, Axes3<1, 0, 2>>().contiguous();
        let of_view = loss_of(which, across.leaky_trace().permute::<_, Axes3<1, 0, 2>>());
        let of_plain = loss_of(which, plain.leaky_trace());
        assert_eq!(of_view.array(), of_plain.array(), "{which}");
        let view = of_view.backward().get(&across).permute::<_, Axes3<1, 0, 2>>();
        let plain = of_plain.backward().get(&plain).as_vec();
        assert!(plain.iter().any(|x| *x != 0.0));
        assert_eq!(view.as_vec(), plain, "{which}");
    }
}

/// Past its table such a RoPE turns new keys by other frequencies than those that are kept. A whole text it turns alike.
#[test]
fn kept_keys_are_not_met_by_other_frequencies() {
    let rope = NtkAwareRopeConfig { max_seq_len: 4, ..Default::default() };
    assert_eq!(rope.past_cache, PastCache::Rescale);
    let model = Llama::<1>::new(&dev(), LlamaConfig { rope, ..config(9) }).unwrap();
    let ids = |s| ids(&text(1, s, 5), (1, s));
    assert!(model.try_forward(ids(6)).is_ok());
    let mut cache = LlamaCache::new(8);
    model.try_decode(ids(3), &mut cache).unwrap();
    let error = model.try_decode(ids(2), &mut cache).unwrap_err();
    assert_eq!(error, Error::KeptKeys { positions: 5, cached_len: 4 });
    assert_eq!(cache.positions(), 3);
    model.try_decode(ids(1), &mut cache).unwrap();
}

/// In half precision a model says nearly what it says in single.
#[test]
#[cfg(feature = "f16")]
fn a_model_in_half_precision() {
    let single = Llama::<1, f32>::new(&dev(), LlamaConfig { init_std: 0.2, ..config(9) }).unwrap();
    let half = single.try_to_dtype::<f16>().unwrap();
    let text = ids(&text(2, 6, 5), (2, 6));
    let want = single.try_forward(text.clone()).unwrap().as_vec();
    let got = half.try_forward(text.clone()).unwrap().as_vec();
    let largest = want.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    for (got, want) in got.iter().zip(&want) {
        // Some tens of roundings to 11 bits.
        assert!((got.to_f32() - want).abs() < 0.02 * largest, "{got}, not {want}");
    }
    let loss = cross_entropy(half.try_forward(text.leaky_trace()).unwrap(), &text).unwrap();
    let grads = loss.backward();
    assert!(grads.get(&half.embed_tokens.weight).as_vec().iter().any(|g| *g != f16::ZERO));
}
