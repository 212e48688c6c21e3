//! The lookup in a table that is split across the ranks, forward and backward side by side.

use crate::communicator::{Call, Communicator, Order, accept, digest, sum};
use crate::error::{Refusal, Result};
use quadrivium::parallel::vocab_shard_embedding;
use quadrivium::tensor::*;

// ANCHOR: parallel_embedding
/// `y[i, j] = table[ids[i, j]]`, where each rank has `n` rows of the table.
///
/// Shapes: `ids` `[b, s]`, the same on every rank; `shard` `[n, e]`, rows `r n` to `(r + 1) n` of the table; result
/// `[b, s, e]`, the same on every rank. The table has `vocab_size` rows; what the last shards have more is padding.
///
/// Each token has one owner, so each sum has at most one term that is not 0: every order gives the same bits, and they
/// are the row's, except for the sign of a zero. The gradient needs no exchange: `dy` is on every rank, and each keeps
/// what belongs to its own rows. (To add the shards' gradients up would count each row `w` times, or mix rows.) Source:
/// Shoeybi et al. 2019, "Megatron-LM".
///
/// # Errors
/// The same on every rank, before a row is looked up: an id that is not below `vocab_size`, shards with fewer rows than
/// that together, other ids on one rank, what [`vocab_shard_embedding`] refuses; and what [`Communicator::agree`] reports.
pub fn parallel_embedding<B: Dim, S: Dim, N: Dim, M: Dim, T: Tape<f32, Cpu>>(
    comm: &dyn Communicator,
    order: Order,
    ids: Tensor<(B, S), usize, Cpu, T>,
    shard: &Tensor<(N, M), f32, Cpu>,
    vocab_size: usize,
) -> Result<Tensor<(B, S, M), f32, Cpu, T>> {
    let ((b, s), (n, e)) = (*ids.shape(), *shard.shape());
    // dfdx can't read a tensor without elements.
    let read = if b.size() * s.size() > 0 { ids.as_vec() } else { Vec::new() };
    let sizes = format!(
        "{} x {} tokens, {} rows of {} elements a rank, {vocab_size} ids",
        b.size(),
        s.size(),
        n.size(),
        e.size()
    );
    let (rank, w) = (comm.rank(), comm.world_size());
    let below = match read.is_empty() {
        true => Err(Refusal::Other("there are no tokens: give at least 1".into())),
        false => check_ids(&read, s.size(), vocab_size),
    };
    let owned =
        below.and_then(|()| check_rows(n.size() * w >= vocab_size, (n.size(), w), vocab_size));
    let part =
        owned.and_then(|()| vocab_shard_embedding(ids, shard, rank, w).map_err(Refusal::from));
    let part = accept(comm, Call::same("a lookup", sizes, digest(&read)), part)?;

    let (part, mut tape) = part.split_tape(); //                              [b, s, e]
    let mut y = part.as_vec();
    sum(comm, order, &mut y)?;
    let y = part.device().try_tensor_from_vec(y, (b, s, e)); //               [b, s, e]
    let y = y.map_err(quadrivium::Error::device)?;
    // y = sum of the parts, so dpart = dy: nothing is exchanged.
    on_backward(&mut tape, &y, move |dy, grads| add_gradient(grads, &part, dy));
    Ok(y.put_tape(tape))
}
// ANCHOR_END: parallel_embedding

/// The first id that the whole table does not have.
pub(crate) fn check_ids(
    ids: &[usize],
    length: usize,
    vocab_size: usize,
) -> std::result::Result<(), Refusal> {
    match ids.iter().position(|id| *id >= vocab_size) {
        None => Ok(()),
        Some(at) => {
            let (batch, position) = (at / length, at % length);
            Err(Refusal::TokenId { id: ids[at], batch, position, vocab_size })
        }
    }
}

/// Refuses shards of `n` rows that are not the rows of the vocabulary.
pub(crate) fn check_rows(
    are: bool,
    (n, world_size): (usize, usize),
    vocab_size: usize,
) -> std::result::Result<(), Refusal> {
    if are {
        return Ok(());
    }
    Err(Refusal::Other(format!(
        "the vocabulary has {vocab_size} ids, and {world_size} ranks with {n} rows each have {}: give each rank \
         its part of the rows",
        n * world_size
    )))
}
