//! The files of the course that go into a package.

use crate::error::{Error, Result};
use learner::exercise::Workspace;
use learner::exercise::source::starter_file;
use std::path::Path;
use std::process::Command;

/// What cargo needs for the grader: the packages of the workspace, since cargo reads the manifests of all.
const TAKEN: &[&str] = &[
    ".cargo",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "benches",
    "contract",
    "course",
    "examples",
    "exercises",
    "notebook-support",
    "ranks",
    "rust-toolchain.toml",
    "src",
    "tensor",
    "tests",
];
/// What is in these, and is not needed.
const LEFT: &[&str] = &["benches/peers/", "tests/cuda/", "tests/goldens/"];

/// A copy of the course.
pub struct Course {
    /// Names of files, with `/` and sorted, and what they hold.
    pub files: Vec<(String, Vec<u8>)>,
    /// The version of Rust.
    pub channel: String,
}

impl Course {
    /// The files that git tracks in a folder. What else lies there, such as other submissions, goes nowhere.
    ///
    /// # Errors
    /// git can't be run, or knows no files there; a file can't be read.
    pub fn find(root: &Path) -> Result<Self> {
        let names = tracked(root, TAKEN)?;
        let names = names.iter().filter(|name| !begins(name, LEFT));
        let mut files = names.map(|name| packed(root, name)).collect::<Result<Vec<_>>>()?;
        files.sort();
        Ok(Self { channel: channel(&root.join("rust-toolchain.toml"))?, files })
    }
}

/// The files that git tracks in these folders. Not links, and not files that were taken away since.
pub(super) fn tracked(root: &Path, folders: &[&str]) -> Result<Vec<String>> {
    let asked = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z", "--"])
        .args(folders)
        .output();
    let output = asked.map_err(|error| refused(root, &error.to_string()))?;
    if !output.status.success() {
        return Err(refused(root, String::from_utf8_lossy(&output.stderr).trim()));
    }
    let is_file =
        |name: &str| root.join(name).symlink_metadata().is_ok_and(|about| about.is_file());
    let names = String::from_utf8_lossy(&output.stdout);
    let mut names: Vec<String> =
        names.split('\0').filter(|name| is_file(name)).map(String::from).collect();
    names.sort();
    names.dedup();
    match names.iter().any(|name| name == "Cargo.lock") {
        true => Ok(names),
        false => Err(refused(root, "no Cargo.lock among the files that git tracks")),
    }
}

/// A file as it is packed: its name, and what it holds. Grading does not need solutions, so they are not on other machines: what goes
/// there are the starters.
fn packed(root: &Path, name: &str) -> Result<(String, Vec<u8>)> {
    if let Some(slug) = solved(name) {
        let starter = Workspace::at(root.to_path_buf())?.starter(slug)?;
        return Ok((starter_file(slug), starter.into_bytes()));
    }
    Ok((name.to_string(), content(root, name)?))
}

/// What a file holds, with the line ends of Linux where it is a text.
pub(super) fn content(root: &Path, name: &str) -> Result<Vec<u8>> {
    let path = root.join(name);
    let content = std::fs::read(&path).map_err(Error::file(path, "can't be read"))?;
    // git may have checked out a text with the line ends of another system, and the package is for Linux.
    let content = match String::from_utf8(content) {
        Ok(text) => with_line_feeds(&text).into_bytes(),
        Err(binary) => binary.into_bytes(),
    };
    Ok(content)
}

/// The component whose solution a file is.
pub(super) fn solved(name: &str) -> Option<&str> {
    name.strip_prefix("exercises/")?.strip_suffix("/solution.rs")
}

/// A text whose lines end as they do on Linux.
pub fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Whether a name begins with one of these.
pub(super) fn begins(name: &str, with: &[&str]) -> bool {
    with.iter().any(|begin| name.starts_with(begin))
}

fn refused(root: &Path, got: &str) -> Error {
    Error::Argument {
        what: "a package is made of the files that git tracks in the course".to_string(),
        expected: format!("a git repository with the course in {}", root.display()),
        got: got.to_string(),
        to_do: "run this in a clone of the course; what you have added there is taken too, once git tracks it"
            .to_string(),
    }
}

fn channel(path: &Path) -> Result<String> {
    let failed = Error::file(path, "can't be read");
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let table = text.parse::<toml::Table>().unwrap_or_default();
    let toolchain = table.get("toolchain").and_then(|toolchain| toolchain.get("channel"));
    let channel = toolchain.and_then(toml::Value::as_str).map(String::from);
    channel.ok_or_else(|| Error::Argument {
        what: "the course names its version of Rust".to_string(),
        expected: format!("[toolchain] with a channel in {}", path.display()),
        got: "none".to_string(),
        to_do: "take the file of the course".to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_leaves_the_machine() {
        for left in ["tests/goldens/norm.safetensors", "benches/peers/Cargo.toml"] {
            assert!(begins(left, LEFT), "{left}");
        }
        for taken in ["benches/Cargo.toml", "tests/memory.rs", "contract/src/solution.rs"] {
            assert!(!begins(taken, LEFT) && solved(taken).is_none(), "{taken}");
        }
    }

    #[test]
    fn a_starter_goes_where_its_solution_does_not() {
        let course = Workspace::find().unwrap();
        let (name, content) = packed(&course.path(""), "exercises/norm/solution.rs").unwrap();
        assert_eq!(name, "exercises/norm/starter.rs");
        assert_eq!(content, course.starter("norm").unwrap().into_bytes());
        assert_ne!(content, std::fs::read(course.path("exercises/norm/solution.rs")).unwrap());
    }

    #[test]
    fn a_folder_that_is_no_clone_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = Course::find(folder.path()).err().unwrap().to_string();
        assert!(error.contains("expected  a git repository") && error.contains("to do"), "{error}");
    }
}
