//! A failure as the learner reads it.

use crate::grade::Grade;
use crate::task::Task;
use crate::violation::{Fault, Violation};

/// Width of the label column.
const LABEL: usize = 11;
/// Columns of a report that is no terminal's: in a notebook, on a page.
pub const WIDTH: usize = 92;

/// The report on a task: its first broken promise in full, the others by name, in lines of at most `width` columns.
pub fn report(task: &Task, grade: &Grade, width: usize) -> String {
    let file = format!("exercises/src/{}", task.file());
    let lines = if grade.broken.is_empty() {
        found(task, grade, &format!("{} points, {file}", grade.points))
    } else {
        let mut lines = match (grade.waits_for(task), grade.begun) {
            (Some(other), begun) => {
                let why = if begun { "it is wrong" } else { "it is still empty" };
                to_do(task, &format!("{other} first: this task calls it, and {why}"))
            }
            (None, true) => found(task, grade, ""),
            (None, false) => to_do(task, &format!("{file}: fill in task {}", task.place)),
        };
        let mut row = |label: &str, text: &str| lines.extend(labelled(label, text));
        row("printed", &grade.printed.join("\n"));
        row("file", &file);
        row("read", &format!("{} (the book: cargo course read)", chapter(task, grade)));
        row("again", &format!("cargo test -p exercises {}", task.number));
        row("hint", &format!("cargo course hint {}", task.number));
        lines
    };
    fitted(&lines, width)
}

/// The same report on lines that fit in a cell of a notebook.
pub fn report_on_cell(task: &Task, grade: &Grade) -> String {
    let exercise = format!("cargo course check {}: the same task, with tensors", task.number);
    if grade.broken.is_empty() {
        let mut lines = found(task, grade, "every invariant of this task holds");
        lines.extend(labelled("next", &exercise));
        return fitted(&lines, WIDTH);
    }
    let mut lines = match grade.begun {
        true => found(task, grade, ""),
        false => to_do(task, "replace the todo!() in the cell"),
    };
    let mut row = |label: &str, text: &str| lines.extend(labelled(label, text));
    row("read", &format!("{} (the book: cargo course read)", chapter(task, grade)));
    row("again", "change your lines, and run the cell again");
    row("hint", &format!("cargo course hint {}", task.number));
    fitted(&lines, WIDTH)
}

fn title(task: &Task) -> Vec<String> {
    vec![format!("Task {}  {}", task.number, task.title), String::new()]
}

fn to_do(task: &Task, what: &str) -> Vec<String> {
    let mut lines = title(task);
    lines.extend(labelled("to do", what));
    lines
}

/// What was found. `passed` is printed beside that word.
fn found(task: &Task, grade: &Grade, passed: &str) -> Vec<String> {
    let mut lines = title(task);
    let mut row = |label: &str, text: &str| lines.extend(labelled(label, text));
    let Some((first, others)) = grade.broken.split_first() else {
        row("passed", passed);
        grade.remarks.iter().for_each(|remark| row("remark", remark));
        return lines;
    };
    match no_answer(grade) {
        Some(words) => {
            row("broken", words);
            row("seen by", &first.id);
        }
        None => {
            row("broken", &format!("{}\n{}", first.id, first.sentence));
            row("formula", &first.formula);
        }
    }
    // A panic says nothing about the numbers.
    if let Some(category) = grade.category.filter(|_| no_answer(grade).is_none()) {
        row("about", category.words(task.component));
    }
    row("input", &first.violation.input);
    row("result", &result(&first.violation));
    match &grade.misconception {
        Some(known) => row("perhaps", &format!("The code {}. {}", known.does, known.story)),
        // Not an invariant, or nothing that it could be asked of.
        None if first.formula.is_empty() || no_answer(grade).is_some() => {}
        None => {
            let repair = grade
                .repair
                .as_ref()
                .map(|repair| format!("\nOne wrong step explains the answers: {repair}."));
            let repair = repair.unwrap_or_default();
            row("perhaps", &format!("No known bug behaves like this.{repair}"));
        }
    }
    let ids: Vec<&str> = others.iter().map(|broken| broken.id.as_str()).collect();
    row("also", &ids.join(", "));
    match grade.held.len() {
        0 => {}
        1 => row("but", "1 other invariant of this task holds"),
        held => row("but", &format!("{held} other invariants of this task hold")),
    }
    lines
}

/// Why no invariant could be asked of the answer: the one that happened to call first says nothing
/// about the mistake.
fn no_answer(grade: &Grade) -> Option<&'static str> {
    match grade.broken.first()?.violation.fault {
        Fault::Length { .. } => Some("The answer has the wrong length."),
        Fault::Panicked { .. } => Some("The code panics on this input."),
        _ => None,
    }
}

/// Where to read about it: the section of the broken invariant, or that of the task.
pub fn chapter<'a>(task: &'a Task, grade: &'a Grade) -> &'a str {
    if no_answer(grade).is_some() { task.chapter } else { grade.chapter(task) }
}

/// What was wrong with the answer, in words.
pub fn result(violation: &Violation) -> String {
    let call = &violation.call;
    match &violation.fault {
        Fault::Differs { count, total, index, expected, got, tolerance, why } => {
            let off = (got - expected).abs();
            let exactly = if *tolerance == 0.0 { "exactly " } else { "" };
            let what = match total {
                // Often of several values, such as their sum: it has no place among them.
                1 => "the value differs".to_string(),
                _ => format!("{count} of {total} values differ, the first at {index:?}"),
            };
            format!(
                "{call}: {what}\n\
                 expected {}\n\
                 got      {}\n\
                 off by   {off:.2e}, and the tolerance is {exactly}{tolerance:.2e}: {why}",
                number(*expected),
                number(*got),
            )
        }
        Fault::Length { shape, got } => {
            format!("{call}: expected values of shape {shape:?}, got {got} values")
        }
        Fault::Refused { words } => {
            format!("{call}: this input is valid, but it was refused: {words}")
        }
        Fault::Accepted { rule } => {
            format!("{call}: this input must be refused, but it was accepted: {rule}")
        }
        Fault::Panicked { message } => format!("{call}: panicked: {message}"),
        Fault::Broken { what } if call.is_empty() => what.clone(),
        Fault::Broken { what } => format!("{call}: {what}"),
    }
}

/// A number with the digits that `f32` has, and no more.
fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-4..1e6).contains(&size) {
        format!("{value:.8}")
    } else {
        format!("{value:.8e}")
    }
}

/// A label and its text beside it. Nothing if the text is empty.
fn labelled(label: &str, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if text.is_empty() {
        return lines;
    }
    for line in text.lines() {
        let label = if lines.is_empty() { label } else { "" };
        lines.push(format!("{label:LABEL$}{line}"));
    }
    lines
}

fn fitted(lines: &[String], width: usize) -> String {
    lines.iter().flat_map(|line| fit(line, width, LABEL)).collect::<Vec<_>>().join("\n")
}

/// A line as lines of at most `width` characters, broken at spaces; a longer word is cut. The lines after the first are
/// indented by `hang` columns, or start under the line's own text if that is deeper. A piece of code, or what is in
/// brackets, stays in one line if it is short: half a command can't be copied, and half a formula can't be read.
pub fn fit(line: &str, width: usize, hang: usize) -> Vec<String> {
    let text: Vec<char> = line.trim_end().chars().collect();
    let own = text.iter().take_while(|c| **c == ' ').count();
    let hang = if own > 0 { own } else { hang }.min(width / 2);
    let whole = phrases(&text, width / 2);
    let mut lines: Vec<String> = Vec::new();
    let mut start = 0;
    loop {
        let (indent, from) = if lines.is_empty() { (0, hang) } else { (hang, 0) };
        let room = width.saturating_sub(indent).max(1);
        let line = |end: usize| {
            let line: String = text[start..end].iter().collect();
            format!("{}{}", " ".repeat(indent), line.trim_end())
        };
        if text.len() - start <= room {
            lines.push(line(text.len()));
            return lines;
        }
        // A space that leaves something on this line.
        let spaces = || (start + from + 1..=start + room).rev().filter(|&at| text[at] == ' ');
        let between = spaces().find(|&at| !whole[at] && at - start > room / 2);
        let end = between.or_else(|| spaces().next()).unwrap_or(start + room);
        lines.push(line(end));
        start = (end..text.len()).find(|&at| text[at] != ' ').unwrap_or(text.len());
    }
}

/// Whether each character is in a phrase of at most `longest`: between two marks of code, or in brackets.
fn phrases(text: &[char], longest: usize) -> Vec<bool> {
    let mut whole = vec![false; text.len()];
    for (start, open) in text.iter().enumerate() {
        let Some(close) =
            [('`', '`'), ('(', ')'), ('[', ']'), ('{', '}')].iter().find(|pair| pair.0 == *open)
        else {
            continue;
        };
        if whole[start] {
            continue;
        }
        let mut depth = 0;
        for (at, c) in text.iter().enumerate().skip(start + 1).take(longest) {
            if *c == close.1 && depth == 0 {
                whole[start..=at].fill(true);
                break;
            }
            depth += i32::from(*c == *open) - i32::from(*c == close.1);
        }
    }
    whole
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
    fn a_short_phrase_stays_in_one_line() {
        let lines = fit("please run this now: `cargo reset a` again", 30, 0);
        assert_eq!(lines, ["please run this now:", "`cargo reset a` again"]);
        assert_eq!(
            fit("the first one at [0, 1, 2] is", 24, 0),
            ["the first one at", "[0, 1, 2] is"]
        );
        // A long one is broken as text is.
        assert_eq!(fit("so (one two three four)", 12, 0), ["so (one two", "three four)"]);
        assert_eq!(fit("one's ` two three", 9, 0), ["one's `", "two three"]);
    }

    #[test]
    fn no_width_is_too_small() {
        for width in 0..40 {
            for hang in 0..50 {
                let lines = fit("label      a `b c` (d e) fghijklmnopq r s t", width, hang);
                assert!(
                    lines.iter().all(|line| line.chars().count() <= width.max(1)),
                    "{width}: {lines:?}"
                );
                let letters = |text: &str| text.replace(' ', "");
                assert_eq!(
                    letters(&lines.concat()),
                    letters("label      a `b c` (d e) fghijklmnopq r s t")
                );
            }
        }
    }
}
