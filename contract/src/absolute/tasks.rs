//! The tasks of absolute positions, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};

/// The tasks. Each invariant grades at least one of them.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "absolute/sinusoids",
        subject: "the table of sinusoids",
        place: "absolute/sinusoids",
        needs: &[],
        chapter: "absolute#definition",
        library: At { file: "src/absolute/formula.rs", mark: "pub fn sinusoids(" },
        grading: Grading::Invariants {
            ids: &[
                "absolute/position-zero",
                "absolute/ten-times-slower",
                "absolute/unit-circles",
                "absolute/far-positions",
                "absolute/rows-are-a-slice",
                "absolute/rows-differ",
                "absolute/distance-in-the-product",
                "absolute/table-f64-loops",
                "absolute/sinusoids-refuse",
            ],
            calls: &["table"],
            by_hand: false,
        },
    },
    Spec {
        name: "absolute/shift",
        subject: "one matrix for a number of steps",
        place: "absolute/shift",
        needs: &["absolute/sinusoids"],
        chapter: "absolute#shift",
        library: At { file: "src/absolute/formula.rs", mark: "pub fn sinusoid_shift(" },
        grading: Grading::Invariants {
            ids: &[
                "absolute/shift-moves",
                "absolute/shift-composes",
                "absolute/shift-keeps-lengths",
                "absolute/shift-f64-loops",
                "absolute/shift-refuses",
            ],
            calls: &["shift", "table"],
            by_hand: false,
        },
    },
    Spec {
        name: "absolute/add",
        subject: "sinusoids that are added to tokens",
        place: "absolute/add",
        needs: &["absolute/sinusoids"],
        chapter: "absolute#adding",
        library: At { file: "src/absolute/formula.rs", mark: "pub fn add_sinusoids<" },
        grading: Grading::Invariants {
            ids: &[
                "absolute/sinusoids-start-at-the-offset",
                "absolute/same-for-each-text",
                "absolute/additive",
                "absolute/not-relative",
                "absolute/adding-refuses",
                "absolute/sinusoids-any-input",
                "absolute/sinusoids-gradient",
            ],
            calls: &["add_sinusoids", "sinusoids_backward"],
            by_hand: false,
        },
    },
    Spec {
        name: "absolute/learned",
        subject: "rows of a learned table, and their gradient",
        place: "absolute/learned",
        needs: &["absolute/sinusoids", "absolute/add"],
        chapter: "absolute#learned",
        library: At { file: "src/absolute/formula.rs", mark: "pub fn add_learned_positions<" },
        grading: Grading::Invariants {
            ids: &[
                "absolute/rows-are-taken",
                "absolute/whole-table",
                "absolute/past-the-table",
                "absolute/refusal-names-the-rows",
                "absolute/refused-past-any-table",
                "absolute/learned-any-input",
                "absolute/gradient-passes",
                "absolute/learned-gradient-of-x",
                "absolute/unseen-rows-stay",
                "absolute/gradient-counts-texts",
                "absolute/gradient-of-the-table",
            ],
            calls: &[
                "add_learned",
                "learned_backward (dx)",
                "learned_backward (dtable)",
                "sinusoids_backward",
            ],
            by_hand: false,
        },
    },
    Spec {
        name: "absolute/property",
        subject: "an invariant of your own",
        place: "absolute/property",
        needs: &[],
        chapter: "absolute#shift",
        library: At { file: "tests/suite/absolute.rs", mark: "//!" },
        grading: Grading::Property { needed: 12 },
    },
];
