//! Fault categories: what a mistake is about.

use serde::{Deserialize, Serialize};

/// A fault category: one side of a computation, which can be wrong while the others are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Means, squares and roots, and what they are taken over.
    Statistics,
    /// Where eps is, and how large it is.
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
    /// What ranks send each other, and when.
    Exchange,
    /// Which places of a text are asked about.
    Ignored,
    /// What a call keeps or changes.
    State,
    /// What is added to what, and which norm comes before it.
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

impl Category {
    /// The category of the same question about a gradient. What is wrong with the formula itself is wrong with the
    /// gradient's own formula there.
    pub fn of_gradient(self) -> Self {
        match self {
            Self::Lookup | Self::Rotation | Self::Gate | Self::Softmax | Self::Weights => {
                Self::Gradient
            }
            other => other,
        }
    }

    /// Whether a mistake of this category is one of the formula.
    pub fn is_of_a_formula(self) -> bool {
        use Category::{
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

    /// Whether a question that reveals this category may be the first that shows a mistake of another one.
    pub fn gives_way_to(self, other: Self) -> bool {
        use Category::{
            Choice, Exchange, Extent, Frequencies, Ignored, Lookup, Mask, Offset, Order, Precision,
            Range, Special, State, Statistics,
        };
        match other {
            _ if self.is_certain() => false,
            Precision | Mask | Offset => true,
            Range | Choice | Ignored => self != Special,
            State => matches!(self, Lookup | Frequencies | Extent),
            Statistics => matches!(self, Order | Exchange),
            Frequencies => self == Extent,
            _ => false,
        }
    }

    /// Whether a question that reveals it leaves no doubt.
    fn is_certain(self) -> bool {
        use Category::{Gradient, Mask, Offset, Precision, Range, Refusal, Seed, State};
        matches!(self, Mask | Offset | State | Precision | Range | Seed | Refusal | Gradient)
    }

    /// The category where the values are right and the tape's gradients are not: no formula is wrong.
    pub fn of_tape(self) -> Self {
        match self {
            Self::Precision | Self::State | Self::Refusal | Self::Extent | Self::Special => self,
            _ => Self::Gradient,
        }
    }

    /// In the words of a component, as a report has them.
    pub fn words(self, component: &str) -> &'static str {
        let of_ranks = ["parallel", "collectives"].contains(&component);
        match (self, component) {
            (Self::Statistics, "attention") => {
                "the softmax: what it is taken over, and what it is divided by"
            }
            (Self::Statistics, "biases") => {
                "the bias itself: how it grows with the distance, and what the softmax makes of it"
            }
            (Self::Statistics, "loss" | "collectives") => {
                "the statistics: sums and means, and what they are taken over"
            }
            (Self::Statistics, _) => {
                "the statistics: means, squares and roots, and what they are taken over"
            }
            (Self::Eps, _) => "eps: where it is added, and how large it is",
            (Self::Weights, _) => "the weights: how they are applied, and to which element",
            (Self::Precision, _) => "precision: float types, roundings, overflow",
            (Self::Order, _) => "the order: axes, layouts, pairs, strides",
            (Self::Lookup, "biases") => "the lookup: which number of the table a distance gets",
            (Self::Lookup, _) => "the lookup: which row a token gets",
            (Self::Mask, _) if of_ranks => "the mask: which tokens are the rank's own",
            (Self::Mask, _) => "the mask: which tokens are seen",
            (Self::Range, _) if of_ranks => "the range: where a shard begins and ends",
            (Self::Range, _) => "the range: where it begins and ends",
            (Self::Seed, _) => {
                "the random numbers: seed, distribution, the order in which they are drawn"
            }
            (Self::Offset, "loss") => "the position: which token is the target of which",
            (Self::Offset, _) => "the position: which one each row of the sequence has",
            (Self::Frequencies, "biases") => "the slopes and frequencies: base and exponents",
            (Self::Frequencies, _) => "the frequencies: base, exponents, ratio",
            (Self::Rotation, "absolute") => "the sinusoids: sines, cosines, signs, which of a pair",
            (Self::Rotation, _) => "the rotation: sines, cosines, signs, which half of a head",
            (Self::Gate, _) => "the gate: what opens it, and what passes it",
            (Self::Softmax, _) => {
                "the softmax: exponents, logarithms, what is subtracted before them"
            }
            (Self::Exchange, _) => "the exchange: what ranks send each other, in which calls",
            (Self::Ignored, _) => {
                "what is ignored: which places are asked about, and what the sum is divided by"
            }
            (Self::State, _) => "the state: what a call keeps or changes",
            (Self::Wiring, "model") => {
                "the wiring: what is added to what, and which norm comes before it"
            }
            (Self::Wiring, _) => "the wiring: what is added to what, and in which order",
            (Self::Choice, _) => "the choice: which tokens may be drawn, and which one is drawn",
            (Self::Gradient, _) => "the gradient: what the backward pass gives",
            (Self::Refusal, _) => "the refusal: what is refused, and in which words",
            (Self::Extent, _) => "the extent: right for some sizes and places, wrong for others",
            (Self::Special, _) => "special values: NaN, infinities, zeros",
        }
    }
}
