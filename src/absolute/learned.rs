//! Learned positions: a row of a table that is added to tokens.

use crate::checks::{check_size, same_shape};
use crate::embedding::{VocabEmbedding, VocabEmbeddingConfig};
use crate::error::{Error, Result};
use crate::host::{add_rows, from_host, positions_of, to_host};
use crate::tensor::*;
use std::fmt;

// ANCHOR: learned
/// Adds to each token its position's row of a table: `y[b, t] = x[b, t] + table[offset + t]`, `[b, s, h]`.
///
/// Shapes: `x` `[b, s, h]`, `table` `[ms, h]`. The gradient of `x` is that of `y`; that of a row is the sum over the
/// texts that have a token there, added up in `f64`. There is nothing past the last row, so a longer text is an
/// error; it never begins again at row 0. Source: Devlin et al. 2019, "BERT"; Radford et al. 2019, GPT-2.
///
/// # Errors
/// A text that ends past the last row; rows of another length than the tokens'; an empty input or table; what the
/// device reports.
pub fn add_learned_positions<
    B: Dim,
    S: Dim,
    H: Dim,
    M: Dim,
    E: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    x: Tensor<(B, S, H), F, D, T>,
    table: &Tensor<(M, E), F, D>,
    offset: usize,
) -> Result<Tensor<(B, S, H), F, D, T>> {
    let positions = positions_of(x.shape(), offset)?;
    let ((b, s, h), (rows, width)) = (*x.shape(), *table.shape());
    check_size("the table of positions", table.shape())?;
    same_shape("the table of positions", &[rows.size(), h.size()], &[rows.size(), width.size()])?;
    if positions.end > rows.size() {
        let (start, end) = (positions.start, positions.end);
        return Err(Error::Rows { start, end, rows: rows.size() });
    }
    let run = || -> Raw<_, D> {
        let (x, tape) = x.split_tape();
        let (table, table_tape) = table.retaped::<T>().try_contiguous()?.split_tape();
        let x = x.put_tape(tape.merge(table_tape));
        let rows = table.clone().try_slice((positions, ..))?; //              [s, h]
        let rows = cast::<F, F::Wide, _, _>(&rows)?.try_reshape_like(&(s, h))?;
        add_rows(x, rows, move |dy, grads| {
            let (first, row) = (offset * h.size(), s.size() * h.size());
            let mut dtable = vec![0.0; table.shape().num_elements()]; //      [ms, h]
            let dy = to_host(dy); //                                          [b, s, h]
            for text in 0..b.size() {
                let dy = &dy[text * row..][..row];
                dtable[first..][..row].iter_mut().zip(dy).for_each(|(sum, dy)| *sum += dy);
            }
            let dtable = from_host(table.device(), &dtable, *table.shape())?;
            add_gradient(grads, &table, dtable)
        })
    };
    run().map_err(Error::device)
}
// ANCHOR_END: learned

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

/// Learned positions, added to tokens `[b, s, H]`, alone or as `(x, offset)`. Row `t` is at position `offset + t`.
///
/// - `MS`: positions, the rows of the table. A text that ends past them is refused.
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
/// let y = PositionEncoding::<8, f32, Cpu>::on_tokens(&positions, x, 0);
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

    /// Draws the table anew. The same seed gives the same table.
    ///
    /// # Errors
    /// What the device reports; then the table is as it was.
    pub fn reset_parameters(&mut self) -> Result<()> {
        self.table.reset_parameters()
    }
}

/// Tokens, `[b, s, h]`.
type Tokens<B, S, const H: usize, F, D, T> = Tensor<(B, S, Const<H>), F, D, T>;

impl<const MS: usize, const H: usize, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<(Tokens<B, S, H, F, D, T>, usize)> for LearnedPositions<MS, H, F, D>
{
    type Output = Tokens<B, S, H, F, D, T>;
    type Error = Error;

    fn try_forward(&self, (x, offset): (Self::Output, usize)) -> Result<Self::Output> {
        add_learned_positions(x, &self.table.weight, offset)
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

impl<const MS: usize, const H: usize, F: Dtype, D: Storage<F>> NonMutableModule
    for LearnedPositions<MS, H, F, D>
{
}

impl<const MS: usize, const H: usize, F: Float, D: Backend<F>> TensorCollection<F, D>
    for LearnedPositions<MS, H, F, D>
{
    type To<F2: Dtype, D2: Device<F2>> = LearnedPositions<MS, H, F2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, F, D>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        visitor.visit_fields(
            Self::module("table", |positions| &positions.table, |positions| &mut positions.table),
            |table| LearnedPositions { table },
        )
    }
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
