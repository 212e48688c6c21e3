//! Collectives of PyTorch.

use super::{PyTorch, plain};
use crate::parties::{Seat, seat};
use contract::party::{Collectives, CollectivesCase, Reply};
use serde_json::json;

/// The seat.
pub const SEAT: Seat<PyTorch> = seat!(Collectives, &[]);

impl Collectives for PyTorch {
    fn forward(&self, case: &CollectivesCase) -> Reply<Vec<f32>> {
        let CollectivesCase { shape, x } = case;
        self.ask_f32(json!({"call": "collectives.forward", "shape": shape, "x": plain(x)}))
    }
}
