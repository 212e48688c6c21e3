//! VocabEmbedding: `y[i, j] = table[ids[i, j]]`.

use crate::embedding::interface::{
    Found, LookupCase, Manner, NormalInit, Refusal, Reply, VocabEmbedding,
};
use crate::oracle::{Loops, Oracle, random};
use std::rc::Rc;

/// Any loops as a trait object. What goes over many steps is written for these, below the trait, so that
/// it is compiled once and not once a bug.
pub trait AsLookupLoops {
    /// Itself.
    fn as_loops(&self) -> &dyn LookupLoops;
}

impl<L: LookupLoops> AsLookupLoops for L {
    fn as_loops(&self) -> &dyn LookupLoops {
        self
    }
}

/// The steps of a lookup. A bug writes one of them wrong.
pub trait LookupLoops: AsLookupLoops {
    /// The first table, `[v, e]`.
    fn table(&self, vocab_size: usize, embedding_dim: usize, init: NormalInit) -> Vec<f32> {
        random::normal(vocab_size * embedding_dim, init)
    }

    /// Refuses ids that are no rows of the table.
    fn check(&self, case: &LookupCase) -> Reply<()> {
        check_ids(&case.ids, case.shape, case.vocab_size)
    }

    /// The id of token `t`, counted in row-major order.
    fn id(&self, case: &LookupCase, t: usize) -> usize {
        case.ids[t]
    }

    /// Element `j` of a row of the table.
    fn element(&self, case: &LookupCase, id: usize, j: usize) -> f32 {
        element(&case.table, case.embedding_dim, id, j)
    }

    /// All rows, `[b, s, e]`.
    fn rows(&self, case: &LookupCase) -> Vec<f32> {
        rows(self.as_loops(), case)
    }

    /// The ids as the call leaves them.
    fn ids_after(&self, case: &LookupCase) -> Vec<usize> {
        case.ids.clone()
    }

    /// What one token's `dy` does to one element of the gradient.
    fn add(&self, sum: f64, dy: f64) -> f64 {
        sum + dy
    }

    /// The gradient of the table, `[v, e]`: every token adds its `dy` to its row.
    fn gradient(&self, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
        gradient(self.as_loops(), case, dy)
    }
}

impl LookupLoops for Oracle {}

fn rows(loops: &dyn LookupLoops, case: &LookupCase) -> Vec<f32> {
    let row = |t| {
        let id = loops.id(case, t);
        (0..case.embedding_dim).map(move |j| loops.element(case, id, j))
    };
    (0..case.ids.len()).flat_map(row).collect()
}

fn gradient(loops: &dyn LookupLoops, case: &LookupCase, dy: &[f32]) -> Vec<f64> {
    let e = case.embedding_dim;
    let mut sum = vec![0.0; case.vocab_size * e];
    for t in 0..case.ids.len() {
        let row = case.ids[t];
        for j in 0..e {
            sum[row * e + j] = loops.add(sum[row * e + j], f64::from(dy[t * e + j]));
        }
    }
    sum
}

/// The implementation of some loops.
pub fn implementation(loops: impl LookupLoops + 'static) -> Box<dyn VocabEmbedding> {
    Box::new(Loops::<dyn LookupLoops>(Rc::new(loops)))
}

/// The first id that is not below `v` is refused, by name and place.
pub fn check_ids(ids: &[usize], shape: [usize; 2], vocab_size: usize) -> Reply<()> {
    match ids.iter().position(|&id| id >= vocab_size) {
        Some(t) => Err(Refusal::new(format!(
            "id {} at position [{}, {}] is not below the vocabulary size {vocab_size}",
            ids[t],
            t / shape[1],
            t % shape[1]
        ))),
        None => Ok(()),
    }
}

/// Element `j` of row `row`, or 0 where there is no such row. (A bug may ask for one.)
pub fn element(table: &[f32], embedding_dim: usize, row: usize, j: usize) -> f32 {
    let start = row.saturating_mul(embedding_dim);
    table.get(start.saturating_add(j)).copied().unwrap_or(0.0)
}

/// Refuses values that do not fill their shape.
pub fn check_length(name: &str, shape: &[usize], got: usize) -> Reply<()> {
    if got == shape.iter().product::<usize>() {
        return Ok(());
    }
    Err(Refusal::new(format!("{name} must have shape {shape:?}, got {got} values")))
}

impl Loops<dyn LookupLoops> {
    fn accept(&self, case: &LookupCase) -> Reply<()> {
        check_length("ids", &case.shape, case.ids.len())?;
        check_length("table", &[case.vocab_size, case.embedding_dim], case.table.len())?;
        self.0.check(case)
    }
}

impl VocabEmbedding for Loops<dyn LookupLoops> {
    fn initial_table(
        &self,
        vocab_size: usize,
        embedding_dim: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>> {
        Ok(self.0.table(vocab_size, embedding_dim, init))
    }

    fn forward_in(&self, _: Manner, case: &LookupCase) -> Reply<Found> {
        self.accept(case)?;
        Ok(Found { y: self.0.rows(case), ids_after: self.0.ids_after(case) })
    }

    fn backward_in(&self, _: Manner, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.accept(case)?;
        // The gradient has no place for other ids, no matter what the forward pass makes of them.
        check_ids(&case.ids, case.shape, case.vocab_size)?;
        let [b, s] = case.shape;
        check_length("dy", &[b, s, case.embedding_dim], dy.len())?;
        Ok(self.0.gradient(case, dy).into_iter().map(|sum| sum as f32).collect())
    }
}
