//! The planes as clocks, at two places of a text.

use super::*;
use std::path::Path;

/// A query and a key of one head of 8, half-split.
const Q: [f32; 8] = [1.0, 0.9, -0.5, 0.8, 0.3, -0.6, 0.9, 0.4];
const K: [f32; 8] = [0.8, -0.4, 0.7, 0.9, -0.6, 0.9, 0.5, -0.2];

/// Four clocks, twice: the pair moves on together.
///
/// # Errors
/// A file that can't be written.
pub fn clocks(out: &Path) -> Result<()> {
    let question = "Both hands move on by 12. What stays?";
    write(
        out,
        &notebook_support::rope::hands(question, (&Q, &K), (BASE, 1.0), &[(7, 3), (19, 15)])?,
    )
}
