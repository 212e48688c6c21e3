//! What a task of the exercises is.
//!
//! A component lists its tasks in its `tasks.rs`, as [`Spec`]s. The registry gives them their numbers, by
//! their order, and makes [`Task`]s of them.

use crate::component::Component;
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
    /// A component's tasks, when it is the `place`-th component, counted from 1.
    ///
    /// # Panics
    /// If a task is not in order: it would be graded by nothing. The message names the file.
    pub fn all_of<P: Component + ?Sized>(place: usize) -> Vec<Self> {
        let number = |row| format!("{place}.{}", row + 1);
        P::tasks().iter().enumerate().map(|(row, spec)| Self::new::<P>(number(row), spec)).collect()
    }

    fn new<P: Component + ?Sized>(number: String, spec: &'static Spec) -> Self {
        let (slug, name) = (P::SLUG, spec.name);
        let file = format!("contract/src/{slug}/tasks.rs");
        let own = |name: &str| name.split_once('/').is_some_and(|(component, _)| component == slug);
        assert!(own(name), "{file}: the task {name} must be called {slug}/..., as its folder is");
        let place = P::tasks().iter().find(|task| task.name == spec.place);
        assert!(
            place.is_some(),
            "{file}: {name} is written in the place of {}, which is no task of it",
            spec.place
        );
        let weight = |id: &&str| {
            let found = P::invariants().iter().find(|invariant| invariant.id == *id);
            let Some(found) = found else {
                panic!(
                    "{file}: {name} is graded by {id}, and contract/src/{slug}/laws.rs has no such invariant"
                )
            };
            found.weight
        };
        let points = match spec.grading {
            Grading::Invariants { ids: [], .. } => {
                panic!("{file}: {name} is graded by no invariant")
            }
            Grading::Invariants { ids, .. } => ids.iter().map(weight).sum(),
            Grading::Types => TYPE_POINTS,
            Grading::Property { .. } => PROPERTY_POINTS,
        };
        Self {
            number,
            title: format!("{}: {}", P::NAME, spec.subject),
            component: slug,
            points,
            spec,
        }
    }

    /// The file that it is written in, below `exercises/src`.
    pub fn file(&self) -> String {
        format!("{}.rs", self.component)
    }
}
