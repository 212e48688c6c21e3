//! A trained model, as the commands that use it find it.

use crate::error::{Error, Result, shown};
use crate::run::{self, State};
use crate::sizes::Size;
use crate::tokens::Tokens;
use quadrivium::checkpoint::{Checkpoint, CheckpointConfig};
use std::path::{Path, PathBuf};

/// A model whose weights are still to be read.
#[derive(Debug)]
pub struct Opened {
    /// Its settings, and where its weights are.
    pub checkpoint: Checkpoint,
    /// Its tokenizer.
    pub tokens: Tokens,
    /// Its size: the one whose type may hold it.
    pub size: Size,
    /// How it was trained, if a run wrote it.
    pub state: Option<State>,
}

impl Opened {
    /// The model in a folder, which is one that [`folder_of`] knows.
    ///
    /// # Errors
    /// A folder without a model; files that are not those that its run wrote; settings or a tokenizer that can't be used.
    pub fn new(model: &Path) -> Result<Self> {
        let folder = folder_of(model)?;
        let state = run::written(&folder)?;
        let checkpoint = Checkpoint::open(&folder)?;
        let tokens = Tokens::load(&folder, checkpoint.config().vocab_size)?;
        let size = Size::of(&checkpoint);
        Ok(Self { checkpoint, tokens, size, state })
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
pub fn folder_of(model: &Path) -> Result<PathBuf> {
    if model.join("config.json").is_file() {
        return Ok(model.to_path_buf());
    }
    run::newest(model).ok_or_else(|| Error::NoModel { path: shown(model) })
}
