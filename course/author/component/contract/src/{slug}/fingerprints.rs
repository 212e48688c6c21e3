//! Questions to a {Type}.

use crate::component::Fingerprint;
use crate::laws::widen;
use crate::{slug}::interface::{{Type}, {Type}Case};

/// Asks them all. TO DO: questions in which every term of the formula matters, for every call of the interface.
pub fn fingerprints(implementation: &dyn {Type}) -> Vec<Fingerprint> {
    cases()
        .iter()
        .map(|case| Fingerprint::ask("forward", || Ok(widen(&implementation.forward(case)?))))
        .collect()
}

/// Plain values; one large among small ones.
fn cases() -> Vec<{Type}Case> {
    let case = |shape: [usize; 3], value: fn(usize) -> f32| {Type}Case {
        shape,
        x: (0..shape.iter().product()).map(value).collect(),
    };
    vec![
        case([2, 3, 5], |i| 0.75 - 0.25 * i as f32),
        case([1, 2, 8], |i| if i % 8 == 3 { 100.0 } else { 0.5 + 0.125 * i as f32 }),
    ]
}
