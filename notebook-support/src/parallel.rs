//! ParallelVocabEmbedding in a notebook.

mod figures;

pub use figures::{CELL, LOAD, cell, load, sum, words};

use crate::check::{Verdict, check, not_asked};
use crate::embedding::{gradient_of_copies, refused};
use contract::component::Component;
use contract::interface::{
    Found, Manner, NormalInit, ParallelVocabEmbedding, Refusal, Reply, ShardCase,
};
use std::ops::Range;

/// A learner's answer to "who owns which ids?", or why there is no answer.
pub type ShardRange =
    fn(vocab_size: usize, world_size: usize, rank: usize) -> Result<Range<usize>, String>;

/// A learner's part of a rank in the lookup: `ids` are `[b s]`, `shard` is `[n, e]` in one row with
/// `n = vocab_size / world_size`, and the result is `[b s, e]` in one row. Or why there is none: an id
/// that is not below `vocab_size`, a rank that is not below `world_size`.
pub type Lookup = fn(
    ids: &[usize],
    shard: &[f32],
    vocab_size: usize,
    world_size: usize,
    rank: usize,
) -> Result<Vec<f32>, String>;

/// A learner's gradient of a shard, `[n, e]`: `ids` are `[b s]`, all below `vocab_size`, and `dy` is
/// `[b s, e]`, each in one row.
pub type Gradient = fn(
    ids: &[usize],
    dy: &[f32],
    vocab_size: usize,
    embedding_dim: usize,
    world_size: usize,
    rank: usize,
) -> Vec<f32>;

/// Grades it by the invariants of the task `parallel/shard-range`.
pub fn check_range(shard_range: ShardRange) -> Verdict {
    grade("parallel/shard-range", Lines { shard_range: Some(shard_range), ..Lines::default() })
}

/// Grades it by the invariants of the task `parallel/forward`. The gradient is taken from the lookup itself.
pub fn check_lookup(lookup: Lookup) -> Verdict {
    grade("parallel/forward", Lines { lookup: Some(lookup), ..Lines::default() })
}

/// Grades it by the invariants of the task `parallel/backward`.
pub fn check_gradient(gradient: Gradient) -> Verdict {
    grade("parallel/backward", Lines { gradient: Some(gradient), ..Lines::default() })
}

fn grade(task: &str, lines: Lines) -> Verdict {
    check::<dyn ParallelVocabEmbedding>(task, &lines)
}

#[derive(Default)]
struct Lines {
    shard_range: Option<ShardRange>,
    lookup: Option<Lookup>,
    gradient: Option<Gradient>,
}

impl ParallelVocabEmbedding for Lines {
    fn shard_range(&self, v: usize, w: usize, rank: usize) -> Reply<Range<usize>> {
        self.shard_range.ok_or_else(not_asked)?(v, w, rank).map_err(Refusal::new)
    }

    /// Not the learner's: the writer of a lookup is given the rows.
    fn initial_shard(
        &self,
        v: usize,
        e: usize,
        w: usize,
        rank: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        if self.lookup.is_none() {
            return Err(not_asked());
        }
        <dyn ParallelVocabEmbedding>::oracle().initial_shard(v, e, w, rank, init)
    }

    fn forward_in(&self, _: Manner, case: &ShardCase) -> Reply<Found> {
        let lookup = self.lookup.ok_or_else(not_asked)?;
        let &ShardCase { vocab_size, world_size, rank, .. } = case;
        let y = lookup(&case.ids, &case.shard, vocab_size, world_size, rank);
        // The function can't change ids that it only borrows.
        Ok(Found {
            y: y.map_err(|words| refused(words, &case.ids, case.shape, vocab_size))?,
            ids_after: case.ids.clone(),
        })
    }

    fn backward_in(&self, _: Manner, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let &ShardCase { vocab_size, embedding_dim, world_size, rank, .. } = case;
        if let Some(gradient) = self.gradient {
            return Ok(gradient(&case.ids, dy, vocab_size, embedding_dim, world_size, rank));
        }
        gradient_of_copies(case.shard.len(), dy, |shard| {
            Ok(self.forward(&ShardCase { shard, ..case.clone() })?.y)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_lines_pass_and_wrong_ones_are_named() {
        let right: ShardRange = |v, w, r| match (w, r) {
            _ if w == 0 || v % w != 0 => Err(format!("{w} ranks do not divide {v} rows")),
            _ if r >= w => Err(format!("rank {r} of {w}")),
            _ => Ok(r * (v / w)..(r + 1) * (v / w)),
        };
        let verdict = check_range(right);
        assert!(verdict.passed, "{verdict}");
        let verdict = check_range(|v, w, r| Ok(r * (v / w)..(r + 1) * (v / w)));
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("parallel/"), "{verdict}");
    }

    fn right_lookup(
        ids: &[usize],
        shard: &[f32],
        v: usize,
        w: usize,
        rank: usize,
    ) -> Result<Vec<f32>, String> {
        copy_or(ids, shard, v, w, rank, |_| 0.0)
    }

    /// What a foreign token gets is made from the first row.
    fn copy_or(
        ids: &[usize],
        shard: &[f32],
        v: usize,
        w: usize,
        rank: usize,
        foreign: fn(f32) -> f32,
    ) -> Result<Vec<f32>, String> {
        if rank >= w {
            return Err(format!("rank {rank} of {w}"));
        }
        if let Some(id) = ids.iter().find(|&&id| id >= v) {
            return Err(format!("id {id} is not below {v}"));
        }
        let (n, e) = (v / w, shard.len() / (v / w));
        let row = |id: &usize| match id / n == rank {
            true => shard[id % n * e..][..e].to_vec(),
            false => shard[..e].iter().map(|&x| foreign(x)).collect(),
        };
        Ok(ids.iter().flat_map(row).collect())
    }

    fn right_gradient(
        ids: &[usize],
        dy: &[f32],
        v: usize,
        e: usize,
        w: usize,
        rank: usize,
    ) -> Vec<f32> {
        let n = v / w;
        let mut dshard = vec![0.0; n * e];
        for (t, id) in ids.iter().enumerate().filter(|(_, id)| *id / n == rank) {
            for j in 0..e {
                dshard[id % n * e + j] += dy[t * e + j];
            }
        }
        dshard
    }

    #[test]
    fn right_lookups_and_gradients_pass() {
        let verdict = check_lookup(right_lookup);
        assert!(verdict.passed, "{verdict}");
        let verdict = check_gradient(right_gradient);
        assert!(verdict.passed, "{verdict}");
    }

    #[test]
    fn zeros_that_are_multiplied_are_named() {
        let verdict =
            check_lookup(|ids, shard, v, w, rank| copy_or(ids, shard, v, w, rank, |x| 0.0 * x));
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("parallel/zeros-are-written"), "{verdict}");
    }

    #[test]
    fn a_gradient_without_a_mask_is_named() {
        let verdict = check_gradient(|ids, dy, v, e, w, _| {
            let ids: Vec<usize> = ids.iter().map(|id| id % (v / w)).collect();
            right_gradient(&ids, dy, v / w, e, 1, 0)
        });
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("id mod n"), "{verdict}");
    }
}
