//! Whose failure it is: a file that was not handed in, or a place that was not touched, did nothing wrong. What it
//! calls may have.

use crate::intake::Taken;
use crate::record::TaskRecord;
use contract::registry;
use contract::violation::Fault;
use learner::exercise::source::region;
use std::collections::BTreeSet;

/// Rules that say nothing of the answers: the process did not live long enough for one.
const NO_ANSWER: [&str; 2] = ["autograder/time", "autograder/no-grade"];
/// How the words begin that say that the time of all tasks was over. No task is to blame alone.
pub const ALL_TOGETHER: &str = "all tasks together";

/// Says of tasks that failed whose failure it is. No points change: a task that has passed is left alone. `starter` has the text
/// of a component's empty file.
pub fn blame(tasks: &mut [TaskRecord], taken: &Taken, starter: impl Fn(&str) -> Option<String>) {
    for task in tasks.iter_mut().filter(|task| !task.grade.passed) {
        let component = task.component().to_string();
        if !taken.files.contains_key(component.as_str()) {
            let words = format!("{component}.rs was not handed in: its tasks count as not begun");
            not_begun(task, &[("to do", words)]);
        }
    }
    let untouched: BTreeSet<String> = tasks
        .iter()
        .filter(|task| is_without_answer(task) && is_untouched(task, taken, &starter))
        .map(|task| task.name.clone())
        .collect();
    let own = |task: &&TaskRecord| is_without_answer(task) && !untouched.contains(&task.name);
    let first = tasks.iter().find(own).map(|task| (task.name.clone(), task.grade.task.clone()));
    for task in tasks.iter_mut().filter(|task| is_without_answer(task)) {
        let other = first.as_ref().filter(|(name, _)| *name != task.name);
        let other = other.map(|(name, number)| format!("task {number} ({name})"));
        if untouched.contains(&task.name) {
            let place = registry::task(&task.name).map_or(task.name.as_str(), |task| task.place);
            let to_do = format!("exercises/src/{}.rs: fill in task {place}", task.component());
            let not = other.map(|other| {
                format!("what these lines are called with did not come to an end: see {other}")
            });
            not_begun(task, &[("to do", to_do), ("but", not.unwrap_or_default())]);
        } else if let Some(other) = other {
            let words = format!(
                "{other} gives no answer either. If this one calls it, fix that one first."
            );
            task.report.push_str(&row("perhaps", &words));
        }
    }
    called_and_wrong(tasks, taken);
    one_report_of_an_error(tasks);
}

/// A file may call another one's functions, and these may be wrong: then that failure is perhaps not this file's.
fn called_and_wrong(tasks: &mut [TaskRecord], taken: &Taken) {
    let failed = |task: &&TaskRecord| {
        !task.grade.passed && task.grade.begun && !task.grade.does_not_compile()
    };
    let wrong: Vec<(String, String, String)> = tasks
        .iter()
        .filter(failed)
        .map(|task| (task.component().to_string(), task.grade.task.clone(), task.name.clone()))
        .collect();
    for task in tasks.iter_mut().filter(|task| failed(&&**task) && !is_without_answer(task)) {
        let needs = registry::task(&task.name).map_or(&[][..], |task| task.needs);
        if let Some((_, number, name)) =
            wrong.iter().find(|(.., name)| needs.contains(&name.as_str()))
        {
            let words = format!(
                "this task calls task {number} ({name}), which is wrong. Fix that one first."
            );
            task.report.push_str(&row("perhaps", &words));
            continue;
        }
        let own = task.component().to_string();
        let Some(text) = taken.files.get(own.as_str()) else { continue };
        let calls = |slug: &str| {
            let name = format!("crate::{slug}::");
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            slug != own && code.clone().any(|line| line.contains(&name))
        };
        if let Some((slug, number, name)) = wrong.iter().find(|(slug, ..)| calls(slug)) {
            let words = format!(
                "{own}.rs calls {slug}.rs, where task {number} ({name}) is wrong. Fix that one first."
            );
            task.report.push_str(&row("perhaps", &words));
        }
    }
}

/// A file that does not compile is one error, and the first of its tasks has the compiler's words. The others name that task.
fn one_report_of_an_error(tasks: &mut [TaskRecord]) {
    for at in 1..tasks.len() {
        let (before, rest) = tasks.split_at_mut(at);
        let task = &mut rest[0];
        if let Some(first) = before.iter().find(|first| first.is_one_error_with(task)) {
            let (number, name) = (&first.grade.task, &first.name);
            let words =
                format!("{}.rs does not compile: see task {number} ({name})", task.component());
            task.report = headed(task, &[("broken", words)]);
        }
    }
}

fn is_without_answer(task: &TaskRecord) -> bool {
    let broken = task.grade.broken.first().filter(|_| !task.grade.passed && task.grade.begun);
    broken.is_some_and(|broken| {
        let of_all = matches!(&broken.violation.fault, Fault::Broken { what } if what.starts_with(ALL_TOGETHER));
        NO_ANSWER.contains(&broken.id.as_str()) && !of_all
    })
}

/// Whether a task's place holds what it holds in the empty file.
fn is_untouched(
    task: &TaskRecord,
    taken: &Taken,
    starter: &impl Fn(&str) -> Option<String>,
) -> bool {
    let place = registry::task(&task.name).map(|task| task.place);
    let lines = |text: &str| -> Option<Vec<String>> {
        let inner = region(text, place?).ok()?.inner;
        Some(text[inner].lines().map(|line| line.trim().to_string()).collect())
    };
    let own = taken.files.get(task.component()).and_then(|text| lines(text));
    own.is_some() && own == starter(task.component()).and_then(|text| lines(&text))
}

fn not_begun(task: &mut TaskRecord, rows: &[(&str, String)]) {
    task.grade.begun = false;
    task.grade.misconception = None;
    task.report = headed(task, rows);
}

/// A report of these lines.
fn headed(task: &TaskRecord, rows: &[(&str, String)]) -> String {
    let mut report = format!("Task {}  {}\n", task.grade.task, task.title);
    for (label, text) in rows.iter().filter(|(_, text)| !text.is_empty()) {
        report.push_str(&row(label, text));
    }
    report
}

/// A line of a report: labels have eleven columns.
fn row(label: &str, text: &str) -> String {
    format!("\n{label:11}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::recorded;
    use contract::grade::Grade;

    fn failed(name: &str, rule: &str, what: &str) -> TaskRecord {
        let task = registry::task(name).unwrap();
        recorded(task, Grade::failed(task, rule, "A rule.", what), String::new(), (0.0, 0.0))
    }

    fn passed(name: &str) -> TaskRecord {
        let task = registry::task(name).unwrap();
        recorded(task, Grade::new(task), String::new(), (0.0, 0.0))
    }

    fn file(name: &str, lines: &str) -> String {
        format!("fn f() {{\n    // task {name}: begin\n{lines}    // task {name}: end\n}}\n")
    }

    const TODO: &str = "    todo!()\n";

    #[test]
    fn what_was_not_handed_in_is_not_begun() {
        let mut tasks = vec![
            failed("embedding/types", "embedding/types", "these lines do not compile"),
            failed("norm/types", "norm/types", "these lines do not compile"),
            passed("rope/types"),
        ];
        let taken = Taken { files: [("norm", String::new())].into(), ..Taken::default() };
        blame(&mut tasks, &taken, |_| None);
        assert_eq!([0, 1, 2].map(|at| tasks[at].grade.begun), [false, true, true]);
        assert!(tasks[0].report.contains("embedding.rs was not handed in"), "{}", tasks[0].report);
        assert!(!tasks[0].report.contains("do not compile"), "{}", tasks[0].report);
        assert!(tasks[1].report.contains("do not compile") && tasks[2].grade.passed);
    }

    #[test]
    fn one_error_is_told_once() {
        let names = ["norm/forward", "norm/tape", "norm/half", "loss/shift"];
        let mut tasks: Vec<TaskRecord> = names
            .map(|name| {
                let task = registry::task(name).unwrap();
                let grade = Grade::uncompiled(task, "error: expected `;`");
                recorded(task, grade, String::new(), (0.0, 0.0))
            })
            .into();
        let files = [("norm", String::new()), ("loss", String::new())];
        blame(&mut tasks, &Taken { files: files.into(), ..Taken::default() }, |_| None);
        let told = |at: usize| tasks[at].report.contains("expected `;`");
        // The other file has its own error.
        assert_eq!([0, 1, 2, 3].map(told), [true, false, false, true]);
        let number = &tasks[0].grade.task;
        for at in [1, 2] {
            let said = &tasks[at].report;
            let words = format!("norm.rs does not compile: see task {number} (norm/forward)");
            assert!(said.contains(&words), "{said}");
            assert!(said.starts_with(&format!("Task {}", tasks[at].grade.task)), "{said}");
            assert!(tasks[at].grade.does_not_compile() && tasks[at].grade.begun);
        }
    }

    #[test]
    fn who_calls_what_is_wrong_is_told() {
        let names = ["embedding/backward", "parallel/property", "parallel/forward", "norm/forward"];
        let mut tasks: Vec<TaskRecord> =
            names.map(|name| failed(name, "a/rule", "off by 1")).into();
        let text = |lines: &str| file("any", lines);
        let files = [
            ("embedding", text("    // as crate::norm::backward does\n")),
            ("parallel", text("    crate::embedding::backward(ids)\n")),
            ("norm", text("    crate::parallel_of::f()\n")),
        ];
        let taken = Taken { files: files.into(), ..Taken::default() };
        blame(&mut tasks, &taken, |_| None);
        let number = &tasks[0].grade.task;
        let words =
            format!("calls embedding.rs, where task {number} (embedding/backward) is wrong");
        let told = |at: usize| tasks[at].report.contains(&words);
        assert_eq!([0, 1, 2, 3].map(told), [false, true, true, false]);
        assert!([0, 3].iter().all(|at| !tasks[*at].report.contains("Fix that one first")));
    }

    #[test]
    fn the_first_that_is_wrong_is_named_to_those_that_call_it() {
        let mut tasks: Vec<TaskRecord> = ["rope/frequencies", "rope/tables", "rope/ratio"]
            .map(|name| failed(name, "a/rule", "off by 1"))
            .into();
        let taken = Taken { files: [("rope", file("any", "f()"))].into(), ..Taken::default() };
        blame(&mut tasks, &taken, |_| None);
        let told = |at: usize| {
            tasks[at].report.contains("calls task 5.1 (rope/frequencies), which is wrong")
        };
        assert_eq!([0, 1, 2].map(told), [false, true, false]);
    }

    #[test]
    fn a_place_that_nobody_touched_is_not_blamed_for_what_it_is_called_with() {
        let endless = "it did not end in 10 seconds of computing";
        let mut tasks: Vec<TaskRecord> =
            ["rope/frequencies", "rope/tables", "model/block", "model/forward"]
                .map(|name| failed(name, "autograder/time", endless))
                .into();
        tasks.push(failed(
            "model/decode",
            "autograder/time",
            "all tasks together took 600 seconds",
        ));
        let rope = file("rope/frequencies", "    loop {}\n") + &file("rope/tables", "    f()\n");
        let model = |forward: &str| {
            file("model/block", TODO)
                + &file("model/forward", forward)
                + &file("model/decode", TODO)
        };
        let files = [("rope", rope), ("model", model("    begun()\r\n"))];
        let taken = Taken { files: files.into(), ..Taken::default() };
        blame(&mut tasks, &taken, |slug| (slug == "model").then(|| model(TODO)));
        let begun: Vec<bool> = tasks.iter().map(|task| task.grade.begun).collect();
        assert_eq!(begun, [true, true, false, true, true]);
        assert!(!tasks[0].report.contains("either"), "{}", tasks[0].report);
        for at in [1, 3] {
            let said = &tasks[at].report;
            let number = &tasks[0].grade.task;
            assert!(
                said.contains(&format!("task {number} (rope/frequencies) gives no answer either")),
                "{said}"
            );
            assert!(said.contains(endless), "{said}");
        }
        let said = &tasks[2].report;
        assert!(said.contains("exercises/src/model.rs: fill in task model/block"), "{said}");
        assert!(said.contains("(rope/frequencies)") && !said.contains(endless), "{said}");
        assert!(!tasks[4].report.contains("either"));
    }
}
