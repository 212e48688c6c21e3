//! The tasks of LayerNorm, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};

/// The tasks.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "layernorm/forward",
        subject: "the forward pass",
        place: "layernorm/forward",
        needs: &[],
        chapter: "layernorm#definition",
        library: At { file: "src/layernorm/formula.rs", mark: "ANCHOR: layernorm_forward" },
        grading: Grading::Invariants {
            ids: &[
                "layernorm/shift",
                "layernorm/mean-is-zero",
                "layernorm/variance-is-one",
                "layernorm/eps-inside-root",
                "layernorm/constant-row",
                "layernorm/scale",
                "layernorm/odd",
                "layernorm/rows-are-independent",
                "layernorm/elements-permute",
                "layernorm/gamma-per-element",
                "layernorm/beta-is-added-last",
                "layernorm/rms-norm-if-centred",
                "layernorm/forward-f64-loops",
            ],
            calls: &["forward"],
            by_hand: false,
        },
    },
    Spec {
        name: "layernorm/tape",
        subject: "the gradient that the tape gives",
        place: "layernorm/forward",
        needs: &[],
        chapter: "layernorm#gradient",
        library: At { file: "src/layernorm/formula.rs", mark: "ANCHOR: layernorm_backward" },
        grading: Grading::Invariants {
            ids: &[
                "layernorm/gradient-differences",
                "layernorm/gradient-shift",
                "layernorm/gradient-of-beta",
                "layernorm/gradient-of-gamma",
                "layernorm/gradient-of-x",
            ],
            calls: &["backward (dx)", "backward (dgamma)", "backward (dbeta)"],
            by_hand: false,
        },
    },
    Spec {
        name: "layernorm/backward",
        subject: "the gradient by hand",
        place: "layernorm/backward",
        needs: &[],
        chapter: "layernorm#gradient",
        library: At { file: "src/layernorm/formula.rs", mark: "ANCHOR: layernorm_backward" },
        grading: Grading::Invariants {
            ids: &[
                "layernorm/gradient-of-constant-row",
                "layernorm/gradient-sums-to-zero",
                "layernorm/gradient-shift",
                "layernorm/gradient-along-x",
                "layernorm/gradient-of-beta",
                "layernorm/gradient-of-gamma",
                "layernorm/gradient-of-x",
            ],
            calls: &["backward (dx)", "backward (dgamma)", "backward (dbeta)"],
            by_hand: true,
        },
    },
    Spec {
        name: "layernorm/property",
        subject: "an invariant of your own",
        place: "layernorm/property",
        needs: &[],
        chapter: "testing#properties",
        library: At { file: "tests/suite/layernorm.rs", mark: "//!" },
        grading: Grading::Property { needed: 15 },
    },
];
