//! Bugs of a call to the module: its offset, and a text past the cache.

use crate::component::bug;
use crate::oracle::Oracle;
use crate::rope::interface::*;
use crate::rope::oracle::{Machine, RopeLoops};
use std::ops::Range;

/// ignores the offset
///
/// Every decoded token is treated as the first, although prefill and tests without a cache are right.
#[bug("rope/offset-ignored", named_by = "rope/offset", source = "mlx-vlm #1983")]
impl RopeLoops for OffsetIgnored {
    fn positions(&self, _: usize, s: usize) -> Range<usize> {
        0..s
    }
}

/// never reads the offset, neither for the positions nor for the length of a call
///
/// The argument exists but is unused, so a prompt is right and every later token gets position 0.
#[bug("rope/offset-unread", named_by = "rope/offset")]
impl RopeLoops for OffsetUnread {
    fn positions(&self, _: usize, s: usize) -> Range<usize> {
        0..s
    }
    fn end(&self, _: usize, s: usize) -> Reply<usize> {
        Ok(s)
    }
}

/// starts one position too late when there is an offset
///
/// One place reads the offset as the number of tokens so far, the other as the index of the last one.
#[bug("rope/offset-off-by-one", named_by = "rope/offset", source = "flash-linear-attention #766")]
impl RopeLoops for OffsetByOne {
    fn positions(&self, offset: usize, s: usize) -> Range<usize> {
        let start = if offset == 0 { 0 } else { offset.saturating_add(1) };
        start..start.saturating_add(s)
    }
}

/// starts one position too early when there is an offset
///
/// It uses offset − 1 because positions start at 0, but so does the offset.
#[bug("rope/offset-one-short", named_by = "rope/offset")]
impl RopeLoops for OffsetOneShort {
    fn positions(&self, offset: usize, s: usize) -> Range<usize> {
        let start = offset.saturating_sub(1);
        start..start + s
    }
}

/// adds the offset twice
///
/// The caller adds it once and the module adds it again.
#[bug("rope/offset-twice", named_by = "rope/offset")]
impl RopeLoops for OffsetTwice {
    fn positions(&self, offset: usize, s: usize) -> Range<usize> {
        let start = offset.saturating_mul(2);
        start..start.saturating_add(s)
    }
}

/// puts all rows of a call at its offset
///
/// It was written for decoding, with one row a call, so chunked prefill is wrong.
#[bug("rope/offset-for-all-rows", named_by = "rope/turns-by-position")]
impl RopeLoops for OffsetForAll {
    fn rows_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Tables> {
        let rows = Oracle.rows_of_call(machine, offset, s)?;
        let d = machine.settings.head_dim;
        let first = |table: &[f32]| table[..d.min(table.len())].repeat(s);
        Ok(Tables { cos: first(&rows.cos), sin: first(&rows.sin) })
    }
}

/// turns a row twice when it comes with an offset
///
/// Keys were turned when they were cached, and again when they were read.
#[bug("rope/rotated-twice", named_by = "rope/offset", source = "shainet #110")]
impl RopeLoops for RotatedTwice {
    fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
        let y = Oracle.call(machine, case)?;
        if case.offset == 0 {
            return Ok(y);
        }
        let x = y.iter().map(|&y| y as f32).collect();
        Oracle.call(machine, &RopeCase { x, ..case.clone() })
    }
}

/// checks whether s fits into the cache instead of offset + s
///
/// Each decoded token past the end is a single row, which always fits, so all get the last position.
#[bug("rope/length-without-offset", named_by = "rope/offset-counts-in-length")]
impl RopeLoops for LengthWithoutOffset {
    fn rows_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Tables> {
        if self.fits(s, &machine.state) {
            return Ok(self.cached_rows(machine, self.positions(offset, s)));
        }
        Oracle.rows_of_call(machine, offset, s)
    }
    fn after_call(&self, machine: &Machine, _: usize, s: usize) -> Reply<Option<RopeState>> {
        Oracle.after_call(machine, 0, s)
    }
}

/// computes k' from s instead of offset + s
///
/// The call is recognized as long, but its ratio is that of a shorter one.
#[bug("rope/ratio-without-offset", named_by = "rope/offset-counts-in-length")]
impl RopeLoops for RatioWithoutOffset {
    fn ratio_of_call(&self, machine: &Machine, _: usize, s: usize) -> Reply<usize> {
        self.ratio_for_length(s, machine.settings.max_seq_len)
    }
}

/// recomputes k' when the call ends exactly at the end of the cache
///
/// It has < where ≤ belongs, although position es − 1, the last one needed, is cached.
#[bug("rope/recomputed-at-end", named_by = "rope/exact-end-uses-cache")]
impl RopeLoops for RecomputedAtEnd {
    fn fits(&self, end: usize, state: &RopeState) -> bool {
        end < state.cached_len
    }
}

/// treats a call that is one row too long as a short one
///
/// The last position was compared with the number of rows, so the last row of the cache is used twice.
#[bug("rope/one-row-late", named_by = "rope/long-call-ratio")]
impl RopeLoops for OneRowLate {
    fn fits(&self, end: usize, state: &RopeState) -> bool {
        end <= state.cached_len + 1
    }
}

/// clamps positions past the cache to its last row
///
/// The clamp avoids the index error, but all late tokens share a position.
#[bug("rope/long-call-clipped", named_by = "rope/long-call-ratio")]
impl RopeLoops for LongCallClipped {
    fn fits(&self, _: usize, _: &RopeState) -> bool {
        true
    }
}

/// takes positions past the cache modulo its length
///
/// The cache is a ring buffer, so token es looks like token 0.
#[bug("rope/long-call-wraps", named_by = "rope/long-call-ratio")]
impl RopeLoops for LongCallWraps {
    fn rows_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Tables> {
        let mut rows = Tables { cos: Vec::new(), sin: Vec::new() };
        for t in 0..s {
            let m = (offset + t) % machine.state.cached_len;
            let row = self.cached_rows(machine, m..m + 1);
            rows.cos.extend(row.cos);
            rows.sin.extend(row.sin);
        }
        Ok(rows)
    }
    fn after_call(&self, _: &Machine, _: usize, _: usize) -> Reply<Option<RopeState>> {
        Ok(None)
    }
}

/// keeps the old frequencies in a long call
///
/// The cache grew but the base did not change: this is plain RoPE past its training length.
#[bug("rope/long-call-old-ratio", named_by = "rope/long-call-ratio")]
impl RopeLoops for OldRatio {
    fn long_rows(&self, machine: &Machine, _: usize, positions: Range<usize>) -> Tables {
        Oracle.long_rows(machine, machine.state.ratio, positions)
    }
}

/// refuses a call past the cache
///
/// The index error was turned into a message.
#[bug("rope/long-call-refused", named_by = "rope/long-call-ratio")]
impl RopeLoops for LongCallRefused {
    fn ratio_of_call(&self, _: &Machine, offset: usize, s: usize) -> Reply<usize> {
        Err(Refusal::new(format!("offset {offset} and {s} rows are more than the cache has")))
    }
}

/// multiplies k' by the ratio that the module already has
///
/// k' is measured from ms, but was read as how much more is needed, which is right with ratio 1.
#[bug("rope/long-call-ratio-on-top", named_by = "rope/long-call-ratio")]
impl RopeLoops for RatioOnTop {
    fn ratio_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<usize> {
        Ok(Oracle.ratio_of_call(machine, offset, s)?.saturating_mul(machine.settings.ratio))
    }
}

/// uses the new frequencies only past the cache, and the old ones before
///
/// The cached rows were kept and new ones appended for the call, so one sequence is turned by two sets of frequencies.
#[bug("rope/long-call-new-rows-only", named_by = "rope/long-call-ratio")]
impl RopeLoops for NewRowsOnly {
    fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
        let es = machine.state.cached_len;
        let cut = es.clamp(rows.start, rows.end);
        let mut joined = Oracle.cached_rows(machine, rows.start..cut);
        let new = Oracle.long_rows(machine, ratio, cut..rows.end);
        joined.cos.extend(new.cos);
        joined.sin.extend(new.sin);
        joined
    }
}

/// starts a long call at position 0, whatever its offset
///
/// The rows were computed from 0 to s, which is right in prefill.
#[bug("rope/long-call-restarts", named_by = "rope/offset-counts-in-length")]
impl RopeLoops for LongCallRestarts {
    fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
        Oracle.long_rows(machine, ratio, 0..rows.len())
    }
}
