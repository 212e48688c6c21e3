//! What can go wrong, said once.
//!
//! Every message states the rule, what was expected, what was got and what to do. A call that
//! returns an error has changed nothing.

use crate::checkpoint::problem::CheckpointProblem;
use crate::number::Number;
use crate::tensor::CpuError;
use crate::tensor::optim::OptimizerUpdateError;
use std::fmt::Display;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `h % gz != 0`, or `gz = 0`.
    #[error(
        "group size {group_size} does not divide hidden size {hidden_size}: \
         the hidden axis is split into groups of equal size; \
         choose a group size that divides {hidden_size}"
    )]
    GroupSize {
        /// `gz`, elements per group.
        group_size: usize,
        /// `h`, elements per token.
        hidden_size: usize,
    },

    /// A scalar setting outside its range.
    #[error("{name} must be {rule}, got {}", Number(*got))]
    Setting {
        /// The setting, as it is called in the configuration.
        name: &'static str,
        /// The rule, in words.
        rule: &'static str,
        /// The value that was given.
        got: f64,
    },

    /// An id that is not a row of the table.
    #[error(
        "token id {id} at position [{batch}, {position}] is outside the vocabulary: \
         ids must be below {vocab_size}; use the tokenizer that the table was made for"
    )]
    TokenId {
        /// The id.
        id: usize,
        /// Its row in the batch.
        batch: usize,
        /// Its place in the sequence.
        position: usize,
        /// `v`, rows of the whole table.
        vocab_size: usize,
    },

    /// `v % w != 0`, or `w = 0`.
    #[error("{}", world_size_rule(*world_size, *vocab_size))]
    WorldSize {
        /// `w`, the number of ranks.
        world_size: usize,
        /// `v`, rows of the whole table.
        vocab_size: usize,
    },

    /// `r >= w`.
    #[error("{}", rank_rule(*rank, *world_size))]
    Rank {
        /// `r`.
        rank: usize,
        /// `w`.
        world_size: usize,
    },

    /// An id that no rank owns.
    #[error(
        "id {id} has no owner: the ranks share the ids below {vocab_size}; use the tokenizer that the table was made \
         for"
    )]
    NoOwner {
        /// The id.
        id: usize,
        /// `v`, rows of the whole table.
        vocab_size: usize,
    },

    /// A row that a shard does not have.
    #[error(
        "row {row} is not in a shard of {rows} rows: choose a row below {rows}, or another rank"
    )]
    ShardRow {
        /// The row.
        row: usize,
        /// `n`, rows of a shard.
        rows: usize,
    },

    /// A table that the device can't address.
    #[error(
        "a table of {elements} elements is too large for this device: its addresses end at {limit}; \
         split the vocabulary across more ranks"
    )]
    TableTooLarge {
        /// `v * e`.
        elements: usize,
        /// The most elements.
        limit: usize,
    },

    /// `hd` odd, below 4 or above 65,536.
    #[error(
        "head size {head_dim} can't be rotated: it must be even, because dimensions turn in pairs, \
         at least 4, because the NTK exponent is d / (d - 2), and at most 65536"
    )]
    HeadDim {
        /// `hd`.
        head_dim: usize,
    },

    /// A dimension of size 0. dfdx 0.13 panics on empty tensors.
    #[error(
        "{name} has shape {shape:?}: every dimension must be at least 1; skip the call instead"
    )]
    Empty {
        /// What was empty.
        name: &'static str,
        /// Its shape.
        shape: Vec<usize>,
    },

    /// More elements than memory has addresses for.
    #[error(
        "{name} has shape {shape:?}: that is more than {limit} elements, the most that memory has \
         addresses for; use fewer in a call"
    )]
    TooLarge {
        /// What was too large.
        name: &'static str,
        /// Its shape.
        shape: Vec<usize>,
        /// The most elements.
        limit: usize,
    },

    /// Two shapes that must agree and do not.
    #[error("{name} must have shape {expected:?} to fit the other arguments, got {got:?}")]
    Shape {
        /// The tensor with the wrong shape.
        name: &'static str,
        /// The shape that would fit.
        expected: Vec<usize>,
        /// The shape that was given.
        got: Vec<usize>,
    },

    /// More positions than a table may have.
    #[error(
        "{rows} positions are too many: a table of angles may have {limit}; use a smaller \
         max_seq_len or ratio (with dynamic = false, a call past the table works without one)"
    )]
    TooManyPositions {
        /// Positions asked for.
        rows: usize,
        /// The limit.
        limit: usize,
    },

    /// A call past the table of a module that refuses it.
    #[error(
        "the call ends at position {end}, but the table has {cached_len} positions; choose a longer table \
         (max_position_embeddings in a config.json, max_position, or max_seq_len or ratio), or PastCache::Rescale where \
         the module has it and no keys are kept"
    )]
    PastCache {
        /// `offset + s`.
        end: usize,
        /// `es`, positions in the table.
        cached_len: usize,
    },

    /// Keys in a cache, and a text so long that RoPE turns the new ones by other frequencies.
    #[error(
        "with these tokens the text has {positions} positions, but RoPE's table has {cached_len}: further on the \
         frequencies change, and the keys in the cache no longer fit; choose a larger max_seq_len or ratio, or call \
         the model without a cache"
    )]
    KeptKeys {
        /// Positions in the cache, with the new tokens.
        positions: usize,
        /// `es`, positions in RoPE's table.
        cached_len: usize,
    },

    /// Rows that a table does not have.
    #[error(
        "rows {start}..{end} are not in a table of {rows} rows: a range has at least one row and \
         ends at {rows} or before; choose one that does, or build a longer table"
    )]
    Rows {
        /// First row asked for.
        start: usize,
        /// The row after the last.
        end: usize,
        /// Rows of the table.
        rows: usize,
    },

    /// A position that a table does not have.
    #[error(
        "position id {id} at [{batch}, {token}] is not in a table of {rows} positions: position ids must be below \
         {rows}; let each text begin at 0, or build a longer table"
    )]
    PositionId {
        /// The position.
        id: usize,
        /// Its row in the batch.
        batch: usize,
        /// Its place in the row.
        token: usize,
        /// Rows of the table.
        rows: usize,
    },

    /// `offset + s` does not fit in `usize`.
    #[error("offset {offset} + sequence length {length} is larger than the largest usize")]
    PositionOverflow {
        /// Position of the first row.
        offset: usize,
        /// `s`.
        length: usize,
    },

    /// `nh % nkv != 0`.
    #[error(
        "{num_kv_heads} key and value heads can't be shared by {num_heads} query heads: each is read by the \
         same number of them; make the number of query heads a multiple of {num_kv_heads}"
    )]
    KeyValueHeads {
        /// `nh`, query heads.
        num_heads: usize,
        /// `nkv`, key and value heads.
        num_kv_heads: usize,
    },

    /// `t < s`.
    #[error(
        "{queries} queries have {keys} keys: a query's own token has a key too, so there must be at least as \
         many keys as queries; pass the keys of all positions up to the last query"
    )]
    FewerKeys {
        /// `t`.
        keys: usize,
        /// `s`.
        queries: usize,
    },

    /// A row of nothing but padding.
    #[error(
        "batch row {row} has {padding} tokens of padding in {length} positions: at least 1 must be left; leave \
         the row out"
    )]
    Padding {
        /// The row of the batch.
        row: usize,
        /// Its tokens of padding.
        padding: usize,
        /// Its positions.
        length: usize,
    },

    /// `p + s` is more than the cache was made for.
    #[error(
        "the cache is full: it has {positions} of {capacity} positions, and {asked} more were asked for; make it \
         larger, or begin a new one with the last part of the text"
    )]
    CacheFull {
        /// `p`, the positions that are kept.
        positions: usize,
        /// The most positions.
        capacity: usize,
        /// `s`, positions that came.
        asked: usize,
    },

    /// A cache that would be cut past its end.
    #[error(
        "the cache has {kept} positions, and can't be cut to {positions}: cut it to at most {kept}"
    )]
    BehindCache {
        /// `p`, the positions that are kept.
        kept: usize,
        /// The positions that should be left.
        positions: usize,
    },

    /// A query of linear attention whose weights are all 0.
    #[error(
        "linear attention divides by the sum of a query's weights, and at token {token} of head {head} in batch row {batch} \
         it is 0: a feature is exp(x) below 0, and the products of such features are too small for the float type; make \
         queries and keys smaller in size, or compute in a wider type"
    )]
    NoWeight {
        /// The query's row in the batch.
        batch: usize,
        /// Its head.
        head: usize,
        /// Its place in this call.
        token: usize,
    },

    /// A weight file that can't be written, read, or does not fit the module.
    #[error("{path}: {reason}")]
    Weights {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A checkpoint that can't be read, or is not one of a model that is computed here.
    #[error("{path}: {problem}")]
    Checkpoint {
        /// The file, or the folder if no single file is at fault.
        path: String,
        /// What is wrong with it.
        problem: CheckpointProblem,
    },

    /// A part of a model from outside this crate refused its input.
    #[error("a part of the model refused: {0}")]
    Part(String),

    /// An optimizer that did not get a gradient for every weight.
    #[error(
        "the optimizer refused: {0}; trace the input of every module that it updates, \
         each with its own `trace`"
    )]
    Update(String),

    /// A part of a head that can't turn.
    #[error(
        "{rotary_dim} of the {head_dim} elements of a head can't turn: the part that turns is its first elements, in \
         pairs; choose an even number from 2 to {head_dim}"
    )]
    RotaryDim {
        /// Elements that were to turn.
        rotary_dim: usize,
        /// `hd`.
        head_dim: usize,
    },

    /// The device refused, for example because it has no memory left.
    #[error("the device reports: {0}")]
    Device(String),
}

impl Error {
    /// Wraps what a dfdx device reports.
    ///
    /// Each device has its own error type. `?` converts that of a known device by itself. In code
    /// that is generic over the device `D`, say `where Error: From<D::Err>`, or call this.
    ///
    /// ```
    /// use quadrivium::error::{Error, Result};
    /// use quadrivium::tensor::*;
    ///
    /// fn halves(dev: &Cpu) -> Result<Tensor<Rank1<2>, f32, Cpu>> {
    ///     Ok(dev.try_ones::<Rank1<2>>()?.try_mul(0.5)?)
    /// }
    ///
    /// fn halves_on<D: Device<f32>>(dev: &D) -> Result<Tensor<Rank1<2>, f32, D>>
    /// where
    ///     Error: From<D::Err>,
    /// {
    ///     Ok(dev.try_ones::<Rank1<2>>()?.try_mul(0.5)?)
    /// }
    ///
    /// let dev = Cpu::default();
    /// assert_eq!(halves(&dev)?.array(), halves_on(&dev)?.array());
    /// let error = Error::from(CpuError::OutOfMemory);
    /// assert_eq!(error.to_string(), "the device reports: CpuError::OutOfMemory");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn device<E: Display>(error: E) -> Self {
        Self::Device(error.to_string())
    }
}

/// Settings that [`CheckpointConfig::parse`](crate::checkpoint::CheckpointConfig::parse) refused: of a text, which has no
/// path.
impl From<CheckpointProblem> for Error {
    fn from(problem: CheckpointProblem) -> Self {
        Self::Checkpoint { path: "config.json".into(), problem }
    }
}

impl From<CpuError> for Error {
    fn from(error: CpuError) -> Self {
        Self::device(error)
    }
}

#[cfg(feature = "cuda")]
impl From<crate::tensor::CudaError> for Error {
    fn from(error: crate::tensor::CudaError) -> Self {
        Self::device(error)
    }
}

impl<E: Display> From<OptimizerUpdateError<E>> for Error {
    fn from(error: OptimizerUpdateError<E>) -> Self {
        match error {
            OptimizerUpdateError::DeviceError(error) => Self::device(error),
            OptimizerUpdateError::UnusedParams(unused) => {
                Self::Update(format!("{} weights have no gradient", unused.ids.len()))
            }
        }
    }
}

const NO_RANKS: &str = "world size is 0, but there is at least 1 rank: pass the number of ranks";

fn world_size_rule(world_size: usize, vocab_size: usize) -> String {
    if world_size == 0 {
        return NO_RANKS.into();
    }
    format!(
        "world size {world_size} does not divide vocabulary size {vocab_size}: \
         every rank owns the same number of rows; pad the vocabulary to a multiple of {world_size}"
    )
}

fn rank_rule(rank: usize, world_size: usize) -> String {
    if world_size == 0 {
        return NO_RANKS.into();
    }
    format!("rank {rank} does not exist in a world of {world_size}: ranks are 0 to world_size - 1")
}
