//! Bugs of VocabEmbedding.

use crate::component::Bug;
use crate::embedding::interface::{LookupCase, NormalInit, Refusal, Reply, VocabEmbedding};
use crate::embedding::oracle::{LookupLoops, check_ids, implementation};
use crate::oracle::blocks::*;
use crate::oracle::random::{MersenneTwister, NormalSteps, normal, uniform};
use crate::oracle::{Oracle, to_f16};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl LookupLoops for $name { $($steps)* }
        || -> Box<dyn VocabEmbedding> { implementation($name) }
    }};
}

/// A bug in the first values: its name, and the steps of the draw that it writes wrong.
macro_rules! draws {
    ($name:ident { $($step:ident: $wrong:expr),+ $(,)? }) => {
        bug!($name {
            fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
                NormalSteps { $($step: $wrong,)+ ..NormalSteps::default() }.draw(v * e, init)
            }
        })
    };
}

/// A bug in the check of the ids: whether an id passes, and the row that it is read as.
macro_rules! accepts {
    ($name:ident, $read:expr) => {
        bug!($name {
            fn check(&self, case: &LookupCase) -> Reply<()> {
                let read: fn(usize, usize) -> usize = $read;
                let ids: Vec<usize> =
                    case.ids.iter().map(|&id| read(id, case.vocab_size)).collect();
                check_ids(&ids, case.shape, case.vocab_size)
            }
            fn id(&self, case: &LookupCase, t: usize) -> usize {
                let read: fn(usize, usize) -> usize = $read;
                read(case.ids[t], case.vocab_size)
            }
        })
    };
}

/// A generator that is seeded once and then goes on.
#[derive(Default)]
struct GoesOn {
    calls: AtomicU64,
}

impl LookupLoops for GoesOn {
    fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        let seed = init.seed.wrapping_add(before.wrapping_mul(1000));
        normal(v * e, NormalInit { seed, ..init })
    }
}

#[derive(Default)]
struct GradientNotCleared(RefCell<Vec<f64>>);

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

/// All of them.
pub static BUGS: &[Bug<dyn VocabEmbedding>] = &[
    Bug {
        id: "embedding/uniform-table",
        misconception: "draws the first table uniform on [0, 1), not normal",
        story: "rand instead of randn: one letter.",
        source: None,
        named_by: "embedding/initial-normal-short",
        implementation: bug!(UniformTable {
            fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
                let values = uniform(v * e, (0.0, 1.0), init.seed);
                values.iter().map(|u| u * init.std + init.mean).collect()
            }
        }),
    },
    Bug {
        id: "embedding/short-draws-swapped",
        misconception: "swaps the two draws of a short table: radius from the first, angle from \
                        the second",
        story: "That is the textbook's order, and PyTorch's for long tables. For fewer than 16 \
                values PyTorch has it the other way round.",
        source: None,
        named_by: "embedding/initial-normal-short",
        implementation: draws!(ShortSwapped { short_pair: |u1, u2| (1.0 - u1, u2) }),
    },
    Bug {
        id: "embedding/one-way-to-draw",
        misconception: "draws short tables in the way of the long ones",
        story: "PyTorch has two ways, and the size chooses. Who reads one of them knows half.",
        source: None,
        named_by: "embedding/initial-normal-short",
        implementation: bug!(OneWay {
            fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
                let mut values = normal((v * e).max(16), init);
                values.truncate(v * e);
                values
            }
        }),
    },
    Bug {
        id: "embedding/short-limit-too-low",
        misconception: "draws a table of 15 values in the way of the long ones",
        story: "n < 15 where n < 16 was meant. One size of table shows it.",
        source: None,
        named_by: "embedding/initial-normal-short",
        implementation: bug!(ShortLimitLow {
            fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
                let mut values = normal(if v * e == 15 { 16 } else { v * e }, init);
                values.truncate(v * e);
                values
            }
        }),
    },
    Bug {
        id: "embedding/short-way-for-all",
        misconception: "draws long tables in the way of the short ones",
        story: "Correct Box-Muller in double precision, and other numbers than PyTorch's from 16 \
                values on.",
        source: None,
        named_by: "embedding/initial-normal-long",
        implementation: draws!(ShortForAll { is_short: |_| true }),
    },
    Bug {
        id: "embedding/short-limit-inclusive",
        misconception: "draws a table of exactly 16 values in the way of the short ones",
        story: "n <= 16 where n < 16 was meant. One size of table shows it.",
        source: None,
        named_by: "embedding/initial-normal-long",
        implementation: draws!(ShortLimit { is_short: |n| n <= 16 }),
    },
    Bug {
        id: "embedding/neighbours-are-pairs",
        misconception: "pairs neighbours in a long table, (0, 1), (2, 3), not (j, j + 8)",
        story: "The numbers are normal all the same, so no histogram shows it.",
        source: None,
        named_by: "embedding/initial-normal-long",
        implementation: draws!(Neighbours { partner: 1 }),
    },
    Bug {
        id: "embedding/cosine-twice",
        misconception: "takes the cosine for both values of a pair",
        story: "Copied line, one word not changed. Every value comes twice.",
        source: None,
        named_by: "embedding/initial-normal-long",
        implementation: draws!(CosineTwice {
            polar: |r, angle| (r * angle.cos(), r * angle.cos())
        }),
    },
    Bug {
        id: "embedding/sine-first",
        misconception: "takes the sine for the first value of a pair, the cosine for the second",
        story: "Both orders give normal numbers. PyTorch has the cosine first.",
        source: None,
        named_by: "embedding/initial-normal-long",
        implementation: draws!(SineFirst { polar: |r, angle| (r * angle.sin(), r * angle.cos()) }),
    },
    Bug {
        id: "embedding/log-of-u",
        misconception: "takes the logarithm of u, not of 1 − u",
        story: "Both are uniform. But u may be 0, and its logarithm is not finite.",
        source: None,
        named_by: "embedding/initial-normal-long",
        implementation: draws!(LogOfU {
            long_pair: |u1, u2| (u1, u2),
            short_pair: |u1, u2| (u2, u1)
        }),
    },
    Bug {
        id: "embedding/radius-without-two",
        misconception: "forgets the 2 in √(−2 ln u), so that the values are too small by √2",
        story: "Normal still, with a standard deviation of 0.71.",
        source: None,
        named_by: "embedding/initial-normal-short",
        implementation: draws!(WithoutTwo {
            polar: |r, angle| (r * angle.cos() / 2.0f64.sqrt(), r * angle.sin() / 2.0f64.sqrt())
        }),
    },
    Bug {
        id: "embedding/tail-not-renewed",
        misconception: "leaves the values after the last whole block uniform",
        story: "The loop runs over whole blocks of 16. Tables in tests have 64 or 1024 values.",
        source: None,
        named_by: "embedding/initial-normal-tail",
        implementation: draws!(TailSkipped { tail: |_| 0 }),
    },
    Bug {
        id: "embedding/tail-only-rest",
        misconception: "draws only the rest after the last whole block anew, not the last 16",
        story: "Sensible, but PyTorch overwrites values that were done already.",
        source: None,
        named_by: "embedding/initial-normal-tail",
        implementation: draws!(TailOnlyRest { tail: |n| n % 16 }),
    },
    Bug {
        id: "embedding/std-as-variance",
        misconception: "reads the standard deviation as the variance and takes its root",
        story: "Statistics books write N(mean, variance). With 1 there is no difference.",
        source: None,
        named_by: "embedding/initial-mean-and-std",
        implementation: draws!(StdAsVariance {
            scale: |z, init| z * f64::from(init.std).sqrt() + f64::from(init.mean)
        }),
    },
    Bug {
        id: "embedding/std-squared",
        misconception: "multiplies by the variance, the square of the standard deviation",
        story: "The other way to mix up the two. With 1 there is no difference.",
        source: None,
        named_by: "embedding/initial-mean-and-std",
        implementation: draws!(StdSquared {
            scale: |z, init| z * f64::from(init.std).powi(2) + f64::from(init.mean)
        }),
    },
    Bug {
        id: "embedding/no-mean",
        misconception: "forgets the mean",
        story: "It is 0 in nearly every configuration.",
        source: None,
        named_by: "embedding/initial-mean-and-std",
        implementation: draws!(NoMean { scale: |z, init| z * f64::from(init.std) }),
    },
    Bug {
        id: "embedding/no-std",
        misconception: "forgets the standard deviation",
        story: "randn plus mean. The default is 1.",
        source: None,
        named_by: "embedding/initial-mean-and-std",
        implementation: draws!(NoStd { scale: |z, init| z + f64::from(init.mean) }),
    },
    Bug {
        id: "embedding/mean-scaled",
        misconception: "multiplies the mean by the standard deviation as well: (z + mean)·std",
        story: "The parentheses are in the wrong place. With mean 0 or std 1 nobody sees them.",
        source: None,
        named_by: "embedding/initial-mean-and-std",
        implementation: draws!(MeanScaled {
            scale: |z, init| (z + f64::from(init.mean)) * f64::from(init.std)
        }),
    },
    Bug {
        id: "embedding/truncated-normal",
        misconception: "cuts the normal numbers off at two standard deviations",
        story: "trunc_normal_ is what other models use. One value in twenty differs.",
        source: None,
        named_by: "embedding/initial-normal-long",
        implementation: draws!(Truncated {
            scale: |z, init| z.clamp(-2.0, 2.0) * f64::from(init.std) + f64::from(init.mean)
        }),
    },
    Bug {
        id: "embedding/scaled-by-dimension",
        misconception: "divides the first values by the root of the embedding dimension",
        story: "A rule for the weights of linear layers. The specification gives std.",
        source: None,
        named_by: "embedding/initial-normal-short",
        implementation: bug!(ScaledByDimension {
            fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
                let std = init.std / (e as f32).sqrt();
                normal(v * e, NormalInit { std, ..init })
            }
        }),
    },
    Bug {
        id: "embedding/filled-by-columns",
        misconception: "fills the table column by column",
        story: "The table was kept as [e, v]. Its values are all there, in other places.",
        source: None,
        named_by: "embedding/initial-normal-short",
        implementation: bug!(ByColumns {
            fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
                let drawn = normal(v * e, init);
                (0..v * e).map(|i| drawn[i % e * v + i / e]).collect()
            }
        }),
    },
    Bug {
        id: "embedding/row-by-row",
        misconception: "draws each row by itself, from the seed plus its number",
        story: "Rows of their own are easy to draw in parallel. They are other numbers.",
        source: None,
        named_by: "embedding/initial-normal-short",
        implementation: bug!(RowByRow {
            fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
                let row = |id: usize| {
                    let seed = init.seed.wrapping_add(id as u64);
                    normal(e, NormalInit { seed, ..init })
                };
                (0..v).flat_map(row).collect()
            }
        }),
    },
    Bug {
        id: "embedding/all-rows-alike",
        misconception: "seeds the generator anew for each row, so that all rows are alike",
        story: "The generator is made inside the loop. All words mean the same at first, and \
                training can only tell them apart slowly.",
        source: None,
        named_by: "embedding/initial-normal-short",
        implementation: bug!(AllRowsAlike {
            fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
                normal(e, init).repeat(v)
            }
        }),
    },
    Bug {
        id: "embedding/padding-row-starts-at-zero",
        misconception: "sets row 0 of the first table to zeros",
        story: "As PyTorch does when it is given padding_idx = 0. Here no id is special.",
        source: None,
        named_by: "embedding/initial-normal-short",
        implementation: bug!(PaddingRow {
            fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
                let mut table = normal(v * e, init);
                table.iter_mut().take(e).for_each(|value| *value = 0.0);
                table
            }
        }),
    },
    Bug {
        id: "embedding/seed-ignored",
        misconception: "always draws from seed 42",
        story: "The default was used where the setting was meant. All tests use the default.",
        source: None,
        named_by: "embedding/initial-seed",
        implementation: draws!(SeedIgnored { start: |_| MersenneTwister::new(42) }),
    },
    Bug {
        id: "embedding/seed-folded",
        misconception: "mixes the high 32 bits of the seed into the low ones",
        story: "A careful generator would. PyTorch's takes the low 32 bits.",
        source: None,
        named_by: "embedding/initial-seed",
        implementation: draws!(SeedFolded {
            start: |seed| MersenneTwister::new(seed ^ (seed >> 32))
        }),
    },
    Bug {
        id: "embedding/seed-saturates",
        misconception: "clamps a seed that does not fit in 32 bits, instead of cutting it",
        story: "A conversion that is called safe.",
        source: None,
        named_by: "embedding/initial-seed",
        implementation: draws!(SeedSaturates {
            start: |seed| MersenneTwister::new(seed.min(u64::from(u32::MAX)))
        }),
    },
    Bug {
        id: "embedding/seed-plus-one",
        misconception: "moves a seed of 0 to 1",
        story: "Some generators don't take 0. This one does.",
        source: None,
        named_by: "embedding/initial-seed",
        implementation: draws!(SeedPlusOne { start: |seed| MersenneTwister::new(seed.max(1)) }),
    },
    Bug {
        id: "embedding/generator-goes-on",
        misconception: "seeds the generator once and goes on with it in the next table",
        story: "A generator that the whole program shares. The first table of the day is right.",
        source: None,
        named_by: "embedding/initial-repeats",
        implementation: || implementation(GoesOn::default()),
    },
    Bug {
        id: "embedding/ids-transposed",
        misconception: "reads the ids as [s, b]",
        story: "Some libraries have the sequence first. With b = 1 or s = 1 there is no \
                difference, and the result's shape is right.",
        source: None,
        named_by: "embedding/rows-of-the-table",
        implementation: bug!(IdsTransposed {
            fn id(&self, case: &LookupCase, t: usize) -> usize {
                let [b, s] = case.shape;
                case.ids[t % s * b + t / s]
            }
        }),
    },
    Bug {
        id: "embedding/table-transposed",
        misconception: "reads the table by columns, as [e, v]",
        story: "A linear layer keeps its weight that way, and the two are often tied.",
        source: None,
        named_by: "embedding/rows-of-the-table",
        implementation: bug!(TableTransposed {
            fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
                case.table.get(j * case.vocab_size + id).copied().unwrap_or(0.0)
            }
        }),
    },
    Bug {
        id: "embedding/first-sequence-for-all",
        misconception: "looks up the first batch row for all batch rows",
        story: "An index was left at 0, and broadcasting hid it. With a batch of 1 it is right.",
        source: None,
        named_by: "embedding/rows-of-the-table",
        implementation: bug!(FirstSequence {
            fn id(&self, case: &LookupCase, t: usize) -> usize {
                case.ids[t % case.shape[1]]
            }
        }),
    },
    Bug {
        id: "embedding/sorted-and-left-so",
        misconception: "sorts the ids to read the table in order, and leaves the result sorted",
        story: "Reading in order is fast. The way back was forgotten.",
        source: None,
        named_by: "embedding/rows-of-the-table",
        implementation: bug!(SortedAndLeft {
            fn id(&self, case: &LookupCase, t: usize) -> usize {
                let mut ids = case.ids.clone();
                ids.sort_unstable();
                ids[t]
            }
        }),
    },
    Bug {
        id: "embedding/counted-from-one",
        misconception: "counts ids from 1 and gives row id − 1",
        story: "A tokenizer that counts from 1 was met half way. Id 0 gives row 0.",
        source: None,
        named_by: "embedding/rows-of-the-table",
        implementation: bug!(FromOne {
            fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
                Oracle.element(case, id.saturating_sub(1), j)
            }
        }),
    },
    Bug {
        id: "embedding/last-id-dropped",
        misconception: "takes v − 1 for the largest index it may not reach, and reads row v − 2",
        story: "A clamp to the wrong end. Test ids are small.",
        source: None,
        named_by: "embedding/first-and-last-id",
        implementation: bug!(LastDropped {
            fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
                Oracle.element(case, id.min(case.vocab_size.saturating_sub(2)), j)
            }
        }),
    },
    Bug {
        id: "embedding/padding-row-reads-zero",
        misconception: "gives zeros for id 0, which it takes for padding",
        story: "In many vocabularies 0 is padding. Here no id is special.",
        source: None,
        named_by: "embedding/first-and-last-id",
        implementation: bug!(PaddingReads {
            fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
                if id == 0 { 0.0 } else { Oracle.element(case, id, j) }
            }
        }),
    },
    Bug {
        id: "embedding/root-of-dimension",
        misconception: "multiplies the rows by the root of the embedding dimension",
        story: "The first Transformer did so. It is a step after the lookup, not part of it.",
        source: None,
        named_by: "embedding/rows-of-the-table",
        implementation: bug!(RootOfDimension {
            fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
                Oracle.element(case, id, j) * (case.embedding_dim as f32).sqrt()
            }
        }),
    },
    Bug {
        id: "embedding/largest-norm",
        misconception: "shrinks rows that are longer than 1",
        story: "PyTorch has it as max_norm, off unless asked for.",
        source: None,
        named_by: "embedding/rows-of-the-table",
        implementation: bug!(LargestNorm {
            fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
                let row = (0..case.embedding_dim).map(|j| Oracle.element(case, id, j));
                let norm = row.map(|x| x * x).sum::<f32>().sqrt();
                Oracle.element(case, id, j) / norm.max(1.0)
            }
        }),
    },
    Bug {
        id: "embedding/one-hot-product",
        misconception: "multiplies the table by a one-hot matrix, so that a NaN in any row \
                        spoils all tokens",
        story: "0 times NaN is NaN, and 0 times infinity. On finite tables it is right.",
        source: None,
        named_by: "embedding/special-values",
        implementation: bug!(OneHot {
            fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
                let hot = |k| if k == id { 1.0 } else { 0.0 };
                (0..case.vocab_size).map(|k| hot(k) * Oracle.element(case, k, j)).sum()
            }
        }),
    },
    Bug {
        id: "embedding/tiny-flushed",
        misconception: "flushes the smallest numbers to 0",
        story: "Fast modes of processors do, wherever there is arithmetic. A copy has none.",
        source: None,
        named_by: "embedding/special-values",
        implementation: bug!(TinyFlushed {
            fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
                let value = Oracle.element(case, id, j);
                if value.is_subnormal() { 0.0 } else { value }
            }
        }),
    },
    Bug {
        id: "embedding/nan-cleaned",
        misconception: "replaces NaN by 0",
        story: "A kind guard. It hides a broken table until much later.",
        source: None,
        named_by: "embedding/special-values",
        implementation: bug!(NanCleaned {
            fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
                let value = Oracle.element(case, id, j);
                if value.is_nan() { 0.0 } else { value }
            }
        }),
    },
    Bug {
        id: "embedding/rows-in-f16",
        misconception: "passes the rows through f16",
        story: "A table that was saved in half precision to be small. Three digits remain.",
        source: None,
        named_by: "embedding/forward-any-input",
        implementation: bug!(RowsInF16 {
            fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
                to_f16(f64::from(Oracle.element(case, id, j)))
            }
        }),
    },
    Bug {
        id: "embedding/repeats-dropped",
        misconception: "gives zeros for an id that it has met before in the batch",
        story: "Each row is moved out of a cache once. Test sentences without repeats are right.",
        source: None,
        named_by: "embedding/token-alone",
        implementation: bug!(RepeatsDropped {
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
        }),
    },
    Bug {
        id: "embedding/position-added",
        misconception: "adds the position to the rows",
        story: "Early models add positions here. In this one RoPE does their work, later.",
        source: None,
        named_by: "embedding/token-alone",
        implementation: bug!(PositionAdded {
            fn rows(&self, case: &LookupCase) -> Vec<f32> {
                let (s, e) = (case.shape[1], case.embedding_dim);
                let y = Oracle.rows(case);
                let position = |i: usize| (i / e % s) as f32;
                y.iter().enumerate().map(|(i, y)| y + position(i).sin()).collect()
            }
        }),
    },
    Bug {
        id: "embedding/id-by-parity",
        misconception: "gives even ids the rows of the first half, odd ids those of the second",
        story: "The table was saved in two interleaved halves and put together end to end.",
        source: None,
        named_by: "embedding/relabelling",
        implementation: bug!(ByParity {
            fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
                let half = case.vocab_size.div_ceil(2);
                Oracle.element(case, id / 2 + id % 2 * half, j)
            }
        }),
    },
    Bug {
        id: "embedding/ids-changed-in-place",
        misconception: "changes the caller's ids while it looks them up",
        story: "Ids are turned into offsets in the same memory. The next layer reads them again: \
                labels, masks, losses.",
        source: None,
        named_by: "embedding/ids-kept",
        implementation: bug!(IdsInPlace {
            fn ids_after(&self, case: &LookupCase) -> Vec<usize> {
                case.ids.iter().map(|id| id.saturating_mul(case.embedding_dim)).collect()
            }
        }),
    },
    Bug {
        id: "embedding/ids-sorted-in-place",
        misconception: "sorts the caller's ids",
        story: "The result was put back in order, the ids were not.",
        source: None,
        named_by: "embedding/ids-kept",
        implementation: bug!(IdsSorted {
            fn ids_after(&self, case: &LookupCase) -> Vec<usize> {
                let mut ids = case.ids.clone();
                ids.sort_unstable();
                ids
            }
        }),
    },
    Bug {
        id: "embedding/id-clamped",
        misconception: "clamps ids that are too large to v − 1",
        story: "No crash, no message: a wrong tokenizer looks like a model that learned nothing.",
        source: None,
        named_by: "embedding/id-refused",
        implementation: accepts!(IdClamped, |id, v| id.min(v.saturating_sub(1))),
    },
    Bug {
        id: "embedding/id-wraps",
        misconception: "takes ids that are too large modulo v",
        story: "The hashing trick, where nobody asked for it.",
        source: None,
        named_by: "embedding/id-refused",
        implementation: accepts!(IdWraps, |id, v| id % v.max(1)),
    },
    Bug {
        id: "embedding/id-unknown-is-zero",
        misconception: "gives zeros for ids that are too large",
        story: "Zeros are what an unknown word looks like, but so does a mistake.",
        source: None,
        named_by: "embedding/id-refused",
        implementation: bug!(UnknownIsZero {
            fn check(&self, _: &LookupCase) -> Reply<()> {
                Ok(())
            }
        }),
    },
    Bug {
        id: "embedding/id-limit-inclusive",
        misconception: "refuses ids above v, but lets v itself pass",
        story: "id > v where id >= v was meant. The row after the last is somebody else's memory.",
        source: None,
        named_by: "embedding/id-refused",
        implementation: bug!(LimitInclusive {
            fn check(&self, case: &LookupCase) -> Reply<()> {
                check_ids(&case.ids, case.shape, case.vocab_size.saturating_add(1))
            }
        }),
    },
    Bug {
        id: "embedding/first-sequence-checked",
        misconception: "checks the first batch row only",
        story: "The check was written for one sequence, before there were batches.",
        source: None,
        named_by: "embedding/id-refused",
        implementation: bug!(FirstChecked {
            fn check(&self, case: &LookupCase) -> Reply<()> {
                let first: Vec<usize> = case.ids.iter().copied().take(case.shape[1]).collect();
                check_ids(&first, case.shape, case.vocab_size)
            }
        }),
    },
    Bug {
        id: "embedding/ids-in-32-bits",
        misconception: "cuts ids to 32 bits before the check",
        story: "Kernels count in 32 bits, so the ids are cast first. 2³² + 3 becomes 3.",
        source: None,
        named_by: "embedding/huge-id-refused",
        implementation: accepts!(In32Bits, |id, _| id as u32 as usize),
    },
    Bug {
        id: "embedding/ids-in-16-bits",
        misconception: "cuts ids to 16 bits before the check",
        story: "Data sets store ids in 16 bits while the vocabulary is below 65,536. 65,539 \
                becomes 3.",
        source: None,
        named_by: "embedding/huge-id-refused",
        implementation: accepts!(In16Bits, |id, _| id as u16 as usize),
    },
    Bug {
        id: "embedding/negative-ids",
        misconception: "reads huge ids as negative and counts them from the end of the table",
        story: "Python's table[-1] is the last row. −1 as a usize is the largest number, and the \
                label of ignored tokens.",
        source: None,
        named_by: "embedding/huge-id-refused",
        implementation: accepts!(Negative, |id, v| {
            let from_end = id.wrapping_neg();
            if (1..=v).contains(&from_end) { v - from_end } else { id }
        }),
    },
    Bug {
        id: "embedding/refusal-without-words",
        misconception: "refuses without saying which id",
        story: "\"index out of range\": among a million tokens, which?",
        source: None,
        named_by: "embedding/refusal-names-id",
        implementation: bug!(WithoutWords {
            fn check(&self, case: &LookupCase) -> Reply<()> {
                Oracle.check(case).map_err(|_| Refusal::new("index out of range"))
            }
        }),
    },
    Bug {
        id: "embedding/refusal-names-place-only",
        misconception: "names the place in the batch in its refusal, but not the id",
        story: "The position was at hand in the loop. Whose id is it, and how large?",
        source: None,
        named_by: "embedding/refusal-names-id",
        implementation: bug!(PlaceOnly {
            fn check(&self, case: &LookupCase) -> Reply<()> {
                match case.ids.iter().position(|&id| id >= case.vocab_size) {
                    Some(t) => Err(Refusal::new(format!("bad id at position {t}"))),
                    None => Ok(()),
                }
            }
        }),
    },
    Bug {
        id: "embedding/gradient-overwritten",
        misconception: "keeps the last token's gradient of a row, instead of adding all",
        story: "Assigned where it should be added. Without repeated ids it is right.",
        source: None,
        named_by: "embedding/gradient-adds",
        implementation: bug!(Overwritten {
            fn add(&self, _: f64, dy: f64) -> f64 {
                dy
            }
        }),
    },
    Bug {
        id: "embedding/gradient-first-only",
        misconception: "keeps the first token's gradient of a row and drops the others",
        story: "Unique ids with their first places, as a library call gives them.",
        source: None,
        named_by: "embedding/gradient-adds",
        implementation: bug!(FirstOnly {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let e = case.embedding_dim;
                let again = |t: usize| case.ids[..t].contains(&case.ids[t]);
                let dy = dy.iter().enumerate();
                let dy: Vec<f32> = dy.map(|(i, &dy)| if again(i / e) { 0.0 } else { dy }).collect();
                Oracle.gradient(case, &dy)
            }
        }),
    },
    Bug {
        id: "embedding/gradient-by-frequency",
        misconception: "divides the gradient of a row by the number of its tokens",
        story: "PyTorch has it as scale_grad_by_freq, off unless asked for.",
        source: None,
        named_by: "embedding/gradient-counts",
        implementation: bug!(ByFrequency {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let count = |k| case.ids.iter().filter(|&&id| id == k).count().max(1) as f64;
                let sum = Oracle.gradient(case, dy).into_iter().enumerate();
                sum.map(|(i, sum)| sum / count(i / case.embedding_dim)).collect()
            }
        }),
    },
    Bug {
        id: "embedding/gradient-averaged",
        misconception: "divides the gradient by the number of tokens in the batch",
        story: "The mean belongs to the loss, which has it in dy already.",
        source: None,
        named_by: "embedding/gradient-counts",
        implementation: bug!(Averaged {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let tokens = case.ids.len() as f64;
                Oracle.gradient(case, dy).into_iter().map(|sum| sum / tokens).collect()
            }
        }),
    },
    Bug {
        id: "embedding/no-gradient",
        misconception: "sends no gradient to the table",
        story: "The rows were copied out of the tape. The table stays as it was drawn.",
        source: None,
        named_by: "embedding/gradient-counts",
        implementation: bug!(NoGradient {
            fn add(&self, sum: f64, _: f64) -> f64 {
                sum
            }
        }),
    },
    Bug {
        id: "embedding/padding-row-not-trained",
        misconception: "sends no gradient to row 0, which it takes for padding",
        story: "As PyTorch does when it is given padding_idx = 0. Here no id is special.",
        source: None,
        named_by: "embedding/gradient-counts",
        implementation: bug!(PaddingNotTrained {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let mut sum = Oracle.gradient(case, dy);
                sum.iter_mut().take(case.embedding_dim).for_each(|sum| *sum = 0.0);
                sum
            }
        }),
    },
    Bug {
        id: "embedding/gradient-last-position-dropped",
        misconception: "drops the gradient of the last position of each sequence",
        story: "The last token has no next one to predict. But that is the loss's matter.",
        source: None,
        named_by: "embedding/gradient-counts",
        implementation: bug!(LastPosition {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let (s, e) = (case.shape[1], case.embedding_dim);
                let last = |i: usize| i / e % s == s - 1;
                let dy = dy.iter().enumerate();
                let dy: Vec<f32> = dy.map(|(i, &dy)| if last(i) { 0.0 } else { dy }).collect();
                Oracle.gradient(case, &dy)
            }
        }),
    },
    Bug {
        id: "embedding/gradient-first-sequence-only",
        misconception: "adds up the first batch row only",
        story: "The loop over the batch was forgotten on the way back.",
        source: None,
        named_by: "embedding/gradient-counts",
        implementation: bug!(FirstSequenceOnly {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let mut dy = dy.to_vec();
                dy.iter_mut().skip(case.shape[1] * case.embedding_dim).for_each(|dy| *dy = 0.0);
                Oracle.gradient(case, &dy)
            }
        }),
    },
    Bug {
        id: "embedding/gradient-ids-transposed",
        misconception: "reads the ids as [s, b] on the way back",
        story: "Forward was tested, backward was not: with every dy 1 it is right too.",
        source: None,
        named_by: "embedding/gradient-adds",
        implementation: bug!(GradientTransposed {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let [b, s] = case.shape;
                let ids = (0..case.ids.len()).map(|t| case.ids[t % s * b + t / s]).collect();
                Oracle.gradient(&LookupCase { ids, ..case.clone() }, dy)
            }
        }),
    },
    Bug {
        id: "embedding/weight-decay",
        misconception: "adds a little of the table to its gradient, also in rows never looked up",
        story: "Weight decay is the optimizer's. Here it shrinks rare words towards 0.",
        source: None,
        named_by: "embedding/gradient-unused-rows",
        implementation: bug!(WeightDecay {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let sum = Oracle.gradient(case, dy).into_iter().zip(&case.table);
                sum.map(|(sum, &value)| sum + 0.01 * f64::from(value)).collect()
            }
        }),
    },
    Bug {
        id: "embedding/lazy-decay",
        misconception: "adds a little of the table to the gradient of the rows that were used",
        story: "The same, made lazy, so that unused rows are left in peace.",
        source: None,
        named_by: "embedding/gradient-not-of-table",
        implementation: bug!(LazyDecay {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let used = |i: usize| case.ids.contains(&(i / case.embedding_dim));
                let value = |i: usize| if used(i) { f64::from(case.table[i]) } else { 0.0 };
                let sum = Oracle.gradient(case, dy).into_iter().enumerate();
                sum.map(|(i, sum)| sum + 0.01 * value(i)).collect()
            }
        }),
    },
    Bug {
        id: "embedding/nan-rows-frozen",
        misconception: "sends no gradient to rows that hold a NaN",
        story: "A guard for broken rows. The gradient now depends on the table, which it must not.",
        source: None,
        named_by: "embedding/gradient-not-of-table",
        implementation: bug!(NanFrozen {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let e = case.embedding_dim;
                let frozen = |k: usize| case.table[k * e..][..e].iter().any(|x| x.is_nan());
                let sum = Oracle.gradient(case, dy).into_iter().enumerate();
                sum.map(|(i, sum)| if frozen(i / e) { 0.0 } else { sum }).collect()
            }
        }),
    },
    Bug {
        id: "embedding/gradient-smeared",
        misconception: "sends a millionth of every token's gradient to all rows",
        story: "A soft one-hot, from label smoothing. Rows that were never read now move.",
        source: None,
        named_by: "embedding/gradient-unused-rows",
        implementation: bug!(Smeared {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let e = case.embedding_dim;
                let total = |j: usize| dy.iter().skip(j).step_by(e).map(|&d| f64::from(d)).sum();
                let total: Vec<f64> = (0..e).map(total).collect();
                let sum = Oracle.gradient(case, dy).into_iter().enumerate();
                sum.map(|(i, sum)| sum + 1e-6 * total[i % e]).collect()
            }
        }),
    },
    Bug {
        id: "embedding/gradient-one-hot-product",
        misconception: "multiplies dy by a one-hot matrix, so that a NaN in one token's dy spoils \
                        all rows",
        story: "0 times NaN is NaN. On finite gradients it is right.",
        source: None,
        named_by: "embedding/gradient-stays-in-its-row",
        implementation: bug!(GradientOneHot {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let e = case.embedding_dim;
                let hot = |t: usize, k: usize| if case.ids[t] == k { 1.0 } else { 0.0 };
                let term = |t: usize, i: usize| hot(t, i / e) * f64::from(dy[t * e + i % e]);
                let sum = |i| (0..case.ids.len()).map(|t| term(t, i)).sum();
                (0..case.table.len()).map(sum).collect()
            }
        }),
    },
    Bug {
        id: "embedding/gradient-clipped",
        misconception: "clips the gradient to 100",
        story: "A guard against explosions, hidden where nobody looks for it.",
        source: None,
        named_by: "embedding/gradient-linear",
        implementation: bug!(Clipped {
            fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
                let sum = Oracle.gradient(case, dy).into_iter();
                sum.map(|sum| sum.clamp(-100.0, 100.0)).collect()
            }
        }),
    },
    Bug {
        id: "embedding/gradient-in-f16",
        misconception: "adds the gradient up in f16",
        story: "2048 + 1 is 2048 there. Only frequent tokens suffer, and no small test has any.",
        source: None,
        named_by: "embedding/gradient-of-a-frequent-token",
        implementation: bug!(GradientInF16 {
            fn add(&self, sum: f64, dy: f64) -> f64 {
                f64::from(to_f16(sum + dy))
            }
        }),
    },
    Bug {
        id: "embedding/gradient-stops-counting",
        misconception: "counts a token's repeats in one byte and drops the 256th",
        story: "A buffer of 255 places per row, large enough for every test.",
        source: None,
        named_by: "embedding/gradient-of-a-frequent-token",
        implementation: bug!(OneByte {
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
        }),
    },
    Bug {
        id: "embedding/block-not-copied",
        misconception: "copies rows in blocks of 128 and leaves the last one at zero if it is not full",
        story: "One thread for each block, and tokens / 128 threads. Few tokens take the simple way and are right.",
        source: None,
        named_by: "embedding/forward-any-input",
        implementation: bug!(BlockNotCopied {
            fn rows(&self, case: &LookupCase) -> Vec<f32> {
                let mut rows = Oracle.rows(case);
                rows[in_full_blocks(case.ids.len()) * case.embedding_dim..].fill(0.0);
                rows
            }
        }),
    },
    Bug {
        id: "embedding/gradient-race",
        misconception: "lets two threads add to one row at the same time, so that one of the two is lost",
        story: "Both read the row, both add, both write. It needs two equal ids at one moment, in a long batch.",
        source: None,
        named_by: "embedding/gradient-any-input",
        implementation: bug!(GradientRace {
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
        }),
    },
    Bug {
        id: "embedding/gradient-not-cleared",
        misconception: "goes on with the gradient of the last call",
        story: "A table is large, so its gradient is kept and used again. The first call is right.",
        source: None,
        named_by: "embedding/gradient-any-input",
        implementation: || implementation(GradientNotCleared::default()),
    },
    Bug {
        id: "embedding/gradient-of-threads",
        misconception: "adds a row's gradient up in as many parts as there are threads, so that its last bits depend on them",
        story: "Each sum is as exact as another. But two runs of one training differ, and nobody can say why.",
        source: None,
        named_by: "embedding/gradient-any-input",
        implementation: || implementation(SumOfThreads::default()),
    },
];
