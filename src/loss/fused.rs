//! The loss row by row, on a CPU. What it computes is defined in `mod.rs`.

use crate::cpu::{
    Source, Values, each, gradient, in_wide_registers, is_fused, largest, record, sum,
};
use crate::tensor::*;

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
    let rows = rows(&values, targets);
    let total = total(&rows);
    let loss = vec![F::nearest(total / asked as f64)];
    let loss: Tensor<Rank0, F, D> = logits.device().try_tensor_from_vec(loss, ())?;
    if T::OWNS_TAPE {
        let (logits, targets) = (logits.clone(), targets.to_vec());
        record(tape, &loss, move |dloss, grads| {
            let share = dloss[0].wide() / F::Wide::nearest(asked as f64);
            backward(&values, &targets, &rows, share, gradient(grads, &logits)?);
            Ok(())
        });
    }
    Ok(Some(loss))
}

/// What is known of each place. One that is not asked about has the loss 0.
pub(crate) fn rows<F: Scalar>(
    logits: &impl Source<F>,
    targets: &[Option<usize>],
) -> Vec<Row<F::Wide>> {
    let v = logits.len() / targets.len();
    let mut rows = vec![Row::default(); targets.len()];
    each(logits.len(), rows.iter_mut().zip(targets).enumerate(), |(nth, (row, target))| {
        if let Some(target) = target {
            *row = Row::of(logits, nth * v, v, *target);
        }
    });
    rows
}

/// The sum of all losses.
pub(crate) fn total<W: Float>(rows: &[Row<W>]) -> f64 {
    rows.iter().fold(0.0, |total, row| total + row.loss.to_f64().unwrap_or(f64::NAN))
}

/// Adds to `dlogits`.
pub(crate) fn backward<F: Scalar>(
    logits: &impl Source<F>,
    targets: &[Option<usize>],
    rows: &[Row<F::Wide>],
    share: F::Wide,
    dlogits: &mut [F],
) {
    let v = logits.len() / targets.len();
    let dlogits = dlogits.chunks_mut(v).zip(rows).zip(targets);
    each(logits.len(), dlogits.enumerate(), |(nth, ((dlogits, row), target))| {
        if let Some(target) = target {
            row.backward(logits, nth * v, *target, share, dlogits);
        }
    });
}

/// What is known of the logits of one place.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Row<W> {
    largest: W,
    total: W, // of exp(logit - largest)
    loss: W,  // of its target
}

impl<W: Float<Wide = W>> Row<W> {
    fn of<F: Scalar<Wide = W>>(
        values: &impl Source<F>,
        first: usize,
        v: usize,
        target: usize,
    ) -> Self {
        let mut row = vec![W::zero(); v];
        values.widen(first, &mut row);
        let logit = row[target];
        let [largest, total] = denominator(&mut row);
        Self { largest, total, loss: (largest - logit) + total.ln() }
    }

    /// Adds `share (softmax(logits) - one_hot(target))`.
    fn backward<F: Scalar<Wide = W>>(
        &self,
        values: &impl Source<F>,
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
        [largest, sum([&*row], |[exp]| exp)]
    }

    fn softmax<'a, W>(row: &'a mut [W], largest: W, total: W) -> () {
        let inverse = W::one() / total;
        for logit in row {
            *logit = (*logit - largest).exp_below_zero() * inverse;
        }
    }
}
