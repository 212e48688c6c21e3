//! LayerNorm: each token minus its mean, divided by its standard deviation.
//!
//! This file holds the weight and the bias with their settings. The computation is [`layer_norm`].
//! [`GroupRmsNorm`](crate::GroupRmsNorm) is what is left of it without the mean and without the bias.

pub mod builder;
mod formula;
mod fused;

pub use formula::layer_norm;

use crate::checks::{MAX_ELEMENTS, check_eps};
use crate::error::{Error, Result};
use crate::module::shown;
use crate::tensor::*;
use const_panic::concat_panic;
use std::cell::Cell;
use std::fmt;

/// Settings of a [`LayerNorm`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerNormConfig {
    /// Added to the variance, inside the root. Default `1e-5`. With 0, a token of equal values gives NaN.
    pub eps: f64,
}

impl Default for LayerNormConfig {
    fn default() -> Self {
        Self { eps: 1e-5 }
    }
}

/// Layer normalization: `y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias`.
///
/// - `H`: hidden size, elements per token. At least 1.
///
/// Input and output are `[b, s, H]`; `b` and `s` may be `Const` or run-time sizes. The weight starts
/// at 1 and the bias at 0, as in PyTorch; dfdx's `reset_params` sets them so again.
///
/// ```
/// use quadrivium::tensor::*;
/// use quadrivium::{LayerNorm, LayerNormConfig};
///
/// let dev = Cpu::default();
/// let norm = LayerNorm::<4, f32, _>::new(&dev, LayerNormConfig::default())?;
/// let y = norm.try_forward(dev.tensor([[[101.0, 99.0, 101.0, 99.0]]]))?;
/// // The mean is gone, and the standard deviation is 1 now, up to eps.
/// for (got, want) in y.as_vec().iter().zip([1.0, -1.0, 1.0, -1.0]) {
///     assert!((got - want).abs() < 1e-4);
/// }
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// A token of no elements does not compile:
/// ```compile_fail
/// use quadrivium::{tensor::Cpu, LayerNorm, LayerNormConfig};
/// let norm = LayerNorm::<0, f32, _>::new(&Cpu::default(), LayerNormConfig::default());
/// ```
#[derive(Clone)]
pub struct LayerNorm<const H: usize, F: Dtype, D: Storage<F>> {
    /// The learnable scale, gamma, `[h]`.
    pub weight: Tensor<Rank1<H>, F, D>,
    /// The learnable shift, beta, `[h]`.
    pub bias: Tensor<Rank1<H>, F, D>,
    config: LayerNormConfig,
}

const fn assert_size(hidden_size: usize) {
    if hidden_size > MAX_ELEMENTS {
        concat_panic!("hidden size ", hidden_size, " is larger than memory has addresses for");
    }
    if hidden_size == 0 {
        concat_panic!("hidden size is 0, but a token has at least 1 element");
    }
}

impl<const H: usize, F: Float, D: Backend<F>> LayerNorm<H, F, D> {
    /// A norm with a weight of ones and a bias of zeros.
    ///
    /// # Errors
    /// An `eps` that is negative, not finite, or rounds to 0; what the device reports.
    pub fn new(dev: &D, config: LayerNormConfig) -> Result<Self> {
        const { assert_size(H) };
        let weight = dev.try_ones().map_err(Error::device)?;
        let bias = dev.try_zeros().map_err(Error::device)?;
        Self::with_weight(weight, bias, config)
    }

    /// A norm with a given weight and bias, `[h]` each.
    ///
    /// # Errors
    /// Settings that [`LayerNorm::new`] would refuse.
    pub fn with_weight(
        weight: Tensor<Rank1<H>, F, D>,
        bias: Tensor<Rank1<H>, F, D>,
        config: LayerNormConfig,
    ) -> Result<Self> {
        const { assert_size(H) };
        check_eps::<F::Wide>(config.eps)?;
        let weight = weight.try_contiguous().map_err(Error::device)?;
        let bias = bias.try_contiguous().map_err(Error::device)?;
        Ok(Self { weight, bias, config })
    }
}

impl<const H: usize, F: Dtype, D: Storage<F>> LayerNorm<H, F, D> {
    /// The settings.
    pub fn config(&self) -> &LayerNormConfig {
        &self.config
    }
}

impl<const H: usize, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tensor<(B, S, Const<H>), F, D, T>> for LayerNorm<H, F, D>
{
    type Output = Tensor<(B, S, Const<H>), F, D, T>;
    type Error = Error;

    fn try_forward(&self, x: Tensor<(B, S, Const<H>), F, D, T>) -> Result<Self::Output> {
        const { assert_size(H) };
        layer_norm(x, &self.weight, &self.bias, self.config.eps)
    }
}

impl<const H: usize, F: Dtype, D: Storage<F>> NonMutableModule for LayerNorm<H, F, D> {}

impl<const H: usize, F: Float, D: Backend<F>> TensorCollection<F, D> for LayerNorm<H, F, D> {
    type To<F2: Dtype, D2: Device<F2>> = LayerNorm<H, F2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, F, D>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        const { assert_size(H) };
        // dfdx copies tensors between modules, but not settings. They are noted here when dfdx
        // reaches for a tensor. A module that is built from nothing gets the defaults.
        let config = Cell::new(LayerNormConfig::default());
        let build = |(weight, bias)| LayerNorm { weight, bias, config: config.get() };
        visitor.visit_fields(
            (
                Self::tensor(
                    "weight",
                    |norm| {
                        config.set(norm.config);
                        &norm.weight
                    },
                    |norm| {
                        config.set(norm.config);
                        &mut norm.weight
                    },
                    TensorOptions::reset_to_ones(),
                ),
                Self::tensor(
                    "bias",
                    |norm| &norm.bias,
                    |norm| &mut norm.bias,
                    TensorOptions::reset_to_zeros(),
                ),
            ),
            build,
        )
    }
}

impl<const H: usize, F: Dtype, D: Storage<F>> fmt::Display for LayerNorm<H, F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LayerNorm(hidden_size={H}, eps={:e})", self.config.eps)
    }
}

shown! {
    [const H: usize, F: Dtype, D: Storage<F>] LayerNorm<H, F, D>, hidden_size: H; config
}
