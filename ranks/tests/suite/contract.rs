//! The course's own contract, held to ranks: the asking side does not see that the table is cut.
//!
//! Three components judge them: the embedding, its shards, and the loss. No invariant is left out, and none is asked otherwise
//! than of the library. Where it is about one rank of a world that is not the one at hand, the ranks answer as `ranks::part`
//! says. Ranges and first values need no exchange: the ranks say them all, and must say the same.

use crate::support::{alone, processes, worlds};
use contract::component::{Component, Invariant};
use contract::interface::*;
use contract::report::result;
use contract::run::Run;
use quadrivium::loss::{mean_loss, perplexity};
use ranks::act::{Answer, Question};
use ranks::world::{OfThreads, Said, World};
use std::ops::Range;

/// Ranks as an implementation of the interfaces of embedding, shards and loss.
pub struct Sharded {
    ranks: Box<dyn World>,
    /// The rows of a block, if lookups are added up in the order of the vocabulary.
    block: Option<usize>,
}

impl Sharded {
    pub fn new(ranks: impl World + 'static) -> Self {
        Self { ranks: Box::new(ranks), block: None }
    }

    fn ask(&self, question: &Question) -> Reply<Answer> {
        match self.ranks.ask(question).map_err(Refusal::not_asked)? {
            Said::Answer(answer) if answer.same => Ok(answer),
            Said::Answer(_) => Err(Refusal::not_asked("the ranks do not have the same")),
            Said::Refused(rank, why) => Err(Refusal::new(format!("rank {rank} refused: {why}"))),
            Said::Failed(words) => Err(Refusal::new(words.join(" | "))),
        }
    }

    fn part(&self, manner: Manner, case: &ShardCase, dy: Option<&[f32]>) -> Reply<Answer> {
        let (case, dy) = (case.clone(), dy.map(<[f32]>::to_vec));
        self.ask(&Question::Part { manner, case, dy, block: self.block })
    }
}

impl ParallelVocabEmbedding for Sharded {
    fn shard_range(
        &self,
        vocab_size: usize,
        world_size: usize,
        rank: usize,
    ) -> Reply<Range<usize>> {
        let answer = self.ask(&Question::Range { vocab_size, world_size, rank })?;
        Ok(answer.ids[0]..answer.ids[1])
    }

    fn initial_shard(
        &self,
        v: usize,
        e: usize,
        world_size: usize,
        rank: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        Ok(self.ask(&Question::Initial { shape: [v, e], world_size, rank, init })?.dtable)
    }

    fn forward_in(&self, manner: Manner, case: &ShardCase) -> Reply<Found> {
        let Answer { y, ids, .. } = self.part(manner, case, None)?;
        Ok(Found { y, ids_after: ids })
    }

    fn backward_in(&self, manner: Manner, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let dtable = self.part(manner, case, Some(dy))?.dtable; // of the whole table
        let own = case.rank * case.shard.len()..(case.rank + 1) * case.shard.len();
        Ok(dtable.get(own).map(<[f32]>::to_vec).unwrap_or_default())
    }
}

/// A whole table is the one shard of a world of 1.
fn whole(case: &LookupCase) -> ShardCase {
    let LookupCase { shape, vocab_size, embedding_dim, table, ids } = case.clone();
    ShardCase { shape, vocab_size, embedding_dim, world_size: 1, rank: 0, shard: table, ids }
}

impl VocabEmbedding for Sharded {
    fn initial_table(&self, v: usize, e: usize, init: NormalInit) -> Reply<Vec<f32>> {
        self.initial_shard(v, e, 1, 0, init)
    }

    fn forward_in(&self, manner: Manner, case: &LookupCase) -> Reply<Found> {
        ParallelVocabEmbedding::forward_in(self, manner, &whole(case))
    }

    fn backward_in(&self, manner: Manner, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        ParallelVocabEmbedding::backward_in(self, manner, &whole(case), dy)
    }
}

/// Its functions take a matrix and no tensor, so a question reaches them in one manner.
impl CrossEntropy for Sharded {
    /// The shift is the caller's, before any rank sees it.
    fn next_tokens(&self, case: &TextCase) -> Reply<Pairs> {
        use quadrivium::tensor::*;
        let [b, s] = case.shape;
        let ids = Cpu::default()
            .try_tensor_from_vec(case.ids.clone(), (b, s))
            .map_err(|e| Refusal::new(format!("{e:?}")))?;
        let (inputs, targets) = quadrivium::loss::next_tokens(&ids).map_err(Refusal::new)?;
        Ok(Pairs { inputs: inputs.as_vec(), targets: targets.as_vec() })
    }

    fn forward_in(&self, _: Manner, case: &LossCase) -> Reply<f32> {
        let LossCase { shape, logits, targets } = case.clone();
        Ok(self.ask(&Question::Entropy { shape, logits, targets })?.y[0])
    }

    fn backward_in(&self, _: Manner, case: &LossCase, dloss: f32) -> Reply<Vec<f32>> {
        let LossCase { shape, logits, targets } = case.clone();
        let [b, s, v] = shape;
        let columns = self.ask(&Question::Entropy { shape, logits, targets })?.dtable; // [v, b s]
        let t = b * s;
        // The ranks' gradient is that of a dloss of 1, and 0 times infinity is no 0.
        let at_place = |row: usize, id: usize| {
            let found = columns.get(id * t + row).copied().unwrap_or(f32::NAN);
            if case.targets[row].is_some() { found * dloss } else { found }
        };
        Ok((0..t * v).map(|at| at_place(at / v, at % v)).collect())
    }

    fn perplexity(&self, parts: &[Part]) -> Reply<f32> {
        let parts: Vec<_> = parts.iter().map(|part| (f64::from(part.loss), part.places)).collect();
        Ok(perplexity(mean_loss(&parts).map_err(Refusal::new)?) as f32)
    }
}

/// As many threads as a case has ranks: each represents one of those that are asked about.
struct OneOfThreads;

fn world(case: &ShardCase) -> Sharded {
    Sharded::new(OfThreads::new(case.world_size))
}

impl ParallelVocabEmbedding for OneOfThreads {
    fn shard_range(&self, v: usize, w: usize, rank: usize) -> Reply<Range<usize>> {
        Sharded::new(OfThreads::new(1)).shard_range(v, w, rank) // of any world, also of 2^53 ranks
    }

    fn initial_shard(
        &self,
        v: usize,
        e: usize,
        w: usize,
        rank: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        Sharded::new(OfThreads::new(1)).initial_shard(v, e, w, rank, init)
    }

    fn forward_in(&self, manner: Manner, case: &ShardCase) -> Reply<Found> {
        ParallelVocabEmbedding::forward_in(&world(case), manner, case)
    }

    fn backward_in(&self, manner: Manner, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        ParallelVocabEmbedding::backward_in(&world(case), manner, case, dy)
    }
}

/// A few questions of each kind: each goes through a pipe and round all ranks.
pub const FEW: Run = Run { seed: 7, cases: 2, shrink: false, every_size: false, blocks: false };

/// Every question, and the random inputs of the checks.
const MANY: Run = Run { seed: 42, cases: 32, shrink: false, every_size: true, blocks: true };

/// The invariants that are broken, with what the contract says of them.
pub fn broken<P: Component + ?Sized>(implementation: &P, run: &Run) -> Vec<(&'static str, String)> {
    let judged = |invariant: &Invariant<P>| {
        let violation = invariant.judge(implementation, run).err()?;
        Some((invariant.id, format!("{}\n{}", violation.input, result(&violation))))
    };
    P::invariants().iter().filter_map(judged).collect()
}

/// Every invariant holds. None is left out. Returns how many there are.
fn keeps<P: Component + ?Sized>(who: &str, implementation: &P, run: &Run) -> usize {
    let broken = broken(implementation, run);
    let words = |(id, said): &(&str, String)| format!("{id} is broken by {who}\n{said}");
    assert!(broken.is_empty(), "{}", broken.iter().map(words).collect::<Vec<_>>().join("\n\n"));
    P::invariants().len()
}

/// Embedding, shards and loss.
fn keeps_all(who: &str, world: impl World + 'static, run: &Run) {
    let ranks = Sharded::new(world);
    let laws = [
        keeps::<dyn VocabEmbedding>(who, &ranks, run),
        keeps::<dyn ParallelVocabEmbedding>(who, &ranks, run),
        keeps::<dyn CrossEntropy>(who, &ranks, run),
    ];
    println!("{who}: {laws:?} invariants of embedding, shards and loss hold");
}

#[test]
fn one_table_keeps_the_contract() {
    keeps_all("one table", OfThreads::new(1), &MANY);
}

#[test]
fn threads_keep_the_contract() {
    for ranks in worlds() {
        keeps_all(&format!("{ranks} threads"), OfThreads::new(ranks), &FEW);
    }
}

/// The sum in the order of the vocabulary is another way through the code.
#[test]
fn threads_in_order_keep_the_contract_of_shards() {
    for ranks in worlds() {
        let in_order = Sharded { block: Some(1), ..Sharded::new(OfThreads::new(ranks)) };
        keeps::<dyn ParallelVocabEmbedding>(&format!("{ranks} threads in order"), &in_order, &FEW);
    }
}

#[test]
fn processes_keep_the_contract() {
    let _alone = alone();
    for ranks in worlds() {
        keeps_all(&format!("{ranks} processes"), processes(ranks), &FEW);
    }
}

#[test]
fn each_of_many_threads_keeps_the_contract_of_shards() {
    keeps::<dyn ParallelVocabEmbedding>("one of many threads", &OneOfThreads, &FEW);
}
