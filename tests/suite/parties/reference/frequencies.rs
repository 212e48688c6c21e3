//! StretchedRope of the library.

use super::Library;
use crate::parties::{Seat, seat};
use contract::party::{Reply, StretchedRope, StretchedRopeCase};

/// The seat.
pub const SEAT: Seat<Library> = seat!(StretchedRope, &[]);

impl StretchedRope for Library {
    fn forward(&self, case: &StretchedRopeCase) -> Reply<Vec<f32>> {
        todo!("call the library with {case:?}")
    }
}
