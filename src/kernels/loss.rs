//! The cross-entropy.

use super::length;
use crate::error::{Error, Result};
use crate::loss::fused::{self, Row};
use crate::tensor::{Float, Scalar};

/// The mean of `-ln softmax(logits)[target]` over the rows that have a target.
///
/// Shapes: `logits` `[rows, v]`, `targets` `[rows]`.
///
/// # Errors
/// No target at all; a target that is not below `v`; a slice of another length.
pub fn cross_entropy<N: Scalar>(logits: &[N], targets: &[Option<usize>]) -> Result<f64> {
    let (rows, asked) = checked(logits, targets)?;
    Ok(fused::total(&rows) / asked)
}

/// Adds to `dlogits`, `[rows, v]`, given the gradient of the loss.
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

/// What is known of each row, and how many have a target.
fn checked<N: Scalar>(logits: &[N], targets: &[Option<usize>]) -> Result<(Vec<Row<N::Wide>>, f64)> {
    let asked = targets.iter().flatten().count();
    if asked == 0 {
        return Err(Error::Empty { name: "the targets that are asked about", shape: vec![0] });
    }
    let v = logits.len() / targets.len();
    length("logits", targets.len() * v.max(1), logits)?;
    let outside = |target: &Option<usize>| target.is_some_and(|target| target >= v);
    if let Some(position) = targets.iter().position(outside) {
        let id = targets[position].unwrap_or_default();
        return Err(Error::TokenId { id, batch: 0, position, vocab_size: v });
    }
    Ok((fused::rows(&logits, targets), asked as f64))
}
