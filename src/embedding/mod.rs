//! The vocabulary embedding: a table with one row per token id.
//!
//! This file holds the table and its settings. The computation is [`vocab_embedding`].

pub mod builder;
pub(crate) mod formula;
pub(crate) mod fused;

pub use formula::vocab_embedding;

use crate::checks::MAX_ELEMENTS;
use crate::error::{Error, Result};
use crate::init::Init;
use crate::module::{drawn_weight, shown};
use crate::tensor::*;
use const_panic::concat_panic;
use std::fmt;

/// Settings of a [`VocabEmbedding`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VocabEmbeddingConfig {
    /// Mean of the normal distribution that the table starts from. Default 0.
    pub init_mean: f64,
    /// Its standard deviation. Default 1.
    pub init_std: f64,
    /// Seed of the table. Default 42.
    pub init_seed: u64,
}

impl Default for VocabEmbeddingConfig {
    fn default() -> Self {
        Self { init_mean: 0.0, init_std: 1.0, init_seed: 42 }
    }
}

impl VocabEmbeddingConfig {
    /// What the initial values are drawn from.
    pub fn init(&self) -> Init {
        Init::Normal { mean: self.init_mean, std: self.init_std, seed: self.init_seed }
    }
}

/// An embedding table: `y[i, j] = weight[ids[i, j]]`.
///
/// - `V`: vocabulary size, rows of the table.
/// - `M`: embedding dimension, `e` in the formulas.
///
/// Input `[b, s]` ids (`usize`), output `[b, s, M]`.
///
/// ```
/// use quadrivium::tensor::*;
/// use quadrivium::{VocabEmbedding, VocabEmbeddingConfig};
///
/// let dev = Cpu::default();
/// let embedding = VocabEmbedding::<10, 4, f32, _>::new(&dev, VocabEmbeddingConfig::default())?;
/// let ids = dev.tensor([[7, 0, 7]]);
/// let y = embedding.try_forward(ids)?;
/// assert_eq!(y.array()[0][0], embedding.weight.array()[7]);
///
/// let error = embedding.try_forward(dev.tensor([[1, 10]])).unwrap_err();
/// assert!(error.to_string().starts_with("token id 10 at position [0, 1] is outside"));
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct VocabEmbedding<const V: usize, const M: usize, F: Dtype, D: Storage<F>> {
    /// The table, `[v, e]`.
    pub weight: Tensor<Rank2<V, M>, F, D>,
    config: VocabEmbeddingConfig,
}

pub(crate) const fn assert_table(vocab_size: usize, embedding_dim: usize) {
    if vocab_size == 0 || embedding_dim == 0 {
        concat_panic!("a table of ", vocab_size, " rows of ", embedding_dim, " is empty");
    }
    match vocab_size.checked_mul(embedding_dim) {
        Some(elements) if elements <= MAX_ELEMENTS => {}
        _ => concat_panic!("a table of ", vocab_size, " rows of ", embedding_dim, " is too large"),
    }
}

impl<const V: usize, const M: usize, F: Float, D: Backend<F>> VocabEmbedding<V, M, F, D> {
    /// An embedding with its table drawn from the settings.
    ///
    /// # Errors
    /// A mean or standard deviation that is not finite, a negative standard deviation, what the
    /// device reports.
    pub fn new(dev: &D, config: VocabEmbeddingConfig) -> Result<Self> {
        const { assert_table(V, M) };
        let weight = dev.try_zeros().map_err(Error::device)?;
        let mut embedding = Self::with_weight(weight, config)?;
        embedding.reset_parameters()?;
        Ok(embedding)
    }

    /// An embedding with a given table, `[v, e]`. Nothing is drawn.
    ///
    /// # Errors
    /// Settings that [`VocabEmbedding::new`] would refuse.
    pub fn with_weight(
        weight: Tensor<Rank2<V, M>, F, D>,
        config: VocabEmbeddingConfig,
    ) -> Result<Self> {
        const { assert_table(V, M) };
        config.init().check()?;
        let weight = weight.try_contiguous().map_err(Error::device)?;
        Ok(Self { weight, config })
    }

    /// Draws the table again. The same seed gives the same table.
    ///
    /// # Errors
    /// What the device reports; then the table is as it was.
    pub fn reset_parameters(&mut self) -> Result<()> {
        self.config.init().fill(&mut self.weight)
    }
}

impl<const V: usize, const M: usize, F: Dtype, D: Storage<F>> VocabEmbedding<V, M, F, D> {
    /// The settings.
    pub fn config(&self) -> &VocabEmbeddingConfig {
        &self.config
    }
}

impl<const V: usize, const M: usize, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tensor<(B, S), usize, D, T>> for VocabEmbedding<V, M, F, D>
{
    type Output = Tensor<(B, S, Const<M>), F, D, T>;
    type Error = Error;

    fn try_forward(&self, ids: Tensor<(B, S), usize, D, T>) -> Result<Self::Output> {
        vocab_embedding(ids, &self.weight)
    }
}

drawn_weight! {
    [const V: usize, const M: usize] VocabEmbedding<V, M>, VocabEmbeddingConfig, assert_table(V, M)
}

impl<const V: usize, const M: usize, F: Dtype, D: Storage<F>> fmt::Display
    for VocabEmbedding<V, M, F, D>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VocabEmbedding(vocab_size={V}, embedding_dim={M})")
    }
}

shown! {
    [const V: usize, const M: usize, F: Dtype, D: Storage<F>] VocabEmbedding<V, M, F, D>, vocab_size: V, embedding_dim: M; config
}
