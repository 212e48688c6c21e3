//! Where a model puts what it knows about the order of its tokens: at its embeddings, at queries and keys, at scores.
//!
//! Each room of encodings says what they are: [`absolute`](crate::absolute), [`biases`](crate::biases), and for rotations
//! [`rope`](crate::rope), [`frequencies`](crate::frequencies) and [`rotations`](crate::rotations). This file has what a
//! model asks of all of them, [`PositionEncoding`], and what each answers.

mod encodings;
mod rotations;

#[doc(inline)]
pub use crate::{absolute::*, biases::*, positions::Positions};

use crate::checks::same_shape;
use crate::error::{Error, Result};
use crate::model::InLlama;
use crate::tensor::*;

/// Queries or keys, `[b, s, n, hd]`.
type Heads<B, S, N, const HD: usize, F, D, T> = Tensor<(B, S, N, Const<HD>), F, D, T>;

/// An encoding of positions, at its place in a model. What an encoding does not do is left as it is, so most
/// implement one method.
///
/// - `HD`: head size.
pub trait PositionEncoding<const HD: usize, F: Float, D: Backend<F>> {
    /// The number of query heads that it is made for; `None` is any. Attention with another number does not compile.
    const HEADS: Option<usize> = None;

    /// Changes tokens, `[b, s, h]`, below the first block. Each is at one of `positions`.
    ///
    /// # Errors
    /// Positions that the encoding does not have, or not one for each token; another hidden size than its own; what the
    /// device reports.
    fn on_tokens<const H: usize, B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        tokens: Tensor<(B, S, Const<H>), F, D, T>,
        positions: &Positions,
    ) -> Result<Tensor<(B, S, Const<H>), F, D, T>> {
        let _ = positions;
        Ok(tokens)
    }

    /// Changes both queries and keys, `[b, s, n, hd]`, before they meet. Each token is at one of `positions`.
    ///
    /// # Errors
    /// Positions that the encoding does not have, or not one for each token; what the device reports.
    fn on_heads<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        heads: Heads<B, S, N, HD, F, D, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, F, D, T>> {
        let _ = positions;
        Ok(heads)
    }

    /// Changes queries, for an encoding that treats them in another way than keys.
    ///
    /// # Errors
    /// As for [`on_heads`](Self::on_heads).
    fn on_queries<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Heads<B, S, N, HD, F, D, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, F, D, T>> {
        self.on_heads(queries, positions)
    }

    /// Changes keys, for an encoding that treats them in another way than queries.
    ///
    /// # Errors
    /// As for [`on_heads`](Self::on_heads).
    fn on_keys<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        keys: Heads<B, S, N, HD, F, D, T>,
        positions: &Positions,
    ) -> Result<Heads<B, S, N, HD, F, D, T>> {
        self.on_heads(keys, positions)
    }

    /// What is added to the scores, after they were divided by `sqrt(hd)`.
    ///
    /// `queries` are `[b, s, nh, hd]`, as they are before [`on_queries`](Self::on_queries): those of the last `s` of `keys`
    /// tokens. A distance is a number of tokens, padding included, so it does not change where a text begins: a query and
    /// the keys of its text are moved by the same amount.
    ///
    /// # Errors
    /// A number of heads that is not the encoding's; positions that it does not have; what the device reports.
    fn on_scores<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Heads<B, S, N, HD, F, D, T>,
        keys: usize,
    ) -> Result<ScoreBias<B, S, F, D, T>> {
        let _ = (queries, keys);
        Ok(ScoreBias::none())
    }

    /// Whether keys that were encoded in earlier calls, and kept, still fit when the longest text of the batch has
    /// `positions` tokens, padding not counted.
    ///
    /// # Errors
    /// An encoding that changes what it did before when the text grows to that length.
    fn check_kept(&self, positions: usize) -> Result<()> {
        let _ = positions;
        Ok(())
    }

    /// What a checkpoint's `config.json` says of it. A model with an encoding that no Llama has is not saved as one.
    fn in_llama(&self) -> InLlama {
        InLlama::Other
    }
}

/// No encoding: attention then sees the earlier tokens as a bag, in no order but that of the causal mask.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct NoPosition;

impl<const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D> for NoPosition {
    fn in_llama(&self) -> InLlama {
        InLlama::Nothing
    }
}

impl ZeroSizedModule for NoPosition {}

/// What is added to the scores of a causal attention. If both are there, both are added.
#[derive(Debug, Clone)]
pub struct ScoreBias<B: Dim, S: Dim, F: Dtype, D: Storage<F>, T = NoneTape> {
    /// By distance, `[nh, t]`: head `n` adds `by_distance[n][m - j]` to the score of the query at `m` with the key at
    /// `j`. It takes `nh * t` numbers; a matrix for each query and key takes `s` times as many.
    pub by_distance: Option<Tensor<(usize, usize), F, D, T>>,
    /// By query and key, `[b, nh, s, t]`, for what depends on more than the distance.
    pub by_score: Option<Tensor<(B, usize, S, usize), F, D, T>>,
}

impl<B: Dim, S: Dim, F: Float, D: Device<F>, T: Tape<F, D>> ScoreBias<B, S, F, D, T> {
    /// Nothing is added.
    pub fn none() -> Self {
        Self { by_distance: None, by_score: None }
    }

    /// A bias by distance, `[nh, t]`.
    pub fn of_distances(by_distance: Tensor<(usize, usize), F, D, T>) -> Self {
        Self { by_distance: Some(by_distance), by_score: None }
    }

    /// A bias by query and key, `[b, nh, s, t]`.
    pub fn of_scores(by_score: Tensor<(B, usize, S, usize), F, D, T>) -> Self {
        Self { by_distance: None, by_score: Some(by_score) }
    }

    /// Both of two biases.
    ///
    /// # Errors
    /// Two shapes; what the device reports.
    pub fn and(self, other: Self) -> Result<Self> {
        Ok(Self {
            by_distance: sum(self.by_distance, other.by_distance)?,
            by_score: sum(self.by_score, other.by_score)?,
        })
    }
}

impl<B: Dim, S: Dim, F: Float, D: Device<F>> ScoreBias<B, S, F, D> {
    /// The same for a batch whose size the compiler does not know, in one piece of memory.
    pub(crate) fn any_batch(self) -> Raw<ScoreBias<usize, S, F, D>, D> {
        let by_distance = self.by_distance.map(Tensor::try_contiguous).transpose()?;
        let by_score = self.by_score.map(|bias| -> Raw<_, D> {
            let (b, nh, s, t) = *bias.shape();
            bias.try_contiguous()?.try_reshape_like(&(b.size(), nh, s, t))
        });
        Ok(ScoreBias { by_distance, by_score: by_score.transpose()? })
    }
}

/// The sum of two tensors that may be missing.
fn sum<Sh: Shape, F: Float, D: Device<F>, T: Tape<F, D>>(
    a: Option<Tensor<Sh, F, D, T>>,
    b: Option<Tensor<Sh, F, D, T>>,
) -> Result<Option<Tensor<Sh, F, D, T>>> {
    match (a, b) {
        (Some(a), Some(b)) => {
            same_shape(
                "the other bias",
                &a.shape().concrete().into(),
                &b.shape().concrete().into(),
            )?;
            a.try_add(b).map(Some).map_err(Error::device)
        }
        (a, b) => Ok(a.or(b)),
    }
}
