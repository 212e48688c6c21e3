//! VocabEmbedding of the library.

use super::*;
use crate::implementations::{Adapter, adapter};
use contract::interface::*;
use quadrivium::VocabEmbeddingConfig;
use quadrivium::embedding::vocab_embedding;

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!(VocabEmbedding, &[]);

impl VocabEmbedding for Library {
    fn initial_table(&self, v: usize, e: usize, init: NormalInit) -> Reply<Vec<f32>> {
        let config = VocabEmbeddingConfig {
            init_mean: f64::from(init.mean),
            init_std: f64::from(init.std),
            init_seed: init.seed,
        };
        Ok(config.init().values(v * e))
    }

    fn forward_in(&self, manner: Manner, case: &LookupCase) -> Reply<Found> {
        let table = tensor(&case.table, (case.vocab_size, case.embedding_dim));
        let ids = ids_in(&case.ids, case.shape, manner);
        let y = match manner {
            Manner::Traced => {
                let traced = Trace::<f32, Dev>::leaky_trace(&ids);
                vocab_embedding(traced, &table).map_err(refused)?.as_vec()
            }
            _ => vocab_embedding(ids.clone(), &table).map_err(refused)?.as_vec(),
        };
        Ok(Found { y, ids_after: ids.as_vec() })
    }

    fn backward_in(&self, manner: Manner, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let table = tensor(&case.table, (case.vocab_size, case.embedding_dim));
        let ids = ids_in(&case.ids, case.shape, manner);
        let mut grads = run_back(manner, dy, || {
            vocab_embedding(Trace::<f32, Dev>::leaky_trace(&ids), &table).map_err(refused)
        })?;
        Ok(gradient(&mut grads, &table))
    }
}
