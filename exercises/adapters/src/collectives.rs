//! The learner's ranks as an implementation of the contract. Each runs in its own thread.

use super::Learner;
use exercises::collectives;
use interfaces::collectives::interface::*;
use interfaces::collectives::world;

impl Collectives for Learner {
    fn entropy(&self, case: &EntropyCase) -> Reply<World<Entropy>> {
        self.may("entropy")?;
        world::run(case.world_size, case.lost, |comm| {
            let (logits, first) = (case.logits_of(comm.rank()), comm.rank() * case.own());
            collectives::vocab_parallel_cross_entropy(comm, &logits, &case.targets, first)
        })
    }

    fn tree_sum(&self, case: &SumCase) -> Reply<World<Vec<f32>>> {
        self.may("tree_sum")?;
        world::run(case.world_size, case.lost, |comm| {
            collectives::tree_sum(comm, case.values_of(comm.rank()), case.len)
        })
    }
}
