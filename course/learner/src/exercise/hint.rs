//! `cargo course hint`: the idea, the formula, the call. Never the answer.

use super::show::{fit, width};
use super::{TIERS, Workspace, json, select};
use crate::error::Result;
use crate::terminal::Terminal;
use console::style;
use contract::task::Task;

/// The file of a task's hints, named from the workspace.
pub fn file(task: &Task) -> String {
    let name = task.name.split_once('/').map_or(task.name, |(_, name)| name);
    format!("exercises/{}/hints/{name}.md", task.component)
}

/// The text of a tier, from 1 to 3, in a file of hints.
fn text(file: &str, tier: usize) -> Option<&str> {
    let heading = format!("## {}\n", TIERS.get(tier.checked_sub(1)?)?);
    let after = file.split_once(&heading)?.1;
    let section = after.split("\n## ").next().unwrap_or(after).trim_end();
    // The first line may be a formula: its indentation stays.
    let section = section.trim_start_matches('\n');
    (!section.is_empty()).then_some(section)
}

/// Prints a tier, and how to see the next one; or both as JSON.
///
/// # Errors
/// No task has this number.
pub fn run(words: &str, tier: usize, as_json: bool) -> Result<bool> {
    let task = select::task(words)?;
    let workspace = Workspace::find()?;
    let hints = workspace.read(&file(task))?;
    let (mut terminal, width) = (Terminal::stdout(), width());
    if as_json {
        let hint = json::hint(&workspace, task, tier, text(&hints, tier).unwrap_or_default());
        terminal.line(&json::pretty(&hint)?)?;
        return Ok(true);
    }
    let name = TIERS.get(tier.saturating_sub(1)).copied().unwrap_or_default();
    let title = format!("Task {}  {}", task.number, task.title);
    for line in fit(&title, width, 4) {
        terminal.line(&style(line).bold().to_string())?;
    }
    terminal.line(&style(format!("Hint {tier} of {}: {name}", TIERS.len())).dim().to_string())?;
    terminal.line("")?;
    for line in text(&hints, tier).unwrap_or("There is no hint here.").lines() {
        let hang = if line.starts_with("- ") { 2 } else { 0 };
        for line in fit(line, width, hang) {
            terminal.line(&line)?;
        }
    }
    terminal.line("")?;
    let next = match tier {
        1 => format!("more: cargo course hint {} 2", task.number),
        2 => format!("more: cargo course hint {} 3", task.number),
        _ => format!("That was the last one. Read {} again.", task.chapter),
    };
    terminal.line(&style(next).dim().to_string())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exercise::source::Source;
    use contract::registry::{COMPONENTS, TASKS};
    use std::collections::BTreeSet;

    #[test]
    fn every_task_has_hints_and_every_hint_a_task() {
        let workspace = Workspace::find().unwrap();
        let wanted: BTreeSet<String> = TASKS.iter().map(file).collect();
        let mut found = BTreeSet::new();
        for component in COMPONENTS {
            let folder = format!("exercises/{}/hints", component.slug);
            for entry in workspace.path(&folder).read_dir().into_iter().flatten().flatten() {
                found.insert(format!("{folder}/{}", entry.file_name().to_string_lossy()));
            }
        }
        let (missing, left): (Vec<_>, Vec<_>) =
            (wanted.difference(&found).collect(), found.difference(&wanted).collect());
        assert!(missing.is_empty(), "write these hints, in three tiers: {missing:?}");
        assert!(left.is_empty(), "no task has these hints: {left:?}");
    }

    #[test]
    fn no_tier_is_empty_or_gives_the_answer() {
        let workspace = Workspace::find().unwrap();
        for task in TASKS.iter() {
            let file = file(task);
            let hints = workspace.read(&file).unwrap();
            for (row, name) in TIERS.iter().enumerate() {
                let tier = text(&hints, row + 1).unwrap_or_default();
                assert!(tier.len() > 20, "{file}: `## {name}` says less than 20 letters");
            }
            let headings = hints.lines().filter(|line| line.starts_with("## ")).count();
            assert_eq!(headings, TIERS.len(), "{file}: its headings must be {TIERS:?}");
            let source = Source::of(&workspace, task.component).unwrap();
            // A line of the solution that says something is nowhere in the hints.
            for line in source.solution_region(task.name).into_iter().flat_map(lines) {
                assert!(!hints.contains(&line), "{file} gives a line of the solution away: {line}");
            }
        }
    }

    fn lines(region: String) -> Vec<String> {
        let code = |line: &str| line.split("//").next().unwrap_or_default().trim().to_string();
        region.lines().map(code).filter(|line| line.len() > 30).collect()
    }
}
