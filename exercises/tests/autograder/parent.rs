//! The process that the learner starts: one child per task, then points and a report.

use crate::{process, property};
use contract::grade::Grade;
use contract::registry::{TASKS, tasks_called};
use contract::report::report;
use contract::task::{Grading, Task};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

/// Where to write all grades as JSON.
const JSON: &str = "QUADRIVIUM_JSON";

/// Lines of the learner's own output that are shown.
const PRINTED: usize = 20;

/// What proptest says by itself begins so: how to store failures, how to shrink longer. A learner's property
/// runs against every known bug, and would fill the report with it.
const PROPTEST: &str = "proptest: ";
type Grades = Arc<Mutex<BTreeMap<usize, Grade>>>;

/// Grades the tasks that the arguments select, in the manner of `cargo test`.
pub fn run() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let selected = match selected(&mut arguments) {
        Ok(tasks) => tasks,
        Err(words) => {
            eprintln!(
                "error: no task is called \"{words}\": nothing was graded. Name a task (1.2, norm/forward), a \
                 component (norm), or nothing for all."
            );
            return ExitCode::from(2);
        }
    };
    if selected.is_empty() {
        eprintln!("error: what is skipped is all that was named: nothing was graded.");
        return ExitCode::from(2);
    }
    let grades = Grades::default();
    let trials = selected.into_iter().map(|place| {
        let (grades, task) = (grades.clone(), &TASKS[place]);
        Trial::test(format!("{} {}", task.number, task.name), move || {
            let grade = grade(task);
            let passed = grade.passed;
            grades.lock().expect("no test panics").insert(place, grade);
            if passed { Ok(()) } else { Err(Failed::without_message()) }
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let grades = grades.lock().expect("no test panics");
    if !grades.is_empty() {
        summary(&grades);
    }
    if let Err(error) = write_json(&grades) {
        eprintln!("error: the grades can't be written as JSON: {error}");
        return ExitCode::from(2);
    }
    conclusion.exit_code()
}

/// The places of the tasks that the filter names and `--skip` does not. The harness would look for the words
/// anywhere in a name, and find `norm` in `layernorm`.
///
/// # Errors
/// Words that name no task.
fn selected(arguments: &mut Arguments) -> Result<Vec<usize>, String> {
    let named = |words: &str| match tasks_called(words) {
        tasks if tasks.is_empty() => Err(words.to_string()),
        tasks => Ok(tasks),
    };
    let mut tasks: Vec<&Task> = TASKS.iter().collect();
    if let Some(words) = arguments.filter.take() {
        tasks = named(&words)?;
    }
    for words in std::mem::take(&mut arguments.skip) {
        let skipped = named(&words)?;
        tasks.retain(|task| skipped.iter().all(|other| other.name != task.name));
    }
    let place = |task: &&Task| TASKS.iter().position(|other| other.name == task.name);
    Ok(tasks.iter().filter_map(place).collect())
}

/// Points, progress, and the report on the first failure.
fn summary(grades: &BTreeMap<usize, Grade>) {
    let passed = grades.values().filter(|grade| grade.passed);
    let points: u32 = passed.clone().map(|grade| grade.points).sum();
    let all: u32 = grades.values().map(|grade| grade.points).sum();
    println!("{} of {} tasks done, {points} of {all} points", passed.count(), grades.len());
    // Code that is wrong is more urgent than code that is not there.
    let failed = || grades.iter().filter(|(_, grade)| !grade.passed);
    if let Some((place, grade)) = failed().find(|(_, grade)| grade.begun).or(failed().next()) {
        println!("\n{}\n", report(&TASKS[*place], grade));
    }
    if failed().count() == grades.len() && failed().all(|(_, grade)| !grade.begun) {
        println!("All red is how it starts: each task that you fill in turns green.");
    }
    for grade in grades.values().filter(|grade| grade.passed) {
        grade.remarks.iter().for_each(|remark| println!("Task {}: {remark}", grade.task));
    }
}

fn write_json(grades: &BTreeMap<usize, Grade>) -> std::io::Result<()> {
    let Some(path) = std::env::var_os(JSON) else { return Ok(()) };
    let grades: Vec<&Grade> = grades.values().collect();
    let path = PathBuf::from(path);
    let text = serde_json::to_vec_pretty(&grades)?;
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        return std::fs::write(path, text); // a pipe or a device
    }
    // Beside it, and then in its place: no reader finds half of the grades. A link stays one.
    let path = path.canonicalize().unwrap_or(path);
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    if let Ok(old) = path.metadata() {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.write_all(&text)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Grades a task in a process of its own; a task about a property in one for each party.
fn grade(task: &'static Task) -> Grade {
    let graded = match task.grading {
        Grading::Property { .. } => property::grade(task),
        _ => process::ask(task, None).map(|(grade, printed)| with_output(grade, &printed)),
    };
    graded.unwrap_or_else(|grade| *grade)
}

/// What the learner's code printed, as a remark.
pub fn with_output(mut grade: Grade, printed: &str) -> Grade {
    let lines: Vec<&str> = printed.lines().filter(|line| !line.starts_with(PROPTEST)).collect();
    if lines.iter().any(|line| !line.trim().is_empty()) {
        let shown = lines[lines.len().saturating_sub(PRINTED)..].join("\n");
        grade.remarks.push(format!("your code printed:\n{shown}"));
    }
    grade
}
