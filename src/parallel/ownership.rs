//! Who owns which row of a vocabulary: three ways to share it among ranks.
//!
//! Each gives an id a position in `0..v`, no two ids the same, and cuts the positions in their order: with
//! `n = v / w`, rank `r` owns the positions `[r n, (r + 1) n)`. Each shard then has the same number of rows, and the
//! shards one below the other are the table in another order.

use super::shards::{check_rank, shard_range};
use super::shuffle::Shuffle;
use crate::checks::{MAX_ELEMENTS, check_size, same_shape};
use crate::error::{Error, Result};
use std::fmt;

/// How the rows of a vocabulary are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sharing {
    /// In blocks: rank `r` owns the ids `[r n, (r + 1) n)`, as
    /// [`ParallelVocabEmbedding`](super::ParallelVocabEmbedding) does. Source: Shoeybi et al. 2019,
    /// Megatron-LM.
    Contiguous,
    /// In turn: rank `id mod w` owns an id, in row `id / w`. If ids are numbered by falling frequency, no rank
    /// owns more tokens than another by more than the most frequent id has.
    Striped,
    /// In blocks after a [`Shuffle`] of the ids, which does not depend on their order. It makes no promise about
    /// the tokens of a single text and seed; over the seeds, each rank owns an id equally often.
    Hashed {
        /// Another seed gives another order. It belongs to a checkpoint as the world size does.
        seed: u64,
    },
}

/// `contiguous`, `striped`, `hashed(42)`: what an index of shards may keep.
impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contiguous => f.write_str("contiguous"),
            Self::Striped => f.write_str("striped"),
            Self::Hashed { seed } => write!(f, "hashed({seed})"),
        }
    }
}

/// Which rank owns which row of a vocabulary of `v` ids, in a world of `w` ranks.
///
/// ```
/// use quadrivium::parallel::{Ownership, Sharing};
///
/// let striped = Ownership::new(Sharing::Striped, 12, 3)?;
/// assert_eq!((striped.owner(7)?, striped.local_row(7)?), (1, 2)); // 7 = 2 * 3 + 1
/// assert_eq!(striped.global_id(1, 2)?, 7);
/// assert_eq!(striped.rows(1)?, 4);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    sharing: Sharing,
    vocab_size: usize,
    world_size: usize,
    /// `n = v / w`.
    rows: usize,
    /// For [`Sharing::Hashed`].
    shuffle: Shuffle,
}

impl Ownership {
    /// Shares `vocab_size` rows among `world_size` ranks.
    ///
    /// # Errors
    /// An empty vocabulary, or one of more elements than memory has addresses for; a world size that does not
    /// divide it.
    pub fn new(sharing: Sharing, vocab_size: usize, world_size: usize) -> Result<Self> {
        let rows = shard_range(vocab_size, world_size, 0)?.len();
        check_size("the vocabulary", &(vocab_size,))?;
        let seed = match sharing {
            Sharing::Hashed { seed } => seed,
            Sharing::Contiguous | Sharing::Striped => 0,
        };
        let shuffle = Shuffle::new(vocab_size, seed)?;
        Ok(Self { sharing, vocab_size, world_size, rows, shuffle })
    }

    /// The same for a vocabulary that is padded first, to the smallest multiple of `world_size`. The padding has
    /// the last ids, which no tokenizer gives, and rows like all others.
    ///
    /// # Errors
    /// An empty vocabulary; a world size of 0; more elements than memory has addresses for.
    pub fn padded(sharing: Sharing, tokenizer_ids: usize, world_size: usize) -> Result<Self> {
        if world_size == 0 {
            return Err(Error::WorldSize { world_size, vocab_size: tokenizer_ids });
        }
        let padded = tokenizer_ids.checked_next_multiple_of(world_size);
        let padded = padded.ok_or_else(|| Error::TooLarge {
            name: "the padded vocabulary",
            shape: vec![tokenizer_ids],
            limit: MAX_ELEMENTS,
        });
        Self::new(sharing, padded?, world_size)
    }

    /// How the rows are shared.
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// `v`, rows of the whole table, padding included.
    pub fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    /// `w`, the number of ranks.
    pub fn world_size(&self) -> usize {
        self.world_size
    }

    // ANCHOR: position
    /// Where an id's row is when the shards are laid one below the other, in the order of their ranks.
    ///
    /// # Errors
    /// An id that is not below `v`.
    pub fn position(&self, id: usize) -> Result<usize> {
        if id >= self.vocab_size {
            return Err(Error::NoOwner { id, vocab_size: self.vocab_size });
        }
        Ok(match self.sharing {
            Sharing::Contiguous => id,
            Sharing::Striped => id % self.world_size * self.rows + id / self.world_size,
            Sharing::Hashed { .. } => self.shuffle.apply(id),
        })
    }

    /// The rank that owns an id.
    ///
    /// # Errors
    /// An id that is not below `v`.
    pub fn owner(&self, id: usize) -> Result<usize> {
        Ok(self.position(id)? / self.rows)
    }

    /// The row that an id has in its owner's shard.
    ///
    /// # Errors
    /// An id that is not below `v`.
    pub fn local_row(&self, id: usize) -> Result<usize> {
        Ok(self.position(id)? % self.rows)
    }

    /// The id whose row this is: the inverse of [`Ownership::owner`] and [`Ownership::local_row`].
    ///
    /// # Errors
    /// A rank that is not below `w`; a row that is not below `n`.
    pub fn global_id(&self, rank: usize, row: usize) -> Result<usize> {
        let rows = self.rows(rank)?;
        if row >= rows {
            return Err(Error::ShardRow { row, rows });
        }
        let position = rank * rows + row;
        Ok(match self.sharing {
            Sharing::Contiguous => position,
            Sharing::Striped => row * self.world_size + rank,
            Sharing::Hashed { .. } => self.shuffle.undo(position),
        })
    }
    // ANCHOR_END: position

    /// `n = v / w`, the rows of a rank's shard. All ranks have the same number.
    ///
    /// # Errors
    /// A rank that is not below `w`.
    pub fn rows(&self, rank: usize) -> Result<usize> {
        check_rank(rank, self.world_size)?;
        Ok(self.rows)
    }

    /// The ids of a rank, in the order of their rows there.
    ///
    /// # Errors
    /// A rank that is not below `w`.
    pub fn owned_ids(&self, rank: usize) -> Result<Vec<usize>> {
        (0..self.rows(rank)?).map(|row| self.global_id(rank, row)).collect()
    }

    // ANCHOR: reshard
    /// The shard of `rank` in another ownership of the same vocabulary, made of the shards of this one.
    ///
    /// `shards` are this ownership's, by rank, each `[n, e]` row by row; the result is `[n', e]` with `n'` rows
    /// of the other. Values are copied. The world sizes may differ. A whole table is the one shard of a contiguous
    /// world of 1, so this also cuts a table and puts it together again. It also serves what is kept beside each
    /// row, such as the moments of an optimizer.
    ///
    /// ```
    /// use quadrivium::parallel::{Ownership, Sharing};
    ///
    /// let whole = Ownership::new(Sharing::Contiguous, 4, 1)?;
    /// let striped = Ownership::new(Sharing::Striped, 4, 2)?;
    /// let table = vec![0, 0, 1, 1, 2, 2, 3, 3]; // [v, e] with e = 2
    /// assert_eq!(whole.reshard(&[&table], 2, &striped, 1)?, [1, 1, 3, 3]);
    /// # Ok::<(), quadrivium::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another vocabulary size; a number of shards that is not `w`; a shard that is not `[n, e]`; an `e` of 0; a rank
    /// that the other world does not have; more elements than memory has addresses for.
    pub fn reshard<T: Clone, S: AsRef<[T]>>(
        &self,
        shards: &[S],
        e: usize,
        other: &Self,
        rank: usize,
    ) -> Result<Vec<T>> {
        check_size("the table", &(self.vocab_size, e))?;
        same_shape("the vocabulary of the new shard", &[self.vocab_size], &[other.vocab_size])?;
        same_shape("the list of shards", &[self.world_size], &[shards.len()])?;
        for shard in shards {
            same_shape("a shard's values", &[self.rows * e], &[shard.as_ref().len()])?;
        }
        let mut new = Vec::with_capacity(other.rows(rank)? * e);
        for id in other.owned_ids(rank)? {
            let (owner, row) = (self.owner(id)?, self.local_row(id)?);
            new.extend_from_slice(&shards[owner].as_ref()[row * e..][..e]);
        }
        Ok(new)
    }
    // ANCHOR_END: reshard
}
