//! `cargo course check`: grades tasks, now or at each save.

use super::grading::{Graded, Grades, grade_until};
use super::show::{error_width, fit, red_error_lines, report_lines, score, task_line, width};
use super::watch::Watch;
use super::{Workspace, json, marks, select};
use crate::error::{Error, Result};
use crate::progress::with_spinner;
use crate::save;
use crate::terminal::Terminal;
use console::style;
use contract::task::Task;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

/// What is to be graded, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Numbers, names and components; all tasks if there are none.
    pub tasks: Vec<String>,
    /// Grade again at each save.
    pub watch: bool,
    /// Write the grades to this file; `-` is standard output, and the report goes to standard error.
    pub json: Option<PathBuf>,
}

/// Grades and reports. Returns whether all selected tasks pass.
///
/// # Errors
/// Bad input; code that does not compile; a program that can't be run.
pub fn run(options: &Options) -> Result<bool> {
    let tasks = select::tasks(&options.tasks)?;
    let workspace = Workspace::find()?;
    let json = options.json.as_deref().map(Json::new).transpose()?;
    if !options.watch {
        return once(&workspace, &tasks, json.as_ref(), &|| false);
    }
    let mut watch = Watch::new(&workspace);
    // No key asks for another run here.
    let (_, asked) = channel();
    let (mut terminal, width) = report(json.as_ref());
    loop {
        watch.note();
        let saves = Mutex::new(&mut watch);
        let saved = || saves.lock().unwrap_or_else(PoisonError::into_inner).is_changed();
        match once(&workspace, &tasks, json.as_ref(), &saved) {
            Ok(_) => {}
            Err(Error::Saved) => {
                watch.wait(&asked);
                continue;
            }
            // The next save may fix it.
            Err(error @ Error::DoesNotCompile(_)) => {
                for line in red_error_lines(&error, width) {
                    terminal.line(&line)?;
                }
            }
            Err(error) => return Err(error),
        }
        let waiting = "waiting for the next save; Ctrl-C leaves";
        terminal.line(&format!("\n{}", style(waiting).dim()))?;
        watch.wait(&asked);
        terminal.line(&style("─".repeat(width)).dim().to_string())?;
    }
}

fn once(
    workspace: &Workspace,
    tasks: &[&'static Task],
    json: Option<&Json>,
    saved: &(dyn Fn() -> bool + Sync),
) -> Result<bool> {
    let Graded { grades, uncompiled, aside } =
        with_spinner(|progress| grade_until(workspace, tasks, progress, saved))?;
    if let Some(json) = json {
        json.write(workspace, &grades)?;
    }
    let (mut terminal, width) = report(json);
    for task in tasks {
        terminal.line(&task_line(task, grades.of(task), width))?;
    }
    terminal.line("")?;
    let compiles =
        |task: &&&'static Task| grades.of(task).is_none_or(|grade| !grade.does_not_compile());
    let compiled: Vec<&'static Task> = tasks.iter().filter(compiles).copied().collect();
    // Where the compiler has words, it knows more of a file that is cut off than the marks do.
    let mut notes = marks::lines(workspace, &compiled, width);
    notes.extend(aside.iter().flat_map(|line| fit(line, width, 4)));
    for line in &notes {
        terminal.line(line)?;
    }
    if !notes.is_empty() {
        terminal.line("")?;
    }
    terminal.line(&style(score(&grades)).bold().to_string())?;
    // The compiler's words are the report.
    if let Some(error) = uncompiled {
        terminal.line("")?;
        return Err(error);
    }
    if let Some(grade) = grades.urgent() {
        terminal.line("")?;
        for line in report_lines(grade, workspace, width) {
            terminal.line(&line)?;
        }
    }
    if grades.0.len() > 1 && grades.0.iter().all(|grade| !grade.passed && !grade.begun) {
        terminal.line("")?;
        terminal.line("All red is how it starts: each task that you fill in turns green.")?;
    }
    for grade in grades.0.iter().filter(|grade| grade.passed) {
        for remark in grade.on_passing() {
            for line in format!("Task {}: {remark}", grade.task)
                .lines()
                .flat_map(|line| fit(line, width, 4))
            {
                terminal.line(&line)?;
            }
        }
    }
    Ok(grades.all_passed())
}

/// Where the report goes, and how wide it is.
fn report(json: Option<&Json>) -> (Terminal, usize) {
    match json {
        Some(Json { path: None }) => (Terminal::stderr(), error_width().min(width())),
        _ => (Terminal::stdout(), width()),
    }
}

/// The file for the grades, or standard output.
struct Json {
    path: Option<PathBuf>,
}

impl Json {
    /// Tries the file before the work begins, and leaves what is in it.
    fn new(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self { path: None });
        }
        save::check(path).map_err(|error| failed(path, &error))?;
        // A task's file is easily named here.
        let is_ours = |old: Vec<u8>| old.is_empty() || old.trim_ascii_start().starts_with(b"[");
        if path.is_file() && !crate::read::whole(path, super::LONGEST).is_ok_and(is_ours) {
            let words = "it holds something else than grades; name a new file, or remove this one";
            return Err(failed(path, &std::io::Error::other(words)));
        }
        Ok(Self { path: Some(path.to_path_buf()) })
    }

    fn write(&self, workspace: &Workspace, grades: &Grades) -> Result<()> {
        let text = json::pretty(&json::grades(workspace, grades))?;
        match &self.path {
            None => Terminal::stdout().line(&text),
            Some(path) => save::write(path, text + "\n").map_err(|error| failed(path, &error)),
        }
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::Json { path: path.display().to_string(), reason: error.to_string() }
}
