//! Correct variants of VocabEmbedding.

use crate::component::Variant;
use crate::embedding::interface::*;
use crate::embedding::oracle::{LookupLoops, implementation};
use crate::oracle::{Oracle, random};

/// The variants.
pub static VARIANTS: &[Variant<dyn VocabEmbedding>] = &[
    Variant {
        id: "embedding/slices",
        about: "copies whole rows as slices and adds the gradient in f32, from the left",
        implementation: || Box::new(Slices { sum: from_left }),
    },
    Variant {
        id: "embedding/from-right",
        about: "adds the gradient in f32 from the right",
        implementation: || Box::new(Slices { sum: |v| v.iter().rev().fold(0.0, |sum, v| sum + v) }),
    },
    Variant {
        id: "embedding/pairwise-sum",
        about: "adds the gradient in f32, in halves of halves",
        implementation: || Box::new(Slices { sum: in_halves }),
    },
    Variant {
        id: "embedding/one-hot",
        about: "multiplies by a one-hot matrix in f32 and skips its zeros, as 0 · NaN is NaN",
        implementation: || implementation(OneHot),
    },
    Variant {
        id: "embedding/sorted-ids",
        about: "sorts the tokens by id, reads the table once from top to bottom, and puts the \
                rows back in order",
        implementation: || implementation(SortedIds),
    },
    Variant {
        id: "embedding/unique-ids",
        about: "looks each id up once and copies the row to all its places; checks last to first",
        implementation: || implementation(UniqueIds),
    },
    Variant {
        id: "embedding/normal-in-f32",
        about: "rounds the first values to f32 before scale and shift, as PyTorch does",
        implementation: || implementation(NormalInF32),
    },
];

pub(crate) fn from_left(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |sum, value| sum + value)
}

pub(crate) fn in_halves(values: &[f32]) -> f32 {
    match values {
        [] => 0.0,
        [value] => *value,
        _ => {
            let (left, right) = values.split_at(values.len() / 2);
            in_halves(left) + in_halves(right)
        }
    }
}

/// A lookup that shares nothing with the oracle but the first values.
struct Slices {
    sum: fn(&[f32]) -> f32,
}

impl Slices {
    fn check(&self, case: &LookupCase) -> Reply<()> {
        match case.ids.iter().position(|&id| id >= case.vocab_size) {
            Some(t) => Err(Refusal::new(format!(
                "row {}, column {}: token {} is not in the vocabulary of {}",
                t / case.shape[1],
                t % case.shape[1],
                case.ids[t],
                case.vocab_size
            ))),
            None => Ok(()),
        }
    }
}

impl VocabEmbedding for Slices {
    fn initial_table(&self, v: usize, e: usize, init: NormalInit) -> Reply<Vec<f32>> {
        Ok(random::normal(v * e, init))
    }

    fn forward_in(&self, _: Manner, case: &LookupCase) -> Reply<Found> {
        self.check(case)?;
        let rows: Vec<&[f32]> = case.table.chunks(case.embedding_dim).collect();
        let y = case.ids.iter().flat_map(|&id| rows[id]).copied().collect();
        Ok(Found { y, ids_after: case.ids.clone() })
    }

    fn backward_in(&self, _: Manner, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.check(case)?;
        let e = case.embedding_dim;
        let element = |i: usize| {
            let tokens = case.ids.iter().zip(dy.chunks(e));
            let terms: Vec<f32> =
                tokens.filter(|(id, _)| **id == i / e).map(|(_, dy)| dy[i % e]).collect();
            (self.sum)(&terms)
        };
        Ok((0..case.table.len()).map(element).collect())
    }
}

struct OneHot;

impl LookupLoops for OneHot {
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        let e = case.embedding_dim;
        let hot = |k: usize| if k == id { 1.0f32 } else { 0.0 };
        let used = (0..case.vocab_size).filter(|&k| hot(k) != 0.0);
        used.fold(0.0, |sum, k| sum + hot(k) * case.table[k * e + j])
    }

    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        let e = case.embedding_dim;
        let hot = |t: usize, k: usize| if case.ids[t] == k { 1.0f32 } else { 0.0 };
        let element = |i: usize| {
            let used = (0..case.ids.len()).filter(|&t| hot(t, i / e) != 0.0);
            f64::from(used.fold(0.0f32, |sum, t| sum + hot(t, i / e) * dy[t * e + i % e]))
        };
        (0..case.table.len()).map(element).collect()
    }
}

struct SortedIds;

impl LookupLoops for SortedIds {
    fn rows(&self, case: &LookupCase) -> Vec<f32> {
        let e = case.embedding_dim;
        let mut tokens: Vec<usize> = (0..case.ids.len()).collect();
        tokens.sort_by_key(|&t| case.ids[t]);
        let mut y = vec![0.0; tokens.len() * e];
        for t in tokens {
            y[t * e..][..e].copy_from_slice(&case.table[case.ids[t] * e..][..e]);
        }
        y
    }
}

struct UniqueIds;

impl LookupLoops for UniqueIds {
    fn check(&self, case: &LookupCase) -> Reply<()> {
        let first = |(t, _): (usize, &usize)| (t / case.shape[1], t % case.shape[1]);
        match case.ids.iter().enumerate().find(|&(_, &id)| id >= case.vocab_size).map(first) {
            Some((i, j)) => Err(Refusal::new(format!(
                "ids[{i}][{j}] = {}: no such row, there are {}",
                case.ids[i * case.shape[1] + j],
                case.vocab_size
            ))),
            None => Ok(()),
        }
    }

    fn rows(&self, case: &LookupCase) -> Vec<f32> {
        let e = case.embedding_dim;
        let mut y = vec![0.0; case.ids.len() * e];
        for id in 0..case.vocab_size {
            let row = &case.table[id * e..][..e];
            for t in (0..case.ids.len()).filter(|&t| case.ids[t] == id) {
                y[t * e..][..e].copy_from_slice(row);
            }
        }
        y
    }

    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        // In two passes: even tokens first, then odd ones.
        let half = |odd: usize| -> Vec<f64> {
            let e = case.embedding_dim;
            let dy = dy.iter().enumerate();
            let dy: Vec<f32> = dy.map(|(i, &dy)| if i / e % 2 == odd { dy } else { 0.0 }).collect();
            Oracle.gradient(case, &dy)
        };
        half(0).iter().zip(&half(1)).map(|(even, odd)| even + odd).collect()
    }
}

struct NormalInF32;

impl LookupLoops for NormalInF32 {
    fn table(&self, v: usize, e: usize, init: NormalInit) -> Vec<f32> {
        let standard = random::normal(v * e, NormalInit { mean: 0.0, std: 1.0, ..init });
        standard.iter().map(|z| z.mul_add(init.std, init.mean)).collect()
    }
}
