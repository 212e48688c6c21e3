//! Correct variants of ScoreBiases.

use crate::biases::oracle::{ScoreBiasesLoops, party};
use crate::biases::party::{ScoreBiases, ScoreBiasesCase};
use crate::component::Variant;

/// The variants. TO DO: those that a tolerance could refuse, such as sums in another order.
pub static VARIANTS: &[Variant<dyn ScoreBiases>] = &[Variant {
    id: "biases/in-f32",
    about: "computes in f32, as most code does",
    party: || party(InF32),
}];

struct InF32;

impl ScoreBiasesLoops for InF32 {
    fn element(&self, case: &ScoreBiasesCase, i: usize) -> f64 {
        todo!("the formula in f32, written another way than the oracle: element {i} for {case}")
    }
}
