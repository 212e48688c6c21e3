//! Records for tests, made up.

use crate::record::{Change, LAYOUT, LeftOut, Outcome, Record, Sandbox, TaskRecord};
use contract::grade::Grade;
use contract::registry::task;

/// Four tasks: one passed, one broken, one not begun, one whose file does not compile.
pub fn graded() -> Record {
    let mut backward = of("norm/backward", 0.1 + 0.2, 3.0);
    backward.grade = failed("norm/backward", "norm/eps-inside-root", "eps stands inside the root.");
    backward.report =
        "norm/eps-inside-root: eps stands inside the root.\nexpected 1, got 2".to_string();
    let mut property = of("norm/property", 0.0, 4.0);
    property.grade.passed = false;
    property.grade.begun = false;
    property.report = "not begun".to_string();
    let mut rope = of("rope/rotate", 0.0, 1.0);
    rope.grade = failed("rope/rotate", "autograder/compiles", "A file compiles.");
    rope.report = "error: expected `;`".to_string();
    Record {
        layout: LAYOUT,
        submission: "made-up".to_string(),
        digest: "d1".repeat(32),
        judge: "e2".repeat(32),
        seed: u64::MAX,
        sandbox: Sandbox::Full,
        taken: vec!["norm.rs".to_string(), "rope.rs".to_string()],
        left_out: vec![LeftOut {
            name: "Cargo.toml".to_string(),
            why: "not one of the learner's files".to_string(),
        }],
        outcome: Outcome::Graded,
        points: Some(5.0 + 0.1 + 0.2),
        out_of: 13.0,
        maximum: None,
        tasks: vec![of("norm/forward", 5.0, 5.0), backward, property, rope],
        changed: vec![Change {
            task: Some("norm/backward".to_string()),
            points: 0.3,
            who: "the lecturer".to_string(),
            when: "24 November".to_string(),
            why: "a typo of ours".to_string(),
        }],
    }
}

/// One whose grading failed.
pub fn failed_machine() -> Record {
    Record {
        submission: "unlucky".to_string(),
        outcome: Outcome::NotGraded { why: "no space left on the disk".to_string() },
        points: None,
        tasks: Vec::new(),
        changed: Vec::new(),
        left_out: Vec::new(),
        ..graded()
    }
}

/// One with none of the learner's files in it.
pub fn nothing_to_take() -> Record {
    Record {
        submission: "empty".to_string(),
        taken: Vec::new(),
        outcome: Outcome::NotGraded { why: "none of the learner's files is in it".to_string() },
        ..failed_machine()
    }
}

/// One whose code writes what could deceive a reader or a program.
pub fn hostile() -> Record {
    let mut forger = of("norm/forward", 0.0, 5.0);
    let id = "norm/eps-inside-root";
    forger.grade = failed("norm/forward", id, "eps stands inside the root.");
    let forged = "\0\u{1b}[2J\u{202e}\u{fffe}\u{8}]]></system-out><testcase name=\"forged\"/>\n{\"scores\": {\"Quadrivium\": 100}}\n";
    forger.report = format!("{id}: panicked\n{}", forged.repeat(500));
    forger.printed = forged.repeat(1000);
    Record {
        submission: "forger\u{7}\n<b>".to_string(),
        points: Some(0.0),
        tasks: vec![forger],
        changed: Vec::new(),
        left_out: vec![
            LeftOut { name: "x".repeat(20_000), why: "no such name\u{0}".to_string() };
            100
        ],
        ..graded()
    }
}

fn of(name: &str, points: f64, out_of: f64) -> TaskRecord {
    let task = task(name).expect("a task of the course");
    TaskRecord {
        name: name.to_string(),
        title: task.title.clone(),
        points,
        out_of,
        grade: Grade::new(task),
        report: "passed".to_string(),
        printed: String::new(),
    }
}

fn failed(name: &str, id: &str, sentence: &str) -> Grade {
    Grade::failed(task(name).expect("a task of the course"), id, sentence, "what is wrong")
}
