//! What a task of the exercises is.
//!
//! A component lists its tasks in its `tasks.rs`, as [`Spec`]s. The registry gives them their numbers, by
//! their order, and makes [`Task`]s of them.

use crate::types::Rule;
use std::ops::Deref;

/// One task, as its component lists it.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Component and subject, such as `norm/forward`.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub subject: &'static str,
    /// The name whose place in the file it is written in: its own, or that of an earlier task that
    /// it looks at from another side.
    pub place: &'static str,
    /// The tasks whose code this one may call: while one of them is wrong, its answers say nothing of this one.
    pub needs: &'static [&'static str],
    /// A chapter of the book and a section in it.
    pub chapter: &'static str,
    /// Where the library has its own version.
    pub library: At,
    /// How it is graded.
    pub grading: Grading,
}

/// A place in a file.
#[derive(Debug, Clone, Copy)]
pub struct At {
    /// The file, named from the workspace.
    pub file: &'static str,
    /// The anchor or the beginning of the item.
    pub mark: &'static str,
}

/// How a task is graded.
#[derive(Debug, Clone, Copy)]
pub enum Grading {
    /// By invariants of the contract.
    Invariants {
        /// Their ids.
        ids: &'static [&'static str],
        /// The calls of the interface that the task is about.
        calls: &'static [&'static str],
        /// Whether gradients are taken from the function that is written by hand, or from the
        /// tape.
        by_hand: bool,
    },
    /// By a program that must compile, and by programs that must not.
    Types(&'static Rule),
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

/// One task in its place among all. What its component says of it is a field as well: `task.name`.
#[derive(Debug)]
pub struct Task {
    /// Its number, such as `1.2`: the component's place and its own.
    pub number: String,
    /// Component and subject, such as `GroupRMSNorm: the forward pass`.
    pub title: String,
    /// The component's slug, which is the name of its file in `exercises/src` too.
    pub component: &'static str,
    /// Points: the weights of its invariants.
    pub points: u32,
    spec: &'static Spec,
}

impl Deref for Task {
    type Target = Spec;

    fn deref(&self) -> &Spec {
        self.spec
    }
}

impl Task {
    /// A task in its place. `weight` knows the weights of the component's invariants.
    ///
    /// # Panics
    /// If it is not in order: it would be graded by nothing. The message names the file to fix.
    pub(crate) fn new(
        number: String,
        (slug, name): (&'static str, &str),
        spec: &'static Spec,
        all: &[Spec],
        weight: impl Fn(&str) -> Option<u32>,
    ) -> Self {
        let (file, task) = (format!("contract/src/{slug}/tasks.rs"), spec.name);
        let own = task.split_once('/').is_some_and(|(component, _)| component == slug);
        assert!(own, "{file}: the task {task} must be called {slug}/..., as its folder is");
        // Its own place, or that of a task before it.
        let before = all.iter().take_while(|other| other.name != task);
        assert!(
            spec.place == task || before.clone().any(|other| other.name == spec.place),
            "{file}: {task} is written in the place of {}, which is no task before it",
            spec.place
        );
        for other in before {
            let alike = match (spec.grading, other.grading) {
                (
                    Grading::Invariants { ids, calls, by_hand },
                    Grading::Invariants { ids: as_ids, calls: as_calls, by_hand: as_by_hand },
                ) => {
                    let same = |a: &[&str], b: &[&str]| {
                        a.len() == b.len() && a.iter().all(|one| b.contains(one))
                    };
                    same(ids, as_ids) && same(calls, as_calls) && by_hand == as_by_hand
                }
                _ => false,
            };
            assert!(!alike, "{file}: {task} is graded exactly as {} is", other.name);
        }
        let points = match spec.grading {
            Grading::Invariants { ids: [], .. } => {
                panic!("{file}: {task} is graded by no invariant")
            }
            Grading::Invariants { calls: [], .. } => {
                panic!(
                    "{file}: {task} lets no call through to the learner's code: name them in `calls`"
                )
            }
            Grading::Invariants { ids, .. } => {
                let weight = |(row, id): (usize, &&str)| {
                    assert!(!ids[..row].contains(id), "{file}: {task} is graded by {id} twice");
                    weight(id).unwrap_or_else(|| {
                        panic!(
                            "{file}: {task} is graded by {id}, and contract/src/{slug}/laws.rs has \
                             no invariant of this name"
                        )
                    })
                };
                ids.iter().enumerate().map(weight).sum()
            }
            Grading::Property { needed: 0 } => {
                panic!("{file}: {task} asks for no bug, and a property that accepts all would pass")
            }
            Grading::Types(_) => TYPE_POINTS,
            Grading::Property { .. } => PROPERTY_POINTS,
        };
        Self { number, title: format!("{name}: {}", spec.subject), component: slug, points, spec }
    }

    /// The file that it is written in, below `exercises/src`.
    pub fn file(&self) -> String {
        format!("{}.rs", self.component)
    }
}
