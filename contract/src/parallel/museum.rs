//! Bugs of ParallelVocabEmbedding.

use crate::component::{bug, bugs};
use crate::embedding::oracle::check_ids;
use crate::oracle::blocks::*;
use crate::oracle::random::normal;
use crate::oracle::{Oracle, to_f16};
use crate::parallel::interface::{NormalInit, Refusal, Reply, ShardCase};
use crate::parallel::oracle::{ShardLoops, owned};
use std::cell::RefCell;
use std::ops::Range;

bugs! {
    EndIncluded, StartExcluded, StepsByWorld, Reversed, RangeIn32, LastDigit, RestDropped, RestOnLast, WorldOfNone,
    RankWraps, RankBeyond, RankNotChecked, RankInclusive, SameSeed, FromOne, Xor, TimesWorld, Thousand, Saturates,
    SeedClamped, SliceOfWhole, FirstOfWhole, StdPerRank, MeanPerRank, NoMean, UpperInclusive, LowerExclusive, LastForeign,
    NotSubtracted, OffByOne, RoundRobin, RanksReversed, IdsTransposed, MaskOfFirst, NotZeroed, Clamped, Wrap,
    ByProduct, NanCleaned, TinyFlushed, Divided, SentInF16, NothingForForeign, Packed, ForeignRefused, MaskedInPlace,
    ShiftedInPlace, OneSkips, OnlyOne, LastChecks, FirstChecks, IdClamped, LimitInclusive, In32Bits, Negative,
    LocalName, WithoutWords, ToFirst, ToNearest, WrapsBack, ByProductBack, UpperBack, LowerBack, NoGradient,
    OnFirstRank, TimesWorldBack, DividedBack, Overwritten, TransposedBack, NanFrozen, GradientInF16, OneByte,
    WeightDecay, LastShowsThrough, GradientBlockLost,
}

/// A bug in the range: what becomes of `[r·n, (r + 1)·n)`, given `v`, `w` and `r`.
macro_rules! ranges {
    ($wrong:expr) => {
        fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
            let wrong: fn(Range<usize>, (usize, usize, usize)) -> Range<usize> = $wrong;
            Ok(wrong(Oracle.range(v, w, r)?, (v, w, r)))
        }
    };
}

/// A bug in the seed, from the base seed, the rank and the world size.
macro_rules! seeds {
    ($wrong:expr) => {
        fn seed(&self, base: u64, rank: usize, world_size: usize) -> u64 {
            let wrong: fn(u64, u64, u64) -> u64 = $wrong;
            wrong(base, rank as u64, world_size as u64)
        }
    };
}

/// A bug in the mean or the standard deviation, from the world size.
macro_rules! moments {
    ($wrong:expr) => {
        fn shard(&self, v: usize, e: usize, w: usize, r: usize, i: NormalInit) -> Vec<f32> {
            let wrong: fn(NormalInit, f32) -> NormalInit = $wrong;
            Oracle.shard(v, e, w, r, wrong(i, w as f32))
        }
    };
}

/// A bug in the row of an id, from the rank's range.
macro_rules! rows {
    ($wrong:expr) => {
        fn row(&self, case: &ShardCase, id: usize) -> Option<usize> {
            let wrong: fn(Range<usize>, usize) -> Option<usize> = $wrong;
            wrong(owned(case.vocab_size, case.world_size, case.rank), id)
        }
    };
}

/// A bug in where a token's gradient goes, and with which weight, from the rank's range.
macro_rules! targets {
    ($wrong:expr) => {
        fn target(&self, case: &ShardCase, id: usize) -> Option<(usize, f64)> {
            let wrong: fn(Range<usize>, usize) -> Option<(usize, f64)> = $wrong;
            wrong(owned(case.vocab_size, case.world_size, case.rank), id)
        }
    };
}

/// A bug in the check of the ids: the id that an id is read as.
macro_rules! accepts {
    ($read:expr) => {
        fn check_ids(&self, case: &ShardCase) -> Reply<()> {
            let read: fn(usize, usize) -> usize = $read;
            let ids: Vec<usize> = case.ids.iter().map(|&id| read(id, case.vocab_size)).collect();
            check_ids(&ids, case.shape, case.vocab_size)
        }
        fn id(&self, case: &ShardCase, t: usize) -> usize {
            let read: fn(usize, usize) -> usize = $read;
            read(case.ids[t], case.vocab_size)
        }
    };
}

/// A bug in who checks the ids.
macro_rules! checks_if {
    ($checks:expr) => {
        fn check_ids(&self, case: &ShardCase) -> Reply<()> {
            let checks: fn(&ShardCase) -> bool = $checks;
            if checks(case) { Oracle.check_ids(case) } else { Ok(()) }
        }
    };
}

#[derive(Default)]
struct LastShowsThrough(RefCell<Vec<f32>>);

/// writes the tokens that a rank owns into the last call's buffer without clearing it
///
/// In the first call the other tokens are zero, and in the next they hold old values.
#[bug("parallel/last-answer-shows-through", named_by = "parallel/zeros-are-written", of = LastShowsThrough::default())]
impl ShardLoops for LastShowsThrough {
    fn rows(&self, case: &ShardCase) -> Vec<f32> {
        let mut rows = Oracle.rows(case);
        let mut last = self.0.borrow_mut();
        for (i, value) in rows.iter_mut().enumerate() {
            if Oracle.row(case, case.ids[i / case.embedding_dim]).is_none() {
                *value = last.get(i).copied().unwrap_or(0.0);
            }
        }
        last.clone_from(&rows);
        rows
    }
}

/// counts the next rank's first id as part of the range
///
/// Of the range's two ends, only one is included. Two ranks now own the id.
#[bug("parallel/range-end-included", named_by = "parallel/range")]
impl ShardLoops for EndIncluded {
    ranges!(|own, _| own.start..own.end.saturating_add(1));
}

/// leaves the first id of each rank out of its range
///
/// > was written for >=.
#[bug("parallel/range-start-excluded", named_by = "parallel/range")]
impl ShardLoops for StartExcluded {
    ranges!(|own, _| own.start + 1..own.end);
}

/// starts rank r at r·w instead of r·n
///
/// It is the wrong one of two small numbers, which for v = w² are equal.
#[bug("parallel/range-steps-by-world", named_by = "parallel/range")]
impl ShardLoops for StepsByWorld {
    ranges!(|own, (_, w, r)| {
        let start = r.saturating_mul(w);
        start..start.saturating_add(own.len())
    });
}

/// gives the first rows to the last rank
///
/// Every id has one owner, so the sum is right, but each checkpoint is wrong.
#[bug("parallel/range-reversed", named_by = "parallel/range")]
impl ShardLoops for Reversed {
    ranges!(|_, (v, w, r)| owned(v, w, w - 1 - r));
}

/// computes the range in 32 bits
///
/// No vocabulary is so large, but a product of rows and columns, by the same code, is.
#[bug("parallel/range-in-32-bits", named_by = "parallel/range")]
impl ShardLoops for RangeIn32 {
    ranges!(|own, _| own.start as u32 as usize..own.end as u32 as usize);
}

/// gives rank 10 and all ranks after it the range of rank 9
///
/// There is room for one digit of the rank, and a clamp makes it fit. Tests rarely have ten ranks.
#[bug("parallel/rank-of-one-digit", named_by = "parallel/ranges-partition")]
impl ShardLoops for LastDigit {
    ranges!(|_, (v, w, r)| owned(v, w, r.min(9)));
}

/// rounds v / w down, so that the last ids have no owner
///
/// Integer division rounds down by itself. The ids at the end, where new tokens are added, give zeros on every rank.
#[bug(
    "parallel/rest-dropped",
    named_by = "parallel/uneven-world-refused",
    source = "text-generation-inference #1463"
)]
impl ShardLoops for RestDropped {
    fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
        Oracle.range(v - v % w.max(1), w, r)
    }
}

/// rounds v / w up and gives the last rank fewer rows
///
/// Nothing is lost, but ranks of different sizes can't be stacked, saved or summed as one shape, so the specification
/// rejects it.
#[bug("parallel/rest-on-last-rank", named_by = "parallel/uneven-world-refused")]
impl ShardLoops for RestOnLast {
    fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
        let n = v.div_ceil(w.max(1));
        let own = Oracle.range(n.saturating_mul(w), w, r)?;
        Ok(own.start.min(v)..own.end.min(v))
    }
}

/// treats a world of 0 as a world of 1
///
/// An unset variable holds 0. max(1) hides it, and each process believes it is alone.
#[bug("parallel/world-of-none", named_by = "parallel/uneven-world-refused")]
impl ShardLoops for WorldOfNone {
    fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
        Oracle.range(v, w.max(1), r)
    }
}

/// wraps a rank that does not exist modulo the world size in the range
///
/// The ranks span several machines where only one was meant, so two own the same rows.
#[bug("parallel/rank-wraps-in-range", named_by = "parallel/rank-has-no-range")]
impl ShardLoops for RankWraps {
    fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
        Oracle.range(v, w, r % w.max(1))
    }
}

/// gives a rank that does not exist a range beyond the vocabulary
///
/// r·n and (r + 1)·n exist for every r.
#[bug("parallel/rank-beyond-the-end", named_by = "parallel/rank-has-no-range")]
impl ShardLoops for RankBeyond {
    fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
        Oracle.check_world(v, w)?;
        Ok(owned(v, w, r))
    }
}

/// looks tokens up on a rank that does not exist
///
/// It owns nothing, so it gives zeros: nothing crashes, and a rank's rows are missing from the sum.
#[bug("parallel/rank-not-checked", named_by = "parallel/rank-refused")]
impl ShardLoops for RankNotChecked {
    fn check_rank(&self, _: usize, _: usize) -> Reply<()> {
        Ok(())
    }
    fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
        Oracle.range(v, w, r)
    }
}

/// rejects ranks above w, but lets w itself pass
///
/// r > w was written for r >= w, as if ranks counted from 1.
#[bug("parallel/rank-limit-inclusive", named_by = "parallel/rank-refused")]
impl ShardLoops for RankInclusive {
    fn check_rank(&self, rank: usize, world_size: usize) -> Reply<()> {
        if rank == world_size { Ok(()) } else { Oracle.check_rank(rank, world_size) }
    }
    fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
        Oracle.range(v, w, r)
    }
}

/// draws every shard from the same seed
///
/// Each rank runs the same program with the same configuration, so words n ids apart start as the same vector.
#[bug("parallel/same-seed", named_by = "parallel/initial-ranks-differ", source = "ms-swift #7944")]
impl ShardLoops for SameSeed {
    seeds!(|base, _, _| base);
}

/// adds r + 1 to the base seed
///
/// Ranks count from 1. All shards differ, so nothing looks wrong, but a world of one is not the whole table.
#[bug("parallel/seed-counts-from-one", named_by = "parallel/initial-shard")]
impl ShardLoops for FromOne {
    seeds!(|base, rank, _| base.wrapping_add(rank).wrapping_add(1));
}

/// combines the rank and the seed by exclusive or instead of addition
///
/// 42 ^ 1 is 43, the same as the sum, but 42 ^ 2 is 40.
#[bug("parallel/seed-xor-rank", named_by = "parallel/initial-shard")]
impl ShardLoops for Xor {
    seeds!(|base, rank, _| base ^ rank);
}

/// uses base·w + r as the seed, so that no two jobs share one
///
/// It is a careful idea, and right for w = 1, but otherwise gives different numbers.
#[bug("parallel/seed-times-world", named_by = "parallel/initial-shard")]
impl ShardLoops for TimesWorld {
    seeds!(|base, rank, w| base.wrapping_mul(w).wrapping_add(rank));
}

/// leaves 1000 seeds between the ranks
///
/// The habit comes from programs where each rank draws from many seeds.
#[bug("parallel/seed-step-of-1000", named_by = "parallel/initial-shard")]
impl ShardLoops for Thousand {
    seeds!(|base, rank, _| base.wrapping_add(1000 * rank));
}

/// stops counting at the largest seed instead of wrapping around
///
/// The addition is called safe, but it makes two ranks share a seed.
#[bug("parallel/seed-saturates", named_by = "parallel/initial-seed-wraps")]
impl ShardLoops for Saturates {
    seeds!(|base, rank, _| base.saturating_add(rank));
}

/// clamps base + r to 32 bits instead of truncating it
///
/// The generator takes 32 bits, so something must happen, and PyTorch truncates.
#[bug("parallel/seed-clamped", named_by = "parallel/initial-seed-wraps")]
impl ShardLoops for SeedClamped {
    seeds!(|base, rank, _| base.wrapping_add(rank).min(u64::from(u32::MAX)));
}

/// draws the whole table from the base seed and keeps its own rows
///
/// This is a fine way, because the table does not depend on w. But it costs the memory that sharding should save, and the
/// specification has a seed per rank.
#[bug("parallel/slice-of-whole-draw", named_by = "parallel/initial-shard")]
impl ShardLoops for SliceOfWhole {
    fn shard(&self, v: usize, e: usize, w: usize, r: usize, i: NormalInit) -> Vec<f32> {
        let own = owned(v, w, r);
        normal(v * e, i).drain(own.start * e..own.end * e).collect()
    }
}

/// draws v rows instead of n, and keeps the first n
///
/// The seed is right, and so are the numbers as long as n·e is a multiple of 16. Otherwise PyTorch redraws the tail of a
/// table.
#[bug("parallel/first-rows-of-whole-draw", named_by = "parallel/initial-shard")]
impl ShardLoops for FirstOfWhole {
    fn shard(&self, v: usize, e: usize, w: usize, r: usize, i: NormalInit) -> Vec<f32> {
        let mut table = Oracle.shard(v * w, e, w, r, i);
        table.truncate(v / w * e);
        table
    }
}

/// divides the standard deviation by the root of the world size
///
/// Variances add in a sum over ranks, but each token's row is 0 on all ranks except one.
#[bug("parallel/std-per-rank", named_by = "parallel/initial-mean-and-std")]
impl ShardLoops for StdPerRank {
    moments!(|init, w| NormalInit { std: init.std / w.sqrt(), ..init });
}

/// divides the mean by the world size
///
/// Means add in a sum over ranks, and with mean 0 it doesn't show.
#[bug("parallel/mean-per-rank", named_by = "parallel/initial-mean-and-std")]
impl ShardLoops for MeanPerRank {
    moments!(|init, w| NormalInit { mean: init.mean / w, ..init });
}

/// forgets the mean
///
/// It is 0 in nearly every configuration.
#[bug("parallel/no-mean", named_by = "parallel/initial-mean-and-std")]
impl ShardLoops for NoMean {
    moments!(|init, _| NormalInit { mean: 0.0, ..init });
}

/// treats the next rank's first id as its own, and returns its own last row
///
/// <= was written for <, so two ranks answer at one id per rank.
#[bug("parallel/upper-edge-inclusive", named_by = "parallel/edges")]
impl ShardLoops for UpperInclusive {
    rows!(|own, id| {
        let mine = own.start <= id && id <= own.end;
        mine.then(|| (id - own.start).min(own.len().saturating_sub(1)))
    });
}

/// treats its first id as foreign
///
/// > was written for >=, so no rank answers at one id per rank.
#[bug("parallel/lower-edge-exclusive", named_by = "parallel/edges")]
impl ShardLoops for LowerExclusive {
    rows!(|own, id| { (own.start < id && id < own.end).then(|| id - own.start) });
}

/// treats its last id as foreign
///
/// The end seemed to be included, so 1 was subtracted again.
#[bug("parallel/last-id-foreign", named_by = "parallel/edges")]
impl ShardLoops for LastForeign {
    rows!(|own, id| { (own.start <= id && id + 1 < own.end).then(|| id - own.start) });
}

/// looks up the id without subtracting the start of the shard
///
/// On rank 0 it is right. Elsewhere the row is past the end, where a GPU reads whatever is there, or the last row.
#[bug("parallel/start-not-subtracted", named_by = "parallel/owned-rows")]
impl ShardLoops for NotSubtracted {
    rows!(|own, id| { own.contains(&id).then(|| id.min(own.len().saturating_sub(1))) });
}

/// subtracts one too few, so that each id gets the row after its own
///
/// Ids count from 1 on the way in and from 0 on the way out.
#[bug("parallel/local-row-off-by-one", named_by = "parallel/owned-rows")]
impl ShardLoops for OffByOne {
    rows!(|own, id| { own.contains(&id).then(|| (id - own.start + 1) % own.len().max(1)) });
}

/// deals the ids out in turn, so that rank r owns the ids with id mod w = r
///
/// It is balanced, because frequent tokens have small ids, but the shard's rows are different ones.
#[bug("parallel/round-robin", named_by = "parallel/owned-rows")]
impl ShardLoops for RoundRobin {
    fn row(&self, case: &ShardCase, id: usize) -> Option<usize> {
        (id % case.world_size == case.rank).then(|| id / case.world_size)
    }
}

/// answers for the ids of the rank at the other end
///
/// Processes were numbered from the other end of the machine.
#[bug("parallel/ranks-reversed", named_by = "parallel/owned-rows")]
impl ShardLoops for RanksReversed {
    fn row(&self, case: &ShardCase, id: usize) -> Option<usize> {
        let mirrored = case.world_size - 1 - case.rank;
        let own = owned(case.vocab_size, case.world_size, mirrored);
        own.contains(&id).then(|| id - own.start)
    }
}

/// reads the ids as [s, b]
///
/// Megatron puts the sequence first. With b = 1 or s = 1 there is no difference.
#[bug("parallel/ids-transposed", named_by = "parallel/owned-rows")]
impl ShardLoops for IdsTransposed {
    fn id(&self, case: &ShardCase, t: usize) -> usize {
        let [b, s] = case.shape;
        case.ids[t % s * b + t / s]
    }
}

/// decides by the first batch row which places are foreign, for all batch rows
///
/// The mask has shape [s] and is broadcast, which is right for a batch of 1.
#[bug("parallel/mask-of-first-sequence", named_by = "parallel/sum-is-the-lookup")]
impl ShardLoops for MaskOfFirst {
    fn rows(&self, case: &ShardCase) -> Vec<f32> {
        let (s, e) = (case.shape[1], case.embedding_dim);
        let mut y = Oracle.rows(case);
        for t in 0..case.ids.len() {
            if self.row(case, case.ids[t % s]).is_none() {
                y[t * e..][..e].fill(0.0);
            }
        }
        y
    }
}

/// sets foreign ids to 0 but forgets to zero row 0's result
///
/// The mask is needed twice: before the lookup, so that it does not fail, and after it.
#[bug("parallel/foreign-rows-not-zeroed", named_by = "parallel/foreign-tokens-are-zero")]
impl ShardLoops for NotZeroed {
    rows!(|own, id| Some(id.checked_sub(own.start).filter(|_| { own.contains(&id) }).unwrap_or(0)));
}

/// clamps foreign ids to the nearest row of the shard
///
/// The lookup never fails, but every rank answers for every token.
#[bug("parallel/foreign-rows-clamped", named_by = "parallel/foreign-tokens-are-zero")]
impl ShardLoops for Clamped {
    rows!(|own, id| { Some(id.clamp(own.start, (own.end - 1).max(own.start)) - own.start) });
}

/// looks every id up modulo n
///
/// id mod n is the right row for the owner, but which rank owns it was never asked.
#[bug("parallel/foreign-rows-wrap", named_by = "parallel/foreign-tokens-are-zero")]
impl ShardLoops for Wrap {
    rows!(|own, id| Some(id % own.len().max(1)));
}

/// multiplies row 0's result by 0, so that a NaN in row 0 stays
///
/// mask times result is one line and right on finite tables, but 0 times NaN is NaN.
#[bug("parallel/zero-by-product", named_by = "parallel/zeros-are-written")]
impl ShardLoops for ByProduct {
    fn foreign(&self, case: &ShardCase, j: usize) -> f32 {
        0.0 * Oracle.element(case, 0, j)
    }
}

/// replaces NaN by 0 after the product with the mask
///
/// It cures the product with a mask, but also hides a broken table.
#[bug("parallel/nan-cleaned", named_by = "parallel/special-values")]
impl ShardLoops for NanCleaned {
    fn element(&self, case: &ShardCase, row: usize, j: usize) -> f32 {
        let value = Oracle.element(case, row, j);
        if value.is_nan() { 0.0 } else { value }
    }
}

/// flushes the smallest numbers to 0
///
/// Fast processor modes do so in the product with the mask, whereas a copy has none.
#[bug("parallel/tiny-flushed", named_by = "parallel/special-values")]
impl ShardLoops for TinyFlushed {
    fn element(&self, case: &ShardCase, row: usize, j: usize) -> f32 {
        let value = Oracle.element(case, row, j);
        if value.is_subnormal() { 0.0 } else { value }
    }
}

/// divides by the world size, as for a mean over ranks
///
/// An all-reduce can average, but here only one rank contributes a row, so the sum is the row.
#[bug("parallel/divided-by-world", named_by = "parallel/sum-is-the-lookup")]
impl ShardLoops for Divided {
    fn element(&self, case: &ShardCase, row: usize, j: usize) -> f32 {
        Oracle.element(case, row, j) / case.world_size as f32
    }
}

/// rounds its part to f16 for the sum over the ranks
///
/// It halves the bytes on the wire, but only three digits remain.
#[bug("parallel/sent-in-f16", named_by = "parallel/sum-is-the-lookup")]
impl ShardLoops for SentInF16 {
    fn element(&self, case: &ShardCase, row: usize, j: usize) -> f32 {
        to_f16(f64::from(Oracle.element(case, row, j)))
    }
}

/// returns an empty result if it owns no token of the batch
///
/// The early return saves work, but then the sum over the ranks hangs, or fails on a shape.
#[bug("parallel/nothing-for-foreign-batch", named_by = "parallel/foreign-tokens-are-zero")]
impl ShardLoops for NothingForForeign {
    fn rows(&self, case: &ShardCase) -> Vec<f32> {
        let any = case.ids.iter().any(|&id| self.row(case, id).is_some());
        if any { Oracle.rows(case) } else { Vec::new() }
    }
}

/// returns rows only for its own tokens, packed together
///
/// Selecting with a mask loses the places of the tokens.
#[bug("parallel/foreign-tokens-dropped", named_by = "parallel/foreign-tokens-are-zero")]
impl ShardLoops for Packed {
    fn rows(&self, case: &ShardCase) -> Vec<f32> {
        let rows = case.ids.iter().filter_map(|&id| self.row(case, id));
        let e = case.embedding_dim;
        rows.flat_map(|row| (0..e).map(move |j| self.element(case, row, j))).collect()
    }
}

/// rejects ids that another rank owns
///
/// The lookup of a whole table is used unchanged, and its check knows n rows.
#[bug("parallel/foreign-ids-refused", named_by = "parallel/one-rank-answers")]
impl ShardLoops for ForeignRefused {
    fn check_ids(&self, case: &ShardCase) -> Reply<()> {
        Oracle.check_ids(case)?;
        match case.ids.iter().find(|&&id| self.row(case, id).is_none()) {
            Some(id) => Err(Refusal::new(format!("id {id} is not on this rank"))),
            None => Ok(()),
        }
    }
}

/// sets foreign ids to 0 in the caller's memory
///
/// It calls masked_fill_ with its underscore. If ranks share a process, the next one looks up id 0.
#[bug("parallel/ids-masked-in-place", named_by = "parallel/ids-kept")]
impl ShardLoops for MaskedInPlace {
    fn ids_after(&self, case: &ShardCase) -> Vec<usize> {
        let own = |id: &&usize| self.row(case, **id).is_some();
        case.ids.iter().map(|id| Some(id).filter(own).copied().unwrap_or(0)).collect()
    }
}

/// subtracts the start of the shard in the caller's memory
///
/// ids -= start changes nothing on rank 0, where the start is 0.
#[bug("parallel/ids-shifted-in-place", named_by = "parallel/ids-kept")]
impl ShardLoops for ShiftedInPlace {
    fn ids_after(&self, case: &ShardCase) -> Vec<usize> {
        let start = owned(case.vocab_size, case.world_size, case.rank).start;
        case.ids.iter().map(|id| id.wrapping_sub(start)).collect()
    }
}

/// skips the check of the ids in a world of one
///
/// The check is part of the mask, and one rank needs no mask.
#[bug(
    "parallel/one-rank-skips-check",
    named_by = "parallel/id-refused-in-a-world-of-one",
    source = "Megatron-LM #2459; vLLM #53977"
)]
impl ShardLoops for OneSkips {
    checks_if!(|case| case.world_size > 1);
}

/// checks the ids only in a world of one
///
/// With more ranks, an id without an owner is foreign to all and gives zeros without a message.
#[bug("parallel/only-one-rank-checks", named_by = "parallel/id-refused")]
impl ShardLoops for OnlyOne {
    checks_if!(|case| case.world_size == 1);
}

/// checks the ids only on the last rank, which owns the end
///
/// One rank stops, and the others wait for it in the sum.
#[bug("parallel/last-rank-checks", named_by = "parallel/id-refused")]
impl ShardLoops for LastChecks {
    checks_if!(|case| case.rank + 1 == case.world_size);
}

/// checks the ids only on rank 0
///
/// Rank 0 writes the log, so it was given the checks.
#[bug("parallel/first-rank-checks", named_by = "parallel/id-refused")]
impl ShardLoops for FirstChecks {
    checks_if!(|case| case.rank == 0);
}

/// clamps ids that are too large to v − 1
///
/// Without a crash or a message, a wrong tokenizer looks like a model that learned nothing.
#[bug("parallel/id-clamped", named_by = "parallel/id-refused")]
impl ShardLoops for IdClamped {
    accepts!(|id, v| id.min(v.saturating_sub(1)));
}

/// rejects ids above v, but lets v itself pass
///
/// id > v was written for id >= v, so all ranks give zeros for it.
#[bug("parallel/id-limit-inclusive", named_by = "parallel/id-refused")]
impl ShardLoops for LimitInclusive {
    fn check_ids(&self, case: &ShardCase) -> Reply<()> {
        let v = case.vocab_size;
        let ids: Vec<usize> = case.ids.iter().map(|&id| if id == v { 0 } else { id }).collect();
        check_ids(&ids, case.shape, v)
    }
}

/// truncates ids to 32 bits before the check
///
/// Kernels count in 32 bits, so the ids are cast first, and 2³² + 3 becomes 3.
#[bug("parallel/ids-in-32-bits", named_by = "parallel/huge-id-refused")]
impl ShardLoops for In32Bits {
    accepts!(|id, _| id as u32 as usize);
}

/// treats huge ids as negative, and negative ones as padding, which gives zeros
///
/// −100 is the label of ignored tokens, which as a usize is near the largest number.
#[bug("parallel/negative-ids", named_by = "parallel/huge-id-refused")]
impl ShardLoops for Negative {
    fn check_ids(&self, case: &ShardCase) -> Reply<()> {
        let ids: Vec<usize> =
            case.ids.iter().map(|&id| if (id as isize) < 0 { 0 } else { id }).collect();
        check_ids(&ids, case.shape, case.vocab_size)
    }
}

/// reports a bad id counted from the start of the shard
///
/// The check comes after the subtraction, so each rank names another number.
#[bug("parallel/refusal-names-local-id", named_by = "parallel/refusal-names-id")]
impl ShardLoops for LocalName {
    fn check_ids(&self, case: &ShardCase) -> Reply<()> {
        let start = owned(case.vocab_size, case.world_size, case.rank).start;
        match case.ids.iter().find(|&&id| id >= case.vocab_size) {
            Some(id) => Err(Refusal::new(format!("no row {}", id.wrapping_sub(start)))),
            None => Ok(()),
        }
    }
}

/// rejects a bad id without saying which one
///
/// "index out of range": among a million tokens on a hundred ranks, which?
#[bug("parallel/refusal-without-words", named_by = "parallel/refusal-names-id")]
impl ShardLoops for WithoutWords {
    fn check_ids(&self, case: &ShardCase) -> Reply<()> {
        Oracle.check_ids(case).map_err(|_| Refusal::new("index out of range"))
    }
}

/// zeroes foreign tokens only in the forward pass, so that their gradient goes to row 0
///
/// Foreign ids were set to 0 for the lookup, and the backward pass follows it. Each shard's first row is changed by all
/// words of the others.
#[bug(
    "parallel/foreign-gradient-to-first-row",
    named_by = "parallel/foreign-tokens-give-no-gradient"
)]
impl ShardLoops for ToFirst {
    targets!(|own, id| { Some((if own.contains(&id) { id - own.start } else { 0 }, 1.0)) });
}

/// sends the gradient of foreign tokens to the nearest row of the shard
///
/// Here the ids were clamped, so the first and the last row are changed.
#[bug(
    "parallel/foreign-gradient-to-nearest-row",
    named_by = "parallel/foreign-tokens-give-no-gradient"
)]
impl ShardLoops for ToNearest {
    targets!(|own, id| {
        Some((id.clamp(own.start, (own.end - 1).max(own.start)) - own.start, 1.0))
    });
}

/// sends the gradient of every token to row id mod n
///
/// Here ids are taken modulo n, so each row is changed by w words.
#[bug("parallel/foreign-gradient-wraps", named_by = "parallel/foreign-tokens-give-no-gradient")]
impl ShardLoops for WrapsBack {
    targets!(|own, id| Some((id % own.len().max(1), 1.0)));
}

/// multiplies the gradient of foreign tokens by 0 and adds it to row 0
///
/// It is right for finite gradients, but a NaN in another rank's token arrives here too.
#[bug("parallel/foreign-gradient-by-product", named_by = "parallel/foreign-nan-stays-out")]
impl ShardLoops for ByProductBack {
    targets!(|own, id| { Some(if own.contains(&id) { (id - own.start, 1.0) } else { (0, 0.0) }) });
}

/// gives its last row the gradient of the next rank's first id
///
/// The forward pass has < and the backward pass <=, because they were written on different days.
#[bug("parallel/gradient-upper-edge-inclusive", named_by = "parallel/gradient-at-the-edges")]
impl ShardLoops for UpperBack {
    targets!(|own, id| {
        let mine = own.start <= id && id <= own.end;
        mine.then(|| ((id - own.start).min(own.len().saturating_sub(1)), 1.0))
    });
}

/// gives its first row no gradient
///
/// Foreign tokens are set to 0, and protecting row 0 from them also shut out its own.
#[bug("parallel/gradient-lower-edge-exclusive", named_by = "parallel/gradient-at-the-edges")]
impl ShardLoops for LowerBack {
    targets!(|own, id| { (own.start < id && id < own.end).then(|| (id - own.start, 1.0)) });
}

/// sends no gradient to the shard
///
/// The rows were copied without the tape, so the shard stays as it was drawn.
#[bug("parallel/no-gradient", named_by = "parallel/gradient-counts")]
impl ShardLoops for NoGradient {
    targets!(|_, _| None);
}

/// computes the gradient only on rank 0
///
/// That would do for weights that all ranks share, but these differ.
#[bug("parallel/gradient-on-first-rank", named_by = "parallel/gradient-counts")]
impl ShardLoops for OnFirstRank {
    fn target(&self, case: &ShardCase, id: usize) -> Option<(usize, f64)> {
        Oracle.target(case, id).filter(|_| case.rank == 0)
    }
}

/// multiplies the gradient by the world size
///
/// The backward pass of a sum over ranks copies dy to each of them. Summing again makes it w times too large.
#[bug("parallel/gradient-times-world", named_by = "parallel/gradient-counts")]
impl ShardLoops for TimesWorldBack {
    fn target(&self, case: &ShardCase, id: usize) -> Option<(usize, f64)> {
        Oracle.target(case, id).map(|(row, _)| (row, case.world_size as f64))
    }
}

/// divides the gradient by the world size
///
/// Data-parallel ranks average their gradients, but ranks of a sharded table don't.
#[bug("parallel/gradient-divided-by-world", named_by = "parallel/gradient-counts")]
impl ShardLoops for DividedBack {
    fn target(&self, case: &ShardCase, id: usize) -> Option<(usize, f64)> {
        Oracle.target(case, id).map(|(row, _)| (row, 1.0 / case.world_size as f64))
    }
}

/// keeps only the last token's gradient of a row instead of adding them all
///
/// It is assigned instead of added, which is right without repeated ids.
#[bug("parallel/gradient-overwritten", named_by = "parallel/gradient-adds")]
impl ShardLoops for Overwritten {
    fn add(&self, _: f64, dy: f64) -> f64 {
        dy
    }
}

/// reads the ids as [s, b] in the backward pass
///
/// Only the forward pass was tested, and with every dy 1 the backward pass is right too.
#[bug("parallel/gradient-ids-transposed", named_by = "parallel/gradient-adds")]
impl ShardLoops for TransposedBack {
    fn gradient(&self, case: &ShardCase, dy: &[f32]) -> Vec<f64> {
        let [b, s] = case.shape;
        let ids = (0..case.ids.len()).map(|t| case.ids[t % s * b + t / s]).collect();
        Oracle.gradient(&ShardCase { ids, ..case.clone() }, dy)
    }
}

/// sends no gradient to rows with a NaN
///
/// It guards against broken rows, but makes the gradient depend on the shard, which it must not.
#[bug("parallel/nan-rows-frozen", named_by = "parallel/gradient-not-of-shard")]
impl ShardLoops for NanFrozen {
    fn target(&self, case: &ShardCase, id: usize) -> Option<(usize, f64)> {
        let nan =
            |row: usize| (0..case.embedding_dim).any(|j| Oracle.element(case, row, j).is_nan());
        Oracle.target(case, id).filter(|(row, _)| !nan(*row))
    }
}

/// adds up the gradient in f16
///
/// There 2048 + 1 is 2048, so only frequent tokens suffer, and no small test has any.
#[bug("parallel/gradient-in-f16", named_by = "parallel/gradient-of-a-frequent-token")]
impl ShardLoops for GradientInF16 {
    fn add(&self, sum: f64, dy: f64) -> f64 {
        f64::from(to_f16(sum + dy))
    }
}

/// counts a token's repeats in one byte and drops the 256th
///
/// A buffer of 255 places per row is large enough for every test.
#[bug("parallel/gradient-stops-counting", named_by = "parallel/gradient-of-a-frequent-token")]
impl ShardLoops for OneByte {
    fn gradient(&self, case: &ShardCase, dy: &[f32]) -> Vec<f64> {
        let e = case.embedding_dim;
        let mut met = vec![0u8; case.vocab_size];
        let mut kept = dy.to_vec();
        for (t, &id) in case.ids.iter().enumerate() {
            match met[id].checked_add(1) {
                Some(count) => met[id] = count,
                None => kept[t * e..][..e].fill(0.0),
            }
        }
        Oracle.gradient(case, &kept)
    }
}

/// adds a little of the shard to its gradient, even in rows never looked up
///
/// Weight decay belongs to the optimizer. Here it shrinks rare words towards 0.
#[bug("parallel/weight-decay", named_by = "parallel/gradient-slices")]
impl ShardLoops for WeightDecay {
    fn gradient(&self, case: &ShardCase, dy: &[f32]) -> Vec<f64> {
        let sum = Oracle.gradient(case, dy).into_iter().zip(&case.shard);
        sum.map(|(sum, &value)| sum + 0.01 * f64::from(value)).collect()
    }
}

/// adds up the gradient in blocks of 128 tokens and loses the last one if it is not full
///
/// Each block gets a partial sum, and there are tokens / 128 of them. A few tokens take the simple path, which is right.
#[bug("parallel/gradient-block-lost", named_by = "parallel/gradient-any-input")]
impl ShardLoops for GradientBlockLost {
    fn gradient(&self, case: &ShardCase, dy: &[f32]) -> Vec<f64> {
        let mut kept = dy.to_vec();
        kept[in_full_blocks(case.ids.len()) * case.embedding_dim..].fill(0.0);
        Oracle.gradient(case, &kept)
    }
}
