//! VocabEmbedding of PyTorch.

use super::*;
use crate::implementations::{Adapter, Apart, adapter};
use contract::interface::*;

fn lookup_question(call: &str, case: &LookupCase) -> Value {
    let LookupCase { shape, vocab_size, embedding_dim, table, ids } = case;
    json!({"call": call, "shape": shape, "vocab_size": vocab_size, "embedding_dim": embedding_dim,
           "table": plain(table), "ids": ids})
}

/// Its words name no id.
const APART: &[Apart] =
    &[("embedding/refusal-names-id", "PyTorch says `index out of range in self`")];

/// The adapter.
pub const ADAPTER: Adapter<PyTorch> = adapter!(VocabEmbedding, APART);

impl VocabEmbedding for PyTorch {
    fn initial_table(&self, v: usize, e: usize, init: NormalInit) -> Reply<Vec<f32>> {
        let NormalInit { mean, std, seed } = init;
        self.ask_f32(json!({"call": "embedding.initial_table", "vocab_size": v, "embedding_dim": e,
                            "mean": mean, "std": std, "seed": seed}))
    }

    fn forward_in(&self, _: Manner, case: &LookupCase) -> Reply<Found> {
        let values = self.ask(lookup_question("embedding.forward", case))?;
        Ok(found(values, case.ids.len()))
    }

    fn backward_in(&self, _: Manner, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.ask_f32(with_dy(lookup_question("embedding.backward", case), dy))
    }
}
