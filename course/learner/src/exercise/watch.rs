//! Waits until a learner saves a file.

use super::Workspace;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime};

/// How often the folder is looked at. A look asks the system for the time of each file, so that a course which waits all day costs
/// a thousandth of a core; and it sees a save where no one reports one: on a network drive, in a container, in WSL.
const INTERVAL: Duration = Duration::from_millis(125);

/// A save has several steps: a file is emptied first. They are over when nothing changes for this time.
const QUIET: Duration = Duration::from_millis(40);

/// Watches `exercises/src`, by the times and sizes of its files. They are noted BEFORE a run, so a save during the run is seen
/// after it.
pub struct Watch {
    folder: PathBuf,
    quiet: Duration,
    seen: Seen,
}

/// What was there at one moment.
#[derive(Default)]
struct Seen {
    files: Vec<Stamp>,
    /// A folder's time changes when a name in it does. While it stays, the folder need not be read.
    folders: Vec<Stamp>,
}

/// Time and size of a file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stamp {
    path: PathBuf,
    now: Option<(SystemTime, u64)>,
}

impl Stamp {
    fn of(path: PathBuf) -> Self {
        Self { now: Self::look(&path), path }
    }

    /// Of the file that a link leads to.
    fn look(path: &Path) -> Option<(SystemTime, u64)> {
        let about = path.metadata().ok()?;
        Some((about.modified().ok()?, about.len()))
    }

    fn is_still(&self) -> bool {
        Self::look(&self.path) == self.now
    }
}

impl Watch {
    /// Watches from now on.
    pub fn new(workspace: &Workspace) -> Self {
        Self::of(workspace.path("exercises/src"), QUIET)
    }

    fn of(folder: PathBuf, quiet: Duration) -> Self {
        Self { seen: seen(&folder), folder, quiet }
    }

    /// To be called before a run: what is saved from now on is a change.
    pub fn note(&mut self) {
        self.seen = seen(&self.folder);
    }

    /// Waits for a change since [`Watch::note`], and until the save is over; or until another run is asked for.
    pub fn wait(&mut self, asked: &Receiver<()>) {
        while !self.is_changed() {
            match asked.recv_timeout(INTERVAL) {
                Ok(()) => return,
                Err(RecvTimeoutError::Timeout) => {}
                // No one can ask.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(INTERVAL),
            }
        }
        loop {
            let before = seen(&self.folder).files;
            std::thread::sleep(self.quiet);
            if seen(&self.folder).files == before {
                return;
            }
        }
    }

    /// Whether something was saved since [`Watch::note`].
    pub fn is_changed(&mut self) -> bool {
        if self.seen.files.iter().chain(&self.seen.folders).all(Stamp::is_still) {
            return false;
        }
        let now = seen(&self.folder);
        // An editor's own file beside the learner's is none.
        let changed = now.files != self.seen.files;
        self.seen.folders = now.folders;
        changed
    }
}

/// All Rust files in a folder and in the folders below.
fn seen(folder: &Path) -> Seen {
    let mut seen = Seen::default();
    look(folder, &mut seen);
    seen.files.sort();
    seen
}

fn look(folder: &Path, seen: &mut Seen) {
    // Before its names are read: one that comes in between is found by the next look.
    seen.folders.push(Stamp::of(folder.to_path_buf()));
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        // An editor may hold a lock under a hidden name.
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !is_hidden && path.extension().is_some_and(|extension| extension == "rs") {
            seen.files.push(Stamp::of(path));
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            look(&path, seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::mpsc::channel;

    #[test]
    fn a_save_is_a_change_and_a_look_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("norm.rs");
        std::fs::write(&file, "one").unwrap();
        let mut watch = Watch::of(folder.path().to_path_buf(), QUIET);
        std::fs::read(&file).unwrap();
        std::fs::write(folder.path().join(".norm.rs.swp"), "").unwrap();
        std::fs::write(folder.path().join(".#norm.rs"), "").unwrap();
        assert!(!watch.is_changed());
        let mut changed = |what: &str| {
            assert!(watch.is_changed(), "{what}");
            watch.note();
            assert!(!watch.is_changed(), "{what}");
        };
        std::fs::write(&file, "two and more").unwrap();
        changed("another content");
        let older = std::fs::File::options().append(true).open(&file).unwrap();
        older.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        changed("an older file of the same size in its place");
        std::fs::write(&file, "three").unwrap();
        older.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        changed("another size at the same time");
        std::fs::create_dir(folder.path().join("norm")).unwrap();
        std::fs::write(folder.path().join("norm/parts.rs"), "").unwrap();
        changed("a file in a folder below");
        std::fs::rename(&file, folder.path().join("old.rs")).unwrap();
        changed("another name");
        std::fs::remove_file(folder.path().join("old.rs")).unwrap();
        changed("a file that is gone");
    }

    #[test]
    fn a_save_is_over_when_all_of_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("norm.rs");
        let quiet = Duration::from_millis(500);
        let mut watch = Watch::of(folder.path().to_path_buf(), quiet);
        let mut file = std::fs::File::create(&path).unwrap();
        let saving = std::thread::spawn(move || {
            for step in ["one ", "two ", "three"] {
                std::thread::sleep(quiet / 10);
                file.write_all(step.as_bytes()).unwrap();
            }
        });
        watch.wait(&channel().1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one two three");
        saving.join().unwrap();
    }

    #[test]
    fn another_run_can_be_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (ask, asked) = channel();
        ask.send(()).unwrap();
        Watch::of(folder.path().to_path_buf(), QUIET).wait(&asked);
        assert!(asked.try_recv().is_err(), "one wish is one run");
    }
}
