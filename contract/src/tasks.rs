//! The tasks of the exercises: what each asks for, and by which invariants it is graded.

use crate::component::Component;
use crate::party::{GroupRmsNorm, NtkAwareRope, ParallelVocabEmbedding, VocabEmbedding};

/// One task.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// Its number, such as `1.2`.
    pub number: &'static str,
    /// File and subject, such as `norm::forward`.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub title: &'static str,
    /// The number whose place in the file it is written in: its own, or an earlier one that it
    /// looks at from another side.
    pub region: &'static str,
    /// A chapter of the book and a section in it.
    pub chapter: &'static str,
    /// How it is graded.
    pub grading: Grading,
}

/// How a task is graded.
#[derive(Debug, Clone, Copy)]
pub enum Grading {
    /// By invariants of the contract.
    Invariants {
        /// Their ids.
        ids: &'static [&'static str],
        /// The calls of the seam that the task is about.
        calls: &'static [&'static str],
        /// Whether gradients are taken from the function that is written by hand, or from the
        /// tape.
        by_hand: bool,
    },
    /// By a program that must compile, and by programs that must not.
    Types,
    /// By the known bugs that the learner's own invariant catches.
    Property {
        /// How many it must catch.
        needed: usize,
    },
}

/// Points of a task about types.
const TYPE_POINTS: u32 = 3;
/// Points of a task about a property.
const PROPERTY_POINTS: u32 = 4;

impl Task {
    /// The file that it is written in, below `exercises/src`.
    pub fn file(&self) -> String {
        format!("{}.rs", self.module())
    }

    /// The module that it is written in.
    pub fn module(&self) -> &'static str {
        self.name.split("::").next().unwrap_or(self.name)
    }

    /// Points: the weights of its invariants.
    pub fn points(&self) -> u32 {
        match self.grading {
            Grading::Invariants { ids, .. } => ids.iter().map(|id| weight(id)).sum(),
            Grading::Types => TYPE_POINTS,
            Grading::Property { .. } => PROPERTY_POINTS,
        }
    }
}

fn weight(id: &str) -> u32 {
    fn of<P: Component + ?Sized>(id: &str) -> Option<u32> {
        P::invariants().iter().find(|invariant| invariant.id == id).map(|found| found.weight)
    }
    of::<dyn GroupRmsNorm>(id)
        .or_else(|| of::<dyn VocabEmbedding>(id))
        .or_else(|| of::<dyn ParallelVocabEmbedding>(id))
        .or_else(|| of::<dyn NtkAwareRope>(id))
        .unwrap_or(0)
}

/// The task with this number.
pub fn task(number: &str) -> Option<&'static Task> {
    TASKS.iter().find(|task| task.number == number)
}

/// All tasks, in the order in which they are meant to be done.
pub static TASKS: &[Task] = &[
    Task {
        number: "1.1",
        name: "norm::uniform",
        title: "GroupRMSNorm: the first gamma",
        region: "1.1",
        chapter: "norm#initial-values",
        grading: Grading::Invariants {
            ids: &["norm/initial-gamma"],
            calls: &["initial_gamma"],
            by_hand: false,
        },
    },
    Task {
        number: "1.2",
        name: "norm::forward",
        title: "GroupRMSNorm: the forward pass",
        region: "1.2",
        chapter: "norm#definition",
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
    Task {
        number: "1.3",
        name: "norm::tape",
        title: "GroupRMSNorm: the gradient that the tape gives",
        region: "1.2",
        chapter: "norm#tape",
        grading: Grading::Invariants {
            ids: &["norm/gradient-differences", "norm/gradient-of-gamma", "norm/gradient-of-x"],
            calls: &["backward (dx)", "backward (dgamma)"],
            by_hand: false,
        },
    },
    Task {
        number: "1.4",
        name: "norm::backward",
        title: "GroupRMSNorm: the gradient by hand",
        region: "1.4",
        chapter: "norm#gradient",
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
    Task {
        number: "1.5",
        name: "norm::half",
        title: "GroupRMSNorm: half precision",
        region: "1.5",
        chapter: "norm#precision",
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
    Task {
        number: "1.6",
        name: "norm::types",
        title: "GroupRMSNorm: groups that do not fit must not compile",
        region: "1.6",
        chapter: "shapes#const-assertions",
        grading: Grading::Types,
    },
    Task {
        number: "1.7",
        name: "norm::property",
        title: "GroupRMSNorm: an invariant of your own",
        region: "1.7",
        chapter: "testing#properties",
        grading: Grading::Property { needed: 20 },
    },
    Task {
        number: "2.1",
        name: "vocab_emb::initial",
        title: "VocabEmbedding: the first table",
        region: "2.1",
        chapter: "embedding#initial-values",
        grading: Grading::Invariants {
            ids: &[
                "embedding/initial-normal-short",
                "embedding/initial-normal-long",
                "embedding/initial-normal-tail",
                "embedding/initial-mean-and-std",
                "embedding/initial-seed",
                "embedding/initial-repeats",
            ],
            calls: &["initial_table"],
            by_hand: false,
        },
    },
    Task {
        number: "2.2",
        name: "vocab_emb::refuse",
        title: "VocabEmbedding: ids outside the table",
        region: "2.2",
        chapter: "embedding#refusals",
        grading: Grading::Invariants {
            ids: &[
                "embedding/id-refused",
                "embedding/huge-id-refused",
                "embedding/refusal-names-id",
            ],
            calls: &["check_ids", "forward"],
            by_hand: false,
        },
    },
    Task {
        number: "2.3",
        name: "vocab_emb::forward",
        title: "VocabEmbedding: the lookup",
        region: "2.3",
        chapter: "embedding#lookup",
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
                "embedding/gradient-counts",
                "embedding/gradient-any-input",
            ],
            calls: &["forward", "backward"],
            by_hand: false,
        },
    },
    Task {
        number: "2.4",
        name: "vocab_emb::backward",
        title: "VocabEmbedding: the gradient by hand",
        region: "2.4",
        chapter: "embedding#gradient",
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
    Task {
        number: "2.5",
        name: "vocab_emb::types",
        title: "VocabEmbedding: the width belongs to the type",
        region: "2.5",
        chapter: "shapes#widths",
        grading: Grading::Types,
    },
    Task {
        number: "2.6",
        name: "vocab_emb::property",
        title: "VocabEmbedding: an invariant of your own",
        region: "2.6",
        chapter: "testing#properties",
        grading: Grading::Property { needed: 25 },
    },
    Task {
        number: "3.1",
        name: "parallel_vocab_emb::range",
        title: "ParallelVocabEmbedding: who owns which ids",
        region: "3.1",
        chapter: "parallel#ranges",
        grading: Grading::Invariants {
            ids: &[
                "parallel/range",
                "parallel/ranges-partition",
                "parallel/uneven-world-refused",
                "parallel/rank-has-no-range",
            ],
            calls: &["shard_range"],
            by_hand: false,
        },
    },
    Task {
        number: "3.2",
        name: "parallel_vocab_emb::initial",
        title: "ParallelVocabEmbedding: the first rows of a rank",
        region: "3.2",
        chapter: "parallel#initial-values",
        grading: Grading::Invariants {
            ids: &[
                "parallel/initial-shard",
                "parallel/initial-mean-and-std",
                "parallel/initial-seed-wraps",
                "parallel/initial-ranks-differ",
            ],
            calls: &["initial_shard"],
            by_hand: false,
        },
    },
    Task {
        number: "3.3",
        name: "parallel_vocab_emb::forward",
        title: "ParallelVocabEmbedding: a rank's part of the lookup",
        region: "3.3",
        chapter: "parallel#lookup",
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
                "parallel/id-refused",
                "parallel/id-refused-in-a-world-of-one",
                "parallel/huge-id-refused",
                "parallel/refusal-names-id",
                "parallel/rank-refused",
                "parallel/foreign-tokens-give-no-gradient",
                "parallel/gradient-slices",
            ],
            calls: &["forward", "backward", "initial_shard"],
            by_hand: false,
        },
    },
    Task {
        number: "3.4",
        name: "parallel_vocab_emb::backward",
        title: "ParallelVocabEmbedding: the gradient by hand",
        region: "3.4",
        chapter: "parallel#gradient",
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
            ],
            calls: &["backward"],
            by_hand: true,
        },
    },
    Task {
        number: "3.5",
        name: "parallel_vocab_emb::types",
        title: "ParallelVocabEmbedding: uneven shards must not compile",
        region: "3.5",
        chapter: "shapes#const-assertions",
        grading: Grading::Types,
    },
    Task {
        number: "3.6",
        name: "parallel_vocab_emb::property",
        title: "ParallelVocabEmbedding: an invariant of your own",
        region: "3.6",
        chapter: "testing#properties",
        grading: Grading::Property { needed: 25 },
    },
    Task {
        number: "4.1",
        name: "pos_emb::frequencies",
        title: "RoPE: the frequencies",
        region: "4.1",
        chapter: "rope#frequencies",
        grading: Grading::Invariants {
            ids: &[
                "rope/fastest-plane-first",
                "rope/plain-frequencies",
                "rope/ntk-slows-last-plane",
                "rope/ntk-constant-quotient",
                "rope/ntk-composes",
                "rope/frequencies-f64-loops",
                "rope/frequencies-refuse",
            ],
            calls: &["frequencies"],
            by_hand: false,
        },
    },
    Task {
        number: "4.2",
        name: "pos_emb::tables",
        title: "RoPE: the tables",
        region: "4.2",
        chapter: "rope#tables",
        grading: Grading::Invariants {
            ids: &[
                "rope/tables-position-zero",
                "rope/tables-position-one",
                "rope/tables-equal-halves",
                "rope/tables-on-circle",
                "rope/tables-rows",
                "rope/tables-precision",
                "rope/tables-f64-loops",
            ],
            calls: &["tables"],
            by_hand: false,
        },
    },
    Task {
        number: "4.3",
        name: "pos_emb::rotate",
        title: "RoPE: the rotation",
        region: "4.3",
        chapter: "rope#rotation",
        grading: Grading::Invariants {
            ids: &[
                "rope/rotate-unit-vector",
                "rope/rotate-position-zero",
                "rope/rotate-keeps-lengths",
                "rope/rotate-linear",
                "rope/rotate-same-for-all",
                "rope/rotate-planes-apart",
                "rope/rotate-composes",
                "rope/rotate-f64-loops",
                "rope/gradient-f64-loops",
            ],
            calls: &["rotate", "rotate_backward"],
            by_hand: false,
        },
    },
    Task {
        number: "4.4",
        name: "pos_emb::backward",
        title: "RoPE: the gradient by hand",
        region: "4.4",
        chapter: "rope#gradient",
        grading: Grading::Invariants {
            ids: &[
                "rope/gradient-turns-back",
                "rope/gradient-keeps-lengths",
                "rope/gradient-undoes",
                "rope/gradient-adjoint",
                "rope/gradient-f64-loops",
            ],
            calls: &["rotate_backward", "rotate"],
            by_hand: true,
        },
    },
    Task {
        number: "4.5",
        name: "pos_emb::interleave",
        title: "RoPE: adjacent pairs",
        region: "4.5",
        chapter: "rope#layouts",
        grading: Grading::Invariants {
            ids: &["rope/interleaved-order"],
            calls: &["to_interleaved"],
            by_hand: false,
        },
    },
    Task {
        number: "4.6",
        name: "pos_emb::back",
        title: "RoPE: and back",
        region: "4.6",
        chapter: "rope#layouts",
        grading: Grading::Invariants {
            ids: &[
                "rope/half-split-order",
                "rope/layouts-round-trip",
                "rope/rotate-interleaved",
                "rope/layouts-agree",
            ],
            calls: &["to_half_split", "to_interleaved", "rotate"],
            by_hand: false,
        },
    },
    Task {
        number: "4.7",
        name: "pos_emb::ratio",
        title: "RoPE: the ratio for a long call",
        region: "4.7",
        chapter: "rope#long-calls",
        grading: Grading::Invariants {
            ids: &["rope/long-ratio-edges", "rope/long-ratio-smallest-even"],
            calls: &["ratio_for_length"],
            by_hand: false,
        },
    },
    Task {
        number: "4.8",
        name: "pos_emb::module",
        title: "RoPE: the module and its cache",
        region: "4.8",
        chapter: "rope#long-calls",
        grading: Grading::Invariants {
            ids: &[
                "rope/fresh-state",
                "rope/turns-by-position",
                "rope/relative-positions",
                "rope/offset",
                "rope/exact-end-uses-cache",
                "rope/offset-counts-in-length",
                "rope/long-call-ratio",
                "rope/long-call-same-either-way",
                "rope/static-state-stays",
                "rope/dynamic-grows",
                "rope/dynamic-later-calls",
                "rope/dynamic-grows-again",
                "rope/dynamic-never-shrinks",
                "rope/large-positions",
                "rope/overflow-is-refused",
                "rope/refused-call-changes-nothing",
                "rope/settings-refused",
                "rope/modules-are-apart",
                "rope/module-f64-loops",
            ],
            calls: &["build", "forward", "state"],
            by_hand: false,
        },
    },
    Task {
        number: "4.9",
        name: "pos_emb::types",
        title: "RoPE: heads that can't be turned must not compile",
        region: "4.9",
        chapter: "shapes#const-assertions",
        grading: Grading::Types,
    },
    Task {
        number: "4.10",
        name: "pos_emb::property",
        title: "RoPE: an invariant of your own",
        region: "4.10",
        chapter: "testing#properties",
        grading: Grading::Property { needed: 30 },
    },
];
