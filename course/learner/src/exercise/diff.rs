//! `cargo course diff`: the model solution beside the learner's, once theirs passes.

use super::grading::grade;
use super::place::shown;
use super::show::{report_lines, width};
use super::source::{Source, find};
use super::{Workspace, select};
use crate::error::Result;
use crate::progress::with_spinner;
use crate::terminal::Terminal;
use console::{measure_text_width, style, truncate_str};
use contract::task::Task;
use similar::{ChangeTag, TextDiff};

/// From this width on, the two are shown side by side.
const SIDE_BY_SIDE: usize = 120;

/// Shows the model solutions beside the learner's. Returns whether the tasks pass.
///
/// # Errors
/// No task has one of these names; a place is not marked; the code does not compile.
pub fn run(names: &[String]) -> Result<bool> {
    let tasks = select::tasks(names)?;
    let workspace = Workspace::find()?;
    let mut terminal = Terminal::stdout();
    let grades = with_spinner(|progress| grade(&workspace, &tasks, progress))?.complete()?;
    for (nth, task) in tasks.into_iter().enumerate() {
        if nth > 0 {
            terminal.line("")?;
        }
        match grades.of(task) {
            Some(grade) if !grade.passed => {
                let refusal = style(format!("Task {} does not pass yet.", task.number)).bold();
                terminal.line(&format!("{refusal} A solution is shown once yours passes.\n"))?;
                for line in report_lines(grade, &workspace, width()) {
                    terminal.line(&line)?;
                }
            }
            _ => compare(&workspace, task, &mut terminal)?,
        }
    }
    Ok(grades.all_passed())
}

fn compare(workspace: &Workspace, task: &Task, terminal: &mut Terminal) -> Result<()> {
    let source = Source::of(workspace, task.component)?;
    let (text, place) = find(workspace, &source, task.place)?;
    let theirs = source.solution_region(task.place).unwrap_or_default();
    let (yours, theirs) = (dedented(&text[place.inner]), dedented(&theirs));
    terminal.line(&style(format!("Task {}  {}", task.number, task.title)).bold().to_string())?;
    terminal.line("")?;
    // The terminal's own width: code is read best in long lines.
    let columns = console::Term::stdout().size_checked().map_or(80, |(_, columns)| columns.into());
    let lines = if theirs.trim().is_empty() || theirs.contains("todo!(") {
        vec!["This copy of the course is handed out without model solutions.".to_string()]
    } else if yours == theirs {
        vec!["Yours is the model solution, word for word.".to_string()]
    } else if columns >= SIDE_BY_SIDE {
        side_by_side(&yours, &theirs, columns)
    } else {
        unified(&yours, &theirs)
    };
    for line in lines {
        terminal.line(&line)?;
    }
    terminal.line("")?;
    terminal.line(&format!("the library's own: {}", shown(&task.library, workspace)))
}

/// The lines without the indentation that all of them have.
fn dedented(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let all = text.lines().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    text.lines().map(|line| format!("{}\n", line.get(all..).unwrap_or("").trim_end())).collect()
}

fn unified(yours: &str, theirs: &str) -> Vec<String> {
    let mut lines = vec![
        style("- yours").red().to_string(),
        style("+ the model solution").green().to_string(),
        String::new(),
    ];
    for change in TextDiff::from_lines(yours, theirs).iter_all_changes() {
        let line = change.value().trim_end();
        lines.push(match change.tag() {
            ChangeTag::Delete => style(format!("- {line}")).red().to_string(),
            ChangeTag::Insert => style(format!("+ {line}")).green().to_string(),
            ChangeTag::Equal => format!("  {line}").trim_end().to_string(),
        });
    }
    lines
}

fn side_by_side(yours: &str, theirs: &str, columns: usize) -> Vec<String> {
    let half = (columns - 3) / 2;
    let cell = |text: &str| {
        let text = truncate_str(text, half, "…").to_string();
        let pad = half.saturating_sub(measure_text_width(&text));
        (text, " ".repeat(pad))
    };
    let row = |left: Option<&str>, right: Option<&str>| {
        let changed = left != right;
        let ((l, gap), (r, _)) = (cell(left.unwrap_or("")), cell(right.unwrap_or("")));
        let (l, r) = match changed {
            true => (style(l).red().to_string(), style(r).green().to_string()),
            false => (l, r),
        };
        format!("{l}{gap} {} {r}", style("│").dim())
    };
    let mut lines = vec![row(Some("yours"), Some("the model solution")), String::new()];
    let (old, new): (Vec<&str>, Vec<&str>) = (yours.lines().collect(), theirs.lines().collect());
    for part in TextDiff::from_lines(yours, theirs).ops() {
        let (left, right) = (&old[part.old_range()], &new[part.new_range()]);
        for i in 0..left.len().max(right.len()) {
            lines.push(row(left.get(i).copied(), right.get(i).copied()));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const YOURS: &str = "a\nb\nc\n";
    const THEIRS: &str = "a\nB\nbb\nc\n";

    #[test]
    fn both_ways_show_both_sides() {
        let plain = |lines: Vec<String>| -> Vec<String> {
            lines
                .iter()
                .map(|line| console::strip_ansi_codes(line).trim_end().to_string())
                .collect()
        };
        assert_eq!(plain(unified(YOURS, THEIRS))[3..], ["  a", "- b", "+ B", "+ bb", "  c"]);
        let rows = plain(side_by_side(YOURS, THEIRS, 13));
        assert_eq!(rows[2..], ["a     │ a", "b     │ B", "      │ bb", "c     │ c"]);
    }

    #[test]
    fn common_indentation_goes() {
        assert_eq!(dedented("    a\n\n      b\r\n"), "a\n\n  b\n");
    }
}
