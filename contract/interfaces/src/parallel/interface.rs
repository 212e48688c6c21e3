//! The interface of ParallelVocabEmbedding: what an implementation is asked, and what it answers.

use crate::describe::List;
pub use crate::embedding::interface::Found;
pub use crate::interface::{Manner, NormalInit, Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::ops::Range;

/// One lookup on one rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardCase {
    /// `[b, s]`.
    pub shape: [usize; 2],
    /// `v`, of the whole table.
    pub vocab_size: usize,
    /// `e`.
    pub embedding_dim: usize,
    /// `w`.
    pub world_size: usize,
    /// `r`.
    pub rank: usize,
    /// The rank's rows, `[n, e]`.
    pub shard: Vec<f32>,
    /// `[b, s]`.
    pub ids: Vec<usize>,
}

/// A table whose rows are split across `world_size` ranks.
pub trait ParallelVocabEmbedding {
    /// The ids that a rank owns. Refuses `v % w != 0` and `r >= w`.
    fn shard_range(&self, vocab_size: usize, world_size: usize, rank: usize)
    -> Reply<Range<usize>>;

    /// The rank's first rows, `[n, e]`. `init.seed` is the base seed, before the rank counts.
    fn initial_shard(
        &self,
        vocab_size: usize,
        embedding_dim: usize,
        world_size: usize,
        rank: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>>;

    /// The rank's part, `[b, s, e]`. Refuses an id that is not below `v`, and `r >= w`.
    fn forward(&self, case: &ShardCase) -> Reply<Found> {
        self.forward_in(Manner::Plain, case)
    }

    /// The gradient of the shard, `[n, e]`, for `dy`, `[b, s, e]`.
    fn backward(&self, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.backward_in(Manner::Plain, case, dy)
    }

    /// [`ParallelVocabEmbedding::forward`], asked in this manner.
    fn forward_in(&self, manner: Manner, case: &ShardCase) -> Reply<Found>;

    /// [`ParallelVocabEmbedding::backward`], asked in this manner.
    fn backward_in(&self, manner: Manner, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>>;
}

// The cases as a report shows them.

impl Display for ShardCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, vocab_size, embedding_dim, world_size, rank, shard, ids } = self;
        let rows = shard.len() / embedding_dim;
        writeln!(
            f,
            "ids {shape:?}, vocab_size {vocab_size}, world_size {world_size}, rank {rank}"
        )?;
        writeln!(f, "ids   = {}", List(ids))?;
        write!(f, "shard = {} [{rows}, {embedding_dim}]", List(shard))
    }
}
