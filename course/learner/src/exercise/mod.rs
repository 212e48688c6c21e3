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
pub mod place;
pub mod reset;
pub mod select;
pub mod show;
pub mod source;
pub mod watch;

use crate::error::{Error, Result};
use crate::save;
use std::path::{Path, PathBuf};

/// The most bytes that are read of a file of the exercises.
const LONGEST: u64 = 1 << 24;

/// The folder of the workspace.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace that this program was built from, or the one that `QUADRIVIUM_ROOT` names.
    /// The tests of the command work on a copy that way.
    ///
    /// # Errors
    /// There are no exercises in it; the program was built from another copy of the course than the one that
    /// it is called in, and would work there.
    pub fn find() -> Result<Self> {
        let named = std::env::var_os("QUADRIVIUM_ROOT").map(PathBuf::from);
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        if named.is_none() {
            not_another(&built_from)?;
        }
        let root = named.unwrap_or(built_from);
        // Without `..` in it, a path is easier to read. If that fails, the next line says why.
        let root = root.canonicalize().unwrap_or(root);
        match root.join("exercises/src").read_dir() {
            Ok(_) => Ok(Self { root }),
            Err(error) => Err(Error::NoWorkspace {
                root: root.display().to_string(),
                reason: error.to_string(),
            }),
        }
    }

    /// A file or folder, named from the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read(&self, name: &str) -> Result<String> {
        crate::read::text(&self.path(name), LONGEST)
            .map_err(|error| Error::File { file: name.to_string(), reason: error.to_string() })
    }

    /// Writes a file.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        save::write(&self.path(name), text)
            .map_err(|error| Error::File { file: name.to_string(), reason: error.to_string() })
    }
}

/// Refuses to work in `root` while the current folder belongs to another copy of the course.
fn not_another(root: &Path) -> Result<()> {
    let is_course = |folder: &&Path| {
        folder.join("exercises/src").is_dir() && folder.join("contract/src/registry.rs").is_file()
    };
    // Without a current folder there is no other copy to be mixed up with.
    let Ok(current) = std::env::current_dir() else { return Ok(()) };
    match (current.ancestors().find(is_course), root.canonicalize()) {
        (Some(here), Ok(root)) if here != root => Err(Error::OtherWorkspace {
            here: here.display().to_string(),
            root: root.display().to_string(),
        }),
        _ => Ok(()),
    }
}
