//! The shift by one and the mean cross-entropy as free functions, forward and backward side by side.

use super::{IGNORE, fused};
use crate::checks::{check_size, require, same_shape};
use crate::error::{Error, Result};
use crate::tensor::*;

// ANCHOR: next_tokens
/// What a model reads, and what it is asked about: all tokens but the last of each text, and all but the first.
///
/// `ids` `[b, s]`; both results `[b, s - 1]`. The target of a token is the one that follows it. This is the one place
/// where anything is shifted: [`cross_entropy`] does not shift again.
///
/// ```
/// use quadrivium::loss::next_tokens;
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let text = dev.tensor([[7, 3, 5]]);
/// let (inputs, targets) = next_tokens(&text)?;
/// assert_eq!((inputs.as_vec(), targets.as_vec()), (vec![7, 3], vec![3, 5]));
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// # Errors
/// Texts of fewer than two tokens: nothing follows. No texts, or more elements than fit.
pub fn next_tokens<B: Dim, S: Dim, D: Storage<usize> + TensorFromVec<usize>>(
    ids: &Tensor<(B, S), usize, D>,
) -> Result<(Tensor<(B, usize), usize, D>, Tensor<(B, usize), usize, D>)> {
    let (b, s) = *ids.shape();
    check_size("ids", ids.shape())?;
    let s = s.size();
    require(s >= 2, "the length of a text", "at least 2, or nothing follows", s as f64)?;
    let values = ids.as_vec();
    let from = |first: usize| {
        let rows = values.chunks(s).flat_map(|row| &row[first..first + s - 1]).copied();
        ids.device().try_tensor_from_vec(rows.collect(), (b, s - 1)).map_err(Error::device)
    };
    Ok((from(0)?, from(1)?)) //                                               [b, s - 1] each
}
// ANCHOR_END: next_tokens

// ANCHOR: cross_entropy
/// Mean cross-entropy of the next token: `-log softmax(logits)[target]`, over the places that are asked about.
///
/// Shapes: `logits` `[b, s, v]`, `targets` `[b, s]`, result `[]`. `targets[i, t]` is the token that FOLLOWS token `t`: the
/// caller shifts, once. A place whose target is [`IGNORE`] is not asked about: it has no part in the sum, in the number
/// that it is divided by, or in the gradient. All `v` logits are in the softmax, also those of rows that no token has,
/// where a table was padded to a round size. The arithmetic is in `f32` or better.
///
/// The gradient of each row of logits is `(softmax - one_hot(target)) / places`, so each row of it sums to 0.
///
/// # Errors
/// A target that is neither below `v` nor [`IGNORE`]; no place to ask about; shapes that do not fit; an empty input.
pub fn cross_entropy<B: Dim, S: Dim, V: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    logits: Tensor<(B, S, V), F, D, T>,
    targets: &Tensor<(B, S), usize, D>,
) -> Result<Tensor<Rank0, F, D, T>> {
    check_size("logits", logits.shape())?;
    let (b, s, v) = *logits.shape();
    same_shape("targets", &[b.size(), s.size()], &targets.shape().concrete())?;
    let (targets, asked) = checked_targets(targets, v.size())?;
    let run = || -> Raw<_, D> {
        let (logits, mut tape) = logits.try_in_order()?.split_tape();
        if let Some(loss) = fused::cross_entropy(&logits, &targets, asked, &mut tape)? {
            return Ok(loss.put_tape(tape));
        }
        let (loss, probabilities) = entropy_forward(cast(&logits)?, &targets, asked)?;
        let loss: Tensor<Rank0, F, D> = cast::<F::Wide, F, _, _>(&loss)?;
        on_backward(&mut tape, &loss, move |dloss, grads| {
            let dlogits = entropy_backward(cast(&dloss)?, probabilities, &targets, asked)?;
            add_gradient(grads, &logits, cast::<F::Wide, F, _, _>(&dlogits)?)
        });
        Ok(loss.put_tape(tape))
    };
    run().map_err(Error::device)
}

/// A matrix of one element for each place, `[b, s]`.
type Places<B, S, W, D> = Tensor<(B, S), W, D>;

/// loss = sum over asked places of (logsumexp(logits) - logits[target]) / places
fn entropy_forward<B: Dim, S: Dim, V: Dim, W: Float, D: Device<W> + TensorFromVec<bool>>(
    logits: Tensor<(B, S, V), W, D>,
    targets: &[Option<usize>],
    asked: usize,
) -> Raw<(Tensor<Rank0, W, D>, Tensor<(B, S, V), W, D>), D> {
    let (b, s, _) = *logits.shape();
    let dev = logits.device().clone();
    let places = targets.iter().map(|target| target.unwrap_or(0)).collect();
    let places = dev.try_tensor_from_vec(places, (b, s))?; //                 [b, s]
    let is_asked = targets.iter().map(Option::is_some).collect();
    let is_asked: Tensor<(B, S), bool, D> = dev.try_tensor_from_vec(is_asked, (b, s))?;

    let log_probabilities = logits.try_log_softmax::<Axis<2>>()?; //          [b, s, v]
    let of_targets: Places<B, S, W, D> = log_probabilities.clone().try_select(places)?; // [b, s]
    let zeros = dev.try_zeros_like(&(b, s))?; //                              [b, s]
    let of_targets = is_asked.try_choose(of_targets, zeros)?; //              [b, s]
    let loss = of_targets.try_sum::<Rank0, _>()?.try_div(-W::nearest(asked as f64))?; // []
    Ok((loss, log_probabilities.try_exp()?))
}

/// dlogits = dloss (softmax(logits) - one_hot(target)) / places, and 0 where nothing is asked
fn entropy_backward<B: Dim, S: Dim, V: Dim, W: Float, D: Device<W> + TensorFromVec<bool>>(
    dloss: Tensor<Rank0, W, D>,
    probabilities: Tensor<(B, S, V), W, D>,
    targets: &[Option<usize>],
    asked: usize,
) -> Raw<Tensor<(B, S, V), W, D>, D> {
    let shape = *probabilities.shape();
    let (dev, v) = (probabilities.device().clone(), shape.2.size());
    let one_hot = |target: &Option<usize>| {
        let target = *target;
        (0..v).map(move |id| if Some(id) == target { W::ONE } else { W::default() })
    };
    let one_hot = dev.try_tensor_from_vec(targets.iter().flat_map(one_hot).collect(), shape)?;
    let is_asked = targets.iter().map(Option::is_some).collect();
    let is_asked: Tensor<(B, S), bool, D> =
        dev.try_tensor_from_vec(is_asked, (shape.0, shape.1))?;
    let is_asked = is_asked.try_broadcast_like::<_, Axis<2>>(&shape)?; //     [b, s, v]
    let share = dloss.try_div(W::nearest(asked as f64))?; //                  []
    let share = share.try_broadcast_like::<_, Axes3<0, 1, 2>>(&shape)?; //    [b, s, v]
    let dlogits = probabilities.try_sub(one_hot)?.try_mul(share)?; //         [b, s, v]
    is_asked.try_choose(dlogits, dev.try_zeros_like(&shape)?) //              [b, s, v]
}
// ANCHOR_END: cross_entropy

/// The targets on the host, `None` where nothing is asked, and how many there are.
fn checked_targets<B: Dim, S: Dim, D: Storage<usize>>(
    targets: &Tensor<(B, S), usize, D>,
    vocab_size: usize,
) -> Result<(Vec<Option<usize>>, usize)> {
    let length = targets.shape().1.size();
    let ids = targets.as_vec();
    let refused = |&id: &usize| id >= vocab_size && id != IGNORE;
    if let Some(at) = ids.iter().position(refused) {
        let (batch, position) = (at / length, at % length);
        return Err(Error::TokenId { id: ids[at], batch, position, vocab_size });
    }
    let targets: Vec<_> = ids.into_iter().map(|id| (id != IGNORE).then_some(id)).collect();
    let asked = targets.iter().flatten().count();
    require(asked > 0, "the number of targets that are asked about", "at least 1", 0.0)?;
    Ok((targets, asked))
}
