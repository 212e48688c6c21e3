//! All files, or none.

use super::templates::Files;
use crate::error::{Error, Result};
use learner::save;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes new files, and new texts for files that are there.
///
/// # Errors
/// A new file is there already; something can't be written. Then nothing has changed, or the error says what.
pub fn all(root: &Path, new: &Files, changed: &Files) -> Result<()> {
    if let Some(file) = new.keys().find(|file| root.join(file).exists()) {
        return Err(Error::Component {
            rule: "a new component overwrites nothing".to_string(),
            expected: format!("no file {file}"),
            got: "it is there".to_string(),
            to_do: "choose another slug, or move the file away".to_string(),
        });
    }
    for file in changed.keys() {
        save::check(&root.join(file)).map_err(|error| refuse(file, &error))?;
    }
    let mut done = Done { root, new: Vec::new(), folders: Vec::new(), old: Vec::new() };
    let written = done.write(new, changed);
    written.map_err(|error| done.take_back(error))
}

fn refuse(file: &str, error: &std::io::Error) -> Error {
    Error::File { file: file.to_string(), reason: error.to_string() }
}

/// What was written so far.
struct Done<'a> {
    root: &'a Path,
    new: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// Files that were changed, with what they held.
    old: Vec<(PathBuf, String)>,
}

impl Done<'_> {
    fn write(&mut self, new: &Files, changed: &Files) -> Result<()> {
        for (file, text) in new {
            self.add(file, text).map_err(|error| refuse(file, &error))?;
        }
        for (file, text) in changed {
            let path = self.root.join(file);
            let old = std::fs::read_to_string(&path).map_err(|error| refuse(file, &error))?;
            save::write(&path, text).map_err(|error| refuse(file, &error))?;
            self.old.push((path, old));
        }
        Ok(())
    }

    fn add(&mut self, file: &str, text: &str) -> std::io::Result<()> {
        let path = self.root.join(file);
        let mut missing: Vec<&Path> =
            path.ancestors().skip(1).take_while(|folder| !folder.exists()).collect();
        missing.reverse();
        for folder in missing {
            std::fs::create_dir(folder)?;
            self.folders.push(folder.to_path_buf());
        }
        let mut created = OpenOptions::new().write(true).create_new(true).open(&path)?;
        self.new.push(path);
        created.write_all(text.as_bytes())
    }

    /// Removes what is new and puts back what was changed. Gives the error that an author sees.
    fn take_back(self, error: Error) -> Error {
        let mut left = Vec::new();
        let mut note = |path: &Path, undone: std::io::Result<()>| {
            if undone.is_err() {
                left.push(path.display().to_string());
            }
        };
        self.old.iter().for_each(|(path, old)| note(path, save::write(path, old)));
        self.new.iter().for_each(|path| note(path, std::fs::remove_file(path)));
        self.folders.iter().rev().for_each(|path| note(path, std::fs::remove_dir(path)));
        match left.is_empty() {
            true => error,
            false => Error::HalfWritten { reason: error.to_string(), left: left.join(", ") },
        }
    }
}
