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
];
