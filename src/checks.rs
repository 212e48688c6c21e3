//! Checks that several components make.

use crate::error::{Error, Result};
use crate::tensor::Shape;

/// Returns `Ok` if `holds`, else [`Error::Setting`]. `NaN` never holds a comparison.
pub(crate) fn require(holds: bool, name: &'static str, rule: &'static str, got: f64) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Setting { name, rule, got }) }
}

pub(crate) fn not_empty<S: Shape>(name: &'static str, shape: &S) -> Result<()> {
    let shape: Vec<usize> = shape.concrete().into();
    if shape.contains(&0) { Err(Error::Empty { name, shape }) } else { Ok(()) }
}

pub(crate) fn same_shape(name: &'static str, expected: &[usize], got: &[usize]) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(Error::Shape { name, expected: expected.to_vec(), got: got.to_vec() })
}
