//! ParallelVocabEmbedding: rank `r` of `w` owns the ids `[r·n, (r + 1)·n)`, `n = v / w`.

use crate::embedding::oracle::{check_ids, check_length, element};
use crate::oracle::{Loops, Oracle, random};
use crate::parallel::interface::{
    Found, Manner, NormalInit, ParallelVocabEmbedding, Refusal, Reply, ShardCase,
};
use std::ops::Range;
use std::rc::Rc;

/// Any loops as a trait object. What goes over many steps is written for these, below the trait, so that
/// it is compiled once and not once a bug.
pub trait AsShardLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn ShardLoops;
}

impl<L: ShardLoops> AsShardLoops for L {
    fn as_loops(&self) -> &dyn ShardLoops {
        self
    }
}

/// The steps of a lookup in a shard. A bug writes one of them wrong.
pub trait ShardLoops: AsShardLoops {
    /// Refuses a world that does not divide the vocabulary.
    fn check_world(&self, vocab_size: usize, world_size: usize) -> Reply<()> {
        if world_size == 0 || !vocab_size.is_multiple_of(world_size) {
            return Err(Refusal::new(format!(
                "world size {world_size} does not divide vocabulary size {vocab_size}"
            )));
        }
        Ok(())
    }

    /// Refuses a rank that does not exist.
    fn check_rank(&self, rank: usize, world_size: usize) -> Reply<()> {
        if rank < world_size {
            return Ok(());
        }
        Err(Refusal::new(format!("rank {rank} does not exist in a world of {world_size}")))
    }

    /// The ids that a rank owns.
    fn range(&self, vocab_size: usize, world_size: usize, rank: usize) -> Reply<Range<usize>> {
        self.check_world(vocab_size, world_size)?;
        self.check_rank(rank, world_size)?;
        Ok(owned(vocab_size, world_size, rank))
    }

    /// The seed of a rank.
    fn seed(&self, base: u64, rank: usize, _world_size: usize) -> u64 {
        base.wrapping_add(rank as u64)
    }

    /// The first rows of a rank, `[n, e]`.
    fn shard(&self, v: usize, e: usize, w: usize, rank: usize, init: NormalInit) -> Vec<f32> {
        let seed = self.seed(init.seed, rank, w);
        random::normal(v / w * e, NormalInit { seed, ..init })
    }

    /// Refuses ids that are no rows of the whole table.
    fn check_ids(&self, case: &ShardCase) -> Reply<()> {
        check_ids(&case.ids, case.shape, case.vocab_size)
    }

    /// The id of token `t`, counted in row-major order.
    fn id(&self, case: &ShardCase, t: usize) -> usize {
        case.ids[t]
    }

    /// The row of the shard for an id, or none if another rank owns it.
    fn row(&self, case: &ShardCase, id: usize) -> Option<usize> {
        let owned = owned(case.vocab_size, case.world_size, case.rank);
        owned.contains(&id).then(|| id - owned.start)
    }

    /// Element `j` of what a row gives.
    fn element(&self, case: &ShardCase, row: usize, j: usize) -> f32 {
        element(&case.shard, case.embedding_dim, row, j)
    }

    /// Element `j` of what a foreign token gives.
    fn foreign(&self, _case: &ShardCase, _j: usize) -> f32 {
        0.0
    }

    /// The rank's part of all rows, `[b, s, e]`.
    fn rows(&self, case: &ShardCase) -> Vec<f32> {
        rows(self.as_loops(), case)
    }

    /// The ids as the call leaves them.
    fn ids_after(&self, case: &ShardCase) -> Vec<usize> {
        case.ids.clone()
    }

    /// The row that a token sends its gradient to, and what its `dy` is multiplied by.
    fn target(&self, case: &ShardCase, id: usize) -> Option<(usize, f64)> {
        let owned = owned(case.vocab_size, case.world_size, case.rank);
        owned.contains(&id).then(|| (id - owned.start, 1.0))
    }

    /// What one token's `dy` does to one element of the gradient.
    fn add(&self, sum: f64, dy: f64) -> f64 {
        sum + dy
    }

    /// The gradient of the shard, `[n, e]`: every owned token adds its `dy` to its row.
    fn gradient(&self, case: &ShardCase, dy: &[f32]) -> Vec<f64> {
        gradient(self.as_loops(), case, dy)
    }
}

impl ShardLoops for Oracle {}

fn rows(loops: &dyn ShardLoops, case: &ShardCase) -> Vec<f32> {
    let part = |t| {
        let row = loops.row(case, loops.id(case, t));
        (0..case.embedding_dim).map(move |j| match row {
            Some(row) => loops.element(case, row, j),
            None => loops.foreign(case, j),
        })
    };
    (0..case.ids.len()).flat_map(part).collect()
}

fn gradient(loops: &dyn ShardLoops, case: &ShardCase, dy: &[f32]) -> Vec<f64> {
    let e = case.embedding_dim;
    let mut sum = vec![0.0; case.shard.len()];
    for t in 0..case.ids.len() {
        let Some((row, weight)) = loops.target(case, case.ids[t]) else { continue };
        for j in 0..e {
            let dy = weight * f64::from(dy[t * e + j]);
            if let Some(sum) = sum.get_mut(row * e + j) {
                *sum = loops.add(*sum, dy);
            }
        }
    }
    sum
}

/// The implementation of some loops.
pub fn implementation(loops: impl ShardLoops + 'static) -> Box<dyn ParallelVocabEmbedding> {
    Box::new(Loops::<dyn ShardLoops>(Rc::new(loops)))
}

/// `[r·n, (r + 1)·n)`.
pub fn owned(vocab_size: usize, world_size: usize, rank: usize) -> Range<usize> {
    let n = vocab_size / world_size.max(1);
    let start = rank.saturating_mul(n);
    start..start.saturating_add(n)
}

impl Loops<dyn ShardLoops> {
    fn accept_shard(&self, case: &ShardCase) -> Reply<()> {
        let &ShardCase { shape, vocab_size, embedding_dim, world_size, rank, .. } = case;
        self.0.check_world(vocab_size, world_size)?;
        self.0.check_rank(rank, world_size)?;
        check_length("ids", &shape, case.ids.len())?;
        let n = vocab_size / world_size.max(1);
        check_length("shard", &[n, embedding_dim], case.shard.len())?;
        self.0.check_ids(case)
    }
}

impl ParallelVocabEmbedding for Loops<dyn ShardLoops> {
    fn shard_range(
        &self,
        vocab_size: usize,
        world_size: usize,
        rank: usize,
    ) -> Reply<Range<usize>> {
        self.0.range(vocab_size, world_size, rank)
    }

    fn initial_shard(
        &self,
        vocab_size: usize,
        embedding_dim: usize,
        world_size: usize,
        rank: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        self.0.check_world(vocab_size, world_size)?;
        self.0.check_rank(rank, world_size)?;
        Ok(self.0.shard(vocab_size, embedding_dim, world_size.max(1), rank, init))
    }

    fn forward_in(&self, _: Manner, case: &ShardCase) -> Reply<Found> {
        self.accept_shard(case)?;
        Ok(Found { y: self.0.rows(case), ids_after: self.0.ids_after(case) })
    }

    fn backward_in(&self, _: Manner, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.accept_shard(case)?;
        let [b, s] = case.shape;
        check_length("dy", &[b, s, case.embedding_dim], dy.len())?;
        Ok(self.0.gradient(case, dy).into_iter().map(|sum| sum as f32).collect())
    }
}
