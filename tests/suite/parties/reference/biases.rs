//! ScoreBiases of the library.

use super::Library;
use crate::parties::{Seat, seat};
use contract::party::{Reply, ScoreBiases, ScoreBiasesCase};

/// The seat.
pub const SEAT: Seat<Library> = seat!(ScoreBiases, &[]);

impl ScoreBiases for Library {
    fn forward(&self, case: &ScoreBiasesCase) -> Reply<Vec<f32>> {
        todo!("call the library with {case:?}")
    }
}
