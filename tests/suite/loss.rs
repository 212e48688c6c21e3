//! The loss in `f64`, for any logits, beside one plain loop.

mod unasked;

use crate::support::*;
use proptest::prelude::*;
use quadrivium::loss::{IGNORE, cross_entropy, next_tokens};
use quadrivium::tensor::*;

/// Mean of `-log softmax(logits)[target]` over the places with a target.
pub(crate) fn loops(logits: &[f64], v: usize, targets: &[Option<usize>]) -> f64 {
    let mut losses = Vec::new();
    for (row, target) in logits.chunks(v).zip(targets) {
        let Some(target) = target else { continue };
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|logit| (logit - largest).exp()).sum();
        losses.push(largest + sum.ln() - row[*target]);
    }
    losses.iter().sum::<f64>() / losses.len() as f64
}

/// A batch of one text, whose places each have a target, or none.
fn as_ids(targets: &[Option<usize>]) -> Tensor<(usize, usize), usize, Dev> {
    let values: Vec<usize> = targets.iter().map(|target| target.unwrap_or(IGNORE)).collect();
    ids(&values, (1, targets.len()))
}

/// Of the library: the loss, and the gradient of the logits.
fn run(logits: &[f64], v: usize, targets: &[Option<usize>]) -> (f64, Vec<f64>) {
    let logits = tensor(logits, (1, logits.len() / v, v));
    let loss = cross_entropy(Trace::<f64, Dev>::leaky_trace(&logits), &as_ids(targets)).unwrap();
    (loss.array(), loss.backward().get(&logits).as_vec())
}

/// Logits `[s, v]` and targets; at least the first place is asked about.
fn cases() -> impl Strategy<Value = (usize, Vec<f64>, Vec<Option<usize>>)> {
    (1..6usize, 1..9usize).prop_flat_map(|(s, v)| {
        let targets = proptest::collection::vec(proptest::option::of(0..v), s - 1);
        let targets = (0..v, targets).prop_map(|(first, rest)| [vec![Some(first)], rest].concat());
        (Just(v), numbers(s * v), targets)
    })
}

/// Some tens of roundings of a loss below 11.
#[test]
fn it_is_the_formula() {
    forall(cases(), |(v, logits, targets)| {
        let want = loops(&logits, v, &targets);
        assert_within(&[run(&logits, v, &targets).0], &[want], |_| 1e-13);
        // A hundred times as large, a plain `exp` would still be a number, and its digits gone.
        let large: Vec<f64> = logits.iter().map(|logit| 100.0 * logit).collect();
        assert_within(&[run(&large, v, &targets).0], &[loops(&large, v, &targets)], |_| 1e-12);
    });
}

/// The gradient is that of the loss: central differences. It adds up to 0 at each place, and is 0 where nothing is asked.
#[test]
fn the_gradient_is_the_slope_of_the_loss() {
    forall(cases(), |(v, logits, targets)| {
        let (_, dlogits) = run(&logits, v, &targets);
        assert_within(&dlogits, &slopes(&logits, |logits| loops(logits, v, &targets)), |_| 2e-8);
        for (row, target) in dlogits.chunks(v).zip(&targets) {
            assert!(row.iter().sum::<f64>().abs() < 1e-14);
            assert!(target.is_some() || row.iter().all(|d| *d == 0.0));
        }
    });
}

/// One number added to all logits of a place changes nothing.
#[test]
fn a_shift_of_all_logits_changes_nothing() {
    forall((cases(), -1000.0..1000.0f64), |((v, logits, targets), c)| {
        let shifted: Vec<f64> = logits.iter().map(|logit| logit + c).collect();
        let [here, there] = [&logits, &shifted].map(|logits| run(logits, v, &targets).0);
        assert!((here - there).abs() <= 1e-12); // two roundings of a logit of size 1000
    });
}

/// The target at one place is the input at the next. With quickcheck: any bytes are a text.
#[test]
fn a_target_is_the_next_token() {
    fn shifted(first: u8, second: u8, others: Vec<u8>) -> bool {
        let bytes = [vec![first, second], others].concat();
        let text: Vec<usize> = bytes.into_iter().map(usize::from).collect();
        let (inputs, targets) = next_tokens(&ids(&text, (1, text.len()))).unwrap();
        inputs.as_vec() == text[..text.len() - 1] && targets.as_vec() == text[1..]
    }
    law(shifted as fn(u8, u8, Vec<u8>) -> bool);
}
