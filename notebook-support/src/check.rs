//! Grades a learner's lines in a cell, by the contract, with the autograder's own report.

use contract::component::Component;
use contract::grade;
use contract::interface::Refusal;
use contract::panics;
use contract::registry;
use contract::report::report_on_cell;
use contract::run::Run;
use std::fmt;
use std::panic::{set_hook, take_hook};

/// A gradient may be asked of a cell's lines one value after the other: no large tables.
const RUN: Run = Run { seed: 42, cases: 32, shrink: true, every_size: false, blocks: false };

/// What came out. As the last value of a cell it is printed below the cell.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Whether every invariant of the task holds.
    pub passed: bool,
    report: String,
}

impl Verdict {
    /// Called by the notebooks' kernel to show it.
    pub fn evcxr_display(&self) {
        println!("{}", self.report);
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.report)
    }
}

/// From now on, a panic in a cell says in a few lines what happened and what to do, instead of a backtrace. The
/// notebooks' kernel calls this at its start: see `notebooks/evcxr.toml`.
///
/// evcxr can't go on after a panic. It starts a new process, and the variables are gone either way.
pub fn explain_panics() {
    set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        eprintln!("The cell panicked, so all variables are gone. Functions and `use` lines stay.");
        eprintln!("Fix the cell. Then, in the menu Run: Run All Above Selected Cell.");
        std::process::exit(101);
    }));
}

/// Grades an implementation by the invariants of a task. An implementation that asks for a learner's function answers
/// only what the task is about, and gives [`not_asked`] for the rest.
pub(crate) fn check<P: Component + ?Sized>(name: &str, implementation: &P) -> Verdict {
    let task = registry::task(name)
        .expect("the tests of `notebook-support` call it with every task it knows");
    // A panic in the lines is a finding, which the report shows. Nothing else should print it.
    let before = take_hook();
    panics::silence();
    let grade = grade::by_invariants(task, implementation, &RUN);
    set_hook(before);
    Verdict { passed: grade.passed, report: report_on_cell(task, &grade) }
}

/// The answer to a call that a task is not about.
pub(crate) fn not_asked() -> Refusal {
    Refusal::not_asked("this is not asked for in this notebook")
}
