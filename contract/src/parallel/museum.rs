//! Bugs of ParallelVocabEmbedding.

use crate::component::Bug;
use crate::embedding::oracle::check_ids;
use crate::oracle::blocks::*;
use crate::oracle::random::normal;
use crate::oracle::{Oracle, to_f16};
use crate::parallel::interface::{NormalInit, ParallelVocabEmbedding, Refusal, Reply, ShardCase};
use crate::parallel::oracle::{ShardLoops, implementation, owned};
use std::cell::RefCell;
use std::ops::Range;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl ShardLoops for $name { $($steps)* }
        || -> Box<dyn ParallelVocabEmbedding> { implementation($name) }
    }};
}

/// A bug in the range: what becomes of `[r·n, (r + 1)·n)`, given `v`, `w` and `r`.
macro_rules! ranges {
    ($name:ident, $wrong:expr) => {
        bug!($name {
            fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
                let wrong: fn(Range<usize>, (usize, usize, usize)) -> Range<usize> = $wrong;
                Ok(wrong(Oracle.range(v, w, r)?, (v, w, r)))
            }
        })
    };
}

/// A bug in the seed, from the base seed, the rank and the world size.
macro_rules! seeds {
    ($name:ident, $wrong:expr) => {
        bug!($name {
            fn seed(&self, base: u64, rank: usize, world_size: usize) -> u64 {
                let wrong: fn(u64, u64, u64) -> u64 = $wrong;
                wrong(base, rank as u64, world_size as u64)
            }
        })
    };
}

/// A bug in the mean or the standard deviation, from the world size.
macro_rules! moments {
    ($name:ident, $wrong:expr) => {
        bug!($name {
            fn shard(&self, v: usize, e: usize, w: usize, r: usize, i: NormalInit) -> Vec<f32> {
                let wrong: fn(NormalInit, f32) -> NormalInit = $wrong;
                Oracle.shard(v, e, w, r, wrong(i, w as f32))
            }
        })
    };
}

/// A bug in the row of an id, from the rank's range.
macro_rules! rows {
    ($name:ident, $wrong:expr) => {
        bug!($name {
            fn row(&self, case: &ShardCase, id: usize) -> Option<usize> {
                let wrong: fn(Range<usize>, usize) -> Option<usize> = $wrong;
                wrong(owned(case.vocab_size, case.world_size, case.rank), id)
            }
        })
    };
}

/// A bug in where a token's gradient goes, and with which weight, from the rank's range.
macro_rules! targets {
    ($name:ident, $wrong:expr) => {
        bug!($name {
            fn target(&self, case: &ShardCase, id: usize) -> Option<(usize, f64)> {
                let wrong: fn(Range<usize>, usize) -> Option<(usize, f64)> = $wrong;
                wrong(owned(case.vocab_size, case.world_size, case.rank), id)
            }
        })
    };
}

/// A bug in the check of the ids: the id that an id is read as.
macro_rules! accepts {
    ($name:ident, $read:expr) => {
        bug!($name {
            fn check_ids(&self, case: &ShardCase) -> Reply<()> {
                let read: fn(usize, usize) -> usize = $read;
                let ids: Vec<usize> =
                    case.ids.iter().map(|&id| read(id, case.vocab_size)).collect();
                check_ids(&ids, case.shape, case.vocab_size)
            }
            fn id(&self, case: &ShardCase, t: usize) -> usize {
                let read: fn(usize, usize) -> usize = $read;
                read(case.ids[t], case.vocab_size)
            }
        })
    };
}

/// A bug in who checks the ids.
macro_rules! checks_if {
    ($name:ident, $checks:expr) => {
        bug!($name {
            fn check_ids(&self, case: &ShardCase) -> Reply<()> {
                let checks: fn(&ShardCase) -> bool = $checks;
                if checks(case) { Oracle.check_ids(case) } else { Ok(()) }
            }
        })
    };
}

#[derive(Default)]
struct LastShowsThrough(RefCell<Vec<f32>>);

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

/// All of them.
pub static BUGS: &[Bug<dyn ParallelVocabEmbedding>] = &[
    Bug {
        id: "parallel/range-end-included",
        misconception: "counts the first id of the next rank to the range",
        story: "A range with two ends, of which one is in and one is out. Two ranks now own an id.",
        source: None,
        named_by: "parallel/range",
        implementation: ranges!(EndIncluded, |own, _| own.start..own.end.saturating_add(1)),
    },
    Bug {
        id: "parallel/range-start-excluded",
        misconception: "leaves the first id of each rank out of its range",
        story: "Greater where greater or equal was meant.",
        source: None,
        named_by: "parallel/range",
        implementation: ranges!(StartExcluded, |own, _| own.start + 1..own.end),
    },
    Bug {
        id: "parallel/range-steps-by-world",
        misconception: "starts rank r at r·w, not at r·n",
        story: "The wrong one of two small numbers. With v = w² they are equal.",
        source: None,
        named_by: "parallel/range",
        implementation: ranges!(StepsByWorld, |own, (_, w, r)| {
            let start = r.saturating_mul(w);
            start..start.saturating_add(own.len())
        }),
    },
    Bug {
        id: "parallel/range-reversed",
        misconception: "gives the first rows to the last rank",
        story: "Every id has one owner, so the sum is right, and each checkpoint is wrong.",
        source: None,
        named_by: "parallel/range",
        implementation: ranges!(Reversed, |_, (v, w, r)| owned(v, w, w - 1 - r)),
    },
    Bug {
        id: "parallel/range-in-32-bits",
        misconception: "computes the range in 32 bits",
        story: "No vocabulary is so large. The product of rows and columns, by the same code, is.",
        source: None,
        named_by: "parallel/range",
        implementation: ranges!(RangeIn32, |own, _| own.start as u32 as usize
            ..own.end as u32 as usize),
    },
    Bug {
        id: "parallel/rank-of-one-digit",
        misconception: "gives rank 10 and all after it the range of rank 9",
        story: "Room for one digit of the rank, and a clamp so that it fits. Nobody tests with ten \
                ranks.",
        source: None,
        named_by: "parallel/ranges-partition",
        implementation: ranges!(LastDigit, |_, (v, w, r)| owned(v, w, r.min(9))),
    },
    Bug {
        id: "parallel/rest-dropped",
        misconception: "rounds v / w down, so that the last ids have no owner",
        story: "Integer division rounds down by itself. The ids at the end give zeros on every \
                rank, and new tokens are added at the end.",
        source: Some("text-generation-inference #1463"),
        named_by: "parallel/uneven-world-refused",
        implementation: bug!(RestDropped {
            fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
                Oracle.range(v - v % w.max(1), w, r)
            }
        }),
    },
    Bug {
        id: "parallel/rest-on-last-rank",
        misconception: "rounds v / w up and gives the last rank fewer rows",
        story: "Nothing is lost. But ranks of different sizes can't be stacked, saved or summed \
                as one shape, and the specification refuses.",
        source: None,
        named_by: "parallel/uneven-world-refused",
        implementation: bug!(RestOnLast {
            fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
                let n = v.div_ceil(w.max(1));
                let own = Oracle.range(n.saturating_mul(w), w, r)?;
                Ok(own.start.min(v)..own.end.min(v))
            }
        }),
    },
    Bug {
        id: "parallel/world-of-none",
        misconception: "takes a world of 0 for a world of 1",
        story: "0 is what an unset variable holds. max(1) hides it, and each process believes it \
                is alone.",
        source: None,
        named_by: "parallel/uneven-world-refused",
        implementation: bug!(WorldOfNone {
            fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
                Oracle.range(v, w.max(1), r)
            }
        }),
    },
    Bug {
        id: "parallel/rank-wraps-in-range",
        misconception: "takes a rank that does not exist modulo the world size, in the range",
        story: "Ranks over several machines, of which only one was meant. Two own the same rows.",
        source: None,
        named_by: "parallel/rank-has-no-range",
        implementation: bug!(RankWraps {
            fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
                Oracle.range(v, w, r % w.max(1))
            }
        }),
    },
    Bug {
        id: "parallel/rank-beyond-the-end",
        misconception: "gives a rank that does not exist a range beyond the vocabulary",
        story: "r·n and (r + 1)·n exist for every r.",
        source: None,
        named_by: "parallel/rank-has-no-range",
        implementation: bug!(RankBeyond {
            fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
                Oracle.check_world(v, w)?;
                Ok(owned(v, w, r))
            }
        }),
    },
    Bug {
        id: "parallel/rank-not-checked",
        misconception: "looks tokens up on a rank that does not exist",
        story: "It owns nothing, so it gives zeros: no crash, and a rank's rows are missing from \
                the sum.",
        source: None,
        named_by: "parallel/rank-refused",
        implementation: bug!(RankNotChecked {
            fn check_rank(&self, _: usize, _: usize) -> Reply<()> {
                Ok(())
            }
            fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
                Oracle.range(v, w, r)
            }
        }),
    },
    Bug {
        id: "parallel/rank-limit-inclusive",
        misconception: "refuses ranks above w, but lets w itself pass",
        story: "r > w where r >= w was meant: ranks that count from 1.",
        source: None,
        named_by: "parallel/rank-refused",
        implementation: bug!(RankInclusive {
            fn check_rank(&self, rank: usize, world_size: usize) -> Reply<()> {
                Oracle.check_rank(rank, world_size.saturating_add(1))
            }
            fn range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
                Oracle.range(v, w, r)
            }
        }),
    },
    Bug {
        id: "parallel/same-seed",
        misconception: "draws every shard from the same seed",
        story: "Each rank runs the same program with the same configuration. Words n ids apart \
                start as the same vector.",
        source: Some("ms-swift #7944"),
        named_by: "parallel/initial-ranks-differ",
        implementation: seeds!(SameSeed, |base, _, _| base),
    },
    Bug {
        id: "parallel/seed-counts-from-one",
        misconception: "adds r + 1 to the base seed",
        story: "Ranks counted from 1. All shards differ, so nobody asks, but a world of one is \
                not the whole table.",
        source: None,
        named_by: "parallel/initial-shard",
        implementation: seeds!(FromOne, |base, rank, _| base.wrapping_add(rank).wrapping_add(1)),
    },
    Bug {
        id: "parallel/seed-xor-rank",
        misconception: "mixes the rank into the seed with exclusive or, not with a sum",
        story: "42 ^ 1 is 43, the same as the sum. 42 ^ 2 is 40.",
        source: None,
        named_by: "parallel/initial-shard",
        implementation: seeds!(Xor, |base, rank, _| base ^ rank),
    },
    Bug {
        id: "parallel/seed-times-world",
        misconception: "takes base·w + r for the seed, so that no two jobs share one",
        story: "A careful idea. With w = 1 it is right, and other numbers otherwise.",
        source: None,
        named_by: "parallel/initial-shard",
        implementation: seeds!(TimesWorld, |base, rank, w| base.wrapping_mul(w).wrapping_add(rank)),
    },
    Bug {
        id: "parallel/seed-step-of-1000",
        misconception: "leaves 1000 seeds between the ranks",
        story: "A habit from programs where each rank draws from many seeds.",
        source: None,
        named_by: "parallel/initial-shard",
        implementation: seeds!(Thousand, |base, rank, _| base.wrapping_add(1000 * rank)),
    },
    Bug {
        id: "parallel/seed-saturates",
        misconception: "stops counting at the largest seed instead of wrapping around",
        story: "An addition that is called safe. Two ranks then share a seed.",
        source: None,
        named_by: "parallel/initial-seed-wraps",
        implementation: seeds!(Saturates, |base, rank, _| base.saturating_add(rank)),
    },
    Bug {
        id: "parallel/seed-clamped",
        misconception: "clamps base + r to 32 bits, instead of cutting it",
        story: "The generator takes 32 bits, so something must happen. PyTorch cuts.",
        source: None,
        named_by: "parallel/initial-seed-wraps",
        implementation: seeds!(Clamped, |base, rank, _| base
            .wrapping_add(rank)
            .min(u64::from(u32::MAX))),
    },
    Bug {
        id: "parallel/slice-of-whole-draw",
        misconception: "draws the whole table from the base seed and keeps its own rows",
        story: "A fine way: the table does not depend on w then. But it costs the memory that was \
                to be saved, and the specification has a seed per rank.",
        source: None,
        named_by: "parallel/initial-shard",
        implementation: bug!(SliceOfWhole {
            fn shard(&self, v: usize, e: usize, w: usize, r: usize, i: NormalInit) -> Vec<f32> {
                let own = owned(v, w, r);
                normal(v * e, i).drain(own.start * e..own.end * e).collect()
            }
        }),
    },
    Bug {
        id: "parallel/first-rows-of-whole-draw",
        misconception: "draws v rows, not n, and keeps the first n",
        story: "The right seed, and the right numbers too as long as n·e is a multiple of 16: \
                PyTorch draws the tail of a table anew.",
        source: None,
        named_by: "parallel/initial-shard",
        implementation: bug!(FirstOfWhole {
            fn shard(&self, v: usize, e: usize, w: usize, r: usize, i: NormalInit) -> Vec<f32> {
                let mut table = Oracle.shard(v * w, e, w, r, i);
                table.truncate(v / w * e);
                table
            }
        }),
    },
    Bug {
        id: "parallel/std-per-rank",
        misconception: "divides the standard deviation by the root of the world size",
        story: "Variances add in a sum over ranks. But for each token only one rank is not 0.",
        source: None,
        named_by: "parallel/initial-mean-and-std",
        implementation: moments!(StdPerRank, |init, w| NormalInit {
            std: init.std / w.sqrt(),
            ..init
        }),
    },
    Bug {
        id: "parallel/mean-per-rank",
        misconception: "divides the mean by the world size",
        story: "Means add in a sum over ranks. With mean 0 nobody sees it.",
        source: None,
        named_by: "parallel/initial-mean-and-std",
        implementation: moments!(MeanPerRank, |init, w| NormalInit { mean: init.mean / w, ..init }),
    },
    Bug {
        id: "parallel/no-mean",
        misconception: "forgets the mean",
        story: "It is 0 in nearly every configuration.",
        source: None,
        named_by: "parallel/initial-mean-and-std",
        implementation: moments!(NoMean, |init, _| NormalInit { mean: 0.0, ..init }),
    },
    Bug {
        id: "parallel/upper-edge-inclusive",
        misconception: "takes the first id of the next rank for its own, and gives its last row",
        story: "<= where < was meant. At one id per rank, two ranks answer.",
        source: None,
        named_by: "parallel/edges",
        implementation: rows!(UpperInclusive, |own, id| {
            let mine = own.start <= id && id <= own.end;
            mine.then(|| (id - own.start).min(own.len().saturating_sub(1)))
        }),
    },
    Bug {
        id: "parallel/lower-edge-exclusive",
        misconception: "takes its first id for a foreign one",
        story: "> where >= was meant. At one id per rank, no rank answers.",
        source: None,
        named_by: "parallel/edges",
        implementation: rows!(LowerExclusive, |own, id| {
            (own.start < id && id < own.end).then(|| id - own.start)
        }),
    },
    Bug {
        id: "parallel/last-id-foreign",
        misconception: "takes its last id for a foreign one",
        story: "end was thought to be included, and 1 was taken off once more.",
        source: None,
        named_by: "parallel/edges",
        implementation: rows!(LastForeign, |own, id| {
            (own.start <= id && id + 1 < own.end).then(|| id - own.start)
        }),
    },
    Bug {
        id: "parallel/start-not-subtracted",
        misconception: "looks the id up without subtracting the start of the shard",
        story: "On rank 0 it is right. Elsewhere the row is past the end, where a GPU reads what \
                it finds, or the last row.",
        source: None,
        named_by: "parallel/owned-rows",
        implementation: rows!(NotSubtracted, |own, id| {
            own.contains(&id).then(|| id.min(own.len().saturating_sub(1)))
        }),
    },
    Bug {
        id: "parallel/local-row-off-by-one",
        misconception: "subtracts one too few: each id gets the row after its own",
        story: "Ids that count from 1 on the way in, from 0 on the way out.",
        source: None,
        named_by: "parallel/owned-rows",
        implementation: rows!(OffByOne, |own, id| {
            own.contains(&id).then(|| (id - own.start + 1) % own.len().max(1))
        }),
    },
    Bug {
        id: "parallel/round-robin",
        misconception: "deals the ids out in turn: rank r owns the ids with id mod w = r",
        story: "Balanced, as frequent tokens have small ids. But the rows of the shard are others.",
        source: None,
        named_by: "parallel/owned-rows",
        implementation: bug!(RoundRobin {
            fn row(&self, case: &ShardCase, id: usize) -> Option<usize> {
                (id % case.world_size == case.rank).then(|| id / case.world_size)
            }
        }),
    },
    Bug {
        id: "parallel/ranks-reversed",
        misconception: "answers for the ids of the rank at the other end",
        story: "Processes were numbered from the far end of the machine.",
        source: None,
        named_by: "parallel/owned-rows",
        implementation: bug!(RanksReversed {
            fn row(&self, case: &ShardCase, id: usize) -> Option<usize> {
                let mirrored = case.world_size - 1 - case.rank;
                let own = owned(case.vocab_size, case.world_size, mirrored);
                own.contains(&id).then(|| id - own.start)
            }
        }),
    },
    Bug {
        id: "parallel/ids-transposed",
        misconception: "reads the ids as [s, b]",
        story: "Megatron has the sequence first. With b = 1 or s = 1 there is no difference.",
        source: None,
        named_by: "parallel/owned-rows",
        implementation: bug!(IdsTransposed {
            fn id(&self, case: &ShardCase, t: usize) -> usize {
                let [b, s] = case.shape;
                case.ids[t % s * b + t / s]
            }
        }),
    },
    Bug {
        id: "parallel/mask-of-first-sequence",
        misconception: "decides by the first batch row which places are foreign, for all batch rows",
        story: "The mask has shape [s] and is broadcast. With a batch of 1 it is right.",
        source: None,
        named_by: "parallel/sum-is-the-lookup",
        implementation: bug!(MaskOfFirst {
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
        }),
    },
    Bug {
        id: "parallel/foreign-rows-not-zeroed",
        misconception: "sets foreign ids to 0 and forgets to zero what row 0 gives",
        story: "The mask is used twice: before the lookup, so that it does not fail, and after it.",
        source: None,
        named_by: "parallel/foreign-tokens-are-zero",
        implementation: rows!(NotZeroed, |own, id| Some(
            id.checked_sub(own.start).filter(|_| { own.contains(&id) }).unwrap_or(0)
        )),
    },
    Bug {
        id: "parallel/foreign-rows-clamped",
        misconception: "clamps foreign ids to the nearest row of the shard",
        story: "A lookup that never fails. Every rank answers for every token.",
        source: None,
        named_by: "parallel/foreign-tokens-are-zero",
        implementation: rows!(Clamped, |own, id| {
            Some(id.clamp(own.start, (own.end - 1).max(own.start)) - own.start)
        }),
    },
    Bug {
        id: "parallel/foreign-rows-wrap",
        misconception: "looks every id up modulo n",
        story: "id mod n is the right row for the owner. The question who owns it was left out.",
        source: None,
        named_by: "parallel/foreign-tokens-are-zero",
        implementation: rows!(Wrap, |own, id| Some(id % own.len().max(1))),
    },
    Bug {
        id: "parallel/zero-by-product",
        misconception: "multiplies what row 0 gives by 0, so that a NaN in row 0 stays",
        story: "mask times result is one line and right on finite tables. 0 times NaN is NaN.",
        source: None,
        named_by: "parallel/zeros-are-written",
        implementation: bug!(ByProduct {
            fn foreign(&self, case: &ShardCase, j: usize) -> f32 {
                0.0 * Oracle.element(case, 0, j)
            }
        }),
    },
    Bug {
        id: "parallel/nan-cleaned",
        misconception: "replaces NaN by 0 after the product with the mask",
        story: "The cure for the product with a mask. It also hides a broken table.",
        source: None,
        named_by: "parallel/special-values",
        implementation: bug!(NanCleaned {
            fn element(&self, case: &ShardCase, row: usize, j: usize) -> f32 {
                let value = Oracle.element(case, row, j);
                if value.is_nan() { 0.0 } else { value }
            }
        }),
    },
    Bug {
        id: "parallel/tiny-flushed",
        misconception: "flushes the smallest numbers to 0",
        story: "Fast modes of processors do, in the product with the mask. A copy has none.",
        source: None,
        named_by: "parallel/special-values",
        implementation: bug!(TinyFlushed {
            fn element(&self, case: &ShardCase, row: usize, j: usize) -> f32 {
                let value = Oracle.element(case, row, j);
                if value.is_subnormal() { 0.0 } else { value }
            }
        }),
    },
    Bug {
        id: "parallel/divided-by-world",
        misconception: "divides by the world size, for a mean over ranks",
        story: "An all-reduce can average. Here only one rank gives a row, so the sum is the row.",
        source: None,
        named_by: "parallel/sum-is-the-lookup",
        implementation: bug!(Divided {
            fn element(&self, case: &ShardCase, row: usize, j: usize) -> f32 {
                Oracle.element(case, row, j) / case.world_size as f32
            }
        }),
    },
    Bug {
        id: "parallel/sent-in-f16",
        misconception: "rounds its part to f16 for the sum over the ranks",
        story: "Half the bytes on the wire. Three digits remain.",
        source: None,
        named_by: "parallel/sum-is-the-lookup",
        implementation: bug!(SentInF16 {
            fn element(&self, case: &ShardCase, row: usize, j: usize) -> f32 {
                to_f16(f64::from(Oracle.element(case, row, j)))
            }
        }),
    },
    Bug {
        id: "parallel/nothing-for-foreign-batch",
        misconception: "gives an empty result if it owns no token of the batch",
        story: "An early return that saves work. The sum over the ranks then waits, or fails, on \
                a shape.",
        source: None,
        named_by: "parallel/foreign-tokens-are-zero",
        implementation: bug!(NothingForForeign {
            fn rows(&self, case: &ShardCase) -> Vec<f32> {
                let any = case.ids.iter().any(|&id| self.row(case, id).is_some());
                if any { Oracle.rows(case) } else { Vec::new() }
            }
        }),
    },
    Bug {
        id: "parallel/foreign-tokens-dropped",
        misconception: "gives rows for its own tokens only, packed together",
        story: "A selection with a mask. The places of the tokens are lost.",
        source: None,
        named_by: "parallel/foreign-tokens-are-zero",
        implementation: bug!(Packed {
            fn rows(&self, case: &ShardCase) -> Vec<f32> {
                let rows = case.ids.iter().filter_map(|&id| self.row(case, id));
                let e = case.embedding_dim;
                rows.flat_map(|row| (0..e).map(move |j| self.element(case, row, j))).collect()
            }
        }),
    },
    Bug {
        id: "parallel/foreign-ids-refused",
        misconception: "refuses ids that another rank owns",
        story: "The lookup of a whole table, used as it is. Its check knows n rows.",
        source: None,
        named_by: "parallel/one-rank-answers",
        implementation: bug!(ForeignRefused {
            fn check_ids(&self, case: &ShardCase) -> Reply<()> {
                Oracle.check_ids(case)?;
                match case.ids.iter().find(|&&id| self.row(case, id).is_none()) {
                    Some(id) => Err(Refusal::new(format!("id {id} is not on this rank"))),
                    None => Ok(()),
                }
            }
        }),
    },
    Bug {
        id: "parallel/ids-masked-in-place",
        misconception: "sets foreign ids to 0 in the caller's memory",
        story: "masked_fill_ with its underscore. If ranks share a process, the next one looks up \
                id 0.",
        source: None,
        named_by: "parallel/ids-kept",
        implementation: bug!(MaskedInPlace {
            fn ids_after(&self, case: &ShardCase) -> Vec<usize> {
                let own = |id: &&usize| self.row(case, **id).is_some();
                case.ids.iter().map(|id| Some(id).filter(own).copied().unwrap_or(0)).collect()
            }
        }),
    },
    Bug {
        id: "parallel/ids-shifted-in-place",
        misconception: "subtracts the start of the shard in the caller's memory",
        story: "ids -= start. Rank 0 subtracts 0, so it is right there.",
        source: None,
        named_by: "parallel/ids-kept",
        implementation: bug!(ShiftedInPlace {
            fn ids_after(&self, case: &ShardCase) -> Vec<usize> {
                let start = owned(case.vocab_size, case.world_size, case.rank).start;
                case.ids.iter().map(|id| id.wrapping_sub(start)).collect()
            }
        }),
    },
    Bug {
        id: "parallel/one-rank-skips-check",
        misconception: "skips the check of the ids in a world of one",
        story: "The check is part of the mask, and with one rank no mask is needed.",
        source: Some("Megatron-LM #2459; vLLM #53977"),
        named_by: "parallel/id-refused-in-a-world-of-one",
        implementation: checks_if!(OneSkips, |case| case.world_size > 1),
    },
    Bug {
        id: "parallel/only-one-rank-checks",
        misconception: "checks the ids in a world of one only",
        story: "With more ranks, an id that nobody owns is foreign to all: zeros, and no message.",
        source: None,
        named_by: "parallel/id-refused",
        implementation: checks_if!(OnlyOne, |case| case.world_size == 1),
    },
    Bug {
        id: "parallel/last-rank-checks",
        misconception: "checks the ids on the last rank only, as it owns the end",
        story: "One rank stops and the others wait for it in the sum.",
        source: None,
        named_by: "parallel/id-refused",
        implementation: checks_if!(LastChecks, |case| case.rank + 1 == case.world_size),
    },
    Bug {
        id: "parallel/first-rank-checks",
        misconception: "checks the ids on rank 0 only",
        story: "Rank 0 writes the log, so it was given the checks.",
        source: None,
        named_by: "parallel/id-refused",
        implementation: checks_if!(FirstChecks, |case| case.rank == 0),
    },
    Bug {
        id: "parallel/id-clamped",
        misconception: "clamps ids that are too large to v − 1",
        story: "No crash, no message: a wrong tokenizer looks like a model that learned nothing.",
        source: None,
        named_by: "parallel/id-refused",
        implementation: accepts!(IdClamped, |id, v| id.min(v.saturating_sub(1))),
    },
    Bug {
        id: "parallel/id-limit-inclusive",
        misconception: "refuses ids above v, but lets v itself pass",
        story: "id > v where id >= v was meant. All ranks give zeros for it.",
        source: None,
        named_by: "parallel/id-refused",
        implementation: bug!(LimitInclusive {
            fn check_ids(&self, case: &ShardCase) -> Reply<()> {
                check_ids(&case.ids, case.shape, case.vocab_size.saturating_add(1))
            }
        }),
    },
    Bug {
        id: "parallel/ids-in-32-bits",
        misconception: "cuts ids to 32 bits before the check",
        story: "Kernels count in 32 bits, so the ids are cast first. 2³² + 3 becomes 3.",
        source: None,
        named_by: "parallel/huge-id-refused",
        implementation: accepts!(In32Bits, |id, _| id as u32 as usize),
    },
    Bug {
        id: "parallel/negative-ids",
        misconception: "takes huge ids for negative ones, and those for padding, which gives zeros",
        story: "−100 is the label of ignored tokens. As a usize it is near the largest number.",
        source: None,
        named_by: "parallel/huge-id-refused",
        implementation: bug!(Negative {
            fn check_ids(&self, case: &ShardCase) -> Reply<()> {
                let ids: Vec<usize> =
                    case.ids.iter().map(|&id| if (id as isize) < 0 { 0 } else { id }).collect();
                check_ids(&ids, case.shape, case.vocab_size)
            }
        }),
    },
    Bug {
        id: "parallel/refusal-names-local-id",
        misconception: "names the id counted from the start of the shard in its refusal",
        story: "The check came after the subtraction. Each rank names another number.",
        source: None,
        named_by: "parallel/refusal-names-id",
        implementation: bug!(LocalName {
            fn check_ids(&self, case: &ShardCase) -> Reply<()> {
                let start = owned(case.vocab_size, case.world_size, case.rank).start;
                match case.ids.iter().find(|&&id| id >= case.vocab_size) {
                    Some(id) => Err(Refusal::new(format!("no row {}", id.wrapping_sub(start)))),
                    None => Ok(()),
                }
            }
        }),
    },
    Bug {
        id: "parallel/refusal-without-words",
        misconception: "refuses without saying which id",
        story: "\"index out of range\": among a million tokens on a hundred ranks, which?",
        source: None,
        named_by: "parallel/refusal-names-id",
        implementation: bug!(WithoutWords {
            fn check_ids(&self, case: &ShardCase) -> Reply<()> {
                Oracle.check_ids(case).map_err(|_| Refusal::new("index out of range"))
            }
        }),
    },
    Bug {
        id: "parallel/foreign-gradient-to-first-row",
        misconception: "zeroes foreign tokens on the way forward only: their gradient goes to row 0",
        story: "Foreign ids were set to 0 for the lookup, and the way back follows the lookup. \
                The first row of each shard is pulled by all words of the others.",
        source: None,
        named_by: "parallel/foreign-tokens-give-no-gradient",
        implementation: targets!(ToFirst, |own, id| {
            Some((if own.contains(&id) { id - own.start } else { 0 }, 1.0))
        }),
    },
    Bug {
        id: "parallel/foreign-gradient-to-nearest-row",
        misconception: "sends the gradient of foreign tokens to the nearest row of the shard",
        story: "The same with ids that were clamped: the first and the last row are pulled.",
        source: None,
        named_by: "parallel/foreign-tokens-give-no-gradient",
        implementation: targets!(ToNearest, |own, id| {
            Some((id.clamp(own.start, (own.end - 1).max(own.start)) - own.start, 1.0))
        }),
    },
    Bug {
        id: "parallel/foreign-gradient-wraps",
        misconception: "sends the gradient of every token to row id mod n",
        story: "The same with ids modulo n: each row is pulled by w words.",
        source: None,
        named_by: "parallel/foreign-tokens-give-no-gradient",
        implementation: targets!(WrapsBack, |own, id| Some((id % own.len().max(1), 1.0))),
    },
    Bug {
        id: "parallel/foreign-gradient-by-product",
        misconception: "multiplies the gradient of foreign tokens by 0 and adds it to row 0",
        story: "Right on finite gradients. A NaN in another rank's token arrives here too.",
        source: None,
        named_by: "parallel/foreign-nan-stays-out",
        implementation: targets!(ByProductBack, |own, id| {
            Some(if own.contains(&id) { (id - own.start, 1.0) } else { (0, 0.0) })
        }),
    },
    Bug {
        id: "parallel/gradient-upper-edge-inclusive",
        misconception: "takes the gradient of the next rank's first id for its last row",
        story: "Forward has <, backward has <=. They were written on different days.",
        source: None,
        named_by: "parallel/gradient-at-the-edges",
        implementation: targets!(UpperBack, |own, id| {
            let mine = own.start <= id && id <= own.end;
            mine.then(|| ((id - own.start).min(own.len().saturating_sub(1)), 1.0))
        }),
    },
    Bug {
        id: "parallel/gradient-lower-edge-exclusive",
        misconception: "gives its first row no gradient",
        story: "Row 0 was protected from foreign tokens, which are set to 0, and from its own.",
        source: None,
        named_by: "parallel/gradient-at-the-edges",
        implementation: targets!(LowerBack, |own, id| {
            (own.start < id && id < own.end).then(|| (id - own.start, 1.0))
        }),
    },
    Bug {
        id: "parallel/no-gradient",
        misconception: "sends no gradient to the shard",
        story: "The rows were copied out of the tape. The shard stays as it was drawn.",
        source: None,
        named_by: "parallel/gradient-counts",
        implementation: targets!(NoGradient, |_, _| None),
    },
    Bug {
        id: "parallel/gradient-on-first-rank",
        misconception: "computes the gradient on rank 0 only",
        story: "As for weights that all ranks hold alike. These they don't.",
        source: None,
        named_by: "parallel/gradient-counts",
        implementation: bug!(OnFirstRank {
            fn target(&self, case: &ShardCase, id: usize) -> Option<(usize, f64)> {
                Oracle.target(case, id).filter(|_| case.rank == 0)
            }
        }),
    },
    Bug {
        id: "parallel/gradient-times-world",
        misconception: "multiplies the gradient by the world size",
        story: "The way back through a sum over ranks copies dy to each of them. Who sums again \
                has it w times.",
        source: None,
        named_by: "parallel/gradient-counts",
        implementation: bug!(TimesWorldBack {
            fn target(&self, case: &ShardCase, id: usize) -> Option<(usize, f64)> {
                Oracle.target(case, id).map(|(row, _)| (row, case.world_size as f64))
            }
        }),
    },
    Bug {
        id: "parallel/gradient-divided-by-world",
        misconception: "divides the gradient by the world size",
        story: "Data-parallel ranks average their gradients. Ranks of a cut table don't.",
        source: None,
        named_by: "parallel/gradient-counts",
        implementation: bug!(DividedBack {
            fn target(&self, case: &ShardCase, id: usize) -> Option<(usize, f64)> {
                Oracle.target(case, id).map(|(row, _)| (row, 1.0 / case.world_size as f64))
            }
        }),
    },
    Bug {
        id: "parallel/gradient-overwritten",
        misconception: "keeps the last token's gradient of a row, instead of adding all",
        story: "Assigned where it should be added. Without repeated ids it is right.",
        source: None,
        named_by: "parallel/gradient-adds",
        implementation: bug!(Overwritten {
            fn add(&self, _: f64, dy: f64) -> f64 {
                dy
            }
        }),
    },
    Bug {
        id: "parallel/gradient-ids-transposed",
        misconception: "reads the ids as [s, b] on the way back",
        story: "Forward was tested, backward was not: with every dy 1 it is right too.",
        source: None,
        named_by: "parallel/gradient-adds",
        implementation: bug!(TransposedBack {
            fn gradient(&self, case: &ShardCase, dy: &[f32]) -> Vec<f64> {
                let [b, s] = case.shape;
                let ids = (0..case.ids.len()).map(|t| case.ids[t % s * b + t / s]).collect();
                Oracle.gradient(&ShardCase { ids, ..case.clone() }, dy)
            }
        }),
    },
    Bug {
        id: "parallel/nan-rows-frozen",
        misconception: "sends no gradient to rows that hold a NaN",
        story: "A guard for broken rows. The gradient now depends on the shard, which it must not.",
        source: None,
        named_by: "parallel/gradient-not-of-shard",
        implementation: bug!(NanFrozen {
            fn target(&self, case: &ShardCase, id: usize) -> Option<(usize, f64)> {
                let nan = |row: usize| {
                    (0..case.embedding_dim).any(|j| Oracle.element(case, row, j).is_nan())
                };
                Oracle.target(case, id).filter(|(row, _)| !nan(*row))
            }
        }),
    },
    Bug {
        id: "parallel/gradient-in-f16",
        misconception: "adds the gradient up in f16",
        story: "2048 + 1 is 2048 there. Only frequent tokens suffer, and no small test has any.",
        source: None,
        named_by: "parallel/gradient-of-a-frequent-token",
        implementation: bug!(GradientInF16 {
            fn add(&self, sum: f64, dy: f64) -> f64 {
                f64::from(to_f16(sum + dy))
            }
        }),
    },
    Bug {
        id: "parallel/gradient-stops-counting",
        misconception: "counts a token's repeats in one byte and drops the 256th",
        story: "A buffer of 255 places per row, large enough for every test.",
        source: None,
        named_by: "parallel/gradient-of-a-frequent-token",
        implementation: bug!(OneByte {
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
        }),
    },
    Bug {
        id: "parallel/weight-decay",
        misconception: "adds a little of the shard to its gradient, also in rows never looked up",
        story: "Weight decay is the optimizer's. Here it shrinks rare words towards 0.",
        source: None,
        named_by: "parallel/gradient-slices",
        implementation: bug!(WeightDecay {
            fn gradient(&self, case: &ShardCase, dy: &[f32]) -> Vec<f64> {
                let sum = Oracle.gradient(case, dy).into_iter().zip(&case.shard);
                sum.map(|(sum, &value)| sum + 0.01 * f64::from(value)).collect()
            }
        }),
    },
    Bug {
        id: "parallel/last-answer-shows-through",
        misconception: "writes the tokens that a rank owns into the buffer of the last call, without clearing it",
        story: "The other tokens are zero in the first call, and what stood there in the next.",
        source: None,
        named_by: "parallel/zeros-are-written",
        implementation: || implementation(LastShowsThrough::default()),
    },
    Bug {
        id: "parallel/gradient-block-lost",
        misconception: "adds the gradient up in blocks of 128 tokens and loses the last one if it is not full",
        story: "A partial sum for each block, and tokens / 128 of them. Few tokens take the simple way and are right.",
        source: None,
        named_by: "parallel/gradient-any-input",
        implementation: bug!(GradientBlockLost {
            fn gradient(&self, case: &ShardCase, dy: &[f32]) -> Vec<f64> {
                let mut kept = dy.to_vec();
                kept[in_full_blocks(case.ids.len()) * case.embedding_dim..].fill(0.0);
                Oracle.gradient(case, &kept)
            }
        }),
    },
];
