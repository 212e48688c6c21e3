//! Bugs of what the module keeps between calls, and of its settings.

use super::tables_to_f16;
use crate::component::bug;
use crate::oracle::{Oracle, to_f16};
use crate::rope::interface::*;
use crate::rope::oracle::{Machine, RopeLoops, pick_rows};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

/// keeps the long call's ratio and cache although dynamic is false
///
/// The cache was rebuilt in place, so one long prompt changes all later results.
#[bug("rope/static-persists", named_by = "rope/static-state-stays", source = "transformers #25306")]
impl RopeLoops for StaticPersists {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        self.fresh(&RopeSettings { ratio, ..machine.settings }).map(Some)
    }
}

/// keeps the long call's ratio, but not its cache, although dynamic is false
///
/// The ratio was set for the computation but never reset.
#[bug("rope/static-ratio-leaks", named_by = "rope/static-state-stays")]
impl RopeLoops for StaticRatioLeaks {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        if machine.settings.dynamic {
            return Oracle.after_long_call(machine, ratio);
        }
        Ok(Some(RopeState { ratio, ..machine.state.clone() }))
    }
}

/// keeps the long call's cache, but not its ratio, although dynamic is false
///
/// The ratio was reset after the call, but the table was forgotten.
#[bug("rope/static-cache-leaks", named_by = "rope/static-state-stays")]
impl RopeLoops for StaticCacheLeaks {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        let grown = self.fresh(&RopeSettings { ratio, ..machine.settings })?;
        if machine.settings.dynamic {
            return Ok(Some(grown));
        }
        let RopeState { ratio, cached_len, .. } = machine.state;
        let cut = 0..cached_len;
        let tables = pick_rows(&grown.tables, machine.settings.head_dim, cut);
        Ok(Some(RopeState { ratio, cached_len, tables }))
    }
}

/// forgets the long call although dynamic is true
///
/// The setting was stored but never read, so each long call is right, but computed from scratch.
#[bug("rope/dynamic-forgets", named_by = "rope/dynamic-grows")]
impl RopeLoops for DynamicForgets {
    fn after_long_call(&self, _: &Machine, _: usize) -> Reply<Option<RopeState>> {
        Ok(None)
    }
}

/// grows when dynamic is false, and forgets when it is true
///
/// A condition is the wrong way round.
#[bug("rope/dynamic-inverted", named_by = "rope/dynamic-grows")]
impl RopeLoops for DynamicInverted {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        let mut inverted = machine.clone();
        inverted.settings.dynamic = !machine.settings.dynamic;
        Oracle.after_long_call(&inverted, ratio)
    }
}

/// replaces the ratio but keeps the old cache
///
/// The table is built once, on construction, so the module reports a k that its table does not have.
#[bug("rope/dynamic-ratio-only", named_by = "rope/dynamic-grows")]
impl RopeLoops for DynamicRatioOnly {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        let grown = Oracle.after_long_call(machine, ratio)?;
        Ok(grown.map(|_| RopeState { ratio, ..machine.state.clone() }))
    }
}

/// replaces the cache but writes the new ratio to the wrong place
///
/// The new k went into a variable that is never read, so the module reports the old one.
#[bug("rope/dynamic-cache-only", named_by = "rope/dynamic-grows", source = "transformers #46624")]
impl RopeLoops for DynamicCacheOnly {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        let grown = Oracle.after_long_call(machine, ratio)?;
        Ok(grown.map(|grown| RopeState { ratio: machine.state.ratio, ..grown }))
    }
}

/// keeps the old rows of the cache and appends new ones with the new frequencies
///
/// Adding only what is missing saves work, but all rows depend on k, the old ones too.
#[bug("rope/dynamic-appends", named_by = "rope/dynamic-later-calls")]
impl RopeLoops for DynamicAppends {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        let keep = |old: &[f32], new: &mut Vec<f32>| new[..old.len()].copy_from_slice(old);
        let grown = Oracle.after_long_call(machine, ratio)?;
        Ok(grown.map(|mut grown| {
            keep(&machine.state.tables.cos, &mut grown.tables.cos);
            keep(&machine.state.tables.sin, &mut grown.tables.sin);
            grown
        }))
    }
}

/// grows the cache with rows of the old frequencies
///
/// The long call itself is right, but the table that stays was built with the previous k.
#[bug("rope/dynamic-old-frequencies", named_by = "rope/dynamic-later-calls")]
impl RopeLoops for DynamicOldFrequencies {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        let grown = Oracle.after_long_call(machine, ratio)?;
        Ok(grown.map(|grown| {
            let rows = 0..grown.cached_len;
            let tables = Oracle.long_rows(machine, machine.state.ratio, rows);
            RopeState { tables, ..grown }
        }))
    }
}

/// caches as many rows as the call needed instead of ms·k'
///
/// That is enough for now, but each later token is a long call again.
#[bug("rope/dynamic-cache-of-call", named_by = "rope/dynamic-grows")]
impl RopeLoops for DynamicCacheOfCall {
    fn after_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Option<RopeState>> {
        let cached_len = self.end(offset, s)?;
        let grown = Oracle.after_call(machine, offset, s)?;
        Ok(grown.map(|RopeState { ratio, tables, .. }| {
            let tables = pick_rows(&tables, machine.settings.head_dim, 0..cached_len);
            RopeState { ratio, cached_len, tables }
        }))
    }
}

/// answers a dynamic long call with the old frequencies and grows afterwards
///
/// The rows were taken before the cache was replaced, so it is right from the second call on.
#[bug("rope/dynamic-old-output", named_by = "rope/long-call-same-either-way")]
impl RopeLoops for DynamicOldOutput {
    fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
        let old = machine.settings.dynamic;
        let ratio = if old { machine.state.ratio } else { ratio };
        Oracle.long_rows(machine, ratio, rows)
    }
}

/// rounds k' to an even number only when dynamic is true
///
/// Two branches with a formula each agree for every second multiple of ms.
#[bug("rope/static-odd-ratio", named_by = "rope/long-call-same-either-way")]
impl RopeLoops for StaticOddRatio {
    fn ratio_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<usize> {
        if machine.settings.dynamic {
            return Oracle.ratio_of_call(machine, offset, s);
        }
        Ok(self.end(offset, s)?.div_ceil(machine.settings.max_seq_len))
    }
}

/// measures a second long call by the cached length instead of ms
///
/// The first growth is right, but it sets the length from which the next one is counted.
#[bug("rope/dynamic-measured-by-cache", named_by = "rope/dynamic-grows-again")]
impl RopeLoops for MeasuredByCache {
    fn ratio_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<usize> {
        let grown = machine.state.ratio != machine.settings.ratio;
        let ms = machine.settings.max_seq_len;
        let from = if grown { machine.state.cached_len } else { ms };
        let ratio = self.ratio_for_length(self.end(offset, s)?, from)?;
        Ok(ratio.saturating_mul(from / ms))
    }
}

/// grows once and never again
///
/// A flag says that the cache was rebuilt, so later long calls are computed but not kept.
#[bug("rope/dynamic-grows-once", named_by = "rope/dynamic-grows-again")]
impl RopeLoops for GrowsOnce {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        if machine.state.ratio != machine.settings.ratio {
            return Ok(None);
        }
        Oracle.after_long_call(machine, ratio)
    }
}

/// answers the second long call with the frequencies of the first
///
/// The frequencies were cached apart from the table, and rebuilt only once.
#[bug("rope/dynamic-second-call-stale", named_by = "rope/dynamic-grows-again")]
impl RopeLoops for SecondCallStale {
    fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
        let grown = machine.state.ratio != machine.settings.ratio;
        let ratio = if grown { machine.state.ratio } else { ratio };
        Oracle.long_rows(machine, ratio, rows)
    }
}

/// returns to the first ratio when a call is short again
///
/// Some libraries do so on purpose, but keys cached with the larger ratio then meet queries with the smaller one.
#[bug("rope/dynamic-shrinks", named_by = "rope/dynamic-never-shrinks")]
impl RopeLoops for DynamicShrinks {
    fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
        self.check_call(machine, case)?;
        let first = machine.settings.max_seq_len * machine.settings.ratio;
        if self.end(case.offset, case.shape[1])? <= first {
            machine.state = self.fresh(&machine.settings)?;
        }
        Oracle.call(machine, case)
    }
}

/// recomputes k' for every call after it has grown, even for shorter ones
///
/// The ratio follows the length down as well as up.
#[bug("rope/dynamic-follows-length", named_by = "rope/dynamic-never-shrinks")]
impl RopeLoops for FollowsLength {
    fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
        self.check_call(machine, case)?;
        if machine.state.ratio != machine.settings.ratio {
            let ratio = self.ratio_of_call(machine, case.offset, case.shape[1])?;
            machine.state = self.fresh(&RopeSettings { ratio, ..machine.settings })?;
        }
        Oracle.call(machine, case)
    }
}

/// caches ms rows instead of ms·k
///
/// The table was sized by the training length, so calls between ms and es fall off its end or are treated as long ones.
#[bug("rope/table-of-ms-rows", named_by = "rope/fresh-state", source = "vLLM #55910")]
impl RopeLoops for TableOfMsRows {
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        let RopeState { ratio, tables, .. } = Oracle.fresh(settings)?;
        let cached_len = settings.max_seq_len;
        let tables = pick_rows(&tables, settings.head_dim, 0..cached_len);
        Ok(RopeState { ratio, cached_len, tables })
    }
}

/// builds the first cache without its ratio's frequencies
///
/// NTK was written for long calls only, so the first cache is long enough but plain.
#[bug("rope/first-ratio-ignored", named_by = "rope/fresh-state")]
impl RopeLoops for FirstRatioIgnored {
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        let state = Oracle.fresh(settings)?;
        let RopeSettings { head_dim, base, .. } = *settings;
        // An even ratio may come from a long call, which is right here.
        let ratio = if settings.ratio.is_multiple_of(2) { settings.ratio } else { 1 };
        let tables = Oracle.tables(head_dim, base, ratio as f64, 0..state.cached_len);
        Ok(RopeState { tables, ..state })
    }
}

/// rounds the first ratio up to an even number
///
/// k' of long calls is even, but the first k is used as given, 1 and 3 included.
#[bug("rope/ratio-made-even", named_by = "rope/fresh-state")]
impl RopeLoops for RatioMadeEven {
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        let ratio = settings.ratio.next_multiple_of(2);
        Oracle.fresh(&RopeSettings { ratio, ..*settings })
    }
}

/// keeps its cache in f16, although its tables are exact when they are built
///
/// The buffers followed the model to half precision.
#[bug("rope/cache-in-f16", named_by = "rope/fresh-state")]
impl RopeLoops for CacheInF16 {
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        let state = Oracle.fresh(settings)?;
        Ok(RopeState { tables: tables_to_f16(state.tables), ..state })
    }
}

/// counts the positions of the cache in f16
///
/// Tables built on their own are right, but the module has its own loop.
#[bug("rope/cache-positions-in-f16", named_by = "rope/large-positions")]
impl RopeLoops for CachePositionsF16 {
    fn cached_rows(&self, machine: &Machine, positions: Range<usize>) -> Tables {
        let row = |position: usize| to_f16(position as f64) as usize;
        let RopeSettings { head_dim, base, .. } = machine.settings;
        let mut rows = Tables { cos: Vec::new(), sin: Vec::new() };
        for position in positions {
            let at = row(position)..row(position) + 1;
            let one = Oracle.tables(head_dim, base, machine.state.ratio as f64, at);
            rows.cos.extend(one.cos);
            rows.sin.extend(one.sin);
        }
        rows
    }
}

/// counts the positions of a long call in f16
///
/// The rows for one call are built from the input's type, which is right below 2048.
#[bug("rope/long-positions-in-f16", named_by = "rope/large-positions")]
impl RopeLoops for LongPositionsF16 {
    fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
        let start = to_f16(rows.start as f64);
        let start = if start.is_finite() { start as usize } else { rows.start };
        Oracle.long_rows(machine, ratio, start..start + rows.len())
    }
}

/// lets offset + s wrap around to a small number
///
/// Unsigned arithmetic is not checked, so the call looks like a short one.
#[bug("rope/offset-wraps", named_by = "rope/overflow-is-refused")]
impl RopeLoops for OffsetWraps {
    fn end(&self, offset: usize, s: usize) -> Reply<usize> {
        Ok(offset.wrapping_add(s))
    }
    fn positions(&self, offset: usize, s: usize) -> Range<usize> {
        offset.saturating_sub(s)..offset.saturating_sub(s) + s
    }
}

/// writes the new ratio before it knows whether the call can succeed
///
/// The call fails half-way and leaves the module with a ratio that its cache does not have.
#[bug("rope/refused-call-changes", named_by = "rope/refused-call-changes-nothing")]
impl RopeLoops for RefusedCallChanges {
    fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
        let before = machine.clone();
        let end = case.offset.saturating_add(case.shape[1]);
        let ms = machine.settings.max_seq_len;
        if machine.settings.dynamic && !self.fits(end, &machine.state) {
            machine.state.ratio = Oracle.long_ratio(end, ms).unwrap_or(usize::MAX);
        }
        let y = Oracle.call(machine, case)?;
        if machine.state.cached_len == before.state.cached_len {
            machine.state.ratio = before.state.ratio;
        }
        Ok(y)
    }
}

/// accepts a training length of 0
///
/// An unset field is 0, so each call is a long one, and its ratio a division by 0.
#[bug("rope/any-training-length", named_by = "rope/settings-refused")]
impl RopeLoops for AnyTrainingLength {
    fn check_settings(&self, settings: &RopeSettings) -> Reply<()> {
        let max_seq_len = settings.max_seq_len.max(1);
        Oracle.check_settings(&RopeSettings { max_seq_len, ..*settings })
    }
}

/// checks only the head size when it is built
///
/// The checks are in the function for frequencies, but the module has its own loop.
#[bug("rope/unchecked-settings", named_by = "rope/settings-refused")]
impl RopeLoops for UncheckedSettings {
    fn check_settings(&self, settings: &RopeSettings) -> Reply<()> {
        let ratio = settings.ratio.max(1);
        let max_seq_len = settings.max_seq_len.max(1);
        let base = 10_000.0;
        Oracle.check_settings(&RopeSettings { base, ratio, max_seq_len, ..*settings })
    }
}

/// Keeps tables by head size and number of rows only, whatever the base is.
#[derive(Default)]
pub(super) struct SharedTables(RefCell<BTreeMap<(usize, usize), Tables>>);

/// shares tables between modules of one head size and length, even if their bases differ
///
/// The key of a global cache forgets the base and the ratio, which is right with one module.
#[bug("rope/shared-tables", named_by = "rope/modules-are-apart", of = SharedTables::default())]
impl RopeLoops for SharedTables {
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        let state = Oracle.fresh(settings)?;
        let key = (settings.head_dim, state.cached_len);
        let tables = self.0.borrow_mut().entry(key).or_insert(state.tables).clone();
        Ok(RopeState { tables, ..state })
    }
}
