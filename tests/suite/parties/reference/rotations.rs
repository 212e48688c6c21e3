//! Rotations of the library.

use super::Library;
use crate::parties::{Seat, seat};
use contract::party::{Reply, Rotations, RotationsCase};

/// The seat.
pub const SEAT: Seat<Library> = seat!(Rotations, &[]);

impl Rotations for Library {
    fn forward(&self, case: &RotationsCase) -> Reply<Vec<f32>> {
        todo!("call the library with {case:?}")
    }
}
