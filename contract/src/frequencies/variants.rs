//! Correct variants of StretchedRope.

use crate::component::Variant;
use crate::frequencies::oracle::{StretchedRopeLoops, party};
use crate::frequencies::party::{StretchedRope, StretchedRopeCase};

/// The variants. TO DO: those that a tolerance could refuse, such as sums in another order.
pub static VARIANTS: &[Variant<dyn StretchedRope>] = &[Variant {
    id: "frequencies/in-f32",
    about: "computes in f32, as most code does",
    party: || party(InF32),
}];

struct InF32;

impl StretchedRopeLoops for InF32 {
    fn element(&self, case: &StretchedRopeCase, i: usize) -> f64 {
        todo!("the formula in f32, written another way than the oracle: element {i} for {case}")
    }
}
