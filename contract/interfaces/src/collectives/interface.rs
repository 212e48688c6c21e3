//! The interface of the collectives: what an implementation is asked, and what its ranks answer.
//!
//! An implementation is the program of ONE rank. The caller runs it on every rank of a world at once, with
//! [`super::world`], and hands on what each rank came to.

use crate::describe::List;
pub use crate::interface::{Refusal, Reply};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// One rank's way to the others.
///
/// `all_reduce_sum`, `all_reduce_max` and `all_gather` are *collectives*: every rank makes the same calls in the same order,
/// with equally many values, and none goes on before all have come.
pub trait Communicator {
    /// `r`, from 0 on.
    fn rank(&self) -> usize;

    /// `w`.
    fn world_size(&self) -> usize;

    /// Element by element, the sum of all ranks' values, in their place. In which order it adds is the engine's own.
    fn all_reduce_sum(&self, values: &mut [f32]) -> Result<(), Trouble>;

    /// Element by element, the largest of all ranks' values, in their place. What is no number is passed over.
    fn all_reduce_max(&self, values: &mut [f32]) -> Result<(), Trouble>;

    /// The values of rank 0, then those of rank 1, and so on: `w` times as many.
    fn all_gather(&self, values: &[f32]) -> Result<Vec<f32>, Trouble>;
}

/// A collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// [`Communicator::all_reduce_sum`].
    Sum,
    /// [`Communicator::all_reduce_max`].
    Max,
    /// [`Communicator::all_gather`].
    Gather,
}

/// A collective that a rank has called, and with how many values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankCall {
    /// Which.
    pub kind: Kind,
    /// How many values it brought.
    pub values: usize,
    /// Which of its calls it was, from 1 on.
    pub nth: usize,
}

/// Why a collective can't come to its end. All ranks that are in one, or call one later, get the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trouble {
    /// A rank waits for one that has ended and will never call.
    Gone {
        /// The first rank that waits.
        rank: usize,
        /// What it has called.
        call: RankCall,
        /// The first rank that has ended.
        gone: usize,
    },
    /// Two ranks are in different collectives, or bring other numbers of values.
    Apart {
        /// The first rank.
        rank: usize,
        /// What it has called.
        call: RankCall,
        /// The first rank whose call is another one.
        other: usize,
        /// What that has called.
        its: RankCall,
    },
}

/// A rank that is lost on the way: it is gone in the middle of its program, as a process that was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Which.
    pub rank: usize,
    /// How many collectives it still goes through.
    pub after: usize,
}

/// Why a rank has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RankError {
    /// A target that is not below the vocabulary size: the first of them.
    Target {
        /// The target.
        target: usize,
        /// Its place among the tokens.
        place: usize,
        /// `v`, of the whole vocabulary.
        vocab_size: usize,
    },
    /// What the communicator reports.
    Ranks(Trouble),
}

impl From<Trouble> for RankError {
    fn from(trouble: Trouble) -> Self {
        Self::Ranks(trouble)
    }
}

/// The loss, and its gradient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entropy {
    /// The mean over all tokens.
    pub loss: f32,
    /// `[t, n]`: of this rank's own logits.
    pub dlogits: Vec<f32>,
}

/// How a rank has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RankOutcome<T> {
    /// With a result.
    Result(T),
    /// With its own error, or one that it was given.
    Refused(RankError),
    /// With a panic: its words.
    Panicked(String),
    /// It was lost, as the case asks.
    Lost,
}

/// How all ranks have ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct World<T> {
    /// Each rank, in their order.
    pub ranks: Vec<RankOutcome<T>>,
    /// The collective that could not come to its end, whether or not a rank said so.
    pub trouble: Option<Trouble>,
    /// How many values each rank has handed to the others, in all its calls.
    pub handed: Vec<usize>,
}

/// One loss, with the vocabulary split across ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EntropyCase {
    /// `w`; it divides `v`.
    pub world_size: usize,
    /// `v`.
    pub vocab_size: usize,
    /// `[t, v]`, those of all ranks: rank `r` gets the columns from `r n` to `(r + 1) n`.
    pub logits: Vec<f32>,
    /// `[t]`, the same for all ranks.
    pub targets: Vec<usize>,
    /// None, except where what happens then is asked.
    pub lost: Option<Lost>,
}

impl EntropyCase {
    /// `n`, ids of a rank.
    pub fn own(&self) -> usize {
        self.vocab_size / self.world_size
    }

    /// `[t, n]`: the logits of a rank.
    pub fn logits_of(&self, rank: usize) -> Vec<f32> {
        let n = self.own();
        self.logits.chunks(self.vocab_size).flat_map(|row| &row[rank * n..][..n]).copied().collect()
    }
}

/// One sum over blocks that lie on ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SumCase {
    /// `w`, a power of 2.
    pub world_size: usize,
    /// `m`, a power of 2, and at least `w`: rank `r` has the blocks from `r m / w` to `(r + 1) m / w`.
    pub blocks: usize,
    /// Elements of a block.
    pub len: usize,
    /// `[m, len]`.
    pub values: Vec<f32>,
    /// None, except where what happens then is asked.
    pub lost: Option<Lost>,
}

impl SumCase {
    /// `[m / w, len]`: the blocks of a rank.
    pub fn values_of(&self, rank: usize) -> &[f32] {
        let own = self.blocks / self.world_size * self.len;
        &self.values[rank * own..][..own]
    }
}

/// What ranks compute together. The answer to bad input is a world too: how each rank has refused it.
pub trait Collectives {
    /// Cross-entropy, `mean of -log softmax(logits)[target]`, and its gradient.
    fn entropy(&self, case: &EntropyCase) -> Reply<World<Entropy>>;

    /// The sum of all blocks, on each rank, in the order of a tree: `sum(first half) + sum(second half)`.
    fn tree_sum(&self, case: &SumCase) -> Reply<World<Vec<f32>>>;
}

// Words.

impl Display for RankCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { kind, values, nth } = self;
        let name = match kind {
            Kind::Sum => "all_reduce_sum",
            Kind::Max => "all_reduce_max",
            Kind::Gather => "all_gather",
        };
        let s = if *values == 1 { "" } else { "s" };
        write!(f, "{name} of {values} value{s} (its call {nth})")
    }
}

impl Display for Trouble {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone { rank, call, gone } => write!(
                f,
                "rank {rank} waits in {call} for rank {gone}, which has ended: all ranks must make the same calls, so \
                 call it on every rank, under no condition"
            ),
            Self::Apart { rank, call, other, its } => write!(
                f,
                "rank {rank} is in {call}, and rank {other} in {its}: all ranks must make the same calls in the same \
                 order, with equally many values"
            ),
        }
    }
}

impl Display for RankError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target { target, place, vocab_size } => {
                write!(f, "target {target} of token {place} is not below the vocabulary size {vocab_size}")
            }
            Self::Ranks(trouble) => write!(f, "{trouble}"),
        }
    }
}

impl Error for Trouble {}
impl Error for RankError {}

// The cases as a report shows them.

impl Display for EntropyCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { world_size, vocab_size, logits, targets, lost } = self;
        writeln!(f, "{world_size} ranks, each with {} of {vocab_size} ids", self.own())?;
        told_lost(f, *lost)?;
        writeln!(f, "logits [{}, {vocab_size}], of all ranks", targets.len())?;
        writeln!(f, "logits  = {}", List(logits))?;
        write!(f, "targets = {}", List(targets))
    }
}

impl Display for SumCase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { world_size, blocks, len, values, lost } = self;
        let own = blocks / world_size;
        let s = if own == 1 { "" } else { "s" };
        writeln!(f, "{world_size} ranks, each with {own} block{s} of {len} values")?;
        told_lost(f, *lost)?;
        write!(f, "blocks [{blocks}, {len}] = {}", List(values))
    }
}

fn told_lost(f: &mut Formatter<'_>, lost: Option<Lost>) -> fmt::Result {
    match lost {
        None => Ok(()),
        Some(Lost { rank, after: 0 }) => writeln!(f, "rank {rank} is lost before its first call"),
        Some(Lost { rank, after }) => writeln!(f, "rank {rank} is lost after its call {after}"),
    }
}
