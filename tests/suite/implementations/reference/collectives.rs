//! Collectives of the library, with ranks that are threads.

use super::Library;
use crate::implementations::{Adapter, adapter};
use contract::collectives::world;
use contract::interface::*;
use quadrivium::Error;
use quadrivium::collectives::{ShardEntropy, tree_sum, vocab_parallel_cross_entropy};

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(Collectives, &[]);

/// A rank's way to the others, as the library wants it.
pub(crate) struct Way<'c>(pub &'c dyn Communicator);

/// What went wrong: on the way, or in the library.
#[derive(Debug, PartialEq)]
pub(crate) enum Failure {
    Way(Trouble),
    Library(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl quadrivium::collectives::Communicator for Way<'_> {
    type Error = Failure;

    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn world_size(&self) -> usize {
        self.0.world_size()
    }

    fn all_reduce_sum(&self, values: &mut [f32]) -> Result<(), Failure> {
        self.0.all_reduce_sum(values).map_err(Failure::Way)
    }

    fn all_reduce_max(&self, values: &mut [f32]) -> Result<(), Failure> {
        self.0.all_reduce_max(values).map_err(Failure::Way)
    }

    fn all_gather(&self, values: &[f32]) -> Result<Vec<f32>, Failure> {
        self.0.all_gather(values).map_err(Failure::Way)
    }
}

/// In the words of the interface. The cases of the contract have no other mistakes.
fn told(failure: Failure) -> RankError {
    match failure {
        Failure::Way(trouble) => RankError::Ranks(trouble),
        Failure::Library(Error::TokenId { id, position, vocab_size, .. }) => {
            RankError::Target { target: id, place: position, vocab_size }
        }
        Failure::Library(error) => panic!("{error}"),
    }
}

impl Collectives for Library {
    fn entropy(&self, case: &EntropyCase) -> Reply<World<Entropy>> {
        world::run(case.world_size, case.lost, |comm| {
            let logits = case.logits_of(comm.rank());
            let targets = &case.targets;
            let found = vocab_parallel_cross_entropy(&Way(comm), &logits, targets, case.vocab_size);
            let ShardEntropy { loss, dlogits } = found.map_err(told)?;
            Ok(Entropy { loss, dlogits })
        })
    }

    fn tree_sum(&self, case: &SumCase) -> Reply<World<Vec<f32>>> {
        world::run(case.world_size, case.lost, |comm| {
            tree_sum(&Way(comm), case.values_of(comm.rank()), case.len).map_err(told)
        })
    }
}
