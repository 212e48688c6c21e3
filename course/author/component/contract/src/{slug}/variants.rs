//! Correct variants of {Type}.

use crate::component::Variant;
use crate::{slug}::oracle::{{Type}Loops, implementation};
use crate::{slug}::interface::{{Type}, {Type}Case};

/// The variants. TO DO: those that a tolerance could refuse, such as sums in another order.
pub static VARIANTS: &[Variant<dyn {Type}>] = &[Variant {
    id: "{slug}/in-f32",
    about: "computes in f32, as most code does",
    implementation: || implementation(InF32),
}];

struct InF32;

impl {Type}Loops for InF32 {
    fn element(&self, case: &{Type}Case, i: usize) -> f64 {
        todo!("the formula in f32, written another way than the oracle: element {i} for {case}")
    }
}
