//! Cargo, and the programs that it builds when they are asked for.
//!
//! The book, the notebooks and the tour need many crates that the exercises do not need. They are separate programs, so
//! that the board does not wait for them.

use crate::error::{Error, Result};
use crate::exercise::Workspace;
use crate::progress::Progress;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Runs the program of a package of the workspace, replacing this one, with the same arguments. Returns its exit code,
/// if it returns at all.
///
/// # Errors
/// There are no exercises; cargo can't be run.
pub fn hand_over(package: &str) -> Result<u8> {
    in_place(run_package(&Workspace::find()?, package, &[]))
}

/// The same for a program that is built in another profile.
///
/// # Errors
/// As for [`hand_over`].
pub fn hand_over_as(profile: &str, package: &str) -> Result<u8> {
    in_place(run_package(&Workspace::find()?, package, &["--profile", profile]))
}

/// Runs a command, replacing this program, with the same arguments.
pub(crate) fn in_place(mut command: Command) -> Result<u8> {
    command.args(std::env::args_os().skip(1));
    let failed = |error: std::io::Error| Error::Program {
        what: "cargo can't be run",
        reason: error.to_string(),
    };
    // One program in the place of the other: a signal finds the one that works.
    #[cfg(unix)]
    return Err(failed(std::os::unix::process::CommandExt::exec(&mut command)));
    #[cfg(not(unix))]
    {
        let code = command.status().map_err(failed)?.code();
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
    }
}

/// Cargo that builds the program of a package of the workspace, and runs it.
pub(crate) fn run_package(workspace: &Workspace, package: &str, options: &[&str]) -> Command {
    let mut cargo = plain_cargo();
    cargo.args(["run", "--package", package]).args(options);
    cargo.arg("--manifest-path").arg(workspace.path("Cargo.toml")).arg("--");
    cargo
}

/// Cargo in the workspace, with its lines for us.
pub(crate) fn cargo(workspace: &Workspace) -> Command {
    let mut cargo = plain_cargo();
    cargo.current_dir(workspace.path(""));
    cargo.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    cargo
}

/// Cargo, and nothing of what `cargo run` says of this package.
pub fn plain_cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // `cargo run` describes this package to us. What is started here has nothing to do with it.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo
}

/// Passes cargo's own lines on, and keeps what it said about its failure.
pub fn listen(stderr: Option<impl std::io::Read>, progress: Progress<'_>) -> String {
    let mut said = Vec::new();
    for line in stderr.into_iter().flat_map(|err| BufReader::new(err).lines()) {
        let Ok(line) = line else { break };
        progress(match line.trim().split(" (").next().unwrap_or_default() {
            line if line.contains("waiting for file lock") => {
                "waiting: something else of the course is being built"
            }
            line => line, // `Compiling exercises v0.1.0 (/a/long/path)`
        });
        if line.starts_with("error") || !said.is_empty() {
            said.push(line);
        }
    }
    said.join("\n")
}
