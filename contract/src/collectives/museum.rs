//! Bugs of ranks that compute together.

use crate::collectives::interface::*;
use crate::collectives::oracle::{
    CollectiveLoops, Known, Shard, added, check_targets, entropy, implementation, tree,
};
use crate::component::Bug;
use crate::oracle::Oracle;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl CollectiveLoops for $name { $($steps)* }
        || -> Box<dyn Collectives> { implementation($name) }
    }};
}

/// All of them.
pub static BUGS: &[Bug<dyn Collectives>] = &[
    // --- calls ---
    Bug {
        id: "collectives/call-under-a-condition",
        misconception: "shares the targets' logits on the ranks that have one, and not on the others",
        story: "\"Nothing to add, nothing to say.\" The others wait for ever, on the first batch whose targets are not spread \
                over all ranks. A cluster stands still without an error.",
        source: None,
        named_by: "collectives/everyone-comes",
        implementation: bug!(CallUnderACondition {
            fn share_targets(&self, shard: &Shard, targets: &mut [f32]) -> Result<(), Trouble> {
                match shard.targets.iter().any(|target| shard.has(*target)) {
                    true => shard.comm.all_reduce_sum(targets),
                    false => Ok(()),
                }
            }
        }),
    },
    Bug {
        id: "collectives/returns-before-the-others",
        misconception: "returns at once on a rank that has none of the targets",
        story: "An early return that saves work. Its gradient is wrong too: this rank's ids have probabilities.",
        source: None,
        named_by: "collectives/everyone-comes",
        implementation: bug!(ReturnsBeforeTheOthers {
            fn entropy(&self, shard: &Shard) -> Result<Entropy, RankError> {
                if shard.targets.iter().any(|target| shard.has(*target)) {
                    return entropy(self, shard);
                }
                Ok(Entropy { loss: 0.0, dlogits: vec![0.0; shard.logits.len()] })
            }
        }),
    },
    Bug {
        id: "collectives/own-targets-alone-shared",
        misconception: "shares a list of the targets that are its own, as long as there are",
        story: "The list was filtered first. Its length is another one on each rank; a library that does not look adds up \
                numbers of different tokens.",
        source: None,
        named_by: "collectives/everyone-comes",
        implementation: bug!(OwnTargetsAloneShared {
            fn share_targets(&self, shard: &Shard, targets: &mut [f32]) -> Result<(), Trouble> {
                let own: Vec<usize> =
                    (0..targets.len()).filter(|place| shard.has(shard.targets[*place])).collect();
                let mut list: Vec<f32> = own.iter().map(|place| targets[*place]).collect();
                shard.comm.all_reduce_sum(&mut list)?;
                own.iter().zip(list).for_each(|(place, value)| targets[*place] = value);
                Ok(())
            }
        }),
    },
    Bug {
        id: "collectives/another-order-on-rank-0",
        misconception: "makes its calls in another order on rank 0",
        story: "Rank 0 writes the log, and reads the largest logit for it once more before the sums.",
        source: None,
        named_by: "collectives/everyone-comes",
        implementation: bug!(AnotherOrderOnRank0 {
            fn share_total(&self, shard: &Shard, totals: &mut [f32]) -> Result<(), Trouble> {
                if shard.comm.rank() == 0 {
                    shard.comm.all_reduce_max(&mut totals.to_vec())?;
                }
                shard.comm.all_reduce_sum(totals)
            }
        }),
    },
    // --- sums ---
    Bug {
        id: "collectives/total-not-shared",
        misconception: "forgets to share the sums of exponentials: each rank has a softmax of its own",
        story: "All shapes are right, and every loss is too small by what the other ranks have.",
        source: None,
        named_by: "collectives/any-number-of-ranks",
        implementation: bug!(TotalNotShared {
            fn share_total(&self, _: &Shard, _: &mut [f32]) -> Result<(), Trouble> {
                Ok(())
            }
        }),
    },
    Bug {
        id: "collectives/target-not-shared",
        misconception: "forgets to share the targets' logits: they are 0 on all ranks but their owner",
        story: "Rank 0 prints the loss, and it looks nearly right.",
        source: None,
        named_by: "collectives/same-loss-on-all-ranks",
        implementation: bug!(TargetNotShared {
            fn share_targets(&self, _: &Shard, _: &mut [f32]) -> Result<(), Trouble> {
                Ok(())
            }
        }),
    },
    Bug {
        id: "collectives/mean-for-sum",
        misconception: "takes the mean of the ranks' sums of exponentials, not their sum",
        story: "The all-reduce of the data-parallel gradients was copied, and that one divides by the number of ranks. The \
                loss is too small by ln w.",
        source: None,
        named_by: "collectives/any-number-of-ranks",
        implementation: bug!(MeanForSum {
            fn share_total(&self, shard: &Shard, totals: &mut [f32]) -> Result<(), Trouble> {
                shard.comm.all_reduce_sum(totals)?;
                totals.iter_mut().for_each(|total| *total /= shard.comm.world_size() as f32);
                Ok(())
            }
        }),
    },
    Bug {
        id: "collectives/target-by-mean",
        misconception: "takes the mean of what the ranks say of a target's logit, of which all but one are 0",
        story: "The same helper for all exchanges, and it averages.",
        source: None,
        named_by: "collectives/any-number-of-ranks",
        implementation: bug!(TargetByMean {
            fn share_targets(&self, shard: &Shard, targets: &mut [f32]) -> Result<(), Trouble> {
                shard.comm.all_reduce_sum(targets)?;
                targets.iter_mut().for_each(|target| *target /= shard.comm.world_size() as f32);
                Ok(())
            }
        }),
    },
    Bug {
        id: "collectives/target-by-largest",
        misconception: "takes the largest of what the ranks say of a target's logit: a negative one becomes 0",
        story: "One all-reduce for the largest logit and the target. Who does not have it says 0, and 0 is not small.",
        source: None,
        named_by: "collectives/any-number-of-ranks",
        implementation: bug!(TargetByLargest {
            fn share_targets(&self, shard: &Shard, targets: &mut [f32]) -> Result<(), Trouble> {
                shard.comm.all_reduce_max(targets)
            }
        }),
    },
    Bug {
        id: "collectives/loss-counted-by-every-rank",
        misconception: "adds up the losses of all ranks, though each is already the whole",
        story: "A loss is all-reduced before it is printed, as everybody does with data-parallel ranks. It is w times too \
                large.",
        source: None,
        named_by: "collectives/any-number-of-ranks",
        implementation: bug!(LossCountedByEveryRank {
            fn finish(&self, shard: &Shard, result: Entropy) -> Result<Entropy, RankError> {
                let mut loss = [result.loss];
                shard.comm.all_reduce_sum(&mut loss)?;
                Ok(Entropy { loss: loss[0], ..result })
            }
        }),
    },
    Bug {
        id: "collectives/ranks-read-different-tokens",
        misconception: "takes another token's target on each rank, as if each had a batch of its own",
        story: "The data loader was seeded with the rank. That is right for data-parallel ranks; those that share a table \
                must read the same batch.",
        source: None,
        named_by: "collectives/any-number-of-ranks",
        implementation: bug!(RanksReadDifferentTokens {
            fn target(&self, shard: &Shard, place: usize) -> usize {
                shard.targets[(place + shard.comm.rank()) % shard.tokens()]
            }
        }),
    },
    Bug {
        id: "collectives/sum-over-tokens",
        misconception: "gives the sum of the losses of all tokens, not their mean",
        story: "The mean was left to the caller, who took it for one.",
        source: None,
        named_by: "collectives/mean-over-tokens",
        implementation: bug!(SumOverTokens {
            fn mean(&self, _: &Shard, losses: &[f64]) -> f64 {
                losses.iter().sum()
            }
        }),
    },
    Bug {
        id: "collectives/divided-by-own-targets",
        misconception: "divides the loss by the number of targets that the rank has, and at least by 1",
        story: "Each rank counts what its mask lets pass.",
        source: None,
        named_by: "collectives/mean-over-tokens",
        implementation: bug!(DividedByOwnTargets {
            fn mean(&self, shard: &Shard, losses: &[f64]) -> f64 {
                let own = shard.targets.iter().filter(|target| shard.has(**target)).count();
                losses.iter().sum::<f64>() / own.max(1) as f64
            }
        }),
    },
    // --- owners ---
    Bug {
        id: "collectives/offset-forgotten",
        misconception: "takes an id for a column: the rank's first id is not subtracted",
        story: "On rank 0 both are the same, and the test ran on rank 0.",
        source: None,
        named_by: "collectives/one-owner",
        implementation: bug!(OffsetForgotten {
            fn column(&self, shard: &Shard, id: usize) -> Option<usize> {
                (id < shard.own).then_some(id)
            }
        }),
    },
    Bug {
        id: "collectives/end-included",
        misconception: "takes the id behind its last one for its own, with the last one's logit",
        story: "`<=` for `<`, and a clamp that keeps the column inside. Ids at the edge have two owners.",
        source: None,
        named_by: "collectives/one-owner",
        implementation: bug!(EndIncluded {
            fn column(&self, shard: &Shard, id: usize) -> Option<usize> {
                (shard.first..=shard.first + shard.own)
                    .contains(&id)
                    .then(|| (id - shard.first).min(shard.own - 1))
            }
        }),
    },
    Bug {
        id: "collectives/first-id-left-out",
        misconception: "does not take its first id for its own",
        story: "`>` for `>=`. One id of each rank has no owner, and its logit is 0.",
        source: None,
        named_by: "collectives/one-owner",
        implementation: bug!(FirstIdLeftOut {
            fn column(&self, shard: &Shard, id: usize) -> Option<usize> {
                (shard.has(id) && id > shard.first).then(|| id - shard.first)
            }
        }),
    },
    Bug {
        id: "collectives/target-not-masked",
        misconception: "adds the logit of its own column 0 for a target that it does not have",
        story: "Foreign ids are set to 0 so that the lookup is legal, and what was looked up is never set to 0 after it.",
        source: None,
        named_by: "collectives/one-owner",
        implementation: bug!(TargetNotMasked {
            fn target_logit(&self, shard: &Shard, place: usize, column: Option<usize>) -> f32 {
                shard.row(place)[column.unwrap_or(0)]
            }
        }),
    },
    Bug {
        id: "collectives/target-masked-by-a-product",
        misconception: "multiplies what it looked up for a foreign target by 0, which for −∞ is NaN",
        story: "A mask of zeros and ones, as long as every logit is finite.",
        source: None,
        named_by: "collectives/foreign-logits-stay-out",
        implementation: bug!(TargetMaskedByAProduct {
            fn target_logit(&self, shard: &Shard, place: usize, column: Option<usize>) -> f32 {
                let mask = if column.is_some() { 1.0 } else { 0.0 };
                mask * shard.row(place)[column.unwrap_or(0)]
            }
        }),
    },
    // --- the largest logit ---
    Bug {
        id: "collectives/largest-not-shared",
        misconception: "subtracts the largest of its own logits: the ranks' sums are on different scales",
        story: "The softmax of one rank was kept, and only its sum is shared. Where all ranks have the same largest logit it \
                is right.",
        source: None,
        named_by: "collectives/any-number-of-ranks",
        implementation: bug!(LargestNotShared {
            fn share_largest(&self, _: &Shard, _: &mut [f32]) -> Result<(), Trouble> {
                Ok(())
            }
        }),
    },
    Bug {
        id: "collectives/sum-before-the-shift",
        misconception: "takes exponentials of the logits as they are, in f32, and shares only their sum",
        story: "One call fewer. With the first logit above 88 the sum is infinite.",
        source: None,
        named_by: "collectives/largest-of-all",
        implementation: bug!(SumBeforeTheShift {
            fn largest(&self, _: &Shard, _: usize) -> f32 {
                0.0
            }
            fn exp(&self, logit: f64, _: f64) -> f64 {
                f64::from((logit as f32).exp())
            }
        }),
    },
    Bug {
        id: "collectives/largest-by-sum",
        misconception: "adds up the largest logits of all ranks and subtracts that",
        story: "All-reduce sums unless it is told otherwise. The number cancels, so small logits hide it; large ones vanish.",
        source: None,
        named_by: "collectives/largest-of-all",
        implementation: bug!(LargestBySum {
            fn share_largest(&self, shard: &Shard, largest: &mut [f32]) -> Result<(), Trouble> {
                shard.comm.all_reduce_sum(largest)
            }
            fn exp(&self, logit: f64, largest: f64) -> f64 {
                f64::from(((logit - largest) as f32).exp())
            }
        }),
    },
    Bug {
        id: "collectives/largest-of-the-batch",
        misconception: "subtracts one number from all tokens: the largest logit of the batch",
        story: "One number travels instead of t. Tokens whose logits are small have nothing left.",
        source: None,
        named_by: "collectives/largest-of-all",
        implementation: bug!(LargestOfTheBatch {
            fn share_largest(&self, shard: &Shard, largest: &mut [f32]) -> Result<(), Trouble> {
                let mut one = [largest.iter().copied().fold(f32::NEG_INFINITY, f32::max)];
                shard.comm.all_reduce_max(&mut one)?;
                largest.fill(one[0]);
                Ok(())
            }
            fn exp(&self, logit: f64, largest: f64) -> f64 {
                f64::from(((logit - largest) as f32).exp())
            }
        }),
    },
    Bug {
        id: "collectives/forbidden-shard-is-nan",
        misconception: "brings its sum to the scale of all ranks afterwards, and −∞ − (−∞) is NaN",
        story: "Sums on each rank's own scale, brought together by exp(own − largest). That is right but for a rank that has \
                nothing but forbidden ids.",
        source: None,
        named_by: "collectives/forbidden-shard",
        implementation: bug!(ForbiddenShardIsNan {
            fn share_total(&self, shard: &Shard, totals: &mut [f32]) -> Result<(), Trouble> {
                for (place, total) in totals.iter_mut().enumerate() {
                    if Oracle.largest(shard, place) == f32::NEG_INFINITY {
                        *total = f32::NAN;
                    }
                }
                shard.comm.all_reduce_sum(totals)
            }
        }),
    },
    // --- refusal ---
    Bug {
        id: "collectives/bad-target-accepted",
        misconception: "accepts a target that no rank has, whose logit is 0 then",
        story: "\"It is not mine\", says each rank. With one rank the lookup would have panicked.",
        source: None,
        named_by: "collectives/bad-target-refused-alike",
        implementation: bug!(BadTargetAccepted {
            fn check(&self, _: &Shard) -> Result<(), RankError> {
                Ok(())
            }
        }),
    },
    Bug {
        id: "collectives/last-rank-alone-refuses",
        misconception: "refuses a bad target on the last rank alone, and the others wait for it",
        story: "The last rank's range ends where the vocabulary ends, so it is the one that notices. Its error is printed \
                once, and the other processes have to be killed.",
        source: None,
        named_by: "collectives/bad-target-refused-alike",
        implementation: bug!(LastRankAloneRefuses {
            fn check(&self, shard: &Shard) -> Result<(), RankError> {
                match shard.first + shard.own == shard.vocab_size {
                    true => check_targets(shard),
                    false => Ok(()),
                }
            }
        }),
    },
    Bug {
        id: "collectives/refused-after-a-call",
        misconception: "refuses a bad target on all ranks, but after a call to the others",
        story: "The targets are looked at where their logits are needed: behind the first exchange. All ranks have read the same \
                targets here, so all stop there. A rank that has read another batch is still on its way to the second call.",
        source: None,
        named_by: "collectives/bad-target-refused-alike",
        implementation: bug!(RefusedAfterACall {
            fn check(&self, shard: &Shard) -> Result<(), RankError> {
                shard.comm.all_reduce_max(&mut [shard.logits[0]])?;
                check_targets(shard)
            }
        }),
    },
    Bug {
        id: "collectives/foreign-target-refused",
        misconception: "refuses a target that is not its own",
        story: "The check of a lookup in a table, copied from one rank: an id must be below the number of rows.",
        source: None,
        named_by: "collectives/everyone-comes",
        implementation: bug!(ForeignTargetRefused {
            fn check(&self, shard: &Shard) -> Result<(), RankError> {
                match shard.targets.iter().position(|target| !shard.has(*target)) {
                    None => Ok(()),
                    Some(place) => Err(RankError::Target {
                        target: shard.targets[place],
                        place,
                        vocab_size: shard.vocab_size,
                    }),
                }
            }
        }),
    },
    Bug {
        id: "collectives/last-bad-target-named",
        misconception: "names the last bad target, not the first",
        story: "The loop over the targets overwrites what it has found.",
        source: None,
        named_by: "collectives/bad-target-refused-alike",
        implementation: bug!(LastBadTargetNamed {
            fn check(&self, shard: &Shard) -> Result<(), RankError> {
                let vocab_size = shard.vocab_size;
                match shard.targets.iter().rposition(|target| *target >= vocab_size) {
                    None => Ok(()),
                    Some(place) => {
                        Err(RankError::Target { target: shard.targets[place], place, vocab_size })
                    }
                }
            }
        }),
    },
    Bug {
        id: "collectives/shard-size-named",
        misconception: "names the number of its own ids as the vocabulary size",
        story: "Inside the rank, that is what `logits.shape[1]` is.",
        source: None,
        named_by: "collectives/bad-target-refused-alike",
        implementation: bug!(ShardSizeNamed {
            fn check(&self, shard: &Shard) -> Result<(), RankError> {
                check_targets(shard).map_err(|error| match error {
                    RankError::Target { target, place, .. } => {
                        RankError::Target { target, place, vocab_size: shard.own }
                    }
                    other => other,
                })
            }
        }),
    },
    Bug {
        id: "collectives/edge-of-the-vocabulary-accepted",
        misconception: "accepts the target v, one behind the last id",
        story: "`>` for `>=`.",
        source: None,
        named_by: "collectives/bad-target-refused-alike",
        implementation: bug!(EdgeOfTheVocabularyAccepted {
            fn check(&self, shard: &Shard) -> Result<(), RankError> {
                match check_targets(shard) {
                    Err(RankError::Target { target, vocab_size, .. }) if target == vocab_size => Ok(()),
                    checked => checked,
                }
            }
        }),
    },
    // --- a rank that is lost ---
    Bug {
        id: "collectives/own-sum-on-trouble",
        misconception: "goes on with its own sums when the call for all of them ends with an error",
        story: "An error of the connection was noise once, on a laptop with one rank, and `ok()` made it quiet. When a machine is \
                lost, the others train on with a softmax of their own, and the loss looks fine.",
        source: None,
        named_by: "collectives/lost-rank-is-told",
        implementation: bug!(OwnSumOnTrouble {
            fn share_total(&self, shard: &Shard, totals: &mut [f32]) -> Result<(), Trouble> {
                shard.comm.all_reduce_sum(totals).ok();
                Ok(())
            }
            fn share_targets(&self, shard: &Shard, targets: &mut [f32]) -> Result<(), Trouble> {
                shard.comm.all_reduce_sum(targets).ok();
                Ok(())
            }
        }),
    },
    Bug {
        id: "collectives/panics-on-trouble",
        misconception: "panics when a call ends with an error",
        story: "`unwrap`, since a call had never failed. Nobody can save a checkpoint after a panic, and its words are about a \
                line of code, not about a rank.",
        source: None,
        named_by: "collectives/lost-rank-is-told",
        implementation: bug!(PanicsOnTrouble {
            fn share_largest(&self, shard: &Shard, largest: &mut [f32]) -> Result<(), Trouble> {
                shard.comm.all_reduce_max(largest).unwrap();
                Ok(())
            }
        }),
    },
    Bug {
        id: "collectives/own-blocks-on-trouble",
        misconception: "gives the sum of its own blocks when the others can't be reached",
        story: "A fallback for a world of one rank, which needs no others. It is taken in a world of eight, too, and each rank \
                has another sum.",
        source: None,
        named_by: "collectives/sum-needs-all-ranks",
        implementation: bug!(OwnBlocksOnTrouble {
            fn tree_sum(&self, comm: &dyn Communicator, blocks: &[f32], len: usize) -> Result<Vec<f32>, RankError> {
                let own = tree(blocks, len);
                Ok(comm.all_gather(&own).map_or(own, |sums| tree(&sums, len)))
            }
        }),
    },
    // --- what travels ---
    Bug {
        id: "collectives/logits-gathered",
        misconception: "gathers the logits of all ranks and computes the plain loss: right, but all logits travel",
        story: "The shortest program. With 128,256 ids, each token moves half a megabyte where 12 bytes would do, and the \
                memory that the cut had saved is needed again.",
        source: None,
        named_by: "collectives/logits-stay",
        implementation: bug!(LogitsGathered {
            fn entropy(&self, shard: &Shard) -> Result<Entropy, RankError> {
                check_targets(shard)?;
                shard.comm.all_gather(&shard.logits)?;
                entropy(self, shard)
            }
        }),
    },
    // --- the gradient ---
    Bug {
        id: "collectives/gradient-all-reduced",
        misconception: "adds up the gradients of all ranks' logits, which are of different ids",
        story: "\"Gradients are all-reduced\": those of weights that all ranks have. A shard's gradient is its owner's alone.",
        source: None,
        named_by: "collectives/gradient-any-number-of-ranks",
        implementation: bug!(GradientAllReduced {
            fn finish(&self, shard: &Shard, mut result: Entropy) -> Result<Entropy, RankError> {
                shard.comm.all_reduce_sum(&mut result.dlogits)?;
                Ok(result)
            }
        }),
    },
    Bug {
        id: "collectives/gradient-times-ranks",
        misconception: "multiplies the gradient by the number of ranks",
        story: "A tape that takes the gradient of an all-reduce for an all-reduce: each rank's 1 of the loss is added up w \
                times.",
        source: None,
        named_by: "collectives/gradient-of-uniform",
        implementation: bug!(GradientTimesRanks {
            fn share(&self, shard: &Shard) -> f64 {
                shard.comm.world_size() as f64 / shard.tokens() as f64
            }
        }),
    },
    Bug {
        id: "collectives/gradient-over-ranks",
        misconception: "divides the gradient by the number of ranks",
        story: "The mean of data-parallel training, for ranks that share one batch.",
        source: None,
        named_by: "collectives/gradient-of-uniform",
        implementation: bug!(GradientOverRanks {
            fn share(&self, shard: &Shard) -> f64 {
                1.0 / (shard.tokens() * shard.comm.world_size()) as f64
            }
        }),
    },
    Bug {
        id: "collectives/gradient-not-divided",
        misconception: "does not divide the gradient by the number of tokens",
        story: "The mean is taken of the loss alone.",
        source: None,
        named_by: "collectives/gradient-of-uniform",
        implementation: bug!(GradientNotDivided {
            fn share(&self, _: &Shard) -> f64 {
                1.0
            }
        }),
    },
    Bug {
        id: "collectives/local-softmax-in-the-gradient",
        misconception: "divides by its own sum of exponentials in the gradient, and by that of all ranks in the loss",
        story: "The buffer that was all-reduced is not the one that was kept for the way back.",
        source: None,
        named_by: "collectives/gradient-of-uniform",
        implementation: bug!(LocalSoftmaxInTheGradient {
            fn probability(&self, exp: f64, known: &Known) -> f64 {
                exp / known.own_total
            }
        }),
    },
    Bug {
        id: "collectives/one-subtracted-on-every-rank",
        misconception: "subtracts 1 on every rank: in the target's column, or in column 0 where it has none",
        story: "Foreign targets were set to column 0 for the lookup, and the same columns serve for the gradient.",
        source: None,
        named_by: "collectives/gradient-of-uniform",
        implementation: bug!(OneSubtractedOnEveryRank {
            fn is_hot(&self, shard: &Shard, column: usize, target: usize) -> bool {
                column == if shard.has(target) { target - shard.first } else { 0 }
            }
        }),
    },
    Bug {
        id: "collectives/one-not-subtracted",
        misconception: "subtracts 1 nowhere: the gradient is the softmax",
        story: "The one-hot part was to be added by whoever owns the target, and nobody does.",
        source: None,
        named_by: "collectives/gradient-sums-to-zero",
        implementation: bug!(OneNotSubtracted {
            fn is_hot(&self, _: &Shard, _: usize, _: usize) -> bool {
                false
            }
        }),
    },
    Bug {
        id: "collectives/one-at-the-id",
        misconception: "subtracts 1 in the column that has the target's id for its number",
        story: "In the gradient the rank's first id was forgotten; in the loss it was not.",
        source: None,
        named_by: "collectives/gradient-of-uniform",
        implementation: bug!(OneAtTheId {
            fn is_hot(&self, _: &Shard, column: usize, target: usize) -> bool {
                column == target
            }
        }),
    },
    // --- the order of sums ---
    Bug {
        id: "collectives/sum-by-the-engine",
        misconception: "lets the engine add up the ranks' sums, in whatever order it has",
        story: "`all_reduce_sum` is right up to roundings. The same training gives other bits on another number of ranks.",
        source: None,
        named_by: "collectives/bits-of-one-rank",
        implementation: bug!(SumByTheEngine {
            fn tree_sum(&self, comm: &dyn Communicator, blocks: &[f32], len: usize) -> Result<Vec<f32>, RankError> {
                let mut sum = tree(blocks, len);
                comm.all_reduce_sum(&mut sum)?;
                Ok(sum)
            }
        }),
    },
    Bug {
        id: "collectives/blocks-from-the-left",
        misconception: "adds its own blocks one after the other, and the ranks' sums as a tree",
        story: "A loop for one's own, a tree for the others. On as many ranks as blocks it is right.",
        source: None,
        named_by: "collectives/order-of-the-tree",
        implementation: bug!(BlocksFromTheLeft {
            fn own_sum(&self, blocks: &[f32], len: usize) -> Vec<f32> {
                from_left(blocks, len)
            }
        }),
    },
    Bug {
        id: "collectives/ranks-from-the-left",
        misconception: "adds the ranks' sums one after the other, and its own blocks as a tree",
        story: "In the order of the ranks, so it is a fixed order; but another number of ranks has another one.",
        source: None,
        named_by: "collectives/bits-of-one-rank",
        implementation: bug!(RanksFromTheLeft {
            fn sum_of_ranks(&self, sums: &[f32], len: usize, _: usize) -> Vec<f32> {
                from_left(sums, len)
            }
        }),
    },
    Bug {
        id: "collectives/own-sum-first",
        misconception: "begins with its own sum and adds those of the others to it",
        story: "What is there already needs no waiting. Each rank adds in an order of its own, and weights that must be equal \
                drift apart.",
        source: None,
        named_by: "collectives/same-sum-on-all-ranks",
        implementation: bug!(OwnSumFirst {
            fn sum_of_ranks(&self, sums: &[f32], len: usize, rank: usize) -> Vec<f32> {
                let mut turned: Vec<&[f32]> = sums.chunks(len).collect();
                turned.rotate_left(rank);
                from_left(&turned.concat(), len)
            }
        }),
    },
    Bug {
        id: "collectives/sign-of-zero-lost",
        misconception: "begins each sum at 0",
        story: "An accumulator that is cleared first. 0 + (−0) is 0: equal as a number, and other bits. A checksum of two \
                checkpoints differs, and nobody finds a weight that does.",
        source: None,
        named_by: "collectives/sum-any-blocks",
        implementation: bug!(SignOfZeroLost {
            fn own_sum(&self, blocks: &[f32], len: usize) -> Vec<f32> {
                added(&vec![0.0; len], &tree(blocks, len))
            }
        }),
    },
    Bug {
        id: "collectives/halves-are-interleaved",
        misconception: "adds block i and block i + m/2 first, then goes on with half as many",
        story: "A fold of the upper half onto the lower one is a tree too, of other pairs. Here a rank's blocks are no part of \
                it.",
        source: None,
        named_by: "collectives/order-of-the-tree",
        implementation: bug!(HalvesAreInterleaved {
            fn own_sum(&self, blocks: &[f32], len: usize) -> Vec<f32> {
                folded(blocks, len)
            }
            fn sum_of_ranks(&self, sums: &[f32], len: usize, _: usize) -> Vec<f32> {
                folded(sums, len)
            }
        }),
    },
    Bug {
        id: "collectives/sum-in-f64",
        misconception: "adds up in f64 and rounds once: nearer to the truth, and other bits than were asked for",
        story: "More exact is not the same. Whoever compares bits needs the roundings of the order that was agreed on.",
        source: None,
        named_by: "collectives/order-of-the-tree",
        implementation: bug!(SumInF64 {
            fn own_sum(&self, blocks: &[f32], len: usize) -> Vec<f32> {
                in_f64(blocks, len)
            }
            fn sum_of_ranks(&self, sums: &[f32], len: usize, _: usize) -> Vec<f32> {
                in_f64(sums, len)
            }
        }),
    },
    Bug {
        id: "collectives/blocks-gathered",
        misconception: "gathers the blocks of all ranks and adds them up: right, but all blocks travel",
        story: "Every rank then has everything, m/w times as much as needed.",
        source: None,
        named_by: "collectives/one-sum-a-rank",
        implementation: bug!(BlocksGathered {
            fn tree_sum(&self, comm: &dyn Communicator, blocks: &[f32], len: usize) -> Result<Vec<f32>, RankError> {
                Ok(tree(&comm.all_gather(blocks)?, len))
            }
        }),
    },
    Bug {
        id: "collectives/own-block-counted-twice",
        misconception: "adds its own sum to what it has gathered, where it is already",
        story: "In a ring one's own part is not among those that come. Here it is.",
        source: None,
        named_by: "collectives/sum-of-all-blocks",
        implementation: bug!(OwnBlockCountedTwice {
            fn sum_of_ranks(&self, sums: &[f32], len: usize, rank: usize) -> Vec<f32> {
                added(&tree(sums, len), &sums[rank * len..][..len])
            }
        }),
    },
    Bug {
        id: "collectives/sum-is-a-mean",
        misconception: "divides the sum by the number of ranks",
        story: "Gradients are averaged, so the helper divides. The number of blocks is not that of ranks.",
        source: None,
        named_by: "collectives/sum-of-all-blocks",
        implementation: bug!(SumIsAMean {
            fn sum_of_ranks(&self, sums: &[f32], len: usize, _: usize) -> Vec<f32> {
                let ranks = (sums.len() / len) as f32;
                tree(sums, len).into_iter().map(|sum| sum / ranks).collect()
            }
        }),
    },
    Bug {
        id: "collectives/rank-0-alone-has-the-sum",
        misconception: "gives the sum on rank 0, and on the others their own",
        story: "A reduce is no all-reduce.",
        source: None,
        named_by: "collectives/same-sum-on-all-ranks",
        implementation: bug!(Rank0AloneHasTheSum {
            fn sum_of_ranks(&self, sums: &[f32], len: usize, rank: usize) -> Vec<f32> {
                if rank == 0 { tree(sums, len) } else { sums[rank * len..][..len].to_vec() }
            }
        }),
    },
];

/// One block after the other.
fn from_left(blocks: &[f32], len: usize) -> Vec<f32> {
    let mut blocks = blocks.chunks(len);
    let first = blocks.next().unwrap_or_default().to_vec();
    blocks.fold(first, |sum, block| added(&sum, block))
}

/// The upper half is added to the lower one.
fn folded(blocks: &[f32], len: usize) -> Vec<f32> {
    match blocks.len() / len {
        0 | 1 => blocks.to_vec(),
        n => {
            let (lower, upper) = blocks.split_at(n / 2 * len);
            folded(&added(lower, upper), len)
        }
    }
}

fn in_f64(blocks: &[f32], len: usize) -> Vec<f32> {
    let sum = |i: usize| blocks.iter().skip(i).step_by(len).map(|x| f64::from(*x)).sum::<f64>();
    (0..len).map(|i| sum(i) as f32).collect()
}
