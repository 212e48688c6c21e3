//! `cargo course hint`: the idea, the formula, the call. Never the answer.

use super::select;
use super::show::{fit, width};
use crate::error::Result;
use crate::terminal::Terminal;
use console::style;
use include_dir::{Dir, include_dir};

static HINTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../exercises/hints");

/// What the tiers of a hint are called in its file.
pub const TIERS: [&str; 3] = ["Idea", "Formula", "dfdx call"];

/// The text of a tier, from 1 to 3.
pub fn text(task: &str, tier: usize) -> Option<&'static str> {
    let file = HINTS.get_file(format!("{task}.md"))?.contents_utf8()?;
    let heading = format!("## {}\n", TIERS.get(tier.checked_sub(1)?)?);
    let after = file.split_once(&heading)?.1;
    let section = after.split("\n## ").next().unwrap_or(after).trim_end();
    // The first line may be a formula: its indentation stays.
    let section = section.trim_start_matches(['\r', '\n']);
    (!section.is_empty()).then_some(section)
}

/// Prints a tier, and how to see the next one.
///
/// # Errors
/// No task has this number.
pub fn run(words: &str, tier: usize) -> Result<bool> {
    let task = select::task(words)?;
    let (mut terminal, width) = (Terminal::stdout(), width());
    let name = TIERS.get(tier.saturating_sub(1)).copied().unwrap_or_default();
    let title = format!("Task {}  {}", task.number, task.title);
    for line in fit(&title, width, 4) {
        terminal.line(&style(line).bold().to_string())?;
    }
    terminal.line(&style(format!("Hint {tier} of {}: {name}", TIERS.len())).dim().to_string())?;
    terminal.line("")?;
    for line in text(task.number, tier).unwrap_or("There is no hint here.").lines() {
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
    use crate::exercise::source::SOURCES;
    use contract::tasks::TASKS;
    use std::collections::BTreeSet;

    #[test]
    fn every_task_has_hints_and_every_hint_a_task() {
        let places = SOURCES.iter().flat_map(|source| source.numbers());
        let tasks: BTreeSet<String> =
            TASKS.iter().map(|task| task.number).chain(places).map(str::to_string).collect();
        let stem = |file: &include_dir::File<'_>| {
            file.path().file_stem().unwrap_or_default().to_string_lossy().to_string()
        };
        let hints: BTreeSet<String> = HINTS.files().map(stem).collect();
        assert_eq!(hints, tasks);
    }

    #[test]
    fn no_tier_is_empty_or_gives_the_answer() {
        for file in HINTS.files() {
            let number = file.path().file_stem().unwrap().to_string_lossy();
            let tiers: Vec<&str> =
                (1..=3).map(|tier| text(&number, tier).expect(&number)).collect();
            assert!(tiers.iter().all(|tier| tier.len() > 20), "{number}");
            assert_eq!(file.contents_utf8().unwrap().matches("## ").count(), 3, "{number}");
            let source = SOURCES.iter().find(|source| source.numbers().contains(&&*number));
            // A line of the solution that says something is nowhere in the hints.
            for line in source.iter().filter_map(|s| s.solution_region(&number)).flat_map(lines) {
                assert!(!tiers.iter().any(|tier| tier.contains(&line)), "{number}: {line}");
            }
        }
    }

    fn lines(region: String) -> Vec<String> {
        let code = |line: &str| line.split("//").next().unwrap_or_default().trim().to_string();
        region.lines().map(code).filter(|line| line.len() > 30).collect()
    }
}
