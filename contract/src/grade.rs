//! Grading: a task's invariants on a party, and what came out.

use crate::breach::{Breach, Fault, Verdict};
use crate::component::Component;
use crate::diagnosis::{self, Diagnosis};
use crate::panics;
use crate::registry::{Exhibit, Promise, exhibits, promises};
use crate::run::Run;
use crate::task::{Grading, Task};
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What came out for one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grade {
    /// Number of the task.
    pub task: String,
    /// Whether everything holds.
    pub passed: bool,
    /// Whether the task was begun. A `todo!()` was not.
    pub begun: bool,
    /// Points that the task is worth.
    pub points: u32,
    /// Ids of the invariants that hold.
    pub held: Vec<String>,
    /// What is broken, the most telling first.
    pub broken: Vec<Broken>,
    /// Remarks on what holds.
    pub remarks: Vec<String>,
    /// The known bug that the code behaves like.
    pub misconception: Option<Misconception>,
}

/// One broken promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Broken {
    /// Id of the invariant, or the name of another rule.
    pub id: String,
    /// The rule in words.
    pub sentence: String,
    /// The rule as a formula.
    pub formula: String,
    /// Where to read about it.
    pub chapter: String,
    /// How it was broken.
    pub breach: Breach,
}

/// A known bug.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Misconception {
    /// Id of the bug.
    pub bug: String,
    /// What such code does: "The code ...".
    pub does: String,
    /// How it comes about.
    pub story: String,
}

impl Grade {
    /// The grade of a task in which nothing was found wrong so far.
    pub fn new(task: &Task) -> Self {
        Self {
            task: task.number.clone(),
            passed: true,
            begun: true,
            points: task.points,
            held: Vec::new(),
            broken: Vec::new(),
            remarks: Vec::new(),
            misconception: None,
        }
    }

    /// The grade of a task whose code breaks a rule that is not an invariant: it does not end, it
    /// ends the process, it has the wrong types.
    pub fn failed(task: &Task, rule: &str, sentence: &str, what: impl Into<String>) -> Self {
        let breach = Breach::new("", Fault::Broken { what: what.into() });
        let mut grade = Self::new(task);
        grade.fail(rule, sentence, breach);
        grade
    }

    /// Where to read about it: the section of the first broken invariant. That of the task, if it is not begun.
    pub fn chapter<'a>(&'a self, task: &'a Task) -> &'a str {
        let broken =
            self.broken.first().filter(|_| self.begun).map(|broken| broken.chapter.as_str());
        broken.filter(|chapter| !chapter.is_empty()).unwrap_or(task.chapter)
    }

    /// The task that this one calls and that is not begun: its place is what is empty.
    pub fn waits_for(&self, task: &Task) -> Option<&str> {
        let broken = self.broken.first().filter(|_| !self.begun)?;
        let Fault::Panicked { message } = &broken.breach.fault else { return None };
        // Behind the name stands where it is.
        let name = message.strip_prefix(TODO)?.strip_prefix(": task ")?.split(' ').next()?;
        (name != task.place).then_some(name)
    }

    /// The grade of a task whose file does not compile: nobody knows what its code does.
    pub fn uncompiled(task: &Task, what: impl Into<String>) -> Self {
        let sentence = "A file compiles. Without that, none of its tasks can be graded.";
        Self::failed(task, UNCOMPILED, sentence, what)
    }

    /// Whether it is an [`uncompiled`](Self::uncompiled) one.
    pub fn does_not_compile(&self) -> bool {
        self.broken.first().is_some_and(|broken| broken.id == UNCOMPILED)
    }

    /// Adds a broken rule that is not an invariant.
    pub fn fail(&mut self, rule: &str, sentence: &str, breach: Box<Breach>) {
        self.passed = false;
        self.begun &= !is_todo(&breach);
        self.broken.push(Broken {
            id: rule.to_string(),
            sentence: sentence.to_string(),
            formula: String::new(),
            chapter: String::new(),
            breach: *breach,
        });
    }
}

/// How the panic of a `todo!()` begins.
const TODO: &str = "not yet implemented";

/// The rule that a file compiles.
const UNCOMPILED: &str = "autograder/compiles";

/// Whether the code is still the `todo!()` of the stub.
fn is_todo(breach: &Breach) -> bool {
    matches!(&breach.fault, Fault::Panicked { message } if message.starts_with(TODO))
}

/// A task that can't be graded never passes: this is a mistake of the course, and it must be seen.
fn not_graded(task: &Task, what: &str) -> Grade {
    let sentence =
        "A task is graded by all of its rules. That it is not is a mistake of the course.";
    let (name, component) = (task.name, task.component);
    let what = format!(
        "{name}: {what}. See contract/src/{component}/tasks.rs, and who hands the task on in \
         exercises/tests/autograder."
    );
    Grade::failed(task, "autograder/task", sentence, what)
}

/// Grades a party by the invariants of a task.
///
/// This and [`by_bugs`] know the party's type, so every program that grades has a copy of them for each
/// component. They hand on what they know, and the grading is compiled once.
pub fn by_invariants<P: Component + ?Sized>(task: &Task, party: &P, run: &Run) -> Grade {
    let judge = |place: usize| P::invariants()[place].judge(party, run);
    let diagnose = |calls: &[&str]| diagnosis::diagnose(party, calls);
    by_promises(task, P::SLUG, &promises::<P>(), &judge, &diagnose)
}

/// [`by_invariants`]. `judge` takes an invariant's place among the component's promises.
fn by_promises(
    task: &Task,
    component: &str,
    promises: &[Promise],
    judge: &dyn Fn(usize) -> Verdict,
    diagnose: &dyn Fn(&[&str]) -> Option<Diagnosis>,
) -> Grade {
    let mut grade = Grade::new(task);
    let Grading::Invariants { ids, calls, .. } = task.grading else {
        return not_graded(task, "it is not graded by invariants, and was asked to be");
    };
    let of_task = |(_, invariant): &(usize, &Promise)| ids.contains(&invariant.id);
    let invariants: Vec<_> = promises.iter().enumerate().filter(of_task).collect();
    if invariants.len() != ids.len() {
        // Without this, a task that was handed to another component would pass by doing nothing.
        let (found, asked) = (invariants.len(), ids.len());
        let what =
            format!("{found} of its {asked} invariants were found in the component {component}");
        return not_graded(task, &what);
    }
    for (place, invariant) in invariants {
        match judge(place) {
            Ok(remark) => {
                grade.held.push(invariant.id.to_string());
                grade.remarks.extend(remark);
            }
            Err(breach) => {
                grade.passed = false;
                grade.begun &= !is_todo(&breach);
                grade.broken.push(Broken {
                    id: invariant.id.to_string(),
                    sentence: invariant.sentence.to_string(),
                    formula: invariant.formula.to_string(),
                    chapter: invariant.chapter.to_string(),
                    breach: *breach,
                });
                if !grade.begun {
                    return grade; // nothing to judge yet
                }
            }
        }
    }
    if grade.passed {
        return grade;
    }
    if let Some(diagnosis) = diagnose(calls) {
        let bug = diagnosis.bug;
        // The invariant that carries the bug's name goes to the front.
        grade.broken.sort_by_key(|broken| broken.id != bug.named_by);
        grade.misconception = Some(Misconception {
            bug: bug.id.to_string(),
            does: bug.misconception.to_string(),
            story: bug.story.to_string(),
        });
    }
    grade
}

/// Grades an invariant that the learner wrote, by the known bugs that it catches.
///
/// It must accept the oracle and all correct variants. An `Err` and a panic both refuse.
pub fn by_bugs<P: Component + ?Sized>(
    task: &Task,
    property: &dyn Fn(&P) -> Result<(), String>,
) -> Grade {
    let refuses = |shown: Shown| {
        let party = match shown {
            Shown::Oracle => P::oracle(),
            Shown::Variant(place) => (P::variants()[place].party)(),
            Shown::Bug(place) => (P::bugs()[place].party)(),
        };
        property(&party).err()
    };
    let variants: Vec<_> =
        P::variants().iter().map(|variant| (variant.id, variant.about)).collect();
    by_shown(task, P::SLUG, &variants, &exhibits::<P>(), &refuses)
}

/// A party that a learner's invariant is shown: of variants and bugs, the place among the component's.
enum Shown {
    Oracle,
    Variant(usize),
    Bug(usize),
}

/// [`by_bugs`]. `property` gives the words of a refusal.
fn by_shown(
    task: &Task,
    component: &str,
    variants: &[(&str, &str)],
    bugs: &[Exhibit],
    property: &dyn Fn(Shown) -> Option<String>,
) -> Grade {
    let Grading::Property { needed } = task.grading else {
        return not_graded(task, "it is not graded by a property, and was asked to be");
    };
    if task.component != component {
        let what = format!("it was handed to the component {component}");
        return not_graded(task, &what);
    }
    let refuses = |shown: Shown| {
        catch_unwind(AssertUnwindSafe(|| property(shown)))
            .unwrap_or_else(|payload| Some(panics::message(&*payload)))
    };
    let rule = "property/accepts-what-is-right";
    let sentence = "A right implementation is accepted, however it is written.";
    if let Some(words) = refuses(Shown::Oracle) {
        let mut grade = Grade::new(task);
        let breach = if words.starts_with(TODO) {
            Breach::new("property", Fault::Panicked { message: words })
        } else {
            let what = format!("it refuses the oracle, plain f64 loops. It says: {words}");
            Breach::new("property", Fault::Broken { what })
        };
        grade.fail(rule, sentence, breach);
        return grade;
    }
    for (place, (id, about)) in variants.iter().enumerate() {
        if let Some(words) = refuses(Shown::Variant(place)) {
            let what = format!(
                "it refuses a correct variant ({id}: {about}). It says: {words}\n\
                 Is the tolerance tighter than f32 rounding?"
            );
            return Grade::failed(task, rule, sentence, what);
        }
    }
    let (caught, missed): (Vec<_>, Vec<_>) =
        bugs.iter().enumerate().partition(|(place, _)| refuses(Shown::Bug(*place)).is_some());
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
        return Grade::failed(
            task,
            "property/catches-bugs",
            "Wrong implementations are refused.",
            what,
        );
    }
    let mut grade = Grade::new(task);
    let (caught, all) = (caught.len(), bugs.len());
    grade.remarks.push(format!("your invariant catches {caught} of {all} known bugs"));
    grade
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::TASKS;

    #[test]
    fn an_empty_place_of_another_task_is_waited_for() {
        let task = &TASKS[1];
        let graded = |message: &str| {
            let mut grade = Grade::new(task);
            let message = format!("not yet implemented{message}");
            grade.fail("", "", Breach::new("forward", Fault::Panicked { message }));
            grade
        };
        let own = graded(&format!(": task {} (exercises/src/norm.rs:9)", task.place));
        assert_eq!((own.begun, own.waits_for(task)), (false, None));
        let other = graded(": task a/b (exercises/src/a.rs:9)");
        assert_eq!((other.begun, other.waits_for(task)), (false, Some("a/b")));
        assert_eq!(graded("").waits_for(task), None);
    }
}
