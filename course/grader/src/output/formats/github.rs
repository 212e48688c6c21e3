//! GitHub: a summary for `GITHUB_STEP_SUMMARY`, in Markdown.

use super::text;
use crate::output::page::{SENTENCE, line};
use crate::record::{Outcome, Record, TaskRecord};
use crate::settings::Settings;
use std::fmt::Write;
use std::io;

/// A summary of more than 1 MiB is not shown at all.
const MOST: usize = 900_000;
/// Bytes of a task's report.
const REPORT: usize = 8_000;

/// The file of a class.
///
/// # Errors
/// None.
pub fn of(records: &[Record], _: &Settings) -> io::Result<String> {
    let mut page = "## Quadrivium: grades\n\n| Submission | Points | Tasks passed | Graded |\n| --- | --- | --- | --- |\n".to_string();
    let mut left_out = 0;
    for record in records {
        let row = row(record);
        match page.len() + row.len() <= MOST {
            true => page.push_str(&row),
            false => left_out += 1,
        }
    }
    if left_out > 0 {
        let _ = writeln!(
            page,
            "\nRows that are not shown, because a summary has at most 1 MiB: {left_out}."
        );
    }
    let mut without = 0;
    for record in records {
        let section = section(record);
        match page.len() + section.len() <= MOST {
            true => page.push_str(&section),
            false => without += 1,
        }
    }
    if without > 0 {
        let _ = writeln!(
            page,
            "\nSubmissions whose tasks are not shown, because a summary has at most 1 MiB: {without}."
        );
    }
    Ok(page)
}

fn row(record: &Record) -> String {
    let name = escaped(&record.submission);
    match &record.outcome {
        Outcome::Graded => format!(
            "| {name} | {} | {} of {} | {} |\n",
            text::of(record.points.unwrap_or_default(), record.out_of),
            record.passed(),
            record.tasks.len(),
            escaped(record.sandbox.stamp())
        ),
        Outcome::Decided { why } => {
            let points = text::of(record.points.unwrap_or_default(), record.out_of);
            format!("| {name} | {points} | | decided by hand; not graded: {} |\n", escaped(why))
        }
        Outcome::NotGraded { why } => {
            format!("| {name} | | | **not graded**: {} |\n", escaped(why))
        }
    }
}

/// The tasks of a submission.
fn section(record: &Record) -> String {
    let mut part = format!("\n### {}\n\n", escaped(&record.submission));
    part.push_str(&fenced(&text::summary(record)));
    if record.tasks.is_empty() {
        return part;
    }
    part.push_str("\n| Task | Points | |\n| --- | --- | --- |\n");
    for task in &record.tasks {
        let points = text::of(task.points, task.out_of);
        let _ = writeln!(
            part,
            "| {} {} | {points} | {} |",
            task.grade.task,
            escaped(&task.name),
            word(task)
        );
    }
    let failed: Vec<&TaskRecord> =
        record.tasks.iter().filter(|task| task.grade.begun && !task.grade.passed).collect();
    for same in failed.chunk_by(|a, b| a.is_one_error_with(b)) {
        let [first, others @ ..] = same else { continue };
        let report = fenced(&text::block(&first.report, REPORT));
        let (name, title) = (escaped(&first.name), escaped(&first.title));
        let also = match others.len() {
            0 => String::new(),
            n => format!(", and {n} more by this one error"),
        };
        let _ = write!(
            part,
            "\n<details><summary>{name}: {title}{also}</summary>\n\n{report}\n</details>\n"
        );
    }
    part
}

fn word(task: &TaskRecord) -> &'static str {
    match (task.grade.passed, task.grade.begun) {
        (true, _) => "passed",
        (false, true) => "not passed",
        (false, false) => "not begun",
    }
}

/// A text of which nothing is Markdown or HTML, in one line.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for c in line(text, SENTENCE).chars() {
        match c {
            // In a cell of a table, and in `<summary>`, too.
            '&' | '<' | '>' | '"' | '\'' | '`' | '|' | '\\' | '*' | '_' | '~' | '[' | ']' | '('
            | ')' | '#' | '!' | '@' | '$' => {
                let _ = write!(safe, "&#{};", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    safe
}

/// A block of text as it is. Its fence is longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::formats::made_up;

    fn written(records: &[Record]) -> String {
        of(records, &Settings::default()).unwrap()
    }

    #[test]
    fn a_summary_shows_who_has_what() {
        let page = written(&[made_up::graded(), made_up::failed_machine()]);
        assert!(page.contains("| made-up | 5.3 of 13 | 1 of 4 |"), "{page}");
        assert!(
            page.contains("| unlucky | | | **not graded**: no space left on the disk |"),
            "{page}"
        );
        assert!(page.contains("| 2.4 norm/backward | 0.3 of 3 | not passed |"), "{page}");
        assert!(
            page.contains(
                "<details><summary>norm/backward: GroupRMSNorm: the gradient by hand</summary>"
            ),
            "{page}"
        );
    }

    #[test]
    fn a_file_that_does_not_compile_has_one_report() {
        let mut record = made_up::graded();
        let task = contract::registry::task("norm/forward").unwrap();
        for one in record.tasks.iter_mut().filter(|one| one.name.starts_with("norm/")) {
            one.grade = contract::grade::Grade::uncompiled(task, "expected `;`");
        }
        let page = written(&[record]);
        assert_eq!(page.matches("by this one error</summary>").count(), 1, "{page}");
        assert_eq!(page.matches("<details><summary>norm/").count(), 1, "{page}");
        assert!(page.contains(", and 2 more by this one error"), "{page}");
    }

    #[test]
    fn nothing_of_a_learner_is_markup() {
        let mut record = made_up::hostile();
        record.submission = "<img src=x onerror=alert(1)> | [a](b) `c`\n# d".to_string();
        record.tasks[0].report = "```\n</details>\n# passed\n````".to_string();
        let page = written(&[record]);
        assert!(
            !page.contains("<img") && !page.contains("[a]") && !page.contains("\n# d"),
            "{page}"
        );
        assert!(page.contains("`````text\n```\n</details>\n# passed\n````\n`````\n"), "{page}");
    }

    #[test]
    fn a_large_class_is_cut_and_says_so() {
        let mut hostile = made_up::hostile();
        hostile.tasks = vec![hostile.tasks[0].clone(); 20];
        hostile.left_out.truncate(1);
        let page = written(&vec![hostile; 100]);
        assert!(page.len() < 1 << 20, "{}", page.len());
        assert!(
            page.contains("Submissions whose tasks are not shown"),
            "{}",
            &page[page.len() - 300..]
        );
    }
}
