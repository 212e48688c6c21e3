//! Repairs of a VocabEmbedding.

use crate::embedding::interface::*;
use crate::oracle::random;
use crate::repair::{Repair, line, number, same};

type Embedding = dyn VocabEmbedding;

/// They are tried in this order.
pub static REPAIRS: &[Repair<Embedding>] = &[
    Repair { call: "initial_table", explain: distribution },
    Repair { call: "forward", explain: ids },
];

fn distribution(embedding: &Embedding) -> Option<String> {
    let init = NormalInit { mean: 0.5, std: 0.25, seed: 42 };
    let table = embedding.initial_table(4, 4, init).ok()?;
    let (mean, std) =
        line(&table, &random::normal(16, NormalInit { mean: 0.0, std: 1.0, ..init }))?;
    let right = same(mean, 0.5) && same(std, 0.25);
    let (mean, std) = (number(mean), number(std));
    (!right).then(|| format!("mean 0.5 and standard deviation 0.25 were taken as {mean} and {std}"))
}

/// The row that each token got.
fn ids(embedding: &Embedding) -> Option<String> {
    let (shape, v, e, ids) = ([2, 3], 7, 2, vec![5, 0, 4, 2, 6, 5]);
    let table: Vec<f32> = (0..v * e).map(|i| 1.003 + 0.5 * i as f32).collect();
    let case = LookupCase { shape, vocab_size: v, embedding_dim: e, table, ids };
    let y = embedding.forward(&case).ok().filter(|found| found.y.len() == 12)?.y;
    let row = |row: &[f32]| case.table.chunks(e).position(|of_table| of_table == row);
    let got: Vec<usize> = y.chunks(e).map(row).collect::<Option<_>>()?;
    (got != case.ids).then(|| format!("the ids {:?} were taken as {got:?}", case.ids))
}
