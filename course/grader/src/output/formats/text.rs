//! Texts for other systems: the same as on our pages, and never too long.

use crate::output::page::{NAME, SENTENCE, count, last_lines, line, lines, number};
use crate::record::{Outcome, Record, TaskRecord, Unbuilt};
use std::fmt::Write;

/// Entries of a list, such as that of the files that were left out.
const LISTED: usize = 20;

/// A text of several lines, and of at most this many bytes.
pub fn block(text: &str, most: usize) -> String {
    cut(&lines(text.trim_end(), most), most)
}

/// The beginning of a text, and a word that it is one. Signs instead of hidden characters take more room than those.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_string();
    }
    let word = format!("\n[cut: the first of {} bytes]", text.len());
    let kept = text.floor_char_boundary(most.saturating_sub(word.len()));
    format!("{}{word}", &text[..kept])
}

/// Points for a program, without the noise of sums: 0.1 + 0.2 is 0.3.
pub fn rounded(points: f64) -> f64 {
    (points * 1e4).round() / 1e4
}

/// `2 of 3`.
pub fn of(points: f64, out_of: f64) -> String {
    format!("{} of {}", number(points), number(out_of))
}

/// What came of a submission, in a few lines.
pub fn summary(record: &Record) -> String {
    let mut text = match &record.outcome {
        Outcome::Graded => {
            let points = of(record.points.unwrap_or_default(), record.out_of);
            format!(
                "{points} points, {} of {} tasks passed.\n",
                record.passed(),
                record.tasks.len()
            )
        }
        Outcome::Decided { why } => {
            let points = of(record.points.unwrap_or_default(), record.out_of);
            format!("{points} points, decided by hand. Not graded: {}\n", line(why, SENTENCE))
        }
        Outcome::NotGraded { why } => format!("Not graded: {}\n", line(why, SENTENCE)),
    };
    for Unbuilt { file, tasks, .. } in record.unbuilt() {
        let file = line(&file, NAME);
        let tasks = count(tasks, "task");
        let _ =
            writeln!(text, "Does not compile: {file}. {tasks} of it can't be graded: one error.");
    }
    for change in &record.changed {
        let what = change.task.as_deref().map_or("the whole".to_string(), |task| line(task, NAME));
        let (who, when) = (line(&change.who, NAME), line(&change.when, NAME));
        let (points, why) = (number(change.points), line(&change.why, SENTENCE));
        let _ = writeln!(text, "Changed: {what} has {points} points. {who}, {when}: {why}");
    }
    if record.is_graded() {
        let _ = writeln!(text, "Graded {}.", record.sandbox.stamp());
    }
    let taken: Vec<String> = record.taken.iter().map(|name| line(name, NAME)).collect();
    let taken = if taken.is_empty() { "nothing".to_string() } else { taken.join(", ") };
    let _ = writeln!(text, "Taken: {taken}.");
    for left in record.left_out.iter().take(LISTED) {
        let _ =
            writeln!(text, "Left out: {}: {}", line(&left.name, NAME), line(&left.why, SENTENCE));
    }
    if let Some(more @ 1..) = record.left_out.len().checked_sub(LISTED) {
        let _ = writeln!(text, "Left out: {more} more");
    }
    text
}

/// What a task's code printed. Each line follows a mark, so none can be taken for one of ours.
pub fn printed(task: &TaskRecord, most: usize) -> String {
    if task.printed.is_empty() {
        return String::new();
    }
    let shown = last_lines(task.printed.trim_end(), most);
    let shown: Vec<String> = shown.lines().map(|line| format!("  | {line}")).collect();
    cut(&format!("Printed by the code, which means nothing:\n{}", shown.join("\n")), most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::formats::made_up;

    #[test]
    fn a_cut_says_so_and_keeps_characters_whole() {
        assert_eq!(cut("short", 5), "short");
        let long = "ä".repeat(100);
        let said = cut(&long, 60);
        assert!(said.len() <= 60 && said.ends_with("ä\n[cut: the first of 200 bytes]"), "{said}");
        // Each hidden character becomes a sign of nine bytes.
        assert!(block(&"\u{e0001}".repeat(1000), 1000).len() <= 1000);
    }

    #[test]
    fn a_summary_names_what_a_reader_asks_for() {
        let mut record = made_up::graded();
        let said = summary(&record);
        assert!(said.starts_with("5.3 of 13 points, 1 of 4 tasks passed.\n"), "{said}");
        assert!(said.contains("Left out: Cargo.toml: not one of the learner's files"), "{said}");
        let changed =
            "Changed: norm/backward has 0.3 points. the lecturer, 24 November: a typo of ours";
        assert!(said.contains(changed), "{said}");
        record.left_out = vec![record.left_out[0].clone(); 1000];
        assert!(summary(&record).contains("Left out: 980 more"));
        let said = summary(&made_up::failed_machine());
        assert!(said.starts_with("Not graded: no space left on the disk\n"), "{said}");
        assert!(!said.contains("points"), "{said}");
    }

    #[test]
    fn a_file_that_does_not_compile_is_one_error() {
        let mut record = made_up::graded();
        let one = "Does not compile: rope.rs. 1 task of it can't be graded: one error.\n";
        assert!(summary(&record).contains(one) && !summary(&record).contains("norm.rs. "));
        let task = contract::registry::task("norm/forward").unwrap();
        for one in record.tasks.iter_mut().filter(|one| one.name.starts_with("norm/")) {
            one.grade = contract::grade::Grade::uncompiled(task, "expected `;`");
        }
        let said = summary(&record);
        let words = "Does not compile: norm.rs. 3 tasks of it can't be graded: one error.\n";
        assert_eq!(said.matches(words).count(), 1, "{said}");
        // A file that was not handed in was not written.
        record.tasks.iter_mut().for_each(|one| one.grade.begun = false);
        assert!(!summary(&record).contains("compile"));
    }

    #[test]
    fn what_the_code_printed_stands_behind_marks() {
        let mut record = made_up::graded();
        record.tasks[0].printed = "test result: ok\r\u{1b}[2J\n{\"scores\": {}}\n".to_string();
        let said = printed(&record.tasks[0], 1000);
        assert!(said.ends_with("\n  | {\"scores\": {}}"), "{said}");
        assert!(
            said.contains("\n  | test result: ok") && !said.contains(['\r', '\u{1b}']),
            "{said}"
        );
        record.tasks[0].printed = "x".repeat(5000);
        assert!(printed(&record.tasks[0], 1000).len() <= 1000);
    }
}
