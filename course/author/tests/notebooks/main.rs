//! The notebooks: their files, the command that runs them, and how a browser shows them.
//!
//! Tests that run a kernel need what `cargo course lab` installs, and are ignored without being asked
//! for: `cargo course lab --check`, then `cargo test -p author --test notebooks -- --include-ignored`.

mod changed;
mod faults;
mod files;
#[cfg(target_os = "linux")]
mod moved;
mod page;
mod solutions;

use author::lab::home::Home;
use author::notebook::Notebook;
use learner::exercise::Workspace;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{PoisonError, RwLock};

/// The notebooks, in their order.
fn names() -> Vec<String> {
    home().select(None).unwrap().iter().map(|file| author::lab::home::stem(file)).collect()
}

fn home() -> Home {
    Home::new(&Workspace::find().unwrap())
}

fn file(name: &str) -> PathBuf {
    home().notebooks().join(format!("{name}.ipynb"))
}

fn notebook(name: &str) -> Notebook {
    Notebook::read(&file(name)).unwrap()
}

/// Kernels run beside each other, as many as there are cores.
static KERNELS: RwLock<()> = RwLock::new(());

fn beside_others() -> impl Drop {
    KERNELS.read().unwrap_or_else(PoisonError::into_inner)
}

/// No other kernel: this test ends and counts them.
fn alone() -> impl Drop {
    KERNELS.write().unwrap_or_else(PoisonError::into_inner)
}

/// The command, in the workspace `root`.
fn course(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_author"));
    command.args(arguments).env("QUADRIVIUM_ROOT", root);
    command
}

/// What `cargo course lab FILE --check` says, and its exit code.
fn check(root: &Path, file: &str) -> (String, Option<i32>) {
    let output = course(root, &["lab", file, "--check"]).output().unwrap();
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (said.concat(), output.status.code())
}

/// A notebook of these cells: their tags, separated by spaces, and their code. Nothing has run.
fn of_cells(cells: &[(&str, &str)]) -> serde_json::Value {
    let cell = |(nth, (tags, source)): (usize, &(&str, &str))| {
        let tags: Vec<&str> = tags.split_whitespace().collect();
        serde_json::json!({
            "cell_type": "code", "execution_count": null, "id": format!("cell-{nth}"),
            "metadata": {"tags": tags}, "outputs": [], "source": source,
        })
    };
    let cells: Vec<serde_json::Value> = cells.iter().enumerate().map(cell).collect();
    serde_json::json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
}
