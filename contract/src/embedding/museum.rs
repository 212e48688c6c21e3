//! Bugs of VocabEmbedding.

use crate::component::{bug, bugs};
use crate::embedding::interface::{LookupCase, NormalInit, Refusal, Reply};
use crate::embedding::oracle::{LookupLoops, check_ids};
use crate::oracle::blocks::*;
use crate::oracle::random::{MersenneTwister, NormalSteps, normal, uniform};
use crate::oracle::{Oracle, to_f16};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

bugs! {
    UniformTable, ShortSwapped, OneWay, ShortLimitLow, ShortForAll, ShortLimit, Neighbours, CosineTwice, SineFirst,
    LogOfU, WithoutTwo, TailSkipped, TailOnlyRest, StdAsVariance, StdSquared, NoMean, NoStd, MeanScaled, Truncated,
    ScaledByDimension, ByColumns, RowByRow, AllRowsAlike, PaddingRow, SeedIgnored, SeedFolded, SeedSaturates,
    SeedPlusOne, GoesOn, IdsTransposed, TableTransposed, FirstSequence, SortedAndLeft, FromOne, LastDropped,
    PaddingReads, RootOfDimension, LargestNorm, OneHot, TinyFlushed, NanCleaned, RowsInF16, RepeatsDropped,
    PositionAdded, ByParity, IdsInPlace, IdsSorted, IdClamped, IdWraps, UnknownIsZero, LimitInclusive, FirstChecked,
    In32Bits, In16Bits, Negative, WithoutWords, PlaceOnly, Overwritten, FirstOnly, ByFrequency, Averaged, NoGradient,
    PaddingNotTrained, LastPosition, FirstSequenceOnly, GradientTransposed, WeightDecay, LazyDecay, NanFrozen,
    Smeared, GradientOneHot, Clipped, GradientInF16, OneByte, BlockNotCopied, GradientRace, GradientNotCleared,
    SumOfThreads,
}

/// A bug in the first values: its name, and the steps of the draw that it writes wrong.
macro_rules! draws {
    ($($step:ident: $wrong:expr),+ $(,)?) => {
        fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
            NormalSteps { $($step: $wrong,)+ ..NormalSteps::default() }.draw(v * e, init)
        }
    };
}

/// A bug in the check of the ids: whether an id passes, and the row that it is read as.
macro_rules! accepts {
    ($read:expr) => {
        fn check(&self, case: &LookupCase) -> Reply<()> {
            let read: fn(usize, usize) -> usize = $read;
            let ids: Vec<usize> = case.ids.iter().map(|&id| read(id, case.vocab_size)).collect();
            check_ids(&ids, case.shape, case.vocab_size)
        }
        fn id(&self, case: &LookupCase, t: usize) -> usize {
            let read: fn(usize, usize) -> usize = $read;
            read(case.ids[t], case.vocab_size)
        }
    };
}

/// A generator that is seeded once and then goes on.
#[derive(Default)]
struct GoesOn {
    calls: AtomicU64,
}

/// seeds the generator once and keeps drawing from it for the next table
///
/// The whole program shares a generator, so only the first table of the day is right.
#[bug("embedding/generator-goes-on", named_by = "embedding/initial-repeats", of = GoesOn::default())]
impl LookupLoops for GoesOn {
    fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        let seed = init.seed.wrapping_add(before.wrapping_mul(1000));
        normal(v * e, NormalInit { seed, ..init })
    }
}

#[derive(Default)]
struct GradientNotCleared(RefCell<Vec<f64>>);

/// continues with the gradient of the last call
///
/// Because a table is large, its gradient's buffer is reused, so only the first call is right.
#[bug("embedding/gradient-not-cleared", named_by = "embedding/gradient-any-input", of = GradientNotCleared::default())]
impl LookupLoops for GradientNotCleared {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let mut kept = self.0.borrow_mut();
        kept.resize(case.table.len(), 0.0);
        let new = Oracle.gradient(case, dy).into_iter();
        kept.iter_mut().zip(new).for_each(|(kept, new)| *kept += new);
        kept.clone()
    }
}

#[derive(Default)]
struct SumOfThreads(SharedSum);

/// adds up a row's gradient in as many parts as there are threads, so that its last bits depend on their number
///
/// Each sum is equally exact, but two runs of the same training differ for no visible reason.
#[bug("embedding/gradient-of-threads", named_by = "embedding/gradient-any-input", of = SumOfThreads::default())]
impl LookupLoops for SumOfThreads {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let (e, threads) = (case.embedding_dim, self.0.threads());
        let sum = |i: usize| {
            let of_row = (0..case.ids.len()).filter(|&t| case.ids[t] == i / e);
            let terms: Vec<f64> = of_row.map(|t| f64::from(dy[t * e + i % e])).collect();
            SharedSum::sum(threads, &terms)
        };
        (0..case.table.len()).map(sum).collect()
    }
}

/// draws the first table uniform on [0, 1) instead of normal
///
/// rand was written for randn: one letter.
#[bug("embedding/uniform-table", named_by = "embedding/initial-normal-short")]
impl LookupLoops for UniformTable {
    fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
        let values = uniform(v * e, (0.0, 1.0), init.seed);
        values.iter().map(|u| u * init.std + init.mean).collect()
    }
}

/// swaps the two draws of a short table: radius from the first, angle from the second
///
/// That is the textbook's order, and PyTorch's for long tables, but below 16 values PyTorch has it the other way round.
#[bug("embedding/short-draws-swapped", named_by = "embedding/initial-normal-short")]
impl LookupLoops for ShortSwapped {
    draws! { short_pair: |u1, u2| (1.0 - u1, u2)  }
}

/// draws short tables by the algorithm for long ones
///
/// PyTorch has two algorithms, chosen by the size. If you read only one of them, you know half.
#[bug("embedding/one-way-to-draw", named_by = "embedding/initial-normal-short")]
impl LookupLoops for OneWay {
    fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
        let mut values = normal((v * e).max(16), init);
        values.truncate(v * e);
        values
    }
}

/// draws a table of 15 values by the algorithm for long ones
///
/// n < 15 was written for n < 16, and only one size of table shows it.
#[bug("embedding/short-limit-too-low", named_by = "embedding/initial-normal-short")]
impl LookupLoops for ShortLimitLow {
    fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
        let mut values = normal(if v * e == 15 { 16 } else { v * e }, init);
        values.truncate(v * e);
        values
    }
}

/// draws long tables by the algorithm for short ones
///
/// It is correct Box-Muller in double precision, but from 16 values on the numbers differ from PyTorch's.
#[bug("embedding/short-way-for-all", named_by = "embedding/initial-normal-long")]
impl LookupLoops for ShortForAll {
    draws! { is_short: |_| true  }
}

/// draws a table of exactly 16 values by the algorithm for short ones
///
/// n <= 16 was written for n < 16, and only one size of table shows it.
#[bug("embedding/short-limit-inclusive", named_by = "embedding/initial-normal-long")]
impl LookupLoops for ShortLimit {
    draws! { is_short: |n| n <= 16  }
}

/// pairs neighbours in a long table, (0, 1), (2, 3), instead of (j, j + 8)
///
/// The numbers are normal all the same, so no histogram reveals it.
#[bug("embedding/neighbours-are-pairs", named_by = "embedding/initial-normal-long")]
impl LookupLoops for Neighbours {
    draws! { partner: 1  }
}

/// uses the cosine for both values of a pair
///
/// A copied line kept one word, so every value appears twice.
#[bug("embedding/cosine-twice", named_by = "embedding/initial-normal-long")]
impl LookupLoops for CosineTwice {
    draws! { polar: |r, angle| (r * angle.cos(), r * angle.cos()) }
}

/// uses the sine for the first value of a pair and the cosine for the second
///
/// Both orders give normal numbers, but PyTorch has the cosine first.
#[bug("embedding/sine-first", named_by = "embedding/initial-normal-long")]
impl LookupLoops for SineFirst {
    draws! { polar: |r, angle| (r * angle.sin(), r * angle.cos())  }
}

/// takes the logarithm of u instead of 1 − u
///
/// Both are uniform, but u may be 0, whose logarithm is not finite.
#[bug("embedding/log-of-u", named_by = "embedding/initial-normal-long")]
impl LookupLoops for LogOfU {
    draws! {
        long_pair: |u1, u2| (u1, u2),
        short_pair: |u1, u2| (u2, u1)
    }
}

/// forgets the 2 in √(−2 ln u), so that the values are too small by √2
///
/// The values are still normal, with a standard deviation of 0.71.
#[bug("embedding/radius-without-two", named_by = "embedding/initial-normal-short")]
impl LookupLoops for WithoutTwo {
    draws! { polar: |r, angle| (r * angle.cos() / 2.0f64.sqrt(), r * angle.sin() / 2.0f64.sqrt()) }
}

/// leaves the values after the last whole block uniform
///
/// The loop runs over whole blocks of 16, and tables in tests have 64 or 1024 values.
#[bug("embedding/tail-not-renewed", named_by = "embedding/initial-normal-tail")]
impl LookupLoops for TailSkipped {
    draws! { tail: |_| 0  }
}

/// redraws only the rest after the last whole block instead of the last 16 values
///
/// That is sensible, but PyTorch overwrites values that were already done.
#[bug("embedding/tail-only-rest", named_by = "embedding/initial-normal-tail")]
impl LookupLoops for TailOnlyRest {
    draws! { tail: |n| n % 16  }
}

/// treats the standard deviation as the variance and takes its root
///
/// Statistics books write N(mean, variance). At 1 there is no difference.
#[bug("embedding/std-as-variance", named_by = "embedding/initial-mean-and-std")]
impl LookupLoops for StdAsVariance {
    draws! { scale: |z, init| z * f64::from(init.std).sqrt() + f64::from(init.mean) }
}

/// multiplies by the variance, the square of the standard deviation
///
/// This confuses the two the other way, and at 1 there is no difference.
#[bug("embedding/std-squared", named_by = "embedding/initial-mean-and-std")]
impl LookupLoops for StdSquared {
    draws! { scale: |z, init| z * f64::from(init.std).powi(2) + f64::from(init.mean) }
}

/// forgets the mean
///
/// It is 0 in nearly every configuration.
#[bug("embedding/no-mean", named_by = "embedding/initial-mean-and-std")]
impl LookupLoops for NoMean {
    draws! { scale: |z, init| z * f64::from(init.std)  }
}

/// forgets the standard deviation
///
/// randn plus mean is enough for the default of 1.
#[bug("embedding/no-std", named_by = "embedding/initial-mean-and-std")]
impl LookupLoops for NoStd {
    draws! { scale: |z, init| z + f64::from(init.mean)  }
}

/// multiplies the mean by the standard deviation as well: (z + mean)·std
///
/// The parentheses are in the wrong place, which doesn't matter for mean 0 or std 1.
#[bug("embedding/mean-scaled", named_by = "embedding/initial-mean-and-std")]
impl LookupLoops for MeanScaled {
    draws! { scale: |z, init| (z + f64::from(init.mean)) * f64::from(init.std) }
}

/// truncates the normal numbers at two standard deviations
///
/// Other models use trunc_normal_. One value in twenty differs.
#[bug("embedding/truncated-normal", named_by = "embedding/initial-normal-long")]
impl LookupLoops for Truncated {
    draws! { scale: |z, init| z.clamp(-2.0, 2.0) * f64::from(init.std) + f64::from(init.mean) }
}

/// divides the first values by the root of the embedding dimension
///
/// It is a rule for linear layers, but the specification gives std.
#[bug("embedding/scaled-by-dimension", named_by = "embedding/initial-normal-short")]
impl LookupLoops for ScaledByDimension {
    fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
        let std = init.std / (e as f32).sqrt();
        normal(v * e, NormalInit { std, ..init })
    }
}

/// fills the table column by column
///
/// The table was stored as [e, v], so its values are all there, but in different places.
#[bug("embedding/filled-by-columns", named_by = "embedding/initial-normal-short")]
impl LookupLoops for ByColumns {
    fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
        let drawn = normal(v * e, init);
        (0..v * e).map(|i| drawn[i % e * v + i / e]).collect()
    }
}

/// draws each row separately, from the seed plus its number
///
/// Separate rows are easy to draw in parallel, but the numbers are different ones.
#[bug("embedding/row-by-row", named_by = "embedding/initial-normal-short")]
impl LookupLoops for RowByRow {
    fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
        let row = |id: usize| {
            let seed = init.seed.wrapping_add(id as u64);
            normal(e, NormalInit { seed, ..init })
        };
        (0..v).flat_map(row).collect()
    }
}

/// reseeds the generator for each row, so that all rows are equal
///
/// The generator is created inside the loop. All words mean the same at first, and training separates them only slowly.
#[bug("embedding/all-rows-alike", named_by = "embedding/initial-normal-short")]
impl LookupLoops for AllRowsAlike {
    fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
        normal(e, init).repeat(v)
    }
}

/// sets row 0 of the first table to zeros
///
/// PyTorch does so with padding_idx = 0, but here no id is special.
#[bug("embedding/padding-row-starts-at-zero", named_by = "embedding/initial-normal-short")]
impl LookupLoops for PaddingRow {
    fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
        let mut table = normal(v * e, init);
        table.iter_mut().take(e).for_each(|value| *value = 0.0);
        table
    }
}

/// always draws from seed 42
///
/// The default was used instead of the setting, and all tests use the default.
#[bug("embedding/seed-ignored", named_by = "embedding/initial-seed")]
impl LookupLoops for SeedIgnored {
    draws! { start: |_| MersenneTwister::new(42)  }
}

/// mixes the high 32 bits of the seed into the low ones
///
/// A careful generator would do so, but PyTorch's takes the low 32 bits.
#[bug("embedding/seed-folded", named_by = "embedding/initial-seed")]
impl LookupLoops for SeedFolded {
    draws! { start: |seed| MersenneTwister::new(seed ^ (seed >> 32)) }
}

/// clamps a seed that does not fit in 32 bits instead of truncating it
///
/// The conversion is called safe.
#[bug("embedding/seed-saturates", named_by = "embedding/initial-seed")]
impl LookupLoops for SeedSaturates {
    draws! { start: |seed| MersenneTwister::new(seed.min(u64::from(u32::MAX))) }
}

/// changes a seed of 0 to 1
///
/// Some generators don't accept 0, but this one does.
#[bug("embedding/seed-plus-one", named_by = "embedding/initial-seed")]
impl LookupLoops for SeedPlusOne {
    draws! { start: |seed| MersenneTwister::new(seed.max(1))  }
}

/// reads the ids as [s, b]
///
/// Some libraries put the sequence first. With b = 1 or s = 1 there is no difference, and the result's shape is right.
#[bug("embedding/ids-transposed", named_by = "embedding/rows-of-the-table")]
impl LookupLoops for IdsTransposed {
    fn id(&self, case: &LookupCase, t: usize) -> usize {
        let [b, s] = case.shape;
        case.ids[t % s * b + t / s]
    }
}

/// reads the table by columns, as [e, v]
///
/// A linear layer stores its weight that way, and the two are often tied.
#[bug("embedding/table-transposed", named_by = "embedding/rows-of-the-table")]
impl LookupLoops for TableTransposed {
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        case.table.get(j * case.vocab_size + id).copied().unwrap_or(0.0)
    }
}

/// looks up the first batch row for all batch rows
///
/// An index was left at 0, and broadcasting hid it. A batch of 1 is right.
#[bug("embedding/first-sequence-for-all", named_by = "embedding/rows-of-the-table")]
impl LookupLoops for FirstSequence {
    fn id(&self, case: &LookupCase, t: usize) -> usize {
        case.ids[t % case.shape[1]]
    }
}

/// sorts the ids to read the table in order, and never undoes it
///
/// Reading in order is fast, but the way back was forgotten.
#[bug("embedding/sorted-and-left-so", named_by = "embedding/rows-of-the-table")]
impl LookupLoops for SortedAndLeft {
    fn id(&self, case: &LookupCase, t: usize) -> usize {
        let mut ids = case.ids.clone();
        ids.sort_unstable();
        ids[t]
    }
}

/// counts ids from 1 and returns row id − 1
///
/// A tokenizer that counts from 1 was met halfway, and id 0 gets row 0.
#[bug("embedding/counted-from-one", named_by = "embedding/rows-of-the-table")]
impl LookupLoops for FromOne {
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        Oracle.element(case, id.saturating_sub(1), j)
    }
}

/// treats v − 1 as an exclusive limit, and reads row v − 2 for it
///
/// The clamp has the wrong end, and test ids are small.
#[bug("embedding/last-id-dropped", named_by = "embedding/first-and-last-id")]
impl LookupLoops for LastDropped {
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        Oracle.element(case, id.min(case.vocab_size.saturating_sub(2)), j)
    }
}

/// returns zeros for id 0, as if it were padding
///
/// In many vocabularies 0 is padding, but here no id is special.
#[bug("embedding/padding-row-reads-zero", named_by = "embedding/first-and-last-id")]
impl LookupLoops for PaddingReads {
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        if id == 0 { 0.0 } else { Oracle.element(case, id, j) }
    }
}

/// multiplies the rows by the root of the embedding dimension
///
/// The first Transformer did so, but as a step after the lookup, not part of it.
#[bug("embedding/root-of-dimension", named_by = "embedding/rows-of-the-table")]
impl LookupLoops for RootOfDimension {
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        Oracle.element(case, id, j) * (case.embedding_dim as f32).sqrt()
    }
}

/// shrinks rows with a norm above 1
///
/// PyTorch offers this as max_norm, which is off by default.
#[bug("embedding/largest-norm", named_by = "embedding/rows-of-the-table")]
impl LookupLoops for LargestNorm {
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        let row = (0..case.embedding_dim).map(|j| Oracle.element(case, id, j));
        let norm = row.map(|x| x * x).sum::<f32>().sqrt();
        Oracle.element(case, id, j) / norm.max(1.0)
    }
}

/// multiplies the table by a one-hot matrix, so that a NaN in any row spoils all tokens
///
/// 0 times NaN is NaN, and so is 0 times infinity. On finite tables it is right.
#[bug("embedding/one-hot-product", named_by = "embedding/special-values")]
impl LookupLoops for OneHot {
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        let hot = |k| if k == id { 1.0 } else { 0.0 };
        (0..case.vocab_size).map(|k| hot(k) * Oracle.element(case, k, j)).sum()
    }
}

/// flushes the smallest numbers to 0
///
/// Fast processor modes do so wherever there is arithmetic, and a copy has none.
#[bug("embedding/tiny-flushed", named_by = "embedding/special-values")]
impl LookupLoops for TinyFlushed {
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        let value = Oracle.element(case, id, j);
        if value.is_subnormal() { 0.0 } else { value }
    }
}

/// replaces NaN by 0
///
/// It is a well-meant guard that hides a broken table until much later.
#[bug("embedding/nan-cleaned", named_by = "embedding/special-values")]
impl LookupLoops for NanCleaned {
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        let value = Oracle.element(case, id, j);
        if value.is_nan() { 0.0 } else { value }
    }
}

/// passes the rows through f16
///
/// The table was saved in half precision to be small, so only three digits remain.
#[bug("embedding/rows-in-f16", named_by = "embedding/forward-any-input")]
impl LookupLoops for RowsInF16 {
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        to_f16(f64::from(Oracle.element(case, id, j)))
    }
}

/// returns zeros for an id that already occurred in the batch
///
/// Each row is moved out of a cache once. Test sentences without repeats are right.
#[bug("embedding/repeats-dropped", named_by = "embedding/token-alone")]
impl LookupLoops for RepeatsDropped {
    fn rows(&self, case: &LookupCase) -> Vec<f32> {
        let e = case.embedding_dim;
        let mut y = Oracle.rows(case);
        for t in 0..case.ids.len() {
            if case.ids[..t].contains(&case.ids[t]) {
                y[t * e..][..e].fill(0.0);
            }
        }
        y
    }
}

/// adds the position to the rows
///
/// Early models add positions here. In this one RoPE does that job, later.
#[bug("embedding/position-added", named_by = "embedding/token-alone")]
impl LookupLoops for PositionAdded {
    fn rows(&self, case: &LookupCase) -> Vec<f32> {
        let (s, e) = (case.shape[1], case.embedding_dim);
        let y = Oracle.rows(case);
        let position = |i: usize| (i / e % s) as f32;
        y.iter().enumerate().map(|(i, y)| y + position(i).sin()).collect()
    }
}

/// gives even ids the rows of the first half and odd ids those of the second
///
/// The table was saved in two interleaved halves and joined end to end.
#[bug("embedding/id-by-parity", named_by = "embedding/relabelling")]
impl LookupLoops for ByParity {
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        let half = case.vocab_size.div_ceil(2);
        Oracle.element(case, id / 2 + id % 2 * half, j)
    }
}

/// changes the caller's ids during the lookup
///
/// Ids become offsets in the same memory, which labels, masks and losses read again later.
#[bug("embedding/ids-changed-in-place", named_by = "embedding/ids-kept")]
impl LookupLoops for IdsInPlace {
    fn ids_after(&self, case: &LookupCase) -> Vec<usize> {
        case.ids.iter().map(|id| id.saturating_mul(case.embedding_dim)).collect()
    }
}

/// sorts the caller's ids
///
/// The result was put back in order, but the ids were not.
#[bug("embedding/ids-sorted-in-place", named_by = "embedding/ids-kept")]
impl LookupLoops for IdsSorted {
    fn ids_after(&self, case: &LookupCase) -> Vec<usize> {
        let mut ids = case.ids.clone();
        ids.sort_unstable();
        ids
    }
}

/// clamps ids that are too large to v − 1
///
/// Without a crash or a message, a wrong tokenizer looks like a model that learned nothing.
#[bug("embedding/id-clamped", named_by = "embedding/id-refused")]
impl LookupLoops for IdClamped {
    accepts!(|id, v| id.min(v.saturating_sub(1)));
}

/// takes ids that are too large modulo v
///
/// This is the hashing trick, uninvited.
#[bug("embedding/id-wraps", named_by = "embedding/id-refused")]
impl LookupLoops for IdWraps {
    accepts!(|id, v| id % v.max(1));
}

/// returns zeros for ids that are too large
///
/// Zeros are what an unknown word looks like, but a mistake looks the same.
#[bug("embedding/id-unknown-is-zero", named_by = "embedding/id-refused")]
impl LookupLoops for UnknownIsZero {
    fn check(&self, _: &LookupCase) -> Reply<()> {
        Ok(())
    }
}

/// rejects ids above v, but lets v itself pass
///
/// id > v was written for id >= v. The row after the last is other memory.
#[bug("embedding/id-limit-inclusive", named_by = "embedding/id-refused")]
impl LookupLoops for LimitInclusive {
    fn check(&self, case: &LookupCase) -> Reply<()> {
        let v = case.vocab_size;
        let ids: Vec<usize> = case.ids.iter().map(|&id| if id == v { 0 } else { id }).collect();
        check_ids(&ids, case.shape, v)
    }
}

/// checks only the first batch row
///
/// The check was written for one sequence, before there were batches.
#[bug("embedding/first-sequence-checked", named_by = "embedding/id-refused")]
impl LookupLoops for FirstChecked {
    fn check(&self, case: &LookupCase) -> Reply<()> {
        let first: Vec<usize> = case.ids.iter().copied().take(case.shape[1]).collect();
        check_ids(&first, case.shape, case.vocab_size)
    }
}

/// truncates ids to 32 bits before the check
///
/// Kernels count in 32 bits, so the ids are cast first, and 2³² + 3 becomes 3.
#[bug("embedding/ids-in-32-bits", named_by = "embedding/huge-id-refused")]
impl LookupLoops for In32Bits {
    accepts!(|id, _| id as u32 as usize);
}

/// truncates ids to 16 bits before the check
///
/// Data sets store ids in 16 bits while the vocabulary is below 65,536, so 65,539 becomes 3.
#[bug("embedding/ids-in-16-bits", named_by = "embedding/huge-id-refused")]
impl LookupLoops for In16Bits {
    accepts!(|id, _| id as u16 as usize);
}

/// reads huge ids as negative and counts them from the end of the table
///
/// Python's table[-1] is the last row. As a usize, −1 is the largest number, and also the label of ignored tokens.
#[bug("embedding/negative-ids", named_by = "embedding/huge-id-refused")]
impl LookupLoops for Negative {
    accepts!(|id, v| {
        let from_end = id.wrapping_neg();
        if (1..=v).contains(&from_end) { v - from_end } else { id }
    });
}

/// rejects a bad id without saying which one
///
/// "index out of range": among a million tokens, which?
#[bug("embedding/refusal-without-words", named_by = "embedding/refusal-names-id")]
impl LookupLoops for WithoutWords {
    fn check(&self, case: &LookupCase) -> Reply<()> {
        Oracle.check(case).map_err(|_| Refusal::new("index out of range"))
    }
}

/// reports the place in the batch when rejecting an id, but not the id
///
/// The position was at hand in the loop, but which id is it, and how large?
#[bug("embedding/refusal-names-place-only", named_by = "embedding/refusal-names-id")]
impl LookupLoops for PlaceOnly {
    fn check(&self, case: &LookupCase) -> Reply<()> {
        match case.ids.iter().position(|&id| id >= case.vocab_size) {
            Some(t) => Err(Refusal::new(format!("bad id at position {t}"))),
            None => Ok(()),
        }
    }
}

/// keeps only the last token's gradient of a row instead of adding them all
///
/// It is assigned instead of added, which is right without repeated ids.
#[bug("embedding/gradient-overwritten", named_by = "embedding/gradient-adds")]
impl LookupLoops for Overwritten {
    fn add(&self, _: f64, dy: f64) -> f64 {
        dy
    }
}

/// keeps only the first token's gradient of a row
///
/// A library call returns unique ids with their first places.
#[bug("embedding/gradient-first-only", named_by = "embedding/gradient-adds")]
impl LookupLoops for FirstOnly {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let e = case.embedding_dim;
        let again = |t: usize| case.ids[..t].contains(&case.ids[t]);
        let dy = dy.iter().enumerate();
        let dy: Vec<f32> = dy.map(|(i, &dy)| if again(i / e) { 0.0 } else { dy }).collect();
        Oracle.gradient(case, &dy)
    }
}

/// divides the gradient of a row by the number of its tokens
///
/// PyTorch offers this as scale_grad_by_freq, which is off by default.
#[bug("embedding/gradient-by-frequency", named_by = "embedding/gradient-counts")]
impl LookupLoops for ByFrequency {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let count = |k| case.ids.iter().filter(|&&id| id == k).count().max(1) as f64;
        let sum = Oracle.gradient(case, dy).into_iter().enumerate();
        sum.map(|(i, sum)| sum / count(i / case.embedding_dim)).collect()
    }
}

/// divides the gradient by the number of tokens in the batch
///
/// The mean belongs to the loss, and is already in dy.
#[bug("embedding/gradient-averaged", named_by = "embedding/gradient-counts")]
impl LookupLoops for Averaged {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let tokens = case.ids.len() as f64;
        Oracle.gradient(case, dy).into_iter().map(|sum| sum / tokens).collect()
    }
}

/// sends no gradient to the table
///
/// The rows were copied without the tape, so the table stays as it was drawn.
#[bug("embedding/no-gradient", named_by = "embedding/gradient-counts")]
impl LookupLoops for NoGradient {
    fn add(&self, sum: f64, _: f64) -> f64 {
        sum
    }
}

/// sends no gradient to row 0, as if it were padding
///
/// PyTorch does so with padding_idx = 0, but here no id is special.
#[bug("embedding/padding-row-not-trained", named_by = "embedding/gradient-counts")]
impl LookupLoops for PaddingNotTrained {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let mut sum = Oracle.gradient(case, dy);
        sum.iter_mut().take(case.embedding_dim).for_each(|sum| *sum = 0.0);
        sum
    }
}

/// drops the gradient of the last position of each sequence
///
/// The last token has no next one to predict, but that is for the loss to handle.
#[bug("embedding/gradient-last-position-dropped", named_by = "embedding/gradient-counts")]
impl LookupLoops for LastPosition {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let (s, e) = (case.shape[1], case.embedding_dim);
        let last = |i: usize| i / e % s == s - 1;
        let dy = dy.iter().enumerate();
        let dy: Vec<f32> = dy.map(|(i, &dy)| if last(i) { 0.0 } else { dy }).collect();
        Oracle.gradient(case, &dy)
    }
}

/// adds up only the first batch row in the gradient
///
/// The backward pass has no loop over the batch.
#[bug("embedding/gradient-first-sequence-only", named_by = "embedding/gradient-counts")]
impl LookupLoops for FirstSequenceOnly {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let mut dy = dy.to_vec();
        dy.iter_mut().skip(case.shape[1] * case.embedding_dim).for_each(|dy| *dy = 0.0);
        Oracle.gradient(case, &dy)
    }
}

/// reads the ids as [s, b] in the backward pass
///
/// Only the forward pass was tested, and with every dy 1 the backward pass is right too.
#[bug("embedding/gradient-ids-transposed", named_by = "embedding/gradient-adds")]
impl LookupLoops for GradientTransposed {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let [b, s] = case.shape;
        let ids = (0..case.ids.len()).map(|t| case.ids[t % s * b + t / s]).collect();
        Oracle.gradient(&LookupCase { ids, ..case.clone() }, dy)
    }
}

/// adds a little of the table to its gradient, even in rows never looked up
///
/// Weight decay belongs to the optimizer. Here it shrinks rare words towards 0.
#[bug("embedding/weight-decay", named_by = "embedding/gradient-unused-rows")]
impl LookupLoops for WeightDecay {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let sum = Oracle.gradient(case, dy).into_iter().zip(&case.table);
        sum.map(|(sum, &value)| sum + 0.01 * f64::from(value)).collect()
    }
}

/// adds a little of the table to the gradient of the rows that were used
///
/// This is weight decay made lazy, so that unused rows are left in peace.
#[bug("embedding/lazy-decay", named_by = "embedding/gradient-not-of-table")]
impl LookupLoops for LazyDecay {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let used = |i: usize| case.ids.contains(&(i / case.embedding_dim));
        let value = |i: usize| if used(i) { f64::from(case.table[i]) } else { 0.0 };
        let sum = Oracle.gradient(case, dy).into_iter().enumerate();
        sum.map(|(i, sum)| sum + 0.01 * value(i)).collect()
    }
}

/// sends no gradient to rows with a NaN
///
/// It guards against broken rows, but makes the gradient depend on the table, which it must not.
#[bug("embedding/nan-rows-frozen", named_by = "embedding/gradient-not-of-table")]
impl LookupLoops for NanFrozen {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let e = case.embedding_dim;
        let frozen = |k: usize| case.table[k * e..][..e].iter().any(|x| x.is_nan());
        let sum = Oracle.gradient(case, dy).into_iter().enumerate();
        sum.map(|(i, sum)| if frozen(i / e) { 0.0 } else { sum }).collect()
    }
}

/// sends a millionth of every token's gradient to all rows
///
/// Label smoothing suggested a soft one-hot, so rows that were never read now move.
#[bug("embedding/gradient-smeared", named_by = "embedding/gradient-unused-rows")]
impl LookupLoops for Smeared {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let e = case.embedding_dim;
        let total = |j: usize| dy.iter().skip(j).step_by(e).map(|&d| f64::from(d)).sum();
        let total: Vec<f64> = (0..e).map(total).collect();
        let sum = Oracle.gradient(case, dy).into_iter().enumerate();
        sum.map(|(i, sum)| sum + 1e-6 * total[i % e]).collect()
    }
}

/// multiplies dy by a one-hot matrix, so that a NaN in one token's dy spoils all rows
///
/// 0 times NaN is NaN, although finite gradients come out right.
#[bug("embedding/gradient-one-hot-product", named_by = "embedding/gradient-stays-in-its-row")]
impl LookupLoops for GradientOneHot {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let e = case.embedding_dim;
        let hot = |t: usize, k: usize| if case.ids[t] == k { 1.0 } else { 0.0 };
        let term = |t: usize, i: usize| hot(t, i / e) * f64::from(dy[t * e + i % e]);
        let sum = |i| (0..case.ids.len()).map(|t| term(t, i)).sum();
        (0..case.table.len()).map(sum).collect()
    }
}

/// clips the gradient to 100
///
/// It is a guard against explosions, hidden in an unlikely place.
#[bug("embedding/gradient-clipped", named_by = "embedding/gradient-linear")]
impl LookupLoops for Clipped {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let sum = Oracle.gradient(case, dy).into_iter();
        sum.map(|sum| sum.clamp(-100.0, 100.0)).collect()
    }
}

/// adds up the gradient in f16
///
/// There 2048 + 1 is 2048, so only frequent tokens suffer, and no small test has any.
#[bug("embedding/gradient-in-f16", named_by = "embedding/gradient-of-a-frequent-token")]
impl LookupLoops for GradientInF16 {
    fn add(&self, sum: f64, dy: f64) -> f64 {
        f64::from(to_f16(sum + dy))
    }
}

/// counts a token's repeats in one byte and drops the 256th
///
/// A buffer of 255 places per row is large enough for every test.
#[bug("embedding/gradient-stops-counting", named_by = "embedding/gradient-of-a-frequent-token")]
impl LookupLoops for OneByte {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
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

/// copies rows in blocks of 128 and leaves the last one zero if it is not full
///
/// Each block gets a thread, and there are tokens / 128 of them. A few tokens take the simple path, which is right.
#[bug("embedding/block-not-copied", named_by = "embedding/forward-any-input")]
impl LookupLoops for BlockNotCopied {
    fn rows(&self, case: &LookupCase) -> Vec<f32> {
        let mut rows = Oracle.rows(case);
        rows[in_full_blocks(case.ids.len()) * case.embedding_dim..].fill(0.0);
        rows
    }
}

/// lets two threads add to one row at the same time, so that one addition is lost
///
/// Both read the row, add to it and write it back. It takes two equal ids at the same moment, in a long batch.
#[bug("embedding/gradient-race", named_by = "embedding/gradient-any-input")]
impl LookupLoops for GradientRace {
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let (e, tokens, mut kept) = (case.embedding_dim, case.ids.len(), dy.to_vec());
        for t in 0..tokens {
            let other = row_at_the_same_time(t, tokens);
            if other != t && case.ids[other] == case.ids[t] {
                kept[t * e..][..e].fill(0.0);
            }
        }
        Oracle.gradient(case, &kept)
    }
}
