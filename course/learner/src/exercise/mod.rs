//! The exercises from outside: the learner's files, and the grades that the autograder gives.
//!
//! Nothing here judges code, and nothing is stored. The autograder in `exercises/tests` grades, by
//! the contract; what is shown comes from its grades alone.

pub mod check;
pub mod compile;
pub mod diff;
pub mod grading;
pub mod hint;
pub mod json;
pub mod marks;
pub mod names;
pub mod place;
pub mod reset;
pub mod select;
pub mod show;
pub mod source;
pub mod watch;

use crate::error::{Error, Result};
use crate::save;
use std::path::{Path, PathBuf};

/// What the tiers of a hint are called in its file.
pub const TIERS: [&str; 3] = ["Idea", "Formula", "dfdx call"];

/// The most bytes that are read of a file of the exercises.
const LONGEST: u64 = 1 << 24;

/// The folder of the workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace that `QUADRIVIUM_ROOT` names; else the one of the package that cargo runs, wherever its folder is by now;
    /// else the one that the current folder is in.
    ///
    /// # Errors
    /// There are no exercises there.
    pub fn find() -> Result<Self> {
        let named = std::env::var_os("QUADRIVIUM_ROOT").map(PathBuf::from);
        // Only what the environment says stays right when the folder moves: cargo does not build again for that.
        let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let current = std::env::current_dir();
        let above = || package.iter().chain(&current).find_map(|folder| course_above(folder));
        Self::at(named.or_else(above).ok_or(Error::NoWorkspace)?)
    }

    /// The workspace in this folder.
    ///
    /// # Errors
    /// There are no exercises there.
    pub fn at(root: PathBuf) -> Result<Self> {
        // Without `..` in it, a path is easier to read. If that fails, the next line says why.
        let root = root.canonicalize().unwrap_or(root);
        match root.join("exercises/src").read_dir() {
            Ok(_) => Ok(Self { root }),
            Err(error) => Err(Error::NoExercises {
                root: root.display().to_string(),
                reason: error.to_string(),
            }),
        }
    }

    /// A file or folder, named from the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The text of a file. Its lines end with a line feed here, also where git or an editor has put Windows' line ends.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read(&self, name: &str) -> Result<String> {
        self.text(name)
            .map_err(|error| Error::File { file: name.to_string(), reason: error.to_string() })
    }

    /// As [`read`](Self::read), for a caller that says itself what could not be done.
    pub(crate) fn text(&self, name: &str) -> std::io::Result<String> {
        crate::read::text(&self.path(name), LONGEST).map(|text| text.replace("\r\n", "\n"))
    }

    /// Writes a file. It keeps the line ends that it has.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let old = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        let windows = old.split_inclusive('\n').next().is_some_and(|line| line.ends_with("\r\n"));
        let text = if windows { &text.replace('\n', "\r\n") } else { text };
        save::write(&self.path(name), text)
            .map_err(|error| Error::File { file: name.to_string(), reason: error.to_string() })
    }
}

/// The course that a folder is in.
fn course_above(folder: &Path) -> Option<PathBuf> {
    let is_course = |folder: &&Path| {
        folder.join("exercises/src").is_dir() && folder.join("contract/src/registry.rs").is_file()
    };
    folder.ancestors().find(is_course).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_those_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("exercises/src")).unwrap();
        let workspace = Workspace::at(folder.path().to_path_buf()).unwrap();
        let file = workspace.path("a.rs");
        std::fs::write(&file, "one\r\ntwo\r\n").unwrap();
        assert_eq!(workspace.read("a.rs").unwrap(), "one\ntwo\n");
        workspace.write("a.rs", "three\nfour\n").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "three\r\nfour\r\n");
        workspace.write("b.rs", "three\nfour\n").unwrap();
        assert_eq!(std::fs::read_to_string(workspace.path("b.rs")).unwrap(), "three\nfour\n");
    }
}
