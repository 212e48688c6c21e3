//! ParallelVocabEmbedding in a notebook.

use crate::check::{Verdict, check, not_asked};
use contract::party::{Found, NormalInit, ParallelVocabEmbedding, Refusal, Reply, ShardCase};
use std::ops::Range;

/// A learner's answer to "who owns which ids?", or why there is no answer.
pub type ShardRange =
    fn(vocab_size: usize, world_size: usize, rank: usize) -> Result<Range<usize>, String>;

/// Grades it by the invariants of task 3.1.
pub fn check_range(shard_range: ShardRange) -> Verdict {
    check::<dyn ParallelVocabEmbedding>("3.1", &Lines { shard_range })
}

struct Lines {
    shard_range: ShardRange,
}

impl ParallelVocabEmbedding for Lines {
    fn shard_range(&self, v: usize, w: usize, rank: usize) -> Reply<Range<usize>> {
        (self.shard_range)(v, w, rank).map_err(Refusal)
    }

    fn initial_shard(
        &self,
        _: usize,
        _: usize,
        _: usize,
        _: usize,
        _: NormalInit,
    ) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn forward(&self, _: &ShardCase) -> Reply<Found> {
        Err(not_asked())
    }

    fn backward(&self, _: &ShardCase, _: &[f32]) -> Reply<Vec<f32>> {
        Err(not_asked())
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
}
