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
    if world_size == 0 || vocab_size % world_size != 0 {
        return Err(format!(
            "world size {world_size} does not divide vocabulary size {vocab_size}"
        ));
    }
    if rank >= world_size {
        return Err(format!("rank {rank} does not exist in a world of {world_size}"));
    }
    let n = vocab_size / world_size;
    Ok(rank * n..(rank + 1) * n)
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
    let rows = shard_range(vocab_size, world_size, rank)?.len();
    Ok(normal(rows * embedding_dim, mean, std, base_seed.wrapping_add(rank as u64)))
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
        const { assert!(W > 0 && V % W == 0, "the world size must divide the vocabulary size") };
        // task parallel/types: starter
        //| // to do: task parallel/types, in place of this line
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
        let owned = shard_range(V, W, self.rank)?;
        let (b, s) = *ids.shape();
        let (ids, tape) = ids.split_tape();
        let ids = ids.as_vec();
        check_ids(&ids, [b.size(), s.size()], V)?;

        let dev = self.weight.device();
        let mask: Vec<bool> = ids.iter().map(|id| owned.contains(id)).collect();
        let rows: Vec<usize> = ids.iter().map(|id| id % owned.len()).collect();
        let mask = dev.tensor_from_vec(mask, (b, s)); //                    [b, s]
        let rows = dev.tensor_from_vec(rows, (b, s)); //                    [b, s]

        let rows = self.weight.clone().put_tape(tape).gather(rows); //      [b, s, e]
        let mask = mask.broadcast_like::<_, Axis<2>>(rows.shape()); //      [b, s, e]
        let zeros: Tensor<_, f32, D> = dev.zeros_like(rows.shape()); //     [b, s, e]
        Ok(mask.choose(rows, zeros))
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
    let owned = shard_range(vocab_size, world_size, rank)?;
    let mut dshard = vec![0.0; owned.len() * embedding_dim];
    for (id, dy) in ids.iter().zip(dy.chunks(embedding_dim)) {
        if owned.contains(id) {
            let row = &mut dshard[(id - owned.start) * embedding_dim..][..embedding_dim];
            row.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += dy);
        }
    }
    Ok(dshard)
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
    let (v, e, w, n) = (12, 5, 3, 4);
    let table: Vec<f32> = (0..v * e).map(|i| i as f32 + 0.5).collect();
    let ids = vec![0, 3, 4, 7, 8, 11, 5, 5];
    let dy: Vec<f32> = (0..ids.len() * e).map(|i| i as f32 - 7.0).collect();
    let mut sum = vec![0.0; ids.len() * e];
    let mut gradient = Vec::new();
    for rank in 0..w {
        let case = interface::ShardCase {
            shape: [2, 4],
            vocab_size: v,
            embedding_dim: e,
            world_size: w,
            rank,
            shard: table[rank * n * e..][..n * e].to_vec(),
            ids: ids.clone(),
        };
        let found = parallel.forward(&case)?;
        sum.iter_mut().zip(&found.y).for_each(|(sum, y)| *sum += y);
        gradient.extend(parallel.backward(&case, &dy)?);
        let outside = interface::ShardCase { ids: vec![v; 8], ..case };
        if parallel.forward(&outside).is_ok() {
            return Err(format!("rank {rank} accepted id {v} of {v}"));
        }
    }
    let whole: Vec<f32> = ids.iter().flat_map(|id| table[id * e..][..e].to_vec()).collect();
    if sum != whole {
        return Err(format!("the ranks add up to {sum:?}, the whole lookup is {whole:?}"));
    }
    if gradient != crate::embedding::backward(&ids, &dy, v, e) {
        return Err("the ranks' gradients are not the slices of the whole gradient".to_string());
    }
    Ok(())
    // task parallel/property: end
}
