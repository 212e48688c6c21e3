//! The tasks of ParallelVocabEmbedding.
//!
//! A table of `v` rows is split across `w` ranks. Rank `r` holds `n = v / w` rows and owns the ids
//! `[r·n, (r+1)·n)`. Each rank looks up what it owns and gives zeros for the rest; the sum over
//! the ranks is the whole lookup. Source: Shoeybi et al. 2019, Megatron-LM.

use crate::embedding::{check_ids, normal};
use crate::prelude::*;

/// Task `parallel/shard-range`. The ids that rank `rank` of `world_size` owns.
///
/// A world size that does not divide the vocabulary size is refused (0 too), and so is a rank
/// that is not below the world size. `vocab_size` is at least 1.
pub fn shard_range(vocab_size: usize, world_size: usize, rank: usize) -> Result<Range<usize>> {
    // task parallel/shard-range: begin
    todo!("task parallel/shard-range")
    // task parallel/shard-range: end
}

/// Task `parallel/initial`. The first rows of a rank, `[n, e]`, row-major: normal, with a different seed for each rank.
///
/// Rank `r` draws its `n · e` values from the seed `base_seed + r`, by [`normal`] of task `embedding/initial`. After
/// the largest seed comes 0, as with `wrapping_add`, and what [`shard_range`] refuses is refused.
pub fn initial_shard(
    vocab_size: usize,
    embedding_dim: usize,
    world_size: usize,
    rank: usize,
    (mean, std): (f32, f32),
    base_seed: u64,
) -> Result<Vec<f32>> {
    // task parallel/initial: begin
    todo!("task parallel/initial")
    // task parallel/initial: end
}

/// One rank's rows of a table of `V` rows of `E` elements that is split across `W` ranks.
///
/// `Quotient<V, W>` is the dimension `V / W`, known to the compiler.
#[derive(Clone)]
pub struct ParallelVocabEmbedding<const V: usize, const E: usize, const W: usize, D: Device<f32>> {
    /// `[n, e]`.
    pub weight: Tensor<(Quotient<V, W>, Const<E>), f32, D>,
    /// `r`.
    pub rank: usize,
}

impl<const V: usize, const E: usize, const W: usize, D: Device<f32> + TensorFromVec<bool>>
    ParallelVocabEmbedding<V, E, W, D>
{
    /// A rank with these rows.
    ///
    /// Task `parallel/types`, about types. A table of 7 rows can't be cut into 2 equal parts, and a world of 0 ranks
    /// does not exist. Make both impossible to compile, here, with a message that names the rule. (For a 0 the compiler
    /// may use its own words.)
    pub fn new(weight: Tensor<(Quotient<V, W>, Const<E>), f32, D>, rank: usize) -> Self {
        // task parallel/types: begin
        // to do: task parallel/types, in place of this line
        // task parallel/types: end
        Self { weight, rank }
    }

    /// Task `parallel/forward`. The rank's part of the lookup, `[b, s]` to `[b, s, e]`.
    ///
    /// ```text
    /// y[i, j] = weight[id - r·n]   if r·n <= id < (r+1)·n,   else the zero vector
    /// ```
    ///
    /// An id that is not below `v` is refused on EVERY rank, even in a world of 1, in words as in
    /// task `embedding/refuse`: the id as it was given, its place, and `v`. Write the zeros instead of multiplying,
    /// because 0 times NaN is NaN. No gradient comes from the ids of other ranks.
    ///
    /// Every id needs some row of this rank to look up; `mask.choose(rows, zeros)` then takes
    /// `rows` where the mask is true. `dev.tensor_from_vec(values, shape)` makes a tensor of
    /// `bool` or `usize` as well; `self.weight.device()` is the device.
    pub fn forward<B: Dim, S: Dim, T: Tape<f32, D>>(
        &self,
        ids: Tensor<(B, S), usize, D, T>,
    ) -> Result<Tensor<(B, S, Const<E>), f32, D, T>> {
        // task parallel/forward: begin
        todo!("task parallel/forward")
        // task parallel/forward: end
    }
}

/// Task `parallel/backward`. The gradient of rank `rank`'s rows by hand, `[n, e]`, in plain numbers.
///
/// `ids` are `[b s]`, all below `vocab_size`; `dy` is `[b s, e]`, row-major. The rank's gradient is its slice of the
/// whole table's, so ids of other ranks add nothing to any row.
pub fn backward(
    ids: &[usize],
    dy: &[f32],
    (vocab_size, embedding_dim): (usize, usize),
    world_size: usize,
    rank: usize,
) -> Result<Vec<f32>> {
    // task parallel/backward: begin
    todo!("task parallel/backward")
    // task parallel/backward: end
}

/// Task `parallel/property`. An invariant of your own.
///
/// `parallel` claims to be a ParallelVocabEmbedding, in plain values; `case.rank` says which rank is asked. Return
/// `Ok`, or an `Err` that says what is wrong with it.
///
/// `parallel.forward(&case)` gives an `interface::Found { y, ids_after }`, and `parallel.backward(&case, &dy)` the
/// gradient of the shard, for an
/// `interface::ShardCase { shape: [b, s], vocab_size, embedding_dim, world_size, rank, shard, ids }`. There are
/// `shard_range(v, w, rank)` and `initial_shard(v, e, w, rank, init)` too, with an
/// `interface::NormalInit { mean, std, seed }` as `init`. Each of them may refuse: `?` makes that your `Err`, with its
/// words in `refusal.0`. Use sizes such as v = 12, e = 5, w = 3.
///
/// You are graded by the known bugs that you catch, at least 25, and you may not reject a correct one. Think of all
/// ranks together.
pub fn property(parallel: &dyn interface::ParallelVocabEmbedding) -> Result<()> {
    // task parallel/property: begin
    todo!("task parallel/property")
    // task parallel/property: end
}
