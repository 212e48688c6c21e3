//! {Type} of the library.

use super::{Library, refused};
use crate::implementations::{Adapter, adapter};
use crate::support::tensor;
use contract::interface::{{Type}, {Type}Case, Reply};

/// The adapter.
pub const ADAPTER: Adapter<Library> = adapter!({Type}, &[]);

impl {Type} for Library {
    fn forward(&self, case: &{Type}Case) -> Reply<Vec<f32>> {
        let [b, s, h] = case.shape;
        let y = quadrivium::{slug}::{slug}(tensor(&case.x, (b, s, h)));
        Ok(y.map_err(refused)?.as_vec())
    }
}
