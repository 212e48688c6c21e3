//! The tasks of StretchedRope, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};
use crate::types::{By, Rule};

/// The tasks. Each invariant grades at least one of them.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "frequencies/forward",
        subject: "the forward pass",
        place: "frequencies/forward",
        chapter: "frequencies#definition",
        library: At { file: "src/frequencies/formula.rs", mark: "pub fn frequencies<" },
        grading: Grading::Invariants {
            ids: &["frequencies/forward-any-input"],
            calls: &["forward"],
            by_hand: false,
        },
    },
    Spec {
        name: "frequencies/types",
        subject: "sizes that do not fit do not compile",
        place: "frequencies/types",
        chapter: "frequencies#definition",
        library: At { file: "src/frequencies/mod.rs", mark: "const fn assert_size" },
        grading: Grading::Types(&TYPES),
    },
];

/// What must compile, and what must not.
static TYPES: Rule = Rule {
    imports: &["exercises::frequencies::StretchedRope", "exercises::prelude::*"],
    sizes: || (0..70).map(|h| vec![h]).collect(),
    fits: |sizes| sizes[0] > 0,
    function: |sizes| format!("() {{ let _: fn() -> _ = StretchedRope::<{}>::new; }}", sizes[0]),
    refused_by: By::Assertion,
    keeps: None,
};
