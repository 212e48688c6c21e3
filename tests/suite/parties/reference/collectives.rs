//! Collectives of the library.

use super::{Library, refused};
use crate::parties::{Seat, seat};
use crate::support::tensor;
use contract::party::{Collectives, CollectivesCase, Reply};

/// The seat.
pub const SEAT: Seat<Library> = seat!(Collectives, &[]);

impl Collectives for Library {
    fn forward(&self, case: &CollectivesCase) -> Reply<Vec<f32>> {
        let [b, s, h] = case.shape;
        let y = quadrivium::collectives::collectives(tensor(&case.x, (b, s, h)));
        Ok(y.map_err(refused)?.as_vec())
    }
}
