//! Output projection and cross-entropy with the vocabulary split across the ranks, forward and backward side by side.
//!
//! No rank ever has the logits of the whole vocabulary: it has those of its own rows, and three numbers for each token
//! go around. Source: Shoeybi et al. 2019, "Megatron-LM", section 3.

use crate::communicator::{Call, Communicator, Op, Order, digest, go_on, sum};
use crate::embedding::{check_ids, check_rows};
use crate::error::{Error, Refusal, Result};
use ndarray::{Array2, ArrayView2, Axis, Slice};
use quadrivium::loss::IGNORE;
use quadrivium::tensor::*;

/// A loss with its gradients.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entropy {
    /// The mean over the tokens that are asked about; the same on every rank.
    pub loss: f64,
    /// `[t, h]`, the same on every rank.
    pub dx: Array2<f32>,
    /// `[n, h]`, of this rank's rows; no other rank needs it.
    pub dweight: Array2<f32>,
}

// ANCHOR: projected_loss
/// Mean cross-entropy of the logits `x weight^T`, and its gradients.
///
/// Shapes: `x` `[t, h]`, the same on every rank; `weight` `[n, h]`, this rank's rows; `targets` `[t]`, ids of the whole
/// vocabulary, or `None` where nothing is asked. On each rank:
///
/// ```text
/// logits  = x weight^T                                  [t, n]
/// largest = max over ALL ids of the logits              [t]      all-reduced
/// total   = sum over ALL ids of exp(logit - largest)    [t]      all-reduced
/// target  = the target's logit, from its owner          [t]      all-reduced
/// loss    = mean of ln(total) + largest - target
///
/// dlogits = (exp(logits - largest) / total - one_hot(target)) / places        [t, n]
/// dweight = dlogits^T x                                                       [n, h], stays here
/// dx      = sum over ALL ids of dlogit * row of weight                        [t, h], all-reduced
/// ```
///
/// # Errors
/// What [`Communicator::agree`] reports; a block that does not divide `n`.
pub(crate) fn projected_loss(
    comm: &dyn Communicator,
    order: Order,
    x: ArrayView2<f32>,
    weight: ArrayView2<f32>,
    targets: &[Option<usize>],
) -> Result<Entropy> {
    check_block(order, weight.nrows())?;
    let mut logits = x.dot(&weight.t()); //                                   [t, n]
    let loss = parallel_cross_entropy(comm, order, &mut logits, targets)?;
    let dlogits = logits; //                                                  [t, n]
    let dweight = dlogits.t().dot(&x); //                                     [n, h]
    let mut dx = Array2::zeros(x.raw_dim()); //                               [t, h]
    match order {
        Order::Any => {
            dx.assign(&dlogits.dot(&weight));
            sum(comm, order, in_memory(&mut dx))?;
        }
        Order::Fixed { block } => go_on(comm, in_memory(&mut dx), |dx| {
            for first in (0..weight.nrows()).step_by(block) {
                let rows = Slice::from(first..first + block);
                let products =
                    dlogits.slice_axis(Axis(1), rows).dot(&weight.slice_axis(Axis(0), rows));
                dx.iter_mut().zip(&products).for_each(|(dx, product)| *dx += *product);
            }
        })?,
    }
    Ok(Entropy { loss, dx, dweight })
}
// ANCHOR_END: projected_loss

// ANCHOR: parallel_cross_entropy
/// Mean cross-entropy of logits whose columns are split across the ranks. In their place it leaves their gradient.
///
/// `logits` `[t, n]` are those of ids `r n` to `(r + 1) n`; `targets` `[t]` are the same on every rank. Sums are in `f64`.
///
/// # Errors
/// What [`Communicator::agree`] reports.
pub(crate) fn parallel_cross_entropy(
    comm: &dyn Communicator,
    order: Order,
    logits: &mut Array2<f32>,
    targets: &[Option<usize>],
) -> Result<f64> {
    let n = logits.ncols();
    let first = comm.rank() * n;
    let own = |target: &Option<usize>| {
        target.filter(|id| (first..first + n).contains(id)).map(|id| id - first)
    };
    let places = targets.iter().flatten().count() as f64;

    // Without the largest of ALL logits, each rank would take exponentials on its own scale.
    let mut largest: Vec<f32> = logits
        .rows()
        .into_iter()
        .map(|row| row.fold(f32::NEG_INFINITY, |a, b| a.max(*b)))
        .collect();
    comm.all_reduce(largest.as_mut_slice().into(), Op::Max)?; //              [t]

    let exp = |logit: f32, largest: f32| f64::from(logit - largest).exp();
    let mut total = vec![0.0; targets.len()]; //                              [t]
    let add_own = |total: &mut [f64]| {
        for ((total, row), largest) in total.iter_mut().zip(logits.rows()).zip(&largest) {
            row.iter().for_each(|logit| *total += exp(*logit, *largest));
        }
    };
    match order {
        Order::Any => {
            add_own(&mut total);
            sum(comm, order, &mut total)?;
        }
        Order::Fixed { .. } => go_on(comm, &mut total, add_own)?,
    }

    // One rank alone has a target's logit, and the others add 0.
    let of_target = |(row, target): (usize, &Option<usize>)| {
        own(target).map_or(0.0, |id| f64::from(logits[[row, id]]))
    };
    let mut target: Vec<f64> = targets.iter().enumerate().map(of_target).collect();
    sum(comm, order, &mut target)?; //                                        [t]

    let mut loss = 0.0;
    let per_place = 1.0 / places;
    for (row, asked) in targets.iter().enumerate() {
        let mut dlogits = logits.row_mut(row);
        if asked.is_none() {
            dlogits.fill(0.0);
            continue;
        }
        loss += total[row].ln() + f64::from(largest[row]) - target[row];
        dlogits.mapv_inplace(|logit| (exp(logit, largest[row]) / total[row] * per_place) as f32);
        if let Some(id) = own(asked) {
            let probability = f64::from(dlogits[id]);
            dlogits[id] = (probability - per_place) as f32;
        }
    }
    Ok(loss / places)
}
// ANCHOR_END: parallel_cross_entropy

fn in_memory(matrix: &mut Array2<f32>) -> &mut [f32] {
    // A matrix that was made here lies row by row.
    matrix.as_slice_mut().unwrap_or_default()
}

pub(crate) fn check_block(order: Order, rows: usize) -> Result<()> {
    match order {
        Order::Fixed { block } if block == 0 || rows % block != 0 => {
            Err(Error::Block { block, rows })
        }
        _ => Ok(()),
    }
}

/// Mean cross-entropy of `x` projected by a matrix that the ranks cut, with its gradients on the tape.
///
/// Shapes: `x` `[b, s, h]`, `weight` `[n, h]`, `targets` `[b, s]`, result `[]`. A target that is
/// [`IGNORE`] is not asked about. All is exchanged here, in the forward pass, also for the gradients: the ranks make their
/// calls in the order of the program, not in that of a tape, and what fails is this crate's error and not the device's.
///
/// # Errors
/// The same on every rank, before anything is computed: a target that is neither below `vocab_size` nor [`IGNORE`];
/// none that is asked about; shapes that do not fit; ranks with more rows or fewer than the vocabulary; other targets on one rank. What [`Communicator::agree`] reports.
pub fn parallel_loss<B: Dim, S: Dim, N: Dim, H: Dim, T: Tape<f32, Cpu>>(
    comm: &dyn Communicator,
    order: Order,
    x: Tensor<(B, S, H), f32, Cpu, T>,
    weight: &Tensor<(N, H), f32, Cpu>,
    targets: &Tensor<(B, S), usize, Cpu>,
    vocab_size: usize,
) -> Result<Tensor<Rank0, f32, Cpu, T>> {
    let ((b, s, h), (n, width)) = (*x.shape(), *weight.shape());
    let (t, n) = (b.size() * s.size(), n.size());
    // dfdx can't read a tensor without elements.
    let ids = if t > 0 { targets.as_vec() } else { Vec::new() };
    let fits = (targets.shape().concrete(), width.size()) == ([b.size(), s.size()], h.size());
    let w = comm.world_size();
    // A row that is no id's would be a part of the sum.
    let mine = check_rows(n * w == vocab_size, (n, w), vocab_size)
        .and_then(|()| check_block(order, n).map_err(Refusal::from))
        .and_then(|()| check_targets(&ids, s.size(), vocab_size, fits && h.size() > 0));
    let sizes = format!("{t} tokens, {n} rows of {} elements a rank, {vocab_size} ids", h.size());
    comm.agree(Call::same("a loss", sizes, digest(&ids)), mine)?;

    let targets: Vec<_> = ids.into_iter().map(|id| (id != IGNORE).then_some(id)).collect();
    let (x, mut tape) = x.try_contiguous().map_err(quadrivium::Error::device)?.split_tape();
    let (values, rows) = (x.as_vec(), weight.as_vec());
    let matrix = |values, rows, columns| {
        Array2::from_shape_vec((rows, columns), values)
            .map_err(|e| Error::Library(quadrivium::Error::device(e)))
    };
    let (values, rows) = (matrix(values, t, h.size())?, matrix(rows, n, h.size())?);
    let Entropy { loss, mut dx, mut dweight } =
        projected_loss(comm, order, values.view(), rows.view(), &targets)?;

    let dev = x.device().clone();
    let loss = dev.try_tensor_from_vec(vec![loss as f32], ()).map_err(quadrivium::Error::device)?;
    if T::OWNS_TAPE {
        let weight = weight.clone();
        on_backward(&mut tape, &loss, move |dloss: Tensor<Rank0, f32, Cpu>, grads| {
            let dloss = dloss.array();
            // Where nothing is asked 0 stays 0, even if the gradient that arrives is infinite.
            let asked =
                dx.rows_mut().into_iter().zip(&targets).filter(|(_, target)| target.is_some());
            asked.for_each(|(mut row, _)| row *= dloss);
            dweight *= dloss;
            let tensor = |matrix: Array2<f32>| matrix.into_iter().collect::<Vec<f32>>();
            add_gradient(grads, &x, dev.try_tensor_from_vec(tensor(dx), *x.shape())?)?;
            add_gradient(grads, &weight, dev.try_tensor_from_vec(tensor(dweight), *weight.shape())?)
        });
    }
    Ok(loss.put_tape(tape))
}

/// Refuses targets that no id is, or of which none is asked about. `fits` is whether the shapes are those of each other.
pub(crate) fn check_targets(
    targets: &[usize],
    length: usize,
    vocab_size: usize,
    fits: bool,
) -> std::result::Result<(), Refusal> {
    let asked = |id: &usize| *id != IGNORE;
    if !fits {
        return Err(Refusal::Other(
            "targets and rows must fit the tokens: [b, s] and [n, h]".into(),
        ));
    }
    if !targets.iter().any(asked) {
        return Err(Refusal::Other("no target is asked about: ask about at least 1".into()));
    }
    let ids: Vec<usize> = targets.iter().map(|id| if asked(id) { *id } else { 0 }).collect();
    check_ids(&ids, length, vocab_size)
}
