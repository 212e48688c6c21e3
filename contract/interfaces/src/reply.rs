//! What every implementation answers with.
//!
//! An implementation is anything that claims to be one of the components: the library, a learner's code,
//! PyTorch, a known bug. It gets plain values and gives plain values back. Tensors are flat
//! slices in row-major order with their shape beside them. No type of any tensor library
//! appears in an interface, so an implementation may be written in anything.
//!
//! Letters: `b` batch, `s` sequence, `h` hidden size, `gz` group size, `v` vocabulary size, `e`
//! embedding dimension, `w` world size, `r` rank, `n = v / w`, `nh` heads, `hd` head size.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Values, or a refusal.
pub type Reply<T> = Result<T, Refusal>;

/// Why there are no values: bad input, in the implementation's own words. Or the question did not reach the implementation; that
/// is no answer, and no invariant takes it for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal(
    /// The words.
    pub String,
    Origin,
);

/// How a refusal came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Origin {
    Implementation,
    NoSuchType,
    NotAsked,
}

impl Refusal {
    /// An implementation's refusal, with its words.
    pub fn new(words: impl fmt::Display) -> Self {
        Self(words.to_string(), Origin::Implementation)
    }

    /// An implementation that has its sizes in its types is not compiled for these, or can't be.
    pub fn not_compiled(sizes: impl fmt::Display) -> Self {
        let words = format!(
            "no module is compiled for {sizes}: the sizes that the invariant asks for are not in the menu"
        );
        Self(words, Origin::NoSuchType)
    }

    /// The question did not reach the implementation, and why.
    pub fn not_asked(why: impl fmt::Display) -> Self {
        Self(why.to_string(), Origin::NotAsked)
    }

    /// Whether the implementation has spoken.
    pub fn is_answer(&self) -> bool {
        self.1 == Origin::Implementation
    }

    /// Whether there is no type with these sizes.
    pub fn is_not_compiled(&self) -> bool {
        self.1 == Origin::NoSuchType
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// With this, `?` hands a refusal on from an invariant whose own errors are words.
impl From<Refusal> for String {
    fn from(refusal: Refusal) -> Self {
        refusal.0
    }
}

/// How a question reaches the code of an implementation. No answer may depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Manner {
    /// As it is.
    Plain,
    /// The input has a tape.
    Traced,
    /// The input is a view of a tensor with its axes the other way round; so is a table.
    Permuted,
    /// The input is one row of the batch, repeated by a stride of 0. Its rows are equal.
    Broadcast,
    /// A module that has answered another question is copied, and the copy answers.
    Cloned,
    /// The module has answered another question before.
    Again,
    /// The tensor is used twice, and each use gets a part of the gradient.
    UsedTwice,
    /// The tape that the input brings has an operation on it: what was computed before. Its gradient counts.
    Continued,
}

impl Manner {
    /// All but the plain one.
    pub const OTHERS: [Self; 7] = [
        Self::Traced,
        Self::Permuted,
        Self::Broadcast,
        Self::Cloned,
        Self::Again,
        Self::UsedTwice,
        Self::Continued,
    ];

    /// All.
    pub const ALL: [Self; 8] = {
        let [a, b, c, d, e, f, g] = Self::OTHERS;
        [Self::Plain, a, b, c, d, e, f, g]
    };

    /// As a report has it: nothing for a plain question.
    pub fn words(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Traced => "the input has a tape",
            Self::Permuted => {
                "the input is a permuted view: its elements lie in another order in memory"
            }
            Self::Broadcast => "the input is one batch row, broadcast",
            Self::Cloned => "asked of a clone, after another call",
            Self::Again => "asked after another call",
            Self::UsedTwice => "the input is used in two calls, and each gets a part of dy",
            Self::Continued => {
                "the input's tape has an earlier operation, and its gradient is asked too"
            }
        }
    }
}

/// The same elements with the axes the other way round: of `[b, s, h]` values, those of `[h, s, b]`, row by row. Permuted back it
/// is the tensor of [`Manner::Permuted`].
///
/// # Panics
/// There are fewer values than the shape has.
pub fn with_axes_reversed<E: Copy>(values: &[E], shape: &[usize]) -> Vec<E> {
    let mut places = vec![0];
    for (axis, length) in shape.iter().enumerate().rev() {
        let stride: usize = shape[axis + 1..].iter().product();
        places = places.iter().flat_map(|at| (0..*length).map(move |i| at + i * stride)).collect();
    }
    places.into_iter().map(|at| values[at]).collect()
}

/// Refuses `position_ids` that are not one for each token, `[b, s]`.
///
/// # Errors
/// Their number is another one.
pub fn one_each(position_ids: &[usize], [b, s]: [usize; 2]) -> Reply<()> {
    let got = position_ids.len();
    let words =
        || Refusal::new(format!("{got} position_ids are not one for each of [{b}, {s}] tokens"));
    (got == b * s).then_some(()).ok_or_else(words)
}

/// A call with `position_ids`, `[b, s]`, as calls with an offset: the tokens of a row whose positions go up by one, and their
/// part of `values`.
///
/// # Errors
/// As for [`one_each`].
///
/// # Panics
/// There are fewer values than tokens.
pub fn runs<'a>(
    position_ids: &'a [usize],
    tokens: [usize; 2],
    values: &'a [f32],
) -> Reply<Vec<(&'a [usize], &'a [f32])>> {
    one_each(position_ids, tokens)?;
    let width = values.len() / position_ids.len().max(1);
    let rows = position_ids.chunks(tokens[1].max(1));
    let runs = rows.flat_map(|row| row.chunk_by(|before, id| before.checked_add(1) == Some(*id)));
    let mut rest = values;
    let part = |ids: &'a [usize]| {
        let (own, others) = rest.split_at(ids.len() * width);
        rest = others;
        (ids, own)
    };
    Ok(runs.map(part).collect())
}

/// A normal distribution and a seed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NormalInit {
    /// Mean.
    pub mean: f32,
    /// Standard deviation, not variance.
    pub std: f32,
    /// Seed of the generator.
    pub seed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_ids_are_runs_of_offsets() {
        let values: Vec<f32> = (0..12).map(|i| i as f32).collect();
        // Padded, then packed. A row ends a run, regardless of what the next one begins with.
        let got = runs(&[0, 0, 1, 2, 3, 1], [2, 3], &values).unwrap();
        let ids: Vec<&[usize]> = got.iter().map(|(ids, _)| *ids).collect();
        assert_eq!(ids, [&[0][..], &[0, 1], &[2, 3], &[1]]);
        assert_eq!(got[2].1, [6.0, 7.0, 8.0, 9.0]);
        for n in [0, 5, 7] {
            assert!(runs(&vec![0; n], [2, 3], &values).is_err(), "{n}");
        }
    }

    #[test]
    fn the_first_axis_becomes_the_last() {
        assert_eq!(with_axes_reversed(&[0, 1, 2, 3, 4, 5], &[2, 3]), [0, 3, 1, 4, 2, 5]);
        let [b, s, h] = [2, 3, 5];
        let values: Vec<usize> = (0..b * s * h).collect();
        let turned = with_axes_reversed(&values, &[b, s, h]);
        for (i, j, k) in [(0, 0, 0), (1, 0, 0), (0, 2, 1), (1, 1, 4), (1, 2, 4)] {
            assert_eq!(turned[(k * s + j) * b + i], values[(i * s + j) * h + k]);
        }
    }
}
