//! The tasks of ParallelVocabEmbedding, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};
use crate::types::{By, Rule, pairs};

/// The tasks.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "parallel/shard-range",
        subject: "who owns which ids",
        place: "parallel/shard-range",
        needs: &[],
        chapter: "parallel#ranges",
        library: At { file: "src/parallel/shards.rs", mark: "pub fn shard_range(" },
        grading: Grading::Invariants {
            ids: &[
                "parallel/range",
                "parallel/ranges-partition",
                "parallel/uneven-world-refused",
                "parallel/rank-has-no-range",
                "parallel/any-world",
            ],
            calls: &["shard_range"],
            by_hand: false,
        },
    },
    Spec {
        name: "parallel/initial",
        subject: "the first rows of a rank",
        place: "parallel/initial",
        needs: &["embedding/initial", "parallel/shard-range"],
        chapter: "parallel#initial-values",
        library: At { file: "src/parallel/mod.rs", mark: "impl ParallelVocabEmbeddingConfig" },
        grading: Grading::Invariants {
            ids: &[
                "parallel/initial-shard",
                "parallel/initial-mean-and-std",
                "parallel/initial-seed-wraps",
                "parallel/initial-ranks-differ",
                "parallel/initial-any-shard",
            ],
            calls: &["initial_shard"],
            by_hand: false,
        },
    },
    Spec {
        name: "parallel/forward",
        subject: "a rank's part of the lookup",
        place: "parallel/forward",
        needs: &[
            "embedding/refuse",
            "embedding/initial",
            "parallel/shard-range",
            "parallel/initial",
        ],
        chapter: "parallel#lookup",
        library: At { file: "src/parallel/formula.rs", mark: "ANCHOR: parallel" },
        grading: Grading::Invariants {
            ids: &[
                "parallel/owned-rows",
                "parallel/edges",
                "parallel/foreign-tokens-are-zero",
                "parallel/zeros-are-written",
                "parallel/special-values",
                "parallel/ids-kept",
                "parallel/one-rank-answers",
                "parallel/sum-is-the-lookup",
                "parallel/world-of-one",
                "parallel/forward-any-input",
                "parallel/id-refused",
                "parallel/id-refused-in-a-world-of-one",
                "parallel/huge-id-refused",
                "parallel/refusal-names-id",
                "parallel/rank-refused",
                "parallel/foreign-tokens-give-no-gradient",
                "parallel/gradient-slices",
                "parallel/gradient-any-input",
            ],
            calls: &["forward", "backward", "initial_shard"],
            by_hand: false,
        },
    },
    Spec {
        name: "parallel/backward",
        subject: "the gradient by hand",
        place: "parallel/backward",
        needs: &["parallel/shard-range"],
        chapter: "parallel#gradient",
        library: At { file: "src/parallel/formula.rs", mark: "ANCHOR: parallel" },
        grading: Grading::Invariants {
            ids: &[
                "parallel/foreign-tokens-give-no-gradient",
                "parallel/foreign-nan-stays-out",
                "parallel/gradient-counts",
                "parallel/gradient-at-the-edges",
                "parallel/gradient-adds",
                "parallel/gradient-not-of-shard",
                "parallel/gradient-of-a-frequent-token",
                "parallel/gradient-slices",
                "parallel/gradient-any-input",
            ],
            calls: &["backward"],
            by_hand: true,
        },
    },
    Spec {
        name: "parallel/types",
        subject: "uneven shards must not compile",
        place: "parallel/types",
        needs: &[],
        chapter: "shapes#const-assertions",
        library: At { file: "src/parallel/mod.rs", mark: "const fn assert_shards(" },
        grading: Grading::Types(&TYPES),
    },
    Spec {
        name: "parallel/property",
        subject: "an invariant of your own",
        place: "parallel/property",
        needs: &[],
        chapter: "testing#properties",
        library: At { file: "tests/suite/parallel.rs", mark: "//!" },
        grading: Grading::Property { needed: 25 },
    },
];

/// What must compile, and what must not.
static TYPES: Rule = Rule {
    imports: &["exercises::parallel::ParallelVocabEmbedding", "exercises::prelude::*"],
    sizes: pairs,
    fits: |sizes| sizes[1] > 0 && sizes[0] % sizes[1] == 0,
    function: |sizes| {
        let new = format!("ParallelVocabEmbedding::<{}, 3, {}, Cpu>::new", sizes[0], sizes[1]);
        format!("() {{ let _: fn(_, _) -> _ = {new}; }}")
    },
    refused_by: By::Assertion,
    keeps: None,
};
