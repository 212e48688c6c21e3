//! AbsolutePositions of the library.

use super::Library;
use crate::parties::{Seat, seat};
use contract::party::{AbsolutePositions, AbsolutePositionsCase, Reply};

/// The seat.
pub const SEAT: Seat<Library> = seat!(AbsolutePositions, &[]);

impl AbsolutePositions for Library {
    fn forward(&self, case: &AbsolutePositionsCase) -> Reply<Vec<f32>> {
        todo!("call the library with {case:?}")
    }
}
