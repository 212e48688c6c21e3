//! AbsolutePositions of PyTorch.

use super::{PyTorch, plain};
use crate::parties::{Seat, seat};
use contract::party::{AbsolutePositions, AbsolutePositionsCase, Reply};
use serde_json::json;

/// The seat.
pub const SEAT: Seat<PyTorch> = seat!(AbsolutePositions, &[]);

impl AbsolutePositions for PyTorch {
    fn forward(&self, case: &AbsolutePositionsCase) -> Reply<Vec<f32>> {
        let AbsolutePositionsCase { shape, x } = case;
        self.ask_f32(json!({"call": "absolute.forward", "shape": shape, "x": plain(x)}))
    }
}
