//! How evenly the tokens of a text fall on the ranks that own their rows.

use super::ownership::Ownership;
use crate::error::Result;

/// The tokens of a text, by the ranks that own their rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenLoad(Vec<u64>);

impl TokenLoad {
    /// Tokens of each rank. More than the largest `u64` are counted as that.
    pub fn tokens(&self) -> &[u64] {
        &self.0
    }

    /// The tokens of all ranks.
    pub fn total(&self) -> u128 {
        self.0.iter().map(|&tokens| u128::from(tokens)).sum()
    }

    /// The part of all tokens that a rank owns, from 0 to 1. `None` if there are no tokens, or no such rank.
    pub fn share(&self, rank: usize) -> Option<f64> {
        let tokens = *self.0.get(rank)?;
        (self.total() > 0).then(|| tokens as f64 / self.total() as f64)
    }

    /// The most tokens of a rank, divided by the mean. 1 is even, `w` is all on one rank. `None` if there are no
    /// tokens.
    pub fn max_over_mean(&self) -> Option<f64> {
        let most = self.0.iter().copied().max().unwrap_or(0);
        (most > 0).then(|| most as f64 * self.0.len() as f64 / self.total() as f64)
    }
}

impl Ownership {
    /// How many tokens of a text each rank owns. `counts[id]` says how often an id occurs in the text. Ids past
    /// the end of `counts` do not occur in it, as padding does not.
    ///
    /// ```
    /// use quadrivium::parallel::{Ownership, Sharing};
    ///
    /// let counts = [6, 3, 2, 1];
    /// let blocks = Ownership::new(Sharing::Contiguous, 4, 2)?.load(&counts)?;
    /// let turns = Ownership::new(Sharing::Striped, 4, 2)?.load(&counts)?;
    /// assert_eq!((blocks.tokens(), turns.tokens()), (&[9, 3][..], &[8, 4][..]));
    /// assert_eq!(blocks.max_over_mean(), Some(1.5));
    /// # Ok::<(), quadrivium::Error>(())
    /// ```
    ///
    /// # Errors
    /// More counts than there are ids.
    pub fn load(&self, counts: &[u64]) -> Result<TokenLoad> {
        let mut tokens = vec![0u64; self.world_size()];
        for (id, count) in counts.iter().enumerate() {
            let owner = &mut tokens[self.owner(id)?];
            *owner = owner.saturating_add(*count);
        }
        Ok(TokenLoad(tokens))
    }
}
