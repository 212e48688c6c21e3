//! The process that grades one task, or has a learner's invariant judge one implementation, and leaves what came out in a
//! file.
//!
//! It goes into a file and not to standard output, because the learner's code may print.

use crate::judge::{judge, refusal};
use contract::grade::Grade;
use contract::property::Shown;
use contract::registry::task;
use contract::task::Task;
use serde::Serialize;
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

/// Number of the task that this process is for.
pub const TASK: &str = "QUADRIVIUM_TASK";
/// The file for what comes out.
pub const ANSWER: &str = "QUADRIVIUM_ANSWER";
/// Where the crates are that the learner's depends on.
pub const CRATES: &str = "QUADRIVIUM_CRATES";

/// How a child ends that can't write its answer, as on a full disk. Code of the learner's that ends so has no grade either.
pub const UNWRITTEN: u8 = 74; // EX_IOERR of sysexits.h

/// What a child is asked to do.
pub struct Order {
    task: &'static Task,
    shown: Option<Shown>,
    answer: PathBuf,
}

/// The order, if this process is a child. Which implementation is shown comes as a line on standard input: it is gone once it is
/// read, so the learner's code can't ask for it. Nothing follows, and the end comes with that of the autograder, which
/// ends this process too: nothing else would end a loop.
pub fn asked_for() -> Option<Order> {
    let number = std::env::var(TASK).ok()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok()?;
    let shown = serde_json::from_str(&line).ok()?;
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    let answer = PathBuf::from(std::env::var_os(ANSWER)?);
    Some(Order { task: task(&number)?, shown, answer })
}

/// Does it: writes the grade, or the words of a refusal.
pub fn run(order: &Order) -> ExitCode {
    // If the parent finds no file, it knows that this process could not begin.
    if let Err(error) = std::fs::write(&order.answer, "") {
        eprintln!("the answer can't be written: {error}");
        return ExitCode::FAILURE;
    }
    contract::panics::silence();
    let written = match order.shown {
        Some(shown) => write(order, &refusal(order.task, shown)),
        None => {
            // What is found wrong is there also if the code ends this process, or takes too long, when it is asked for its bug.
            let undiagnosed = |grade: &Grade| drop(write(order, grade));
            write(order, &judge(order.task, &undiagnosed))
        }
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the answer can't be written: {error}");
            ExitCode::from(UNWRITTEN)
        }
    }
}

/// The file is whole at any time: this process may be stopped while it writes.
fn write(order: &Order, answer: &impl Serialize) -> std::io::Result<()> {
    // Indented as the parent writes them: the other way would be compiled beside it, for every verdict.
    let text = serde_json::to_vec_pretty(answer).expect("a grade is plain data");
    let next = order.answer.with_extension("next");
    std::fs::write(&next, text)?;
    std::fs::rename(next, &order.answer)
}
