//! The program of `cargo course grade`, and of each judge that it starts.

#![forbid(unsafe_code)]

use course::arguments::Command;
use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::var_os(grader::worker::WORKER).is_some() {
        return course::ended(grader::worker::run().map(|()| true));
    }
    match course::command() {
        Some(Command::Grade(arguments)) => course::ended(grader::class::run(&arguments)),
        _ => course::not_here(),
    }
}
