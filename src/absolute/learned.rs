//! Learned positions: a row of a table that is added to tokens.

use super::formula::add_learned_positions;
use crate::embedding::{VocabEmbedding, VocabEmbeddingConfig};
use crate::error::{Error, Result};
use crate::module::parts;
use crate::positions::Positions;
use crate::tensor::*;
use std::fmt;

/// Settings of [`LearnedPositions`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearnedPositionsConfig {
    /// Standard deviation of the normal distribution that the table starts from; its mean is 0. Default 0.02, as in
    /// BERT and GPT-2.
    pub init_std: f64,
    /// Seed of the table. Default 42.
    pub init_seed: u64,
}

impl Default for LearnedPositionsConfig {
    fn default() -> Self {
        Self { init_std: 0.02, init_seed: 42 }
    }
}

/// Learned positions, added to tokens `[b, s, H]`, alone, as `(x, offset)`, where row `t` is at position `offset + t`, or as
/// `(x, &position_ids)` with a position for each token, `[b, s]`.
///
/// - `MS`: positions, the rows of the table. A position past them is refused.
/// - `H`: hidden size.
///
/// ```
/// use quadrivium::position::LearnedPositions;
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let positions = LearnedPositions::<4, 2, f32, _>::new(&dev, Default::default())?;
/// let x: Tensor<Rank3<1, 2, 2>, f32, _> = dev.zeros();
/// let y = positions.try_forward((x.clone(), 2))?;
/// assert_eq!(y.array()[0], positions.table.weight.array()[2..]);
///
/// let error = positions.try_forward((x, 3)).unwrap_err();
/// assert!(error.to_string().starts_with("rows 3..5 are not in a table of 4 rows"));
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// In a model of another hidden size it does not compile:
/// ```compile_fail
/// use quadrivium::position::{LearnedPositions, PositionEncoding};
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let positions = LearnedPositions::<4, 2, f32, _>::new(&dev, Default::default()).unwrap();
/// let x: Tensor<Rank3<1, 2, 6>, f32, _> = dev.zeros();
/// let y = PositionEncoding::<8, f32, Cpu>::on_tokens(&positions, x, &0.into());
/// ```
#[derive(Clone)]
pub struct LearnedPositions<const MS: usize, const H: usize, F: Dtype, D: Storage<F>> {
    /// The table, `[ms, h]`. (dfdx, when it builds one from nothing, draws it with the table's own defaults.)
    pub table: VocabEmbedding<MS, H, F, D>,
}

impl<const MS: usize, const H: usize, F: Float, D: Backend<F>> LearnedPositions<MS, H, F, D> {
    /// A table drawn from the settings.
    ///
    /// # Errors
    /// A standard deviation that is negative or not finite; what the device reports.
    pub fn new(dev: &D, config: LearnedPositionsConfig) -> Result<Self> {
        let LearnedPositionsConfig { init_std, init_seed } = config;
        let config = VocabEmbeddingConfig { init_mean: 0.0, init_std, init_seed };
        VocabEmbedding::new(dev, config).map(|table| Self { table })
    }

    /// Draws the table again. The same seed gives the same table.
    ///
    /// # Errors
    /// What the device reports; then the table is as it was.
    pub fn reset_parameters(&mut self) -> Result<()> {
        self.table.reset_parameters()
    }
}

/// Tokens, `[b, s, h]`.
type Tokens<B, S, const H: usize, F, D, T> = Tensor<(B, S, Const<H>), F, D, T>;

impl<const MS: usize, const H: usize, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>, P>
    Module<(Tokens<B, S, H, F, D, T>, P)> for LearnedPositions<MS, H, F, D>
where
    P: Into<Positions>,
{
    type Output = Tokens<B, S, H, F, D, T>;
    type Error = Error;

    fn try_forward(&self, (x, positions): (Self::Output, P)) -> Result<Self::Output> {
        add_learned_positions(x, &self.table.weight, positions)
    }
}

impl<const MS: usize, const H: usize, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tokens<B, S, H, F, D, T>> for LearnedPositions<MS, H, F, D>
{
    type Output = Tokens<B, S, H, F, D, T>;
    type Error = Error;

    fn try_forward(&self, x: Self::Output) -> Result<Self::Output> {
        self.try_forward((x, 0))
    }
}

parts! {
    [const MS: usize, const H: usize] LearnedPositions<MS, H>
    { table: "table" }
}

impl<const MS: usize, const H: usize, F: Dtype, D: Storage<F>> fmt::Display
    for LearnedPositions<MS, H, F, D>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LearnedPositions(positions={MS}, hidden_size={H})")
    }
}

/// Shows the settings, not the table.
impl<const MS: usize, const H: usize, F: Dtype, D: Storage<F>> fmt::Debug
    for LearnedPositions<MS, H, F, D>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LearnedPositions")
            .field("positions", &MS)
            .field("hidden_size", &H)
            .field("table", &self.table)
            .finish()
    }
}
