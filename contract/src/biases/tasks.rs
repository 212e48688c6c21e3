//! The tasks of biases in the scores, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};

/// The tasks.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "biases/slopes",
        subject: "ALiBi's slopes",
        place: "biases/slopes",
        needs: &[],
        chapter: "biases#slopes",
        library: At { file: "src/biases/formula.rs", mark: "ANCHOR: alibi_slopes" },
        grading: Grading::Invariants {
            ids: &[
                "biases/slopes-of-powers",
                "biases/slopes-published",
                "biases/slopes-between-neighbours",
                "biases/slopes-any",
            ],
            calls: &["slopes"],
            by_hand: false,
        },
    },
    Spec {
        name: "biases/scores",
        subject: "scores with a bias, and with keys of earlier calls",
        place: "biases/scores",
        needs: &[],
        chapter: "biases#alibi",
        library: At { file: "src/biases/formula.rs", mark: "ANCHOR: alibi_bias" },
        grading: Grading::Invariants {
            ids: &[
                "biases/alibi-by-numbers",
                "biases/alibi-falls",
                "biases/alibi-after-the-scale",
                "biases/alibi-decoding",
                "biases/alibi-no-future",
                "biases/alibi-any",
            ],
            calls: &["alibi"],
            by_hand: false,
        },
    },
    Spec {
        name: "biases/bucket",
        subject: "T5's buckets, and the bias that is read from them",
        place: "biases/bucket",
        needs: &[],
        chapter: "biases#buckets",
        library: At { file: "src/biases/formula.rs", mark: "ANCHOR: t5_bucket" },
        grading: Grading::Invariants {
            ids: &[
                "biases/bucket-edges",
                "biases/bucket-never-decreases",
                "biases/bucket-halves",
                "biases/bucket-of-later-keys",
                "biases/bucket-last-digit",
                "biases/bucket-any",
                "biases/t5-reads-its-bucket",
                "biases/t5-relative",
                "biases/t5-need-not-fall",
                "biases/t5-decoding",
                "biases/t5-any",
            ],
            calls: &["bucket", "t5"],
            by_hand: false,
        },
    },
    Spec {
        name: "biases/t5-backward",
        subject: "the gradient of T5's table",
        place: "biases/t5-backward",
        needs: &["biases/bucket"],
        chapter: "biases#t5-gradient",
        library: At { file: "src/biases/formula.rs", mark: "fn look_up<" },
        grading: Grading::Invariants {
            ids: &[
                "biases/t5-gradient-counts",
                "biases/t5-gradient-differences",
                "biases/t5-gradient-in-f64",
                "biases/t5-gradient-any",
            ],
            calls: &["t5", "t5_backward"],
            by_hand: true,
        },
    },
    Spec {
        name: "biases/kerple",
        subject: "KERPLE, and its slopes",
        place: "biases/kerple",
        needs: &[],
        chapter: "biases#kerple",
        library: At { file: "src/biases/formula.rs", mark: "ANCHOR: kerple" },
        grading: Grading::Invariants {
            ids: &[
                "biases/kerple-nothing-at-0",
                "biases/kerple-falls",
                "biases/kerple-by-numbers",
                "biases/kerple-bounds",
                "biases/kerple-positive-definite",
                "biases/kerple-any",
                "biases/kerple-gradient-differences",
                "biases/kerple-gradient-at-the-bound",
                "biases/kerple-gradient-any",
            ],
            calls: &["kerple", "kerple_backward"],
            by_hand: true,
        },
    },
    Spec {
        name: "biases/transformer-xl",
        subject: "Transformer-XL's scores, shifted or summed directly",
        place: "biases/transformer-xl",
        needs: &[],
        chapter: "biases#transformer-xl",
        library: At {
            file: "src/biases/transformer_xl/formula.rs",
            mark: "ANCHOR: relative_scores",
        },
        grading: Grading::Invariants {
            ids: &[
                "biases/xl-content-alone",
                "biases/xl-place-alone",
                "biases/xl-decoding",
                "biases/xl-no-future",
                "biases/xl-any",
            ],
            calls: &["transformer_xl"],
            by_hand: false,
        },
    },
];
