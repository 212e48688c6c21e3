//! Bugs of a position for each token.

use crate::component::bug;
use crate::graded_cases::BLOCK;
use crate::oracle::Oracle;
use crate::rope::interface::*;
use crate::rope::oracle::{RopeLoops, length_of_text};

/// takes position_ids but turns by the places in the row
///
/// The argument goes down to the attention, which ignores it and builds its tables for the row. A row that is one text
/// from its start is right.
#[bug(
    "rope/ids-ignored",
    named_by = "rope/each-token-its-position",
    source = "epfLLM/Megatron-LLM issue 23"
)]
impl RopeLoops for IdsIgnored {
    fn position(&self, _: &[usize], _: usize, [_, t]: [usize; 2]) -> usize {
        t
    }
}

/// turns every batch row by the position_ids of the first
///
/// One row of positions is computed for the whole batch, which is right for texts of one length. In a padded batch it
/// suits only the longest text, and the shorter ones come out as garbage.
#[bug(
    "rope/ids-of-the-first-row",
    named_by = "rope/each-token-its-position",
    source = "unsloth pull request 3795"
)]
impl RopeLoops for IdsOfTheFirstRow {
    fn position(&self, ids: &[usize], _: usize, [_, t]: [usize; 2]) -> usize {
        ids[t]
    }
}

/// reads only the first of a row's position_ids and counts on from it
///
/// The positions became an offset for each row, as with a cache. One text per row is right, but the second of two
/// packed ones continues where the first ended.
#[bug("rope/ids-counted-on", named_by = "rope/each-token-its-position")]
impl RopeLoops for IdsCountedOn {
    fn position(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
        ids[b * s] + t
    }
}

/// cuts its tables to the row's length and uses their last row for later positions
///
/// The tables are cut before they are indexed, and the gather clamps its indices. In training no id exceeds the row,
/// but in decoding each row is one token.
#[bug("rope/ids-up-to-the-row", named_by = "rope/each-token-its-position")]
impl RopeLoops for IdsUpToTheRow {
    fn position(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
        ids[b * s + t].min(s - 1)
    }
}

/// turns all texts of a batch by the frequencies of the longest
///
/// The length is max(position_ids) + 1 over the whole batch, so a short text's result changes as soon as a long one
/// joins it.
#[bug(
    "rope/longest-text-for-all",
    named_by = "rope/each-text-its-length",
    source = "transformers, src/transformers/modeling_rope_utils.py"
)]
impl RopeLoops for LongestTextForAll {
    fn length_of_text(&self, ids: &[usize], s: usize, _: [usize; 2]) -> usize {
        let places = (0..ids.len()).map(|token| [token / s, token % s]);
        places.map(|place| length_of_text(ids, s, place)).max().unwrap_or(0)
    }
}

/// counts padding and neighbours in a row towards its text's length
///
/// The length is that of the tensor, so a short text after much padding is treated as a long one.
#[bug("rope/padding-counts-as-length", named_by = "rope/each-text-its-length")]
impl RopeLoops for PaddingCountsAsLength {
    fn length_of_text(&self, ids: &[usize], s: usize, place: [usize; 2]) -> usize {
        length_of_text(ids, s, place).max(s)
    }
}

/// turns the gradient back by the places in the row instead of position_ids
///
/// It was written by hand for an offset, and only training on packed texts shows it.
#[bug("rope/gradient-ignores-ids", named_by = "rope/position-ids-turn-back")]
impl RopeLoops for GradientIgnoresIds {
    fn position_back(&self, _: &[usize], _: usize, [_, t]: [usize; 2]) -> usize {
        t
    }
}

/// takes any number of position_ids and starts over where they end
///
/// A row of positions is broadcast over the batch, but if you pad each text and forget the batch, nothing warns you.
#[bug("rope/one-row-of-ids-for-all", named_by = "rope/one-id-for-each-token")]
impl RopeLoops for OneRowOfIdsForAll {
    fn check_ids(&self, _: [usize; 4], _: &[usize]) -> Reply<()> {
        Ok(())
    }
    fn position(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
        ids[(b * s + t) % ids.len()]
    }
    fn length_of_text(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
        length_of_text(&ids.repeat(b + 1), s, [b, t])
    }
}

/// starts again at the tables' first row in each block of 128 tokens
///
/// Each thread counts its own tokens, and short calls are a single block.
#[bug("rope/block-starts-at-zero", named_by = "rope/rotate-f64-loops")]
impl RopeLoops for BlockStartsAtZero {
    fn table_row(&self, [_, t, _]: [usize; 3], _: &[usize; 4]) -> usize {
        t % BLOCK
    }
}

/// turns planes in lanes of four and leaves out those that fill no lane
///
/// Head sizes of real models are multiples of 8, which leave no remainder.
#[bug("rope/lane-tail-left", named_by = "rope/rotate-f64-loops")]
impl RopeLoops for LaneTailLeft {
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        let (d, mut out) = (case.shape[3], Oracle.rotate(case));
        let turned = if d / 2 < 4 { d / 2 } else { d / 8 * 4 };
        for head in 0..out.len() / d {
            for i in turned..d / 2 {
                for j in Oracle.pair(case.layout, i, d) {
                    out[head * d + j] = f64::from(case.x[head * d + j]);
                }
            }
        }
        out
    }
}
