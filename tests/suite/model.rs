//! The decoder in `f64`: beside the loops of `oracle/model.rs`, and beside itself. What one call computes, pieces compute too,
//! and the future is never seen.

mod unasked;
mod weights;

use crate::loss::loops as cross_entropy_by_loops;
use crate::oracle::model::{Sizes, Weights, logits};
use crate::support::*;
use proptest::prelude::*;
use quadrivium::loss::{IGNORE, cross_entropy};
use quadrivium::model::*;
use quadrivium::tensor::*;
use quadrivium::*;
pub(crate) use weights::named;

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
            want.extend(logits(sizes(NKV), &weights, row));
        }
        let got = model.try_forward(ids(&ids_of, (b, s))).unwrap();
        // Some hundred roundings of values of size 10.
        assert_within(&got.as_vec(), &want, |i| 1e-12 * want[i].abs().max(1.0));

        let asked: Vec<Option<usize>> =
            targets.iter().enumerate().map(|(i, id)| (i % 3 != 1).then_some(*id)).collect();
        let loss_of = |weights: &Weights| {
            let rows = ids_of.chunks(s).flat_map(|row| logits(sizes(NKV), weights, row));
            cross_entropy_by_loops(&rows.collect::<Vec<_>>(), V, &asked)
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

/// A text in any pieces has the logits of one call, and a full cache takes no more.
#[test]
fn one_call_is_pieces_is_token_by_token() {
    let model = Llama::<1>::new(&dev(), config(2)).unwrap();
    let cuts = proptest::collection::vec(any::<bool>(), 6);
    forall((1..4usize, 0..100usize, cuts), |(b, seed, cuts)| {
        let text = text(b, 7, seed);
        let whole = model.try_forward(ids(&text, (b, 7))).unwrap().as_vec();
        let mut cache = LlamaCache::new(7);
        let ends = (1..7).filter(|end| cuts[end - 1]).chain([7]);
        for end in ends {
            let (first, s) = (cache.positions(), end - cache.positions());
            let rows = text.chunks(7).flat_map(|row| &row[first..end]).copied();
            let piece = ids(&rows.collect::<Vec<_>>(), (b, s));
            let logits = model.try_decode(piece, &mut cache).unwrap().as_vec();
            for (row, logits) in logits.chunks(s * V).enumerate() {
                let want = &whole[(row * 7 + first) * V..][..s * V];
                assert_within(logits, want, |i| 1e-13 * want[i].abs().max(1.0));
            }
            assert_eq!(cache.positions(), end);
        }
        let full = model.try_decode(ids(&vec![1; b], (b, 1)), &mut cache).unwrap_err();
        assert_eq!(full, Error::CacheFull { positions: 7, capacity: 7, asked: 1 });
        assert_eq!(cache.positions(), 7);
    });
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
