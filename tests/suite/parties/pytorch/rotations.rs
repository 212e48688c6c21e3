//! Rotations of PyTorch.

use super::{PyTorch, plain};
use crate::parties::{Seat, seat};
use contract::party::{Reply, Rotations, RotationsCase};
use serde_json::json;

/// The seat.
pub const SEAT: Seat<PyTorch> = seat!(Rotations, &[]);

impl Rotations for PyTorch {
    fn forward(&self, case: &RotationsCase) -> Reply<Vec<f32>> {
        let RotationsCase { shape, x } = case;
        self.ask_f32(json!({"call": "rotations.forward", "shape": shape, "x": plain(x)}))
    }
}
