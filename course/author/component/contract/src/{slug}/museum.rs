//! Bugs of {Type}.

use crate::component::{bug, bugs};
use crate::{slug}::interface::{Type}Case;
use crate::{slug}::oracle::{Type}Loops;

// TO DO: at least 5, each one step written wrong, with its story.
bugs! { InputReturned, ZerosReturned }

/// returns its input as it is
///
/// A branch for a layer that is switched off. Shapes and gradients look fine.
#[bug("{slug}/input-returned", named_by = "{slug}/forward-any-input")]
impl {Type}Loops for InputReturned {
    fn element(&self, case: &{Type}Case, i: usize) -> f64 {
        f64::from(case.x[i])
    }
}

/// returns zeros, of the right shape
///
/// The result was allocated and never filled.
#[bug("{slug}/zeros-returned", named_by = "{slug}/forward-any-input")]
impl {Type}Loops for ZerosReturned {
    fn element(&self, _: &{Type}Case, _: usize) -> f64 {
        0.0
    }
}
