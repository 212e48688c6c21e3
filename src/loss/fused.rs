//! The loss row by row, on a CPU. What it computes is defined in `mod.rs`.

use crate::cpu::{Values, each, gradient, in_wide_registers, is_fused, largest, record, sum};
use crate::tensor::*;
use num_traits::ToPrimitive;

/// The loss, with its gradient on the tape. `None` on other devices. `logits` must be contiguous.
///
/// Kept for the backward pass: `logits`, shared, and two numbers a row.
pub(super) fn cross_entropy<B: Dim, S: Dim, V: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>(
    logits: &Tensor<(B, S, V), F, D>,
    targets: &[Option<usize>],
    asked: usize,
    tape: &mut T,
) -> Raw<Option<Tensor<Rank0, F, D>>, D> {
    let (Some(values), true) = (Values::of(logits), is_fused::<D>()) else {
        return Ok(None);
    };
    let v = logits.shape().2.size();
    let mut rows = vec![Row::<F::Wide>::default(); targets.len()];
    each(values.len(), rows.iter_mut().zip(targets).enumerate(), |(nth, (row, target))| {
        if let Some(target) = target {
            *row = Row::of(&values, nth * v, v, *target);
        }
    });
    // A row that is not asked about has the loss 0.
    let total = rows.iter().fold(0.0, |total, row| total + row.loss.to_f64().unwrap_or(f64::NAN));
    let loss = vec![F::nearest(total / asked as f64)];
    let loss: Tensor<Rank0, F, D> = logits.device().try_tensor_from_vec(loss, ())?;
    if T::OWNS_TAPE {
        let (logits, targets) = (logits.clone(), targets.to_vec());
        record(tape, &loss, move |dloss, grads| {
            let share = dloss[0].wide() / F::Wide::nearest(asked as f64);
            let dlogits = gradient(grads, &logits)?.chunks_mut(v).zip(&rows).zip(&targets);
            each(values.len(), dlogits.enumerate(), |(nth, ((dlogits, row), target))| {
                if let Some(target) = target {
                    row.backward(&values, nth * v, *target, share, dlogits);
                }
            });
            Ok(())
        });
    }
    Ok(Some(loss))
}

/// What is known of the logits of one place.
#[derive(Debug, Clone, Copy, Default)]
struct Row<W> {
    largest: W,
    total: W, // of exp(logit - largest)
    loss: W,  // of its target
}

impl<W: Float<Wide = W>> Row<W> {
    fn of<F: Float<Wide = W>>(values: &Values<F>, first: usize, v: usize, target: usize) -> Self {
        let mut row = vec![W::zero(); v];
        values.widen(first, &mut row);
        let logit = row[target];
        let [largest, total] = denominator(&mut row);
        Self { largest, total, loss: (largest - logit) + total.ln() }
    }

    /// Adds `share (softmax(logits) - one_hot(target))`.
    fn backward<F: Float<Wide = W>>(
        &self,
        values: &Values<F>,
        first: usize,
        target: usize,
        share: W,
        dlogits: &mut [F],
    ) {
        let mut row = vec![W::zero(); dlogits.len()];
        values.widen(first, &mut row);
        softmax(&mut row, self.largest, self.total);
        row[target] -= W::one();
        for (dlogit, difference) in dlogits.iter_mut().zip(row) {
            *dlogit = F::narrow(dlogit.wide() + difference * share);
        }
    }
}

in_wide_registers! {
    /// The largest logit of a row, and the sum of `exp(logit - largest)`, which it leaves there.
    fn denominator<'a, W>(row: &'a mut [W]) -> [W; 2] {
        let largest = largest(row);
        row.iter_mut().for_each(|logit| *logit = (*logit - largest).exp_below_zero());
        [largest, sum(row.len(), |id| row[id])]
    }

    fn softmax<'a, W>(row: &'a mut [W], largest: W, total: W) -> () {
        let inverse = W::one() / total;
        for logit in row {
            *logit = (*logit - largest).exp_below_zero() * inverse;
        }
    }
}
