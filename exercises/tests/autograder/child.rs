//! The process that grades one task and leaves the grade in a file.
//!
//! The grade goes into a file and not to standard output, because the learner's code may print.

use crate::judge::judge;
use contract::registry::task;
use contract::task::Task;
use std::path::PathBuf;
use std::process::ExitCode;

/// Number of the task that this process is for.
pub const TASK: &str = "QUADRIVIUM_TASK";
/// The file for its grade.
pub const ANSWER: &str = "QUADRIVIUM_ANSWER";

/// What a child is asked to do.
pub struct Order {
    task: &'static Task,
    answer: PathBuf,
}

/// The order, if this process is a child.
pub fn asked_for() -> Option<Order> {
    let number = std::env::var(TASK).ok()?;
    let answer = PathBuf::from(std::env::var_os(ANSWER)?);
    Some(Order { task: task(&number)?, answer })
}

/// Grades, and writes the grade.
pub fn run(order: &Order) -> ExitCode {
    contract::panics::silence();
    let grade = judge(order.task);
    // Indented as the parent writes them: the other way would be compiled beside it, for every verdict.
    let text = serde_json::to_vec_pretty(&grade).expect("a grade is plain data");
    match std::fs::write(&order.answer, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the grade can't be written: {error}");
            ExitCode::FAILURE
        }
    }
}
