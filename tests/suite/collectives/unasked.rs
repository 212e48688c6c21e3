//! Collectives: what the contract does not ask of them. Refusals before any call, and what the connection reports.

use quadrivium::Error;
use quadrivium::collectives::{Communicator, tree_sum, vocab_parallel_cross_entropy};
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
