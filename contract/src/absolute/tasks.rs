//! The tasks of AbsolutePositions, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};
use crate::types::{By, Rule};

/// The tasks. Each invariant grades at least one of them.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "absolute/forward",
        subject: "the forward pass",
        place: "absolute/forward",
        chapter: "absolute#definition",
        library: At { file: "src/absolute/formula.rs", mark: "pub fn absolute<" },
        grading: Grading::Invariants {
            ids: &["absolute/forward-any-input"],
            calls: &["forward"],
            by_hand: false,
        },
    },
    Spec {
        name: "absolute/types",
        subject: "sizes that do not fit do not compile",
        place: "absolute/types",
        chapter: "absolute#definition",
        library: At { file: "src/absolute/mod.rs", mark: "const fn assert_size" },
        grading: Grading::Types(&TYPES),
    },
];

/// What must compile, and what must not.
static TYPES: Rule = Rule {
    imports: &["exercises::absolute::AbsolutePositions", "exercises::prelude::*"],
    sizes: || (0..70).map(|h| vec![h]).collect(),
    fits: |sizes| sizes[0] > 0,
    function: |sizes| {
        format!("() {{ let _: fn() -> _ = AbsolutePositions::<{}>::new; }}", sizes[0])
    },
    refused_by: By::Assertion,
    keeps: None,
};
