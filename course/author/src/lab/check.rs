//! Runs the notebooks without a page, and compares what they give with what they hold.

use super::clean::clean;
use super::compare::{beginning, differences};
use super::execute::{Executed, TIMEOUT, execute};
use super::home::{Home, stem};
use crate::error::Result;
use crate::notebook::{Cell, Notebook, text};
use learner::progress::with_spinner;
use learner::terminal::Terminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The tag of a cell that must not compile. Jupyter's own name for it.
const ANNOUNCED: &str = "raises-exception";
/// A cell compiles on one core for most of its time. More kernels would want more memory: half a GB each.
const AT_A_TIME: usize = 2;

/// Runs each notebook in its own kernel. With `update`, a notebook in which nothing is wrong gets
/// the new outputs. `false` if something is wrong, or if a notebook does not hold what it gives.
///
/// # Errors
/// A notebook can't be read or written, or the kernel does not start.
pub fn run(
    home: &Home,
    notebooks: &[PathBuf],
    update: bool,
    terminal: &mut Terminal,
) -> Result<bool> {
    let mut wrong = 0;
    let began = Instant::now();
    for side_by_side in notebooks.chunks(AT_A_TIME) {
        for (file, ran) in side_by_side.iter().zip(run_side_by_side(home, side_by_side)) {
            let (held, executed) = ran?;
            let now = clean(&executed.notebook, home.root());
            let mut complaints = faults(&now, executed.stopped.as_ref());
            if complaints.is_empty() {
                if update {
                    now.write(file)?;
                } else {
                    complaints = changes(&clean(&held, home.root()), &now);
                }
            }
            terminal.line(&times(&stem(file), &executed))?;
            wrong += usize::from(!complaints.is_empty());
            for complaint in complaints {
                tell(file, &now, &complaint, terminal)?;
            }
        }
    }
    terminal.line("")?;
    terminal.line(&summary(notebooks.len(), wrong, update, began.elapsed()))?;
    Ok(wrong == 0)
}

/// Each notebook as it is held, and as it ran in its own kernel.
fn run_side_by_side(home: &Home, files: &[PathBuf]) -> Vec<Result<(Notebook, Executed)>> {
    with_spinner(|progress| {
        let run = |file: &PathBuf| {
            let name = stem(file);
            let held = Notebook::read(file)?;
            let code_cells = held.cells.iter().filter(|cell| cell.is_code()).count();
            progress(&format!("{name}: starting the kernel"));
            let executed = execute(home, file, TIMEOUT, |done| {
                progress(&format!("{name}: {done} of {code_cells} cells have run"));
            })?;
            Ok((held, executed))
        };
        std::thread::scope(|scope| {
            let runs: Vec<_> = files.iter().map(|file| scope.spawn(move || run(file))).collect();
            runs.into_iter().map(|run| run.join().expect("no run panics")).collect()
        })
    })
}

/// What came out for all of them.
fn summary(all: usize, wrong: usize, update: bool, whole: Duration) -> String {
    let whole = whole.as_secs_f64();
    let all = if all == 1 { "1 notebook".to_string() } else { format!("{all} notebooks") };
    match (wrong, update) {
        (0, false) => format!("{all}: what is held is what is given; {whole:.0} s."),
        (0, true) => format!("{all}: the outputs are kept; {whole:.0} s. Read the difference."),
        (n, false) => format!(
            "{all}, and {n} not as it was. That is right where you have changed cells. For authors: \
             `cargo course lab --update` keeps the new outputs."
        ),
        (n, true) => format!("{all}, and {n} left as it was: fix it first."),
    }
}

/// A cell, and what is wrong with it.
struct Complaint {
    cell: usize,
    what: String,
    lines: Vec<String>,
}

impl Complaint {
    fn new(cell: usize, what: impl Into<String>, lines: Vec<String>) -> Self {
        Self { cell, what: what.into(), lines }
    }
}

/// What must not be in any notebook: a cell that fails, unless it is announced that it does not
/// compile; words on standard error; an announced error that does not come.
fn faults(now: &Notebook, stopped: Option<&(usize, String)>) -> Vec<Complaint> {
    let mut faults = Vec::new();
    for (nth, cell) in now.cells.iter().enumerate().filter(|(_, cell)| cell.is_code()) {
        let errors: Vec<String> = cell.outputs_of("error").map(trace).collect();
        if let Some((_, why)) = stopped.filter(|(stopped, _)| *stopped == nth) {
            // What a panic says is on standard error.
            let printed = cell.outputs_of("stream").filter(|output| output["name"] == "stderr");
            let said: String = printed.map(|output| text(&output["text"])).collect();
            let lines = beginning(&(said + &errors.join("\n")));
            faults.push(Complaint::new(nth, format!("it {why}"), lines));
            break; // the cells after it did not run
        }
        for output in cell.outputs_of("stream").filter(|output| output["name"] == "stderr") {
            let lines = beginning(&text(&output["text"]));
            faults.push(Complaint::new(nth, "it writes to standard error", lines));
        }
        if cell.has_tag(ANNOUNCED) {
            match errors.iter().find(|error| is_crash(error)) {
                Some(error) => {
                    let what = "it ends the kernel's process; only compile errors are announced";
                    faults.push(Complaint::new(nth, what, beginning(error)));
                }
                None if errors.is_empty() => {
                    let what = format!("it compiles, although its tag is `{ANNOUNCED}`");
                    faults.push(Complaint::new(nth, what, Vec::new()));
                }
                None => {}
            }
        }
    }
    faults
}

fn trace(error: &serde_json::Map<String, serde_json::Value>) -> String {
    let lines = error.get("traceback").and_then(|trace| trace.as_array());
    let lines: Vec<String> = lines.into_iter().flatten().map(text).collect();
    console::strip_ansi_codes(&lines.join("\n")).into_owned()
}

/// A panic and an abort end the process in which the cells run.
fn is_crash(error: &str) -> bool {
    error.starts_with("Subprocess terminated")
}

fn changes(held: &Notebook, now: &Notebook) -> Vec<Complaint> {
    let differences = differences(held, now).into_iter();
    differences
        .map(|difference| {
            Complaint::new(difference.cell, "its output is another", difference.lines)
        })
        .collect()
}

fn tell(
    file: &Path,
    notebook: &Notebook,
    complaint: &Complaint,
    terminal: &mut Terminal,
) -> Result<()> {
    let code = notebook.cells[..=complaint.cell].iter().filter(|cell| cell.is_code()).count();
    let begins = |cell: &Cell| cell.source.whole().lines().next().unwrap_or_default().to_string();
    let first = begins(&notebook.cells[complaint.cell]);
    let file = file.file_name().unwrap_or_default().to_string_lossy();
    terminal.line(&format!("  {file}, code cell {code}: {}", complaint.what))?;
    terminal.line(&format!("      {first}"))?;
    for line in &complaint.lines {
        terminal.line(&format!("    {line}"))?;
    }
    Ok(())
}

/// How long it took. The first cell is not counted among the others: it loads the crates.
fn times(name: &str, executed: &Executed) -> String {
    let cells = executed.cells.len();
    let sum: Duration = executed.cells.iter().map(|(_, time)| *time).sum();
    let rest = executed.cells.iter().skip(1).enumerate();
    let slowest = rest.max_by_key(|(_, (_, time))| *time);
    let slowest = slowest.map_or(String::new(), |(nth, (_, time))| {
        format!(", slowest after the first {:.1} s (code cell {})", time.as_secs_f64(), nth + 2)
    });
    let (start, sum) = (executed.start.as_secs_f64(), sum.as_secs_f64());
    format!("{name:<13}{cells:>2} cells  kernel {start:.0} s, cells {sum:.0} s{slowest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn a_notebook(tags: &[&str], outputs: Value) -> Notebook {
        let cell = json!({
            "cell_type": "code", "source": "1", "metadata": {"tags": tags}, "outputs": outputs,
        });
        serde_json::from_value(json!({
            "cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
        }))
        .unwrap()
    }

    fn an_error(words: &str) -> Value {
        json!([{"output_type": "error", "ename": "Error", "evalue": words, "traceback": [words]}])
    }

    fn found(notebook: &Notebook) -> Vec<String> {
        faults(notebook, None).into_iter().map(|fault| fault.what).collect()
    }

    #[test]
    fn only_announced_compile_errors_are_good() {
        let good = a_notebook(&[ANNOUNCED], an_error("mismatched types"));
        assert!(found(&good).is_empty());
        let panics = a_notebook(&[ANNOUNCED], an_error("Subprocess terminated with status: 6"));
        assert!(found(&panics)[0].contains("ends the kernel's process"));
        let compiles = a_notebook(&[ANNOUNCED], json!([]));
        assert!(found(&compiles)[0].contains("it compiles"));
    }

    #[test]
    fn a_cell_that_stopped_the_run_is_told_with_its_error() {
        let failed = a_notebook(&[], an_error("mismatched types"));
        let told = faults(&failed, Some(&(0, "failed".into())));
        assert_eq!(
            (told[0].what.as_str(), told[0].lines[0].as_str()),
            ("it failed", "+ mismatched types")
        );
    }

    #[test]
    fn words_on_standard_error_are_a_fault() {
        let warns =
            a_notebook(&[], json!([{"output_type": "stream", "name": "stderr", "text": "no\n"}]));
        assert_eq!(found(&warns), ["it writes to standard error"]);
        let prints =
            a_notebook(&[], json!([{"output_type": "stream", "name": "stdout", "text": "yes\n"}]));
        assert!(found(&prints).is_empty());
    }
}
