//! The tasks of the collectives.
//!
//! You write the program of ONE rank, which runs on all `w` ranks at once, each with a part of the numbers. A rank
//! knows of the others only what it hears through `comm`, a [`Communicator`]:
//!
//! ```text
//! comm.rank()                        r, from 0 on
//! comm.world_size()                  w
//! comm.all_reduce_sum(&mut values)?  each value becomes the sum of all ranks' values
//! comm.all_reduce_max(&mut values)?  the same, the largest of all
//! comm.all_gather(&values)?          the values of rank 0, then those of rank 1, ..
//! ```
//!
//! The last three are *collectives*. None goes on before all ranks have come, so every rank must make the same calls,
//! in the same order, with equally many values. If one never comes, the others would wait forever; here each gets an
//! error that says who waits, where, and for whom. Hand it on with `?`, because without the others a rank has no
//! result.

use crate::prelude::interface::{Communicator, Entropy, RankError};

/// What a rank has in the end.
pub type Ranked<T> = std::result::Result<T, RankError>;

/// Task `collectives/entropy`. The loss of `t` tokens over a vocabulary that is split across the ranks, and its gradient.
///
/// `logits` are `[t, n]`, row by row: those of this rank's `n` ids, which begin with `first`. `targets` are `[t]`, ids
/// of the whole vocabulary, and the same on every rank. All ranks together have `v = n w` ids.
///
/// ```text
/// largest = max over ALL v ids of the logits                   [t]
/// total   = sum over ALL v ids of exp(logit - largest)         [t]
/// target  = the target's logit, which one rank alone has       [t]
/// loss    = mean over the tokens of  ln(total) + largest - target
/// dlogits = (exp(logits - largest) / total - one_hot(target)) / t      [t, n], of this rank's ids
/// ```
///
/// - A target that is not below `v` is a [`RankError::Target`] with the first such target, its place in `targets`, and
///   `v`. Every rank must return it before any collective, because a rank that called one would wait.
/// - A rank may hold none of the targets, or only logits of minus infinity, each of which is a forbidden id.
/// - Hand over only as many numbers as there are tokens: the logits stay where they are.
/// - There is at least one token.
pub fn vocab_parallel_cross_entropy(
    comm: &dyn Communicator,
    logits: &[f32],
    targets: &[usize],
    first: usize,
) -> Ranked<Entropy> {
    // task collectives/entropy: begin
    let t = targets.len();
    let n = logits.len() / t;
    let vocab_size = n * comm.world_size();
    // All ranks have the same targets and know v, so all come to the same end.
    if let Some(place) = targets.iter().position(|&target| target >= vocab_size) {
        return Err(RankError::Target { target: targets[place], place, vocab_size });
    }
    // The column of an id, on the rank that has it.
    let column = |id: usize| if (first..first + n).contains(&id) { Some(id - first) } else { None };

    let mut largest = Vec::new(); //                                        [t]
    for row in logits.chunks(n) {
        largest.push(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    }
    comm.all_reduce_max(&mut largest)?;

    let mut exps = logits.to_vec(); //                                      [t, n]
    for (row, largest) in exps.chunks_mut(n).zip(&largest) {
        row.iter_mut().for_each(|value| *value = (*value - largest).exp());
    }
    let mut total: Vec<f32> = exps.chunks(n).map(|row| row.iter().sum()).collect(); // [t]
    comm.all_reduce_sum(&mut total)?;

    let mut of_target = Vec::new(); //                                      [t]
    for (row, &target) in logits.chunks(n).zip(targets) {
        // Not a product with 0: a logit may be minus infinity.
        of_target.push(column(target).map_or(0.0, |column| row[column]));
    }
    comm.all_reduce_sum(&mut of_target)?;

    let mut loss = 0.0;
    let mut dlogits = exps; //                                              [t, n]
    for (token, row) in dlogits.chunks_mut(n).enumerate() {
        loss += total[token].ln() + largest[token] - of_target[token];
        row.iter_mut().for_each(|value| *value /= total[token]);
        if let Some(column) = column(targets[token]) {
            row[column] -= 1.0;
        }
        row.iter_mut().for_each(|value| *value /= t as f32);
    }
    Ok(Entropy { loss: loss / t as f32, dlogits })
    // task collectives/entropy: end
}

/// Task `collectives/tree-sum`. The sum of blocks that lie on the ranks, with bits that do not depend on how many ranks
/// there are.
///
/// There are `m` blocks of `len` values, in the order of the ranks, and this rank has `m / w` of them: `blocks`,
/// `[m / w, len]`. Both `m` and `w` are powers of 2, and `len` is at least 1. Addition in `f32` rounds, so the order
/// matters. Add in `f32`, in this order:
///
/// ```text
/// sum(b_0 .. b_(m-1)) = sum(first half of them) + sum(second half)        [len], element by element
/// ```
///
/// The result is the same on every rank, bit for bit, and the same for 1, 2, 4 .. ranks. Hand over `len` values a rank
/// and no more, and keep in mind that `all_reduce_sum` chooses its own order.
pub fn tree_sum(comm: &dyn Communicator, blocks: &[f32], len: usize) -> Ranked<Vec<f32>> {
    // task collectives/tree-sum: begin
    fn halves(blocks: &[f32], len: usize) -> Vec<f32> {
        if blocks.len() == len {
            return blocks.to_vec();
        }
        let (first, second) = blocks.split_at(blocks.len() / 2);
        let (first, second) = (halves(first, len), halves(second, len));
        first.iter().zip(&second).map(|(a, b)| a + b).collect()
    }
    // A rank's blocks are a whole branch of the tree, and the ranks' sums are its upper part.
    let own = halves(blocks, len); //                                       [len]
    let sums = comm.all_gather(&own)?; //                                   [w, len]
    Ok(halves(&sums, len))
    // task collectives/tree-sum: end
}
