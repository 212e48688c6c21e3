//! What a mistake is about.

use serde::{Deserialize, Serialize};

/// One side of a computation, which can be wrong while the others are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aspect {
    /// Means, squares and roots, and what they are taken over.
    Statistics,
    /// Where eps stands, and how large it is.
    Eps,
    /// How the weights are applied.
    Weights,
    /// Float types, roundings, overflow.
    Precision,
    /// Axes, layouts, pairs, strides.
    Order,
    /// Which row of a table a token gets.
    Lookup,
    /// Which tokens belong to a rank, or are seen.
    Mask,
    /// The edges of a shard.
    Range,
    /// How random numbers are drawn.
    Seed,
    /// Which position a row of the sequence has.
    Offset,
    /// Base, exponents, ratio.
    Frequencies,
    /// Sines, cosines, signs, and which half of a head.
    Rotation,
    /// What opens a gate, and what passes it.
    Gate,
    /// Exponents, logarithms, and what is subtracted before them.
    Softmax,
    /// What ranks tell each other, and when.
    Exchange,
    /// Which places of a text are asked about.
    Ignored,
    /// What a call keeps or changes.
    State,
    /// What is added to what, and which norm stands before it.
    Wiring,
    /// Which tokens may be drawn, and which one is.
    Choice,
    /// The way back, where the values are right.
    Gradient,
    /// What is refused, and the words.
    Refusal,
    /// Sizes, counts and places: right for some, wrong for others.
    Extent,
    /// NaN, infinities, zeros.
    Special,
}

impl Aspect {
    /// The aspect of the same question about a gradient. What is wrong with the formula itself is wrong with the
    /// gradient's own formula there.
    pub fn of_gradient(self) -> Self {
        match self {
            Self::Lookup | Self::Rotation | Self::Gate | Self::Softmax => Self::Gradient,
            other => other,
        }
    }

    /// Whether a mistake of this aspect is one of the formula.
    pub fn is_of_a_formula(self) -> bool {
        use Aspect::{
            Frequencies, Gate, Gradient, Order, Rotation, Softmax, Statistics, Weights, Wiring,
        };
        matches!(
            self,
            Statistics
                | Weights
                | Order
                | Rotation
                | Frequencies
                | Gate
                | Softmax
                | Wiring
                | Gradient
        )
    }

    /// The aspect where the values are right and the tape's gradients are not: no formula is wrong.
    pub fn of_tape(self) -> Self {
        match self {
            Self::Precision | Self::State | Self::Refusal | Self::Extent | Self::Special => self,
            _ => Self::Gradient,
        }
    }

    /// In words, as a report has them.
    pub fn words(self) -> &'static str {
        match self {
            Self::Statistics => {
                "the statistics: means, squares and roots, and what they are taken over"
            }
            Self::Eps => "eps: where it stands, and how large it is",
            Self::Weights => "the weights: how they are applied, and to which element",
            Self::Precision => "precision: float types, roundings, overflow",
            Self::Order => "the order: axes, layouts, pairs, strides",
            Self::Lookup => "the lookup: which row a token gets",
            Self::Mask => "the mask: which tokens are seen, or are the rank's own",
            Self::Range => "the range: where a shard begins and ends",
            Self::Seed => {
                "the random numbers: seed, distribution, the order in which they are drawn"
            }
            Self::Offset => "the position: which one a row of the sequence has",
            Self::Frequencies => "the frequencies: base, exponents, ratio",
            Self::Rotation => "the rotation: sines, cosines, signs, which half of a head",
            Self::Gate => "the gate: what opens it, and what passes it",
            Self::Softmax => "the softmax: exponents, logarithms, what is subtracted before them",
            Self::Exchange => "the exchange: what ranks tell each other, in which calls",
            Self::Ignored => {
                "what is ignored: which places are asked about, and by how many is divided"
            }
            Self::State => "the state: what a call keeps or changes",
            Self::Wiring => "the wiring: what is added to what, and which norm stands before it",
            Self::Choice => "the choice: which tokens may be drawn, and which one is",
            Self::Gradient => "the gradient: what the backward pass gives",
            Self::Refusal => "the refusal: what is refused, and its words",
            Self::Extent => {
                "the extent: it is right for some sizes and places, and wrong for others"
            }
            Self::Special => "special values: NaN, infinities, zeros",
        }
    }
}
