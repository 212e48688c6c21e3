//! What a part of the model must do, so that another may take its place: a learner's own, or another kind.

use crate::embedding::VocabEmbedding;
use crate::error::{Error, Result};
use crate::layernorm::LayerNorm;
use crate::linear::linear;
use crate::module::{parts, shown};
use crate::norm::GroupRmsNorm;
use crate::parallel::ParallelVocabEmbedding;
use crate::tensor::*;

/// Tokens, `[b, s, h]`.
pub type Tokens<B, S, const H: usize, F, D, T = NoneTape> = Tensor<(B, S, Const<H>), F, D, T>;

/// A norm over tokens of `H` elements.
pub trait Normalize<const H: usize, F: Float, D: Backend<F>> {
    /// From `[b, s, h]` to `[b, s, h]`, each token for itself.
    ///
    /// # Errors
    /// What the norm refuses, and what the device reports.
    fn normalize<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
    ) -> Result<Tokens<B, S, H, F, D, T>>;

    /// Its eps, if it is the norm of a Llama: one that divides each whole token by its root mean square. A model with another
    /// one is not saved as a checkpoint.
    fn rms_norm_eps(&self) -> Option<f64> {
        None
    }
}

impl<const H: usize, const GZ: usize, F: Float, D: Backend<F>> Normalize<H, F, D>
    for GroupRmsNorm<H, GZ, F, D>
{
    fn normalize<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
    ) -> Result<Tokens<B, S, H, F, D, T>> {
        self.try_forward(x)
    }

    fn rms_norm_eps(&self) -> Option<f64> {
        (GZ == H).then_some(self.config().eps)
    }
}

impl<const H: usize, F: Float, D: Backend<F>> Normalize<H, F, D> for LayerNorm<H, F, D> {
    fn normalize<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
    ) -> Result<Tokens<B, S, H, F, D, T>> {
        self.try_forward(x)
    }
}

/// A table of `V` rows of `H` elements, which also serves as the matrix of a tied output.
pub trait Embed<const V: usize, const H: usize, F: Float, D: Backend<F>> {
    /// From ids `[b, s]` to rows `[b, s, h]`.
    ///
    /// # Errors
    /// An id that is not below `V`; what the device reports.
    fn embed<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        ids: Tensor<(B, S), usize, D, T>,
    ) -> Result<Tokens<B, S, H, F, D, T>>;

    /// The product of tokens `[b, s, h]` with each row, `[b, s, v]`.
    ///
    /// # Errors
    /// What the device reports.
    fn products<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
    ) -> Result<Tokens<B, S, V, F, D, T>>;

    /// Whether it is the table of a Llama: its rows are the tokens, with no factor and in one piece. A model with another
    /// one is not saved as a checkpoint.
    fn is_of_llama(&self) -> bool {
        false
    }
}

impl<const V: usize, const H: usize, F: Float, D: Backend<F>> Embed<V, H, F, D>
    for VocabEmbedding<V, H, F, D>
{
    fn embed<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        ids: Tensor<(B, S), usize, D, T>,
    ) -> Result<Tokens<B, S, H, F, D, T>> {
        self.try_forward(ids)
    }

    fn products<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
    ) -> Result<Tokens<B, S, V, F, D, T>> {
        linear(x, &self.weight)
    }

    fn is_of_llama(&self) -> bool {
        true
    }
}

/// A table cut into `W` shards, all of them in this process: what each rank would add is added up here.
#[derive(Clone)]
pub struct Shards<const V: usize, const H: usize, const W: usize, F: Dtype, D: Storage<F>> {
    /// The shard of each rank, in their order.
    pub shards: modules::Repeated<ParallelVocabEmbedding<V, H, W, F, D>, W>,
}

impl<const V: usize, const H: usize, const W: usize, F: Float, D: Backend<F>>
    Shards<V, H, W, F, D>
{
    /// Cuts a table, `[v, h]`.
    ///
    /// # Errors
    /// What the device reports.
    pub fn of(table: &Tensor<Rank2<V, H>, F, D>) -> Result<Self> {
        let rows = table.as_vec();
        let shard = |rank: usize| {
            let n = V / W;
            let rows = rows[rank * n * H..(rank + 1) * n * H].to_vec();
            let rows = table.device().try_tensor_from_vec(rows, Default::default());
            let config = crate::ParallelVocabEmbeddingConfig { rank, ..Default::default() };
            ParallelVocabEmbedding::with_weight(rows.map_err(Error::device)?, config)
        };
        Ok(Self {
            shards: modules::Repeated { modules: (0..W).map(shard).collect::<Result<_>>()? },
        })
    }
}

impl<const V: usize, const H: usize, const W: usize, F: Float, D: Backend<F>> Embed<V, H, F, D>
    for Shards<V, H, W, F, D>
{
    fn embed<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        ids: Tensor<(B, S), usize, D, T>,
    ) -> Result<Tokens<B, S, H, F, D, T>> {
        let (ids, tape) = ids.split_tape();
        let mut sum = self.shards[0].try_forward(ids.clone().put_tape(tape))?; // [b, s, h]
        for shard in &self.shards.modules[1..] {
            let part = shard.try_forward(ids.clone().put_tape(T::default()))?; //             [b, s, h]
            sum = sum.try_add(part).map_err(Error::device)?; //               [b, s, h]
        }
        Ok(sum)
    }

    fn products<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
    ) -> Result<Tokens<B, S, V, F, D, T>> {
        let (b, s, _) = *x.shape();
        let (x, tape) = x.split_tape();
        let mut parts = self.shards.modules.iter().map(|shard| {
            let y = linear(x.clone().put_tape(T::default()), &shard.weight)?; // [b, s, n]
            y.try_reshape_like(&(b, s, V / W)).map_err(Error::device)
        });
        let first = parts.next().ok_or(Error::WorldSize { world_size: W, vocab_size: V })??;
        let logits = parts.try_fold(first, |logits, part| {
            (logits, part?).try_concat_along(Axis::<2>).map_err(Error::device)
        })?;
        let (logits, of_parts) = logits.split_tape();
        let logits = logits.put_tape(tape.merge(of_parts));
        logits.try_reshape_like(&(b, s, Const)).map_err(Error::device) //     [b, s, v]
    }
}

parts! {
    [const V: usize, const H: usize, const W: usize] Shards<V, H, W>
    { shards: "shards" }
}

shown! {
    [const V: usize, const H: usize, const W: usize, F: Dtype, D: Storage<F>] Shards<V, H, W, F, D>,
    vocab_size: V, embedding_dim: H, world_size: W
}

/// From tokens to logits: what comes at the end of a model.
pub trait Head<const V: usize, const H: usize, F: Float, D: Backend<F>> {
    /// From tokens `[b, s, h]` to logits `[b, s, v]`. `embedding` is the model's table.
    ///
    /// # Errors
    /// What the device reports.
    fn logits<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
        embedding: &impl Embed<V, H, F, D>,
    ) -> Result<Tokens<B, S, V, F, D, T>>;

    /// Whether it is the table once more, if it is the output of a Llama: a product with a matrix and nothing else. A model
    /// with another one is not saved as a checkpoint.
    fn is_tied(&self) -> Option<bool> {
        None
    }
}

/// A separate matrix, `[v, h]`.
impl<const V: usize, const H: usize, F: Float, D: Backend<F>> Head<V, H, F, D>
    for crate::linear::Linear<Const<H>, Const<V>, F, D>
{
    fn logits<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
        _: &impl Embed<V, H, F, D>,
    ) -> Result<Tokens<B, S, V, F, D, T>> {
        self.try_forward(x)
    }

    fn is_tied(&self) -> Option<bool> {
        Some(false)
    }
}

/// The embedding's table once more (`tie_word_embeddings`). It adds no weights.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tied;

impl ZeroSizedModule for Tied {}

impl<const V: usize, const H: usize, F: Float, D: Backend<F>> Head<V, H, F, D> for Tied {
    fn logits<B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        x: Tokens<B, S, H, F, D, T>,
        embedding: &impl Embed<V, H, F, D>,
    ) -> Result<Tokens<B, S, V, F, D, T>> {
        embedding.products(x)
    }

    fn is_tied(&self) -> Option<bool> {
        Some(true)
    }
}
