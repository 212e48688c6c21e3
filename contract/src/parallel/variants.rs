//! Correct variants of ParallelVocabEmbedding.

use crate::component::Variant;
use crate::embedding::variants::{from_left, in_halves};
use crate::oracle::{Oracle, random};
use crate::parallel::interface::*;
use crate::parallel::oracle::{ShardLoops, implementation, owned};
use std::ops::Range;

/// The variants.
pub static VARIANTS: &[Variant<dyn ParallelVocabEmbedding>] = &[
    Variant {
        id: "parallel/quotient-and-rest",
        about: "id / n is the owner, id mod n its row; adds the gradient in f32, from the left",
        implementation: || Box::new(QuotientAndRest { sum: from_left }),
    },
    Variant {
        id: "parallel/pairwise-sum",
        about: "the same, the gradient in halves of halves",
        implementation: || Box::new(QuotientAndRest { sum: in_halves }),
    },
    Variant {
        id: "parallel/from-right",
        about: "the same, the gradient from the right",
        implementation: || {
            Box::new(QuotientAndRest { sum: |v| v.iter().rev().fold(0.0, |sum, v| sum + v) })
        },
    },
    Variant {
        id: "parallel/zeroed-then-multiplied",
        about: "writes zeros over foreign rows, then multiplies by the mask all the same",
        implementation: || implementation(ZeroedThenMultiplied),
    },
    Variant {
        id: "parallel/negative-zero",
        about: "writes −0 for foreign tokens, which is zero too",
        implementation: || implementation(NegativeZero),
    },
    Variant {
        id: "parallel/own-tokens-first",
        about: "collects its own tokens, looks them up, and scatters them over zeros",
        implementation: || implementation(OwnTokensFirst),
    },
    Variant {
        id: "parallel/spare-row",
        about: "sends the gradient of foreign tokens to a row past the end, and drops it",
        implementation: || implementation(SpareRow),
    },
    Variant {
        id: "parallel/seed-in-32-bits",
        about: "adds base and rank in 32 bits, which is all that the generator takes",
        implementation: || implementation(SeedIn32Bits),
    },
];

/// A shard that shares nothing with the oracle but the first values.
struct QuotientAndRest {
    sum: fn(&[f32]) -> f32,
}

impl QuotientAndRest {
    fn rows(v: usize, w: usize, r: usize) -> Reply<usize> {
        match v.checked_rem(w) {
            Some(0) if r < w => Ok(v / w),
            _ => Err(Refusal::new(format!("no rank {r} of {w} for {v} ids"))),
        }
    }

    /// The row of each token, or none for foreign ones.
    fn local(case: &ShardCase) -> Reply<Vec<Option<usize>>> {
        let n = Self::rows(case.vocab_size, case.world_size, case.rank)?;
        let local = |(t, &id): (usize, &usize)| {
            if id / n >= case.world_size {
                let (i, j, v) = (t / case.shape[1], t % case.shape[1], case.vocab_size);
                return Err(Refusal::new(format!("id {id} at {i}, {j} has no owner: v = {v}")));
            }
            Ok((id / n == case.rank).then_some(id % n))
        };
        case.ids.iter().enumerate().map(local).collect()
    }
}

impl ParallelVocabEmbedding for QuotientAndRest {
    fn shard_range(&self, v: usize, w: usize, r: usize) -> Reply<Range<usize>> {
        let n = Self::rows(v, w, r)?;
        Ok(r * n..r * n + n)
    }

    fn initial_shard(
        &self,
        v: usize,
        e: usize,
        w: usize,
        r: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        let n = Self::rows(v, w, r)?;
        Ok(random::normal(n * e, NormalInit { seed: init.seed.wrapping_add(r as u64), ..init }))
    }

    fn forward_in(&self, _: Manner, case: &ShardCase) -> Reply<Found> {
        let rows: Vec<&[f32]> = case.shard.chunks(case.embedding_dim).collect();
        let zeros = vec![0.0; case.embedding_dim];
        let part = |row: Option<usize>| row.map_or(&zeros[..], |row| rows[row]).to_vec();
        let y = Self::local(case)?.into_iter().flat_map(part).collect();
        Ok(Found { y, ids_after: case.ids.clone() })
    }

    fn backward_in(&self, _: Manner, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let e = case.embedding_dim;
        let local = Self::local(case)?;
        let element = |i: usize| {
            let tokens = local.iter().zip(dy.chunks(e));
            let terms: Vec<f32> =
                tokens.filter(|(row, _)| **row == Some(i / e)).map(|(_, dy)| dy[i % e]).collect();
            (self.sum)(&terms)
        };
        Ok((0..case.shard.len()).map(element).collect())
    }
}

struct ZeroedThenMultiplied;

impl ShardLoops for ZeroedThenMultiplied {
    fn rows(&self, case: &ShardCase) -> Vec<f32> {
        let e = case.embedding_dim;
        let own = owned(case.vocab_size, case.world_size, case.rank);
        let mut y = Vec::new();
        for &id in &case.ids {
            let mask = if own.contains(&id) { 1.0f32 } else { 0.0 };
            let row = if own.contains(&id) { id - own.start } else { 0 };
            let mut part = case.shard[row * e..][..e].to_vec();
            if mask == 0.0 {
                part.fill(0.0);
            }
            y.extend(part.iter().map(|value| value * mask));
        }
        y
    }
}

struct NegativeZero;

impl ShardLoops for NegativeZero {
    fn foreign(&self, _: &ShardCase, _: usize) -> f32 {
        -0.0
    }
}

struct OwnTokensFirst;

impl ShardLoops for OwnTokensFirst {
    fn rows(&self, case: &ShardCase) -> Vec<f32> {
        let e = case.embedding_dim;
        let own = owned(case.vocab_size, case.world_size, case.rank);
        let tokens = (0..case.ids.len()).filter(|&t| own.contains(&case.ids[t]));
        let mut y = vec![0.0; case.ids.len() * e];
        for t in tokens {
            let row = &case.shard[(case.ids[t] - own.start) * e..][..e];
            y[t * e..][..e].copy_from_slice(row);
        }
        y
    }
}

struct SpareRow;

impl ShardLoops for SpareRow {
    fn gradient(&self, case: &ShardCase, dy: &[f32]) -> Vec<f64> {
        let (n, e) = (case.vocab_size / case.world_size, case.embedding_dim);
        let mut sum = vec![0.0; (n + 1) * e];
        for (&id, dy) in case.ids.iter().zip(dy.chunks(e)) {
            let row = Oracle.row(case, id).unwrap_or(n);
            for (sum, &dy) in sum[row * e..].iter_mut().zip(dy) {
                *sum += f64::from(dy);
            }
        }
        sum.truncate(n * e);
        sum
    }
}

struct SeedIn32Bits;

impl ShardLoops for SeedIn32Bits {
    fn seed(&self, base: u64, rank: usize, _: usize) -> u64 {
        u64::from((base as u32).wrapping_add(rank as u32))
    }
}
