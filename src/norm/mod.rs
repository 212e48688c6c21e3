//! GroupRMSNorm: each group of the hidden axis divided by its root mean square.
//!
//! This file holds the weight and its settings. The computation is [`group_rms_norm`]. It does not
//! centre, has no bias, and keeps no running statistics.

pub mod builder;
mod formula;
pub(crate) mod fused;
mod ranks;

pub use formula::group_rms_norm;

use crate::checks::{MAX_ELEMENTS, check_eps};
use crate::error::{Error, Result};
use crate::init::Init;
use crate::module::{drawn_weight, shown};
use crate::tensor::*;
use const_panic::concat_panic;
use std::fmt;

/// Settings of a [`GroupRmsNorm`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupRmsNormConfig {
    /// Added to the mean square, inside the root. Default `1e-5`. With 0, a group of zeros gives NaN;
    /// [`group_rms_norm`] says more.
    pub eps: f64,
    /// The weight starts uniform on `[low, high)`. Default `(-1.0, 1.0)`, so that no two elements
    /// have the same scale and a mix-up shows. PyTorch's `RMSNorm` starts at 1: `(1.0, 1.0)`.
    pub init_range: (f64, f64),
    /// Seed of the weight. Default 42.
    pub init_seed: u64,
}

impl Default for GroupRmsNormConfig {
    fn default() -> Self {
        Self { eps: 1e-5, init_range: (-1.0, 1.0), init_seed: 42 }
    }
}

impl GroupRmsNormConfig {
    /// What the initial values are drawn from.
    pub fn init(&self) -> Init {
        let (low, high) = self.init_range;
        Init::Uniform { low, high, seed: self.init_seed }
    }
}

/// Root mean square normalization in groups: `y = x / sqrt(mean(x^2) + eps) * weight`.
///
/// - `H`: hidden size, elements per token.
/// - `GZ`: group size, ELEMENTS per group. It must divide `H`; if not, it does not compile (`cargo
///   build` says so; `cargo check` and editors do not look at sizes). `GZ = H` is plain RMSNorm.
///
/// Input and output are `[b, s, H]`; `b` and `s` may be `Const` or run-time sizes. For `[rows, H]`
/// there is [`GroupRmsNorm::try_forward_rows`], for heads `[b, s, nh, H]`
/// [`GroupRmsNorm::try_forward_heads`].
///
/// Gamma starts uniform on [-1, 1). For PyTorch's ones, and for training from nothing:
/// ```
/// use quadrivium::tensor::*;
/// use quadrivium::{GroupRmsNorm, GroupRmsNormConfig};
///
/// let ones = GroupRmsNormConfig { init_range: (1.0, 1.0), ..Default::default() };
/// let norm = GroupRmsNorm::<4, 4, f32, _>::new(&Cpu::default(), ones)?;
/// assert_eq!(norm.weight.array(), [1.0; 4]);
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// Two groups of a token:
/// ```
/// use quadrivium::tensor::*;
/// use quadrivium::{GroupRmsNorm, GroupRmsNormConfig};
///
/// let dev = Cpu::default();
/// let mut norm = GroupRmsNorm::<4, 2, f32, _>::new(&dev, GroupRmsNormConfig::default())?;
/// norm.weight = dev.ones();
/// let x = dev.tensor([[[3.0, -3.0, 0.5, 0.5]]]);
/// let y = norm.try_forward(x)?;
/// // Each group has root mean square 1 now, up to eps.
/// for (got, want) in y.as_vec().iter().zip([1.0, -1.0, 1.0, 1.0]) {
///     assert!((got - want).abs() < 1e-4);
/// }
/// # Ok::<(), quadrivium::Error>(())
/// ```
///
/// A group size that does not divide the hidden size does not compile:
/// ```compile_fail
/// use quadrivium::{tensor::Cpu, GroupRmsNorm, GroupRmsNormConfig};
/// let norm = GroupRmsNorm::<8, 3, f32, _>::new(&Cpu::default(), GroupRmsNormConfig::default());
/// ```
#[derive(Clone)]
pub struct GroupRmsNorm<const H: usize, const GZ: usize, F: Dtype, D: Storage<F>> {
    /// The learnable scale, gamma, `[h]`. One number per element, not per group.
    pub weight: Tensor<Rank1<H>, F, D>,
    config: GroupRmsNormConfig,
}

// ANCHOR: assert_groups
const fn assert_groups(hidden_size: usize, group_size: usize) {
    if hidden_size > MAX_ELEMENTS {
        concat_panic!("hidden size ", hidden_size, " is larger than memory has addresses for");
    }
    if hidden_size == 0 {
        concat_panic!("hidden size is 0, but a token has at least 1 element");
    }
    if group_size == 0 {
        concat_panic!("group size is 0, but a group has at least 1 element");
    }
    if hidden_size % group_size != 0 {
        concat_panic!(
            "group size ",
            group_size,
            " does not divide hidden size ",
            hidden_size,
            ": choose a group size that divides ",
            hidden_size
        );
    }
}
// ANCHOR_END: assert_groups

impl<const H: usize, const GZ: usize, F: Float, D: Backend<F>> GroupRmsNorm<H, GZ, F, D> {
    /// A norm with its weight drawn from the settings.
    ///
    /// # Errors
    /// An `eps` that is negative, not finite, or rounds to 0; a range that runs backward; what the
    /// device reports.
    pub fn new(dev: &D, config: GroupRmsNormConfig) -> Result<Self> {
        const { assert_groups(H, GZ) };
        let weight = dev.try_zeros().map_err(Error::device)?;
        let mut norm = Self::with_weight(weight, config)?;
        norm.reset_parameters()?;
        Ok(norm)
    }

    /// A norm with a given weight, `[h]`. Nothing is drawn.
    ///
    /// # Errors
    /// Settings that [`GroupRmsNorm::new`] would refuse.
    pub fn with_weight(weight: Tensor<Rank1<H>, F, D>, config: GroupRmsNormConfig) -> Result<Self> {
        const { assert_groups(H, GZ) };
        check_eps::<F::Wide>(config.eps)?;
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

    /// Normalizes an input of another float type than the weight's. For inference: no tape.
    ///
    /// The result has the input's type; the arithmetic is in its wide type. (A dfdx tape holds
    /// gradients of one type only.)
    ///
    /// # Errors
    /// An empty input; what the device reports.
    pub fn try_forward_mixed<B: Dim, S: Dim, X: Float>(
        &self,
        x: Tensor<(B, S, Const<H>), X, D>,
    ) -> Result<Tensor<(B, S, Const<H>), X, D>>
    where
        D: Backend<X>,
    {
        const { assert_groups(H, GZ) };
        let x = cast::<X, X::Wide, _, _>(&x).map_err(Error::device)?;
        let weight = cast::<F, X::Wide, _, _>(&self.weight).map_err(Error::device)?;
        let y = group_rms_norm(x, &weight, GZ, self.config.eps)?;
        cast(&y).map_err(Error::device)
    }
}

impl<const H: usize, const GZ: usize, F: Dtype, D: Storage<F>> GroupRmsNorm<H, GZ, F, D> {
    /// The settings.
    pub fn config(&self) -> &GroupRmsNormConfig {
        &self.config
    }
}

impl<const H: usize, const GZ: usize, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tensor<(B, S, Const<H>), F, D, T>> for GroupRmsNorm<H, GZ, F, D>
{
    type Output = Tensor<(B, S, Const<H>), F, D, T>;
    type Error = Error;

    fn try_forward(&self, x: Tensor<(B, S, Const<H>), F, D, T>) -> Result<Self::Output> {
        const { assert_groups(H, GZ) };
        group_rms_norm(x, &self.weight, GZ, self.config.eps)
    }
}

drawn_weight! {
    [const H: usize, const GZ: usize] GroupRmsNorm<H, GZ>, GroupRmsNormConfig, assert_groups(H, GZ)
}

impl<const H: usize, const GZ: usize, F: Dtype, D: Storage<F>> fmt::Display
    for GroupRmsNorm<H, GZ, F, D>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let eps = self.config.eps;
        write!(f, "GroupRmsNorm(hidden_size={H}, group_size={GZ}, eps={eps:e})")
    }
}

shown! {
    [const H: usize, const GZ: usize, F: Dtype, D: Storage<F>] GroupRmsNorm<H, GZ, F, D>, hidden_size: H, group_size: GZ; config
}
