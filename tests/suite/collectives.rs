//! Collectives: one rank alone beside the plain loss, and sums that have the same bits on any number of ranks.

mod unasked;

use crate::implementations::reference::collectives::Way;
use crate::support::*;
use contract::collectives::world;
use contract::interface::{RankOutcome, World};
use proptest::prelude::*;
use quadrivium::collectives::{Alone, tree_sum, vocab_parallel_cross_entropy};
use quadrivium::loss::{IGNORE, cross_entropy};
use quadrivium::tensor::*;

/// One rank alone has the plain loss: the library's own, whose gradient is on a tape. Both round in `f32`; logits are
/// below 4, and a sum of up to 9 exponentials and the mean over up to 6 tokens have 32 roundings at most.
#[test]
fn a_world_of_one_has_the_plain_loss() {
    let sizes = (1..=6usize, 1..=9usize).prop_flat_map(|(t, v)| {
        // The last id represents one that is not asked about.
        (values(t * v), prop::collection::vec(0..=v, t), Just(v))
    });
    forall(sizes, |(logits, mut targets, v)| {
        let t = targets.len();
        targets.iter_mut().filter(|id| **id == v).for_each(|id| *id = IGNORE);
        if targets.iter().all(|id| *id == IGNORE) {
            let [one, other] = [
                vocab_parallel_cross_entropy(&Alone, &logits, &targets, v).unwrap_err(),
                cross_entropy(tensor(&logits, (1, t, v)), &ids(&targets, (1, t))).unwrap_err(),
            ];
            assert_eq!(one, other);
            return;
        }
        let found = vocab_parallel_cross_entropy(&Alone, &logits, &targets, v).unwrap();
        let leaf = tensor(&logits, (1, t, v));
        let loss = cross_entropy(Trace::<f32, Dev>::leaky_trace(&leaf), &ids(&targets, (1, t)));
        let loss = loss.unwrap();
        let size = 8.0 + (v as f64).ln();
        assert_within(&[f64::from(found.loss)], &[f64::from(loss.array())], |_| 32.0 * U32 * size);
        let want = widen(&loss.backward().get(&leaf).as_vec());
        assert_within(&widen(&found.dlogits), &want, |_| 32.0 * U32 * size);
    });
}

fn results<T: Clone>(world: World<T>) -> Vec<T> {
    assert_eq!(world.trouble, None);
    let result = |end| match end {
        RankOutcome::Result(result) => result,
        RankOutcome::Refused(error) => panic!("{error}"),
        RankOutcome::Panicked(words) => panic!("{words}"),
        RankOutcome::Lost => panic!("nobody was to be lost"),
    };
    world.ranks.into_iter().map(result).collect()
}

/// Bits of a sum do not depend on the number of ranks; those of an all-reduce do, so the values are chosen to show it.
#[test]
fn any_number_of_ranks_has_the_bits_of_one() {
    forall(values(64), |blocks| {
        let (m, len) = (16, 4);
        let alone = tree_sum(&Alone, &blocks, len).unwrap();
        let mut others = 0;
        for w in [2, 4, 8, 16] {
            let own = m / w * len;
            let program = |comm: &dyn contract::interface::Communicator| {
                let mine = &blocks[comm.rank() * own..][..own];
                let tree = tree_sum(&Way(comm), mine, len);
                let mut engine = vec![0.0; len];
                mine.chunks(len).for_each(|block| {
                    engine.iter_mut().zip(block).for_each(|(sum, value)| *sum += value);
                });
                comm.all_reduce_sum(&mut engine)?;
                Ok((tree.unwrap(), engine))
            };
            for (tree, engine) in results(world::run(w, None, program).unwrap()) {
                assert_eq!(tree, alone, "{w} ranks");
                others += usize::from(engine != alone);
            }
        }
        let zeros = blocks.iter().all(|value| *value == 0.0);
        assert!(others > 0 || zeros, "an order of any kind would do for {blocks:?}");
    });
}

/// Each block is added once. With quickcheck: whole numbers, whose sums have no rounding in any order.
#[test]
fn the_tree_is_a_sum() {
    fn adds(blocks: Vec<i16>, halvings: u8) -> bool {
        let m = 1 << (halvings % 7);
        let len = blocks.len() / m + 1;
        let value = |at: usize| blocks.get(at).copied().unwrap_or(1);
        let values: Vec<f32> = (0..m * len).map(|at| value(at).into()).collect();
        let sum = |j: usize| (0..m).map(|block| f64::from(values[block * len + j])).sum::<f64>();
        let want: Vec<f64> = (0..len).map(sum).collect();
        widen(&tree_sum(&Alone, &values, len).unwrap()) == want
    }
    law(adds as fn(Vec<i16>, u8) -> bool);
}
