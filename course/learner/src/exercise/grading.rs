//! Runs the autograder.

use super::Workspace;
use super::compile::{Autograder, Built, build};
use super::names;
use crate::compile_error::CompileError;
use crate::error::{Error, Result};
use crate::progress::Progress;
use contract::grade::Grade;
use contract::registry::TASKS;
use contract::task::Task;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Where the autograder leaves its grades.
const JSON: &str = "QUADRIVIUM_JSON";

/// How often it is asked whether a file was saved.
const INTERVAL: Duration = Duration::from_millis(125);

/// The grades of some tasks, in the order of the tasks.
#[derive(Debug, Clone, Default)]
pub struct Grades(pub Vec<Grade>);

impl Grades {
    /// The grade of a task.
    pub fn of(&self, task: &Task) -> Option<&Grade> {
        self.0.iter().find(|grade| grade.task == task.number)
    }

    /// Whether there are grades and all are good.
    pub fn all_passed(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|grade| grade.passed)
    }

    /// How many tasks are done.
    pub fn done(&self) -> usize {
        self.0.iter().filter(|grade| grade.passed).count()
    }

    /// What is most urgent: code that is wrong, then code of which nothing is known, then code that is not there.
    pub fn urgent(&self) -> Option<&Grade> {
        let failed = || self.0.iter().filter(|grade| !grade.passed);
        failed()
            .find(|grade| grade.is_wrong())
            .or(failed().find(|grade| grade.begun))
            .or(failed().next())
    }
}

/// What came out of grading.
#[derive(Debug)]
pub struct Graded {
    /// The grades of all tasks that were asked for.
    pub grades: Grades,
    /// Why a file of these tasks does not compile, if one does not. Its tasks have failed; the others were
    /// graded.
    pub uncompiled: Option<Error>,
    /// Files of other tasks that do not compile either, and files that are graded here and not for points: one line for each.
    pub aside: Vec<String>,
}

impl Graded {
    /// The grades, if all files compile.
    ///
    /// # Errors
    /// A file does not compile.
    pub fn complete(self) -> Result<Grades> {
        match self.uncompiled {
            Some(error) => Err(error),
            None => Ok(self.grades),
        }
    }
}

/// Builds the autograder and grades some tasks.
///
/// Once more, if something else came between: another command or `cargo clean` took the program away, or the system ended cargo.
///
/// # Errors
/// The workspace has moved; code outside the components' files does not compile; cargo or the autograder can't be run.
pub fn grade(
    workspace: &Workspace,
    tasks: &[&'static Task],
    progress: Progress<'_>,
) -> Result<Graded> {
    grade_until(workspace, tasks, progress, &|| false)
}

/// The same, until a file is `saved`.
///
/// # Errors
/// As for [`grade`]; [`Error::Saved`].
pub fn grade_until(
    workspace: &Workspace,
    tasks: &[&'static Task],
    progress: Progress<'_>,
    saved: &(dyn Fn() -> bool + Sync),
) -> Result<Graded> {
    match grade_once(workspace, tasks, progress, saved) {
        Err(Error::Program { .. }) => grade_once(workspace, tasks, progress, saved),
        Ok(graded) if graded.grades.0.iter().any(Grade::is_not_judged) => {
            grade_once(workspace, tasks, progress, saved)
        }
        graded => graded,
    }
}

fn grade_once(
    workspace: &Workspace,
    tasks: &[&'static Task],
    progress: Progress<'_>,
    saved: &(dyn Fn() -> bool + Sync),
) -> Result<Graded> {
    progress("compiling your code");
    // A board may be open for days.
    Workspace::at(workspace.path(""))?;
    let wanted: Vec<&'static str> = tasks.iter().map(|task| task.component).collect();
    let Built { program, uncompiled } = build(workspace, &wanted, progress)?;
    let compiles =
        |task: &&&'static Task| uncompiled.iter().all(|e| e.component != Some(task.component));
    let good: Vec<&'static Task> = tasks.iter().filter(compiles).copied().collect();
    let mut of_good = match program {
        Some(autograder) => run(workspace, &autograder, &good, progress, saved)?,
        None => Grades::default(),
    };
    // In the order of the tasks.
    let of = |task: &&'static Task| match of_good.0.iter().position(|g| g.task == task.number) {
        Some(at) => of_good.0.swap_remove(at),
        None => does_not_compile(task, &uncompiled),
    };
    let grades = Grades(tasks.iter().map(of).collect());
    let (asked_for, others): (Vec<_>, Vec<_>) = uncompiled
        .into_iter()
        .partition(|error| wanted.iter().any(|slug| error.component == Some(*slug)));
    let uncompiled = asked_for.into_iter().next();
    let uncompiled = uncompiled.map(|error| Error::DoesNotCompile(Box::new(error)));
    let aside = others.into_iter().filter_map(|error| {
        let file = format!("exercises/src/{}.rs", error.component?);
        // The compiler may have seen it from another file.
        let place = error.place.filter(|place| place.starts_with(&file)).unwrap_or(file);
        Some(format!("{place} does not compile. Its starter stood in, so what calls it waits."))
    });
    let aside = aside.chain(wanted.iter().filter_map(|slug| not_for_points(workspace, slug)));
    let mut aside: Vec<String> = aside.collect();
    aside.dedup(); // a component is named once for each of its tasks
    Ok(Graded { grades, uncompiled, aside })
}

/// What a lecturer's grader would not take, while it is graded here.
fn not_for_points(workspace: &Workspace, slug: &'static str) -> Option<String> {
    let text = workspace.read(&format!("exercises/src/{slug}.rs")).ok()?;
    let error = names::refused(slug, &text)?;
    let what = error.first.lines().next()?.trim_start_matches("error: ");
    Some(format!("{}: {what}. It is graded here, and not by `cargo course grade`.", error.place?))
}

/// The grade of a task whose file does not compile.
fn does_not_compile(task: &Task, uncompiled: &[CompileError]) -> Grade {
    let error = uncompiled.iter().find(|error| error.component == Some(task.component));
    let place = error.and_then(|error| error.place.as_deref());
    let what = match place {
        Some(place) => format!("the first error is at {place}"),
        None => format!("exercises/src/{} does not compile", task.file()),
    };
    Grade::uncompiled(task, what)
}

fn run(
    workspace: &Workspace,
    autograder: &Autograder,
    tasks: &[&'static Task],
    progress: Progress<'_>,
    saved: &(dyn Fn() -> bool + Sync),
) -> Result<Grades> {
    let failed = |reason: String| Error::Program { what: "the autograder can't grade", reason };
    let io = |error: std::io::Error| failed(error.to_string());
    let folder = tempfile::tempdir().map_err(io)?;
    let json = folder.path().join("grades.json");
    let mut process = Command::new(&autograder.program);
    process.arg("--exact");
    // The harness takes one name, or names to leave out.
    for other in TASKS.iter().filter(|task| tasks.iter().all(|one| one.number != task.number)) {
        process.args(["--skip", other.name]);
    }
    process
        .env(JSON, &json)
        // What it leaves there when a save ends it goes with the folder.
        .env("TMPDIR", folder.path())
        .current_dir(workspace.path("exercises"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = process.spawn().map_err(io)?;
    let (of, mut graded) = (tasks.len(), 0);
    progress(&format!("grading {of} tasks"));
    let output = child.stdout.take();
    let child = Mutex::new(child);
    let stopped = std::thread::scope(|scope| {
        let (end, ended) = channel::<()>();
        let child = &child;
        let guard = scope.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(INTERVAL) {
                if saved() {
                    return child.lock().unwrap_or_else(PoisonError::into_inner).kill().is_ok();
                }
            }
            false
        });
        for line in output.into_iter().flat_map(|out| BufReader::new(out).lines()) {
            if line.is_ok_and(|line| line.starts_with("test ") && graded < of) {
                graded += 1;
                progress(&format!("graded {graded} of {of} tasks"));
            }
        }
        drop(end);
        guard.join().unwrap_or(false)
    });
    // It says little there: what the learner's code prints goes elsewhere.
    let child = child.into_inner().unwrap_or_else(PoisonError::into_inner);
    let said = child.wait_with_output().map_err(io)?.stderr;
    if stopped {
        return Err(Error::Saved);
    }
    let said = String::from_utf8_lossy(&said);
    let text = std::fs::read(&json).map_err(|error| failed(format!("{error}\n{said}")))?;
    let grades = serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
    Ok(Grades(grades))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_moves_meanwhile_is_told() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("exercises/src")).unwrap();
        let workspace = Workspace::at(folder.path().to_path_buf()).unwrap();
        folder.close().unwrap();
        let error = grade(&workspace, &[], &|_| {}).unwrap_err();
        assert!(matches!(error, Error::NoExercises { .. }), "{error}");
        assert!(error.to_string().contains("if the folder has moved"), "{error}");
    }
}
