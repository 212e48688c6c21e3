//! What {Type} promises.

use crate::breach::*;
use crate::component::Invariant;
use crate::laws::{U, values};
use crate::oracle::Oracle;
use crate::run::Run;
use crate::{slug}::menu;
use crate::{slug}::oracle::{Type}Loops;
use crate::{slug}::party::{{Type}, {Type}Case};
use proptest::prelude::*;

/// All of them, the most telling first. TO DO: at least 5, and above this one those that need no oracle.
pub static INVARIANTS: &[Invariant<dyn {Type}>] = &[Invariant {
    id: "{slug}/forward-any-input",
    sentence: "On any input, the result is what plain f64 loops give.",
    formula: "TO DO: y = …, and how near: |y − y₆₄| ≤ …",
    chapter: "{slug}#definition",
    weight: 3,
    stays: None,
    check: forward_any_input,
}];

/// Any sizes of the menu, up to three batch rows of up to four tokens.
fn inputs() -> impl Strategy<Value = {Type}Case> {
    let sizes = (1..=3usize, 1..=4usize, prop::sample::select(&menu::HIDDEN[..]));
    sizes.prop_flat_map(|(b, s, h)| {
        values(b * s * h).prop_map(move |x| {Type}Case { shape: [b, s, h], x })
    })
}

/// How far a result may be from `expected`, and why.
fn tolerance(expected: f64) -> f64 {
    todo!("the bound for {expected}: count the roundings of the formula, {U} each")
}
const WHY: &str = "TO DO: which roundings were counted";

fn forward_any_input(party: &dyn {Type}, run: &Run) -> Verdict {
    run.forall(inputs(), |case| {
        let got = answer("forward", || party.forward(case))?;
        let expected: Vec<f64> = (0..case.x.len()).map(|i| Oracle.element(case, i)).collect();
        within("forward", &case.shape, &got, &expected, |i| tolerance(expected[i]), WHY)
    })?;
    Ok(None)
}
