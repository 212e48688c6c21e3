//! GroupRMSNorm.

use super::{elements, length};
use crate::checks::check_eps;
use crate::cpu::{Source, add_parts};
use crate::error::{Error, Result};
use crate::norm::fused::Norm;
use crate::tensor::{Float, Scalar};

/// `y = x / sqrt(mean(x^2) + eps) * weight`, with the mean over each group of `group_size` consecutive elements.
///
/// Shapes: `x` and `y` `[rows, h]`, `weight` `[h]`. With `group_size = h` this is RMSNorm. See
/// [`functional::group_rms_norm`](crate::functional::group_rms_norm).
///
/// # Errors
/// No weights; a group size that does not divide `h`; an `eps` that is negative, or too small for the type that is computed in; a slice
/// of the wrong length.
pub fn group_rms_norm<N: Scalar>(
    x: &[N],
    weight: &[N],
    group_size: usize,
    eps: f64,
    y: &mut [N],
) -> Result<()> {
    let norm = checked(x, weight, group_size, eps)?;
    length("y", x.len(), y)?;
    norm.forward(&x, y, &mut []);
    Ok(())
}

/// Given `dy`, `[rows, h]`, accumulates into `dx`, `[rows, h]`, and `dweight`, `[h]`.
///
/// # Errors
/// As for [`group_rms_norm`].
pub fn group_rms_norm_backward<N: Scalar>(
    x: &[N],
    weight: &[N],
    group_size: usize,
    eps: f64,
    dy: &[N],
    (dx, dweight): (&mut [N], &mut [N]),
) -> Result<()> {
    let norm = checked(x, weight, group_size, eps)?;
    length("dy", x.len(), dy)?;
    length("dx", x.len(), dx)?;
    length("dweight", weight.len(), dweight)?;
    if !x.is_empty() {
        add_parts(&norm.backward(&x, &norm.inverses(&x), dy, dx), dweight);
    }
    Ok(())
}

fn checked<N: Scalar>(x: &[N], weight: &[N], group_size: usize, eps: f64) -> Result<Norm<N::Wide>> {
    let hidden_size = elements("weight", &[weight.len()])?;
    if group_size == 0 || hidden_size % group_size != 0 {
        return Err(Error::GroupSize { group_size, hidden_size });
    }
    check_eps::<N::Wide>(eps)?;
    length("x", x.len().next_multiple_of(hidden_size), x)?;
    Ok(Norm { group_size, eps: N::Wide::nearest(eps), gamma: weight.all() })
}
