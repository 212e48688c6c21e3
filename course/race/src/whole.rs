//! The races of a whole model: a training step and a decoded token, beside the least that each of them has to do.

use crate::{Race, race};
use benches::{copy, ids, products, values};
use model::batches::Batch;
use model::network::CLIP;
use model::sizes::{SMALL_VOCAB, Size, device, small};
use model::train::network;
use quadrivium::Error;
use quadrivium::loss::cross_entropy;
use quadrivium::model::{Embed, LlamaCache};
use quadrivium::tensor::*;
use quadrivium::training::{AdamW, AdamWConfig, clip_gradients};
use std::hint::black_box;

/// A step of `cargo course model train`.
pub const STEP: &str = "training step";
/// The same parts, each with its own forward and backward pass.
pub const PARTS: &str = "its parts";
/// The matrix products alone, on one thread, without a tensor library.
pub const PRODUCTS: &str = "its matrix products";
/// A token that follows 64 others.
pub const TOKEN: &str = "decoded token";
/// All weights, copied once.
pub const PASS: &str = "a copy of the weights";

/// A small rate, so that no weight grows, however often the step is made.
const RATE: f64 = 1e-6;

/// The model of `cargo course model train`, with the texts of a batch.
///
/// # Errors
/// What the library refuses.
pub fn races() -> model::Result<Vec<Race>> {
    Ok(vec![step()?, token()?])
}

fn step() -> model::Result<Race> {
    let (config, shape) = (Size::Small.config(), Size::Small.batch());
    let (b, s) = shape;
    let tokens = ids(b * s + 1, SMALL_VOCAB);
    let batch = Batch { ids: tokens[..b * s].to_vec(), next: tokens[1..].to_vec(), shape };
    let mut whole = network(Size::Small, config.clone(), 42)?;

    let dev = device();
    let mut model = small(&dev, 42)?;
    let mut grads = model.try_alloc_grads().map_err(Error::from)?;
    let mut adam = AdamW::new(AdamWConfig::default())?;
    let list = dev.tensor_from_vec(batch.ids.clone(), shape); //             [b, s]
    let next = dev.tensor_from_vec(batch.next.clone(), shape); //            [b, s]
    let x = benches::input(&dev, (b, s, Const::<128>)); //                   [b, s, h]
    let parts = || -> model::Result<()> {
        let rows = model.embed_tokens.try_forward(list.leaky_trace())?; //   [b, s, h]
        drop(black_box(rows.sum::<Rank0, _>().backward()));
        for block in &model.layers.modules {
            let y = block.try_forward(x.leaky_trace())?; //                  [b, s, h]
            drop(black_box(y.sum::<Rank0, _>().backward()));
        }
        let last = model.norm.try_forward(x.leaky_trace())?; //              [b, s, h]
        let logits = model.embed_tokens.products(last)?; //                  [b, s, v]
        drop(black_box(cross_entropy(logits, &next)?.backward()));
        clip_gradients(&mut model, &mut grads, CLIP)?;
        adam.update(&mut model, &mut grads, RATE)?;
        Ok(model.try_zero_grads(&mut grads).map_err(Error::from)?)
    };

    // Forward `[m, k] [k, n]`, and backward its two gradients.
    let (h, kv) = (config.hidden_size, config.num_key_value_heads * config.head_dim);
    let (f, v, m) = (config.intermediate_size, config.vocab_size, b * s);
    let of_a_block = [(h, h), (h, kv), (h, kv), (h, h), (h, f), (h, f), (f, h)];
    let blocks = (0..config.num_hidden_layers).flat_map(|_| of_a_block);
    let sizes = blocks.chain([(h, v)]).flat_map(|(k, n)| [(m, k, n), (m, n, k), (k, m, n)]);

    let mut parts = parts;
    Ok(race(
        "model",
        "model, a training step",
        vec![
            (
                STEP,
                Box::new(move || {
                    whole.look(&batch).expect("a loss");
                    whole.update(RATE).expect("a step");
                }),
            ),
            (PARTS, Box::new(move || parts().expect("parts"))),
            (PRODUCTS, Box::new(products(sizes.collect()))),
        ],
    ))
}

fn token() -> model::Result<Race> {
    const BEFORE: usize = 64;
    let dev = device();
    let model = small(&dev, 42)?;
    let mut cache = LlamaCache::new(BEFORE + 1);
    let prompt = dev.tensor_from_vec(ids(BEFORE, SMALL_VOCAB), (1, BEFORE));
    model.try_decode(prompt, &mut cache)?;
    let one = dev.tensor_from_vec(vec![7], (1, 1));
    let weights = values(model.num_trainable_params());
    let mut target = weights.clone();
    Ok(race(
        "model",
        "model, a token",
        vec![
            (
                TOKEN,
                Box::new(move || {
                    drop(black_box(model.try_decode(one.clone(), &mut cache).expect("logits")));
                    cache.truncate(BEFORE).expect("a shorter cache");
                }),
            ),
            (PASS, Box::new(move || copy(&weights, black_box(&mut target)))),
        ],
    ))
}
