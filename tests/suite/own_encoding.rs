//! The example `examples/encoding.rs`: your own encoding keeps what it promises, alone and in a model.

use crate::support::*;
use quadrivium::model::LlamaCache;
use quadrivium::position::alibi_bias;
use quadrivium::tensor::*;

#[path = "../../examples/encoding.rs"]
mod example;
use example::{decoder, windowed_bias};

#[test]
fn the_example_runs() {
    example::main().unwrap();
}

// ANCHOR: promises
/// Nothing within the window, the slope for each token past it; without a window it is ALiBi.
#[test]
fn it_is_what_it_says() {
    let dev = Cpu::default();
    let table = windowed_bias::<f64, _>(&dev, 4, 3, 6).unwrap().as_vec();
    let slope = 0.25; // of the first of 4 heads: 2^(-8/4)
    assert_eq!(table[..6], [0.0, 0.0, 0.0, 0.0, -slope, -2.0 * slope]);
    let alibi = alibi_bias::<f64, _>(&dev, 4, 6).unwrap();
    assert_eq!(windowed_bias::<f64, _>(&dev, 4, 0, 6).unwrap().as_vec(), alibi.as_vec());
    for positions in [0, usize::MAX] {
        assert!(windowed_bias::<f64, _>(&dev, 4, 3, positions).is_err());
    }
    assert!(windowed_bias::<f64, _>(&dev, 0, 3, 6).is_err());
}

/// One call, pieces, and token by token: the position of a token is counted from the start of the text.
#[test]
fn one_call_is_many() {
    let dev = Cpu::default();
    let model = decoder(&dev).unwrap();
    let text: Vec<usize> = (0..40).map(|t| (7 * t + 3) % 50).collect();
    let ids = |part: &[usize]| dev.tensor_from_vec(part.to_vec(), (1usize, part.len()));
    let whole = model.try_forward(ids(&text)).unwrap().as_vec();
    for pieces in [vec![40], vec![17, 23], vec![1; 40]] {
        let mut cache = LlamaCache::new(40);
        let (mut start, mut logits) = (0, Vec::new());
        for piece in pieces {
            let part = ids(&text[start..start + piece]);
            logits.extend(model.try_decode(part, &mut cache).unwrap().as_vec());
            start += piece;
        }
        // A product of another number of rows adds up in another order: sums of up to 64 products, seven of them on a
        // logit's path in each of two blocks, and the table's. Each rounding is at most that of the largest logit.
        let most = whole.iter().copied().map(f32::abs).fold(0.0, f32::max);
        let bound = 64.0 * 15.0 * U32 * f64::from(most);
        assert_within(&widen(&logits), &widen(&whole), |_| bound);
    }
}
// ANCHOR_END: promises
