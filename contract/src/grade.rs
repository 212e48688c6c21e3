//! Grading: a task's invariants on an implementation, and what came out.

use crate::category::Category;
use crate::component::{Component, NET, Promise, promises};
use crate::diagnosis::{self, Diagnosis};
use crate::run::Run;
use crate::task::{Grading, Spec, Task};
use crate::violation::{Fault, Verdict, Violation};
use serde::{Deserialize, Serialize};

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
    /// What is broken, the most informative first.
    pub broken: Vec<Broken>,
    /// Remarks on what holds.
    pub remarks: Vec<String>,
    /// What the mistake is about.
    pub category: Option<Category>,
    /// The known bug that the code behaves like.
    pub misconception: Option<Misconception>,
    /// If no bug fits: the one step whose replacement explains the answers. See [`crate::repair`].
    pub repair: Option<String>,
    /// What the code printed, shortened to its first and last lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<String>,
    /// The task whose code this one calls, and which is wrong itself: it comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
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
    pub violation: Violation,
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
            category: None,
            misconception: None,
            repair: None,
            printed: Vec::new(),
            waits: None,
        }
    }

    /// The grade of a task whose code breaks a rule that is not an invariant: it does not end, it
    /// ends the process, it has the wrong types.
    pub fn failed(task: &Task, rule: &str, sentence: &str, what: impl Into<String>) -> Self {
        let violation = Violation::new("", Fault::Broken { what: what.into() });
        let mut grade = Self::new(task);
        grade.fail(rule, sentence, violation);
        grade
    }

    /// Where to read about it: the section of the first broken invariant. That of the task, if it is not begun.
    pub fn chapter<'a>(&'a self, task: &'a Task) -> &'a str {
        let broken =
            self.broken.first().filter(|_| self.begun).map(|broken| broken.chapter.as_str());
        broken.filter(|chapter| !chapter.is_empty()).unwrap_or(task.chapter)
    }

    /// The task that comes first: this one calls its code, which is wrong or not begun.
    pub fn waits_for(&self, task: &Task) -> Option<&str> {
        if let Some(wrong) = &self.waits {
            return Some(wrong);
        }
        let broken = self.broken.first().filter(|_| !self.begun)?;
        let Fault::Panicked { message } = &broken.violation.fault else { return None };
        // Its location follows the name.
        let name = message.strip_prefix(TODO)?.strip_prefix(": task ")?.split(' ').next()?;
        (name != task.place).then_some(name)
    }

    /// What is said of a task that has passed: its remarks, and what its code printed.
    pub fn on_passing(&self) -> Vec<String> {
        let printed = self.printed.join("\n");
        let printed = (!printed.is_empty()).then(|| format!("your code printed:\n{printed}"));
        self.remarks.iter().cloned().chain(printed).collect()
    }

    /// Whether the code of the task itself is wrong, as far as can be known: it fails, and waits for nothing.
    pub fn is_wrong(&self) -> bool {
        !self.passed && self.begun && self.waits.is_none() && !self.is_unknown()
    }

    /// The first task that this one has to wait for, since it may call its code and that is wrong. `of` gives the grades.
    ///
    /// A task that is judged from another side, in the place of an earlier one, needs that one.
    pub fn first_wrong<'g>(
        &self,
        task: &Task,
        of: impl Fn(&'static str) -> Option<&'g Self>,
    ) -> Option<&'static str> {
        let all = task.needs.iter().copied().chain((task.place != task.name).then_some(task.place));
        if !self.is_wrong() {
            return None;
        }
        let mut wrong = all.filter(|name| of(name).is_some_and(Self::is_wrong));
        wrong.next()
    }

    /// The grade of a task that could not be judged: its process did not begin. What its code does is unknown.
    pub fn not_started(task: &Task, what: impl Into<String>) -> Self {
        Self::failed(task, NOT_STARTED, "The autograder starts a process for each task.", what)
    }

    /// Whether it is unknown what the code does: it does not compile, or could not be judged.
    pub fn is_unknown(&self) -> bool {
        self.does_not_compile() || self.is_not_judged()
    }

    /// Whether it could not be judged, through no fault of the code.
    pub fn is_not_judged(&self) -> bool {
        self.broken.first().is_some_and(|broken| [NOT_STARTED, NO_COMPILER].contains(&&*broken.id))
    }

    /// The grade of a task whose file does not compile: what its code does is unknown.
    pub fn uncompiled(task: &Task, what: impl Into<String>) -> Self {
        let sentence = "A file compiles. Without that, none of its tasks can be graded.";
        Self::failed(task, UNCOMPILED, sentence, what)
    }

    /// Whether it is an [`uncompiled`](Self::uncompiled) one.
    pub fn does_not_compile(&self) -> bool {
        self.broken.first().is_some_and(|broken| broken.id == UNCOMPILED)
    }

    /// Adds a broken rule that is not an invariant.
    pub fn fail(&mut self, rule: &str, sentence: &str, violation: Box<Violation>) {
        self.passed = false;
        self.begun &= !is_todo(&violation);
        self.broken.push(Broken {
            id: rule.to_string(),
            sentence: sentence.to_string(),
            formula: String::new(),
            chapter: String::new(),
            violation: *violation,
        });
    }
}

/// How the panic of a `todo!()` begins.
pub(crate) const TODO: &str = "not yet implemented";

/// The rule that a file compiles.
const UNCOMPILED: &str = "autograder/compiles";

/// The rule that a task has a process.
const NOT_STARTED: &str = "autograder/process";

/// The rule that the programs of a task about types can be compiled.
pub const NO_COMPILER: &str = "types/compiler";

/// Whether the code is still the `todo!()` of the stub.
pub fn is_todo(violation: &Violation) -> bool {
    matches!(&violation.fault, Fault::Panicked { message } if message.starts_with(TODO))
}

/// A task that can't be graded never passes: this is a mistake of the course, and it must be seen.
pub(crate) fn not_graded(task: &Task, what: &str) -> Grade {
    let sentence =
        "A task is graded by all of its rules. That it is not is a mistake of the course.";
    let (name, component) = (task.name, task.component);
    let what = format!(
        "{name}: {what}. See contract/src/{component}/tasks.rs, and who hands the task on in \
         exercises/tests/autograder."
    );
    Grade::failed(task, "autograder/task", sentence, what)
}

/// Grades an implementation by the invariants of a task.
///
/// This and [`refusal_of`](crate::property::refusal_of) know the implementation's type, so every program that grades has a copy of them for each
/// component. They hand on what they know, and the grading is compiled once.
pub fn by_invariants<P: Component + ?Sized>(task: &Task, implementation: &P, run: &Run) -> Grade {
    by_invariants_in_steps(task, implementation, run, &|_| ())
}

/// [`by_invariants`] for an implementation that may not outlive the search for its bug: it is asked more questions for that, and code
/// that is wrong may end its process over them, or take too long. `undiagnosed` is given the grade before.
pub fn by_invariants_in_steps<P: Component + ?Sized>(
    task: &Task,
    implementation: &P,
    run: &Run,
    undiagnosed: &Undiagnosed<'_>,
) -> Grade {
    let judge = |place: usize| P::invariants()[place].judge(implementation, run);
    let diagnose =
        |calls: &[&str], broken: &[&str]| diagnosis::diagnose(implementation, calls, broken);
    let repair = |calls: &[&str]| diagnosis::repair(implementation, calls);
    let tasks = (P::SLUG, P::tasks());
    by_promises(task, tasks, &promises::<P>(), &judge, undiagnosed, (&diagnose, &repair))
}

/// One invariant of a component, by its id: its sentence, and what it says.
pub fn one<P: Component + ?Sized>(
    id: &str,
    implementation: &P,
    run: &Run,
) -> (&'static str, Verdict) {
    let invariants = P::invariants();
    match invariants.iter().find(|invariant| invariant.id == id) {
        Some(invariant) => (invariant.sentence, invariant.judge(implementation, run)),
        None => {
            let what =
                format!("no invariant of {} is called {id}: a mistake of the course", P::SLUG);
            ("", Err(Violation::new("", Fault::Broken { what })))
        }
    }
}

/// What is given a grade before the bug is looked for. The last one that it is given is the best.
pub type Undiagnosed<'a> = dyn Fn(&Grade) + 'a;
/// The known bug, by the answers to some calls and the invariants that are broken.
type Diagnose<'a> = dyn Fn(&[&str], &[&str]) -> Option<Diagnosis> + 'a;
/// The one step whose replacement explains the answers to some calls.
type Repairs<'a> = dyn Fn(&[&str]) -> Option<String> + 'a;

/// [`by_invariants`]. `judge` takes an invariant's place among the component's promises.
fn by_promises(
    task: &Task,
    (component, tasks): (&str, &[Spec]),
    promises: &[Promise],
    judge: &dyn Fn(usize) -> Verdict,
    undiagnosed: &Undiagnosed<'_>,
    (diagnose, repair): (&Diagnose<'_>, &Repairs<'_>),
) -> Grade {
    let mut grade = Grade::new(task);
    let Grading::Invariants { ids, calls, by_hand } = task.grading else {
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
    // What each broken invariant is about.
    let mut categories: Vec<(&str, Category)> = Vec::new();
    for (place, invariant) in invariants {
        match judge(place) {
            Ok(remark) => {
                grade.held.push(invariant.id.to_string());
                grade.remarks.extend(remark);
            }
            Err(violation) => {
                grade.passed = false;
                grade.begun &= !is_todo(&violation);
                // The graded cases show it, by the first that is answered wrong.
                grade.category = grade.category.or(violation.category);
                let refusal = violation.is_about_refusal().then_some(Category::Refusal);
                categories.push((invariant.id, refusal.unwrap_or(invariant.category)));
                grade.broken.push(Broken {
                    id: invariant.id.to_string(),
                    sentence: invariant.sentence.to_string(),
                    formula: invariant.formula.to_string(),
                    chapter: invariant.chapter.to_string(),
                    violation: *violation,
                });
                if !grade.begun {
                    return grade; // nothing to judge yet
                }
            }
        }
    }
    let Some((_, of_first)) = categories.first() else { return grade };
    let mut category = grade.category.unwrap_or(*of_first);
    // An invariant of the category goes to the front, that which carries the bug's name before all.
    let settle = |grade: &mut Grade, category: Category, name: &str| {
        let about = |broken: &Broken| categories.contains(&(&*broken.id, category));
        grade.broken.sort_by_key(|broken| (broken.id != name, !about(broken)));
        grade.category = Some(category);
    };
    let tell = |category| {
        let mut grade = grade.clone();
        settle(&mut grade, category, "");
        undiagnosed(&grade);
    };
    tell(category);
    let on_the_way_back = |broken: &Broken| broken.violation.call.contains("backward");
    if !by_hand
        && grade.broken.iter().all(on_the_way_back)
        && has_values(task, tasks, promises, judge)
    {
        // dfdx found the gradients: what is wrong is what it was given.
        category = category.of_tape();
        tell(category);
    }
    // A bug of the museum is wrong in the plain manner, too.
    let plain = grade.broken.iter().any(|broken| broken.violation.is_plain());
    let broken: Vec<&str> = grade.broken.iter().map(|broken| &*broken.id).collect();
    let named = plain.then(|| diagnose(calls, &broken)).flatten().map(|diagnosis| diagnosis.bug);
    // A known bug is about what the invariant whose name it carries is about: the graded cases show it at the first question
    // that happens to have it.
    let law = named.and_then(|bug| promises.iter().find(|promise| promise.id == bug.named_by));
    let of_law = law.filter(|law| law.stays != Some(NET) && category.gives_way_to(law.category));
    category = of_law.map_or(category, |law| law.category);
    settle(&mut grade, category, named.map_or("", |bug| bug.named_by));
    if named.is_none() {
        grade.repair = repair(calls);
    }
    grade.misconception = named.map(|bug| Misconception {
        bug: bug.id.to_string(),
        does: bug.misconception.to_string(),
        story: bug.story.to_string(),
    });
    grade
}

/// Whether the code at a task's place gives the right values, where another task asks for them.
fn has_values(
    task: &Task,
    tasks: &[Spec],
    promises: &[Promise],
    judge: &dyn Fn(usize) -> Verdict,
) -> bool {
    let of_place = tasks.iter().find(|other| other.name == task.place && other.name != task.name);
    let Some(Grading::Invariants { ids, .. }) = of_place.map(|other| other.grading) else {
        return true;
    };
    let mut asked = promises.iter().enumerate().filter(|(_, promise)| ids.contains(&promise.id));
    asked.all(|(place, _)| judge(place).is_ok())
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
            grade.fail("", "", Violation::new("forward", Fault::Panicked { message }));
            grade
        };
        let own = graded(&format!(": task {} (exercises/src/norm.rs:9)", task.place));
        assert_eq!((own.begun, own.waits_for(task)), (false, None));
        let other = graded(": task a/b (exercises/src/a.rs:9)");
        assert_eq!((other.begun, other.waits_for(task)), (false, Some("a/b")));
        assert_eq!(graded("").waits_for(task), None);
    }
}
