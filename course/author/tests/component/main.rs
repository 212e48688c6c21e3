//! `cargo course new` in a copy of the workspace: what it writes is whole, and what it refuses changes nothing.

mod refusals;
mod scaffold;

use author::component::{Written, new};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What a component has files or lines in.
const COPIED: [&str; 14] = [
    "Cargo.toml",
    "book/src/SUMMARY.md",
    "book/src/index.md",
    "book/src/library.md",
    "contract",
    "course/author/component",
    "exercises",
    "notebook-support",
    "rustfmt.toml",
    "src",
    "tests/goldens/README.md",
    "tests/goldens/generate.py",
    "tests/goldens/answers.py",
    "tests/suite",
];

fn root() -> PathBuf {
    Path::new("../..").canonicalize().unwrap()
}

/// A copy of that much of the workspace.
fn workspace() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    COPIED.iter().for_each(|name| copy(&root().join(name), &folder.path().join(name)));
    folder
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    if from.is_file() {
        std::fs::copy(from, to).unwrap();
        return;
    }
    std::fs::create_dir(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let name = entry.unwrap().file_name();
        if name != "backups" {
            copy(&from.join(&name), &to.join(&name));
        }
    }
}

/// All files below a folder, with what they hold.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let held = std::fs::read(&path).unwrap();
                files.insert(path.strip_prefix(root).unwrap().to_path_buf(), held);
            }
        }
    }
    files
}

/// The component that the tests write. Its slug has an underscore, and ends with the name of another one.
fn written(root: &Path) -> Written {
    new(root, "batch_norm", Some("BatchNormalization")).unwrap_or_else(|error| panic!("{error}"))
}
