//! The tasks of GroupRMSNorm, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};
use crate::types::{By, Rule, pairs};

/// The tasks.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "norm/uniform",
        subject: "the first gamma",
        place: "norm/uniform",
        needs: &[],
        chapter: "norm#initial-values",
        library: At { file: "src/init.rs", mark: "fn uniform<" },
        grading: Grading::Invariants {
            ids: &["norm/initial-gamma"],
            calls: &["initial_gamma"],
            by_hand: false,
        },
    },
    Spec {
        name: "norm/forward",
        subject: "the forward pass",
        place: "norm/forward",
        needs: &[],
        chapter: "norm#definition",
        library: At { file: "src/norm/formula.rs", mark: "ANCHOR: norm_forward" },
        grading: Grading::Invariants {
            ids: &[
                "norm/statistics-in-f32",
                "norm/eps-inside-root",
                "norm/zero-group",
                "norm/mean-square-is-one",
                "norm/not-centred",
                "norm/groups-are-neighbours",
                "norm/groups-are-independent",
                "norm/groups-permute",
                "norm/gamma-per-element",
                "norm/odd",
                "norm/tiny-and-huge",
                "norm/forward-f64-loops",
            ],
            calls: &["forward"],
            by_hand: false,
        },
    },
    Spec {
        name: "norm/tape",
        subject: "the gradient that the tape gives",
        place: "norm/forward",
        needs: &[],
        chapter: "norm#tape",
        library: At { file: "src/norm/formula.rs", mark: "ANCHOR: norm_backward" },
        grading: Grading::Invariants {
            ids: &["norm/gradient-differences", "norm/gradient-of-gamma", "norm/gradient-of-x"],
            calls: &["backward (dx)", "backward (dgamma)"],
            by_hand: false,
        },
    },
    Spec {
        name: "norm/backward",
        subject: "the gradient by hand",
        place: "norm/backward",
        needs: &[],
        chapter: "norm#gradient",
        library: At { file: "src/norm/formula.rs", mark: "ANCHOR: norm_backward" },
        grading: Grading::Invariants {
            ids: &[
                "norm/gradient-at-zero",
                "norm/gradient-along-x",
                "norm/gradient-of-gamma",
                "norm/gradient-of-x",
            ],
            calls: &["backward (dx)", "backward (dgamma)"],
            by_hand: true,
        },
    },
    Spec {
        name: "norm/half",
        subject: "half precision",
        place: "norm/half",
        needs: &["norm/forward"],
        chapter: "norm#precision",
        library: At { file: "src/norm/formula.rs", mark: "ANCHOR: norm_forward" },
        grading: Grading::Invariants {
            ids: &[
                "norm/half-result-is-half",
                "norm/half-does-not-overflow",
                "norm/half-rounds-once",
            ],
            calls: &["forward_half"],
            by_hand: false,
        },
    },
    Spec {
        name: "norm/types",
        subject: "groups that do not fit must not compile",
        place: "norm/types",
        needs: &[],
        chapter: "shapes#const-assertions",
        library: At { file: "src/norm/mod.rs", mark: "const fn assert_groups(" },
        grading: Grading::Types(&TYPES),
    },
    Spec {
        name: "norm/property",
        subject: "an invariant of your own",
        place: "norm/property",
        needs: &[],
        chapter: "testing#properties",
        library: At { file: "tests/suite/norm.rs", mark: "//!" },
        grading: Grading::Property { needed: 20 },
    },
];

/// What must compile, and what must not.
static TYPES: Rule = Rule {
    imports: &["exercises::norm::GroupRmsNorm", "exercises::prelude::*"],
    sizes: pairs,
    fits: |sizes| sizes[1] > 0 && sizes[0] % sizes[1] == 0,
    function: |sizes| {
        let [h, group_size] = [sizes[0], sizes[1]];
        format!("() {{ let _: fn(_, _) -> _ = GroupRmsNorm::<{h}, {group_size}, Cpu>::new; }}")
    },
    refused_by: By::Assertion,
    keeps: None,
};
