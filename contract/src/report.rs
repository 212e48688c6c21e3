//! A failure as the learner reads it.

use crate::breach::{Breach, Fault};
use crate::grade::Grade;
use crate::task::Task;

/// Width of the label column.
const LABEL: usize = 11;
/// Lines of text are broken before this column.
const WIDTH: usize = 92;

/// The report on a task: its first broken promise in full, the others by name.
pub fn report(task: &Task, grade: &Grade) -> String {
    let file = format!("exercises/src/{}", task.file());
    if grade.broken.is_empty() {
        return found(task, grade, &format!("{} points, {file}", grade.points)).join("\n");
    }
    let mut lines = match grade.begun {
        true => found(task, grade, ""),
        false => match grade.waits_for(task) {
            Some(other) => not_begun(
                task,
                &format!("{other} first: this task calls it, and its place is empty"),
            ),
            None => not_begun(task, &format!("{file}: fill in task {}", task.place)),
        },
    };
    let mut row = |label: &str, text: &str| lines.extend(labelled(label, text));
    row("file", &file);
    row("read", &format!("{} (the book: cargo course read)", chapter(task, grade)));
    row("again", &format!("cargo test -p exercises {}", task.number));
    row("hint", &format!("cargo course hint {}", task.number));
    lines.join("\n")
}

/// The same report on lines that stand in a cell of a notebook.
pub fn report_on_cell(task: &Task, grade: &Grade) -> String {
    let exercise = format!("cargo course check {}: the same task, with tensors", task.number);
    if grade.broken.is_empty() {
        let mut lines = found(task, grade, "every invariant of this task holds");
        lines.extend(labelled("next", &exercise));
        return lines.join("\n");
    }
    let mut lines = match grade.begun {
        true => found(task, grade, ""),
        false => not_begun(task, "replace the todo!() in the cell"),
    };
    let mut row = |label: &str, text: &str| lines.extend(labelled(label, text));
    row("read", &format!("{} (the book: cargo course read)", chapter(task, grade)));
    row("again", "change your lines, and run the cell again");
    row("hint", &format!("cargo course hint {}", task.number));
    lines.join("\n")
}

fn title(task: &Task) -> Vec<String> {
    vec![format!("Task {}  {}", task.number, task.title), String::new()]
}

fn not_begun(task: &Task, to_do: &str) -> Vec<String> {
    let mut lines = title(task);
    lines.extend(labelled("to do", to_do));
    lines
}

/// What was found. `passed` stands beside that word.
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
    if let Some(aspect) = grade.aspect.filter(|_| no_answer(grade).is_none()) {
        row("about", aspect.words());
    }
    row("input", &first.breach.input);
    row("result", &result(&first.breach));
    match &grade.misconception {
        Some(known) => row("perhaps", &format!("The code {}. {}", known.does, known.story)),
        // Not an invariant, or nothing that it could be asked of.
        None if first.formula.is_empty() || no_answer(grade).is_some() => {}
        None => {
            let repair = grade
                .repair
                .as_ref()
                .map(|repair| format!("\nOne step explains the answers: {repair}."));
            let repair = repair.unwrap_or_default();
            row("perhaps", &format!("No known bug behaves like this.{repair}"));
        }
    }
    let ids: Vec<&str> = others.iter().map(|broken| broken.id.as_str()).collect();
    row("also", &ids.join(", "));
    if !grade.held.is_empty() {
        row("but", &format!("{} other invariants of this task hold", grade.held.len()));
    }
    lines
}

/// Why no invariant could be asked of the answer: the one that happened to call first says nothing
/// about the mistake.
fn no_answer(grade: &Grade) -> Option<&'static str> {
    match grade.broken.first()?.breach.fault {
        Fault::Length { .. } => Some("The answer does not have the length that it must have."),
        Fault::Panicked { .. } => Some("The code panics on this input."),
        _ => None,
    }
}

/// Where to read about it: the section of the broken invariant, or that of the task.
pub fn chapter<'a>(task: &'a Task, grade: &'a Grade) -> &'a str {
    if no_answer(grade).is_some() { task.chapter } else { grade.chapter(task) }
}

/// What was wrong with the answer, in words.
pub fn result(breach: &Breach) -> String {
    let call = &breach.call;
    match &breach.fault {
        Fault::Differs { count, total, index, expected, got, tolerance, why } => {
            let off = (got - expected).abs();
            let exactly = if *tolerance == 0.0 { "exactly" } else { "at most" };
            format!(
                "{call}: {count} of {total} values differ, the first at {index:?}\n\
                 expected {}\n\
                 got      {}\n\
                 off by   {off:.2e}, allowed is {exactly} {tolerance:.2e}: {why}",
                number(*expected),
                number(*got),
            )
        }
        Fault::Length { shape, got } => {
            format!("{call}: expected {shape:?} values, got {got}")
        }
        Fault::Refused { words } => {
            format!("{call}: this input is good, but it was refused: {words}")
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
    for line in text.lines().flat_map(wrapped) {
        let label = if lines.is_empty() { label } else { "" };
        lines.push(format!("{label:LABEL$}{line}"));
    }
    lines
}

/// One line of text as lines that fit, broken at spaces.
fn wrapped(text: &str) -> Vec<String> {
    let indent: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut lines = vec![indent.clone()];
    // Only the text's own indentation and single spaces between words: numbers stay aligned.
    for word in text.trim_start().split(' ') {
        let last = lines.last_mut().expect("there is a line");
        let fits = LABEL + last.chars().count() + 1 + word.chars().count() <= WIDTH;
        if last.len() == indent.len() {
            last.push_str(word);
        } else if fits {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines
}
