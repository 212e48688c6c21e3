//! Records for tests. No code was run for them.

use crate::record::{Change, LAYOUT, LeftOut, Outcome, Record, Sandbox, TaskRecord};
use contract::grade::{Grade, Misconception};

/// A name that tries to be markup, a path and another text direction.
pub const HOSTILE: &str = "../<script>alert(1)</script>\u{202e}\"'&\0x";

/// How a task went.
#[derive(Clone, Copy, PartialEq)]
pub enum Went {
    /// It was passed.
    Passed,
    /// It is wrong, and no known bug is like it.
    Wrong,
    /// It behaves like this bug.
    Like(&'static str),
    /// It was not begun.
    Empty,
}

/// A task of 4 points.
pub fn task(number: &str, name: &str, went: Went) -> TaskRecord {
    let passed = went == Went::Passed;
    let misconception = match went {
        Went::Like(bug) => Some(Misconception {
            bug: bug.to_string(),
            does: format!("does as {bug} does"),
            story: String::new(),
        }),
        _ => None,
    };
    let grade = Grade {
        task: number.to_string(),
        passed,
        begun: went != Went::Empty,
        points: 4,
        held: Vec::new(),
        broken: Vec::new(),
        remarks: Vec::new(),
        category: None,
        misconception,
        repair: None,
        printed: Vec::new(),
        waits: None,
    };
    TaskRecord {
        name: name.to_string(),
        title: format!("{}: the task {name}", name.split('/').next().unwrap_or_default()),
        points: if passed { 4.0 } else { 0.0 },
        out_of: 4.0,
        grade,
        report: format!("Task {number}  {name}\n\nbroken     {name}/law"),
        printed: String::new(),
    }
}

/// A graded submission.
pub fn graded(name: &str, tasks: Vec<TaskRecord>) -> Record {
    Record {
        layout: LAYOUT,
        submission: name.to_string(),
        digest: "d1".repeat(32),
        judge: "a7".repeat(32),
        seed: 7,
        sandbox: Sandbox::Full,
        taken: vec!["norm.rs".to_string()],
        left_out: Vec::new(),
        outcome: Outcome::Graded,
        points: Some(tasks.iter().map(|task| task.points).sum()),
        out_of: tasks.iter().map(|task| task.out_of).sum(),
        maximum: None,
        tasks,
        changed: Vec::new(),
    }
}

/// A submission of three tasks.
pub fn of_three(name: &str, went: [Went; 3]) -> Record {
    let [first, second, third] = went;
    let tasks = vec![
        task("1.1", "norm/forward", first),
        task("1.2", "norm/tape", second),
        task("2.1", "rope/tables", third),
    ];
    graded(name, tasks)
}

/// One that was not graded.
pub fn not_graded(name: &str, why: &str) -> Record {
    let outcome = Outcome::NotGraded { why: why.to_string() };
    Record { outcome, points: None, ..graded(name, Vec::new()) }
}

/// All texts of it are hostile.
pub fn hostile() -> Record {
    let mut record = of_three(HOSTILE, [Went::Wrong, Went::Empty, Went::Like("</td><b>")]);
    for task in &mut record.tasks {
        task.report = format!("panicked: <img src=x onerror=alert(1)>{}", "\u{202e}\x1b[2J\0");
        task.printed = "</pre></details><script>alert(2)</script>".to_string();
        task.title = format!("{}<i>", task.title);
    }
    record.left_out =
        vec![LeftOut { name: "<b>\u{2066}build.rs".to_string(), why: "<u>why".to_string() }];
    record.changed = vec![Change {
        task: Some("norm/<em>".to_string()),
        points: 3.0,
        who: "<s>the lecturer".to_string(),
        when: "<s>2026-11-24".to_string(),
        why: "<s>it was right".to_string(),
    }];
    record.taken = vec!["<u>.rs".to_string()];
    record.sandbox = Sandbox::None;
    record
}

/// Whether a page holds nothing of [`hostile`] but text.
pub fn is_harmless(page: &str) -> bool {
    let marks = [
        "<script",
        "<img",
        "<b>",
        "<i>",
        "<u>",
        "<s>",
        "<em>",
        "onerror=\"",
        "href=\"..",
        "</td><b",
    ];
    let hidden = |c: char| c.is_control() && c != '\n' && c != '\t';
    let turned =
        |c: char| ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c);
    !marks.iter().any(|mark| page.contains(mark)) && !page.contains(|c| hidden(c) || turned(c))
}
