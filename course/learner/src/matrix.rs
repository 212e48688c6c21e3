//! `cargo course matrix`: which known bug is caught by which invariant.

use crate::error::Result;
use crate::exercise::show::{fit, width};
use crate::progress::with_spinner;
use crate::terminal::Terminal;
use contract::diagnosis::Accuracy;
use contract::matrix::{Matrix, SEEDS, Summary};
use contract::registry::{COMPONENTS, Entry};

/// Makes the matrices and prints them, as text or as seven numbers in JSON. Returns whether the
/// contract is proved: all bugs caught, no invariant idle, no correct variant refused.
///
/// # Errors
/// Standard output can't be written.
pub fn run(json: bool) -> Result<bool> {
    // A party that panics is a finding. Its words would stand between the lines.
    contract::panics::silence();
    let matrices = with_spinner(|progress| {
        progress("running every bug against every invariant");
        all()
    });
    let summary = Summary::new(&matrices, diagnosis_top1());
    let mut terminal = Terminal::stdout();
    if json {
        let text = serde_json::to_string(&summary).map_err(std::io::Error::from)?;
        terminal.line(&text)?;
        return Ok(summary.is_proof());
    }
    for matrix in &matrices {
        for line in matrix.to_string().lines() {
            // Prose may be wrapped. A table may not.
            let width = if line.starts_with("     it stays") { width() } else { usize::MAX };
            for line in fit(line, width, 5) {
                terminal.line(&line)?;
            }
        }
        terminal.line("")?;
    }
    terminal.heading("In all")?;
    let Summary { bugs, killed, invariants, idle_invariants, variants, .. } = summary;
    let rejected = summary.variants_rejected;
    terminal.line(&format!("{killed} of {bugs} bugs are caught under every seed"))?;
    terminal.line(&format!("{idle_invariants} of {invariants} invariants are idle"))?;
    terminal.line(&format!("{rejected} of {variants} correct variants are refused"))?;
    let percent = 100.0 * summary.diagnosis_top1;
    terminal.line(&format!("{percent:.0} % of the bugs are named rightly by the diagnosis"))?;
    Ok(summary.is_proof())
}

/// The share of the bugs that the diagnosis names.
fn diagnosis_top1() -> f64 {
    COMPONENTS.iter().map(Entry::accuracy).fold(Accuracy::default(), Accuracy::and).top1()
}

/// The matrices of all components, in the order of the course.
pub fn all() -> Vec<Matrix> {
    std::thread::scope(|scope| {
        let start = |entry: &'static Entry| scope.spawn(|| entry.matrix(SEEDS));
        let started: Vec<_> = COMPONENTS.iter().map(start).collect();
        let ended = started.into_iter().map(|thread| match thread.join() {
            Ok(matrix) => matrix,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    })
}
