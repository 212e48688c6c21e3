//! One rank's part of the lookup as a free function.
//!
//! Sizes are run-time values here, so what the compiler refuses for a module is an [`Error`] for a
//! function. It takes ids with a tape or without. The lookup and its checks are those of
//! [`crate::embedding`].

use super::ownership::Ownership;
use super::shards::check_rank;
use crate::checks::{check_size, same_shape};
use crate::embedding::formula::{check_table, checked_ids, look_up};
use crate::embedding::fused;
use crate::error::{Error, Result};
use crate::tensor::*;

// ANCHOR: parallel
/// Rank `rank`'s part of an embedding whose table is cut into `world_size` shards of `n` rows.
///
/// Shapes: `ids` `[b, s]`, `shard` `[n, e]`, result `[b, s, e]`. The rank owns the ids in
/// `[rank * n, (rank + 1) * n)`. Other ids give a zero vector, and no gradient. The sum over all
/// ranks is the embedding in the whole table. Source: Shoeybi et al. 2019, Megatron-LM.
///
/// # Errors
/// A rank that is not below `world_size`; an id that is not below `n * world_size`, on every rank; an empty `ids`
/// or shard; more elements than memory has addresses; on a GPU, a shard of `2^32` elements or more.
pub fn vocab_shard_embedding<
    B: Dim,
    S: Dim,
    N: Dim,
    M: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    ids: Tensor<(B, S), usize, D, T>,
    shard: &Tensor<(N, M), F, D>,
    rank: usize,
    world_size: usize,
) -> Result<Tensor<(B, S, M), F, D, T>> {
    let (n, e) = *shard.shape();
    let n = n.size();
    check_table("shard", shard)?;
    check_rank(rank, world_size)?;
    let vocab_size = n.saturating_mul(world_size);
    let (ids, tape) = ids.split_tape();
    let (b, s) = *ids.shape();
    let ids = checked_ids(&ids, vocab_size)?;
    check_size("the result", &(b, s, e))?;

    let run = || -> Raw<_, D> {
        let (mut tape, mut ids) = (tape, ids);
        let own = |id: usize| if id / n == rank { id % n } else { fused::NO_ROW };
        let own = || std::mem::take(&mut ids).into_iter().map(own).collect();
        if let Some(y) = fused::look_up(shard, &mut tape, own, (b, s))? {
            return Ok(y.put_tape(tape)); // on a CPU: the same in one pass
        }
        let mask: Vec<bool> = ids.iter().map(|id| id / n == rank).collect();
        // Counted from the start of the owner's shard. For a foreign id this is some row, to have one
        // to look up; the mask throws it away.
        let rows: Vec<usize> = ids.iter().map(|id| id % n).collect();
        let dev = shard.device();
        let mask = dev.try_tensor_from_vec(mask, (b, s))?; //                 [b, s]
        let mask = mask.try_broadcast_like::<_, Axis<2>>(&(b, s, e))?; //     [b, s, e]
        let zero: Tensor<(M,), F, D> = dev.try_zeros_like(&(e,))?; //         [e]
        let zero = zero.try_broadcast_like::<_, Axes2<0, 1>>(&(b, s, e))?; // [b, s, e]
        let looked_up = look_up(shard, tape, rows, (b, s))?; //               [b, s, e]
        // Zeros are written, not multiplied: a NaN in row 0 must not leak.
        mask.try_choose(looked_up, zero) //                                   [b, s, e]
    };
    run().map_err(Error::device)
}
// ANCHOR_END: parallel

// ANCHOR: owned
/// Rank `rank`'s part of an embedding whose rows are shared as `ownership` says.
///
/// Shapes: `ids` `[b, s]`, `shard` `[n, e]`, result `[b, s, e]`. As [`vocab_shard_embedding`], which does the work:
/// it is asked for the ids' positions in the shards, which are cut in their order. With
/// [`Sharing::Contiguous`](super::Sharing::Contiguous) an id's position is the id.
///
/// # Errors
/// What [`vocab_shard_embedding`] refuses, in the same words on every rank; a shard without the `n` rows that
/// `ownership` gives to each rank.
pub fn owned_shard_embedding<
    B: Dim,
    S: Dim,
    N: Dim,
    M: Dim,
    F: Float,
    D: Backend<F>,
    T: Tape<F, D>,
>(
    ids: Tensor<(B, S), usize, D, T>,
    shard: &Tensor<(N, M), F, D>,
    rank: usize,
    ownership: &Ownership,
) -> Result<Tensor<(B, S, M), F, D, T>> {
    let (n, e) = *shard.shape();
    let rows = ownership.rows(rank)?;
    same_shape("shard", &[rows, e.size()], &[n.size(), e.size()])?;
    let (ids, tape) = ids.split_tape();
    // The ids are checked before they become positions, so that a refusal names the id that was given.
    let checked = checked_ids(&ids, ownership.vocab_size())?;
    let positions: Result<Vec<usize>> =
        checked.into_iter().map(|id| ownership.position(id)).collect();
    let positions = ids.device().try_tensor_from_vec(positions?, *ids.shape());
    let positions = positions.map_err(Error::device)?; //                     [b, s]
    vocab_shard_embedding(positions.put_tape(tape), shard, rank, ownership.world_size())
}
// ANCHOR_END: owned
