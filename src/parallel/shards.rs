//! Which ids a rank owns.

use crate::checks::require;
use crate::error::{Error, Result};
use std::ops::Range;

/// `[r * n, (r + 1) * n)` with `n = v / w`: the ids that rank `r` owns.
///
/// # Errors
/// An empty vocabulary; a world size that does not divide its size; a rank that is not below it.
pub fn shard_range(vocab_size: usize, world_size: usize, rank: usize) -> Result<Range<usize>> {
    if world_size == 0 || vocab_size % world_size != 0 {
        return Err(Error::WorldSize { world_size, vocab_size });
    }
    require(vocab_size > 0, "vocab_size", "at least 1: a shard has rows", 0.0)?;
    check_rank(rank, world_size)?;
    let rows = vocab_size / world_size;
    Ok(rank * rows..(rank + 1) * rows)
}

/// The smallest multiple of `world_size` that is at least `vocab_size`.
///
/// `const`, so that it can be used in a type: `const V: usize = padded_vocab_size(100_277, 4);`
///
/// # Panics
/// If `world_size` is 0 or the result is larger than the largest `usize`; at compile time where it
/// is used in a type.
pub const fn padded_vocab_size(vocab_size: usize, world_size: usize) -> usize {
    match vocab_size.checked_next_multiple_of(world_size) {
        Some(padded) => padded,
        None => {
            panic!("world size is 0, or the padded vocabulary is larger than the largest usize")
        }
    }
}

pub(super) fn check_rank(rank: usize, world_size: usize) -> Result<()> {
    if rank < world_size { Ok(()) } else { Err(Error::Rank { rank, world_size }) }
}
