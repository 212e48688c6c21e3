//! What code made for speed gets wrong, for the museum. No thread runs here: what a race does at times is done
//! always, so that a test can count on it.

use crate::graded_cases::BLOCK;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The rows in full blocks, once there are more than one block's.
pub fn in_full_blocks(rows: usize) -> usize {
    if rows > BLOCK { rows / BLOCK * BLOCK } else { rows }
}

/// The rows that are added: where the last block is not full, it begins early, and some rows come again.
pub fn last_block_begins_early(rows: usize) -> impl Iterator<Item = usize> {
    let again = if rows > BLOCK { rows - BLOCK..in_full_blocks(rows) } else { 0..0 };
    (0..rows).chain(again)
}

/// What thread `t` of two sees when both keep a number in one place: of two rows that are at work at once, now and
/// then one has the other's.
pub fn row_at_the_same_time(row: usize, rows: usize) -> usize {
    let second_half = row.checked_sub(rows.div_ceil(2));
    second_half.filter(|other| rows > BLOCK && other % 16 == 5).unwrap_or(row)
}

/// Sums in f32 that threads share: each sums its part, and the parts are added. How many threads there are
/// changes from call to call.
#[derive(Debug, Default)]
pub struct SharedSum {
    calls: AtomicUsize,
}

impl SharedSum {
    /// The threads of this call.
    pub fn threads(&self) -> usize {
        self.calls.fetch_add(1, Ordering::Relaxed) % 3 + 1
    }

    /// The sum of some terms.
    pub fn sum(threads: usize, terms: &[f64]) -> f64 {
        let part =
            |part: &[f64]| part.iter().fold(0.0f32, |sum, term| (f64::from(sum) + term) as f32);
        let parts = terms.chunks(terms.len().div_ceil(threads).max(1)).map(part);
        f64::from(parts.fold(0.0, |sum, part| sum + part))
    }
}
