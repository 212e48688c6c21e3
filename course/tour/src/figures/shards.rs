//! Figure 2: which rank owns which token.

use super::*;
use crate::steps::{TABLE_ROWS, WORLD_SIZE};
use notebook_support::parallel;

/// The title.
pub const QUESTION: &str = parallel::LOAD;

/// `ids` are the tokens of the text.
///
/// # Errors
/// A file that can't be written.
pub fn draw(out: &Path, ids: &[usize]) -> Result<()> {
    write(out, &parallel::load(ids, TABLE_ROWS, WORLD_SIZE)?)
}
