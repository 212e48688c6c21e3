//! What each encoding of this room does, and where in a model.

use super::{
    Alibi, Kerple, LearnedPositions, PositionEncoding, Positions, ScoreBias, Sinusoidal, T5Bias,
    TransformerXl,
};
use crate::checks::same_shape;
use crate::error::Result;
use crate::tensor::*;
use const_panic::concat_panic;

/// Tokens, `[b, s, h]`.
type Tokens<B, S, const H: usize, F, D, T> = Tensor<(B, S, Const<H>), F, D, T>;
/// Queries, `[b, s, nh, hd]`.
type Heads<B, S, N, const HD: usize, F, D, T> = Tensor<(B, S, N, Const<HD>), F, D, T>;

/// A model's tokens must be as wide as the rows.
const fn assert_width(of_rows: usize, of_tokens: usize) {
    if of_rows != of_tokens {
        concat_panic!(
            "positions of ",
            of_rows,
            " elements can't be added to tokens of ",
            of_tokens,
            ": both must have the model's hidden size"
        );
    }
}

/// Refuses queries of another number of heads than a bias has.
fn check_heads<B: Dim, S: Dim, N: Dim, H: Dim>(q: &(B, S, N, H), num_heads: usize) -> Result<()> {
    let [b, s, _, hd] = q.concrete();
    same_shape("the queries", &[b, s, num_heads, hd], &q.concrete())
}

impl<const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D> for Sinusoidal {
    fn on_tokens<const H: usize, B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        tokens: Tokens<B, S, H, F, D, T>,
        positions: &Positions,
    ) -> Result<Tokens<B, S, H, F, D, T>> {
        self.try_forward((tokens, positions))
    }
}

impl<const MS: usize, const W: usize, const HD: usize, F: Float, D: Backend<F>>
    PositionEncoding<HD, F, D> for LearnedPositions<MS, W, F, D>
{
    /// Tokens of another hidden size do not compile.
    fn on_tokens<const H: usize, B: Dim, S: Dim, T: Tape<F, D>>(
        &self,
        tokens: Tokens<B, S, H, F, D, T>,
        positions: &Positions,
    ) -> Result<Tokens<B, S, H, F, D, T>> {
        const { assert_width(W, H) };
        super::add_learned_positions(tokens, &self.table.weight, positions)
    }
}

impl<const NH: usize, const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D>
    for Alibi<NH>
{
    const HEADS: Option<usize> = Some(NH);

    fn on_scores<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Heads<B, S, N, HD, F, D, T>,
        keys: usize,
    ) -> Result<ScoreBias<B, S, F, D, T>> {
        check_heads(queries.shape(), NH)?;
        let table = self.by_distance(queries.device(), keys)?; //             [nh, t]
        Ok(ScoreBias::of_distances(table.put_tape(T::default())))
    }
}

impl<const NH: usize, const BUCKETS: usize, const HD: usize, F: Float, D: Backend<F>>
    PositionEncoding<HD, F, D> for T5Bias<NH, BUCKETS, F, D>
{
    const HEADS: Option<usize> = Some(NH);

    fn on_scores<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Heads<B, S, N, HD, F, D, T>,
        keys: usize,
    ) -> Result<ScoreBias<B, S, F, D, T>> {
        check_heads(queries.shape(), NH)?;
        self.by_distance(keys).map(ScoreBias::of_distances) //                [nh, t]
    }
}

impl<const NH: usize, const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D>
    for Kerple<NH, F, D>
{
    const HEADS: Option<usize> = Some(NH);

    fn on_scores<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Heads<B, S, N, HD, F, D, T>,
        keys: usize,
    ) -> Result<ScoreBias<B, S, F, D, T>> {
        check_heads(queries.shape(), NH)?;
        self.by_distance(keys).map(ScoreBias::of_distances) //                [nh, t]
    }
}

impl<const H: usize, const NH: usize, const HD: usize, F: Float, D: Backend<F>>
    PositionEncoding<HD, F, D> for TransformerXl<H, NH, HD, F, D>
{
    const HEADS: Option<usize> = Some(NH);

    /// Adds the same `u` at every position.
    fn on_queries<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Heads<B, S, N, HD, F, D, T>,
        _: &Positions,
    ) -> Result<Heads<B, S, N, HD, F, D, T>> {
        self.add_to_queries(queries)
    }

    fn on_scores<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Heads<B, S, N, HD, F, D, T>,
        keys: usize,
    ) -> Result<ScoreBias<B, S, F, D, T>> {
        self.by_score(queries, keys).map(ScoreBias::of_scores) //             [b, nh, s, t]
    }
}
