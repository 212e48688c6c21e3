//! The caches of all blocks of a model.

use crate::attention::{Before, KvCache, check_padding};
use crate::error::Result;
use crate::tensor::*;

/// The keys and values of every block, and where the texts of a batch begin.
#[derive(Debug, Clone)]
pub struct LlamaCache<const NKV: usize, const HD: usize, const L: usize, F: Dtype, D: Storage<F>> {
    pub(super) layers: Vec<KvCache<NKV, HD, F, D>>,
    pub(super) padding: Vec<usize>,
}

impl<const NKV: usize, const HD: usize, const L: usize, F: Dtype, D: Storage<F>>
    LlamaCache<NKV, HD, L, F, D>
{
    /// An empty cache for at most `capacity` positions.
    pub fn new(capacity: usize) -> Self {
        const { assert!(L > 0, "a model has at least one block") }
        Self { layers: vec![KvCache::new(capacity); L], padding: Vec::new() }
    }

    /// The same for texts of different lengths, filled up at their starts: `padding` has, for each row of the batch,
    /// the number of tokens at its start that are no text. These are never looked at, and positions are counted after
    /// them.
    ///
    /// # Errors
    /// Padding of a whole cache.
    pub fn with_padding(capacity: usize, padding: Vec<usize>) -> Result<Self> {
        check_padding(&padding, padding.len(), capacity)?;
        Ok(Self { padding, ..Self::new(capacity) })
    }

    /// The tokens of a row that are kept, padding included: in a row without any, the position of the next token.
    pub fn positions(&self) -> usize {
        self.layers.first().map_or(0, KvCache::positions)
    }

    /// The most positions.
    pub fn capacity(&self) -> usize {
        self.layers.first().map_or(0, KvCache::capacity)
    }

    /// Tokens at the start of each row that are no text; empty if no row has any.
    pub fn padding(&self) -> &[usize] {
        &self.padding
    }

    /// What to go back to if a call fails.
    pub(super) fn before(&self) -> Vec<Before<NKV, HD, F, D>> {
        self.layers.iter().map(KvCache::before).collect()
    }

    /// Goes back to what was before a call.
    pub(super) fn back_to(&mut self, before: Vec<Before<NKV, HD, F, D>>) {
        for (layer, before) in self.layers.iter_mut().zip(before) {
            layer.back_to(before);
        }
    }
}

impl<const NKV: usize, const HD: usize, const L: usize, F: Float, D: Backend<F>>
    LlamaCache<NKV, HD, L, F, D>
{
    /// Forgets all positions from `positions` on, so that another text may follow there. The padding stays: it belongs to
    /// the rows.
    ///
    /// # Errors
    /// More positions than there are; what the device reports. Then the cache is as it was.
    pub fn truncate(&mut self, positions: usize) -> Result<()> {
        let before = self.before();
        let cut = self.layers.iter_mut().try_for_each(|layer| layer.truncate(positions));
        cut.inspect_err(|_| self.back_to(before))
    }
}
