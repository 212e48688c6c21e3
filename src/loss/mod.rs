//! The loss of a language model: how surprised it is by the next token.
//!
//! [`next_tokens`] shifts, [`cross_entropy`] compares, [`perplexity`] says the same in another unit.

mod formula;
pub(crate) mod fused;

pub use formula::{cross_entropy, next_tokens};

use crate::checks::require;
use crate::error::Result;

/// The id that is not asked about, if nothing else is said: no vocabulary has it. (PyTorch's is -100.)
pub const IGNORE: usize = usize::MAX;

/// `exp(loss)`: among how many tokens the model chooses, as if all were equally likely.
///
/// A model that gives all `v` tokens the same probability has the loss `ln v` and the perplexity `v`.
///
/// ```
/// use quadrivium::loss::perplexity;
///
/// assert!((perplexity((1000.0_f64).ln()) - 1000.0).abs() < 1e-9);
/// ```
pub fn perplexity(loss: f64) -> f64 {
    loss.exp()
}

// ANCHOR: mean_loss
/// The mean loss of a text that came in parts, each with its own mean and its number of places.
///
/// A part weighs as much as it has places. `perplexity(mean_loss(parts)?)` is the perplexity of the whole text; the mean of
/// the parts' perplexities is not.
///
/// ```
/// use quadrivium::loss::mean_loss;
///
/// assert_eq!(mean_loss(&[(2.0, 30), (6.0, 10)])?, 3.0);
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// # Errors
/// Parts without any place.
pub fn mean_loss(parts: &[(f64, usize)]) -> Result<f64> {
    let places: f64 = parts.iter().map(|(_, places)| *places as f64).sum();
    require(places >= 1.0, "the number of places", "at least 1", places)?;
    let asked = parts.iter().filter(|(_, places)| *places > 0); // infinity times 0 is NaN
    Ok(asked.map(|(loss, places)| loss * *places as f64).sum::<f64>() / places)
}
// ANCHOR_END: mean_loss
