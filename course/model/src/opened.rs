//! A trained model, as the commands that use it find it.

use crate::error::{Error, Result, shown};
use crate::run::{self, State};
use crate::tokens::Tokens;
use quadrivium::checkpoint::CheckpointConfig;
use quadrivium::inference::DecoderConfig;
use std::path::{Path, PathBuf};

/// A model whose weights are still to be read.
#[derive(Debug)]
pub struct Opened {
    /// Its folder.
    pub folder: PathBuf,
    /// Its settings.
    pub config: DecoderConfig,
    /// Its tokenizer.
    pub tokens: Tokens,
    /// How it was trained, if a run wrote it.
    pub state: Option<State>,
}

impl Opened {
    /// The model that is in this folder itself.
    fn new(folder: &Path) -> Result<Self> {
        let state = run::written(folder)?;
        let config = DecoderConfig::open(folder)?;
        let tokens = Tokens::load(folder, config.llama.vocab_size)?;
        Ok(Self { folder: folder.to_path_buf(), config, tokens, state })
    }

    /// The model in a folder or of a run, and what `weights` makes of it.
    ///
    /// # Errors
    /// No model there; files that are not those that its run wrote; settings or a tokenizer that can't be used; what
    /// `weights` reports.
    pub fn with<T>(model: &Path, weights: impl Fn(&Self) -> Result<T>) -> Result<(Self, T)> {
        whole(model, |folder| {
            let opened = Self::new(folder)?;
            let made = weights(&opened)?;
            Ok((opened, made))
        })
    }
}

/// Reads the model in a folder or of a run. A run that goes on may remove its checkpoint in the middle of that: then the one
/// that took its place is read.
///
/// # Errors
/// No model there; what `read` reports.
pub fn whole<T, E: From<Error>>(
    model: &Path,
    read: impl Fn(&Path) -> std::result::Result<T, E>,
) -> std::result::Result<T, E> {
    loop {
        let folder = folder_of(model)?;
        match read(&folder) {
            Err(_) if folder_of(model).is_ok_and(|now| now != folder) => {}
            read => return read,
        }
    }
}

/// Refuses a model with fewer positions than are asked about at once.
///
/// # Errors
/// It has fewer.
pub fn has_positions(config: &CheckpointConfig, needed: usize) -> Result<()> {
    let positions = config.max_position_embeddings;
    if positions < needed { Err(Error::Positions { positions, needed }) } else { Ok(()) }
}

/// The folder of a model: that of a run's newest checkpoint, or one in Hugging Face's layout.
///
/// # Errors
/// A folder without either.
fn folder_of(model: &Path) -> Result<PathBuf> {
    if model.join("config.json").is_file() {
        return Ok(model.to_path_buf());
    }
    run::newest(model).ok_or_else(|| Error::NoModel { path: shown(model) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs;

    #[test]
    fn a_checkpoint_that_was_replaced_meanwhile_is_read_again() -> std::io::Result<()> {
        let run = tempfile::tempdir()?;
        let (one, two) = (run.path().join("step-000001"), run.path().join("step-000002"));
        fs::create_dir(&one)?;
        let reads = Cell::new(0);
        let read = whole(run.path(), |folder| {
            reads.set(reads.get() + 1);
            if folder == one {
                fs::rename(&one, &two).map_err(|e| Error::write(&two, e))?;
                return Err(Error::Prompt);
            }
            Ok(folder.to_path_buf())
        });
        assert_eq!(read.ok(), Some(two));
        assert_eq!(reads.get(), 2);
        Ok(())
    }

    #[test]
    fn what_is_wrong_with_a_checkpoint_that_stays_is_told_at_once() -> std::io::Result<()> {
        let run = tempfile::tempdir()?;
        fs::create_dir(run.path().join("step-000001"))?;
        let reads = Cell::new(0);
        let read = whole(run.path(), |_| {
            reads.set(reads.get() + 1);
            Err::<(), _>(Error::Prompt)
        });
        assert!(matches!(read, Err(Error::Prompt)));
        assert_eq!(reads.get(), 1);
        Ok(())
    }
}
