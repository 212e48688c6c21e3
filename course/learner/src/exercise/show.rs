//! Grades as a learner reads them, in lines that fit the terminal.

use super::Workspace;
use super::grading::Grades;
use super::source::region;
use crate::error::Error;
use console::{measure_text_width, style, truncate_str};
use contract::grade::Grade;
use contract::registry::{TASKS, task};
pub use contract::report::fit;
use contract::report::report;
use contract::task::Task;
use std::fmt::Display;

/// Lines are not wider, however wide the terminal is.
const WIDEST: usize = 100;
/// And not narrower.
const NARROWEST: usize = 40;
/// The column of the tasks' subjects, if none is longer.
const SUBJECT: usize = 44;
/// The label column of a report.
const LABEL: usize = 11;

/// The width of standard output; `WIDEST` if it is not a terminal.
pub fn width() -> usize {
    let size = console::Term::stdout().size_checked();
    size.map_or(WIDEST, |(_, columns)| usize::from(columns)).clamp(NARROWEST, WIDEST)
}

/// The width of standard error, if it is a terminal. If not, lines are left as they are.
pub fn error_width() -> usize {
    let size = console::Term::stderr().size_checked();
    size.map_or(usize::MAX, |(_, columns)| usize::from(columns).clamp(NARROWEST, WIDEST))
}

/// A task in one line: what came out, number, subject, points, and what is broken.
pub fn task_line(task: &Task, grade: Option<&Grade>, width: usize) -> String {
    let mark = match grade {
        None => style("?     ").dim(),
        Some(grade) if grade.is_unknown() => style("?     ").dim(),
        Some(grade) if grade.passed => style("ok    ").green(),
        Some(grade) if grade.waits_for(task).is_some() => style("waits ").yellow(),
        Some(grade) if grade.begun => style("broken").red(),
        Some(_) => style("to do ").yellow(),
    };
    // 2 + mark + 2 + number + 2 + subject + 2 + points + 2 + reason
    let longest = TASKS.iter().map(|task| measure_text_width(task.subject)).max().unwrap_or(0);
    let subject_width = longest.max(SUBJECT).min(width.saturating_sub(22));
    let subject = truncate_str(task.subject, subject_width, "…");
    let pad = subject_width.saturating_sub(measure_text_width(&subject));
    let points = style(format!("{:>3} p", task.points)).dim();
    let line = format!("  {mark}  {:<4}  {subject}{} {points}", task.number, " ".repeat(pad));
    let waits = grade.and_then(|grade| grade.waits_for(task)).map(|other| format!("for {other}"));
    let broken = || Some(grade.filter(|grade| grade.begun)?.broken.first()?.id.clone());
    let room = width.saturating_sub(measure_text_width(&line) + 2);
    match waits.or_else(broken) {
        Some(reason) if room >= 8 => format!("{line}  {}", truncate_str(&reason, room, "…")),
        _ => line,
    }
}

/// How many tasks are done, and how many points that is.
pub fn score(grades: &Grades) -> String {
    let points: u32 = grades.0.iter().filter(|grade| grade.passed).map(|grade| grade.points).sum();
    let all: u32 = grades.0.iter().map(|grade| grade.points).sum();
    format!("{} of {} tasks done, {points} of {all} points", grades.done(), grades.0.len())
}

/// The report on a task in lines that fit, with its labels dimmed. An editor's terminal opens the line that it names.
pub fn report_lines(grade: &Grade, workspace: &Workspace, width: usize) -> Vec<String> {
    let Some(task) = task(&grade.task) else { return Vec::new() };
    let text = report(task, grade, width);
    let file = |line: &str| match line.starts_with("file ") {
        true => fit(&format!("{:LABEL$}{}", "file", place(task, workspace)), width, LABEL),
        false => vec![line.to_string()],
    };
    let mut title = true;
    let styled = |line: String| {
        // It ends before the first empty line, and may be longer than one.
        title &= !line.is_empty();
        if title {
            return style(&line).bold().to_string();
        }
        let end = line.char_indices().nth(LABEL).map_or(line.len(), |(at, _)| at);
        let (label, rest) = line.split_at(end);
        let label = match label.trim() {
            "" => label.to_string(),
            "broken" => style(label).red().bold().to_string(),
            "passed" => style(label).green().bold().to_string(),
            _ => style(label).dim().to_string(),
        };
        format!("{label}{rest}")
    };
    text.lines().flat_map(file).map(styled).collect()
}

/// The learner's file, and the line at which the task begins.
pub fn place(task: &Task, workspace: &Workspace) -> String {
    let file = format!("exercises/src/{}", task.file());
    let Ok(text) = workspace.read(&file) else {
        let slug = task.component;
        return format!("{file} is not there; `cargo course reset {slug}` brings its starter");
    };
    match region(&text, task.place) {
        Ok(place) => format!("{file}:{}", place.line),
        Err(problem) => format!("{file} ({problem})"),
    }
}

/// An error in lines that fit. What the compiler shows of the code is not broken: its marks are under the code.
pub fn error_lines(error: &dyn Display, width: usize) -> Vec<String> {
    let code = |line: &str| {
        let line = line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
        line.starts_with('|') || line.starts_with("-->") || line.starts_with("= ")
    };
    let words = format!("error: {error}");
    let parts = words.lines().flat_map(|line| match code(line) {
        true => vec![line.to_string()],
        false => fit(line, width, 10),
    });
    parts.collect()
}

/// The same, its first line in red, for standard output.
pub fn red_error_lines(error: &Error, width: usize) -> Vec<String> {
    let mut lines = error_lines(error, width);
    if let Some(first) = lines.first_mut() {
        *first = style(&*first).red().bold().to_string();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_fits_in_60_columns() {
        let workspace = Workspace::find().unwrap();
        for task in TASKS.iter() {
            let mut grade = Grade::failed(task, "a-long/rule-of-this-kind", "", "");
            assert!(measure_text_width(&task_line(task, Some(&grade), 60)) <= 60);
            grade.begun = false;
            assert!(measure_text_width(&task_line(task, Some(&grade), 60)) <= 60);
            assert!(measure_text_width(&task_line(task, None, 60)) <= 60);
            for line in report_lines(&grade, &workspace, 60) {
                assert!(measure_text_width(&line) <= 60, "{line}");
            }
        }
    }
}
