//! Waits until a learner saves a file.

use super::Workspace;
use crate::error::{Error, Result};
use notify_debouncer_mini::notify::{RecommendedWatcher, RecursiveMode};
use notify_debouncer_mini::{Debouncer, new_debouncer};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

/// An editor writes in several steps. They are over after this time.
const STEPS: Duration = Duration::from_millis(40);

/// Watches `exercises/src`.
///
/// The system only wakes us: it also tells of files that are read, and the compiler reads them at
/// each run. Whether something was saved, the times and sizes of the files say. They are noted
/// BEFORE a run, so a save during the run is seen after it.
pub struct Watch {
    folder: PathBuf,
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
        let folder = workspace.path("exercises/src");
        let (wake, wakes) = channel();
        let failed = |error: notify_debouncer_mini::notify::Error| Error::Watch(error.to_string());
        let mut debouncer = new_debouncer(STEPS, move |_| {
            // If nobody waits any more, nobody need be woken.
            let _ = wake.send(());
        })
        .map_err(failed)?;
        debouncer.watcher().watch(&folder, RecursiveMode::Recursive).map_err(failed)?;
        Ok(Self { seen: stamps(&folder), folder, wakes, _debouncer: debouncer })
    }

    /// To be called before a run: what is saved from now on is a change.
    pub fn note(&mut self) {
        self.seen = stamps(&self.folder);
    }

    /// Waits for a change since [`Watch::note`]. Returns at once if there was one.
    ///
    /// # Errors
    /// The system stopped watching.
    pub fn wait(&mut self) -> Result<()> {
        while stamps(&self.folder) == self.seen {
            let gone = |_| Error::Watch("the watcher stopped".to_string());
            self.wakes.recv().map_err(gone)?;
        }
        Ok(())
    }
}

fn stamps(folder: &std::path::Path) -> Vec<Stamp> {
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
}
