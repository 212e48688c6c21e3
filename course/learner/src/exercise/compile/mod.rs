//! Builds the autograder with the learner's code in it.

pub mod diagnostics;
pub mod without;

use super::Workspace;
use super::source::starter_file;
use crate::compile_error::CompileError;
use crate::error::{Error, Result};
use crate::program::{cargo, listen};
use crate::progress::Progress;
use contract::registry::COMPONENTS;
use contract::types;
use diagnostics::{FOLDER, compile_error, is_error};
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use without::{Attempt, Ended, Settled, settle};

/// The autograder with the learner's code in it.
#[derive(Debug)]
pub struct Autograder {
    /// The program.
    pub program: PathBuf,
}

/// What cargo says in JSON, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    executable: Option<PathBuf>,
    target: Option<Target>,
    message: Option<types::Message>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
}

const NAME: &str = "autograder";
/// The crate that calls the learner's functions for it.
const ADAPTERS: &str = "adapters";

/// Lets `exercises/build.rs` know which files to leave out.
const STARTERS: &str = "QUADRIVIUM_STARTERS";

/// Makes cargo build with the starters of these components instead of the learner's files. They are written where the
/// compiler looks for them.
///
/// # Errors
/// A starter can't be read or written.
pub fn stand_in(cargo: &mut Command, workspace: &Workspace, slugs: &[&str]) -> Result<()> {
    for slug in slugs {
        let (file, starter) = (starter_file(slug), workspace.starter(slug)?);
        // Cargo compiles what has a new time.
        if workspace.read(&file).ok().as_ref() != Some(&starter) {
            workspace.write(&file, &starter)?;
        }
    }
    match slugs {
        [] => cargo.env_remove(STARTERS),
        _ => cargo.env(STARTERS, slugs.join(",")),
    };
    Ok(())
}

/// The autograder, and the files that it was built without.
pub type Built = Settled<Autograder>;

/// Builds the autograder, as `cargo test -p exercises` would. Where a file of a component does not compile,
/// its starter takes its place: see [`settle`].
///
/// # Errors
/// Code outside these files does not compile; cargo can't be run or fails for another reason.
pub fn build(workspace: &Workspace, wanted: &[&str], progress: Progress<'_>) -> Result<Built> {
    let built = settle(wanted, unreadable(workspace), |starters| {
        match attempt(workspace, starters, progress) {
            Ok(Ok(autograder)) if renew(workspace, &autograder.program) => {
                attempt(workspace, starters, progress)
            }
            built => built,
        }
    });
    built.map_err(|ended| match ended {
        Ended::Nobodys(error) => Error::DoesNotCompile(Box::new(error)),
        Ended::Failed(error) => error,
    })
}

/// Gives a new time to files that were put there after the program was built, and have an older one, as `mv` and `cp -p` leave
/// it: cargo takes them for those that it has built. Returns whether there were any.
#[cfg(unix)]
fn renew(workspace: &Workspace, program: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(built) = program.metadata().map(|about| (about.mtime(), about.mtime_nsec())) else {
        return false;
    };
    let is_taken_for_older = |path: &PathBuf| {
        path.metadata().is_ok_and(|about| {
            let (came, says) =
                ((about.ctime(), about.ctime_nsec()), (about.mtime(), about.mtime_nsec()));
            path.extension().is_some_and(|extension| extension == "rs")
                && came > built
                && says <= built
        })
    };
    let files = workspace.path(FOLDER).read_dir().into_iter().flatten().flatten();
    let files = files.map(|entry| entry.path()).filter(is_taken_for_older);
    let now = std::time::SystemTime::now();
    let renewed = files
        .filter_map(|path| File::options().append(true).open(path).ok()?.set_modified(now).ok());
    renewed.count() > 0
}

#[cfg(not(unix))]
fn renew(_: &Workspace, _: &Path) -> bool {
    false // no system there shows when a file came
}

/// The learner's files that are no Rust at all: gone, empty, or in another encoding than UTF-8. The compiler would blame
/// the file that lists them.
fn unreadable(workspace: &Workspace) -> Vec<CompileError> {
    let error = |slug: &'static str| {
        let file = format!("{FOLDER}{slug}.rs");
        let first = match crate::read::whole(&workspace.path(&file), super::LONGEST) {
            Ok(bytes) if bytes.trim_ascii().is_empty() => {
                format!("error: {file} is empty. `cargo course reset {slug}` writes it")
            }
            Ok(bytes) if std::str::from_utf8(&bytes).is_ok() => return None,
            Ok(_) => format!("error: {file} is not UTF-8: save it in this encoding"),
            Err(error) => format!("error: {file}: {error}. `cargo course reset {slug}` writes it"),
        };
        let place = Some(file);
        Some(CompileError { component: Some(slug), place, first, further: 0, signature: false })
    };
    COMPONENTS.iter().filter_map(|of| error(of.slug)).collect()
}

/// Builds once, with the starters of these components instead of the learner's files.
fn attempt(
    workspace: &Workspace,
    starters: &[&str],
    progress: Progress<'_>,
) -> Attempt<Autograder, Error> {
    let failed = |reason: String| Error::Program { what: "cargo can't build", reason };
    let mut cargo =
        compiling(workspace, starters)?.spawn().map_err(|error| failed(error.to_string()))?;
    let (stdout, stderr) = (cargo.stdout.take(), cargo.stderr.take());
    let (program, errors, said) = std::thread::scope(|scope| {
        let listener = scope.spawn(|| listen(stderr, progress));
        let mut program = None;
        let mut errors = Vec::new();
        for line in stdout.into_iter().flat_map(|out| BufReader::new(out).lines()) {
            // Another line than a message is nothing of ours.
            let message = line.ok().and_then(|line| serde_json::from_str::<Message>(&line).ok());
            let Some(message) = message else { continue };
            let target = message.target.map_or(String::new(), |target| target.name);
            match (message.reason.as_str(), message.message) {
                ("compiler-artifact", _) if target == NAME => program = message.executable,
                ("compiler-message", Some(found)) if is_error(&found) => {
                    errors.push(([NAME, ADAPTERS].contains(&&*target), found));
                }
                _ => {}
            }
        }
        (program, errors, listener.join().unwrap_or_default())
    });
    let status = cargo.wait().map_err(|error| failed(error.to_string()))?;
    if let Some(error) = compile_error(errors) {
        return Ok(Err(error));
    }
    match program {
        Some(program) if status.success() => Ok(Ok(Autograder { program })),
        _ => Err(failed(said)),
    }
}

fn compiling(workspace: &Workspace, starters: &[&str]) -> Result<Command> {
    let mut cargo = cargo(workspace);
    cargo
        .args(["test", "--package", "exercises", "--test", NAME, "--no-run"])
        .args(["--message-format=json", "--color=never"]);
    stand_in(&mut cargo, workspace, starters)?;
    Ok(cargo)
}
