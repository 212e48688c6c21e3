//! The tasks of ScoreBiases, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};
use crate::types::{By, Rule};

/// The tasks. Each invariant grades at least one of them.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "biases/forward",
        subject: "the forward pass",
        place: "biases/forward",
        chapter: "biases#definition",
        library: At { file: "src/biases/formula.rs", mark: "pub fn biases<" },
        grading: Grading::Invariants {
            ids: &["biases/forward-any-input"],
            calls: &["forward"],
            by_hand: false,
        },
    },
    Spec {
        name: "biases/types",
        subject: "sizes that do not fit do not compile",
        place: "biases/types",
        chapter: "biases#definition",
        library: At { file: "src/biases/mod.rs", mark: "const fn assert_size" },
        grading: Grading::Types(&TYPES),
    },
];

/// What must compile, and what must not.
static TYPES: Rule = Rule {
    imports: &["exercises::biases::ScoreBiases", "exercises::prelude::*"],
    sizes: || (0..70).map(|h| vec![h]).collect(),
    fits: |sizes| sizes[0] > 0,
    function: |sizes| format!("() {{ let _: fn() -> _ = ScoreBiases::<{}>::new; }}", sizes[0]),
    refused_by: By::Assertion,
    keeps: None,
};
