//! Why ranks stop, said in the same words on every rank.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call of several ranks failed.
///
/// What all ranks have agreed on is the same value on all of them: [`Error::Refused`], [`Error::Apart`],
/// [`Error::Elsewhere`], [`Error::Setup`]. The others depend on who could still be heard.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A rank refused its own input before anything was exchanged.
    #[error("rank {rank} refused: {why}")]
    Refused {
        /// The lowest rank that refused.
        rank: usize,
        /// What it said.
        why: Refusal,
    },

    /// A rank with other input than the others.
    #[error(
        "rank {rank} has other input than {others} in {call}: the ranks of a table read the same batch; give \
         all of them the same tokens in the same order"
    )]
    Apart {
        /// The lowest rank that differs from most.
        rank: usize,
        /// From whom.
        others: Others,
        /// The call, in words.
        call: String,
    },

    /// A rank that makes another call than the others.
    #[error(
        "rank {rank} is at {its}, {others} at {theirs}: every rank must make the same calls in the same \
         order; take the call out of the condition that only some ranks meet"
    )]
    Elsewhere {
        /// The lowest rank that differs from most.
        rank: usize,
        /// Its call, in words.
        its: String,
        /// From whom it differs.
        others: Others,
        /// Their call.
        theirs: String,
    },

    /// A rank that was not heard in time.
    #[error(
        "rank {rank} did not come to {call} within {seconds} s; it is stuck or very slow: look at that process, or \
         wait longer with --patience"
    )]
    Missing {
        /// Who.
        rank: usize,
        /// Where the others wait, in words.
        call: String,
        /// How long they did.
        seconds: u64,
    },

    /// A rank that has ended.
    #[error("rank {rank} ended before {call}: its own message says why")]
    Gone {
        /// Who.
        rank: usize,
        /// Where the others wait, in words.
        call: String,
    },

    /// A rank that was started with other settings.
    #[error(
        "rank {rank} was started with {what} {its}, {others} with {theirs}: all ranks need the same; start them \
         by one command, and copy one build of the program to all hosts"
    )]
    Setup {
        /// The lowest rank that differs from most.
        rank: usize,
        /// The setting.
        what: String,
        /// Its value there.
        its: String,
        /// From whom it differs.
        others: Others,
        /// Its value on most ranks.
        theirs: String,
    },

    /// Blocks of rows that do not fill a shard.
    #[error(
        "blocks of {block} rows do not fill a shard of {rows}: in the fixed order, rows are added up in blocks that \
         no rank cuts; choose a block that divides {rows}"
    )]
    Block {
        /// Rows of a block.
        block: usize,
        /// `n`, rows of a shard.
        rows: usize,
    },

    /// A grid that the ranks do not fill.
    #[error(
        "{ranks} ranks are no grid with {world_size} shards: each copy of the model has {world_size} ranks; choose \
         a number of ranks that {world_size} divides"
    )]
    Grid {
        /// Ranks in all.
        ranks: usize,
        /// `w`, ranks that share one model.
        world_size: usize,
    },

    /// Weights that should be the same on all ranks and are not.
    #[error(
        "rank {rank} has other gradients than {others} of what every rank has, and the copies would drift apart; all-reduce the \
         gradient of the output's input and, in blocks that are cut, that of the tokens"
    )]
    Replicas {
        /// The lowest rank that differs from most.
        rank: usize,
        /// From whom.
        others: Others,
    },

    /// A checkpoint that can't be written or read.
    #[error("{path}: {reason}")]
    Checkpoint {
        /// The file or folder.
        path: String,
        /// What is wrong with it, and what to do.
        reason: String,
    },

    /// A setting outside its range.
    #[error("{name} must be {rule}, got {got}")]
    Setting {
        /// The option.
        name: &'static str,
        /// The rule, in words.
        rule: String,
        /// What was given.
        got: String,
    },

    /// Programs could not be started or spoken with.
    #[error("{what}: {reason}")]
    Start {
        /// What was tried.
        what: String,
        /// What went wrong, and what to do.
        reason: String,
    },

    /// What the ranks of another group have agreed on, in words.
    #[error("{0}")]
    Told(String),

    /// The library refused.
    #[error(transparent)]
    Library(#[from] quadrivium::Error),
}

impl From<model::error::Error> for Error {
    fn from(error: model::error::Error) -> Self {
        Self::Told(error.to_string())
    }
}

/// From whom a rank differs: from most; or, where as many have its value as another one, from the first that has that one.
/// No one can know then who is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// From most.
    Most,
    /// From this rank.
    Rank(usize),
}

impl Display for Others {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Most => f.write_str("the others"),
            Self::Rank(rank) => write!(f, "rank {rank}"),
        }
    }
}

/// What a rank refused, in a form that can be sent to the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// As [`quadrivium::Error::TokenId`].
    TokenId {
        /// The id.
        id: usize,
        /// Its row in the batch.
        batch: usize,
        /// Its place in the sequence.
        position: usize,
        /// `v`.
        vocab_size: usize,
    },
    /// What another rank refused, sent to those that did not hear it.
    Heard {
        /// That rank.
        rank: usize,
        /// What it said.
        why: Box<Refusal>,
    },
    /// An error on which the ranks of a smaller group have agreed, in words.
    Told(String),
    /// Anything else, in words.
    Other(String),
}

impl From<quadrivium::Error> for Refusal {
    fn from(error: quadrivium::Error) -> Self {
        match error {
            quadrivium::Error::TokenId { id, batch, position, vocab_size } => {
                Self::TokenId { id, batch, position, vocab_size }
            }
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused { rank, why } => Self::Heard { rank, why: why.into() },
            Error::Library(error) => error.into(),
            agreed @ (Error::Apart { .. }
            | Error::Elsewhere { .. }
            | Error::Replicas { .. }
            | Error::Told(_)) => Self::Told(agreed.to_string()),
            other => Self::Other(other.to_string()),
        }
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::TokenId { id, batch, position, vocab_size } => {
                let (id, batch, position, vocab_size) = (*id, *batch, *position, *vocab_size);
                quadrivium::Error::TokenId { id, batch, position, vocab_size }.fmt(f)
            }
            Self::Heard { why, .. } => why.fmt(f),
            Self::Told(words) | Self::Other(words) => f.write_str(words),
        }
    }
}
