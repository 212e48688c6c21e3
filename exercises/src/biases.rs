//! The tasks of ScoreBiases.
//!
//! TO DO: the formula, and where it comes from.

use crate::prelude::*;

/// ScoreBiases for tokens of `H` elements.
#[derive(Clone)]
pub struct ScoreBiases<const H: usize>;

#[allow(clippy::new_without_default)]
impl<const H: usize> ScoreBiases<H> {
    /// Task `biases/forward`. TO DO: the formula, and what a learner must know of dfdx to write it.
    ///
    /// ```text
    /// y = …
    /// ```
    pub fn forward<B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        x: Tensor<(B, S, Const<H>), f32, Cpu, T>,
    ) -> Tensor<(B, S, Const<H>), f32, Cpu, T> {
        // task biases/forward: begin
        todo!("task biases/forward")
        // task biases/forward: end
    }

    // Task `biases/types`, about types. `new` takes every `H`, also 0, and no token has 0 elements. Change its body,
    // so that a program with such a size does not compile. `const { assert!(..) }` in a function is checked
    // for each size with which the function is used.

    /// A module.
    // task biases/types: begin
    // to do: task biases/types, the function below
    pub fn new() -> Self {
        Self
    }
    // task biases/types: end
}
