//! The interface of biases in the scores: what an implementation is asked, and what it answers.
//!
//! Letters: `nh` heads, `hd` head size, `s` queries, `t` keys. The queries are the LAST `s` of the `t` positions, so
//! query `i` is at position `m = t - s + i`, key `n` at position `n`, and `j = m - n` is their distance.

use crate::describe::List;
pub use crate::interface::{Manner, Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// Causal attention with ALiBi, up to its weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlibiCase {
    /// `[s, t, nh, hd]`.
    pub shape: [usize; 4],
    /// `[s, nh, hd]`.
    pub q: Vec<f32>,
    /// `[t, nh, hd]`.
    pub k: Vec<f32>,
}

/// The bucket of one pair of positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketCase {
    /// Position of the key minus that of the query: negative for an earlier key.
    pub relative: i64,
    /// Whether later keys have their own buckets. If not, a later key counts as distance 0.
    pub bidirectional: bool,
    /// Of both directions together.
    pub num_buckets: usize,
    /// The distance from which on all are in the last bucket.
    pub max_distance: usize,
}

/// T5's bias between queries and keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct T5Case {
    /// `[s, t]`.
    pub shape: [usize; 2],
    /// `nh`.
    pub num_heads: usize,
    /// As in [`BucketCase`].
    pub bidirectional: bool,
    /// As in [`BucketCase`].
    pub num_buckets: usize,
    /// As in [`BucketCase`].
    pub max_distance: usize,
    /// What was learned, `[num_buckets, nh]`.
    pub table: Vec<f32>,
}

/// How KERPLE's bias falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kernel {
    /// `-r1 ln(1 + r2 j)`.
    Logarithmic,
    /// `-r1 j^r2`.
    Power,
}

/// KERPLE's bias at the distances `0 .. positions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KerpleCase {
    /// Which formula.
    pub kernel: Kernel,
    /// `[nh]`.
    pub r1: Vec<f32>,
    /// `[nh]`.
    pub r2: Vec<f32>,
    /// `t`.
    pub positions: usize,
}

/// What KERPLE's backward pass gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KerpleGrads {
    /// `[nh]`.
    pub dr1: Vec<f32>,
    /// `[nh]`.
    pub dr2: Vec<f32>,
}

/// Causal attention with Transformer-XL's positions, up to its weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct XlCase {
    /// `[b, s, nh, hd]`.
    pub shape: [usize; 4],
    /// `t`, at least `s`.
    pub keys: usize,
    /// `h`, elements of a sinusoid. Even.
    pub hidden_size: usize,
    /// Base of the sinusoids.
    pub base: f64,
    /// `[b, s, nh, hd]`.
    pub q: Vec<f32>,
    /// `[b, t, nh, hd]`.
    pub k: Vec<f32>,
    /// `[nh, hd]`.
    pub u: Vec<f32>,
    /// `[nh, hd]`.
    pub v: Vec<f32>,
    /// `W_r`, `[nh * hd, h]`.
    pub weight: Vec<f32>,
}

/// Four ways to let a score know how far away its key is.
///
/// Where weights are asked for, they are the softmax of the scores over the keys that a query sees: its own and the earlier
/// ones. The others have weight 0. A term that is the same for all keys of a query may therefore be added to its
/// scores.
pub trait ScoreBiases {
    /// ALiBi's slopes, `[nh]`.
    fn slopes(&self, num_heads: usize) -> Reply<Vec<f64>>;

    /// The weights with ALiBi, `softmax(q k / sqrt(hd) - slope j)`, `[nh, s, t]`.
    fn alibi(&self, case: &AlibiCase) -> Reply<Vec<f32>>;

    /// T5's bucket.
    fn bucket(&self, case: &BucketCase) -> Reply<usize>;

    /// T5's bias for every query and every key, later ones too, `[nh, s, t]`.
    fn t5(&self, case: &T5Case) -> Reply<Vec<f32>> {
        self.t5_in(Manner::Plain, case)
    }

    /// The gradient of the table, `[num_buckets, nh]`, when `dy`, `[nh, s, t]`, is that of the bias.
    fn t5_backward(&self, case: &T5Case, dy: &[f32]) -> Reply<Vec<f32>> {
        self.t5_backward_in(Manner::Plain, case, dy)
    }

    /// KERPLE's bias, `[nh, t]`. An `r1` or `r2` below 0.01 counts as 0.01; an exponent above 2 counts as 2.
    fn kerple(&self, case: &KerpleCase) -> Reply<Vec<f32>> {
        self.kerple_in(Manner::Plain, case)
    }

    /// The gradients, when `dy`, `[nh, t]`, is that of the bias. A number outside its bounds gets the gradient that it would
    /// have at the bound.
    fn kerple_backward(&self, case: &KerpleCase, dy: &[f32]) -> Reply<KerpleGrads> {
        self.kerple_backward_in(Manner::Plain, case, dy)
    }

    /// The weights with Transformer-XL's positions, `softmax(((q + u) k + (q + v) W_r R_j) / sqrt(hd))`, `[b, nh, s, t]`.
    /// `R_j` is the sinusoid of the distance `j`, sines and cosines in turn.
    fn transformer_xl(&self, case: &XlCase) -> Reply<Vec<f32>> {
        self.transformer_xl_in(Manner::Plain, case)
    }

    /// [`ScoreBiases::t5`], asked in this manner.
    fn t5_in(&self, manner: Manner, case: &T5Case) -> Reply<Vec<f32>>;

    /// [`ScoreBiases::t5_backward`], asked in this manner.
    fn t5_backward_in(&self, manner: Manner, case: &T5Case, dy: &[f32]) -> Reply<Vec<f32>>;

    /// [`ScoreBiases::kerple`], asked in this manner.
    fn kerple_in(&self, manner: Manner, case: &KerpleCase) -> Reply<Vec<f32>>;

    /// [`ScoreBiases::kerple_backward`], asked in this manner.
    fn kerple_backward_in(
        &self,
        manner: Manner,
        case: &KerpleCase,
        dy: &[f32],
    ) -> Reply<KerpleGrads>;

    /// [`ScoreBiases::transformer_xl`], asked in this manner.
    fn transformer_xl_in(&self, manner: Manner, case: &XlCase) -> Reply<Vec<f32>>;
}

// The cases as a report shows them.

impl Display for AlibiCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape: [s, t, nh, hd], q, k } = self;
        writeln!(f, "the last {s} of {t} positions, {nh} heads of {hd}")?;
        writeln!(f, "q = {}", List(q))?;
        write!(f, "k = {}", List(k))
    }
}

impl Display for BucketCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { relative, bidirectional, num_buckets, max_distance } = self;
        write!(
            f,
            "key minus query {relative}, bidirectional {bidirectional}, num_buckets {num_buckets}, max_distance \
             {max_distance}"
        )
    }
}

impl Display for T5Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape: [s, t], num_heads, bidirectional, num_buckets, max_distance, table } =
            self;
        writeln!(
            f,
            "the last {s} of {t} positions, {num_heads} heads, bidirectional {bidirectional}, num_buckets \
             {num_buckets}, max_distance {max_distance}"
        )?;
        write!(f, "table = {}", List(table))
    }
}

impl Display for KerpleCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { kernel, r1, r2, positions } = self;
        write!(f, "{kernel:?}, r1 = {}, r2 = {}, {positions} positions", List(r1), List(r2))
    }
}

impl Display for XlCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { shape: [b, s, nh, hd], keys, hidden_size, base, q, k, u, v, weight } = self;
        writeln!(
            f,
            "{b} texts, the last {s} of {keys} positions, {nh} heads of {hd}, sinusoids of {hidden_size}, base {base}"
        )?;
        for (name, values) in [("q", q), ("k", k), ("u", u), ("v", v)] {
            writeln!(f, "{name}   = {}", List(values))?;
        }
        write!(f, "W_r = {}", List(weight))
    }
}
