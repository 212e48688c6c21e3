//! `cargo course matrix`: which known bug is caught by which invariant.
//!
//! It is measured by a separate program, `contract/examples/matrix.rs`: that one is built with
//! optimization, and this one is what a learner waits for.

use crate::error::{Error, Result};
use crate::exercise::Workspace;
use crate::exercise::show::{fit, width};
use crate::program::{cargo, listen};
use crate::progress::with_spinner;
use crate::terminal::Terminal;
use contract::registry::Entry;
use std::io::Read;

/// What is measured, and how it is reported.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Every bug by every invariant.
    Matrix,
    /// The same, as seven numbers in JSON.
    Json,
    /// The bugs that are wrong under a condition only.
    Mutants,
}

/// Measures and prints. Returns whether the contract is proved: all bugs caught, no invariant idle, no
/// correct variant refused. Of mutants: whether none survived.
///
/// # Errors
/// The program can't be built, or standard output can't be written.
pub fn run(components: &[&Entry], kind: Kind) -> Result<bool> {
    let what = "the matrix can't be made";
    let failed = |reason: String| Error::Program { what, reason };
    let workspace = Workspace::find()?;
    let mut measure = cargo(&workspace);
    measure.args(["run", "--profile", "proof", "--package", "contract", "--example", "matrix"]);
    measure.arg("--color=never").arg("--").arg(match kind {
        Kind::Matrix => "matrix",
        Kind::Json => "json",
        Kind::Mutants => "mutants",
    });
    measure.args(components.iter().map(|entry| entry.slug));
    let mut measure = measure.spawn().map_err(|error| failed(error.to_string()))?;
    let (stdout, stderr) = (measure.stdout.take(), measure.stderr.take());
    let (text, said) = with_spinner(|progress| {
        std::thread::scope(|scope| {
            let listener = scope.spawn(|| listen(stderr, progress));
            let mut text = String::new();
            let read = stdout.map_or(Ok(0), |mut out| out.read_to_string(&mut text));
            (read.map(|_| text), listener.join().unwrap_or_default())
        })
    });
    let (text, status) = (text?, measure.wait()?);
    let good = match status.code() {
        Some(0) => true,
        Some(1) => false,
        _ => return Err(failed(said)),
    };
    let mut terminal = Terminal::stdout();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            terminal.heading(title)?;
            continue;
        }
        // Prose may be wrapped. A table may not.
        let width = if line.starts_with("     it stays") { width() } else { usize::MAX };
        for line in fit(line, width, 5) {
            terminal.line(&line)?;
        }
    }
    Ok(good)
}
