//! The loss: what the contract does not ask of it. dfdx's own gradient, views, refusals by their names.

use super::*;
use quadrivium::Error;
use quadrivium::loss::{mean_loss, perplexity};

/// The hand-written gradient is also what dfdx derives from its own operations, where everything is asked about.
#[test]
fn agrees_with_dfdx_autograd() {
    let (b, s, v) = (2, 3, 5);
    let logits = wave(b * s * v, 1.7);
    let all: Vec<Option<usize>> = (0..b * s).map(|t| Some(t * 5 % v)).collect();
    let (loss, grads) = run(&logits, v, &all);
    let logits: Tensor<(usize, usize, usize), f64, Dev> = tensor(&logits, (1, b * s, v));
    let traced = Trace::<f64, Dev>::leaky_trace(&logits).log_softmax::<Axis<2>>();
    let want = traced.select(as_ids(&all)).sum::<Rank0, _>() / -((b * s) as f64);
    assert_within(&[loss], &[want.array()], |_| 1e-14);
    assert_within(&grads, &want.backward().get(&logits).as_vec(), |_| 1e-15);
}

/// A text of `s` tokens has `s - 1` pairs, and one that is too short is refused.
#[test]
fn texts_are_shifted_once() {
    let text = ids(&[1, 2, 3, 4, 5, 6], (2, 3));
    let (inputs, targets) = next_tokens(&text).unwrap();
    assert_eq!((inputs.as_vec(), targets.as_vec()), (vec![1, 2, 4, 5], vec![2, 3, 5, 6]));
    assert_eq!(inputs.shape().concrete(), [2, 2]);
    // A view: its elements lie in another order in memory.
    let turned = ids(&[1, 4, 2, 5, 3, 6], (3, 2)).permute::<_, Axes2<1, 0>>();
    assert_eq!(next_tokens(&turned).unwrap().1.as_vec(), [2, 3, 5, 6]);
    let error = next_tokens(&ids(&[1, 2], (2, 1))).unwrap_err();
    assert!(matches!(error, Error::Setting { got, .. } if got == 1.0), "{error}");
}

/// Refusals name what is wrong, and nothing panics.
#[test]
fn bad_calls_are_errors() {
    let logits = tensor(&[0.5f32; 12], (2, 2, 3));
    let call = |targets: &[usize], shape| cross_entropy(logits.clone(), &ids(targets, shape));
    let error = call(&[0, 1, 3, 9], (2, 2)).unwrap_err();
    assert_eq!(error, Error::TokenId { id: 3, batch: 1, position: 0, vocab_size: 3 });
    let error = call(&[IGNORE; 4], (2, 2)).unwrap_err();
    assert!(error.to_string().contains("at least 1"), "{error}");
    let error = call(&[0, 1, 2], (1, 3)).unwrap_err();
    assert_eq!(error, Error::Shape { name: "targets", expected: vec![2, 2], got: vec![1, 3] });
    let empty = tensor::<_, f32>(&[], (2, 0, 3));
    assert!(cross_entropy(empty, &ids(&[], (2, 0))).is_err());
}

/// Parts of any length give the perplexity of the whole; none at all is an error.
#[test]
fn perplexity_of_parts_is_that_of_the_whole() {
    let mean = mean_loss(&[(1.5, 40), (1.75, 52), (10.25, 4)]).unwrap();
    assert_eq!(mean, 2.0);
    assert_eq!(perplexity(mean), 2.0f64.exp());
    for parts in [&[][..], &[(1.0, 0)]] {
        assert!(mean_loss(parts).is_err());
    }
}
