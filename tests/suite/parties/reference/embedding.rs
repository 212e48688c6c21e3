//! VocabEmbedding of the library.

use super::*;
use crate::parties::{Seat, seat};
use contract::party::*;
use quadrivium::VocabEmbeddingConfig;
use quadrivium::embedding::vocab_embedding;

/// The seat.
pub const SEAT: Seat<Library> = seat!(VocabEmbedding, &[]);

impl VocabEmbedding for Library {
    fn initial_table(&self, v: usize, e: usize, init: NormalInit) -> Reply<Vec<f32>> {
        let config = VocabEmbeddingConfig {
            init_mean: f64::from(init.mean),
            init_std: f64::from(init.std),
            init_seed: init.seed,
        };
        Ok(config.init().values(v * e))
    }

    fn forward(&self, case: &LookupCase) -> Reply<Found> {
        let [b, s] = case.shape;
        let table = tensor(&case.table, (case.vocab_size, case.embedding_dim));
        let ids = ids(&case.ids, (b, s));
        let y = vocab_embedding(ids.clone(), &table).map_err(refused)?;
        Ok(Found { y: y.as_vec(), ids_after: ids.as_vec() })
    }

    fn backward(&self, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>> {
        let [b, s] = case.shape;
        let table = tensor(&case.table, (case.vocab_size, case.embedding_dim));
        let ids = Trace::<f32, Dev>::leaky_trace(&ids(&case.ids, (b, s)));
        let y = vocab_embedding(ids, &table).map_err(refused)?;
        Ok(gradient(&mut backward(y, dy), &table))
    }
}
