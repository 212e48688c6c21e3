//! JUnit XML: a suite for each submission, a case for each task.
//!
//! A failure is code that gives wrong answers. An error is code that gives none: it does not compile, does not end, or ends its
//! process; or a machine that failed. A task that was not begun is skipped.

use super::text;
use crate::output::page::{NAME, SENTENCE, line, number};
use crate::record::{Outcome, Record, TaskRecord};
use crate::settings::Settings;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::io;

/// Bytes of a report.
const MOST: usize = 20_000;
/// How the rules are called that say that there was nothing to judge.
const AUTOGRADER: &str = "autograder/";

/// The file of a class.
///
/// # Errors
/// It can't be written as XML.
pub fn of(records: &[Record], _: &Settings) -> io::Result<String> {
    let mut report = Report::new("quadrivium");
    report.add_test_suites(records.iter().map(suite));
    report.to_string().map_err(io::Error::other)
}

fn suite(record: &Record) -> TestSuite {
    let mut suite = TestSuite::new(line(&record.submission, NAME));
    if let Some(points) = record.points {
        suite.add_property(("points", number(points).as_str()));
        suite.add_property(("out-of", number(record.out_of).as_str()));
    }
    suite.add_property(("sandbox", record.sandbox.stamp()));
    suite.add_property(("seed", record.seed.to_string().as_str()));
    suite.add_property(("digest", record.digest.as_str()));
    suite.add_property(("judge", record.judge.as_str()));
    suite.set_system_out(held(&text::summary(record)));
    if let Outcome::NotGraded { why } = &record.outcome {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_type("not-graded").set_message(held(&line(why, SENTENCE)));
        suite.add_test_case(TestCase::new("grading", status));
    }
    suite.add_test_cases(record.tasks.iter().map(case));
    suite
}

fn case(task: &TaskRecord) -> TestCase {
    let component = task.name.split('/').next().unwrap_or_default();
    let mut case = TestCase::new(line(&task.name, NAME), status(task));
    case.set_classname(component);
    case.add_property(("points", number(task.points).as_str()));
    case.add_property(("out-of", number(task.out_of).as_str()));
    if !task.printed.is_empty() {
        case.set_system_out(held(&text::printed(task, MOST)));
    }
    case
}

fn status(task: &TaskRecord) -> TestCaseStatus {
    let grade = &task.grade;
    if grade.passed {
        return TestCaseStatus::success();
    }
    if !grade.begun {
        let mut status = TestCaseStatus::skipped();
        status.set_message("not begun");
        return status;
    }
    let first = grade.broken.first();
    let id = first.map_or("", |broken| broken.id.as_str());
    let kind =
        if id.starts_with(AUTOGRADER) { NonSuccessKind::Error } else { NonSuccessKind::Failure };
    let mut status = TestCaseStatus::non_success(kind);
    status
        .set_type(id)
        .set_message(line(first.map_or("", |broken| broken.sentence.as_str()), SENTENCE));
    status.set_description(held(&text::block(&task.report, MOST)));
    status
}

/// A text as XML can hold it. Two characters are left that it can't.
fn held(text: &str) -> String {
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::formats::made_up;

    fn written(records: &[Record]) -> Report {
        let text = of(records, &Settings::default()).unwrap();
        let holds = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        assert!(text.chars().all(holds), "XML can't hold a character of {text:?}");
        Report::deserialize_from_str(&text).unwrap()
    }

    #[test]
    fn wrong_is_a_failure_and_nothing_to_judge_an_error() {
        let report = written(&[made_up::graded(), made_up::failed_machine()]);
        assert_eq!((report.tests, report.failures, report.errors, report.skipped), (5, 1, 2, 1));
        let suite = &report.test_suites[0];
        assert_eq!(suite.name.as_str(), "made-up");
        assert!(matches!(suite.test_cases[0].status, TestCaseStatus::Success { .. }));
        let TestCaseStatus::NonSuccess { kind, ty, description, .. } = &suite.test_cases[1].status
        else {
            panic!()
        };
        assert_eq!(
            (*kind, ty.as_ref().unwrap().as_str()),
            (NonSuccessKind::Failure, "norm/eps-inside-root")
        );
        assert!(description.as_ref().unwrap().contains("eps"));
        assert!(matches!(suite.test_cases[2].status, TestCaseStatus::Skipped { .. }));
        let TestCaseStatus::NonSuccess { kind, .. } = &suite.test_cases[3].status else { panic!() };
        assert_eq!(*kind, NonSuccessKind::Error);
    }

    #[test]
    fn who_is_not_graded_is_an_error_without_points() {
        let report = written(&[made_up::failed_machine()]);
        let suite = &report.test_suites[0];
        let TestCaseStatus::NonSuccess { kind, message, .. } = &suite.test_cases[0].status else {
            panic!()
        };
        assert_eq!(
            (*kind, message.as_ref().unwrap().as_str()),
            (NonSuccessKind::Error, "no space left on the disk")
        );
        assert!(suite.properties.iter().all(|property| property.name.as_str() != "points"));
    }

    #[test]
    fn what_the_code_wrote_stays_text() {
        let report = written(&[made_up::hostile()]);
        assert_eq!(report.test_suites.len(), 1);
        assert_eq!(report.tests, 1, "a case was forged");
        let printed = report.test_suites[0].test_cases[0].system_out.clone().unwrap();
        assert!(
            printed.contains("]]></system-out><testcase name=\"forged\"/>"),
            "{}",
            printed.as_str()
        );
    }
}
