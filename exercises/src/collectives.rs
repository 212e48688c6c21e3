//! The tasks of Collectives.
//!
//! TO DO: the formula, and where it comes from.

use crate::prelude::*;

/// Collectives for tokens of `H` elements.
#[derive(Clone)]
pub struct Collectives<const H: usize>;

#[allow(clippy::new_without_default)]
impl<const H: usize> Collectives<H> {
    /// Task `collectives/forward`. TO DO: the formula, and what a learner must know of dfdx to write it.
    ///
    /// ```text
    /// y = …
    /// ```
    pub fn forward<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        x: Tensor<(B, S, Const<H>), f32, Cpu, T>,
    ) -> Tensor<(B, S, Const<H>), f32, Cpu, T> {
        // task collectives/forward: begin
        todo!("task collectives/forward")
        // task collectives/forward: end
    }

    // Task `collectives/types`, about types. `new` takes every `H`, also 0, and no token has 0 elements. Change its body,
    // so that a program with such a size does not compile. `const { assert!(..) }` in a function is checked
    // for each size with which the function is used.

    /// A module.
    // task collectives/types: begin
    // to do: task collectives/types, the function below
    pub fn new() -> Self {
        Self
    }
    // task collectives/types: end
}
