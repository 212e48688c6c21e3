//! Questions to a StretchedRope.

use crate::component::Probe;
use crate::frequencies::party::{StretchedRope, StretchedRopeCase};
use crate::laws::widen;

/// Asks them all. TO DO: questions in which every term of the formula matters, for every call of the seam.
pub fn probes(party: &dyn StretchedRope) -> Vec<Probe> {
    cases().iter().map(|case| Probe::ask("forward", || Ok(widen(&party.forward(case)?)))).collect()
}

/// Plain values; one large among small ones.
fn cases() -> Vec<StretchedRopeCase> {
    let case = |shape: [usize; 3], value: fn(usize) -> f32| StretchedRopeCase {
        shape,
        x: (0..shape.iter().product()).map(value).collect(),
    };
    vec![
        case([2, 3, 5], |i| 0.75 - 0.25 * i as f32),
        case([1, 2, 8], |i| if i % 8 == 3 { 100.0 } else { 0.5 + 0.125 * i as f32 }),
    ]
}
