//! `cargo course bench`: which of the learner's code may race. The race itself is another program, which is
//! built with optimization.

use crate::error::Result;
use crate::exercise::Workspace;
use crate::exercise::compile::stand_in;
use crate::exercise::grading::{Graded, grade};
use crate::program;
use crate::progress::with_spinner;
use contract::registry::{COMPONENTS, TASKS};
use contract::task::Task;

/// Lets the race know whose code passes.
const RACERS: &str = "QUADRIVIUM_RACERS";

/// The task that computes the forward pass of each component.
const FORWARD: [&str; 5] =
    ["norm/forward", "embedding/forward", "parallel/forward", "rope/rotate", "layernorm/forward"];

/// Grades the forward passes, then starts the race, replacing this program. A `check` is of the library alone, so
/// nothing is graded for it.
///
/// # Errors
/// What can go wrong in grading; cargo can't be run.
pub fn run(check: bool) -> Result<u8> {
    let workspace = Workspace::find()?;
    let slugs = |which: &dyn Fn(&str) -> bool| -> Vec<&str> {
        COMPONENTS.iter().map(|of| of.slug).filter(|slug| which(slug)).collect()
    };
    let mut race = program::run_package(&workspace, "race", &["--release"]);
    if check {
        stand_in(&mut race, &workspace, &slugs(&|_| true))?;
        return program::in_place(race);
    }
    let tasks: Vec<&'static Task> =
        TASKS.iter().filter(|task| FORWARD.contains(&task.name)).collect();
    let Graded { grades, .. } = with_spinner(|progress| grade(&workspace, &tasks, progress))?;
    let passes = |slug: &str| {
        let of = tasks.iter().find(|task| task.component == slug);
        of.is_some_and(|task| grades.of(task).is_some_and(|grade| grade.passed))
    };
    let fails = |slug: &str| {
        let of = tasks.iter().find(|task| task.component == slug);
        of.is_some_and(|task| grades.of(task).is_some_and(|grade| grade.does_not_compile()))
    };
    race.env(RACERS, slugs(&passes).join(","));
    stand_in(&mut race, &workspace, &slugs(&fails))?;
    program::in_place(race)
}

/// The task that has to pass before a component's code may race.
pub fn forward(slug: &str) -> &'static str {
    let of = TASKS.iter().find(|task| FORWARD.contains(&task.name) && task.component == slug);
    of.map_or("", |task| task.name)
}

/// Those whose code passes, as the program that grades has reported.
pub fn racers() -> Vec<String> {
    let told = std::env::var(RACERS).unwrap_or_default();
    told.split(',').filter(|slug| !slug.is_empty()).map(str::to_string).collect()
}
