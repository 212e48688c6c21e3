//! The cross-entropy.

use super::{elements, length};
use crate::checks::require;
use crate::error::{Error, Result};
use crate::loss::fused::{self, Row};
use crate::tensor::{Float, Scalar};

/// The mean of `-ln softmax(logits)[target]` over the rows that have a target.
///
/// Shapes: `logits` `[rows, v]`, `targets` `[rows]`.
///
/// # Errors
/// No target at all; a target of `v` or more; a slice of the wrong length.
pub fn cross_entropy<N: Scalar>(logits: &[N], targets: &[Option<usize>]) -> Result<f64> {
    let (rows, asked) = checked(logits, targets)?;
    Ok(fused::total(&rows) / asked)
}

/// Given `dloss`, the gradient with respect to the loss, accumulates into `dlogits`, `[rows, v]`.
///
/// # Errors
/// As for [`cross_entropy`].
pub fn cross_entropy_backward<N: Scalar>(
    logits: &[N],
    targets: &[Option<usize>],
    dloss: f64,
    dlogits: &mut [N],
) -> Result<()> {
    length("dlogits", logits.len(), dlogits)?;
    let (rows, asked) = checked(logits, targets)?;
    let share = N::Wide::nearest(dloss) / N::Wide::nearest(asked);
    fused::backward(&logits, targets, &rows, share, dlogits);
    Ok(())
}

/// Each row's statistics, and how many rows have a target.
fn checked<N: Scalar>(logits: &[N], targets: &[Option<usize>]) -> Result<(Vec<Row<N::Wide>>, f64)> {
    let asked = targets.iter().flatten().count() as f64;
    require(asked > 0.0, "the number of targets that are asked about", "at least 1", asked)?;
    let v = logits.len() / targets.len();
    length("logits", elements("logits", &[targets.len(), v])?, logits)?;
    let outside = |target: &Option<usize>| target.is_some_and(|target| target >= v);
    if let Some(position) = targets.iter().position(outside) {
        let id = targets[position].unwrap_or_default();
        return Err(Error::TokenId { id, batch: 0, position, vocab_size: v });
    }
    Ok((fused::rows(&logits, targets), asked))
}
