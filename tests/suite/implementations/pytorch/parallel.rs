//! ParallelVocabEmbedding as it is written with PyTorch.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use std::ops::Range;

fn shard_question(call: &str, case: &ShardCase) -> Value {
    let ShardCase { shape, vocab_size, embedding_dim, world_size, rank, shard, ids } = case;
    json!({"call": call, "shape": shape, "vocab_size": vocab_size, "embedding_dim": embedding_dim,
           "world_size": world_size, "rank": rank, "shard": plain(shard), "ids": ids})
}

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(ParallelVocabEmbedding, &[]);

impl ParallelVocabEmbedding for PyTorch {
    fn shard_range(&self, v: usize, w: usize, rank: usize) -> Reply<Range<usize>> {
        let call = "parallel.shard_range";
        let ends =
            self.ask_whole(json!({"call": call, "vocab_size": v, "world_size": w, "rank": rank}))?;
        Ok(ends[0]..ends[1])
    }

    fn initial_shard(
        &self,
        v: usize,
        e: usize,
        w: usize,
        rank: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        let NormalInit { mean, std, seed } = init;
        self.ask_f32(json!({"call": "parallel.initial_shard", "vocab_size": v, "embedding_dim": e,
                            "world_size": w, "rank": rank, "mean": mean, "std": std, "seed": seed}))
    }

    fn forward_in(&self, _: Manner, case: &ShardCase) -> Reply<Found> {
        Ok(found(self.ask(shard_question("parallel.forward", case))?, case.ids.len()))
    }

    fn backward_in(&self, _: Manner, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.ask_f32(with_dy(shard_question("parallel.backward", case), dy))
    }
}
