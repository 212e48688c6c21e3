//! Grades and hints as JSON, for scripts, editors and assistants.
//!
//! `course/schemas` describes every field, and a test compares.

use super::TIERS;
use super::Workspace;
use super::grading::Grades;
use super::source::region;
use crate::error::Result;
use contract::grade::Grade;
use contract::registry;
use contract::report::chapter;
use contract::task::Task;
use serde::Serialize;

/// A task by all its names.
#[derive(Debug, Serialize)]
struct About<'a> {
    name: &'a str,
    title: &'a str,
    file: String,
    /// Where its place begins in the file, if the marks are there.
    line: Option<usize>,
}

impl<'a> About<'a> {
    fn new(workspace: &Workspace, task: &'a Task) -> Self {
        let file = format!("exercises/src/{}", task.file());
        let text = workspace.read(&file).unwrap_or_default();
        let line = region(&text, task.place).ok().map(|place| place.line);
        Self { name: task.name, title: &task.title, file, line }
    }
}

/// A level of hint that can be asked for.
#[derive(Debug, Serialize)]
struct Next {
    level: usize,
    kind: &'static str,
    command: String,
}

impl Next {
    /// Nothing after the last level.
    fn new(task: &Task, level: usize) -> Option<Self> {
        let kind = TIERS.get(level.checked_sub(1)?)?;
        let command = format!("cargo course hint {} {level} --json", task.name);
        Some(Self { level, kind, command })
    }
}

/// A grade, and what its reader needs beside it.
#[derive(Debug, Serialize)]
struct Graded<'a> {
    #[serde(flatten)]
    about: About<'a>,
    #[serde(flatten)]
    grade: &'a Grade,
    waits_for: Option<&'a str>,
    /// A page of the book and a section in it.
    page: &'a str,
    /// The first level, because it is not stored which ones were read.
    hint: Option<Next>,
}

/// All grades, in their order.
pub fn grades<'a>(workspace: &Workspace, grades: &'a Grades) -> impl Serialize + use<'a> {
    let graded = |grade: &'a Grade| {
        let task = registry::task(&grade.task)?;
        Some(Graded {
            about: About::new(workspace, task),
            grade,
            waits_for: grade.waits_for(task),
            page: chapter(task, grade),
            hint: if grade.passed { None } else { Next::new(task, 1) },
        })
    };
    grades.0.iter().filter_map(graded).collect::<Vec<_>>()
}

/// One level of the hints on a task.
#[derive(Debug, Serialize)]
struct Hint<'a> {
    task: &'a str,
    #[serde(flatten)]
    about: About<'a>,
    page: &'a str,
    level: usize,
    levels: usize,
    kind: &'static str,
    text: &'a str,
    next: Option<Next>,
}

/// A hint, and which one is next.
pub fn hint<'a>(
    workspace: &Workspace,
    task: &'a Task,
    level: usize,
    text: &'a str,
) -> impl Serialize + use<'a> {
    Hint {
        task: &task.number,
        about: About::new(workspace, task),
        page: task.chapter,
        level,
        levels: TIERS.len(),
        kind: TIERS.get(level.saturating_sub(1)).copied().unwrap_or_default(),
        text,
        next: Next::new(task, level + 1),
    }
}

/// JSON as a person can read it, too.
///
/// # Errors
/// None that is known: these values have texts as keys.
pub fn pretty(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value).map_err(std::io::Error::from)?)
}
