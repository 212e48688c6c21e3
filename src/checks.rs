//! Checks that several components make.

use crate::error::{Error, Result};
use crate::tensor::{Float, Shape};

/// Returns `Ok` if `holds`, else [`Error::Setting`]. `NaN` never holds a comparison.
pub(crate) fn require(holds: bool, name: &'static str, rule: &'static str, got: f64) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Setting { name, rule, got }) }
}

/// The most elements of a tensor: no allocation is larger than `isize::MAX` bytes, and 8 bytes is
/// the largest element.
pub(crate) const MAX_ELEMENTS: usize = isize::MAX as usize / 8;

/// Refuses a shape without elements, and one of more than [`MAX_ELEMENTS`]. A broadcast tensor may
/// have such a shape in no memory at all, and dfdx panics on it.
pub(crate) fn check_size<S: Shape>(name: &'static str, shape: &S) -> Result<()> {
    let shape: Vec<usize> = shape.concrete().into();
    if shape.contains(&0) {
        return Err(Error::Empty { name, shape });
    }
    match shape.iter().try_fold(1usize, |elements, &size| elements.checked_mul(size)) {
        Some(elements) if elements <= MAX_ELEMENTS => Ok(()),
        _ => Err(Error::TooLarge { name, shape, limit: MAX_ELEMENTS }),
    }
}

pub(crate) fn same_shape(name: &'static str, expected: &[usize], got: &[usize]) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(Error::Shape { name, expected: expected.to_vec(), got: got.to_vec() })
}

/// `eps` is added to a mean of squares, or to a variance, in `W`, so it may be neither negative nor lost there.
pub(crate) fn check_eps<W: Float>(eps: f64) -> Result<()> {
    let held = W::nearest(eps);
    let holds = held.is_finite() && (eps == 0.0 || held > W::zero());
    require(holds, "eps", "0, or a positive number that its float type can hold", eps)
}
