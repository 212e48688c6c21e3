//! What StretchedRope promises.

use crate::aspect::Aspect;
use crate::breach::*;
use crate::component::{Invariant, NET};
use crate::frequencies::oracle::StretchedRopeLoops;
use crate::frequencies::party::{StretchedRope, StretchedRopeCase};
use crate::ladder::climb;
use crate::laws::U;
use crate::oracle::Oracle;
use crate::run::Run;

type Any = dyn StretchedRope;

/// All of them, the most telling first. TO DO: at least 5, and above this one those that need no oracle.
pub static INVARIANTS: &[Invariant<Any>] = &[Invariant {
    id: "frequencies/forward-any-input",
    sentence: "On any input, the result is what plain f64 loops give.",
    formula: "TO DO: y = …, and how near: |y − y₆₄| ≤ …",
    chapter: "frequencies#definition",
    aspect: Aspect::Statistics,
    weight: 3,
    stays: Some(NET),
    check: forward_any_input,
}];

/// How far a result may be from `expected`, and why.
fn tolerance(expected: f64) -> f64 {
    todo!("the bound for {expected}: count the roundings of the formula, {U} each")
}
const WHY: &str = "TO DO: which roundings were counted";

fn forward_any_input(party: &Any, run: &Run) -> Verdict {
    climb(party, run, "forward")
}

/// What the result must be.
pub(super) fn matches_y(party: &dyn StretchedRope, case: &StretchedRopeCase) -> Step {
    let expected: Vec<f64> = (0..case.x.len()).map(|i| Oracle.element(case, i)).collect();
    answer("forward", || party.forward(case))
        .and_then(|got| {
            within("forward", &case.shape, &got, &expected, |i| tolerance(expected[i]), WHY)
        })
        .map_err(|breach| breach.on(case))
}
