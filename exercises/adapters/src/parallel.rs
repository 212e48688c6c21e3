//! The learner's ParallelVocabEmbedding as an implementation of the contract.

use super::{
    Learner, gradient_of, ids_tensor, other_ids, reversed, run_back, run_back_continued,
    run_back_twice, tensor,
};
use exercises::parallel;
use exercises::prelude::{Const, Cpu, PutTape, Trace};
use interfaces::parallel::interface::*;
use interfaces::with_parallel_sizes;
use std::ops::Range;

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

    fn forward_in(&self, manner: Manner, case: &ShardCase) -> Reply<Found> {
        self.may("forward")?;
        let sizes = (case.vocab_size, case.embedding_dim, case.world_size);
        with_parallel_sizes!(
            sizes,
            |V, E, W| forward::<V, E, W>(manner, case),
            _ => Err(Refusal::not_compiled("this table and world"))
        )
    }

    fn backward_in(&self, manner: Manner, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("backward")?;
        if self.by_hand {
            let sizes = (case.vocab_size, case.embedding_dim);
            let ask = |ids: &[usize]| {
                parallel::backward(ids, dy, sizes, case.world_size, case.rank).map_err(Refusal::new)
            };
            if manner == Manner::Again {
                ask(&reversed(&case.ids))?;
            }
            return ask(&case.ids);
        }
        let sizes = (case.vocab_size, case.embedding_dim, case.world_size);
        with_parallel_sizes!(
            sizes,
            |V, E, W| backward::<V, E, W>(manner, case, dy),
            _ => Err(Refusal::not_compiled("this table and world"))
        )
    }
}

fn a_shard<const V: usize, const E: usize, const W: usize>(
    case: &ShardCase,
) -> parallel::ParallelVocabEmbedding<V, E, W, Cpu> {
    let rows = tensor(&case.shard, (Default::default(), Const));
    parallel::ParallelVocabEmbedding::new(rows, case.rank)
}

/// `forward_in`, of sizes in the type.
fn forward<const V: usize, const E: usize, const W: usize>(
    manner: Manner,
    case: &ShardCase,
) -> Reply<Found> {
    let mut shard = a_shard::<V, E, W>(case);
    let ids = ids_tensor(&case.ids, case.shape, manner);
    if let Manner::Again | Manner::Cloned = manner {
        let others = other_ids(&case.ids, case.vocab_size);
        let other = ids_tensor(&others, case.shape, Manner::Plain);
        shard.forward(other).map_err(Refusal::new)?;
        shard = if manner == Manner::Cloned { shard.clone() } else { shard };
    }
    let y = match manner {
        Manner::Traced => {
            let traced = Trace::<f32, Cpu>::leaky_trace(&ids);
            shard.forward(traced).map_err(Refusal::new)?.as_vec()
        }
        _ => shard.forward(ids.clone()).map_err(Refusal::new)?.as_vec(),
    };
    Ok(Found { y, ids_after: ids.as_vec() })
}

/// `backward_in`, of sizes in the type.
fn backward<const V: usize, const E: usize, const W: usize>(
    manner: Manner,
    case: &ShardCase,
    dy: &[f32],
) -> Reply<Vec<f32>> {
    let mut shard = a_shard::<V, E, W>(case);
    let ids = ids_tensor(&case.ids, case.shape, manner);
    let y = |shard: &parallel::ParallelVocabEmbedding<V, E, W, Cpu>| {
        shard.forward(Trace::<f32, Cpu>::leaky_trace(&ids)).map_err(Refusal::new)
    };
    if manner == Manner::Continued {
        let mut grads = run_back_continued(dy, |tape| {
            shard.forward(ids.clone().put_tape(tape)).map_err(Refusal::new)
        })?;
        return Ok(gradient_of(&mut grads, &shard.weight));
    }
    if let Manner::Again | Manner::Cloned = manner {
        run_back(y(&shard)?, dy);
        shard = if manner == Manner::Cloned { shard.clone() } else { shard };
    }
    let mut grads = match manner {
        Manner::UsedTwice => run_back_twice([y(&shard)?, y(&shard)?], dy),
        _ => run_back(y(&shard)?, dy),
    };
    Ok(gradient_of(&mut grads, &shard.weight))
}
