//! The tasks of {Type}, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};
use crate::types::{By, Rule};

/// The tasks. Each invariant grades at least one of them.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "{slug}/forward",
        subject: "the forward pass",
        place: "{slug}/forward",
        needs: &[],
        chapter: "{slug}#definition",
        library: At { file: "src/{slug}/formula.rs", mark: "pub fn {slug}<" },
        grading: Grading::Invariants {
            ids: &["{slug}/forward-any-input"],
            calls: &["forward"],
            by_hand: false,
        },
    },
    Spec {
        name: "{slug}/types",
        subject: "sizes that do not fit do not compile",
        place: "{slug}/types",
        needs: &[],
        chapter: "{slug}#definition",
        library: At { file: "src/{slug}/mod.rs", mark: "const fn assert_size" },
        grading: Grading::Types(&TYPES),
    },
];

/// What must compile, and what must not.
static TYPES: Rule = Rule {
    imports: &["exercises::{slug}::{Type}", "exercises::prelude::*"],
    sizes: || (0..70).map(|h| vec![h]).collect(),
    fits: |sizes| sizes[0] > 0,
    function: |sizes| format!("() {{ let _: fn() -> _ = {Type}::<{}>::new; }}", sizes[0]),
    refused_by: By::Assertion,
    keeps: None,
};
