//! The place of the learner's code, which the program `mine` fills. The others compute with the library.

use crate::error::{Error, Result};
use crate::network::Network;
use crate::sizes::Size;
use crate::writer::Writer;
use quadrivium::checkpoint::{Checkpoint, CheckpointConfig};

/// What the learner's code makes.
#[derive(Debug, Clone, Copy)]
pub struct Mine {
    /// A model of a size, from a seed, that computes with the learner's code, and the library's beside it.
    pub network: fn(Size, &CheckpointConfig, u64) -> Result<Box<dyn Network>>,
    /// A trained model that writes with the learner's code.
    pub writer: fn(Size, &Checkpoint) -> Result<Box<dyn Writer>>,
}

/// The learner's code, if it is asked for.
///
/// # Errors
/// It is, and this program has none.
pub fn asked(is_asked: bool, mine: Option<&Mine>) -> Result<Option<&Mine>> {
    match (is_asked, mine) {
        (false, _) => Ok(None),
        (true, None) => Err(Error::WithoutMine),
        (true, mine) => Ok(mine),
    }
}
