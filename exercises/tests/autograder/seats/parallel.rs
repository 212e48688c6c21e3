//! The learner's ParallelVocabEmbedding as a party to the contract.

use super::{Learner, Seat, gradient_of, ids_tensor, run_back, tensor};
use contract::component::Component;
use contract::grade::{by_bugs, by_invariants};
use contract::parallel::party::*;
use contract::with_parallel_sizes;
use exercises::parallel;
use exercises::prelude::{Const, Cpu, Trace};
use std::ops::Range;

/// The seat of ParallelVocabEmbedding.
pub const SEAT: Seat = Seat {
    slug: <dyn ParallelVocabEmbedding>::SLUG,
    invariants: |task, learner, run| {
        by_invariants::<dyn ParallelVocabEmbedding>(task, learner, run)
    },
    property: |task| {
        by_bugs::<dyn ParallelVocabEmbedding>(task, &|party| parallel::property(party))
    },
};

impl ParallelVocabEmbedding for Learner {
    fn shard_range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
        self.may("shard_range")?;
        parallel::shard_range(v, w, r).map_err(Refusal::new)
    }

    fn initial_shard(
        &self,
        v: usize,
        e: usize,
        w: usize,
        r: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        self.may("initial_shard")?;
        let NormalInit { mean, std, seed } = init;
        parallel::initial_shard(v, e, w, r, (mean, std), seed).map_err(Refusal::new)
    }

    fn forward(&self, case: &ShardCase) -> Reply<Found> {
        self.may("forward")?;
        let sizes = (case.vocab_size, case.embedding_dim, case.world_size);
        with_parallel_sizes!(sizes, |V, E, W| {
            let ids = ids_tensor(&case.ids, case.shape);
            let y = a_shard::<V, E, W>(case).forward(ids.clone()).map_err(Refusal::new)?;
            Ok(Found { y: y.as_vec(), ids_after: ids.as_vec() })
        }, _ => Err(Refusal::not_compiled("this table and world")))
    }

    fn backward(&self, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("backward")?;
        if self.by_hand {
            let sizes = (case.vocab_size, case.embedding_dim);
            return parallel::backward(&case.ids, dy, sizes, case.world_size, case.rank)
                .map_err(Refusal::new);
        }
        let sizes = (case.vocab_size, case.embedding_dim, case.world_size);
        with_parallel_sizes!(sizes, |V, E, W| {
            let shard = a_shard::<V, E, W>(case);
            let ids = ids_tensor(&case.ids, case.shape);
            let y = shard.forward(Trace::<f32, Cpu>::leaky_trace(&ids)).map_err(Refusal::new)?;
            Ok(gradient_of(&mut run_back(y, dy), &shard.weight))
        }, _ => Err(Refusal::not_compiled("this table and world")))
    }
}

fn a_shard<const V: usize, const E: usize, const W: usize>(
    case: &ShardCase,
) -> parallel::ParallelVocabEmbedding<V, E, W, Cpu> {
    let rows = tensor(&case.shard, (Default::default(), Const));
    parallel::ParallelVocabEmbedding::new(rows, case.rank)
}
