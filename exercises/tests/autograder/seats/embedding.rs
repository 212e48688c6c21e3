//! The learner's VocabEmbedding as a party to the contract.

use super::{Learner, Seat, gradient_of, ids_tensor, run_back, tensor};
use contract::component::Component;
use contract::embedding::party::*;
use contract::grade::{by_bugs, by_invariants};
use contract::with_embedding_sizes;
use exercises::embedding;
use exercises::prelude::{Const, Cpu, Trace};

/// The seat of VocabEmbedding.
pub const SEAT: Seat = Seat {
    slug: <dyn VocabEmbedding>::SLUG,
    invariants: |task, learner, run| by_invariants::<dyn VocabEmbedding>(task, learner, run),
    property: |task| by_bugs::<dyn VocabEmbedding>(task, &|party| embedding::property(party)),
};

impl VocabEmbedding for Learner {
    fn initial_table(&self, v: usize, e: usize, init: NormalInit) -> Reply<Vec<f32>> {
        self.may("initial_table")?;
        Ok(embedding::normal(v * e, init.mean, init.std, init.seed))
    }

    fn forward(&self, case: &LookupCase) -> Reply<Found> {
        if self.may("check_ids").is_ok() {
            // `embedding/refuse` is about refusals alone.
            embedding::check_ids(&case.ids, case.shape, case.vocab_size).map_err(Refusal::new)?;
            // An id that was accepted and should not have been gives zeros.
            let zeros = vec![0.0; case.embedding_dim];
            let rows: Vec<&[f32]> = case.table.chunks(case.embedding_dim).collect();
            let row = |id: &usize| *rows.get(*id).unwrap_or(&zeros.as_slice());
            let y = case.ids.iter().flat_map(row).copied().collect();
            return Ok(Found { y, ids_after: case.ids.clone() });
        }
        self.may("forward")?;
        with_embedding_sizes!((case.vocab_size, case.embedding_dim), |V, E| {
            let table = tensor(&case.table, (Const, Const));
            let ids = ids_tensor(&case.ids, case.shape);
            let y = embedding::VocabEmbedding::<V, E, _>::new(table).forward(ids.clone());
            Ok(Found { y: y.map_err(Refusal::new)?.as_vec(), ids_after: ids.as_vec() })
        }, _ => Err(Refusal::not_compiled("this table")))
    }

    fn backward(&self, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.may("backward")?;
        if self.by_hand {
            return Ok(embedding::backward(&case.ids, dy, case.vocab_size, case.embedding_dim));
        }
        with_embedding_sizes!((case.vocab_size, case.embedding_dim), |V, E| {
            let whole =
                embedding::VocabEmbedding::<V, E, _>::new(tensor(&case.table, (Const, Const)));
            let ids = ids_tensor(&case.ids, case.shape);
            let y = whole.forward(Trace::<f32, Cpu>::leaky_trace(&ids)).map_err(Refusal::new)?;
            Ok(gradient_of(&mut run_back(y, dy), &whole.weight))
        }, _ => Err(Refusal::not_compiled("this table")))
    }
}
