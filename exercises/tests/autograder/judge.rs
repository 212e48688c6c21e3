//! One task, graded in this process.

use crate::adapter::ADAPTERS;
use crate::types;
use adapters::Learner;
use contract::grade::{Grade, Undiagnosed};
use contract::property::Shown;
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

/// Grades a task. `undiagnosed` is given the grade before the bug is looked for.
pub fn judge(task: &Task, undiagnosed: &Undiagnosed<'_>) -> Grade {
    let Some(adapter) = ADAPTERS.iter().find(|adapter| adapter.slug == task.component) else {
        return no_adapter(task);
    };
    match task.grading {
        Grading::Types(rule) => types::judge(task, rule, adapter, &run()),
        // Its answers are asked for one by one: see `property.rs`.
        Grading::Property { .. } => no_adapter(task),
        Grading::Invariants { calls, by_hand, .. } => {
            if by_hand {
                exercises::prelude::close_tape();
            }
            (adapter.invariants)(task, &Learner { calls, by_hand }, &run(), undiagnosed)
        }
    }
}

/// What the learner's invariant of a component says of one implementation.
pub fn refusal(task: &Task, shown: Shown) -> Option<String> {
    let adapter = ADAPTERS.iter().find(|adapter| adapter.slug == task.component);
    let said = adapter.and_then(|adapter| (adapter.property)(shown));
    said.unwrap_or_else(|| Some(write_an_adapter(task)))
}

/// A component that is not handed on.
fn no_adapter(task: &Task) -> Grade {
    let sentence = "Every component has an adapter in the autograder, with all that its tasks need. That this one has \
                    none is a mistake of the course.";
    Grade::failed(task, "autograder/adapter", sentence, write_an_adapter(task))
}

fn write_an_adapter(task: &Task) -> String {
    let (slug, name) = (task.component, task.name);
    format!(
        "write exercises/adapters/src/{slug}.rs with what {name} needs, and name it in the lists in its lib.rs"
    )
}
