//! The folder of results. One grader works in it, or several with a part of the class each; each file in it is whole.

use crate::error::{Error, Result};
use crate::record::{LAYOUT, Record};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// The folder, for as long as this grader works in it.
pub struct Folder {
    path: PathBuf,
    lock: File,
}

impl Folder {
    /// Makes the folder, or takes it: for itself alone, or beside the graders of other parts of the class.
    ///
    /// # Errors
    /// It can't be made; it is a folder of other things; another grader works in it.
    pub fn open(path: &Path, is_part: bool) -> Result<Self> {
        // The first files of a call. Elsewhere nothing is ours, and a file of the same name would be written over. One look,
        // since the grader of another part may begin at the same moment.
        let names: Vec<_> =
            path.read_dir().into_iter().flatten().flatten().map(|file| file.file_name()).collect();
        let is_ours = names.iter().any(|name| name == ".lock" || name == "class.json");
        if !is_ours && !names.is_empty() {
            return Err(Error::Argument {
                what: "results lie in a folder of their own".to_string(),
                expected: "a new or empty folder, or one of an earlier call".to_string(),
                got: format!("{}, which has other files", path.display()),
                to_do: "name another folder with --out".to_string(),
            });
        }
        std::fs::create_dir_all(path).map_err(Error::file(path, "can't be made"))?;
        let lock = path.join(".lock");
        let file = lock_file(&lock).map_err(Error::file(&lock, "can't be written"))?;
        match if is_part { file.try_lock_shared() } else { file.try_lock() } {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Argument {
                    what: "one grader works in a folder of results, or several with --shard"
                        .to_string(),
                    expected: "a folder that no other one uses".to_string(),
                    got: format!("another one is at work in {}", path.display()),
                    to_do: "wait until it has ended, or name another folder with --out".to_string(),
                });
            }
            Err(TryLockError::Error(reason)) => {
                return Err(Error::file(lock, "can't be locked")(reason));
            }
        }
        let folder = Self { path: path.to_path_buf(), lock: file };
        if !is_part {
            folder.tidy();
        }
        Ok(folder)
    }

    /// Removes what graders were about to write when they were killed. No one else writes here now.
    fn tidy(&self) {
        let below = |folder: &Path| folder.read_dir().into_iter().flatten().flatten();
        let results = below(&self.path).map(|entry| entry.path()).filter(|path| path.is_dir());
        for folder in std::iter::once(self.path.clone()).chain(results) {
            for file in below(&folder) {
                let name = file.file_name();
                let name = name.to_string_lossy();
                if name.starts_with('.') && name.ends_with(learner::save::NEW) {
                    let _ = std::fs::remove_file(file.path());
                }
            }
        }
    }

    /// Whether this is still the folder that was opened. Its disk may be lost meanwhile, or the folder moved: what is
    /// written then lies where no one looks for it, beside none of the others' results.
    ///
    /// # Errors
    /// It is another folder, or none.
    pub fn check(&self) -> Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let which = |about: std::fs::Metadata| (about.dev(), about.ino());
            let held = self.lock.metadata().map(which).ok();
            if held.is_none() || self.at(".lock").metadata().map(which).ok() != held {
                return Err(Error::Argument {
                    what: "results are written into one folder, which stays where it is until the end".to_string(),
                    expected: "the folder that was there when the grader began".to_string(),
                    got: format!(
                        "another one, or none, at {}: it was moved or removed, or its disk was unmounted",
                        self.path.display()
                    ),
                    to_do: "put it back, and call the same command again: what was written there is kept".to_string(),
                });
            }
        }
        Ok(())
    }

    /// The path of something in it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file in one step: at no moment is there half of it.
    ///
    /// # Errors
    /// It can't be written; the folder is another one by now.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<()> {
        self.check()?;
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

/// Opens a file that is there to be locked. On NFS, a shared lock needs one that can be read, and an exclusive lock one that can
/// be written.
///
/// # Errors
/// It can't be made or opened.
pub fn lock_file(path: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(false).read(true).write(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_file_that_is_locked_can_be_read_and_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = lock_file(&folder.path().join("lock")).unwrap();
        file.write_all(b"1").unwrap();
        assert_eq!(file.read(&mut [0]).unwrap(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_into_another_folder_than_the_one_that_was_opened() {
        let above = tempfile::tempdir().unwrap();
        let (path, moved) = (above.path().join("results"), above.path().join("moved"));
        let folder = Folder::open(&path, false).unwrap();
        let refused = || {
            let said = folder.write("ann/result.json", "{}").unwrap_err().to_string();
            assert!(said.contains("its disk was unmounted"), "{said}");
        };
        folder.write("class.json", "{}").unwrap();
        std::fs::rename(&path, &moved).unwrap();
        refused();
        assert!(!path.exists());
        // What lies below the place of a mount, or another grader's folder.
        std::fs::create_dir(&path).unwrap();
        refused();
        lock_file(&path.join(".lock")).unwrap();
        refused();
        assert!(!path.join("ann").exists());
        std::fs::remove_dir_all(&path).unwrap();
        std::fs::rename(&moved, &path).unwrap();
        folder.write("ann/result.json", "{}").unwrap();
    }

    #[test]
    fn parts_work_beside_each_other_and_the_whole_alone() {
        let folder = tempfile::tempdir().unwrap();
        let open = |is_part| Folder::open(folder.path(), is_part);
        let parts = [open(true).unwrap(), open(true).unwrap()];
        // A part that is written now stays; what a killed grader has left goes.
        let half = folder.path().join(".a1b2c3.new");
        std::fs::write(&half, "{").unwrap();
        assert!(open(false).err().unwrap().to_string().contains("at work"));
        assert!(half.exists());
        drop(parts);
        let whole = open(false).unwrap();
        assert!(!half.exists());
        assert!(open(true).err().unwrap().to_string().contains("at work"));
        drop(whole);
    }
}
