//! Where tokens are in their texts: in a row from some position on, or each at its own position.

use crate::checks::{check_size, same_shape};
use crate::error::{Error, Result};
use crate::tensor::*;
use std::ops::Range;
use std::sync::Arc;

/// Where the tokens of a call, `[b, s]`, are in their texts.
///
/// An offset is such a value, `Positions::from(7)`: row `t` of every text is at `7 + t`. A tensor of `position_ids`,
/// `[b, s]`, is one too. It has a position for each token: where texts of different lengths are filled up at their
/// starts, where several texts are packed into one row, or wherever else a token is to be placed. Methods that take
/// positions take either.
///
/// A token whose position is not above that of the token before it begins a text. A model that is given `position_ids` lets
/// each token look at its own text only, and frequencies that follow the length of a text follow that of each text.
/// Positions may leave some out. What turns tokens or is added to them follows the positions; a bias by distance counts the
/// tokens between two, and does not see the gap.
///
/// ```
/// use quadrivium::position::Positions;
/// use quadrivium::tensor::*;
/// use quadrivium::{NtkAwareRope, NtkAwareRopeConfig};
///
/// let dev = Cpu::default();
/// let rope = NtkAwareRope::<4, _>::new(&dev, NtkAwareRopeConfig::default())?;
/// let x: Tensor<Rank4<1, 3, 1, 4>, f32, _> = dev.ones();
/// // Two texts in one row: the third token is the first of its text, so it is not turned.
/// let position_ids: Tensor<Rank2<1, 3>, usize, _> = dev.tensor([[0, 1, 0]]);
/// let y = rope.try_forward((x.clone(), &position_ids))?;
/// assert_eq!(y.array()[0][2], x.array()[0][2]);
/// // One token of padding before a text is `[0, 0, 1]`.
/// assert_eq!(Positions::padded(&[1], 0, 3), Positions::from(&dev.tensor([[0, 0, 1]])));
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Positions(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// Row `t` of each text is at so much more than `t`.
    From(usize),
    /// `[b, s]`, row by row.
    Each([usize; 2], Arc<[usize]>),
}

impl From<usize> for Positions {
    fn from(offset: usize) -> Self {
        Self(Kind::From(offset))
    }
}

impl From<&Positions> for Positions {
    fn from(positions: &Positions) -> Self {
        positions.clone() // shares what it holds
    }
}

impl<B: Dim, S: Dim, D: Storage<usize>> From<&Tensor<(B, S), usize, D>> for Positions {
    fn from(position_ids: &Tensor<(B, S), usize, D>) -> Self {
        let shape = *position_ids.shape();
        // dfdx has no vector of a tensor without elements.
        let ids = if shape.num_elements() == 0 { Vec::new() } else { position_ids.as_vec() };
        Self(Kind::Each(shape.concrete(), ids.into()))
    }
}

impl Positions {
    /// The positions of the tokens `before .. before + s` of each row, where the first `padding` tokens of a row are no
    /// text: a text begins after them, at position 0. Tokens of padding are at 0 too. Without `padding` no row has any.
    pub fn padded(padding: &[usize], before: usize, s: usize) -> Self {
        if padding.iter().all(|&pad| pad == 0) {
            return before.into();
        }
        let of_row = |pad: &usize| {
            let pad = *pad;
            (0..s).map(move |t| before.saturating_add(t).saturating_sub(pad))
        };
        Self(Kind::Each([padding.len(), s], padding.iter().flat_map(of_row).collect()))
    }

    /// The position of every text's first token, if the others follow it one by one in every text; `None` if each token
    /// has its own position.
    pub fn offset(&self) -> Option<usize> {
        match self.0 {
            Kind::From(offset) => Some(offset),
            Kind::Each(..) => None,
        }
    }

    /// For each token, `[b, s]`, how many tokens of its row come before its text. Empty if each row is one text.
    pub(crate) fn before(&self) -> Vec<usize> {
        let Kind::Each([_, s], ids) = &self.0 else { return Vec::new() };
        let mut before = Vec::with_capacity(ids.len());
        for row in ids.chunks((*s).max(1)) {
            let first = before.len();
            for text in texts(row) {
                before.resize(before.len() + text.len(), before.len() - first);
            }
        }
        before
    }

    /// Those of an input `[b, s, ..]`.
    ///
    /// # Errors
    /// An empty input; a position past the largest `usize`; `position_ids` of another shape.
    pub(crate) fn of<S: Shape>(&self, x: &S) -> Result<Places> {
        check_size("x", x)?;
        let (b, length) = (x.concrete()[0], x.concrete()[1]);
        match &self.0 {
            Kind::From(offset) => {
                let offset = *offset;
                let end = offset.checked_add(length);
                Ok(Places::Row(offset..end.ok_or(Error::PositionOverflow { offset, length })?))
            }
            Kind::Each(shape, ids) => {
                same_shape("position_ids", &[b, length], shape)?;
                Ok(Places::Each { s: length, ids: Arc::clone(ids) })
            }
        }
    }
}

/// The texts of a row: a token whose position is not above that of the one before begins another.
fn texts(row: &[usize]) -> impl Iterator<Item = &[usize]> {
    row.chunk_by(|before, after| before < after)
}

/// Positions of tokens, or which row of a table each token takes.
#[derive(Debug, Clone)]
pub(crate) enum Places {
    /// One after the other, and again for each text.
    Row(Range<usize>),
    /// One for each token, `[b, s]`.
    Each { s: usize, ids: Arc<[usize]> },
}

impl Places {
    /// How many rows a table of just these has.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Row(range) => range.len(),
            Self::Each { ids, .. } => ids.len(),
        }
    }

    /// That of a token, counted through all texts.
    #[inline(always)]
    pub(crate) fn of_token(&self, token: usize) -> usize {
        match self {
            Self::Row(range) => range.start + token % range.len(),
            Self::Each { ids, .. } => ids[token],
        }
    }

    /// The one after the last.
    pub(crate) fn end(&self) -> usize {
        match self {
            Self::Row(range) => range.end,
            Self::Each { ids, .. } => ids.iter().max().map_or(0, |last| last.saturating_add(1)),
        }
    }

    /// The length of the text of each of [`rows`](Self::rows), up to its last token here.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        match self {
            Self::Row(range) => vec![range.end; range.len()],
            Self::Each { s, ids } => {
                let texts = ids.chunks(*s).flat_map(texts);
                let length = |text: &[usize]| text[text.len() - 1].saturating_add(1);
                texts.flat_map(|text| vec![length(text); text.len()]).collect()
            }
        }
    }

    /// Refuses what is not below `rows`, the rows of a table.
    pub(crate) fn check_below(&self, rows: usize) -> Result<()> {
        match self {
            Self::Row(range) if range.end > rows => {
                Err(Error::Rows { start: range.start, end: range.end, rows })
            }
            Self::Row(_) => Ok(()),
            Self::Each { s, ids } => match ids.iter().position(|&id| id >= rows) {
                Some(at) => {
                    Err(Error::PositionId { id: ids[at], batch: at / s, token: at % s, rows })
                }
                None => Ok(()),
            },
        }
    }
}
