//! A table that has the rows that were asked for, and no more.

use super::tables::RotaryTables;
use crate::error::Result;
use crate::positions::Places;
use crate::tensor::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Up to so many rows are built whenever a call ends there: in heads of 128, they take 4 MiB.
const NEAR: usize = 4096;

/// The table of the first positions, as many as calls have needed. Clones share it.
///
/// A row depends on its position alone, so it has the same bits in every call that builds it.
#[derive(Debug, Clone)]
pub(crate) struct GrowingTable<H: Dim, D: Storage<f32>>(Arc<Mutex<Option<RotaryTables<H, D>>>>);

impl<H: Dim, D: Storage<f32>> Default for GrowingTable<H, D> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<H: Dim, D: Device<f32>> GrowingTable<H, D> {
    /// Turns `x`, `[b, s, nh, hd]`, whose tokens are at `places`, all below `limit`.
    ///
    /// A call that goes on where others ended lets the table grow, to twice its size at least, so that a text that grows token
    /// by token seldom builds rows. A call farther away builds its own rows and does not keep them: a table up to there
    /// could be a million times as long as the call.
    ///
    /// # Errors
    /// As for [`RotaryTables::rotate`]; what `build` refuses.
    pub(crate) fn rotate<B: Dim, S: Dim, N: Dim, F: Float, T: Tape<F, D>>(
        &self,
        x: Tensor<(B, S, N, H), F, D, T>,
        places: &Places,
        limit: usize,
        build: impl Fn(&Places) -> Result<RotaryTables<H, D>>,
    ) -> Result<Tensor<(B, S, N, H), F, D, T>>
    where
        D: Backend<F>,
    {
        let kept = self.kept();
        let rows = kept.as_ref().map_or(0, rows_of);
        match kept {
            Some(table) if places.end() <= rows => table.rotate_from(x, places),
            _ if places.end() <= NEAR.max(rows.saturating_add(places.rows())) => {
                self.first(places.end(), limit, build)?.rotate_from(x, places)
            }
            _ => build(places)?.rotate_each(x),
        }
    }

    /// A table of at least the first `end` positions, and at most `limit`.
    ///
    /// # Errors
    /// What `build` refuses.
    pub(crate) fn first(
        &self,
        end: usize,
        limit: usize,
        build: impl Fn(&Places) -> Result<RotaryTables<H, D>>,
    ) -> Result<RotaryTables<H, D>> {
        let kept = self.kept();
        let rows = kept.as_ref().map_or(0, rows_of);
        if let Some(table) = kept.filter(|_| rows >= end) {
            return Ok(table);
        }
        // No lock is held meanwhile: two calls may build the same rows, and then the longer table stays.
        let table = build(&Places::Row(0..end.max(2 * rows).min(limit)))?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|kept| rows_of(kept) < rows_of(&table)) {
            *kept = Some(table.clone());
        }
        Ok(table)
    }

    fn kept(&self) -> Option<RotaryTables<H, D>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone() // shares the rows
    }
}

fn rows_of<H: Dim, D: Storage<f32>>(table: &RotaryTables<H, D>) -> usize {
    table.cos.shape().0
}
