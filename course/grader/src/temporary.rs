//! A grader's folders in the folder of temporary files, and what killed graders have left there.

use crate::folder::lock_file;
use std::fs::File;
use std::io;
use std::path::Path;

/// A folder that is removed at its end. It is locked for as long as its owner lives, since machines, and containers that don't see
/// each other's processes, may share the folder of temporary files.
pub struct Temporary {
    folder: tempfile::TempDir,
    _lock: File,
}

/// How these folders are called, and what no other folder has in it.
const FOLDER: &str = "quadrivium-stage-";
const LOCK: &str = ".in-use";

impl Temporary {
    /// Makes one that only this user can look into.
    ///
    /// # Errors
    /// The folder of temporary files can't hold it.
    pub fn new() -> io::Result<Self> {
        loop {
            let folder = tempfile::Builder::new().prefix(FOLDER).tempdir()?;
            let path = folder.path().join(LOCK);
            let lock = match lock_file(&path) {
                // Before it was locked, another grader took it for one that was left.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                lock => lock?,
            };
            // Where there are no locks, nothing is tidied either.
            let _ = lock.lock();
            if path.exists() {
                #[cfg(unix)]
                std::fs::set_permissions(
                    &folder,
                    std::os::unix::fs::PermissionsExt::from_mode(0o700),
                )?;
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes what graders have left there that were killed.
pub fn tidy() {
    for entry in std::env::temp_dir().read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if !entry.file_name().to_string_lossy().starts_with(FOLDER) {
            continue;
        }
        // Not another user's: that fails, and is theirs to do.
        let _ = match File::options().read(true).write(true).open(path.join(LOCK)) {
            Ok(lock) if lock.try_lock().is_ok() => std::fs::remove_dir_all(path),
            Ok(_) => continue,
            // Killed before it was locked: there is nothing in it.
            Err(_) => std::fs::remove_dir(path),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lives_stays_and_what_was_left_goes() {
        let lives = Temporary::new().unwrap();
        let left = Temporary::new().unwrap().folder.keep();
        std::fs::write(left.join("program"), "").unwrap();
        let empty = tempfile::Builder::new().prefix(FOLDER).tempdir().unwrap().keep();
        // A user's own folder of such a name.
        let own = tempfile::Builder::new().prefix(FOLDER).tempdir().unwrap();
        std::fs::write(own.path().join("mine"), "").unwrap();
        // A process that another test starts holds all locks for a moment.
        for _ in 0..600 {
            tidy();
            if !left.exists() && !empty.exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        assert_eq!(
            [lives.path(), &left, &empty, own.path()].map(Path::exists),
            [true, false, false, true]
        );
    }
}
