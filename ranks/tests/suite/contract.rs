//! The course's own contract, held to ranks: whoever asks does not see that the table is cut.

use crate::support::{alone, processes};
use contract::component::Component;
use contract::party::*;
use contract::report::result;
use contract::run::Run;
use quadrivium::ParallelVocabEmbeddingConfig;
use quadrivium::loss::{mean_loss, perplexity};
use quadrivium::parallel;
use ranks::act::{Answer, Question};
use ranks::party::{OfThreads, Party, Said};
use std::ops::Range;

/// Ranks as a party to the seams.
struct Sharded(Box<dyn Party>);

impl Sharded {
    fn ask(&self, question: &Question) -> Reply<Answer> {
        match self.0.ask(question).map_err(Refusal::not_asked)? {
            Said::Answer(answer) if answer.same => Ok(answer),
            Said::Answer(_) => Err(Refusal::not_asked("the ranks do not have the same")),
            Said::Refused(rank, why) => Err(Refusal::new(format!("rank {rank} refused: {why}"))),
            Said::Failed(words) => Err(Refusal::new(words.join(" | "))),
        }
    }

    fn lookup(&self, case: &LookupCase, dy: Option<&[f32]>) -> Reply<Answer> {
        let LookupCase { shape, embedding_dim, table, ids, .. } = case.clone();
        let dy = dy.map(<[f32]>::to_vec);
        self.ask(&Question::Lookup { shape, width: embedding_dim, table, ids, dy, block: None })
    }
}

impl VocabEmbedding for Sharded {
    fn initial_table(&self, v: usize, e: usize, init: NormalInit) -> Reply<Vec<f32>> {
        let NormalInit { mean, std, seed } = init;
        Ok(self.ask(&Question::Initial { shape: [v, e], mean, std, seed })?.dtable)
    }

    fn forward(&self, case: &LookupCase) -> Reply<Found> {
        Ok(Found { y: self.lookup(case, None)?.y, ids_after: case.ids.clone() })
    }

    fn backward(&self, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        Ok(self.lookup(case, Some(dy))?.dtable)
    }
}

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

    fn forward(&self, case: &LossCase) -> Reply<f32> {
        let LossCase { shape, logits, targets } = case.clone();
        Ok(self.ask(&Question::Entropy { shape, logits, targets })?.y[0])
    }

    fn backward(&self, case: &LossCase, dloss: f32) -> Reply<Vec<f32>> {
        let LossCase { shape, logits, targets } = case.clone();
        let [b, s, v] = shape;
        let columns = self.ask(&Question::Entropy { shape, logits, targets })?.dtable; // [v, b s]
        let t = b * s;
        Ok((0..t * v).map(|at| columns[at % v * t + at / v] * dloss).collect())
    }

    fn perplexity(&self, parts: &[Part]) -> Reply<f32> {
        let parts: Vec<_> = parts.iter().map(|part| (f64::from(part.loss), part.places)).collect();
        Ok(perplexity(mean_loss(&parts).map_err(Refusal::new)?) as f32)
    }
}

/// As many threads as a case has ranks. Only the rank that is asked about has rows; the others have zeros. So what all of
/// them add up is that rank's part.
struct OneOfThreads;

impl OneOfThreads {
    fn ask(&self, case: &ShardCase, dy: Option<&[f32]>) -> Reply<Answer> {
        let ShardCase { shape, vocab_size, embedding_dim, world_size, rank, shard, ids } =
            case.clone();
        let own = parallel::shard_range(vocab_size, world_size, rank).map_err(Refusal::new)?;
        let mut table = vec![0.0; vocab_size * embedding_dim];
        table[own.start * embedding_dim..own.end * embedding_dim].copy_from_slice(&shard);
        let dy = dy.map(<[f32]>::to_vec);
        let question =
            Question::Lookup { shape, width: embedding_dim, table, ids, dy, block: None };
        Sharded(Box::new(OfThreads::new(world_size))).ask(&question)
    }
}

impl ParallelVocabEmbedding for OneOfThreads {
    /// Nothing is exchanged for it.
    fn shard_range(&self, v: usize, w: usize, rank: usize) -> Reply<Range<usize>> {
        parallel::shard_range(v, w, rank).map_err(Refusal::new)
    }

    /// Nothing is exchanged for it.
    fn initial_shard(
        &self,
        v: usize,
        e: usize,
        w: usize,
        rank: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        let (init_mean, init_std) = (f64::from(init.mean), f64::from(init.std));
        let config =
            ParallelVocabEmbeddingConfig { rank, init_mean, init_std, init_base_seed: init.seed };
        let rows = parallel::shard_range(v, w, rank).map_err(Refusal::new)?.len();
        Ok(config.init().values(rows * e))
    }

    fn forward(&self, case: &ShardCase) -> Reply<Found> {
        Ok(Found { y: self.ask(case, None)?.y, ids_after: case.ids.clone() })
    }

    fn backward(&self, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let dtable = self.ask(case, Some(dy))?.dtable;
        let own = parallel::shard_range(case.vocab_size, case.world_size, case.rank)
            .map_err(Refusal::new)?;
        Ok(dtable[own.start * case.embedding_dim..own.end * case.embedding_dim].to_vec())
    }
}

/// A few questions of each kind: each goes through a pipe and round all ranks.
const FEW: Run = Run { seed: 7, cases: 2, shrink: false, every_size: false, blocks: false };

/// Every invariant holds, but for those of `apart`, each with its reason.
fn keeps<P: Component + ?Sized>(who: &str, party: &P, run: &Run, apart: &[(&str, &str)]) {
    let mut surprises = Vec::new();
    for invariant in P::invariants() {
        let expected = apart.iter().find(|(id, _)| *id == invariant.id);
        match (invariant.judge(party, run), expected) {
            (Err(breach), None) => surprises.push(format!(
                "{} is broken by {who}\n{}\n{}",
                invariant.id,
                breach.input,
                result(&breach)
            )),
            (Ok(_), Some((id, reason))) => {
                surprises.push(format!("{id} holds by now, although {reason}"))
            }
            _ => {}
        }
    }
    assert!(surprises.is_empty(), "{}", surprises.join("\n\n"));
}

/// What ranks do otherwise than one table, by design.
const EMBEDDING_APART: &[(&str, &str)] = &[];
const LOSS_APART: &[(&str, &str)] = &[];

fn both(who: &str, party: impl Party + 'static, run: &Run) {
    let sharded = Sharded(Box::new(party));
    keeps::<dyn VocabEmbedding>(who, &sharded, run, EMBEDDING_APART);
    keeps::<dyn CrossEntropy>(who, &sharded, run, LOSS_APART);
}

#[test]
fn one_rank_keeps_the_contract() {
    both("one rank", OfThreads::new(1), &FEW);
}

#[test]
fn threads_keep_the_contract() {
    for ranks in [2, 3, 4, 8] {
        both(&format!("{ranks} threads"), OfThreads::new(ranks), &FEW);
    }
}

#[test]
fn processes_keep_the_contract() {
    let _alone = alone();
    for ranks in [2, 3, 4, 8] {
        both(&format!("{ranks} processes"), processes(ranks), &FEW);
    }
}

#[test]
fn each_of_many_threads_keeps_the_contract_of_shards() {
    keeps::<dyn ParallelVocabEmbedding>("one of many threads", &OneOfThreads, &FEW, &[]);
}
