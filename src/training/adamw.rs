//! AdamW: a step with its own learning rate, and decay of matrices only.

use crate::checks::require;
use crate::error::{Error, Result};
use crate::tensor::nn::tensor_collection::{RecursiveWalker, TensorVisitor, ViewTensorMut};
use crate::tensor::optim::WeightDecay;
use crate::tensor::tensor_ops::AdamConfig;
use crate::tensor::*;
use std::fmt;

/// Settings of [`AdamW`], without the learning rate, which each step has for itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamWConfig {
    /// How much of the mean gradient, and of the mean square, a step keeps. Default `[0.9, 0.95]`, as for Llama.
    pub betas: [f64; 2],
    /// Added to the root of the mean square. Default `1e-8`, which half precision can't hold: take `1e-4` there, or more.
    pub eps: f64,
    /// The part of a weight that a step takes away, times the learning rate. Default 0.1, as for Llama. Gains and biases
    /// do not decay: tensors of one dimension.
    pub weight_decay: f64,
}

impl Default for AdamWConfig {
    fn default() -> Self {
        Self { betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.1 }
    }
}

impl AdamWConfig {
    /// Each setting, and what the float type of the weights makes of it.
    fn check<F: Float>(&self) -> Result<()> {
        let held = |value: f64| F::nearest(value).to_f64().unwrap_or(f64::NAN);
        let rule = "at least 0 and below 1, also in the weights' float type";
        let [first, second] = self.betas;
        require(first >= 0.0 && held(first) < 1.0, "betas[0]", rule, first)?;
        require(second >= 0.0 && held(second) < 1.0, "betas[1]", rule, second)?;
        let rule = "a positive number that the weights' float type can hold";
        let eps = held(self.eps);
        require(eps > 0.0 && eps.is_finite(), "eps", rule, self.eps)?;
        let (decay, rule) = (self.weight_decay, "at least 0 and finite");
        require(decay >= 0.0 && decay.is_finite(), "weight_decay", rule, decay)
    }
}

/// Adam with decoupled weight decay.
///
/// ```text
/// m = b1 m + (1 - b1) g             the mean gradient
/// v = b2 v + (1 - b2) g^2           the mean square
/// w = w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) - lr decay w
/// ```
///
/// The arithmetic is dfdx's own, on any device. A weight without a gradient counts as one whose gradient is 0. Source:
/// Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization".
pub struct AdamW<F: Dtype, D: Storage<F>> {
    config: AdamWConfig,
    pub(super) steps: usize,
    pub(super) means: Gradients<F, D>,
    pub(super) squares: Gradients<F, D>,
}

impl<F: Float, D: Backend<F>> AdamW<F, D> {
    /// An optimizer that has not made a step.
    ///
    /// # Errors
    /// A beta that is not in `[0, 1)`; an eps that is not above 0; one that is not so any more once it is rounded to `F`; a
    /// decay below 0.
    pub fn new(config: AdamWConfig) -> Result<Self> {
        config.check::<F>()?;
        Ok(Self { config, steps: 0, means: Gradients::leaky(), squares: Gradients::leaky() })
    }

    /// The settings.
    pub fn config(&self) -> &AdamWConfig {
        &self.config
    }

    /// `t`, the steps that were made.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// One step with the learning rate `lr`.
    ///
    /// # Errors
    /// A rate below 0 or not finite, and then nothing is changed; what the device reports.
    pub fn update<M: TensorCollection<F, D>>(
        &mut self,
        module: &mut M,
        grads: &mut Gradients<F, D>,
        lr: f64,
    ) -> Result<()> {
        let rule = "at least 0 and finite, also in the weights' float type";
        require(lr >= 0.0 && F::nearest(lr).is_finite(), "the learning rate", rule, lr)?;
        let steps = self.steps + 1;
        let t = i32::try_from(steps);
        require(t.is_ok(), "the number of steps", "at most 2147483647", steps as f64)?;
        let mut step = Step { adam: self, grads, lr, t: t.unwrap_or(i32::MAX) };
        M::iter_tensors(&mut RecursiveWalker { m: module, f: &mut step }).map_err(Error::device)?;
        self.steps = steps;
        Ok(())
    }
}

struct Step<'a, F: Float, D: Backend<F>> {
    adam: &'a mut AdamW<F, D>,
    grads: &'a mut Gradients<F, D>,
    lr: f64,
    t: i32,
}

impl<F: Float, D: Backend<F>> TensorVisitor<F, D> for Step<'_, F, D> {
    type Viewer = ViewTensorMut;
    type Err = D::Err;
    type E2 = F;
    type D2 = D;

    fn visit<S: Shape>(
        &mut self,
        options: TensorOptions<S, F, D>,
        weight: &mut Tensor<S, F, D>,
    ) -> std::result::Result<Option<Tensor<S, F, D>>, D::Err> {
        if !options.do_gradient_update {
            return Ok(None);
        }
        let AdamWConfig { betas, eps, weight_decay } = self.adam.config;
        let decay = (S::NUM_DIMS > 1).then_some(WeightDecay::Decoupled(weight_decay));
        let config = AdamConfig { lr: self.lr, betas, eps, weight_decay: decay };
        let mean = self.adam.means.get_or_alloc_mut(weight)?;
        let square = self.adam.squares.get_or_alloc_mut(weight)?;
        let gradient = &*self.grads.get_or_alloc_mut(weight)?;
        config.try_update(self.t, weight, mean, square, gradient)?;
        Ok(None)
    }
}

/// Shows the settings, not the state.
impl<F: Dtype, D: Storage<F>> fmt::Debug for AdamW<F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdamW")
            .field("config", &self.config)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}
