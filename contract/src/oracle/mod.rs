//! The components as plain `f64` loops, straight from their formulas.
//!
//! Each component is a trait of small steps with default bodies; [`Oracle`] takes them all as they
//! are. A known bug of a museum is the same loops with one step written wrong. Nothing
//! here is shared with any implementation that is judged.

pub mod blocks;
pub mod known;
pub mod random;

use std::rc::Rc;

/// The implementation that takes every step as the formula has it. Answers are rounded to `f32` once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Oracle;

/// An implementation made of loops. Each component has a function `implementation` for it: `norm::implementation(Oracle)` is the
/// oracle, `norm::implementation(SomeBug)` a bug.
pub struct Loops<L: ?Sized>(pub(crate) Rc<L>);

/// The nearest value of `f16`, as `f32`.
pub fn to_f16(x: f64) -> f32 {
    half::f16::from_f64(x).to_f32()
}
