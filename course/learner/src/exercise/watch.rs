//! Waits until a learner saves a file.

use super::Workspace;
use crate::error::{Error, Result};
use notify_debouncer_mini::notify::{RecommendedWatcher, RecursiveMode};
use notify_debouncer_mini::{Debouncer, new_debouncer};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

/// What the system tells within this time wakes us once.
const BATCH: Duration = Duration::from_millis(10);

/// A save has several steps: a file is emptied first. They are over when nothing changes for this time.
const QUIET: Duration = Duration::from_millis(40);

/// Watches `exercises/src`.
///
/// The system only wakes us: it also tells of files that are read, and the compiler reads them at
/// each run. Whether something was saved, the times and sizes of the files say. They are noted
/// BEFORE a run, so a save during the run is seen after it.
pub struct Watch {
    folder: PathBuf,
    quiet: Duration,
    seen: Vec<Stamp>,
    wakes: Receiver<()>,
    _debouncer: Debouncer<RecommendedWatcher>,
}

/// Name, time and size of a file.
type Stamp = (PathBuf, Option<SystemTime>, u64);

impl Watch {
    /// Watches from now on.
    ///
    /// # Errors
    /// The system can't watch the folder.
    pub fn new(workspace: &Workspace) -> Result<Self> {
        Self::of(workspace.path("exercises/src"), QUIET)
    }

    fn of(folder: PathBuf, quiet: Duration) -> Result<Self> {
        let (wake, wakes) = channel();
        let failed = |error: notify_debouncer_mini::notify::Error| Error::Watch(error.to_string());
        let mut debouncer = new_debouncer(BATCH, move |_| {
            // If nobody waits any more, nobody need be woken.
            let _ = wake.send(());
        })
        .map_err(failed)?;
        debouncer.watcher().watch(&folder, RecursiveMode::Recursive).map_err(failed)?;
        Ok(Self { seen: stamps(&folder), folder, quiet, wakes, _debouncer: debouncer })
    }

    /// To be called before a run: what is saved from now on is a change.
    pub fn note(&mut self) {
        self.seen = stamps(&self.folder);
    }

    /// Waits for a change since [`Watch::note`], and until the save is over.
    ///
    /// # Errors
    /// The system stopped watching.
    pub fn wait(&mut self) -> Result<()> {
        while stamps(&self.folder) == self.seen {
            let gone = |_| Error::Watch("the watcher stopped".to_string());
            self.wakes.recv().map_err(gone)?;
        }
        loop {
            let before = stamps(&self.folder);
            std::thread::sleep(self.quiet);
            if stamps(&self.folder) == before {
                return Ok(());
            }
        }
    }
}

fn stamps(folder: &Path) -> Vec<Stamp> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut stamps: Vec<Stamp> = entries
        .map(|entry| entry.path())
        // Editors put their own files beside it.
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| {
            let about = path.metadata().ok()?;
            Some((path, about.modified().ok(), about.len()))
        })
        .collect();
    stamps.sort();
    stamps
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_save_is_a_change_and_a_look_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("norm.rs");
        std::fs::write(&file, "one").unwrap();
        let seen = stamps(folder.path());
        std::fs::read(&file).unwrap();
        std::fs::write(folder.path().join(".norm.rs.swp"), "").unwrap();
        assert_eq!(stamps(folder.path()), seen);
        std::fs::write(&file, "two and more").unwrap();
        assert_ne!(stamps(folder.path()), seen);
    }

    #[test]
    fn a_save_is_over_when_all_of_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("norm.rs");
        let quiet = Duration::from_millis(500);
        let mut watch = Watch::of(folder.path().to_path_buf(), quiet).unwrap();
        let mut file = std::fs::File::create(&path).unwrap();
        let saving = std::thread::spawn(move || {
            for step in ["one ", "two ", "three"] {
                std::thread::sleep(quiet / 10);
                file.write_all(step.as_bytes()).unwrap();
            }
        });
        watch.wait().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one two three");
        saving.join().unwrap();
    }
}
