//! A whole model: a step of its training, one whose blocks are recomputed, a text that is read, tokens that are decoded. The name of an operation is
//! `model-H WORK S B`: hidden size, what is done, positions, texts.

use peers::*;
use quadrivium::loss::cross_entropy;
use quadrivium::model::*;
use quadrivium::tensor::{AutoDevice as Dev, *};
use quadrivium::training::{AdamW, AdamWConfig, clip_gradients};
use std::cell::RefCell;

/// Tokens of a call that decodes, the last of which is at the position that the operation names.
const DECODED: usize = 32;

pub fn make(dev: &Dev, name: &str) -> Option<Call> {
    let (h, work) = name.split_once(' ')?;
    match h {
        "64" => work_of::<512, 64, 4, 2, 16, 192, 2>(dev, work),
        "128" => work_of::<512, 128, 4, 2, 32, 384, 4>(dev, work), // as in class
        "256" => work_of::<1000, 256, 8, 2, 32, 704, 2>(dev, work),
        "384" => work_of::<4000, 384, 6, 2, 64, 1024, 12>(dev, work), // many blocks
        "512" => work_of::<4000, 512, 8, 4, 64, 1408, 2>(dev, work),
        "768" => work_of::<8000, 768, 12, 4, 64, 2048, 2>(dev, work),
        _ => None,
    }
}

fn work_of<
    const V: usize,
    const H: usize,
    const NH: usize,
    const NKV: usize,
    const HD: usize,
    const FF: usize,
    const L: usize,
>(
    dev: &Dev,
    work: &str,
) -> Option<Call> {
    let [work, s, b] = work.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let (s, b): (usize, usize) = (s.parse().ok()?, b.parse().ok()?);
    type Llama<
        const V: usize,
        const H: usize,
        const NH: usize,
        const NKV: usize,
        const HD: usize,
        const FF: usize,
        const L: usize,
    > = LlamaTransformer<V, H, NH, NKV, HD, FF, L, f32, Dev>;
    let model = Llama::<V, H, NH, NKV, HD, FF, L>::new(dev, LlamaConfig::default()).ok()?;
    let text: Vec<usize> = (0..b * (s + 1)).map(|i| i * 2_654_435_761 % 1_000_003 % V).collect();
    let columns = |first: usize, len: usize| {
        let rows = text.chunks(s + 1).flat_map(|row| &row[first..first + len]).copied();
        dev.tensor_from_vec(rows.collect(), (b, len))
    };
    match work {
        "step" | "recomputed" => {
            let again = work == "recomputed";
            let (ids, next) = (columns(0, s), columns(1, s));
            let adam = AdamW::new(AdamWConfig::default()).ok()?;
            let grads = model.try_alloc_grads().ok()?;
            let state = RefCell::new((model, adam, Some(grads)));
            Some(Box::new(move || {
                let (model, adam, grads) = &mut *state.borrow_mut();
                let traced = ids.clone().traced(grads.take().expect("gradients"));
                let logits = match again {
                    true => model.try_forward_recomputed(traced, 0),
                    false => model.try_forward(traced),
                };
                let logits = logits.expect("logits");
                let loss = cross_entropy(logits, &next).expect("a loss");
                let value = loss.with_empty_tape();
                let mut made = loss.try_backward().expect("gradients");
                clip_gradients(model, &mut made, 1.0).expect("a norm");
                adam.update(model, &mut made, 1e-3).expect("a step");
                model.try_zero_grads(&mut made).expect("zeros");
                *grads = Some(made);
                Box::new(move || vec![vec![0.0, value.array()]])
            }))
        }
        "prefill" => {
            let ids = columns(0, s);
            Some(Box::new(move || {
                let mut cache = LlamaCache::new(s);
                let logits = model.try_decode(ids.clone(), &mut cache).expect("logits");
                Box::new(move || vec![logits.as_vec()])
            }))
        }
        "decode" => {
            let mut cache = LlamaCache::new(s);
            model.try_decode(columns(0, s - DECODED), &mut cache).ok()?;
            let cache = RefCell::new(cache);
            let tokens: Vec<_> = (s - DECODED..s).map(|t| columns(t, 1)).collect();
            Some(Box::new(move || {
                let mut cache = cache.borrow_mut();
                cache.truncate(s - DECODED).expect("fewer positions");
                let mut last = None;
                for token in &tokens {
                    last = Some(model.try_decode(token.clone(), &mut cache).expect("logits"));
                }
                Box::new(move || last.into_iter().map(|logits| logits.as_vec()).collect())
            }))
        }
        _ => None,
    }
}
