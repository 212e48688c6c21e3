//! The interface of absolute positions: what an implementation is asked, and what it answers.

use crate::describe::List;
use crate::interface::runs;
pub use crate::interface::{Manner, Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::ops::Range;

/// Tokens that get sinusoids.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SinusoidCase {
    /// `[b, s, h]`.
    pub shape: [usize; 3],
    /// Base of the frequencies.
    pub base: f64,
    /// Position of row 0.
    pub offset: usize,
    /// `[b, s, h]`.
    pub x: Vec<f32>,
}

/// Tokens that get rows of a learned table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedCase {
    /// `[b, s, h]`.
    pub shape: [usize; 3],
    /// `ms`, the rows of the table.
    pub max_seq_len: usize,
    /// `[ms, h]`.
    pub table: Vec<f32>,
    /// Position of row 0.
    pub offset: usize,
    /// `[b, s, h]`.
    pub x: Vec<f32>,
}

impl SinusoidCase {
    /// The calls with an offset that ask what one with these `position_ids`, `[b, s]`, does.
    ///
    /// # Errors
    /// There is not one for each token.
    pub fn runs(&self, position_ids: &[usize]) -> Reply<Vec<Self>> {
        let [b, s, h] = self.shape;
        let run = |(ids, x): (&[usize], &[f32])| {
            Self { shape: [1, ids.len(), h], base: self.base, offset: ids[0], x: x.to_vec() }
        };
        Ok(runs(position_ids, [b, s], &self.x)?.into_iter().map(run).collect())
    }
}

impl LearnedCase {
    /// The calls with an offset that ask what one with these `position_ids`, `[b, s]`, does.
    ///
    /// # Errors
    /// There is not one for each token.
    pub fn runs(&self, position_ids: &[usize]) -> Reply<Vec<Self>> {
        let [b, s, h] = self.shape;
        let run = |(ids, x): (&[usize], &[f32])| {
            Self { shape: [1, ids.len(), h], offset: ids[0], x: x.to_vec(), ..self.clone() }
        };
        Ok(runs(position_ids, [b, s], &self.x)?.into_iter().map(run).collect())
    }
}

/// What the backward pass through a learned table gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedGrads {
    /// `[b, s, h]`.
    pub dx: Vec<f32>,
    /// `[ms, h]`.
    pub dtable: Vec<f32>,
}

/// Positions that are added to tokens: sinusoids, and the rows of a learned table.
pub trait AbsolutePositions {
    /// The sinusoids of these positions, `[positions, h]`: `P[m, 2i] = sin(m w_i)`, `P[m, 2i + 1] = cos(m w_i)`, with
    /// `w_i = base^(-2i / h)`.
    fn table(&self, hidden_size: usize, base: f64, positions: Range<usize>) -> Reply<Vec<f32>>;

    /// The matrix `S`, `[h, h]`, with `P[m + steps] = S P[m]` for each position `m`.
    fn shift(&self, hidden_size: usize, base: f64, steps: usize) -> Reply<Vec<f32>>;

    /// `y[b, t] = x[b, t] + P[offset + t]`, `[b, s, h]`.
    fn add_sinusoids(&self, case: &SinusoidCase) -> Reply<Vec<f32>> {
        self.add_sinusoids_in(Manner::Plain, case)
    }

    /// The gradient of `x` for `dy`, `[b, s, h]`.
    fn sinusoids_backward(&self, case: &SinusoidCase, dy: &[f32]) -> Reply<Vec<f32>> {
        self.sinusoids_backward_in(Manner::Plain, case, dy)
    }

    /// `y[b, t] = x[b, t] + table[offset + t]`, `[b, s, h]`.
    fn add_learned(&self, case: &LearnedCase) -> Reply<Vec<f32>> {
        self.add_learned_in(Manner::Plain, case)
    }

    /// The gradients of `x` and of the table for `dy`, `[b, s, h]`.
    fn learned_backward(&self, case: &LearnedCase, dy: &[f32]) -> Reply<LearnedGrads> {
        self.learned_backward_in(Manner::Plain, case, dy)
    }

    /// [`AbsolutePositions::add_sinusoids`], asked in this manner.
    fn add_sinusoids_in(&self, manner: Manner, case: &SinusoidCase) -> Reply<Vec<f32>>;

    /// [`AbsolutePositions::sinusoids_backward`], asked in this manner.
    fn sinusoids_backward_in(
        &self,
        manner: Manner,
        case: &SinusoidCase,
        dy: &[f32],
    ) -> Reply<Vec<f32>>;

    /// [`AbsolutePositions::add_learned`], asked in this manner.
    fn add_learned_in(&self, manner: Manner, case: &LearnedCase) -> Reply<Vec<f32>>;

    /// [`AbsolutePositions::learned_backward`], asked in this manner.
    fn learned_backward_in(
        &self,
        manner: Manner,
        case: &LearnedCase,
        dy: &[f32],
    ) -> Reply<LearnedGrads>;

    // An implementation that only knows offsets is asked by them: once for each run of positions that go up by one.

    /// `y[b, t] = x[b, t] + P[position_ids[b, t]]`, `[b, s, h]`, with a position for each token, `[b, s]`; `case.offset` is
    /// not looked at.
    fn add_sinusoids_at(
        &self,
        manner: Manner,
        case: &SinusoidCase,
        position_ids: &[usize],
    ) -> Reply<Vec<f32>> {
        let runs = case.runs(position_ids)?;
        let parts: Vec<_> =
            runs.iter().map(|run| self.add_sinusoids_in(manner, run)).collect::<Reply<_>>()?;
        Ok(parts.concat())
    }

    /// `y[b, t] = x[b, t] + table[position_ids[b, t]]`, likewise.
    fn add_learned_at(
        &self,
        manner: Manner,
        case: &LearnedCase,
        position_ids: &[usize],
    ) -> Reply<Vec<f32>> {
        let runs = case.runs(position_ids)?;
        let parts: Vec<_> =
            runs.iter().map(|run| self.add_learned_in(manner, run)).collect::<Reply<_>>()?;
        Ok(parts.concat())
    }

    /// The gradients of `x` and of the table through it for `dy`, `[b, s, h]`.
    fn learned_backward_at(
        &self,
        manner: Manner,
        case: &LearnedCase,
        position_ids: &[usize],
        dy: &[f32],
    ) -> Reply<LearnedGrads> {
        let mut all = LearnedGrads { dx: Vec::new(), dtable: vec![0.0; case.table.len()] };
        for run in case.runs(position_ids)? {
            let dy = &dy[all.dx.len()..][..run.x.len()];
            let LearnedGrads { dx, dtable } = self.learned_backward_in(manner, &run, dy)?;
            all.dx.extend(dx);
            all.dtable.iter_mut().zip(dtable).for_each(|(sum, part)| *sum += part);
        }
        Ok(all)
    }
}

// The cases as a report shows them.

impl Display for SinusoidCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, base, offset, x } = self;
        writeln!(f, "x {shape:?}, sinusoids of base {base}, offset {offset}")?;
        write!(f, "x     = {}", List(x))
    }
}

impl Display for LearnedCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape, max_seq_len, table, offset, x } = self;
        writeln!(f, "x {shape:?}, table [{max_seq_len}, {}], offset {offset}", shape[2])?;
        writeln!(f, "x     = {}", List(x))?;
        write!(f, "table = {}", List(table))
    }
}
