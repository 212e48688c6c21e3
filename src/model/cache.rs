//! The caches of all blocks of a model.

use crate::attention::{KvCache, check_padding};
use crate::error::Result;
use crate::tensor::*;

/// The keys and values of every block, and where the texts of a batch begin.
#[derive(Debug, Clone)]
pub struct LlamaCache<const NKV: usize, const HD: usize, const L: usize, F: Dtype, D: Storage<F>> {
    pub(super) layers: Vec<KvCache<NKV, HD, F, D>>,
    padding: Vec<usize>,
}

impl<const NKV: usize, const HD: usize, const L: usize, F: Dtype, D: Storage<F>>
    LlamaCache<NKV, HD, L, F, D>
{
    /// An empty cache for at most `capacity` positions.
    pub fn new(capacity: usize) -> Self {
        Self { layers: vec![KvCache::new(capacity); L], padding: Vec::new() }
    }

    /// The same for texts of different lengths, filled up at their starts: `padding` has, for each row of the batch,
    /// the number of tokens at its start that are no text. Nobody looks at these.
    ///
    /// # Errors
    /// Padding of a whole cache.
    pub fn with_padding(capacity: usize, padding: Vec<usize>) -> Result<Self> {
        check_padding(&padding, padding.len(), capacity)?;
        Ok(Self { padding, ..Self::new(capacity) })
    }

    /// The position of the next token.
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
}
