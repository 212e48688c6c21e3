//! `cargo course reset`: the starter again, after a copy of what is there.

use super::source::{Source, find, replaced};
use super::{Workspace, select};
use crate::error::{Error, Result};
use crate::save;
use crate::terminal::Terminal;
use contract::registry::component;
use std::io::ErrorKind;

/// The folder of the copies. Git does not look at it.
const BACKUPS: &str = "exercises/backups";

/// Puts the starters of tasks back, or of whole files.
///
/// # Errors
/// No task or component has one of these names, or its place is not marked: then nothing has changed. A file can't be used.
pub fn run(names: &[String]) -> Result<bool> {
    let workspace = Workspace::find()?;
    // All of them can be done before the first is.
    for name in names {
        Reset::of(&workspace, name)?;
    }
    let mut terminal = Terminal::stdout();
    for name in names {
        let Reset { what, source, text } = Reset::of(&workspace, name)?;
        if let Some(copy) = back_up(&workspace, &source)? {
            terminal.line(&format!("your file is kept as {copy}"))?;
        }
        workspace.write(&source.file(), &text)?;
        terminal.line(&format!("the starter is back: {what}"))?;
    }
    Ok(true)
}

/// A file with a starter in it again.
struct Reset {
    what: String,
    source: Source,
    text: String,
}

impl Reset {
    fn of(workspace: &Workspace, name: &str) -> Result<Self> {
        if let Some(component) = component(name.strip_suffix('/').unwrap_or(name)) {
            let source = Source::of(workspace, component.slug)?;
            return Ok(Self { what: source.file(), text: source.starter(), source });
        }
        let task = select::task(name)?;
        let source = Source::of(workspace, task.component)?;
        let lines = source.starter_region(task.place).ok_or_else(|| missing(task.name))?;
        let (text, place) = find(workspace, &source, task.place)?;
        let what = format!("task {} in {}:{}", task.place, source.file(), place.line);
        Ok(Self { what, text: replaced(&text, &place, &lines), source })
    }
}

/// The tests look at every task, so this is not seen.
fn missing(name: &str) -> Error {
    let reason = format!("task {name} has no starter");
    Error::Program { what: "this is a mistake of the course", reason }
}

/// Copies the learner's file. Returns the copy's name, or nothing if there is no file.
fn back_up(workspace: &Workspace, source: &Source) -> Result<Option<String>> {
    let file = source.file();
    if !workspace.path(&file).exists() {
        return Ok(None);
    }
    let failed = |error: std::io::Error| Error::File {
        file: BACKUPS.to_string(),
        reason: error.to_string(),
    };
    let folder = workspace.path(BACKUPS);
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let before = format!("{}-", source.slug);
    let mut last = 0;
    for entry in folder.read_dir().map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().to_string();
        let number = name.strip_prefix(&before).and_then(|name| name.strip_suffix(".rs"));
        // No one has so many copies: a larger number is of another kind.
        let number = number.and_then(|number| number.parse().ok()).filter(|n| *n < u64::MAX / 2);
        last = last.max(number.unwrap_or(0));
    }
    let text = crate::read::whole(&workspace.path(&file), super::LONGEST).map_err(failed)?;
    loop {
        last += 1u64;
        let copy = format!("{BACKUPS}/{before}{last}.rs");
        match save::write_new(&workspace.path(&copy), &text) {
            Ok(()) => return Ok(Some(copy)),
            // Another reset at the same time has taken this number.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
    }
}
