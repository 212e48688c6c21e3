//! Attention and its cache: what the contract does not ask of them. Gradients in `f64`, dfdx's own softmax, padding, words of refusals,
//! clones of a cache.

use super::*;
use quadrivium::Error;
use quadrivium::attention::KvCache;
use quadrivium::functional::{repeat_kv, softmax_backward};

/// The gradients are those of the forward pass: central differences of the fourth order, whose error at a step
/// of 2^-8 is a fifth derivative, below 100 here, times 2^-32 / 30.
#[test]
fn agrees_with_finite_differences() {
    let (of_q, of_k) = ((1, 2, 4, 2), (1, 3, 2, 2));
    let inputs = [heads(of_q, 1.7), heads(of_k, 2.3), heads(of_k, 3.1)];
    let dy = wave(16, 0.9);
    let loss = |inputs: [Heads; 3]| -> f64 {
        let [q, k, v] = inputs;
        let y = causal_attention(q, k, v, &[]).unwrap().as_vec();
        dot(&y, &dy)
    };
    let [q, k, v] = inputs.each_ref().map(|x| x.leaky_trace());
    let grads = backward(causal_attention(q, k, v, &[]).unwrap(), &dy);
    for part in 0..3 {
        let at = inputs[part].as_vec();
        let moved = |i: usize, step: f64| {
            let (mut inputs, mut at) = (inputs.clone(), at.clone());
            at[i] += step;
            inputs[part] = tensor(&at, *inputs[part].shape());
            loss(inputs)
        };
        let step = 2f64.powi(-8);
        let slope = |i: usize| {
            let near = moved(i, step) - moved(i, -step);
            (8.0 * near - (moved(i, 2.0 * step) - moved(i, -2.0 * step))) / (12.0 * step)
        };
        let want: Vec<f64> = (0..at.len()).map(slope).collect();
        assert_within(&grads.get(&inputs[part]).as_vec(), &want, |_| 1e-9);
    }
}

/// The softmax's gradient by hand is what dfdx derives.
#[test]
fn softmax_backward_is_dfdx_own() {
    let shape = (2, 3, 2, 5);
    let (scores, dy) = (heads(shape, 1.7), heads(shape, 0.9));
    let y = scores.clone().softmax::<Axis<3>>();
    let got = softmax_backward(y, dy.clone()).unwrap().as_vec();
    let grads = backward(scores.leaky_trace().softmax::<Axis<3>>(), &dy.as_vec());
    assert_within(&got, &grads.get(&scores).as_vec(), |_| 1e-15);

    let error = softmax_backward(heads(shape, 1.0), heads((2, 3, 2, 4), 1.0)).unwrap_err();
    assert!(matches!(error, Error::Shape { .. }), "{error}");
}

/// Tokens that are no text are seen only by themselves: not in the mask, and not in the values.
#[test]
fn padding_is_not_seen() {
    let mask = causal_mask(0, 3, 3, &[0, 2]);
    let rows: Vec<String> = mask
        .chunks(3)
        .map(|row| row.iter().map(|&m| if m { '1' } else { '0' }).collect())
        .collect();
    assert_eq!(rows, ["100", "110", "111", "100", "010", "001"]);

    let (of_q, of_k, padding) = ((2, 2, 4, 2), (2, 5, 2, 2), [0, 3]);
    let [q, k, v] = [heads(of_q, 1.7), heads(of_k, 2.3), heads(of_k, 3.1)];
    let want = loops([&q, &k, &v], &padding);
    let y = causal_attention(q, k, v, &padding).unwrap();
    assert_within(&y.as_vec(), &want, |_| NEAR);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let attend = |of_q, of_k, of_v, padding: &[usize]| {
        causal_attention(heads(of_q, 1.0), heads(of_k, 1.0), heads(of_v, 1.0), padding).unwrap_err()
    };
    let (q, k) = ((1, 2, 4, 2), (1, 3, 2, 2));
    let uneven = attend(q, (1, 3, 3, 2), (1, 3, 3, 2), &[]);
    assert_eq!(uneven, Error::KeyValueHeads { num_heads: 4, num_kv_heads: 3 });
    let short = attend(q, (1, 1, 2, 2), (1, 1, 2, 2), &[]);
    assert_eq!(short, Error::FewerKeys { keys: 1, queries: 2 });
    for (of_k, of_v, padding) in [
        ((2, 3, 2, 2), (2, 3, 2, 2), &[][..]), // another batch
        ((1, 3, 2, 4), (1, 3, 2, 4), &[]),     // another head size
        (k, (1, 4, 2, 2), &[]),                // more values than keys
        (k, k, &[0, 0]),                       // padding for two texts
    ] {
        let error = attend(q, of_k, of_v, padding);
        assert!(matches!(error, Error::Shape { .. }), "{error}");
    }
    assert!(repeat_kv(heads(k, 1.0), 0).is_err());
    assert!(repeat_kv(heads(k, 1.0), usize::MAX).is_err());
}

/// A clone of a cache goes its own way, and a cleared one begins again.
#[test]
fn a_cache_is_cloned_and_cleared() {
    let piece = |s: usize, k: f64| {
        let piece: Tensor<(usize, usize, Const<2>, Const<3>), f64, Dev> =
            tensor(&wave(s * 6, k), (1, s, Const, Const));
        piece
    };
    let mut cache = KvCache::<2, 3, f64, Dev>::new(3);
    cache.push(piece(2, 1.0), piece(2, 2.0)).unwrap();
    let mut other = cache.clone();
    let (keys, _) = other.push(piece(1, 3.0), piece(1, 4.0)).unwrap();
    assert_eq!(keys.as_vec(), [wave(12, 1.0), wave(6, 3.0)].concat());
    assert_eq!((cache.positions(), other.positions()), (2, 3));
    let full = other.push(piece(1, 5.0), piece(1, 6.0)).unwrap_err();
    assert_eq!(full, Error::CacheFull { positions: 3, capacity: 3, asked: 1 });
    let (keys, _) = cache.push(piece(1, 7.0), piece(1, 8.0)).unwrap();
    assert_eq!(keys.as_vec(), [wave(12, 1.0), wave(6, 7.0)].concat());
    cache.clear();
    assert_eq!((cache.positions(), cache.batch(), cache.capacity()), (0, 0, 3));
    cache.push(piece(3, 9.0), piece(3, 1.0)).unwrap();
}
