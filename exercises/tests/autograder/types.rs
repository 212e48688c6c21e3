//! Tasks about types: rustc is asked about the sizes, against the learner's crate as it was built.

use crate::adapter::Adapter;
use crate::child::CRATES;
use crate::own::is_learner;
use adapters::Learner;
use contract::grade::Grade;
use contract::run::Run;
use contract::task::Task;
use contract::types::{self, Keeps, PROGRAM, Rule, Said};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Grades a task about types.
pub fn judge(task: &Task, rule: &Rule, adapter: &Adapter, run: &Run) -> Grade {
    // The autograder is started in this package's folder, wherever that is by now.
    let file = Path::new("src").join(task.file());
    let file = std::fs::read_to_string(file).unwrap_or_default();
    let keeps =
        |Keeps { id, calls }: &Keeps| (adapter.keeps)(id, &Learner { calls, by_hand: false }, run);
    types::judge(task, rule, &file, run, keeps, &compile)
}

fn compile(text: &str, emit: &str) -> io::Result<Said> {
    let out = tempfile::tempdir()?;
    let program = out.path().join(PROGRAM);
    std::fs::write(&program, text)?;
    let output = compiler(&program, emit, out.path())?.output()?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() && words.contains("No space left on device") {
        return Err(io::Error::other("there is no space left on the disk"));
    }
    let messages = words.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok(Said { success: output.status.success(), messages, words })
}

fn compiler(program: &Path, emit: &str, out: &Path) -> io::Result<Command> {
    // The learner's crate lies beside this program, and what it depends on where it was built.
    let program_of_run = std::env::current_exe()?;
    let beside = program_of_run.parent().unwrap_or(Path::new("")).read_dir()?.flatten();
    let found = beside.filter(|entry| is_learner(&entry.file_name().to_string_lossy()));
    let newest = found.max_by_key(|entry| entry.metadata().and_then(|about| about.modified()).ok());
    let newest = newest.ok_or_else(|| io::Error::other("no libexercises-*.rlib is built"))?;
    let mut learner = std::ffi::OsString::from("exercises=");
    learner.push(newest.path());
    let mut dependency = std::ffi::OsString::from("dependency=");
    dependency.push(std::env::var_os(CRATES).unwrap_or_default());
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc
        .args(["--edition=2024", "--crate-type=lib", "--cap-lints=allow", "--error-format=json"])
        .arg(format!("--emit={emit}"))
        .arg("--out-dir")
        .arg(out)
        .arg("-L")
        .arg(dependency)
        .arg("--extern")
        .arg(learner)
        .arg(program)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    Ok(rustc)
}
