//! The tasks of the model, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};

/// The tasks.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "model/block",
        subject: "a block of the decoder",
        place: "model/block",
        needs: &["norm/forward", "rope/frequencies", "rope/tables", "rope/rotate", "rope/ratio", "rope/module", "attention/repeat", "attention/mask", "attention/forward", "feedforward/forward"],
        chapter: "model#block",
        library: At { file: "src/model/formula.rs", mark: "ANCHOR: block" },
        grading: Grading::Invariants {
            ids: &[
                "model/nothing-added",
                "model/each-half-alone",
                "model/gamma-folds",
                "model/equal-tokens",
                "model/heads-change-places",
                "model/later-tokens-unseen",
                "model/block-f64-loops",
            ],
            calls: &["block"],
            by_hand: false,
        },
    },
    Spec {
        name: "model/forward",
        subject: "from ids to logits",
        place: "model/forward",
        needs: &["norm/forward", "embedding/refuse", "embedding/forward", "rope/frequencies", "rope/tables", "rope/rotate", "rope/ratio", "rope/module", "attention/repeat", "attention/mask", "attention/forward", "feedforward/forward", "model/block"],
        chapter: "model#whole",
        library: At { file: "src/model/llama.rs", mark: "ANCHOR: llama_forward" },
        grading: Grading::Invariants {
            ids: &["model/idle-block", "model/last-norm", "model/tied", "model/forward-f64-loops"],
            calls: &["forward"],
            by_hand: false,
        },
    },
    Spec {
        name: "model/decode",
        subject: "a text in pieces, with caches",
        place: "model/decode",
        needs: &["norm/forward", "embedding/refuse", "embedding/forward", "rope/frequencies", "rope/tables", "rope/rotate", "rope/ratio", "rope/module", "attention/repeat", "attention/mask", "attention/forward", "attention/cache", "feedforward/forward", "model/block", "model/forward"],
        chapter: "model#decoding",
        library: At { file: "src/model/llama.rs", mark: "ANCHOR: llama_decode" },
        grading: Grading::Invariants {
            ids: &["model/pieces", "model/decode-f64-loops", "model/full-cache-refused"],
            calls: &["forward", "decode"],
            by_hand: false,
        },
    },
    Spec {
        name: "model/sample",
        subject: "the next token",
        place: "model/sample",
        needs: &[],
        chapter: "model#sampling",
        library: At { file: "src/model/sampling.rs", mark: "ANCHOR: sample" },
        grading: Grading::Invariants {
            ids: &[
                "model/greedy",
                "model/temperature-divides",
                "model/often-as-probable",
                "model/cuts-keep-enough",
                "model/edge-of-a-token",
                "model/sample-f64-loops",
                "model/sample-refuses",
            ],
            calls: &["sample"],
            by_hand: false,
        },
    },
    Spec {
        name: "model/learn",
        subject: "a step of training",
        place: "model/learn",
        needs: &["norm/forward", "embedding/refuse", "embedding/forward", "rope/frequencies", "rope/tables", "rope/rotate", "rope/ratio", "rope/module", "attention/repeat", "attention/mask", "attention/forward", "attention/cache", "feedforward/forward", "loss/shift", "loss/forward", "model/block", "model/forward", "model/decode"],
        chapter: "model#learning",
        library: At { file: "src/training/mod.rs", mark: "//!" },
        grading: Grading::Invariants {
            ids: &[
                "model/loss-of-equal-logits",
                "model/loss-is-of-the-next",
                "model/step-lowers-loss",
                "model/step-f64-loops",
                "model/unknown-id",
            ],
            calls: &["forward", "decode", "train"],
            by_hand: false,
        },
    },
];
