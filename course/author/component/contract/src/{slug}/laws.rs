//! What {Type} promises.

use crate::violation::*;
use crate::component::{NET, law, laws};
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::U;
use crate::oracle::Oracle;
use crate::run::Run;
use crate::{slug}::oracle::{Type}Loops;
use crate::{slug}::interface::{{Type}, {Type}Case};

type Any = dyn {Type};

// TO DO: at least 5, and before this one those that need no oracle.
laws! { forward_any_input }

/// How far a result may be from `expected`, and why.
fn tolerance(expected: f64) -> f64 {
    todo!("the bound for {expected}: count the roundings of the formula, {U} each")
}
const WHY: &str = "TO DO: which roundings were counted";

/// On any input, the result is what plain f64 loops give.
#[law("{slug}/forward-any-input", see = "{slug}#definition", about = Statistics, points = 3,
    formula = "TO DO: y = …, and how near: |y − y₆₄| ≤ …", stays = NET)]
fn forward_any_input(implementation: &Any, run: &Run) -> Verdict {
    judge_graded_cases(implementation, run, "forward")
}

/// What the result must be.
pub(super) fn matches_y(implementation: &dyn {Type}, case: &{Type}Case) -> Step {
    let expected: Vec<f64> = (0..case.x.len()).map(|i| Oracle.element(case, i)).collect();
    answer("forward", || implementation.forward(case))
        .and_then(|got| within("forward", &case.shape, &got, &expected, |i| tolerance(expected[i]), WHY))
        .map_err(|violation| violation.on(case))
}
