//! The interface of VocabEmbedding: what an implementation is asked, and what it answers.

use crate::describe::List;
pub use crate::interface::{Manner, NormalInit, Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// One lookup in a whole table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LookupCase {
    /// `[b, s]`.
    pub shape: [usize; 2],
    /// `v`.
    pub vocab_size: usize,
    /// `e`.
    pub embedding_dim: usize,
    /// `[v, e]`.
    pub table: Vec<f32>,
    /// `[b, s]`.
    pub ids: Vec<usize>,
}

/// What a lookup gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// `[b, s, e]`.
    pub y: Vec<f32>,
    /// The ids as they are after the call, `[b, s]`.
    pub ids_after: Vec<usize>,
}

/// `y[i, j] = table[ids[i, j]]`.
pub trait VocabEmbedding {
    /// The first table, `[v, e]`: normal, in PyTorch's numbers.
    fn initial_table(
        &self,
        vocab_size: usize,
        embedding_dim: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>>;

    /// Rows of the table, `[b, s, e]`. An id that is not below `v` is refused.
    fn forward(&self, case: &LookupCase) -> Reply<Found> {
        self.forward_in(Manner::Plain, case)
    }

    /// The gradient of the table, `[v, e]`, for `dy`, `[b, s, e]`.
    fn backward(&self, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.backward_in(Manner::Plain, case, dy)
    }

    /// [`VocabEmbedding::forward`], asked in this manner.
    fn forward_in(&self, manner: Manner, case: &LookupCase) -> Reply<Found>;

    /// [`VocabEmbedding::backward`], asked in this manner.
    fn backward_in(&self, manner: Manner, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>>;
}

// The cases as a report shows them.

impl Display for LookupCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, vocab_size, embedding_dim, table, ids } = self;
        writeln!(f, "ids {shape:?}, table [{vocab_size}, {embedding_dim}]")?;
        writeln!(f, "ids   = {}", List(ids))?;
        write!(f, "table = {}", List(table))
    }
}
