//! ParallelVocabEmbedding of the library.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use quadrivium::ParallelVocabEmbeddingConfig;
use quadrivium::parallel::{self, vocab_shard_embedding};
use std::ops::Range;

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(ParallelVocabEmbedding, &[]);

impl ParallelVocabEmbedding for Library {
    fn shard_range(&self, v: usize, w: usize, rank: usize) -> Reply<Range<usize>> {
        parallel::shard_range(v, w, rank).map_err(refused)
    }

    fn initial_shard(
        &self,
        v: usize,
        e: usize,
        w: usize,
        rank: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        let config = ParallelVocabEmbeddingConfig {
            rank,
            init_mean: f64::from(init.mean),
            init_std: f64::from(init.std),
            init_base_seed: init.seed,
        };
        let rows = parallel::shard_range(v, w, rank).map_err(refused)?.len();
        Ok(config.init().values(rows * e))
    }

    fn forward_in(&self, manner: Manner, case: &ShardCase) -> Reply<Found> {
        let (shard, rank, world_size) = (shard(case), case.rank, case.world_size);
        let ids = ids_in(&case.ids, case.shape, manner);
        let y = match manner {
            Manner::Traced => {
                let traced = Trace::<f32, Dev>::leaky_trace(&ids);
                let y = vocab_shard_embedding(traced, &shard, rank, world_size);
                y.map_err(refused)?.as_vec()
            }
            _ => {
                let y = vocab_shard_embedding(ids.clone(), &shard, rank, world_size);
                y.map_err(refused)?.as_vec()
            }
        };
        Ok(Found { y, ids_after: ids.as_vec() })
    }

    fn backward_in(&self, manner: Manner, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let shard = shard(case);
        let ids = ids_in(&case.ids, case.shape, manner);
        let mut grads = run_back(manner, dy, || {
            let ids = Trace::<f32, Dev>::leaky_trace(&ids);
            vocab_shard_embedding(ids, &shard, case.rank, case.world_size).map_err(refused)
        })?;
        Ok(gradient(&mut grads, &shard))
    }
}

fn shard(case: &ShardCase) -> Tensor<(usize, usize), f32, Dev> {
    tensor(&case.shard, (case.shard.len() / case.embedding_dim, case.embedding_dim))
}
