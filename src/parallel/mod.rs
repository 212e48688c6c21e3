//! The vocabulary embedding with its table split across ranks.
//!
//! This file holds one rank's rows and their settings. The computation is
//! [`vocab_shard_embedding`]. Ranks do not talk to each other here: the sum over them is the
//! caller's, in one process or by an all-reduce.

mod balance;
pub mod builder;
pub mod cost;
mod fit;
mod formula;
mod ownership;
mod shards;
mod shuffle;

pub use balance::TokenLoad;
pub use formula::{owned_shard_embedding, vocab_shard_embedding};
pub use ownership::{Ownership, Sharing};
pub use shards::{padded_vocab_size, shard_range};
pub use shuffle::Shuffle;

use crate::embedding::assert_table;
use crate::error::{Error, Result};
use crate::init::Init;
use crate::module::{drawn_weight, shown};
use crate::tensor::*;
use const_panic::concat_panic;
use shards::check_rank;
use std::fmt;
use std::ops::Range;

/// Settings of a [`ParallelVocabEmbedding`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParallelVocabEmbeddingConfig {
    /// `r`, which shard this is. Default 0.
    pub rank: usize,
    /// Mean of the normal distribution that the shard starts from. Default 0.
    pub init_mean: f64,
    /// Its standard deviation. Default 1.
    pub init_std: f64,
    /// The shard's seed is `init_base_seed + rank`, so no two shards are equal. Default 42.
    ///
    /// Two tables with neighbouring base seeds share rows: base 42, rank 1 starts as base 43, rank
    /// 0. Give tables base seeds that are at least the world size apart.
    pub init_base_seed: u64,
}

impl Default for ParallelVocabEmbeddingConfig {
    fn default() -> Self {
        Self { rank: 0, init_mean: 0.0, init_std: 1.0, init_base_seed: 42 }
    }
}

// ANCHOR: shard_seed
impl ParallelVocabEmbeddingConfig {
    /// What the initial values are drawn from.
    pub fn init(&self) -> Init {
        let seed = self.init_base_seed.wrapping_add(self.rank as u64);
        Init::Normal { mean: self.init_mean, std: self.init_std, seed }
    }
}
// ANCHOR_END: shard_seed

/// One rank's shard of an embedding table that is split across `W` ranks.
///
/// - `V`: vocabulary size of the whole table. `W` must divide it; if not, it does not compile.
/// - `M`: embedding dimension.
/// - `W`: world size, the number of ranks.
///
/// Rank `r` owns the ids `[r * n, (r + 1) * n)` with `n = V / W`. Other ids give a zero vector
/// and send no gradient. The sum over the ranks is the lookup in the table that their rows make
/// together. Each rank draws its rows from its own seed, so that table is not the one that
/// [`VocabEmbedding`](crate::embedding::VocabEmbedding) draws. To cut a given table, see the second
/// example.
///
/// ```
/// use quadrivium::tensor::*;
/// use quadrivium::{ParallelVocabEmbedding, ParallelVocabEmbeddingConfig};
///
/// let dev = Cpu::default();
/// let config = ParallelVocabEmbeddingConfig { rank: 1, ..Default::default() };
/// let shard = ParallelVocabEmbedding::<10, 4, 2, f32, _>::new(&dev, config)?;
/// assert_eq!(shard.owned_ids(), 5..10);
/// let y = shard.try_forward(dev.tensor([[7, 0]]))?.as_vec();
/// let row = 7 - 5;
/// assert_eq!(y[..4], shard.weight.as_vec()[row * 4..][..4]);
/// assert_eq!(y[4..], [0.0; 4]); // rank 0 owns id 0
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// Seeds collide by this rule, so two tables want base seeds that are at least `W` apart:
/// ```
/// use quadrivium::tensor::*;
/// use quadrivium::{ParallelVocabEmbedding, ParallelVocabEmbeddingConfig};
///
/// let shard = |init_base_seed, rank| {
///     let config = ParallelVocabEmbeddingConfig { init_base_seed, rank, ..Default::default() };
///     ParallelVocabEmbedding::<10, 4, 2, f32, _>::new(&Cpu::default(), config)
/// };
/// assert_eq!(shard(42, 1)?.weight.as_vec(), shard(43, 0)?.weight.as_vec());
/// assert_ne!(shard(42, 1)?.weight.as_vec(), shard(44, 0)?.weight.as_vec());
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// Rank 1's half of a table of 10 rows:
/// ```
/// use quadrivium::tensor::*;
/// use quadrivium::{ParallelVocabEmbedding, ParallelVocabEmbeddingConfig, VocabEmbedding};
///
/// let dev = Cpu::default();
/// let whole = VocabEmbedding::<10, 4, f32, _>::new(&dev, Default::default())?;
/// let config = ParallelVocabEmbeddingConfig { rank: 1, ..Default::default() };
/// let rows = whole.weight.clone().slice((5..10, ..)).realize();
/// let shard = ParallelVocabEmbedding::<10, 4, 2, f32, _>::with_weight(rows, config)?;
/// let ids = dev.tensor([[7]]);
/// assert_eq!(shard.try_forward(ids.clone())?.array(), whole.try_forward(ids)?.array());
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// A world size that does not divide the vocabulary does not compile:
/// ```compile_fail
/// use quadrivium::{tensor::Cpu, ParallelVocabEmbedding, ParallelVocabEmbeddingConfig};
/// let config = ParallelVocabEmbeddingConfig::default();
/// let shard = ParallelVocabEmbedding::<7, 4, 2, f32, _>::new(&Cpu::default(), config);
/// ```
#[derive(Clone)]
pub struct ParallelVocabEmbedding<
    const V: usize,
    const M: usize,
    const W: usize,
    F: Dtype,
    D: Storage<F>,
> {
    /// This rank's rows, `[n, e]`. Row `i` is for id `rank * n + i`.
    pub weight: Tensor<(Quotient<V, W>, Const<M>), F, D>,
    config: ParallelVocabEmbeddingConfig,
}

const fn assert_shards(vocab_size: usize, embedding_dim: usize, world_size: usize) {
    assert_table(vocab_size, embedding_dim);
    if world_size == 0 {
        concat_panic!("world size is 0, but there is at least 1 rank");
    }
    if vocab_size % world_size != 0 {
        concat_panic!(
            "world size ",
            world_size,
            " does not divide vocabulary size ",
            vocab_size,
            ": pad the vocabulary to a multiple of ",
            world_size
        );
    }
}

impl<const V: usize, const M: usize, const W: usize, F: Float, D: Backend<F>>
    ParallelVocabEmbedding<V, M, W, F, D>
{
    /// A shard with its rows drawn from the settings.
    ///
    /// # Errors
    /// A rank that is not below `W`; a mean or standard deviation that is not finite, a negative
    /// standard deviation; what the device reports.
    pub fn new(dev: &D, config: ParallelVocabEmbeddingConfig) -> Result<Self> {
        const { assert_shards(V, M, W) };
        let weight = dev.try_zeros().map_err(Error::device)?;
        let mut shard = Self::with_weight(weight, config)?;
        shard.reset_parameters()?;
        Ok(shard)
    }

    /// A shard with given rows, `[n, e]`. Nothing is drawn.
    ///
    /// # Errors
    /// Settings that [`ParallelVocabEmbedding::new`] would refuse.
    pub fn with_weight(
        weight: Tensor<(Quotient<V, W>, Const<M>), F, D>,
        config: ParallelVocabEmbeddingConfig,
    ) -> Result<Self> {
        const { assert_shards(V, M, W) };
        check_rank(config.rank, W)?;
        config.init().check()?;
        let weight = weight.try_contiguous().map_err(Error::device)?;
        Ok(Self { weight, config })
    }

    /// Draws the rows again. The same base seed and rank give the same rows.
    ///
    /// # Errors
    /// What the device reports; then the rows are as they were.
    pub fn reset_parameters(&mut self) -> Result<()> {
        self.config.init().fill(&mut self.weight)
    }
}

impl<const V: usize, const M: usize, const W: usize, F: Dtype, D: Storage<F>>
    ParallelVocabEmbedding<V, M, W, F, D>
{
    /// The settings.
    pub fn config(&self) -> &ParallelVocabEmbeddingConfig {
        &self.config
    }

    /// The ids whose rows this rank holds.
    pub fn owned_ids(&self) -> Range<usize> {
        let (rank, rows) = (self.config.rank, V / W);
        rank * rows..(rank + 1) * rows
    }
}

impl<const V: usize, const M: usize, const W: usize, B: Dim, S: Dim, F, D, T>
    Module<Tensor<(B, S), usize, D, T>> for ParallelVocabEmbedding<V, M, W, F, D>
where
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
{
    type Output = Tensor<(B, S, Const<M>), F, D, T>;
    type Error = Error;

    fn try_forward(&self, ids: Tensor<(B, S), usize, D, T>) -> Result<Self::Output> {
        const { assert_shards(V, M, W) };
        vocab_shard_embedding(ids, &self.weight, self.config.rank, W)
    }
}

drawn_weight! {
    [const V: usize, const M: usize, const W: usize] ParallelVocabEmbedding<V, M, W>,
    ParallelVocabEmbeddingConfig, assert_shards(V, M, W)
}

impl<const V: usize, const M: usize, const W: usize, F: Dtype, D: Storage<F>> fmt::Display
    for ParallelVocabEmbedding<V, M, W, F, D>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, ids) = (self.config.rank, self.owned_ids());
        write!(
            f,
            "ParallelVocabEmbedding(vocab_size={V}, embedding_dim={M}, \
             world_size={W}, rank={rank}, owned_ids={ids:?})"
        )
    }
}

shown! {
    [const V: usize, const M: usize, const W: usize, F: Dtype, D: Storage<F>] ParallelVocabEmbedding<V, M, W, F, D>,
    vocab_size: V, embedding_dim: M, world_size: W; config
}
