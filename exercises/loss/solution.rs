//! The tasks of the loss.
//!
//! A model gives `v` logits for each place of a text, and the loss says how surprised it is by the token that follows:
//!
//! ```text
//! loss = mean over the places that are asked about of  ln(sum of exp(logits)) - logits[target]
//! ```
//!
//! That is `-ln softmax(logits)[target]`. A place whose target is `None` is not asked about, because it is padding, or
//! what the user wrote.

use crate::prelude::*;

/// Task `loss/shift`. Inputs and targets of texts `ids`, `[b, s]` row by row: both `[b, s - 1]`.
///
/// ```text
/// inputs  = all tokens of a text but the last
/// targets = all but the first: the token that follows
/// ```
///
/// This is the only place where anything is shifted. A text of fewer than two tokens has no next token, so return an
/// `Err` that says so.
pub fn next_tokens(ids: &[usize], [b, s]: [usize; 2]) -> Result<(Vec<usize>, Vec<usize>)> {
    // task loss/shift: begin
    if s < 2 {
        return Err(format!("a text of {s} tokens has no next token: it needs at least 2"));
    }
    let inputs = ids.chunks(s).flat_map(|text| &text[..s - 1]).copied().collect(); // [b, s - 1]
    let targets = ids.chunks(s).flat_map(|text| &text[1..]).copied().collect(); //    [b, s - 1]
    Ok((inputs, targets))
    // task loss/shift: end
}

/// Task `loss/forward`. The loss of `logits`, `[b, s, v]`, as a single number, `[]`, for `targets`, `[b, s]`, row by
/// row.
///
/// ```text
/// loss = -(sum over asked places of log_softmax(logits)[target]) / (number of asked places)
/// ```
///
/// - Subtract the largest logit of a row before `exp`, as dfdx's `log_softmax` does.
/// - A place without a target has no part in the sum, in the number of places, or in the gradient. Its logits may hold
///   anything, even NaN, so a product with 0 is not enough: keep the rows that are asked about, and go on with these.
/// - A target that is not below `v`, at which dfdx would panic, is an `Err` that names the first of them, its row, its
///   column, and `v`.
/// - Without any target there is no mean, which is an `Err` too.
///
/// The gradient comes from the tape.
pub fn cross_entropy<B: Dim, S: Dim, V: Dim, D: Device<f32>, T: Tape<f32, D>>(
    logits: Tensor<(B, S, V), f32, D, T>,
    targets: &[Option<usize>],
) -> Result<Tensor<Rank0, f32, D, T>> {
    // task loss/forward: begin
    let (b, s, v) = *logits.shape();
    let bad = |target: &Option<usize>| target.is_some_and(|target| target >= v.size());
    if let Some(t) = targets.iter().position(bad) {
        let (target, row, column) = (targets[t].unwrap_or(0), t / s.size(), t % s.size());
        let v = v.size();
        return Err(format!("target {target} at [{row}, {column}] is not below the vocabulary size {v}"));
    }
    let asked = targets.iter().enumerate().filter_map(|(t, target)| Some((t, (*target)?)));
    let (places, targets): (Vec<usize>, Vec<usize>) = asked.unzip();
    if places.is_empty() {
        return Err("no place is asked about: a mean needs at least one".to_string());
    }
    let (dev, n) = (logits.device().clone(), places.len());
    let places = dev.tensor_from_vec(places, (n,)); //                      [n]
    let targets = dev.tensor_from_vec(targets, (n,)); //                    [n]

    let rows = logits.reshape_like(&(b.size() * s.size(), v)); //           [b s, v]
    let rows = rows.gather(places); //                                      [n, v]
    let found = rows.log_softmax::<Axis<1>>().select(targets); //           [n]
    Ok(found.sum::<Rank0, _>() / -(n as f32)) //                            []
    // task loss/forward: end
}

/// Task `loss/backward`. The gradient of the logits by hand, `[b, s, v]`, without a tape.
///
/// `dloss` is the gradient that arrives: 1 if the loss is the last thing that is computed.
///
/// ```text
/// dlogits = dloss · (softmax(logits) - one_hot(target)) / (number of asked places)
/// ```
///
/// It is exactly 0 at the places that are not asked about, no matter what their logits hold. All targets are below `v`,
/// and there is at least one.
pub fn backward<B: Dim, S: Dim, V: Dim, D: Device<f32>>(
    logits: Tensor<(B, S, V), f32, D>,
    targets: &[Option<usize>],
    dloss: f32,
) -> Tensor<(B, S, V), f32, D> {
    // task loss/backward: begin
    let (b, s, v) = *logits.shape();
    let asked = targets.iter().enumerate().filter_map(|(t, target)| Some((t, (*target)?)));
    let (places, targets): (Vec<usize>, Vec<usize>) = asked.unzip();
    let (dev, n) = (logits.device().clone(), places.len());
    let share = dloss / n as f32;

    let mut one_hot = vec![0.0; n * v.size()];
    targets.iter().enumerate().for_each(|(i, target)| one_hot[i * v.size() + target] = 1.0);
    let one_hot = dev.tensor_from_vec(one_hot, (n, v)); //                  [n, v]
    let rows = logits.reshape_like(&(b.size() * s.size(), v)); //           [b s, v]
    let rows = rows.gather(dev.tensor_from_vec(places.clone(), (n,))); //   [n, v]
    let drows = (rows.softmax::<Axis<1>>() - one_hot) * share; //           [n, v]

    // Zeros that are written, not multiplied: 0 times NaN is NaN.
    let mut dlogits = vec![0.0; b.size() * s.size() * v.size()];
    for (drow, place) in drows.as_vec().chunks(v.size()).zip(places) {
        dlogits[place * v.size()..][..v.size()].copy_from_slice(drow);
    }
    dev.tensor_from_vec(dlogits, (b, s, v)) //                              [b, s, v]
    // task loss/backward: end
}

/// Task `loss/perplexity`. The perplexity of a text that came in parts, each with its mean loss and the number of its
/// places.
///
/// ```text
/// perplexity = exp(mean of the loss over ALL places)
/// ```
///
/// Parts may differ in length, but there is at least one, and each has at least one place.
pub fn perplexity(parts: &[(f32, usize)]) -> f32 {
    // task loss/perplexity: begin
    let places: f32 = parts.iter().map(|(_, places)| *places as f32).sum();
    let total: f32 = parts.iter().map(|(loss, places)| loss * *places as f32).sum();
    (total / places).exp()
    // task loss/perplexity: end
}
