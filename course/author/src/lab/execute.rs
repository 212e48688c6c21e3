//! Runs notebooks without a page, by nbclient, Jupyter's own library for that.

use super::home::Home;
use super::program::last_lines;
use crate::error::{Error, Result};
use crate::notebook::Notebook;
use serde::Deserialize;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A cell that takes longer has failed. On two cores, cells take seconds.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// What happened when a notebook was run.
#[derive(Debug)]
pub struct Executed {
    /// The notebook with its new outputs.
    pub notebook: Notebook,
    /// How long the kernel took to start.
    pub start: Duration,
    /// How long each code cell took: its place among all cells, and the time.
    pub cells: Vec<(usize, Duration)>,
    /// The cell that ended the run early, and why.
    pub stopped: Option<(usize, String)>,
}

/// A line that `execute.py` writes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Event {
    Started { kernel: f64 },
    Ran { cell: usize, seconds: f64, why: Option<String> },
}

/// Runs a notebook from its first cell to its last, in a new kernel. `on_cell` hears how many code cells
/// have run.
///
/// # Errors
/// The kernel does not start, or Python is not what was installed.
pub fn execute(
    home: &Home,
    notebook: &Path,
    timeout: Duration,
    mut on_cell: impl FnMut(usize),
) -> Result<Executed> {
    let folder = tempfile::tempdir()?;
    let result = folder.path().join("result.ipynb");
    let mut start = Duration::ZERO;
    let mut cells = Vec::new();
    let mut stopped = None;
    run(
        home,
        timeout,
        &[notebook, &result],
        |_| {},
        |event| match event {
            Event::Started { kernel } => start = Duration::from_secs_f64(kernel),
            Event::Ran { cell, seconds, why } => {
                cells.push((cell, Duration::from_secs_f64(seconds)));
                on_cell(cells.len());
                stopped = why.map(|why| (cell, why));
            }
        },
    )?;
    Ok(Executed { notebook: Notebook::read(&result)?, start, cells, stopped })
}

/// A cell that does not compile, for a reason that makes the kernel check all crates once more.
const UNKNOWN_NAME: &str = r#"{
    "cells": [{
        "cell_type": "code", "execution_count": null, "id": "unknown-name",
        "metadata": {"tags": ["raises-exception"]}, "outputs": [],
        "source": "let a = unknown;"
    }],
    "metadata": {}, "nbformat": 4, "nbformat_minor": 5
}"#;

/// Has a kernel build all that it ever builds: at its first start, and at its first compile error. What
/// it builds is there for the next. `on_crate` hears what is built.
///
/// # Errors
/// What the kernel says when it does not start.
pub fn warm_up(home: &Home, on_crate: impl FnMut(&str) + Send) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [file, result] = ["unknown.ipynb", "result.ipynb"].map(|name| folder.path().join(name));
    std::fs::write(&file, UNKNOWN_NAME)?;
    run(home, 5 * TIMEOUT, &[&file, &result], on_crate, |_| {})
}

fn run(
    home: &Home,
    timeout: Duration,
    files: &[&Path],
    mut on_crate: impl FnMut(&str) + Send,
    mut on_event: impl FnMut(Event),
) -> Result<()> {
    let failed = |reason: String| Error::Program { what: "the notebooks can't be run", reason };
    let mut python = home.python();
    python.args(["-c", include_str!("execute.py")]).arg(home.notebooks());
    python.arg(timeout.as_secs().to_string()).args(files);
    python.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = python.spawn().map_err(|error| failed(error.to_string()))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let said = std::thread::scope(|scope| {
        let said = scope.spawn(move || {
            let mut said = String::new();
            for line in stderr.into_iter().flat_map(lines) {
                let line_of_cargo = line.trim_start();
                let verbs = ["Compiling ", "Checking "];
                match verbs.iter().find_map(|verb| line_of_cargo.strip_prefix(verb)) {
                    Some(name) => on_crate(name.split(' ').next().unwrap_or(name)),
                    None => said.push_str(&format!("{line}\n")),
                }
            }
            said
        });
        for line in stdout.into_iter().flat_map(lines) {
            match serde_json::from_str(&line) {
                Ok(event) => on_event(event),
                Err(_) => drop(writeln!(std::io::stderr(), "{line}")),
            }
        }
        said.join().unwrap_or_default()
    });
    match ended_well(&mut child) {
        true => Ok(()),
        false => Err(failed(last_lines(&said, 30))),
    }
}

fn lines(stream: impl std::io::Read) -> impl Iterator<Item = String> {
    BufReader::new(stream).lines().map_while(std::io::Result::ok)
}

fn ended_well(child: &mut Child) -> bool {
    child.wait().is_ok_and(|status| status.success())
}
