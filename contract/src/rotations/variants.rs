//! Correct variants of Rotations.

use crate::component::Variant;
use crate::rotations::oracle::{RotationsLoops, party};
use crate::rotations::party::{Rotations, RotationsCase};

/// The variants. TO DO: those that a tolerance could refuse, such as sums in another order.
pub static VARIANTS: &[Variant<dyn Rotations>] = &[Variant {
    id: "rotations/in-f32",
    about: "computes in f32, as most code does",
    party: || party(InF32),
}];

struct InF32;

impl RotationsLoops for InF32 {
    fn element(&self, case: &RotationsCase, i: usize) -> f64 {
        todo!("the formula in f32, written another way than the oracle: element {i} for {case}")
    }
}
