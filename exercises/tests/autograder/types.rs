//! Tasks about types: rustc is asked about the sizes, against the learner's crate as it was built.

use crate::seat::Seat;
use crate::seats::Learner;
use contract::grade::Grade;
use contract::run::Run;
use contract::task::Task;
use contract::types::{self, Keeps, PROGRAM, Rule, Said};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Grades a task about types.
pub fn judge(task: &Task, rule: &Rule, seat: &Seat, run: &Run) -> Grade {
    // Whoever starts the autograder does so in this package's folder, wherever that is by now.
    let file = Path::new("src").join(task.file());
    let file = std::fs::read_to_string(file).unwrap_or_default();
    let keeps =
        |Keeps { id, calls }: &Keeps| (seat.keeps)(id, &Learner { calls, by_hand: false }, run);
    types::judge(task, rule, &file, run, keeps, &compile)
}

fn compile(text: &str, emit: &str) -> io::Result<Said> {
    let out = tempfile::tempdir()?;
    let program = out.path().join(PROGRAM);
    std::fs::write(&program, text)?;
    let output = compiler(&program, emit, out.path())?.output()?;
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let messages = words.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok(Said { success: output.status.success(), messages, words })
}

fn compiler(program: &Path, emit: &str, out: &Path) -> io::Result<Command> {
    // The autograder stands beside the crates that it was built from.
    let deps = std::env::current_exe()?;
    let deps = deps.parent().ok_or_else(|| io::Error::other("no folder of built crates"))?;
    let mut dependency = std::ffi::OsString::from("dependency=");
    dependency.push(deps);
    let mut learner = std::ffi::OsString::from("exercises=");
    learner.push(newest(deps, "libexercises-")?);
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

/// The crate that was built last: it is the one that this program was built with.
fn newest(deps: &Path, name: &str) -> io::Result<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(deps)? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if file.starts_with(name) && file.ends_with(".rlib") {
            found.push((path.metadata()?.modified()?, path));
        }
    }
    let newest = found.into_iter().max().map(|(_, path)| path);
    newest.ok_or_else(|| io::Error::other(format!("no {name}*.rlib is built")))
}
