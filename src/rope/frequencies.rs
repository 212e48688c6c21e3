//! Frequencies of the planes, and how NTK slows them.

use crate::checks::require;
use crate::error::{Error, Result};

// ANCHOR: frequencies
/// The base that slows the slowest plane by exactly `ratio` and leaves the fastest as it is.
///
/// `base' = base * k^(d / (d - 2))`. It is the same as multiplying `beta = base^(2/d)` by
/// `c = k^(2 / (d - 2))`. Source: bloc97 2023, "NTK-Aware Scaled RoPE"; Peng et al. 2023, YaRN.
///
/// # Errors
/// A head size that is odd, below 4 or above 65,536; `base <= 1`; `ratio < 1`; numbers that are
/// not finite, the result too.
pub fn ntk_base(base: f64, head_dim: usize, ratio: f64) -> Result<f64> {
    let d = check_head_dim(head_dim)? as f64;
    require(base.is_finite() && base > 1.0, "base", "finite and above 1", base)?;
    require(ratio.is_finite() && ratio >= 1.0, "ratio", "finite and at least 1", ratio)?;
    let slowed = base * ratio.powf(d / (d - 2.0));
    require(slowed.is_finite(), "base after NTK", "finite", slowed)?;
    Ok(slowed)
}

/// `theta_i = base'^(-2i / d)` for `i` in `0 .. d/2`, in radians per position.
///
/// `theta_0 = 1` is the fastest plane, the last is the slowest. `ratio = 1` is plain RoPE.
///
/// # Errors
/// As for [`ntk_base`].
pub fn rotary_frequencies(head_dim: usize, base: f64, ratio: f64) -> Result<Vec<f64>> {
    let base = ntk_base(base, head_dim, ratio)?;
    let d = head_dim as f64;
    Ok((0..head_dim / 2).map(|i| base.powf(-2.0 * i as f64 / d)).collect())
}
// ANCHOR_END: frequencies

// ANCHOR: ratio_for_length
/// The smallest EVEN `k` with `max_seq_len * k >= length`, which is
/// `2 * ceil(length / (2 * max_seq_len))`; for `length = 0` it is 2.
///
/// # Errors
/// `max_seq_len = 0`, or a `k` that does not fit in `usize`.
pub fn ratio_for_length(length: usize, max_seq_len: usize) -> Result<usize> {
    require(max_seq_len > 0, "max_seq_len", "at least 1", 0.0)?;
    let half = length.max(1).div_ceil(max_seq_len.saturating_mul(2));
    let rule = "small enough for its ratio to fit in usize";
    let too_long = Error::Setting { name: "length", rule, got: length as f64 };
    half.checked_mul(2).ok_or(too_long)
}
// ANCHOR_END: ratio_for_length

/// The largest head size. Real ones are below 1000.
const MAX_HEAD_DIM: usize = 1 << 16;

pub(crate) fn check_head_dim(head_dim: usize) -> Result<usize> {
    if (4..=MAX_HEAD_DIM).contains(&head_dim) && head_dim % 2 == 0 {
        Ok(head_dim)
    } else {
        Err(Error::HeadDim { head_dim })
    }
}
