//! KERPLE: a bias that falls with the logarithm of the distance, or with a power of it.

use super::formula::{KerpleKernel, kerple_bias};
use crate::checks::MAX_ELEMENTS;
use crate::error::{Error, Result};
use crate::host::to_host;
use crate::init::{self, Init};
use crate::module::shown;
use crate::tensor::*;
use const_panic::concat_panic;
use std::cell::Cell;
use std::fmt;

/// Settings of a [`Kerple`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KerpleConfig {
    /// Logarithm or power. Default [`KerpleKernel::Logarithmic`], the authors' best.
    pub kernel: KerpleKernel,
    /// Seed of `r1`; that of `r2` is one more. Default 42.
    pub init_seed: u64,
}

impl Default for KerpleConfig {
    fn default() -> Self {
        Self { kernel: KerpleKernel::Logarithmic, init_seed: 42 }
    }
}

impl KerpleConfig {
    /// What `r1` and `r2` are drawn from, as in the authors' code: the number before the logarithm or in the exponent
    /// uniform on `[0, 2)`, the other on `[0, 1)`.
    pub fn init(&self) -> [Init; 2] {
        let [of_r1, of_r2] = match self.kernel {
            KerpleKernel::Logarithmic => [2.0, 1.0],
            KerpleKernel::Power => [1.0, 2.0],
        };
        let next = self.init_seed.wrapping_add(1);
        [
            Init::Uniform { low: 0.0, high: of_r1, seed: self.init_seed },
            Init::Uniform { low: 0.0, high: of_r2, seed: next },
        ]
    }
}

/// A learned bias for `NH` heads that falls with the distance.
///
/// ```
/// use quadrivium::position::{Kerple, KerpleConfig};
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let mut bias = Kerple::<1, f64, _>::new(&dev, KerpleConfig::default())?;
/// (bias.r1, bias.r2) = (dev.tensor([2.0]), dev.tensor([1.0]));
/// let table = bias.by_distance::<NoneTape>(3)?.as_vec(); //                 [nh, t]
/// assert_eq!(table, [0.0, -2.0 * 1f64.ln_1p(), -2.0 * 2f64.ln_1p()]);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct Kerple<const NH: usize, F: Dtype, D: Storage<F>> {
    /// How much the bias falls, `[nh]`.
    pub r1: Tensor<Rank1<NH>, F, D>,
    /// How soon it falls, or with which power, `[nh]`.
    pub r2: Tensor<Rank1<NH>, F, D>,
    config: KerpleConfig,
}

const fn assert_heads(num_heads: usize) {
    if num_heads == 0 || num_heads > MAX_ELEMENTS {
        concat_panic!(
            "a bias has 1 head or more, as many as memory has addresses for; not ",
            num_heads
        );
    }
}

impl<const NH: usize, F: Float, D: Backend<F>> Kerple<NH, F, D> {
    /// A bias with its numbers drawn from the settings.
    ///
    /// # Errors
    /// What the device reports.
    pub fn new(dev: &D, config: KerpleConfig) -> Result<Self> {
        const { assert_heads(NH) };
        let r1 = dev.try_zeros().map_err(Error::device)?;
        let r2 = dev.try_zeros().map_err(Error::device)?;
        let mut bias = Self { r1, r2, config };
        bias.reset_parameters()?;
        Ok(bias)
    }

    /// Draws the numbers again. The same seed gives the same numbers.
    ///
    /// # Errors
    /// What the device reports.
    pub fn reset_parameters(&mut self) -> Result<()> {
        let [of_r1, of_r2] = self.config.init();
        of_r1.fill(&mut self.r1)?;
        of_r2.fill(&mut self.r2)
    }

    /// Moves what is outside the bounds to them, as the authors' code does before each call. The bias does not change
    /// by it, but the steps of an optimizer begin at the bound then. Call it after each step.
    ///
    /// # Errors
    /// What the device reports.
    pub fn clamp(&mut self) -> Result<()> {
        let kernel = self.config.kernel;
        let pairs = to_host(&self.r1).into_iter().zip(to_host(&self.r2));
        let clamped = pairs.map(|(r1, r2)| kernel.clamped([r1, r2]));
        let (r1, r2): (Vec<F>, Vec<F>) =
            clamped.map(|[r1, r2]| (F::nearest(r1), F::nearest(r2))).unzip();
        for (weight, values) in [(&mut self.r1, r1), (&mut self.r2, r2)] {
            *weight = weight.clone().try_contiguous().map_err(Error::device)?;
            weight.copy_from(&values); // keeps the tensor's identity, by which optimizers know it
        }
        Ok(())
    }

    /// The bias of each head at the distances `0 .. positions`, `[nh, t]`.
    ///
    /// # Errors
    /// As for [`kerple_bias`].
    pub fn by_distance<T: Tape<F, D>>(
        &self,
        positions: usize,
    ) -> Result<Tensor<(usize, usize), F, D, T>> {
        const { assert_heads(NH) };
        kerple_bias(self.config.kernel, &self.r1, &self.r2, positions)
    }
}

impl<const NH: usize, F: Dtype, D: Storage<F>> Kerple<NH, F, D> {
    /// The settings.
    pub fn config(&self) -> &KerpleConfig {
        &self.config
    }
}

impl<const NH: usize, F: Float, D: Backend<F>> TensorCollection<F, D> for Kerple<NH, F, D> {
    type To<F2: Dtype, D2: Device<F2>> = Kerple<NH, F2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, F, D>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        const { assert_heads(NH) };
        let config = Cell::new(KerpleConfig::default()); // as in `drawn_weight`
        let look = |bias: &Self| config.set(bias.config);
        init::prepare_reset(config.get().init()[0]);
        let r1 = Self::tensor(
            "r1",
            |bias| {
                look(bias);
                &bias.r1
            },
            |bias| {
                look(bias);
                init::prepare_reset(bias.config.init()[0]);
                &mut bias.r1
            },
            TensorOptions::reset_with(init::reset),
        );
        let r2 = Self::tensor(
            "r2",
            |bias| &bias.r2,
            |bias| {
                init::prepare_reset(bias.config.init()[1]);
                &mut bias.r2
            },
            TensorOptions::reset_with(init::reset),
        );
        visitor.visit_fields((r1, r2), |(r1, r2)| Kerple { r1, r2, config: config.get() })
    }
}

impl<const NH: usize, F: Dtype, D: Storage<F>> fmt::Display for Kerple<NH, F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = match self.config.kernel {
            KerpleKernel::Logarithmic => "logarithmic",
            KerpleKernel::Power => "power",
        };
        write!(f, "Kerple(num_heads={NH}, kernel={kernel})")
    }
}

shown! {
    [const NH: usize, F: Dtype, D: Storage<F>] Kerple<NH, F, D>, num_heads: NH; config
}
