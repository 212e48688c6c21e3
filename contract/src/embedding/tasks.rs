//! The tasks of VocabEmbedding, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};
use crate::types::{By, Keeps, Rule};

/// The tasks.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "embedding/refuse",
        subject: "ids outside the table",
        place: "embedding/refuse",
        needs: &[],
        chapter: "embedding#refusals",
        library: At { file: "src/embedding/formula.rs", mark: "pub(crate) fn checked_ids<" },
        grading: Grading::Invariants {
            // Good ids are not refused: those at the edges, and any.
            ids: &[
                "embedding/first-and-last-id",
                "embedding/forward-any-input",
                "embedding/id-refused",
                "embedding/huge-id-refused",
                "embedding/refusal-names-id",
            ],
            calls: &["check_ids", "forward"],
            by_hand: false,
        },
    },
    Spec {
        name: "embedding/forward",
        subject: "the lookup",
        place: "embedding/forward",
        needs: &["embedding/refuse"],
        chapter: "embedding#lookup",
        library: At { file: "src/embedding/formula.rs", mark: "ANCHOR: embedding" },
        grading: Grading::Invariants {
            ids: &[
                "embedding/rows-of-the-table",
                "embedding/first-and-last-id",
                "embedding/special-values",
                "embedding/ids-kept",
                "embedding/token-alone",
                "embedding/relabelling",
                "embedding/forward-any-input",
                "embedding/id-refused",
                "embedding/refusal-names-id",
                "embedding/gradient-counts",
                "embedding/gradient-any-input",
            ],
            calls: &["forward", "backward"],
            by_hand: false,
        },
    },
    Spec {
        name: "embedding/backward",
        subject: "the gradient by hand",
        place: "embedding/backward",
        needs: &[],
        chapter: "embedding#gradient",
        library: At { file: "src/embedding/formula.rs", mark: "ANCHOR: embedding" },
        grading: Grading::Invariants {
            ids: &[
                "embedding/gradient-counts",
                "embedding/gradient-adds",
                "embedding/gradient-unused-rows",
                "embedding/gradient-stays-in-its-row",
                "embedding/gradient-linear",
                "embedding/gradient-not-of-table",
                "embedding/gradient-of-a-frequent-token",
                "embedding/gradient-any-input",
            ],
            calls: &["backward"],
            by_hand: true,
        },
    },
    Spec {
        name: "embedding/types",
        subject: "the width belongs to the type",
        place: "embedding/types",
        needs: &["embedding/refuse", "embedding/forward"],
        chapter: "shapes#widths",
        library: At { file: "src/embedding/mod.rs", mark: "type Output =" },
        grading: Grading::Types(&TYPES),
    },
    Spec {
        name: "embedding/initial",
        subject: "the first table",
        place: "embedding/initial",
        needs: &[],
        chapter: "embedding#initial-values",
        library: At { file: "src/init.rs", mark: "fn normal<" },
        grading: Grading::Invariants {
            ids: &[
                "embedding/initial-normal-short",
                "embedding/initial-normal-long",
                "embedding/initial-normal-tail",
                "embedding/initial-mean-and-std",
                "embedding/initial-seed",
                "embedding/initial-repeats",
                "embedding/initial-any-table",
            ],
            calls: &["initial_table"],
            by_hand: false,
        },
    },
    Spec {
        name: "embedding/property",
        subject: "an invariant of your own",
        place: "embedding/property",
        needs: &[],
        chapter: "testing#properties",
        library: At { file: "tests/suite/embedding.rs", mark: "//!" },
        grading: Grading::Property { needed: 25 },
    },
];

/// What must compile, and what must not.
static TYPES: Rule = Rule {
    imports: &[
        "exercises::embedding::VocabEmbedding",
        "exercises::norm::GroupRmsNorm",
        "exercises::prelude::*",
    ],
    sizes: || {
        let widths = [1, 2, 3, 4, 5, 7, 8, 16, 64, 65, 100, 768, 4096].into_iter();
        widths.clone().flat_map(|e| widths.clone().map(move |h| vec![e, h])).collect()
    },
    fits: |sizes| sizes[0] == sizes[1],
    // The rows of the table go into a norm of that width.
    function: |sizes| {
        let [e, h] = [sizes[0], sizes[1]];
        format!(
            "(table: &VocabEmbedding<10, {e}, Cpu>, norm: &GroupRmsNorm<{h}, 1, Cpu>, \
             ids: Tensor<(usize, usize), usize, Cpu>) \
             -> Result<Tensor<(usize, usize, Const<{h}>), f32, Cpu>> {{ Ok(norm.forward(table.forward(ids)?)) }}"
        )
    },
    refused_by: By::Mismatch,
    keeps: Some(Keeps { id: "embedding/rows-of-the-table", calls: &["forward"] }),
};
