//! Builds the autograder with the learner's code in it.

use super::Workspace;
use crate::compile_error::CompileError;
use crate::error::{Error, Result};
use crate::progress::Progress;
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The autograder with the learner's code in it.
#[derive(Debug)]
pub struct Autograder {
    /// The program.
    pub program: PathBuf,
}

/// What cargo says in JSON, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    executable: Option<PathBuf>,
    target: Option<Target>,
    message: Option<Diagnostic>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
    rendered: Option<String>,
    spans: Vec<Span>,
}

#[derive(Debug, Deserialize)]
struct Span {
    file_name: String,
    line_start: usize,
    column_start: usize,
    is_primary: bool,
}

const NAME: &str = "autograder";

/// Builds the autograder, as `cargo test -p exercises` would.
///
/// # Errors
/// The code does not compile; cargo can't be run or fails for another reason.
pub fn build(workspace: &Workspace, progress: Progress<'_>) -> Result<Autograder> {
    let failed = |reason: String| Error::Program { what: "cargo can't build", reason };
    let mut cargo = cargo(workspace).spawn().map_err(|error| failed(error.to_string()))?;
    let (stdout, stderr) = (cargo.stdout.take(), cargo.stderr.take());
    let (program, errors, said) = std::thread::scope(|scope| {
        let listener = scope.spawn(|| listen(stderr, progress));
        let mut program = None;
        let mut errors = Vec::new();
        for line in stdout.into_iter().flat_map(|out| BufReader::new(out).lines()) {
            // Another line than a message is nothing of ours.
            let message = line.ok().and_then(|line| serde_json::from_str::<Message>(&line).ok());
            let Some(message) = message else { continue };
            let target = message.target.map_or(String::new(), |target| target.name);
            match (message.reason.as_str(), message.message) {
                ("compiler-artifact", _) if target == NAME => program = message.executable,
                ("compiler-message", Some(found)) if is_error(&found) => {
                    errors.push((target, found));
                }
                _ => {}
            }
        }
        (program, errors, listener.join().unwrap_or_default())
    });
    let status = cargo.wait().map_err(|error| failed(error.to_string()))?;
    if let Some(error) = compile_error(errors) {
        return Err(Error::DoesNotCompile(Box::new(error)));
    }
    match program {
        Some(program) if status.success() => Ok(Autograder { program }),
        _ => Err(failed(said)),
    }
}

fn cargo(workspace: &Workspace) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["test", "--package", "exercises", "--test", NAME, "--no-run"])
        .args(["--message-format=json", "--color=never"])
        .current_dir(workspace.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // `cargo run` describes this package to us. The learner's build has nothing to do with it.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo
}

/// Passes cargo's own lines on, and keeps what it said about its failure.
fn listen(stderr: Option<impl std::io::Read>, progress: Progress<'_>) -> String {
    let mut said = Vec::new();
    for line in stderr.into_iter().flat_map(|err| BufReader::new(err).lines()) {
        let Ok(line) = line else { break };
        // `Compiling exercises v0.1.0 (/a/long/path)`
        progress(line.trim().split(" (").next().unwrap_or_default());
        if line.starts_with("error") || !said.is_empty() {
            said.push(line);
        }
    }
    said.join("\n")
}

/// The last message of a failed compilation only counts the others.
fn is_error(found: &Diagnostic) -> bool {
    found.level.starts_with("error")
        && !found.message.starts_with("aborting due to")
        && !found.message.starts_with("could not compile")
}

fn compile_error(errors: Vec<(String, Diagnostic)>) -> Option<CompileError> {
    let further = errors.len().checked_sub(1)?;
    let (target, first) = errors.into_iter().next()?;
    let span = first.spans.iter().find(|span| span.is_primary).or(first.spans.first());
    let place = span.map(|span| {
        // On Windows too, the course writes `exercises/src`.
        let file = span.file_name.replace('\\', "/");
        format!("{file}:{}:{}", span.line_start, span.column_start)
    });
    let words = first.rendered.unwrap_or(first.message);
    Some(CompileError { place, first: words, further, signature: target == NAME })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(level: &str, message: &str) -> Diagnostic {
        let span = Span {
            file_name: "exercises\\src\\norm.rs".to_string(),
            line_start: 3,
            column_start: 7,
            is_primary: true,
        };
        let (level, message) = (level.to_string(), message.to_string());
        Diagnostic { level, message, rendered: None, spans: vec![span] }
    }

    #[test]
    fn the_first_error_is_told_and_the_others_are_counted() {
        let lib = || "exercises".to_string();
        let errors = vec![(lib(), diagnostic("error", "one")), (lib(), diagnostic("error", "two"))];
        let error = compile_error(errors).unwrap();
        assert_eq!(error.place.as_deref(), Some("exercises/src/norm.rs:3:7"));
        assert_eq!((error.first.as_str(), error.further, error.signature), ("one", 1, false));
        let said = error.to_string();
        assert!(said.contains("no task can be graded until it compiles"), "{said}");
        assert!(said.contains("2 errors, the first at exercises/src/norm.rs:3:7"), "{said}");
        assert!(compile_error(vec![]).is_none());
    }

    #[test]
    fn warnings_and_counts_are_not_errors() {
        assert!(is_error(&diagnostic("error", "mismatched types")));
        assert!(is_error(&diagnostic("error: internal compiler error", "oh")));
        assert!(!is_error(&diagnostic("warning", "unused")));
        assert!(!is_error(&diagnostic("error", "aborting due to 2 previous errors")));
    }
}
