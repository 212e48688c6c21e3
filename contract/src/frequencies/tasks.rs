//! The tasks of stretched RoPE, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};

/// The tasks. Each invariant grades at least one of them.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "frequencies/interpolation",
        subject: "one number for all planes",
        place: "frequencies/interpolation",
        chapter: "frequencies#interpolation",
        library: At { file: "src/frequencies/formula.rs", mark: "pub fn interpolated(" },
        grading: Grading::Invariants {
            ids: &["frequencies/interpolation-at-a-multiple", "frequencies/interpolation-any"],
            calls: &["frequencies (interpolated)"],
            by_hand: false,
        },
    },
    Spec {
        name: "frequencies/ntk",
        subject: "one base for all planes",
        place: "frequencies/ntk",
        chapter: "frequencies#ntk",
        library: At { file: "src/frequencies/formula.rs", mark: "pub fn ntk(" },
        grading: Grading::Invariants {
            ids: &[
                "frequencies/part-as-a-small-head",
                "frequencies/ntk-ends",
                "frequencies/ntk-is-one-base",
                "frequencies/ntk-any",
            ],
            calls: &["frequencies (ntk)"],
            by_hand: false,
        },
    },
    Spec {
        name: "frequencies/dynamic",
        subject: "a base by the length of the text",
        place: "frequencies/dynamic",
        chapter: "frequencies#dynamic",
        library: At { file: "src/frequencies/formula.rs", mark: "pub fn dynamic_ntk(" },
        grading: Grading::Invariants {
            ids: &[
                "frequencies/dynamic-short-is-plain",
                "frequencies/dynamic-slowest-plane",
                "frequencies/dynamic-forgets",
                "frequencies/length-from-the-start",
                "frequencies/dynamic-any",
            ],
            calls: &["frequencies (dynamic)"],
            by_hand: false,
        },
    },
    Spec {
        name: "frequencies/longrope",
        subject: "two lists, and a scale",
        place: "frequencies/longrope",
        chapter: "frequencies#longrope",
        library: At { file: "src/frequencies/long.rs", mark: "pub fn longrope(" },
        grading: Grading::Invariants {
            ids: &[
                "frequencies/longrope-list-by-length",
                "frequencies/longrope-any-divisor",
                "frequencies/longrope-scale",
                "frequencies/longrope-any",
            ],
            calls: &["frequencies (longrope)"],
            by_hand: false,
        },
    },
    Spec {
        name: "frequencies/yarn",
        subject: "a ramp over the planes, and a scale",
        place: "frequencies/yarn",
        chapter: "frequencies#yarn",
        library: At { file: "src/frequencies/yarn.rs", mark: "pub fn yarn(" },
        grading: Grading::Invariants {
            ids: &[
                "frequencies/yarn-ends",
                "frequencies/yarn-ramp",
                "frequencies/yarn-not-rounded",
                "frequencies/yarn-scale",
                "frequencies/yarn-between",
                "frequencies/yarn-any",
            ],
            calls: &["frequencies (yarn)"],
            by_hand: false,
        },
    },
    Spec {
        name: "frequencies/llama3",
        subject: "three bands of planes",
        place: "frequencies/llama3",
        chapter: "frequencies#llama3",
        library: At { file: "src/frequencies/formula.rs", mark: "pub fn llama3(" },
        grading: Grading::Invariants {
            ids: &[
                "frequencies/llama3-three-bands",
                "frequencies/llama3-a-quarter",
                "frequencies/llama3-no-jump",
                "frequencies/llama3-turns-alone",
                "frequencies/llama3-any",
            ],
            calls: &["frequencies (llama3)"],
            by_hand: false,
        },
    },
    Spec {
        name: "frequencies/turn",
        subject: "the rotation of a part of a head, with a scale",
        place: "frequencies/turn",
        chapter: "frequencies#turning",
        library: At { file: "src/rope/tables.rs", mark: "pub fn from_turns(" },
        grading: Grading::Invariants {
            ids: &[
                "frequencies/turn-first-step",
                "frequencies/rest-of-a-head-stays",
                "frequencies/part-turns-as-a-small-head",
                "frequencies/length-times-scale",
                "frequencies/scores-by-distance",
                "frequencies/pieces-are-the-whole",
                "frequencies/forward-any",
            ],
            calls: &["forward"],
            by_hand: false,
        },
    },
    Spec {
        name: "frequencies/gradient",
        subject: "the gradients of x and of the frequencies by hand",
        place: "frequencies/gradient",
        chapter: "frequencies#gradient",
        library: At { file: "src/frequencies/learnable/formula.rs", mark: "fn theta_backward<" },
        grading: Grading::Invariants {
            ids: &[
                "frequencies/gradient-turns-back",
                "frequencies/theta-by-hand",
                "frequencies/theta-adds-up",
                "frequencies/theta-differences",
                "frequencies/dx-any",
                "frequencies/dtheta-any",
            ],
            calls: &["backward (dx)", "backward (dtheta)"],
            by_hand: true,
        },
    },
];
