//! Correct variants of AbsolutePositions.

use crate::absolute::oracle::{AbsolutePositionsLoops, party};
use crate::absolute::party::{AbsolutePositions, AbsolutePositionsCase};
use crate::component::Variant;

/// The variants. TO DO: those that a tolerance could refuse, such as sums in another order.
pub static VARIANTS: &[Variant<dyn AbsolutePositions>] = &[Variant {
    id: "absolute/in-f32",
    about: "computes in f32, as most code does",
    party: || party(InF32),
}];

struct InF32;

impl AbsolutePositionsLoops for InF32 {
    fn element(&self, case: &AbsolutePositionsCase, i: usize) -> f64 {
        todo!("the formula in f32, written another way than the oracle: element {i} for {case}")
    }
}
