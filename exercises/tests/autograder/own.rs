//! What a run needs beside itself, kept for it: an edit during the run, or another command beside it, builds the program again,
//! and cargo removes the old one first.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// How the folders are called.
const FOLDER: &str = "grading-";
/// A run that was killed has left its folder. No run takes so long.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// The program of this run, the library that is linked when it starts, and the learner's crate.
pub struct Own {
    /// The program. What it needs lies beside it.
    pub program: PathBuf,
    /// Where the other crates are, which no edit of a learner's changes.
    pub crates: PathBuf,
    _folder: Option<TempDir>,
}

impl Own {
    /// Takes the same files under its own names, which costs no copy. Where a file can't have two names, it is used as
    /// it is.
    ///
    /// # Errors
    /// The system does not say which program this is.
    pub fn new() -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let crates = program.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(match kept(&program, &crates) {
            Ok((program, folder)) => Self { program, crates, _folder: Some(folder) },
            Err(_) => Self { program, crates, _folder: None },
        })
    }
}

fn kept(program: &Path, crates: &Path) -> io::Result<(PathBuf, TempDir)> {
    let folder = tempfile::Builder::new().prefix(FOLDER).tempdir_in(crates)?;
    let mut learner = None;
    for entry in crates.read_dir()? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let about = entry.metadata()?;
        if name.starts_with(FOLDER) && about.modified()?.elapsed().is_ok_and(|age| age > LONGEST) {
            let _ = std::fs::remove_dir_all(entry.path());
        } else if is_judge(&name) {
            std::fs::hard_link(entry.path(), folder.path().join(name))?;
        } else if is_learner(&name) {
            // Of several, the one that was built last: this program was built with it.
            learner = learner.max(Some((about.modified()?, entry.path())));
        }
    }
    for path in
        [Some(program), learner.as_ref().map(|(_, path)| path.as_path())].into_iter().flatten()
    {
        std::fs::hard_link(path, folder.path().join(path.file_name().unwrap_or_default()))?;
    }
    Ok((folder.path().join(program.file_name().unwrap_or_default()), folder))
}

/// The library `contract-dylib`, on each system.
fn is_judge(name: &str) -> bool {
    ["libcontract_dylib.so", "libcontract_dylib.dylib", "contract_dylib.dll"].contains(&name)
}

/// The learner's crate as a library.
pub fn is_learner(name: &str) -> bool {
    name.starts_with("libexercises-") && name.ends_with(".rlib")
}
