//! ScoreBiases of PyTorch.

use super::{PyTorch, plain};
use crate::parties::{Seat, seat};
use contract::party::{Reply, ScoreBiases, ScoreBiasesCase};
use serde_json::json;

/// The seat.
pub const SEAT: Seat<PyTorch> = seat!(ScoreBiases, &[]);

impl ScoreBiases for PyTorch {
    fn forward(&self, case: &ScoreBiasesCase) -> Reply<Vec<f32>> {
        let ScoreBiasesCase { shape, x } = case;
        self.ask_f32(json!({"call": "biases.forward", "shape": shape, "x": plain(x)}))
    }
}
