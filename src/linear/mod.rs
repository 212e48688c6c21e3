//! A matrix of weights: `y = x W^T`, without bias, as every projection of a Llama is.
//!
//! This file holds the weight and its settings. The computation is [`linear`].

mod formula;
mod fused;

pub use formula::linear;

use crate::checks::MAX_ELEMENTS;
use crate::error::{Error, Result};
use crate::init::Init;
use crate::module::{drawn_weight, shown};
use crate::tensor::*;
use const_panic::concat_panic;
use std::fmt;

/// Settings of a [`Linear`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearConfig {
    /// Standard deviation of the normal distribution that the weight starts from; its mean is 0. Default
    /// 0.02, as in GPT-2 and Llama.
    pub init_std: f64,
    /// Seed of the weight. Default 42.
    pub init_seed: u64,
}

impl Default for LinearConfig {
    fn default() -> Self {
        Self { init_std: 0.02, init_seed: 42 }
    }
}

impl LinearConfig {
    /// What the initial values are drawn from.
    pub fn init(&self) -> Init {
        Init::Normal { mean: 0.0, std: self.init_std, seed: self.init_seed }
    }
}

/// A matrix of weights, `y = x weight^T`.
///
/// - `I`: elements of each token that comes in.
/// - `O`: elements of each token that goes out.
///
/// Both are dimensions that the compiler knows, as [`Const`] or [`Product`]. Input `[b, s, I]`, output
/// `[b, s, O]`.
///
/// ```
/// use quadrivium::tensor::*;
/// use quadrivium::linear::{Linear, LinearConfig};
///
/// let dev = Cpu::default();
/// let mut linear = Linear::<Const<2>, Const<3>, f32, _>::new(&dev, LinearConfig::default())?;
/// linear.weight = dev.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]); //  [o, i]
/// let y = linear.try_forward(dev.tensor([[[2.0, 3.0]]]))?;
/// assert_eq!(y.array(), [[[2.0, 3.0, 5.0]]]);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct Linear<I: ConstDim, O: ConstDim, F: Dtype, D: Storage<F>> {
    /// The matrix, `[o, i]`, as PyTorch keeps it.
    pub weight: Tensor<(O, I), F, D>,
    config: LinearConfig,
}

const fn assert_matrix(inputs: usize, outputs: usize) {
    if inputs == 0 || outputs == 0 {
        concat_panic!("a matrix from ", inputs, " to ", outputs, " elements is empty");
    }
    match inputs.checked_mul(outputs) {
        Some(elements) if elements <= MAX_ELEMENTS => {}
        _ => concat_panic!("a matrix from ", inputs, " to ", outputs, " elements is too large"),
    }
}

impl<I: ConstDim, O: ConstDim, F: Float, D: Backend<F>> Linear<I, O, F, D> {
    /// A matrix drawn from the settings.
    ///
    /// # Errors
    /// A standard deviation that is negative or not finite; what the device reports.
    pub fn new(dev: &D, config: LinearConfig) -> Result<Self> {
        const { assert_matrix(I::SIZE, O::SIZE) };
        let weight = dev.try_zeros().map_err(Error::device)?;
        let mut linear = Self::with_weight(weight, config)?;
        linear.reset_parameters()?;
        Ok(linear)
    }

    /// A given matrix, `[o, i]`. Nothing is drawn.
    ///
    /// # Errors
    /// Settings that [`Linear::new`] would refuse.
    pub fn with_weight(weight: Tensor<(O, I), F, D>, config: LinearConfig) -> Result<Self> {
        const { assert_matrix(I::SIZE, O::SIZE) };
        config.init().check()?;
        let weight = weight.try_contiguous().map_err(Error::device)?;
        Ok(Self { weight, config })
    }

    /// Draws the weight again. The same seed gives the same weight.
    ///
    /// # Errors
    /// What the device reports; then the weight is as it was.
    pub fn reset_parameters(&mut self) -> Result<()> {
        self.config.init().fill(&mut self.weight)
    }
}

impl<I: ConstDim, O: ConstDim, F: Dtype, D: Storage<F>> Linear<I, O, F, D> {
    /// The settings.
    pub fn config(&self) -> &LinearConfig {
        &self.config
    }
}

impl<I: ConstDim, O: ConstDim, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tensor<(B, S, I), F, D, T>> for Linear<I, O, F, D>
{
    type Output = Tensor<(B, S, O), F, D, T>;
    type Error = Error;

    fn try_forward(&self, x: Tensor<(B, S, I), F, D, T>) -> Result<Self::Output> {
        const { assert_matrix(I::SIZE, O::SIZE) };
        linear(x, &self.weight)
    }
}

drawn_weight! {
    [I: ConstDim, O: ConstDim] Linear<I, O>, LinearConfig, assert_matrix(I::SIZE, O::SIZE)
}

impl<I: ConstDim, O: ConstDim, F: Dtype, D: Storage<F>> fmt::Display for Linear<I, O, F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linear(inputs={}, outputs={})", I::SIZE, O::SIZE)
    }
}

shown! {
    [I: ConstDim, O: ConstDim, F: Dtype, D: Storage<F>] Linear<I, O, F, D>, inputs: I::SIZE, outputs: O::SIZE; config
}
