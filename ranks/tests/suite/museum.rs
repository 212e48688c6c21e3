//! Mistakes that ranks make, each as a communicator or a formula with one thing wrong. The named invariant must catch it.

use crate::contract::{FEW, Sharded, broken};
use crate::invariants::INVARIANTS;
use crate::tensor_parallel;
use contract::component::Component;
use contract::interface::{CrossEntropy, ParallelVocabEmbedding};
use ranks::act::{Answer, Question, Tiny, answer};
use ranks::communicator::{Call, Communicator, Op, Order, Values, sum};
use ranks::error::{Refusal, Result};
use ranks::link::threads::run;
use ranks::world::{OfThreads, Said, World};
use std::cell::Cell;
use std::rc::Rc;

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bug {
    /// Each rank goes on with its own part.
    AllReduceForgotten,
    /// The sum is divided by the number of ranks, as for gradients of copies.
    MeanInsteadOfSum,
    /// Each rank takes its own largest logit away.
    MaxNotShared,
    /// Owned gradients are added up as if the rows were copies.
    OwnedGradientAllReduced,
    /// No one asks whether all read the same tokens.
    DifferentBatches,
    /// No one asks whether a rank has refused: the others go on without it.
    RefusalNotShared,
    /// The gradient of the output's input stays what each rank's own rows make of it.
    InputGradientNotSummed,
    /// The gradient of what all heads, or all columns, have read stays what each rank's own make of it.
    TokensGradientNotSummed,
    /// The same in a step of training, where the blocks' gradients come of it.
    InputGradientNotSummedInTraining,
    /// The same of the tokens in blocks that are cut. A loss makes 6 sums there, and a step 10, of which the last 4 are on the way
    /// back.
    TokensGradientNotSummedInTraining,
    /// A rank is gone when the first sum on the way back is made.
    GoneOnTheWayBack,
}

/// A communicator with a mistake.
struct Wrong {
    comm: Rc<dyn Communicator>,
    bug: Bug,
    /// Sums of `f32` that were asked for. In training with whole blocks, a loss or a step makes two: the lookup's, and that of
    /// `dx`. In a block that is cut, the first two are those on the way forward.
    sums: Cell<usize>,
}

impl Wrong {
    fn divide(&self, mut values: Values<'_>) {
        let w = self.world_size();
        match values.again() {
            Values::F32(values) => values.iter_mut().for_each(|value| *value /= w as f32),
            Values::F64(values) => values.iter_mut().for_each(|value| *value /= w as f64),
        }
    }

    /// In the loss alone, the only `f32` that are added up are those of `dx`.
    fn forgets(&self, values: &Values<'_>, op: Op) -> bool {
        let nth = match (values, op) {
            (Values::F32(_), Op::Sum) => self.sums.replace(self.sums.get() + 1),
            _ => 0,
        };
        match self.bug {
            Bug::AllReduceForgotten => true,
            Bug::MaxNotShared => op == Op::Max,
            Bug::InputGradientNotSummed => {
                op == Op::Sum && matches!(values, Values::F32(_)) && values.len() == 70
            }
            Bug::TokensGradientNotSummed => nth >= 2,
            Bug::InputGradientNotSummedInTraining => nth % 2 == 1,
            Bug::TokensGradientNotSummedInTraining => nth % 16 >= 12,
            _ => false,
        }
    }
}

impl Communicator for Wrong {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn world_size(&self) -> usize {
        self.comm.world_size()
    }

    fn name(&self) -> usize {
        self.comm.name()
    }

    fn agree(&self, call: Call, mine: std::result::Result<(), Refusal>) -> Result<()> {
        match self.bug {
            Bug::DifferentBatches => self.comm.agree(Call { digest: 0, ..call }, mine),
            Bug::RefusalNotShared => {
                self.comm.agree(call, Ok(()))?;
                mine.map_err(|why| ranks::Error::Refused { rank: self.rank(), why })
            }
            _ => self.comm.agree(call, mine),
        }
    }

    fn all_reduce(&self, mut values: Values<'_>, op: Op) -> Result<()> {
        if self.forgets(&values, op) {
            return Ok(());
        }
        if self.bug == Bug::GoneOnTheWayBack && self.sums.get() == 3 {
            return Err(ranks::Error::Gone { rank: 1, call: "a sum".into() });
        }
        self.comm.all_reduce(values.again(), op)?;
        if self.bug == Bug::MeanInsteadOfSum && op == Op::Sum {
            self.divide(values);
        }
        Ok(())
    }

    fn carry(&self, mut total: Values<'_>, own: &mut dyn FnMut(Values<'_>)) -> Result<()> {
        if self.forgets(&total, Op::Sum) {
            own(total);
            return Ok(());
        }
        self.comm.carry(total.again(), own)?;
        if self.bug == Bug::MeanInsteadOfSum {
            self.divide(total);
        }
        Ok(())
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.comm.gather(bytes)
    }

    fn broadcast(&self, root: usize, bytes: &[u8]) -> Result<Vec<u8>> {
        self.comm.broadcast(root, bytes)
    }

    fn split(&self, colour: usize) -> Result<Box<dyn Communicator>> {
        self.comm.split(colour)
    }

    fn sent(&self) -> u64 {
        self.comm.sent()
    }

    fn waited(&self) -> std::time::Duration {
        self.comm.waited()
    }
}

/// Threads with the same mistake.
struct WrongRanks {
    ranks: usize,
    bug: Bug,
}

impl WrongRanks {
    fn answer(&self, comm: &Rc<dyn Communicator>, question: &Question) -> Result<Answer> {
        let wrong: Rc<dyn Communicator> =
            Rc::new(Wrong { comm: Rc::clone(comm), bug: self.bug, sums: Cell::new(0) });
        let mut answer = answer(&wrong, question)?;
        if self.bug == Bug::OwnedGradientAllReduced {
            // Every rank's gradient becomes the sum of all ranks' gradients, row by row of the shards.
            let n = answer.dtable.len() / self.ranks;
            let own = answer.dtable[comm.rank() * n..(comm.rank() + 1) * n].to_vec();
            let mut all = own;
            sum(comm.as_ref(), Order::Any, &mut all)?;
            let gathered =
                comm.gather(&all.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())?;
            let floats = gathered.iter().flat_map(|bytes| bytes.chunks_exact(4));
            answer.dtable = floats.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        }
        Ok(answer)
    }
}

impl World for WrongRanks {
    fn world_size(&self) -> usize {
        self.ranks
    }

    fn ask(&self, question: &Question) -> Result<Said> {
        let results = run(self.ranks, |comm| self.answer(comm, question));
        let words = |result: &Option<Result<Answer>>| match result {
            Some(Ok(_)) => "answered".to_string(),
            Some(Err(error)) => error.to_string(),
            None => "panicked".to_string(),
        };
        Ok(match &results[0] {
            Some(Ok(answer)) if results.iter().all(|result| matches!(result, Some(Ok(_)))) => {
                Said::Answer(answer.clone())
            }
            Some(Err(ranks::Error::Refused { rank, why }))
                if results.iter().all(|r| *r == results[0]) =>
            {
                Said::Refused(*rank, why.clone())
            }
            _ => Said::Failed(results.iter().map(words).collect()),
        })
    }
}

/// Which invariants a mistake breaks, by their names.
fn broken_by(bug: Bug) -> Vec<&'static str> {
    let world = WrongRanks { ranks: 3, bug };
    let broken = INVARIANTS.iter().filter(|(_, invariant)| invariant(&world).is_err());
    broken.map(|(name, _)| *name).collect()
}

/// Which invariants of the course's contract it breaks.
fn broken_in_contract<P: Component + ?Sized>(
    bug: Bug,
    as_world: impl Fn(&Sharded) -> &P,
) -> Vec<&'static str> {
    let world = Sharded::new(WrongRanks { ranks: 3, bug });
    broken(as_world(&world), &FEW).into_iter().map(|(id, _)| id).collect()
}

/// The contract's own laws see the same mistakes, although they ask about one rank of a world of any size.
#[test]
fn the_contract_catches_what_ranks_forget() {
    let of_shards = |bug| broken_in_contract::<dyn ParallelVocabEmbedding>(bug, |world| world);
    let of_loss = |bug| broken_in_contract::<dyn CrossEntropy>(bug, |world| world);
    // The page on ParallelVocabEmbedding has these numbers.
    let all = <dyn ParallelVocabEmbedding>::invariants().len();
    assert_eq!((of_shards(Bug::AllReduceForgotten).len(), all), (17, 34));
    for (bug, shards, loss) in [
        (Bug::AllReduceForgotten, "parallel/owned-rows", "loss/two-tokens"),
        (Bug::MeanInsteadOfSum, "parallel/owned-rows", "loss/two-tokens"),
        (Bug::MaxNotShared, "", "loss/two-tokens"),
        (Bug::OwnedGradientAllReduced, "parallel/gradient-slices", ""),
    ] {
        let (of_shards, of_loss) = (of_shards(bug), of_loss(bug));
        assert!(shards.is_empty() || of_shards.contains(&shards), "{bug:?}: {of_shards:?}");
        assert!(loss.is_empty() || of_loss.contains(&loss), "{bug:?}: {of_loss:?}");
    }
}

#[test]
fn an_all_reduce_that_is_forgotten_is_caught() {
    let broken = broken_by(Bug::AllReduceForgotten);
    assert!(["values", "loss"].iter().all(|name| broken.contains(name)), "{broken:?}");
}

#[test]
fn a_mean_in_place_of_a_sum_is_caught() {
    let broken = broken_by(Bug::MeanInsteadOfSum);
    assert!(
        ["values", "loss", "loss-in-order"].iter().all(|name| broken.contains(name)),
        "{broken:?}"
    );
}

/// Embeddings have no maximum, and small logits forgive none: each rank's exponentials have their own scale.
#[test]
fn a_maximum_that_is_not_shared_is_caught() {
    assert_eq!(
        broken_by(Bug::MaxNotShared),
        ["loss", "loss-in-order", "large-logits", "library-loss"]
    );
}

#[test]
fn owned_gradients_that_are_all_reduced_are_caught() {
    let broken = broken_by(Bug::OwnedGradientAllReduced);
    assert!(["gradients", "loss"].iter().all(|name| broken.contains(name)), "{broken:?}");
    assert!(!broken.contains(&"values"), "the lookup itself is right");
}

/// Only a comparison of the inputs shows it: the sums are made, of parts that do not belong together.
#[test]
fn ranks_that_read_different_batches_are_caught() {
    assert_eq!(broken_by(Bug::DifferentBatches), ["other-ids-refused"]);
}

#[test]
fn a_refusal_that_is_not_shared_is_caught() {
    assert_eq!(broken_by(Bug::RefusalNotShared), ["bad-id-refused"]);
}

#[test]
fn an_input_gradient_that_is_not_summed_is_caught() {
    assert_eq!(broken_by(Bug::InputGradientNotSummed), ["loss", "loss-in-order"]);
}

/// Of a block that is cut, in both orders.
#[test]
fn what_is_forgotten_of_a_block_is_caught() {
    let all = [
        (Bug::AllReduceForgotten, "not the same"),
        (Bug::MeanInsteadOfSum, "it should be"),
        (Bug::TokensGradientNotSummed, "not the same"),
    ];
    for (bug, words) in all {
        for in_order in [true, false] {
            let world = WrongRanks { ranks: 2, bug };
            let said = world.ask(&tensor_parallel::question(0, in_order)).unwrap();
            let Said::Answer(answer) = said else { panic!("{bug:?}: {said:?}") };
            let found = match answer.same {
                false => Some("not the same on all ranks".to_string()),
                true => tensor_parallel::too_far(&answer, 0),
            };
            assert!(
                found.as_ref().is_some_and(|found| found.contains(words)),
                "{bug:?}: {found:?}"
            );
        }
    }
}

/// A tape can only stop, but the error is the one that the ranks have reported.
#[test]
fn a_rank_that_is_lost_on_the_way_back_is_told() {
    let world = WrongRanks { ranks: 2, bug: Bug::GoneOnTheWayBack };
    let said = world.ask(&tensor_parallel::question(0, false)).unwrap();
    let Said::Failed(words) = said else { panic!("{said:?}") };
    let expected = ranks::Error::Gone { rank: 1, call: "a sum".into() }.to_string();
    assert_eq!(words, [expected.clone(), expected]);
}

/// A collective that only some ranks make: the others are at another call, and all learn it.
#[test]
fn a_collective_under_a_condition_is_caught() {
    let question = Question::Lookup {
        shape: [1, 2],
        width: 1,
        table: vec![1.0; 6],
        ids: vec![0, 5],
        dy: None,
        block: None,
    };
    let question = Question::UnderCondition { but: 1, question: Box::new(question) };
    let Said::Failed(words) = OfThreads::new(3).ask(&question).unwrap() else {
        panic!("it passed")
    };
    let expected = "rank 1 is at call 0, a lookup of 1 x 2 tokens, 2 rows of 1 elements a rank, 6 ids, the others at \
                    call 0, a sum of 3 f32: every rank must make the same calls in the same order; take the call \
                    out of the condition that only some ranks meet";
    assert_eq!(words, [expected; 3]);
}

/// What all ranks have, whole blocks or the norms of those that are cut, has gradients that are not exchanged. Ranks therefore
/// compare them in each step.
#[test]
fn blocks_that_drift_apart_are_caught() {
    let all = [
        (3, Tiny::Tied, Bug::InputGradientNotSummedInTraining),
        (2, Tiny::TensorParallel, Bug::TokensGradientNotSummedInTraining),
    ];
    for (ranks, kind, bug) in all {
        let world = WrongRanks { ranks, bug };
        let question = Question::Train {
            world_size: ranks,
            steps: 2,
            seed: 42,
            same_text: true,
            kind,
            block: None,
        };
        let Said::Failed(words) = world.ask(&question).unwrap() else { panic!("it passed") };
        // Each of them has others.
        let expected = "rank 1 has other gradients than rank 0 of what every rank has, ";
        assert!(words.iter().all(|words| words.starts_with(expected)), "{words:?}");
    }
}
