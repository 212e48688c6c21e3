//! The seam: what a party is asked, and what it answers.
//!
//! A party is anything that claims to be one of the components: the library, a learner's code,
//! PyTorch, a known bug. It gets plain values and gives plain values back. Tensors are flat
//! slices in row-major order with their shape beside them. No type of any tensor library
//! appears here, so a party may be written in anything.
//!
//! Letters: `b` batch, `s` sequence, `h` hidden size, `gz` group size, `v` vocabulary size, `e`
//! embedding dimension, `w` world size, `r` rank, `n = v / w`, `nh` heads, `hd` head size.

use std::fmt;
use std::ops::Range;

/// Values, or a refusal.
pub type Reply<T> = Result<T, Refusal>;

/// Why a party did not answer: bad input, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

impl Refusal {
    /// A refusal with these words.
    pub fn new(words: impl fmt::Display) -> Self {
        Self(words.to_string())
    }
}

/// One call of GroupRMSNorm.
#[derive(Debug, Clone, PartialEq)]
pub struct NormCase {
    /// `[b, s, h]`.
    pub shape: [usize; 3],
    /// `gz`, ELEMENTS per group.
    pub group_size: usize,
    /// Added to the mean square.
    pub eps: f64,
    /// `[h]`.
    pub gamma: Vec<f32>,
    /// `[b, s, h]`.
    pub x: Vec<f32>,
}

/// What GroupRMSNorm's backward pass gives.
#[derive(Debug, Clone, PartialEq)]
pub struct NormGrads {
    /// `[b, s, h]`.
    pub dx: Vec<f32>,
    /// `[h]`.
    pub dgamma: Vec<f32>,
}

/// `y = x / sqrt(mean(x^2) + eps) * gamma`, the mean over each group.
pub trait GroupRmsNorm {
    /// The first gamma, `[h]`: uniform on `[low, high)` from `seed`, in PyTorch's numbers.
    fn initial_gamma(&self, hidden_size: usize, range: (f32, f32), seed: u64) -> Reply<Vec<f32>>;

    /// `y`, `[b, s, h]`.
    fn forward(&self, case: &NormCase) -> Reply<Vec<f32>>;

    /// The gradients of the loss, when `dy`, `[b, s, h]`, is its gradient with respect to `y`.
    fn backward(&self, case: &NormCase, dy: &[f32]) -> Reply<NormGrads>;

    /// `y` for an `f16` input. `x` holds values of `f16`, gamma is `f32`; so must the answer
    /// hold values of `f16`.
    fn forward_half(&self, case: &NormCase) -> Reply<Vec<f32>>;
}

/// A normal distribution and a seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormalInit {
    /// Mean.
    pub mean: f32,
    /// Standard deviation, not variance.
    pub std: f32,
    /// Seed of the generator.
    pub seed: u64,
}

/// One lookup in a whole table.
#[derive(Debug, Clone, PartialEq)]
pub struct LookupCase {
    /// `[b, s]`.
    pub shape: [usize; 2],
    /// `v`.
    pub vocab_size: usize,
    /// `e`.
    pub embedding_dim: usize,
    /// `[v, e]`.
    pub table: Vec<f32>,
    /// `[b, s]`.
    pub ids: Vec<usize>,
}

/// What a lookup gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// `[b, s, e]`.
    pub y: Vec<f32>,
    /// The ids as they are after the call, `[b, s]`.
    pub ids_after: Vec<usize>,
}

/// `y[i, j] = table[ids[i, j]]`.
pub trait VocabEmbedding {
    /// The first table, `[v, e]`: normal, in PyTorch's numbers.
    fn initial_table(
        &self,
        vocab_size: usize,
        embedding_dim: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>>;

    /// Rows of the table, `[b, s, e]`. An id that is not below `v` is refused.
    fn forward(&self, case: &LookupCase) -> Reply<Found>;

    /// The gradient of the table, `[v, e]`, for `dy`, `[b, s, e]`.
    fn backward(&self, case: &LookupCase, dy: &[f32]) -> Reply<Vec<f32>>;
}

/// One lookup on one rank.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardCase {
    /// `[b, s]`.
    pub shape: [usize; 2],
    /// `v`, of the whole table.
    pub vocab_size: usize,
    /// `e`.
    pub embedding_dim: usize,
    /// `w`.
    pub world_size: usize,
    /// `r`.
    pub rank: usize,
    /// The rank's rows, `[n, e]`.
    pub shard: Vec<f32>,
    /// `[b, s]`.
    pub ids: Vec<usize>,
}

/// A table whose rows are cut over `world_size` ranks.
pub trait ParallelVocabEmbedding {
    /// The ids that a rank owns. Refuses `v % w != 0` and `r >= w`.
    fn shard_range(&self, vocab_size: usize, world_size: usize, rank: usize)
    -> Reply<Range<usize>>;

    /// The rank's first rows, `[n, e]`. `init.seed` is the base seed, before the rank counts.
    fn initial_shard(
        &self,
        vocab_size: usize,
        embedding_dim: usize,
        world_size: usize,
        rank: usize,
        init: NormalInit,
    ) -> Reply<Vec<f32>>;

    /// The rank's part, `[b, s, e]`. Refuses an id that is not below `v`, and `r >= w`.
    fn forward(&self, case: &ShardCase) -> Reply<Found>;

    /// The gradient of the shard, `[n, e]`, for `dy`, `[b, s, e]`.
    fn backward(&self, case: &ShardCase, dy: &[f32]) -> Reply<Vec<f32>>;
}

/// Which two dimensions of a head turn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `(x_i, x_{i + d/2})`.
    HalfSplit,
    /// `(x_{2i}, x_{2i + 1})`.
    Interleaved,
}

/// Cosines and sines, `[rows, hd]` each.
#[derive(Debug, Clone, PartialEq)]
pub struct Tables {
    /// Cosines of the angles.
    pub cos: Vec<f32>,
    /// Sines of the angles.
    pub sin: Vec<f32>,
}

/// One rotation by given tables.
#[derive(Debug, Clone, PartialEq)]
pub struct RotateCase {
    /// `[b, s, nh, hd]`.
    pub shape: [usize; 4],
    /// Row `t` is for row `t` of `x`, `[s, hd]`.
    pub tables: Tables,
    /// `[b, s, nh, hd]`.
    pub x: Vec<f32>,
    /// Of `x` and of the tables.
    pub layout: Layout,
}

/// Settings of a RoPE module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RopeSettings {
    /// `hd`.
    pub head_dim: usize,
    /// Base of the frequencies.
    pub base: f64,
    /// `ms`, training length in positions.
    pub max_seq_len: usize,
    /// `k`, NTK ratio.
    pub ratio: usize,
    /// Whether a call past the cache changes it for good.
    pub dynamic: bool,
}

/// One call of a RoPE module.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeCase {
    /// `[b, s, nh, hd]`.
    pub shape: [usize; 4],
    /// Position of row 0.
    pub offset: usize,
    /// `[b, s, nh, hd]`, half-split.
    pub x: Vec<f32>,
}

/// What a RoPE module holds between calls.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeState {
    /// `k`.
    pub ratio: usize,
    /// `es = ms * k`, rows of the cache.
    pub cached_len: usize,
    /// The cache itself, `[es, hd]`.
    pub tables: Tables,
}

/// NTK-aware rotary position embedding: its parts, and the module made of them.
pub trait NtkAwareRope {
    /// `theta_i`, `i = 0 .. hd/2 - 1`.
    fn frequencies(&self, head_dim: usize, base: f64, ratio: f64) -> Reply<Vec<f64>>;

    /// The half-split tables of these positions, `[rows, hd]`.
    fn tables(
        &self,
        head_dim: usize,
        base: f64,
        ratio: f64,
        positions: Range<usize>,
    ) -> Reply<Tables>;

    /// `x` turned by the tables, `[b, s, nh, hd]`.
    fn rotate(&self, case: &RotateCase) -> Reply<Vec<f32>>;

    /// The gradient of `x` for `dy`, `[b, s, nh, hd]`; `case.x` is not needed for it.
    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Reply<Vec<f32>>;

    /// Each head, half-split, reordered to adjacent pairs. `x` is `[rows, hd]`.
    fn to_interleaved(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>>;

    /// The inverse of [`NtkAwareRope::to_interleaved`].
    fn to_half_split(&self, head_dim: usize, x: &[f32]) -> Reply<Vec<f32>>;

    /// `k'`, the ratio for a call that ends at `length` positions, past the cache.
    fn ratio_for_length(&self, length: usize, max_seq_len: usize) -> Reply<usize>;

    /// A module with these settings.
    fn build(&self, settings: &RopeSettings) -> Reply<Box<dyn RopeModule>>;
}

/// A built RoPE module: a small machine that is called several times.
pub trait RopeModule {
    /// `x` turned by its positions.
    fn forward(&mut self, case: &RopeCase) -> Reply<Vec<f32>>;

    /// What it holds now.
    fn state(&self) -> Reply<RopeState>;
}
