//! VocabEmbedding in a notebook.

mod figures;

pub use figures::{counts, histogram};

use crate::check::{Verdict, check, not_asked};
use crate::text::{Tokens, visible};
use contract::interface::{Found, LookupCase, Manner, NormalInit, Refusal, Reply, VocabEmbedding};
use std::cmp::Reverse;

/// A learner's lookup: `ids` are `[b s]`, `table` is `[v, e]` in one row, and the result is `[b s, e]`
/// in one row. Or why there is none: an id that is not below `vocab_size`.
pub type Lookup = fn(
    ids: &[usize],
    table: &[f32],
    vocab_size: usize,
    embedding_dim: usize,
) -> Result<Vec<f32>, String>;

/// A learner's gradient of the table, `[v, e]`: `ids` are `[b s]`, all below `vocab_size`, and `dy` is
/// `[b s, e]`, each in one row.
pub type Gradient =
    fn(ids: &[usize], dy: &[f32], vocab_size: usize, embedding_dim: usize) -> Vec<f32>;

/// Grades it by the invariants of the task `embedding/forward`. The gradient is taken from the lookup itself.
pub fn check_lookup(lookup: Lookup) -> Verdict {
    check::<dyn VocabEmbedding>(
        "embedding/forward",
        &Lines { lookup: Some(lookup), gradient: None },
    )
}

/// Grades it by the invariants of the task `embedding/backward`.
pub fn check_gradient(gradient: Gradient) -> Verdict {
    check::<dyn VocabEmbedding>(
        "embedding/backward",
        &Lines { lookup: None, gradient: Some(gradient) },
    )
}

struct Lines {
    lookup: Option<Lookup>,
    gradient: Option<Gradient>,
}

impl VocabEmbedding for Lines {
    fn initial_table(&self, _: usize, _: usize, _: NormalInit) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn forward_in(&self, _: Manner, case: &LookupCase) -> Reply<Found> {
        let lookup = self.lookup.ok_or_else(not_asked)?;
        let y = lookup(&case.ids, &case.table, case.vocab_size, case.embedding_dim);
        // The function can't change ids that it only borrows.
        Ok(Found {
            y: y.map_err(|words| refused(words, &case.ids, case.shape, case.vocab_size))?,
            ids_after: case.ids.clone(),
        })
    }

    fn backward_in(&self, _: Manner, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        if let Some(gradient) = self.gradient {
            return Ok(gradient(&case.ids, dy, case.vocab_size, case.embedding_dim));
        }
        gradient_of_copies(case.table.len(), dy, |table| {
            Ok(self.forward(&LookupCase { table, ..case.clone() })?.y)
        })
    }
}

/// The refusal of a cell's lines. They know neither rows nor columns of a batch: the place and the vocabulary size
/// are added here, and what is said of the id is theirs.
pub(crate) fn refused(words: String, ids: &[usize], shape: [usize; 2], v: usize) -> Refusal {
    let place = ids.iter().position(|&id| id >= v).unwrap_or(0);
    let (row, column) = (place / shape[1].max(1), place % shape[1].max(1));
    Refusal::new(format!("{words} (at [{row}, {column}] of a batch, in a vocabulary of {v})"))
}

/// The gradient of `rows` values of a table for `dy`, of a forward pass that copies them. It is asked
/// once for each value: with 1 in its place and 0 elsewhere, 1 appears where the value is copied to.
pub(crate) fn gradient_of_copies(
    values: usize,
    dy: &[f32],
    forward: impl Fn(Vec<f32>) -> Reply<Vec<f32>>,
) -> Reply<Vec<f32>> {
    let one = |k: usize| {
        let mut table = vec![0.0; values];
        table[k] = 1.0;
        let y = forward(table)?;
        // What is not copied gives nothing, also where `dy` is NaN.
        Ok((y.iter().zip(dy)).filter(|(y, _)| **y != 0.0).map(|(y, dy)| y * dy).sum())
    };
    (0..values).map(one).collect()
}

/// A token of a text and what its row got.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Its id.
    pub id: usize,
    /// Its bytes, as a reader can see them.
    pub piece: String,
    /// The first number of its row's gradient.
    pub gradient: f32,
}

/// The tokens of a text, each once, those with the largest gradient first. `gradient` is
/// `[v, embedding_dim]` in one row; its first column is used.
pub fn by_gradient(tokens: &Tokens, gradient: &[f32], embedding_dim: usize) -> Vec<Counted> {
    let row = |(&id, piece): (&usize, &Vec<u8>)| {
        let gradient = gradient.get(id * embedding_dim).copied().unwrap_or(0.0);
        Counted { id, piece: visible(piece), gradient }
    };
    let mut counted: Vec<Counted> = tokens.ids.iter().zip(&tokens.pieces).map(row).collect();
    counted.sort_by_key(|counted| (Reverse(counted.gradient as usize), counted.id));
    counted.dedup_by_key(|counted| counted.id);
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Text, tokenize};

    fn right_lookup(ids: &[usize], table: &[f32], v: usize, e: usize) -> Result<Vec<f32>, String> {
        if let Some(id) = ids.iter().find(|&&id| id >= v) {
            return Err(format!("id {id} is not below {v}"));
        }
        Ok(ids.iter().flat_map(|id| table[id * e..][..e].to_vec()).collect())
    }

    fn right_gradient(ids: &[usize], dy: &[f32], v: usize, e: usize) -> Vec<f32> {
        let mut dtable = vec![0.0; v * e];
        for (t, id) in ids.iter().enumerate() {
            for j in 0..e {
                dtable[id * e + j] += dy[t * e + j];
            }
        }
        dtable
    }

    #[test]
    fn right_lines_pass() {
        let verdict = check_lookup(right_lookup);
        assert!(verdict.passed, "{verdict}");
        let verdict = check_gradient(right_gradient);
        assert!(verdict.passed, "{verdict}");
    }

    #[test]
    fn wrong_lines_are_named() {
        let clamped: Lookup = |ids, table, v, e| {
            let ids: Vec<usize> = ids.iter().map(|&id| id.min(v - 1)).collect();
            right_lookup(&ids, table, v, e)
        };
        let verdict = check_lookup(clamped);
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("clamps ids"), "{verdict}");

        let one_hot: Lookup = |ids, table, v, e| {
            right_lookup(ids, table, v, e)?;
            let hot = |id, k| f32::from(u8::from(id == k));
            let product = |id, j| (0..v).map(|k| hot(id, k) * table[k * e + j]).sum();
            Ok(ids.iter().flat_map(|&id| (0..e).map(move |j| product(id, j))).collect())
        };
        let verdict = check_lookup(one_hot);
        assert!(verdict.to_string().contains("one-hot"), "{verdict}");

        let assigned: Gradient = |ids, dy, v, e| {
            let mut dtable = vec![0.0; v * e];
            for (t, id) in ids.iter().enumerate() {
                dtable[id * e..][..e].copy_from_slice(&dy[t * e..][..e]);
            }
            dtable
        };
        let verdict = check_gradient(assigned);
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("embedding/gradient-"), "{verdict}");
    }

    #[test]
    fn the_largest_gradient_is_first_and_each_token_once() {
        let text = Text { name: "a test".into(), content: "a b a b a".into(), cut: false };
        let tokens = tokenize(&text).unwrap();
        let ids = &tokens.ids;
        let gradient = right_gradient(ids, &vec![1.0; 2 * ids.len()], 100_277, 2);
        let counted = by_gradient(&tokens, &gradient, 2);
        let seen: Vec<_> = counted.iter().map(|c| (c.piece.as_str(), c.gradient)).collect();
        assert_eq!(seen, [("␣a", 2.0), ("␣b", 2.0), ("a", 1.0)]);
        counts(&counted, 1).unwrap();
    }
}
