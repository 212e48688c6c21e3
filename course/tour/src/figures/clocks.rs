//! Figure 3: the planes of RoPE as clocks.

use super::*;
use crate::steps::HEAD_DIM;
use crate::steps::rope::BASE;

/// The title.
pub const QUESTION: &str = notebook_support::rope::figures::CLOCKS;

/// Positions that are shown.
const POSITIONS: usize = 256;

/// The angle of five planes of a head of 64, at positions 0 to 256, without NTK.
///
/// # Errors
/// A file that can't be written.
pub fn draw(out: &Path) -> Result<()> {
    write(out, &notebook_support::rope::clocks(HEAD_DIM, BASE, 1.0, POSITIONS)?)
}
