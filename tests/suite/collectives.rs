//! Collectives: what the contract does not ask of them. Refusals before any call, a world of one, the bits of a sum.

use crate::implementations::reference::collectives::Way;
use crate::support::*;
use contract::collectives::world;
use contract::interface::{RankOutcome, World};
use proptest::prelude::*;
use quadrivium::Error;
use quadrivium::collectives::{Alone, Communicator, tree_sum, vocab_parallel_cross_entropy};
use quadrivium::loss::{IGNORE, cross_entropy};
use quadrivium::tensor::*;
use std::cell::RefCell;

/// A rank that is alone in a world of some size: it must not be asked to wait.
struct Nobody {
    rank: usize,
    world_size: usize,
    called: RefCell<bool>,
}

impl Nobody {
    fn of(rank: usize, world_size: usize) -> Self {
        Self { rank, world_size, called: RefCell::new(false) }
    }

    fn call<T>(&self) -> Result<T, Error> {
        self.called.replace(true);
        Err(Error::Part("nobody is there".to_string()))
    }
}

impl Communicator for Nobody {
    type Error = Error;

    fn rank(&self) -> usize {
        self.rank
    }

    fn world_size(&self) -> usize {
        self.world_size
    }

    fn all_reduce_sum(&self, _: &mut [f32]) -> Result<(), Error> {
        self.call()
    }

    fn all_reduce_max(&self, _: &mut [f32]) -> Result<(), Error> {
        self.call()
    }

    fn all_gather(&self, _: &[f32]) -> Result<Vec<f32>, Error> {
        self.call()
    }
}

/// What is bad is refused by each rank alone, so no rank waits for one that has refused.
#[test]
fn bad_input_is_refused_before_any_call() {
    let logits = [0.5f32; 6]; // three tokens over two ids of each rank
    let refused = |comm: &Nobody, logits: &[f32], targets: &[usize], v| {
        let error = vocab_parallel_cross_entropy(comm, logits, targets, v).unwrap_err();
        assert!(!*comm.called.borrow(), "{error}");
        error
    };
    for rank in 0..3 {
        let comm = Nobody::of(rank, 3);
        let got = refused(&comm, &logits, &[1, 6, 9], 6);
        assert_eq!(got, Error::TokenId { id: 6, batch: 0, position: 1, vocab_size: 6 });
        assert_eq!(
            refused(&comm, &logits, &[0, 1, 2], 7),
            Error::WorldSize { world_size: 3, vocab_size: 7 }
        );
        let got = refused(&comm, &logits[..5], &[0, 1, 2], 6);
        assert_eq!(got, Error::Shape { name: "logits", expected: vec![3, 2], got: vec![5] });
        assert_eq!(refused(&comm, &[], &[], 6), Error::Empty { name: "logits", shape: vec![0, 2] });
        assert!(tree_sum(&comm, &[1.0], 1).unwrap_err().to_string().contains("a power of 2"));
        assert!(!*comm.called.borrow());
    }
    assert_eq!(
        refused(&Nobody::of(3, 3), &logits, &[0, 1, 2], 6),
        Error::Rank { rank: 3, world_size: 3 }
    );
    assert!(refused(&Nobody::of(0, 0), &logits, &[0], 6).to_string().contains("at least 1 rank"));
    for blocks in [&[][..], &[1.0; 3], &[1.0; 12]] {
        let comm = Nobody::of(0, 2);
        assert!(matches!(tree_sum(&comm, blocks, 2), Err(Error::Setting { .. })), "{blocks:?}");
        assert!(tree_sum(&comm, blocks, 0).is_err() && !*comm.called.borrow());
    }
}

/// What the connection reports comes back as it is.
#[test]
fn what_the_connection_reports_is_handed_on() {
    let comm = Nobody::of(0, 2);
    let error = vocab_parallel_cross_entropy(&comm, &[0.5; 2], &[1], 4).unwrap_err();
    assert_eq!(error, Error::Part("nobody is there".to_string()));
    assert_eq!(tree_sum(&comm, &[1.0, 2.0], 2).unwrap_err(), error);
}

/// One rank alone has the plain loss: the library's own, whose gradient is on a tape. Both round in `f32`; logits are
/// below 4, and a sum of up to 9 exponentials and the mean over up to 6 tokens have 32 roundings at most.
#[test]
fn a_world_of_one_has_the_plain_loss() {
    let sizes = (1..=6usize, 1..=9usize).prop_flat_map(|(t, v)| {
        // The last id stands for one that is not asked about.
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

/// Bits of a sum do not depend on the number of ranks; those of an all-reduce do, so the values are fit to tell.
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
