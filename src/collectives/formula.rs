//! The program of one rank, of plain numbers.

use super::Communicator;
use crate::checks::require;
use crate::error::Error;
use crate::loss::IGNORE;

/// The loss of a rank, and the gradient of its own logits.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardEntropy {
    /// The mean over the tokens that are asked about; the same on every rank.
    pub loss: f32,
    /// `[t, n]`. It belongs to this rank's rows, so it is not summed over ranks.
    pub dlogits: Vec<f32>,
}

// ANCHOR: vocab_parallel_cross_entropy
/// Mean cross-entropy of logits whose columns are split across the ranks, and its gradient.
///
/// Shapes: `logits` `[t, n]`, this rank's, of the ids `r n` to `(r + 1) n`; `targets` `[t]`, ids of the whole vocabulary,
/// the same on every rank, or [`IGNORE`] where nothing is asked. Three numbers a token go around:
///
/// ```text
/// largest = max over ALL ids of the logits              [t]      all-reduced
/// total   = sum over ALL ids of exp(logit - largest)    [t]      all-reduced
/// target  = the target's logit, from its owner          [t]      all-reduced
/// loss    = mean of ln(total) + largest - target, over the tokens that are asked about
/// dlogits = (exp(logits - largest) / total - one_hot(target)) / their number    [t, n], stays here
/// ```
///
/// Sums on a rank are in `f64`, those over ranks in `f32`. Source: Shoeybi et al. 2019, "Megatron-LM", section 3.
///
/// # Errors
/// Before any call to the others: a world size that does not divide `vocab_size`; a rank that there is not; no target, or
/// none that is asked about; `logits` of another shape; a target that is neither below `vocab_size` nor [`IGNORE`]. Then what
/// the communicator reports.
pub fn vocab_parallel_cross_entropy<C: Communicator + ?Sized>(
    comm: &C,
    logits: &[f32],
    targets: &[usize],
    vocab_size: usize,
) -> Result<ShardEntropy, C::Error> {
    let n = check(comm, logits, targets, vocab_size)?;
    let asked = targets.iter().filter(|target| **target != IGNORE).count() as f64;
    let first = comm.rank() * n;
    let own = |target: usize| target.checked_sub(first).filter(|column| *column < n);
    let rows = || logits.chunks(n);

    let largest = |row: &[f32]| row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut largest: Vec<f32> = rows().map(largest).collect(); //              [t]
    comm.all_reduce_max(&mut largest)?;

    let exp = |logit: f32, largest: f32| f64::from(logit - largest).exp();
    let total = |(row, largest): (&[f32], &f32)| {
        row.iter().map(|logit| exp(*logit, *largest)).sum::<f64>() as f32
    };
    let mut totals: Vec<f32> = rows().zip(&largest).map(total).collect(); //   [t]
    comm.all_reduce_sum(&mut totals)?;

    // One rank alone has a target's logit, and the others add 0.
    let target = |(row, id): (&[f32], &usize)| own(*id).map_or(0.0, |column| row[column]);
    let mut of_targets: Vec<f32> = rows().zip(targets).map(target).collect(); // [t]
    comm.all_reduce_sum(&mut of_targets)?;

    let (mut loss, mut dlogits) = (0.0, Vec::with_capacity(logits.len()));
    for (token, row) in rows().enumerate() {
        if targets[token] == IGNORE {
            dlogits.resize(dlogits.len() + n, 0.0);
            continue;
        }
        let (largest, total) = (largest[token], f64::from(totals[token]));
        loss += total.ln() + f64::from(largest) - f64::from(of_targets[token]);
        let hot = own(targets[token]);
        dlogits.extend(row.iter().enumerate().map(|(column, logit)| {
            let one = f64::from(u8::from(hot == Some(column)));
            ((exp(*logit, largest) / total - one) / asked) as f32
        }));
    }
    Ok(ShardEntropy { loss: (loss / asked) as f32, dlogits })
}
// ANCHOR_END: vocab_parallel_cross_entropy

/// `n`, if all fits. All ranks that are called in the same way come to the same end here.
fn check<C: Communicator + ?Sized>(
    comm: &C,
    logits: &[f32],
    targets: &[usize],
    vocab_size: usize,
) -> Result<usize, Error> {
    let (rank, world_size, t) = (comm.rank(), comm.world_size(), targets.len());
    if world_size == 0 || vocab_size % world_size != 0 {
        return Err(Error::WorldSize { world_size, vocab_size });
    }
    if rank >= world_size {
        return Err(Error::Rank { rank, world_size });
    }
    let n = vocab_size / world_size;
    if t == 0 || n == 0 {
        return Err(Error::Empty { name: "logits", shape: vec![t, n] });
    }
    if t.checked_mul(n) != Some(logits.len()) {
        let (expected, got) = (vec![t, n], vec![logits.len()]);
        return Err(Error::Shape { name: "logits", expected, got });
    }
    let asked = targets.iter().any(|target| *target != IGNORE);
    require(asked, "the number of targets that are asked about", "at least 1", 0.0)?;
    match targets.iter().position(|target| *target >= vocab_size && *target != IGNORE) {
        None => Ok(n),
        Some(position) => {
            Err(Error::TokenId { id: targets[position], batch: 0, position, vocab_size })
        }
    }
}

// ANCHOR: tree_sum
/// The sum of blocks that lie on ranks, with the same bits on any number of ranks.
///
/// Shapes: `blocks` `[m / w, len]`, this rank's, in the order of the ranks; result `[len]`, the same on every rank. `w` and
/// `m` are powers of 2. The order is that of a tree, `sum(first half) + sum(second half)`. A rank's blocks are a whole
/// branch of it, so it adds up its own, and one sum a rank goes around.
///
/// # Errors
/// Before any call to the others: a number of ranks, or of blocks, that is no power of 2; blocks of no elements. Then
/// what the communicator reports.
pub fn tree_sum<C: Communicator + ?Sized>(
    comm: &C,
    blocks: &[f32],
    len: usize,
) -> Result<Vec<f32>, C::Error> {
    let own = blocks.len().checked_div(len).unwrap_or(0);
    let whole = own.is_power_of_two() && own * len == blocks.len();
    require(whole, "the number of a rank's blocks", "a power of 2", own as f64)?;
    let w = comm.world_size();
    require(w.is_power_of_two(), "the number of ranks", "a power of 2", w as f64)?;
    let sums = comm.all_gather(&branch(blocks, len))?; //                      [w, len]
    Ok(branch(&sums, len))
}

/// `[m, len]` to `[len]`.
fn branch(blocks: &[f32], len: usize) -> Vec<f32> {
    if blocks.len() <= len {
        return blocks.to_vec();
    }
    let (first, second) = blocks.split_at(blocks.len() / 2);
    branch(first, len).iter().zip(branch(second, len)).map(|(a, b)| a + b).collect()
}
// ANCHOR_END: tree_sum
