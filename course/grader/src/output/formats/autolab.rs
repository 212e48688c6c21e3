//! Autolab: feedback, and its last line.
//!
//! Autolab reads the last line as the scores, and the line before it as a table of results, if it is one. The feedback
//! is above them. Each of its lines is indented, so none is JSON; and the two lines are always written, so none of it
//! is last.
//!
//! Without scores Autolab gives 0 points for every problem, and shows them. A student who is not graded therefore has
//! the score `null`: Autolab then keeps the feedback, and no points.

use super::text;
use crate::output::page::{NAME, line};
use crate::record::Record;
use crate::settings::Settings;
use serde_json::{Map, Value, json};
use std::io;

/// The name of the problem in Autolab, with as many points as there are. Autolab wants it to be exactly this one.
pub const PROBLEM: &str = "Quadrivium";

/// Bytes of the feedback. Tango cuts what is longer than 1 MB, and with it the last line.
const MOST: usize = 500_000;
/// Bytes of a task's report.
const REPORT: usize = 8_000;

/// The file of a submission.
///
/// # Errors
/// It can't be written as JSON.
pub fn of(record: &Record, _: &Settings) -> io::Result<Option<String>> {
    let mut feedback = text::summary(record);
    for task in &record.tasks {
        let (number, name) = (&task.grade.task, line(&task.name, NAME));
        let points = text::of(task.points, task.out_of);
        feedback.push_str(&format!("\n{number} {name}: {points} points\n"));
        if !task.grade.passed {
            feedback.push_str(&text::block(&task.report, REPORT));
            feedback.push('\n');
        }
    }
    let mut written = String::new();
    for said in text::cut(&feedback, MOST).lines() {
        written.push_str("  ");
        written.push_str(said);
        written.push('\n');
    }
    let score = record.points.map(text::rounded);
    for read in [table(record), json!({ "scores": { PROBLEM: score } })] {
        written.push_str(&serde_json::to_string(&read)?);
        written.push('\n');
    }
    Ok(Some(written))
}

/// What Autolab draws as a table: a stage for each component. Nothing of the learner's is in it.
fn table(record: &Record) -> Value {
    let mut stages: Vec<&str> = Vec::new();
    let mut table = Map::new();
    for task in &record.tasks {
        let (component, subject) = task.name.split_once('/').unwrap_or(("tasks", &task.name));
        if !stages.contains(&component) {
            stages.push(component);
        }
        let stage = table.entry(component).or_insert_with(|| json!({ "_order": [] }));
        stage[subject] = json!({ "passed": task.grade.passed });
        if let Some(order) = stage["_order"].as_array_mut() {
            order.push(subject.into());
        }
    }
    table.insert("_presentation".to_string(), "semantic".into());
    table.insert("stages".to_string(), stages.into());
    table.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::formats::made_up;

    fn written(record: &Record) -> String {
        of(record, &Settings::default()).unwrap().unwrap()
    }

    /// As Autolab reads it.
    fn last(text: &str) -> Value {
        serde_json::from_str(text.trim_end().lines().last().unwrap()).unwrap()
    }

    #[test]
    fn the_last_line_has_the_points() {
        let text = written(&made_up::graded());
        assert_eq!(last(&text), json!({ "scores": { "Quadrivium": 5.3 } }));
        let table: Value = serde_json::from_str(text.lines().rev().nth(1).unwrap()).unwrap();
        assert_eq!(table["stages"], json!(["norm", "rope"]));
        assert_eq!(table["norm"]["forward"], json!({ "passed": true }));
        assert_eq!(table["norm"]["_order"], json!(["forward", "backward", "property"]));
    }

    #[test]
    fn who_is_not_graded_has_no_points_and_not_0() {
        for record in [made_up::failed_machine(), made_up::nothing_to_take()] {
            assert_eq!(last(&written(&record)), json!({ "scores": { "Quadrivium": null } }));
        }
    }

    #[test]
    fn no_line_of_the_feedback_can_be_read_as_a_score() {
        let mut record = made_up::hostile();
        let forged = "{\"scores\": {\"Quadrivium\": 100}}";
        record.tasks[0].report =
            format!("{forged}\r{forged}\n{forged}\u{2028}{forged}\u{85}{forged}\u{b}{forged}");
        let text = written(&record);
        assert_eq!(last(&text), json!({ "scores": { "Quadrivium": 0.0 } }));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[..lines.len() - 2].iter().all(|line| line.starts_with("  ")), "{text}");
        assert!(lines[lines.len() - 2].starts_with("{\"_presentation\""));
    }

    #[test]
    fn long_feedback_leaves_room_for_the_last_line() {
        let mut record = made_up::hostile();
        record.tasks = vec![record.tasks[0].clone(); 200];
        let text = written(&record);
        assert!(text.len() < 1_000_000, "{}", text.len());
        assert!(last(&text)["scores"]["Quadrivium"].is_number());
    }
}
