//! PrairieLearn: `results.json` of an external grader.
//!
//! An answer that is not in form, such as one without a file to take, is `"gradable": false`: it costs no attempt. Where the
//! machine failed there is no file: PrairieLearn calls a job failed whose program ends with another code than 0 or leaves no file,
//! and such a job costs no attempt either. `"succeeded": false` in the file would be a score of 0.

use super::text;
use crate::output::page::{NAME, SENTENCE, line};
use crate::record::{Outcome, Record, TaskRecord};
use crate::settings::Settings;
use serde::Serialize;
use std::io;

/// A file of more than 1 MB is refused, and with it the grade.
const MOST: usize = 1_000_000;
/// What texts are cut to, until the file is small enough. Even 200 tasks fit in the last.
const CUTS: &[usize] = &[20_000, 4_000, 1_000, 200];

#[derive(Serialize)]
struct Results {
    gradable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    message: String,
    output: String,
    images: [(); 0],
    tests: Vec<Test>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    format_errors: Vec<String>,
}

#[derive(Serialize)]
struct Test {
    name: String,
    description: String,
    points: f64,
    max_points: f64,
    message: String,
    output: String,
}

/// The file of a submission; none, if the machine failed.
///
/// # Errors
/// It can't be written as JSON.
pub fn of(record: &Record, _: &Settings) -> io::Result<Option<String>> {
    let mut written = String::new();
    match &record.outcome {
        Outcome::NotGraded { .. } if !record.taken.is_empty() => return Ok(None),
        Outcome::NotGraded { why } => written = json(&not_in_form(record, why))?,
        Outcome::Graded | Outcome::Decided { .. } => {
            for most in CUTS {
                written = json(&graded(record, *most))?;
                if written.len() <= MOST {
                    break;
                }
            }
        }
    }
    Ok(Some(written))
}

fn json(results: &Results) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(results)? + "\n")
}

fn not_in_form(record: &Record, why: &str) -> Results {
    Results {
        gradable: false,
        score: None,
        message: text::summary(record),
        output: String::new(),
        images: [],
        tests: Vec::new(),
        format_errors: vec![line(why, SENTENCE)],
    }
}

fn graded(record: &Record, most: usize) -> Results {
    let mut message = text::summary(record);
    if most < CUTS[0] {
        message
            .push_str(&format!("Texts are cut to {most} bytes: PrairieLearn takes 1 MB in all.\n"));
    }
    Results {
        gradable: true,
        // A lecturer may give more points than there are.
        score: Some(
            (record.points.unwrap_or_default() / record.out_of.max(f64::MIN_POSITIVE))
                .clamp(0.0, 1.0),
        ),
        message,
        output: String::new(),
        images: [],
        tests: record.tasks.iter().map(|task| test(task, most)).collect(),
        format_errors: Vec::new(),
    }
}

fn test(task: &TaskRecord, most: usize) -> Test {
    Test {
        name: line(&task.title, NAME),
        description: format!("{} {}", task.grade.task, line(&task.name, NAME)),
        points: text::rounded(task.points),
        max_points: text::rounded(task.out_of),
        message: text::block(&task.report, most),
        output: text::printed(task, most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::formats::made_up;
    use serde_json::Value;

    fn written(record: &Record) -> Value {
        let text = of(record, &Settings::default()).unwrap().unwrap();
        assert!(text.len() <= MOST, "{}", text.len());
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_score_is_a_part_of_one() {
        let mut record = made_up::graded();
        let results = written(&record);
        assert_eq!(results["gradable"], true);
        assert_eq!(results["score"], record.points.unwrap() / 13.0);
        assert_eq!(results["tests"][0]["max_points"], 5.0);
        assert!(results.get("format_errors").is_none() && results.get("succeeded").is_none());
        record.points = Some(14.0);
        assert_eq!(written(&record)["score"], 1.0);
        (record.points, record.out_of) = (Some(0.0), 0.0);
        assert_eq!(written(&record)["score"], 0.0);
    }

    #[test]
    fn an_answer_without_a_file_is_not_gradable() {
        let results = written(&made_up::nothing_to_take());
        assert_eq!(results["gradable"], false);
        assert!(results.get("score").is_none());
        assert_eq!(results["format_errors"][0], "none of the learner's files is in it");
    }

    #[test]
    fn a_machine_that_failed_leaves_no_file() {
        assert_eq!(of(&made_up::failed_machine(), &Settings::default()).unwrap(), None);
    }

    #[test]
    fn a_file_has_less_than_a_megabyte_and_says_what_is_missing() {
        let mut record = made_up::hostile();
        let long = record.tasks[0].clone();
        record.tasks = vec![long; 60];
        let results = written(&record);
        assert_eq!(results["tests"].as_array().unwrap().len(), 60);
        assert!(results["message"].as_str().unwrap().contains("Texts are cut to 4000 bytes"));
        assert!(!results.to_string().contains("\\u0000"));
    }
}
