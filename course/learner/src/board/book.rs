//! The book beside the board. Another program serves it, as long as the board is open.

use crate::exercise::Workspace;
use crate::program::{listen, run_package};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// What is known of it.
#[derive(Debug, Clone)]
pub enum Book {
    /// Its program is built, and what of it now.
    Building(String),
    /// Its pages are made.
    Making,
    /// Its address.
    At(String),
    /// Why it is not there.
    Missing(String),
}

/// Cargo's last words are that it runs the program.
fn cargo_said(words: &str) -> Book {
    match words.starts_with("Finished") || words.starts_with("Running") {
        true => Book::Making,
        false => Book::Building(words.to_string()),
    }
}

/// Cargo that builds the program and serves the book, on the address `host`.
pub fn program(workspace: &Workspace, host: Option<&str>) -> Command {
    let mut program = run_package(workspace, "author", &[]);
    program.args(["read", "--beside"]);
    program.args(host.map(|host| format!("--host={host}")));
    program
}

/// Runs it until the program that calls this ends, however it ends.
pub fn serve(mut program: Command, tell: &(dyn Fn(Book) + Sync)) {
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = match program.spawn() {
        Ok(program) => program,
        Err(error) => return tell(Book::Missing(format!("cargo can't be run: {error}"))),
    };
    // Kept open: it closes when this program ends, and then the other one ends too.
    let open = program.stdin.take();
    let (stdout, stderr) = (program.stdout.take(), program.stderr.take());
    let said = std::thread::scope(|scope| {
        let listener = scope.spawn(|| listen(stderr, &|words| tell(cargo_said(words))));
        for line in stdout.into_iter().flat_map(|out| BufReader::new(out).lines()) {
            tell(line.map_or_else(|error| Book::Missing(error.to_string()), Book::At));
        }
        listener.join().unwrap_or_default()
    });
    drop(open);
    tell(Book::Missing(said));
}
