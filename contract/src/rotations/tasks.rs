//! The tasks of Rotations, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};
use crate::types::{By, Rule};

/// The tasks. Each invariant grades at least one of them.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "rotations/forward",
        subject: "the forward pass",
        place: "rotations/forward",
        chapter: "rotations#definition",
        library: At { file: "src/rotations/formula.rs", mark: "pub fn rotations<" },
        grading: Grading::Invariants {
            ids: &["rotations/forward-any-input"],
            calls: &["forward"],
            by_hand: false,
        },
    },
    Spec {
        name: "rotations/types",
        subject: "sizes that do not fit do not compile",
        place: "rotations/types",
        chapter: "rotations#definition",
        library: At { file: "src/rotations/mod.rs", mark: "const fn assert_size" },
        grading: Grading::Types(&TYPES),
    },
];

/// What must compile, and what must not.
static TYPES: Rule = Rule {
    imports: &["exercises::rotations::Rotations", "exercises::prelude::*"],
    sizes: || (0..70).map(|h| vec![h]).collect(),
    fits: |sizes| sizes[0] > 0,
    function: |sizes| format!("() {{ let _: fn() -> _ = Rotations::<{}>::new; }}", sizes[0]),
    refused_by: By::Assertion,
    keeps: None,
};
