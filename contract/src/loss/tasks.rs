//! The tasks of the loss, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};

/// The tasks.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "loss/shift",
        subject: "inputs and targets of a text",
        place: "loss/shift",
        needs: &[],
        chapter: "loss#shift",
        library: At { file: "src/loss/formula.rs", mark: "ANCHOR: next_tokens" },
        grading: Grading::Invariants {
            ids: &[
                "loss/next-token",
                "loss/next-input-is-the-target",
                "loss/one-token-refused",
                "loss/shift-any-text",
            ],
            calls: &["next_tokens"],
            by_hand: false,
        },
    },
    Spec {
        name: "loss/forward",
        subject: "the loss, and its gradient on the tape",
        place: "loss/forward",
        needs: &[],
        chapter: "loss#definition",
        library: At { file: "src/loss/formula.rs", mark: "ANCHOR: cross_entropy" },
        grading: Grading::Invariants {
            ids: &[
                "loss/uniform",
                "loss/two-tokens",
                "loss/shift-of-all-logits",
                "loss/far-logits",
                "loss/forbidden-token",
                "loss/tokens-permute",
                "loss/ignored-has-no-part",
                "loss/mean-over-what-is-asked",
                "loss/nothing-asked-refused",
                "loss/refusal-names-target",
                "loss/forward-f64-loops",
                "loss/gradient-of-ignored-nan",
                "loss/gradient-differences",
                "loss/gradient-f64-loops",
            ],
            calls: &["forward", "backward"],
            by_hand: false,
        },
    },
    Spec {
        name: "loss/backward",
        subject: "the gradient by hand",
        place: "loss/backward",
        needs: &[],
        chapter: "loss#gradient",
        library: At { file: "src/loss/formula.rs", mark: "fn entropy_backward<" },
        grading: Grading::Invariants {
            ids: &[
                "loss/gradient-of-uniform",
                "loss/gradient-sums-to-zero",
                "loss/gradient-of-ignored-is-zero",
                "loss/gradient-of-ignored-nan",
                "loss/gradient-of-a-scaled-loss",
                "loss/gradient-f64-loops",
            ],
            calls: &["backward"],
            by_hand: true,
        },
    },
    Spec {
        name: "loss/perplexity",
        subject: "the perplexity of a text in parts",
        place: "loss/perplexity",
        needs: &[],
        chapter: "loss#perplexity",
        library: At { file: "src/loss/mod.rs", mark: "pub fn perplexity(" },
        grading: Grading::Invariants {
            ids: &[
                "loss/perplexity-of-uniform",
                "loss/perplexity-of-parts",
                "loss/perplexity-any-parts",
            ],
            calls: &["perplexity"],
            by_hand: false,
        },
    },
];
