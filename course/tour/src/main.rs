//! The program of `cargo course tour`.

#![forbid(unsafe_code)]

use course::arguments::{Command, TourArguments};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = course::command();
    let Some(Command::Tour(TourArguments { text, out, json, no_figures })) = command else {
        return course::not_here();
    };
    let figures = (!no_figures).then_some(out);
    let holds = tour::tour::run(&tour::tour::Options { text, figures, json });
    if let Ok(false) = holds {
        // `eprintln!` would panic if stderr is closed.
        let _ = writeln!(std::io::stderr(), "error: an invariant does not hold");
    }
    course::ended(holds)
}
