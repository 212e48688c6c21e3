//! Bugs of ranks that compute together.

use crate::collectives::interface::*;
use crate::collectives::oracle::{
    CollectiveLoops, Known, Shard, added, check_targets, entropy, tree,
};
use crate::component::{bug, bugs};
use crate::oracle::Oracle;

bugs! {
    // --- calls ---
    CallUnderACondition, ReturnsBeforeTheOthers, OwnTargetsAloneShared, AnotherOrderOnRank0,
    // --- sums ---
    TotalNotShared, TargetNotShared, MeanForSum, TargetByMean, TargetByLargest, LossCountedByEveryRank,
    RanksReadDifferentTokens, SumOverTokens, DividedByOwnTargets,
    // --- owners ---
    OffsetForgotten, EndIncluded, FirstIdLeftOut, TargetNotMasked, TargetMaskedByAProduct,
    // --- the largest logit ---
    LargestNotShared, SumBeforeTheShift, LargestBySum, LargestOfTheBatch, ForbiddenShardIsNan,
    // --- refusal ---
    BadTargetAccepted, LastRankAloneRefuses, RefusedAfterACall, ForeignTargetRefused, LastBadTargetNamed,
    ShardSizeNamed, EdgeOfTheVocabularyAccepted,
    // --- a rank that is lost ---
    OwnSumOnTrouble, PanicsOnTrouble, OwnBlocksOnTrouble,
    // --- what travels ---
    LogitsGathered,
    // --- the gradient ---
    GradientAllReduced, GradientTimesRanks, GradientOverRanks, GradientNotDivided, LocalSoftmaxInTheGradient,
    OneSubtractedOnEveryRank, OneNotSubtracted, OneAtTheId,
    // --- the order of sums ---
    SumByTheEngine, BlocksFromTheLeft, RanksFromTheLeft, OwnSumFirst, SignOfZeroLost, HalvesAreInterleaved, SumInF64,
    BlocksGathered, OwnBlockCountedTwice, SumIsAMean, Rank0AloneHasTheSum,
}

// --- calls ---

/// shares the targets' logits only on the ranks that have one
///
/// "Nothing to add, nothing to say." The others wait forever on the first batch whose targets are not spread over all
/// ranks, and the cluster hangs without an error.
#[bug("collectives/call-under-a-condition", named_by = "collectives/everyone-comes")]
impl CollectiveLoops for CallUnderACondition {
    fn share_targets(&self, shard: &Shard, targets: &mut [f32]) -> Result<(), Trouble> {
        match shard.targets.iter().any(|target| shard.has(*target)) {
            true => shard.comm.all_reduce_sum(targets),
            false => Ok(()),
        }
    }
}

/// returns at once on a rank that has none of the targets
///
/// The early return saves work, but its gradient is wrong too, because this rank's ids have probabilities.
#[bug("collectives/returns-before-the-others", named_by = "collectives/everyone-comes")]
impl CollectiveLoops for ReturnsBeforeTheOthers {
    fn entropy(&self, shard: &Shard) -> Result<Entropy, RankError> {
        if shard.targets.iter().any(|target| shard.has(*target)) {
            return entropy(self, shard);
        }
        Ok(Entropy { loss: 0.0, dlogits: vec![0.0; shard.logits.len()] })
    }
}

/// shares a list of only its own targets, whose length differs between ranks
///
/// The list was filtered first. A library that does not check its length adds up numbers of different tokens.
#[bug("collectives/own-targets-alone-shared", named_by = "collectives/everyone-comes")]
impl CollectiveLoops for OwnTargetsAloneShared {
    fn share_targets(&self, shard: &Shard, targets: &mut [f32]) -> Result<(), Trouble> {
        let own: Vec<usize> =
            (0..targets.len()).filter(|place| shard.has(shard.targets[*place])).collect();
        let mut list: Vec<f32> = own.iter().map(|place| targets[*place]).collect();
        shard.comm.all_reduce_sum(&mut list)?;
        own.iter().zip(list).for_each(|(place, value)| targets[*place] = value);
        Ok(())
    }
}

/// makes its calls in a different order on rank 0
///
/// Rank 0 writes the log, and for it reads the largest logit once more before the sums.
#[bug("collectives/another-order-on-rank-0", named_by = "collectives/everyone-comes")]
impl CollectiveLoops for AnotherOrderOnRank0 {
    fn share_total(&self, shard: &Shard, totals: &mut [f32]) -> Result<(), Trouble> {
        if shard.comm.rank() == 0 {
            shard.comm.all_reduce_max(&mut totals.to_vec())?;
        }
        shard.comm.all_reduce_sum(totals)
    }
}

// --- sums ---

/// forgets to share the sums of exponentials, so that each rank has its own softmax
///
/// All shapes are right, but every loss is too small by what the other ranks have.
#[bug("collectives/total-not-shared", named_by = "collectives/any-number-of-ranks")]
impl CollectiveLoops for TotalNotShared {
    fn share_total(&self, _: &Shard, _: &mut [f32]) -> Result<(), Trouble> {
        Ok(())
    }
}

/// forgets to share the targets' logits, which are then 0 on all ranks except their owner
///
/// Rank 0 prints the loss, and it looks nearly right.
#[bug("collectives/target-not-shared", named_by = "collectives/same-loss-on-all-ranks")]
impl CollectiveLoops for TargetNotShared {
    fn share_targets(&self, _: &Shard, _: &mut [f32]) -> Result<(), Trouble> {
        Ok(())
    }
}

/// averages the ranks' sums of exponentials instead of adding them
///
/// The all-reduce was copied from the data-parallel gradients, which divides by the number of ranks. The loss is too small
/// by ln w.
#[bug("collectives/mean-for-sum", named_by = "collectives/any-number-of-ranks")]
impl CollectiveLoops for MeanForSum {
    fn share_total(&self, shard: &Shard, totals: &mut [f32]) -> Result<(), Trouble> {
        shard.comm.all_reduce_sum(totals)?;
        totals.iter_mut().for_each(|total| *total /= shard.comm.world_size() as f32);
        Ok(())
    }
}

/// averages what the ranks report for a target's logit, of which all but one are 0
///
/// One helper that averages serves all exchanges.
#[bug("collectives/target-by-mean", named_by = "collectives/any-number-of-ranks")]
impl CollectiveLoops for TargetByMean {
    fn share_targets(&self, shard: &Shard, targets: &mut [f32]) -> Result<(), Trouble> {
        shard.comm.all_reduce_sum(targets)?;
        targets.iter_mut().for_each(|target| *target /= shard.comm.world_size() as f32);
        Ok(())
    }
}

/// takes the maximum of what the ranks report for a target's logit, so that a negative one becomes 0
///
/// One all-reduce serves both the largest logit and the target. A rank without the target reports 0, and 0 is not small.
#[bug("collectives/target-by-largest", named_by = "collectives/any-number-of-ranks")]
impl CollectiveLoops for TargetByLargest {
    fn share_targets(&self, shard: &Shard, targets: &mut [f32]) -> Result<(), Trouble> {
        shard.comm.all_reduce_max(targets)
    }
}

/// adds up the losses of all ranks, though each is already the whole
///
/// A loss is all-reduced before printing, as is usual for data-parallel ranks. It is w times too large.
#[bug("collectives/loss-counted-by-every-rank", named_by = "collectives/any-number-of-ranks")]
impl CollectiveLoops for LossCountedByEveryRank {
    fn finish(&self, shard: &Shard, result: Entropy) -> Result<Entropy, RankError> {
        let mut loss = [result.loss];
        shard.comm.all_reduce_sum(&mut loss)?;
        Ok(Entropy { loss: loss[0], ..result })
    }
}

/// uses a different token's target on each rank, as if each had its own batch
///
/// The data loader was seeded with the rank, which is right for data-parallel ranks. Ranks that share a table must read the
/// same batch.
#[bug("collectives/ranks-read-different-tokens", named_by = "collectives/any-number-of-ranks")]
impl CollectiveLoops for RanksReadDifferentTokens {
    fn target(&self, shard: &Shard, place: usize) -> usize {
        shard.targets[(place + shard.comm.rank()) % shard.tokens()]
    }
}

/// returns the sum of all tokens' losses instead of their mean
///
/// The mean was left to the caller, who assumed it was already one.
#[bug("collectives/sum-over-tokens", named_by = "collectives/mean-over-tokens")]
impl CollectiveLoops for SumOverTokens {
    fn mean(&self, _: &Shard, losses: &[f64]) -> f64 {
        losses.iter().sum()
    }
}

/// divides the loss by the number of targets on its own rank, at least 1
///
/// Each rank counts what its mask lets pass.
#[bug("collectives/divided-by-own-targets", named_by = "collectives/mean-over-tokens")]
impl CollectiveLoops for DividedByOwnTargets {
    fn mean(&self, shard: &Shard, losses: &[f64]) -> f64 {
        let own = shard.targets.iter().filter(|target| shard.has(**target)).count();
        losses.iter().sum::<f64>() / own.max(1) as f64
    }
}

// --- owners ---

/// uses an id as a column without subtracting the rank's first id
///
/// On rank 0 both are the same, and that is where the test ran.
#[bug("collectives/offset-forgotten", named_by = "collectives/one-owner")]
impl CollectiveLoops for OffsetForgotten {
    fn column(&self, shard: &Shard, id: usize) -> Option<usize> {
        (id < shard.own).then_some(id)
    }
}

/// treats the id after its last one as its own, with the last one's logit
///
/// `<=` was written for `<`, and a clamp keeps the column inside. Ids at the edge have two owners.
#[bug("collectives/end-included", named_by = "collectives/one-owner")]
impl CollectiveLoops for EndIncluded {
    fn column(&self, shard: &Shard, id: usize) -> Option<usize> {
        (shard.first..=shard.first + shard.own)
            .contains(&id)
            .then(|| (id - shard.first).min(shard.own - 1))
    }
}

/// does not treat its first id as its own
///
/// `>` was written for `>=`, so one id per rank has no owner, and its logit is 0.
#[bug("collectives/first-id-left-out", named_by = "collectives/one-owner")]
impl CollectiveLoops for FirstIdLeftOut {
    fn column(&self, shard: &Shard, id: usize) -> Option<usize> {
        (shard.has(id) && id > shard.first).then(|| id - shard.first)
    }
}

/// adds the logit of its own column 0 for a target that it does not have
///
/// Foreign ids are set to 0 so that the lookup is legal, but the result is never zeroed afterwards.
#[bug("collectives/target-not-masked", named_by = "collectives/one-owner")]
impl CollectiveLoops for TargetNotMasked {
    fn target_logit(&self, shard: &Shard, place: usize, column: Option<usize>) -> f32 {
        shard.row(place)[column.unwrap_or(0)]
    }
}

/// multiplies a foreign target's looked-up value by 0, which for −∞ gives NaN
///
/// A mask of zeros and ones works as long as every logit is finite.
#[bug("collectives/target-masked-by-a-product", named_by = "collectives/foreign-logits-stay-out")]
impl CollectiveLoops for TargetMaskedByAProduct {
    fn target_logit(&self, shard: &Shard, place: usize, column: Option<usize>) -> f32 {
        let mask = if column.is_some() { 1.0 } else { 0.0 };
        mask * shard.row(place)[column.unwrap_or(0)]
    }
}

// --- the largest logit ---

/// subtracts the largest of its own logits, so that the ranks' sums are on different scales
///
/// The softmax of one rank was kept, and only its sum is shared. It is right where all ranks have the same largest logit.
#[bug("collectives/largest-not-shared", named_by = "collectives/any-number-of-ranks")]
impl CollectiveLoops for LargestNotShared {
    fn share_largest(&self, _: &Shard, _: &mut [f32]) -> Result<(), Trouble> {
        Ok(())
    }
}

/// exponentiates the raw logits in f32 and shares only their sum
///
/// It saves a call, but with the first logit above 88 the sum is infinite.
#[bug("collectives/sum-before-the-shift", named_by = "collectives/largest-of-all")]
impl CollectiveLoops for SumBeforeTheShift {
    fn largest(&self, _: &Shard, _: usize) -> f32 {
        0.0
    }
    fn exp(&self, logit: f64, _: f64) -> f64 {
        f64::from((logit as f32).exp())
    }
}

/// adds up the largest logits of all ranks and subtracts the sum
///
/// All-reduce sums by default. The number cancels, so small logits hide it, while large ones vanish.
#[bug("collectives/largest-by-sum", named_by = "collectives/largest-of-all")]
impl CollectiveLoops for LargestBySum {
    fn share_largest(&self, shard: &Shard, largest: &mut [f32]) -> Result<(), Trouble> {
        shard.comm.all_reduce_sum(largest)
    }
    fn exp(&self, logit: f64, largest: f64) -> f64 {
        f64::from(((logit - largest) as f32).exp())
    }
}

/// subtracts the batch's largest logit from all tokens
///
/// One number travels instead of t, but tokens with small logits have nothing left.
#[bug("collectives/largest-of-the-batch", named_by = "collectives/largest-of-all")]
impl CollectiveLoops for LargestOfTheBatch {
    fn share_largest(&self, shard: &Shard, largest: &mut [f32]) -> Result<(), Trouble> {
        let mut one = [largest.iter().copied().fold(f32::NEG_INFINITY, f32::max)];
        shard.comm.all_reduce_max(&mut one)?;
        largest.fill(one[0]);
        Ok(())
    }
    fn exp(&self, logit: f64, largest: f64) -> f64 {
        f64::from(((logit - largest) as f32).exp())
    }
}

/// rescales its sum to all ranks' maximum afterwards, where −∞ − (−∞) is NaN
///
/// Each rank sums on its own scale, and exp(own − largest) brings the sums together. That is right except on a rank with
/// only forbidden ids.
#[bug("collectives/forbidden-shard-is-nan", named_by = "collectives/forbidden-shard")]
impl CollectiveLoops for ForbiddenShardIsNan {
    fn share_total(&self, shard: &Shard, totals: &mut [f32]) -> Result<(), Trouble> {
        for (place, total) in totals.iter_mut().enumerate() {
            if Oracle.largest(shard, place) == f32::NEG_INFINITY {
                *total = f32::NAN;
            }
        }
        shard.comm.all_reduce_sum(totals)
    }
}

// --- refusal ---

/// accepts a target that no rank has, whose logit is then 0
///
/// "It is not mine", says each rank. With one rank the lookup would have panicked.
#[bug("collectives/bad-target-accepted", named_by = "collectives/bad-target-refused-alike")]
impl CollectiveLoops for BadTargetAccepted {
    fn check(&self, _: &Shard) -> Result<(), RankError> {
        Ok(())
    }
}

/// rejects a bad target on the last rank only, while the others wait for it
///
/// The last rank's range ends where the vocabulary ends, so it is the one that notices. Its error is printed once, and the
/// other processes have to be killed.
#[bug("collectives/last-rank-alone-refuses", named_by = "collectives/bad-target-refused-alike")]
impl CollectiveLoops for LastRankAloneRefuses {
    fn check(&self, shard: &Shard) -> Result<(), RankError> {
        match shard.first + shard.own == shard.vocab_size {
            true => check_targets(shard),
            false => Ok(()),
        }
    }
}

/// rejects a bad target on all ranks, but after a call to the others
///
/// The targets are checked where their logits are needed: after the first exchange. Here all ranks have read the same
/// targets, so all stop there. A rank with another batch is still on its way to the second call.
#[bug("collectives/refused-after-a-call", named_by = "collectives/bad-target-refused-alike")]
impl CollectiveLoops for RefusedAfterACall {
    fn check(&self, shard: &Shard) -> Result<(), RankError> {
        shard.comm.all_reduce_max(&mut [shard.logits[0]])?;
        check_targets(shard)
    }
}

/// rejects a target that is not its own
///
/// The check was copied from a single rank's table lookup, where an id must be below the number of rows.
#[bug("collectives/foreign-target-refused", named_by = "collectives/everyone-comes")]
impl CollectiveLoops for ForeignTargetRefused {
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
}

/// names the last bad target instead of the first
///
/// The loop over the targets overwrites what it has found.
#[bug("collectives/last-bad-target-named", named_by = "collectives/bad-target-refused-alike")]
impl CollectiveLoops for LastBadTargetNamed {
    fn check(&self, shard: &Shard) -> Result<(), RankError> {
        let vocab_size = shard.vocab_size;
        match shard.targets.iter().rposition(|target| *target >= vocab_size) {
            None => Ok(()),
            Some(place) => {
                Err(RankError::Target { target: shard.targets[place], place, vocab_size })
            }
        }
    }
}

/// reports the number of its own ids as the vocabulary size
///
/// Inside the rank, that is what `logits.shape[1]` is.
#[bug("collectives/shard-size-named", named_by = "collectives/bad-target-refused-alike")]
impl CollectiveLoops for ShardSizeNamed {
    fn check(&self, shard: &Shard) -> Result<(), RankError> {
        check_targets(shard).map_err(|error| match error {
            RankError::Target { target, place, .. } => {
                RankError::Target { target, place, vocab_size: shard.own }
            }
            other => other,
        })
    }
}

/// accepts the target v, one past the last id
///
/// `>` was written for `>=`.
#[bug(
    "collectives/edge-of-the-vocabulary-accepted",
    named_by = "collectives/bad-target-refused-alike"
)]
impl CollectiveLoops for EdgeOfTheVocabularyAccepted {
    fn check(&self, shard: &Shard) -> Result<(), RankError> {
        match check_targets(shard) {
            Err(RankError::Target { target, vocab_size, .. }) if target == vocab_size => Ok(()),
            checked => checked,
        }
    }
}

// --- a rank that is lost ---

/// continues with its own sums when the call for all of them fails
///
/// On a laptop with one rank a connection error was once noise, and `ok()` silenced it. When a machine is lost, the others
/// train on, each with its own softmax, and the loss looks fine.
#[bug("collectives/own-sum-on-trouble", named_by = "collectives/lost-rank-is-told")]
impl CollectiveLoops for OwnSumOnTrouble {
    fn share_total(&self, shard: &Shard, totals: &mut [f32]) -> Result<(), Trouble> {
        shard.comm.all_reduce_sum(totals).ok();
        Ok(())
    }
    fn share_targets(&self, shard: &Shard, targets: &mut [f32]) -> Result<(), Trouble> {
        shard.comm.all_reduce_sum(targets).ok();
        Ok(())
    }
}

/// panics when a call fails
///
/// `unwrap` seemed safe, since no call had ever failed. After a panic no checkpoint can be saved, and the message names a
/// line of code, not a rank.
#[bug("collectives/panics-on-trouble", named_by = "collectives/lost-rank-is-told")]
impl CollectiveLoops for PanicsOnTrouble {
    fn share_largest(&self, shard: &Shard, largest: &mut [f32]) -> Result<(), Trouble> {
        shard.comm.all_reduce_max(largest).unwrap();
        Ok(())
    }
}

/// returns the sum of its own blocks when the others can't be reached
///
/// The fallback was meant for a world of one rank, which needs no others. In a world of eight it gives each rank another
/// sum.
#[bug("collectives/own-blocks-on-trouble", named_by = "collectives/sum-needs-all-ranks")]
impl CollectiveLoops for OwnBlocksOnTrouble {
    fn tree_sum(
        &self,
        comm: &dyn Communicator,
        blocks: &[f32],
        len: usize,
    ) -> Result<Vec<f32>, RankError> {
        let own = tree(blocks, len);
        Ok(comm.all_gather(&own).map_or(own, |sums| tree(&sums, len)))
    }
}

// --- what travels ---

/// gathers the logits of all ranks and computes the plain loss, which is right, but all logits travel
///
/// It is the shortest program. With 128,256 ids each token moves half a megabyte where 12 bytes would do, and needs the
/// memory again that sharding had saved.
#[bug("collectives/logits-gathered", named_by = "collectives/logits-stay")]
impl CollectiveLoops for LogitsGathered {
    fn entropy(&self, shard: &Shard) -> Result<Entropy, RankError> {
        check_targets(shard)?;
        shard.comm.all_gather(&shard.logits)?;
        entropy(self, shard)
    }
}

// --- the gradient ---

/// adds up the gradients of all ranks' logits, which belong to different ids
///
/// "Gradients are all-reduced" holds for weights that all ranks have. A shard's gradient belongs to its owner alone.
#[bug("collectives/gradient-all-reduced", named_by = "collectives/gradient-any-number-of-ranks")]
impl CollectiveLoops for GradientAllReduced {
    fn finish(&self, shard: &Shard, mut result: Entropy) -> Result<Entropy, RankError> {
        shard.comm.all_reduce_sum(&mut result.dlogits)?;
        Ok(result)
    }
}

/// multiplies the gradient by the number of ranks
///
/// The tape uses an all-reduce as the gradient of an all-reduce, so each rank's 1 of the loss is added up w times.
#[bug("collectives/gradient-times-ranks", named_by = "collectives/gradient-of-uniform")]
impl CollectiveLoops for GradientTimesRanks {
    fn share(&self, shard: &Shard) -> f64 {
        shard.comm.world_size() as f64 / shard.tokens() as f64
    }
}

/// divides the gradient by the number of ranks
///
/// The mean of data-parallel training was applied to ranks that share one batch.
#[bug("collectives/gradient-over-ranks", named_by = "collectives/gradient-of-uniform")]
impl CollectiveLoops for GradientOverRanks {
    fn share(&self, shard: &Shard) -> f64 {
        1.0 / (shard.tokens() * shard.comm.world_size()) as f64
    }
}

/// does not divide the gradient by the number of tokens
///
/// Only the loss takes the mean.
#[bug("collectives/gradient-not-divided", named_by = "collectives/gradient-of-uniform")]
impl CollectiveLoops for GradientNotDivided {
    fn share(&self, _: &Shard) -> f64 {
        1.0
    }
}

/// divides by its own sum of exponentials in the gradient, but by all ranks' in the loss
///
/// The buffer that was all-reduced is not the one kept for the backward pass.
#[bug("collectives/local-softmax-in-the-gradient", named_by = "collectives/gradient-of-uniform")]
impl CollectiveLoops for LocalSoftmaxInTheGradient {
    fn probability(&self, exp: f64, known: &Known) -> f64 {
        exp / known.own_total
    }
}

/// subtracts 1 on every rank: in the target's column, or in column 0 if it has none
///
/// Foreign targets were set to column 0 for the lookup, and the gradient uses the same columns.
#[bug("collectives/one-subtracted-on-every-rank", named_by = "collectives/gradient-of-uniform")]
impl CollectiveLoops for OneSubtractedOnEveryRank {
    fn is_hot(&self, shard: &Shard, column: usize, target: usize) -> bool {
        column == if shard.has(target) { target - shard.first } else { 0 }
    }
}

/// never subtracts the 1, so that the gradient is just the softmax
///
/// The one-hot part was left to the target's owner, and no rank adds it.
#[bug("collectives/one-not-subtracted", named_by = "collectives/gradient-sums-to-zero")]
impl CollectiveLoops for OneNotSubtracted {
    fn is_hot(&self, _: &Shard, _: usize, _: usize) -> bool {
        false
    }
}

/// subtracts 1 in the column whose number is the target's id
///
/// The gradient forgot the rank's first id, although the loss had subtracted it.
#[bug("collectives/one-at-the-id", named_by = "collectives/gradient-of-uniform")]
impl CollectiveLoops for OneAtTheId {
    fn is_hot(&self, _: &Shard, column: usize, target: usize) -> bool {
        column == target
    }
}

// --- the order of sums ---

/// lets the engine add up the ranks' sums in whatever order it has
///
/// `all_reduce_sum` is right up to rounding, but the same training gives different bits on a different number of ranks.
#[bug("collectives/sum-by-the-engine", named_by = "collectives/bits-of-one-rank")]
impl CollectiveLoops for SumByTheEngine {
    fn tree_sum(
        &self,
        comm: &dyn Communicator,
        blocks: &[f32],
        len: usize,
    ) -> Result<Vec<f32>, RankError> {
        let mut sum = tree(blocks, len);
        comm.all_reduce_sum(&mut sum)?;
        Ok(sum)
    }
}

/// adds its own blocks one after another, but the ranks' sums as a tree
///
/// It has a loop for its own and a tree for the others, which is right on as many ranks as blocks.
#[bug("collectives/blocks-from-the-left", named_by = "collectives/order-of-the-tree")]
impl CollectiveLoops for BlocksFromTheLeft {
    fn own_sum(&self, blocks: &[f32], len: usize) -> Vec<f32> {
        from_left(blocks, len)
    }
}

/// adds the ranks' sums one after another, but its own blocks as a tree
///
/// The order of the ranks is a fixed order, but a different number of ranks has a different one.
#[bug("collectives/ranks-from-the-left", named_by = "collectives/bits-of-one-rank")]
impl CollectiveLoops for RanksFromTheLeft {
    fn sum_of_ranks(&self, sums: &[f32], len: usize, _: usize) -> Vec<f32> {
        from_left(sums, len)
    }
}

/// starts with its own sum and adds those of the others to it
///
/// What is already there needs no waiting. But each rank adds in a different order, and weights that must be equal drift
/// apart.
#[bug("collectives/own-sum-first", named_by = "collectives/same-sum-on-all-ranks")]
impl CollectiveLoops for OwnSumFirst {
    fn sum_of_ranks(&self, sums: &[f32], len: usize, rank: usize) -> Vec<f32> {
        let mut turned: Vec<&[f32]> = sums.chunks(len).collect();
        turned.rotate_left(rank);
        from_left(&turned.concat(), len)
    }
}

/// starts each sum at 0
///
/// The accumulator is cleared first, and 0 + (−0) is 0: equal as a number, but with different bits. The checksums of
/// two checkpoints differ, although no weight seems to.
#[bug("collectives/sign-of-zero-lost", named_by = "collectives/sum-any-blocks")]
impl CollectiveLoops for SignOfZeroLost {
    fn own_sum(&self, blocks: &[f32], len: usize) -> Vec<f32> {
        added(&vec![0.0; len], &tree(blocks, len))
    }
}

/// adds block i and block i + m/2 first, then continues with half as many
///
/// Folding the upper half onto the lower is a tree too, but with other pairs, and a rank's blocks are no branch of it.
#[bug("collectives/halves-are-interleaved", named_by = "collectives/order-of-the-tree")]
impl CollectiveLoops for HalvesAreInterleaved {
    fn own_sum(&self, blocks: &[f32], len: usize) -> Vec<f32> {
        folded(blocks, len)
    }
    fn sum_of_ranks(&self, sums: &[f32], len: usize, _: usize) -> Vec<f32> {
        folded(sums, len)
    }
}

/// adds up in f64 and rounds once, which is more exact but gives different bits from those that were asked for
///
/// More exact is not the same: comparing bits requires the roundings of the agreed order.
#[bug("collectives/sum-in-f64", named_by = "collectives/order-of-the-tree")]
impl CollectiveLoops for SumInF64 {
    fn own_sum(&self, blocks: &[f32], len: usize) -> Vec<f32> {
        in_f64(blocks, len)
    }
    fn sum_of_ranks(&self, sums: &[f32], len: usize, _: usize) -> Vec<f32> {
        in_f64(sums, len)
    }
}

/// gathers the blocks of all ranks and adds them up, which is right, but all blocks travel
///
/// Every rank then has everything, m/w times as much as needed.
#[bug("collectives/blocks-gathered", named_by = "collectives/one-sum-a-rank")]
impl CollectiveLoops for BlocksGathered {
    fn tree_sum(
        &self,
        comm: &dyn Communicator,
        blocks: &[f32],
        len: usize,
    ) -> Result<Vec<f32>, RankError> {
        Ok(tree(&comm.all_gather(blocks)?, len))
    }
}

/// adds its own sum to the gathered ones, which already include it
///
/// In a ring, a rank's own part is not among those that arrive. Here it is one of them.
#[bug("collectives/own-block-counted-twice", named_by = "collectives/sum-of-all-blocks")]
impl CollectiveLoops for OwnBlockCountedTwice {
    fn sum_of_ranks(&self, sums: &[f32], len: usize, rank: usize) -> Vec<f32> {
        added(&tree(sums, len), &sums[rank * len..][..len])
    }
}

/// divides the sum by the number of ranks
///
/// Gradients are averaged, so the helper divides. But the number of blocks is not that of the ranks.
#[bug("collectives/sum-is-a-mean", named_by = "collectives/sum-of-all-blocks")]
impl CollectiveLoops for SumIsAMean {
    fn sum_of_ranks(&self, sums: &[f32], len: usize, _: usize) -> Vec<f32> {
        let ranks = (sums.len() / len) as f32;
        tree(sums, len).into_iter().map(|sum| sum / ranks).collect()
    }
}

/// returns the sum on rank 0, and their own on the others
///
/// A reduce is not an all-reduce.
#[bug("collectives/rank-0-alone-has-the-sum", named_by = "collectives/same-sum-on-all-ranks")]
impl CollectiveLoops for Rank0AloneHasTheSum {
    fn sum_of_ranks(&self, sums: &[f32], len: usize, rank: usize) -> Vec<f32> {
        if rank == 0 { tree(sums, len) } else { sums[rank * len..][..len].to_vec() }
    }
}

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
