//! StretchedRope of PyTorch.

use super::{PyTorch, plain};
use crate::parties::{Seat, seat};
use contract::party::{Reply, StretchedRope, StretchedRopeCase};
use serde_json::json;

/// The seat.
pub const SEAT: Seat<PyTorch> = seat!(StretchedRope, &[]);

impl StretchedRope for PyTorch {
    fn forward(&self, case: &StretchedRopeCase) -> Reply<Vec<f32>> {
        let StretchedRopeCase { shape, x } = case;
        self.ask_f32(json!({"call": "frequencies.forward", "shape": shape, "x": plain(x)}))
    }
}
