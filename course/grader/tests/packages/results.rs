//! What the systems read, field by field: no others, and none missing. And some results.

use contract::grade::Grade;
use contract::registry::task;
use grader::record::{LAYOUT, Outcome, Record, Sandbox, TaskRecord};
use serde::Deserialize;
use serde_json::Value;

/// Gradescope's `results.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be read")]
pub struct GradescopeResults {
    pub score: f64,
    pub output: String,
    pub output_format: TextFormat,
    pub visibility: Visibility,
    pub stdout_visibility: Visibility,
    pub extra_data: Value,
    pub tests: Vec<GradescopeTest>,
}

/// One of its tests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be read")]
pub struct GradescopeTest {
    pub score: f64,
    pub max_score: f64,
    pub status: String,
    pub name: String,
    pub number: String,
    pub output: String,
    pub output_format: TextFormat,
    pub tags: Vec<String>,
    pub visibility: Visibility,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextFormat {
    Text,
    Html,
    SimpleFormat,
    Md,
    Ansi,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    Hidden,
    AfterDueDate,
    AfterPublished,
    Visible,
}

/// PrairieLearn's `results.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be read")]
pub struct PrairieLearnResults {
    pub gradable: bool,
    /// Needed if it is gradable.
    #[serde(default)]
    pub score: Option<f64>,
    pub message: String,
    pub output: String,
    pub images: Vec<Value>,
    pub tests: Vec<PrairieLearnTest>,
    #[serde(default)]
    pub format_errors: Vec<String>,
}

/// One of its tests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the fields are there to be read")]
pub struct PrairieLearnTest {
    pub name: String,
    pub description: String,
    pub points: f64,
    pub max_points: f64,
    pub message: String,
    pub output: String,
}

/// 2 of 4 points.
pub fn graded() -> Record {
    let one = |name: &str, points: f64| {
        let task = task(name).unwrap();
        let mut grade = Grade::new(task);
        grade.passed = points > 0.0;
        TaskRecord {
            name: name.to_string(),
            title: task.title.clone(),
            points,
            out_of: 2.0,
            grade,
            report: "a report".to_string(),
            printed: "test result: ok".to_string(),
        }
    };
    Record {
        layout: LAYOUT,
        submission: "submission".to_string(),
        digest: "d1".repeat(32),
        judge: "e2".repeat(32),
        seed: 7,
        sandbox: Sandbox::Confined,
        taken: vec!["norm.rs".to_string()],
        left_out: Vec::new(),
        outcome: Outcome::Graded,
        points: Some(2.0),
        out_of: 4.0,
        maximum: None,
        tasks: vec![one("norm/forward", 2.0), one("rope/rotate", 0.0)],
        changed: Vec::new(),
    }
}

/// Not graded, and that is the machine's fault.
pub fn failed_machine() -> Record {
    let outcome = Outcome::NotGraded { why: "no space left on the disk".to_string() };
    Record { outcome, points: None, tasks: Vec::new(), ..graded() }
}

/// Not graded: nothing of it could be taken.
pub fn nothing_to_take() -> Record {
    let outcome = Outcome::NotGraded { why: "none of the learner's files is in it".to_string() };
    Record { outcome, taken: Vec::new(), ..failed_machine() }
}
