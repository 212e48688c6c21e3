//! One task, graded in this process.

use crate::seats::{Learner, SEATS};
use crate::types;
use contract::grade::Grade;
use contract::run::Run;
use contract::task::{Grading, Task};

/// The seed and the number of random inputs, fixed unless the environment says otherwise.
fn run() -> Run {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let standard = Run::default();
    Run {
        seed: number("PROPTEST_RNG_SEED").unwrap_or(standard.seed),
        cases: number("PROPTEST_CASES").map_or(standard.cases, |cases| cases as u32),
        ..standard
    }
}

/// Grades a task.
pub fn judge(task: &Task) -> Grade {
    let Some(seat) = SEATS.iter().find(|seat| seat.slug == task.component) else {
        return no_seat(task);
    };
    match task.grading {
        Grading::Types => types::judge(task),
        Grading::Property { .. } => (seat.property)(task),
        Grading::Invariants { calls, by_hand, .. } => {
            (seat.invariants)(task, &Learner { calls, by_hand }, &run())
        }
    }
}

/// A component that nobody hands on.
fn no_seat(task: &Task) -> Grade {
    let slug = task.component;
    let sentence = "Every component has a seat in the autograder. That this one has none is a mistake of the course.";
    let what = format!(
        "write exercises/tests/autograder/seats/{slug}.rs, and name it in SEATS in its mod.rs"
    );
    Grade::failed(task, "autograder/seat", sentence, what)
}
