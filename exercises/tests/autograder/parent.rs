//! The process that the learner starts: one child per task, then points and a report.

use crate::own::Own;
use crate::{process, property};
use contract::grade::Grade;
use contract::registry::{self, TASKS, tasks_called};
use contract::report::report;
use contract::task::{Grading, Task};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock};

/// Where to write all grades as JSON.
const JSON: &str = "QUADRIVIUM_JSON";

/// Columns of a report: as many as a terminal has, unless it was made wider.
const WIDTH: usize = 80;

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
    let judged = match Own::new() {
        Ok(own) => {
            Arc::new(Judged { own, grades: TASKS.iter().map(|_| OnceLock::new()).collect() })
        }
        Err(error) => {
            eprintln!("error: the system does not say where this program is: {error}");
            return ExitCode::from(2);
        }
    };
    let grades = Grades::default();
    let trials = selected.into_iter().map(|place| {
        let (judged, grades, task) = (judged.clone(), grades.clone(), &TASKS[place]);
        Trial::test(format!("{} {}", task.number, task.name), move || {
            let grade = judged.grade(task);
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
    let wrong = failed().find(|(_, grade)| grade.is_wrong());
    if let Some((place, grade)) =
        wrong.or(failed().find(|(_, grade)| grade.begun)).or(failed().next())
    {
        println!("\n{}\n", report(&TASKS[*place], grade, WIDTH));
    }
    if failed().count() == grades.len() && failed().all(|(_, grade)| !grade.begun) {
        println!("All red is how it starts: each task that you fill in turns green.");
    }
    for grade in grades.values().filter(|grade| grade.passed) {
        grade.on_passing().iter().for_each(|remark| println!("Task {}: {remark}", grade.task));
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

/// The grades so far. A task is judged once, no matter who asks.
struct Judged {
    own: Own,
    grades: Vec<OnceLock<Grade>>,
}

impl Judged {
    /// The grade of a task. One that is wrong waits for the first that it calls and that is wrong itself.
    fn grade(&self, task: &'static Task) -> Grade {
        let mut grade = self.alone(task).clone();
        let first = grade.first_wrong(task, |name| Some(self.alone(registry::task(name)?)));
        grade.waits = first.map(str::to_string);
        grade
    }

    /// Judges a task in its own process; a task about a property in one for each implementation.
    fn alone(&self, task: &'static Task) -> &Grade {
        let place = TASKS.iter().position(|other| other.name == task.name).unwrap_or_default();
        self.grades[place].get_or_init(|| {
            let graded = match task.grading {
                Grading::Property { .. } => property::grade(&self.own, task),
                _ => process::ask::<Grade>(&self.own, task, None).map(|(mut grade, printed)| {
                    grade.printed = printed.shown();
                    grade
                }),
            };
            graded.unwrap_or_else(|grade| *grade)
        })
    }
}
