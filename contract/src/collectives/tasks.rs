//! The tasks of the collectives, in the order in which they are meant to be done.

use crate::task::{At, Grading, Spec};

/// The tasks.
pub static TASKS: &[Spec] = &[
    Spec {
        name: "collectives/entropy",
        subject: "the loss of a vocabulary that is cut",
        place: "collectives/entropy",
        needs: &[],
        chapter: "collectives#definition",
        library: At {
            file: "src/collectives/formula.rs",
            mark: "ANCHOR: vocab_parallel_cross_entropy",
        },
        grading: Grading::Invariants {
            ids: &[
                "collectives/everyone-comes",
                "collectives/world-of-one",
                "collectives/same-loss-on-all-ranks",
                "collectives/any-number-of-ranks",
                "collectives/one-owner",
                "collectives/foreign-logits-stay-out",
                "collectives/largest-of-all",
                "collectives/forbidden-shard",
                "collectives/mean-over-tokens",
                "collectives/bad-target-refused-alike",
                "collectives/lost-rank-is-told",
                "collectives/logits-stay",
                "collectives/gradient-of-uniform",
                "collectives/gradient-sums-to-zero",
                "collectives/gradient-any-number-of-ranks",
                "collectives/entropy-f64-loops",
            ],
            calls: &["entropy"],
            by_hand: false,
        },
    },
    Spec {
        name: "collectives/tree-sum",
        subject: "a sum whose bits do not depend on the ranks",
        place: "collectives/tree-sum",
        needs: &[],
        chapter: "collectives#order",
        library: At { file: "src/collectives/formula.rs", mark: "ANCHOR: tree_sum" },
        grading: Grading::Invariants {
            ids: &[
                "collectives/sum-of-all-blocks",
                "collectives/bits-of-one-rank",
                "collectives/same-sum-on-all-ranks",
                "collectives/order-of-the-tree",
                "collectives/one-sum-a-rank",
                "collectives/sum-needs-all-ranks",
                "collectives/sum-any-blocks",
            ],
            calls: &["tree_sum"],
            by_hand: false,
        },
    },
];
