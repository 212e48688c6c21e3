//! Arguments and exit codes of the command `cargo course`.
//!
//! Its work is done by seven programs. This package's own has what a learner waits for: board and exercises. It
//! hands the other commands over to the programs of the packages `tour`, `race`, `model`, `ranks`, `grader` and `author`, which are
//! built when they are asked for. All of them read the same arguments.

#![forbid(unsafe_code)]

pub mod arguments;

use arguments::{Arguments, Command};
use clap::Parser;
use learner::exercise::show::{error_lines, error_width};
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// What this program was called with. Wrong arguments, and questions for help, end the program.
pub fn arguments() -> Arguments {
    Arguments::parse()
}

/// The command that this program was called with, as [`arguments()`] reads it.
pub fn command() -> Option<Command> {
    arguments().command
}

/// The exit code of what a command came to: good, not good, or not done.
pub fn ended(result: Result<bool, impl Display>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // In one piece: it may be one of several ranks, whose words share a terminal.
            let lines = error_lines(&error, error_width()).join("\n") + "\n";
            let _ = std::io::stderr().write_all(lines.as_bytes());
            ExitCode::from(2)
        }
    }
}

/// The exit code of a program that was asked for another one's command.
pub fn not_here() -> ExitCode {
    ended(Err("this program has another part of the course; run `cargo course`"))
}
