//! The tasks of SwiGLU, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};

/// The tasks.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "feedforward/size",
        subject: "the size between",
        place: "feedforward/size",
        needs: &[],
        chapter: "feedforward#size",
        library: At { file: "src/feedforward/formula.rs", mark: "ANCHOR: ffn_hidden_size" },
        grading: Grading::Invariants {
            ids: &[
                "feedforward/size-of-llama",
                "feedforward/size-is-a-multiple",
                "feedforward/size-any",
            ],
            calls: &["size"],
            by_hand: false,
        },
    },
    Spec {
        name: "feedforward/forward",
        subject: "the forward pass, and its gradient on the tape",
        place: "feedforward/forward",
        needs: &[],
        chapter: "feedforward#definition",
        library: At { file: "src/feedforward/mod.rs", mark: "fn try_forward(" },
        grading: Grading::Invariants {
            ids: &[
                "feedforward/silu-by-numbers",
                "feedforward/closed-gate",
                "feedforward/open-gate",
                "feedforward/gate-and-its-negative",
                "feedforward/linear-in-up-and-down",
                "feedforward/units-permute",
                "feedforward/tokens-are-independent",
                "feedforward/forward-f64-loops",
                "feedforward/gradient-differences",
                "feedforward/gradient-along-the-weights",
                "feedforward/gradient-of-down",
                "feedforward/gradient-of-up",
                "feedforward/gradient-of-the-gate",
                "feedforward/gradient-of-x",
            ],
            calls: &[
                "forward",
                "backward (dx)",
                "backward (dgate)",
                "backward (dup)",
                "backward (ddown)",
            ],
            by_hand: false,
        },
    },
    Spec {
        name: "feedforward/gate-backward",
        subject: "the gate's gradient by hand",
        place: "feedforward/gate-backward",
        needs: &[],
        chapter: "feedforward#gradient",
        library: At { file: "src/feedforward/formula.rs", mark: "fn gate_backward<" },
        grading: Grading::Invariants {
            ids: &[
                "feedforward/gradient-at-a-closed-gate",
                "feedforward/gradient-of-up",
                "feedforward/gradient-of-the-gate",
                "feedforward/gradient-of-x",
            ],
            calls: &["backward (dx)", "backward (dgate)", "backward (dup)"],
            by_hand: true,
        },
    },
];
