//! Grades as a learner reads them, in lines that fit the terminal.

use super::grading::Grades;
use crate::error::Error;
use console::{measure_text_width, style, truncate_str};
use contract::grade::Grade;
use contract::registry::{TASKS, task};
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
        Some(grade) if grade.does_not_compile() => style("?     ").dim(),
        Some(grade) if grade.passed => style("ok    ").green(),
        Some(grade) if grade.begun => style("broken").red(),
        Some(grade) if grade.waits_for(task).is_some() => style("waits ").yellow(),
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

/// The report on a task in lines that fit, with its labels dimmed.
pub fn report_lines(grade: &Grade, width: usize) -> Vec<String> {
    let Some(task) = task(&grade.task) else { return Vec::new() };
    let text = report(task, grade);
    let mut lines = Vec::new();
    for (row, line) in text.lines().enumerate() {
        if row == 0 {
            lines.extend(fit(line, width, LABEL).into_iter().map(|l| style(l).bold().to_string()));
            continue;
        }
        for part in fit(line, width, LABEL) {
            let end = part.char_indices().nth(LABEL).map_or(part.len(), |(at, _)| at);
            let (label, rest) = part.split_at(end);
            let label = match label.trim() {
                "" => label.to_string(),
                "broken" => style(label).red().bold().to_string(),
                "passed" => style(label).green().bold().to_string(),
                _ => style(label).dim().to_string(),
            };
            lines.push(format!("{label}{rest}"));
        }
    }
    lines
}

/// An error in lines that fit. What the compiler shows of the code is not broken: its marks stand
/// under the code.
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

/// A line as lines of at most `width`, broken at spaces. What follows the first stands `hang`
/// columns in, or under the line's own text if that stands deeper.
pub fn fit(line: &str, width: usize, hang: usize) -> Vec<String> {
    let own = line.len() - line.trim_start().len();
    let hang = if own > 0 { own } else { hang }.min(width / 2);
    let mut lines: Vec<String> = Vec::new();
    let mut rest = line.trim_end();
    loop {
        let indent = if lines.is_empty() { "" } else { &" ".repeat(hang) };
        let room = width.saturating_sub(indent.len()).max(1);
        if measure_text_width(rest) <= room {
            lines.push(format!("{indent}{rest}"));
            return lines;
        }
        // The last space that leaves something on this line; a longer word is cut.
        let end = rest.char_indices().nth(room).map_or(rest.len(), |(at, _)| at);
        let from = if lines.is_empty() { hang.min(end) } else { 0 };
        let from = (from..=end).find(|&at| rest.is_char_boundary(at)).unwrap_or(end);
        let space = rest[from..end].rfind(' ').map(|at| from + at).filter(|at| *at > from);
        let cut = if rest[end..].starts_with(' ') { end } else { space.unwrap_or(end) };
        lines.push(format!("{indent}{}", rest[..cut].trim_end()));
        rest = rest[cut..].trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_hang() {
        assert_eq!(
            fit("result     one two three", 23, 11),
            ["result     one two", "           three"]
        );
        assert_eq!(fit("    abcdefghijkl", 10, 2), ["    abcdef", "    ghijkl"]);
        assert_eq!(fit("", 10, 2), [""]);
        assert_eq!(fit("äöü äöü äöü", 7, 0), ["äöü äöü", "äöü"]);
    }

    #[test]
    fn a_task_fits_in_60_columns() {
        for task in TASKS.iter() {
            let mut grade = Grade::failed(task, "a-long/rule-of-this-kind", "", "");
            assert!(measure_text_width(&task_line(task, Some(&grade), 60)) <= 60);
            grade.begun = false;
            assert!(measure_text_width(&task_line(task, Some(&grade), 60)) <= 60);
            assert!(measure_text_width(&task_line(task, None, 60)) <= 60);
            for line in report_lines(&grade, 60) {
                assert!(measure_text_width(&line) <= 60, "{line}");
            }
        }
    }
}
