//! The decoder: what the contract does not ask of it. Padding, other parts, a sampler's seed, views, half precision.

use super::*;
use quadrivium::attention::*;
use quadrivium::feedforward::{ffn_hidden_size, silu_mul};
use quadrivium::position::NoPosition;

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
        // A token of padding sees only itself: it is a separate text.
        let texts = ids_of[..pad].chunks(1).chain([&ids_of[pad..]]);
        let want: Vec<f64> = texts.flat_map(|text| logits(sizes(1), &weights, text)).collect();
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
    let want: Vec<f64> = rows.chunks(5).flat_map(|row| logits(sizes(1), &weights, row)).collect();
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

/// Past its table such a RoPE turns new keys by other frequencies than those that are kept. A whole text it turns by
/// the same ones.
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
