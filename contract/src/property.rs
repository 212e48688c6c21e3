//! Grading an invariant that a learner wrote: it must accept what is right, and refuse known bugs.

use crate::component::{Component, Exhibit};
use crate::grade::{Grade, TODO, not_graded};
use crate::panics;
use crate::registry::{self, Entry};
use crate::task::{Grading, Task};
use crate::violation::{Fault, Violation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An implementation that a learner's invariant is shown: of variants and bugs, the place among the component's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shown {
    /// The oracle. It is right.
    Oracle,
    /// A correct variant.
    Variant(usize),
    /// A known bug.
    Bug(usize),
}

impl Shown {
    /// All implementations of a component.
    fn all(entry: &Entry) -> Vec<Self> {
        let variants = (0..entry.variants().len()).map(Self::Variant);
        let bugs = (0..entry.exhibits().len()).map(Self::Bug);
        std::iter::once(Self::Oracle).chain(variants).chain(bugs).collect()
    }

    /// Whether an invariant must accept it.
    pub fn is_right(self) -> bool {
        !matches!(self, Self::Bug(_))
    }
}

/// What a learner's invariant said of the implementations of a component.
#[derive(Debug, Default)]
pub struct Refusals {
    /// The words with which it refused some, by their places.
    pub words: BTreeMap<usize, String>,
    /// Whether it was shown all of them. If not, it has caught these at least.
    pub of_all: bool,
}

/// The implementation itself.
pub fn shown_implementation<P: Component + ?Sized>(shown: Shown) -> Box<P> {
    match shown {
        Shown::Oracle => P::oracle(),
        Shown::Variant(place) => (P::variants()[place].implementation)(),
        Shown::Bug(place) => (P::bugs()[place].implementation)(),
    }
}

/// The words with which a learner's invariant refuses an implementation. An `Err` and a panic both refuse.
pub fn refusal_of<P: Component + ?Sized>(
    shown: Shown,
    property: &dyn Fn(&P) -> Result<(), String>,
) -> Option<String> {
    let implementation = shown_implementation::<P>(shown);
    catch_unwind(AssertUnwindSafe(|| property(&implementation).err()))
        .unwrap_or_else(|payload| Some(panics::message(&*payload)))
}

/// Whether the words of a refusal are those of a `todo!()`.
pub fn is_not_begun(words: &str) -> bool {
    words.starts_with(TODO)
}

/// Grades an invariant that the learner wrote, by the known bugs that it catches. It must accept the oracle and
/// all correct variants.
///
/// `ask` shows it to all implementations and gives its refusals, in the same order: see [`refusal_of`]. What it does
/// not get to know is `None`. An `Err` says that they can't be had.
pub fn by_bugs(task: &Task, ask: impl FnOnce(&[Shown]) -> Result<Refusals, Box<Grade>>) -> Grade {
    let Grading::Property { needed } = task.grading else {
        return not_graded(task, "it is not graded by a property, and was asked to be");
    };
    let Some(entry) = registry::component(task.component) else {
        return not_graded(task, "it belongs to no component of the registry");
    };
    let all = Shown::all(entry);
    let Refusals { words, of_all } = match ask(&all) {
        Ok(refusals) => refusals,
        Err(grade) => return *grade,
    };
    let refused: Vec<(Shown, String)> =
        words.into_iter().map(|(place, words)| (all[place], words)).collect();
    let rule = "property/accepts-what-is-right";
    let sentence = "A right implementation is accepted, however it is written.";
    if let Some((_, words)) = refused.iter().find(|(_, words)| is_not_begun(words)) {
        let mut grade = Grade::new(task);
        let message = words.clone();
        grade.fail(rule, sentence, Violation::new("property", Fault::Panicked { message }));
        return grade;
    }
    if let Some((shown, words)) = refused.iter().find(|(shown, _)| shown.is_right()) {
        let whom = match shown {
            Shown::Variant(place) => {
                let (id, about) = entry.variants()[*place];
                format!("a correct variant ({id}: {about})")
            }
            _ => "the oracle, plain f64 loops".to_string(),
        };
        let what = format!(
            "it refuses {whom}. It says: {words}\nIs the tolerance tighter than f32 rounding?"
        );
        return Grade::failed(task, rule, sentence, what);
    }
    let bugs = entry.exhibits();
    let is_caught = |place: usize| refused.iter().any(|(shown, _)| *shown == Shown::Bug(place));
    let (caught, missed): (Vec<_>, Vec<_>) =
        bugs.iter().enumerate().partition(|(place, _)| is_caught(*place));
    if caught.len() < needed {
        let missed = missed.iter().take(5);
        let line =
            |(_, bug): &(usize, &Exhibit)| format!("  {}: code that {}", bug.id, bug.misconception);
        let missed: Vec<String> = missed.map(line).collect();
        let what = format!(
            "it catches {} of {} known bugs, and {needed} are asked for. It misses, for example:\n{}",
            caught.len(),
            bugs.len(),
            missed.join("\n")
        );
        let sentence = "Wrong implementations are refused.";
        return Grade::failed(task, "property/catches-bugs", sentence, what);
    }
    let mut grade = Grade::new(task);
    let (caught, all) = (caught.len(), bugs.len());
    let least = if of_all { "" } else { "at least " };
    grade.remarks.push(format!("your invariant catches {least}{caught} of {all} known bugs"));
    grade
}
