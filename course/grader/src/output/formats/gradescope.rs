//! Gradescope: `results.json`.
//!
//! Its harness takes what `run_autograder` leaves in `/autograder/results/results.json`. Where there is none, it shows the run as
//! failed, "The autograder failed to execute correctly", and the lecturer can run it again. A file with any score in it is a
//! grade. A student who is not graded therefore has no file.

use super::text;
use crate::output::page::{NAME, line};
use crate::record::{Record, TaskRecord};
use crate::settings::{Settings, Visibility};
use serde::Serialize;
use std::io;

/// Bytes of a report, and of what was printed. Gradescope cuts texts of more than 100,000 characters in their middle.
const MOST: usize = 20_000;

#[derive(Serialize)]
struct Results<'r> {
    score: f64,
    output: String,
    output_format: &'static str,
    visibility: Visibility,
    stdout_visibility: Visibility,
    extra_data: Extra<'r>,
    tests: Vec<Test<'r>>,
}

/// Kept with the submission, and not shown to anyone.
#[derive(Serialize)]
struct Extra<'r> {
    digest: &'r str,
    judge: &'r str,
    /// A text: not every reader of JSON has whole numbers of 64 bits.
    seed: String,
    sandbox: crate::record::Sandbox,
}

#[derive(Serialize)]
struct Test<'r> {
    score: f64,
    max_score: f64,
    status: &'static str,
    name: String,
    number: &'r str,
    output: String,
    output_format: &'static str,
    tags: Vec<&'r str>,
    visibility: Visibility,
}

/// The file of a submission; none, if it is not graded.
///
/// # Errors
/// It can't be written as JSON.
pub fn of(record: &Record, settings: &Settings) -> io::Result<Option<String>> {
    let Some(points) = record.points else { return Ok(None) };
    let visibility = settings.gradescope.visibility;
    let results = Results {
        score: text::rounded(points),
        output: text::cut(&text::summary(record), 2 * MOST),
        output_format: "text",
        visibility,
        stdout_visibility: Visibility::Hidden,
        extra_data: Extra {
            digest: &record.digest,
            judge: &record.judge,
            seed: record.seed.to_string(),
            sandbox: record.sandbox,
        },
        tests: record.tasks.iter().map(|task| test(task, visibility)).collect(),
    };
    Ok(Some(serde_json::to_string_pretty(&results)? + "\n"))
}

fn test(task: &TaskRecord, visibility: Visibility) -> Test<'_> {
    let mut output = text::block(&task.report, MOST);
    if !task.printed.is_empty() {
        output.push_str("\n\n");
        output.push_str(&text::printed(task, MOST));
    }
    Test {
        score: text::rounded(task.points),
        max_score: text::rounded(task.out_of),
        status: if task.grade.passed { "passed" } else { "failed" },
        name: format!("{} ({})", line(&task.title, NAME), line(&task.name, NAME)),
        number: &task.grade.task,
        output,
        // Not HTML and not Markdown, which a student's code could write.
        output_format: "text",
        tags: task.name.split('/').take(1).collect(),
        visibility,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::formats::made_up;
    use serde_json::Value;

    fn written(record: &Record, settings: &Settings) -> Value {
        serde_json::from_str(&of(record, settings).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn a_grade_has_all_that_gradescope_reads() {
        let results = written(&made_up::graded(), &Settings::default());
        assert_eq!(results["score"], 5.3);
        assert_eq!(results["stdout_visibility"], "hidden");
        assert_eq!(results["extra_data"]["seed"], "18446744073709551615");
        let tests = results["tests"].as_array().unwrap();
        assert_eq!(tests.len(), 4);
        assert_eq!(
            (&tests[0]["status"], &tests[1]["status"]),
            (&"passed".into(), &"failed".into())
        );
        assert_eq!(tests[1]["tags"], serde_json::json!(["norm"]));
        assert_eq!(tests[1]["score"], 0.3);
        assert!(results.get("execution_time").is_none(), "the same grade is the same file");
    }

    #[test]
    fn the_settings_say_who_sees_it() {
        let mut settings = Settings::default();
        assert_eq!(written(&made_up::graded(), &settings)["tests"][0]["visibility"], "visible");
        settings.gradescope = toml::from_str("visibility = 'after_due_date'").unwrap();
        let results = written(&made_up::graded(), &settings);
        assert_eq!(results["visibility"], "after_due_date");
        assert_eq!(results["tests"][3]["visibility"], "after_due_date");
        assert!(toml::from_str::<crate::settings::Gradescope>("visibility = 'sometimes'").is_err());
    }

    #[test]
    fn who_is_not_graded_has_no_file() {
        for record in [made_up::failed_machine(), made_up::nothing_to_take()] {
            assert_eq!(of(&record, &Settings::default()).unwrap(), None);
        }
    }

    #[test]
    fn nothing_of_the_code_is_markup_or_too_long() {
        let results = written(&made_up::hostile(), &Settings::default());
        for test in results["tests"].as_array().unwrap() {
            assert_eq!(test["output_format"], "text");
            let output = test["output"].as_str().unwrap();
            assert!(output.len() < 100_000 && !output.contains('\u{1b}') && !output.contains('\0'));
        }
    }
}
