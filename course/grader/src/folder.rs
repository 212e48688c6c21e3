//! The folder of results. One grader at a time works in it; each file in it is whole.

use crate::error::{Error, Result};
use crate::record::{LAYOUT, Record};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// The folder, for as long as this grader works in it.
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder, or takes it.
    ///
    /// # Errors
    /// It can't be made; it is somebody's folder of other things; another grader works in it.
    pub fn open(path: &Path) -> Result<Self> {
        // The first files of a call. Elsewhere nothing is ours, and a file of the same name would be written over.
        let is_ours = [".lock", "class.json"].iter().any(|name| path.join(name).exists());
        if !is_ours && path.read_dir().is_ok_and(|mut files| files.next().is_some()) {
            return Err(Error::Argument {
                what: "results lie in a folder of their own".to_string(),
                expected: "a new or empty folder, or one of an earlier call".to_string(),
                got: format!("{}, which has other files", path.display()),
                to_do: "name another folder with --out".to_string(),
            });
        }
        std::fs::create_dir_all(path).map_err(Error::file(path, "can't be made"))?;
        let lock = path.join(".lock");
        let file = File::options().create(true).truncate(false).write(true).open(&lock);
        let file = file.map_err(Error::file(&lock, "can't be written"))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.to_path_buf(), _lock: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Argument {
                what: "one grader at a time works in a folder of results".to_string(),
                expected: "a folder that no other one uses".to_string(),
                got: format!("another one is at work in {}", path.display()),
                to_do: "wait until it has ended, or name another folder with --out".to_string(),
            }),
            Err(TryLockError::Error(reason)) => Err(Error::file(lock, "can't be locked")(reason)),
        }
    }

    /// The path of something in it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file in one step: at no moment is there half of it.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<()> {
        let path = self.at(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(Error::file(folder, "can't be made"))?;
        }
        learner::save::write(&path, text).map_err(Error::file(path, "can't be written"))
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// It can't be removed.
    pub fn remove(&self, name: &str) -> Result<()> {
        let path = self.at(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::file(path, "can't be removed")(error))
            }
            _ => Ok(()),
        }
    }

    /// What came of all submissions that have a result here, in the order of their names.
    pub fn records(&self) -> Vec<Record> {
        let entries = self.path.read_dir().into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.iter().filter_map(|name| self.record(name)).collect()
    }

    /// What came of a submission, if it is there and whole.
    pub fn record(&self, submission: &str) -> Option<Record> {
        let text = std::fs::read(self.at(&format!("{submission}/result.json"))).ok()?;
        let record: Record = serde_json::from_slice(&text).ok()?;
        (record.layout == LAYOUT && record.submission == submission).then_some(record)
    }
}
