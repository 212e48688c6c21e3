//! T5's relative biases: distances fall into buckets, and each bucket has a learned number for each head.

use super::formula::{Buckets, t5_bias, t5_bias_between};
use crate::checks::MAX_ELEMENTS;
use crate::error::{Error, Result};
use crate::init::Init;
use crate::module::{drawn_weight, shown};
use crate::tensor::*;
use const_panic::concat_panic;
use std::fmt;

/// Settings of a [`T5Bias`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct T5BiasConfig {
    /// Whether keys after their query have their own buckets, as in an encoder. Default false.
    pub bidirectional: bool,
    /// From this distance on all keys are in the last bucket. Default 128.
    pub max_distance: usize,
    /// Standard deviation of the normal distribution that the weight starts from; its mean is 0. Default 0.02. (T5
    /// takes one over the root of its hidden size: 0.044 for 512.)
    pub init_std: f64,
    /// Seed of the weight. Default 42.
    pub init_seed: u64,
}

impl Default for T5BiasConfig {
    fn default() -> Self {
        Self { bidirectional: false, max_distance: 128, init_std: 0.02, init_seed: 42 }
    }
}

impl T5BiasConfig {
    /// What the initial values are drawn from.
    pub fn init(&self) -> Init {
        Init::Normal { mean: 0.0, std: self.init_std, seed: self.init_seed }
    }
}

/// A learned bias for each of `BUCKETS` buckets of distances and each of `NH` heads.
///
/// T5 has one such table, which all its blocks share, and 32 buckets. T5 does not divide its scores by the root of
/// the head size; a model that does learns other numbers.
///
/// ```
/// use quadrivium::position::{T5Bias, T5BiasConfig};
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let bias = T5Bias::<1, 4, f64, _>::new(&dev, T5BiasConfig { max_distance: 8, ..Default::default() })?;
/// let [w0, w1, w2, w3] = bias.weight.array().map(|row| row[0]);
/// let table = bias.by_distance::<NoneTape>(10)?; //                         [nh, t]
/// // Distances 0 and 1 alone, then 2 and 3, then all others.
/// assert_eq!(table.as_vec(), [w0, w1, w2, w2, w3, w3, w3, w3, w3, w3]);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct T5Bias<const NH: usize, const BUCKETS: usize, F: Dtype, D: Storage<F>> {
    /// The numbers, `[buckets, nh]`.
    pub weight: Tensor<Rank2<BUCKETS, NH>, F, D>,
    config: T5BiasConfig,
}

const fn assert_buckets(num_heads: usize, num_buckets: usize) {
    if num_heads == 0 {
        concat_panic!("a bias for 0 heads is empty");
    }
    if num_buckets < 2 {
        concat_panic!(
            num_buckets,
            " buckets are too few: one half of them has a distance each, so there are at least 2"
        );
    }
    match num_heads.checked_mul(num_buckets) {
        Some(elements) if elements <= MAX_ELEMENTS => {}
        _ => concat_panic!(num_buckets, " buckets of ", num_heads, " heads are too many"),
    }
}

impl<const NH: usize, const BUCKETS: usize, F: Float, D: Backend<F>> T5Bias<NH, BUCKETS, F, D> {
    /// A bias with its weight drawn from the settings.
    ///
    /// # Errors
    /// As for [`t5_bucket`](super::t5_bucket); a standard deviation that is negative or not finite; what the device reports.
    pub fn new(dev: &D, config: T5BiasConfig) -> Result<Self> {
        const { assert_buckets(NH, BUCKETS) };
        let weight = dev.try_zeros().map_err(Error::device)?;
        let mut bias = Self::with_weight(weight, config)?;
        bias.reset_parameters()?;
        Ok(bias)
    }

    /// A given weight, `[buckets, nh]`. Nothing is drawn.
    ///
    /// # Errors
    /// Settings that [`T5Bias::new`] would refuse.
    pub fn with_weight(
        weight: Tensor<Rank2<BUCKETS, NH>, F, D>,
        config: T5BiasConfig,
    ) -> Result<Self> {
        const { assert_buckets(NH, BUCKETS) };
        Buckets::new(config.bidirectional, BUCKETS, config.max_distance)?;
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

    /// The bias of each head at the distances `0 .. positions` of keys up to the query's own, `[nh, t]`.
    ///
    /// # Errors
    /// As for [`t5_bias`].
    pub fn by_distance<T: Tape<F, D>>(
        &self,
        positions: usize,
    ) -> Result<Tensor<(usize, usize), F, D, T>> {
        let T5BiasConfig { bidirectional, max_distance, .. } = self.config;
        t5_bias(&self.weight, bidirectional, max_distance, positions)
    }

    /// The bias of each head between the last `queries` of `keys` positions and all of them, `[nh, s, t]`.
    ///
    /// # Errors
    /// As for [`t5_bias_between`].
    pub fn between<T: Tape<F, D>>(
        &self,
        queries: usize,
        keys: usize,
    ) -> Result<Tensor<(usize, usize, usize), F, D, T>> {
        let T5BiasConfig { bidirectional, max_distance, .. } = self.config;
        t5_bias_between(&self.weight, bidirectional, max_distance, (queries, keys))
    }
}

impl<const NH: usize, const BUCKETS: usize, F: Dtype, D: Storage<F>> T5Bias<NH, BUCKETS, F, D> {
    /// The settings.
    pub fn config(&self) -> &T5BiasConfig {
        &self.config
    }
}

drawn_weight! {
    [const NH: usize, const BUCKETS: usize] T5Bias<NH, BUCKETS>, T5BiasConfig, assert_buckets(NH, BUCKETS)
}

impl<const NH: usize, const BUCKETS: usize, F: Dtype, D: Storage<F>> fmt::Display
    for T5Bias<NH, BUCKETS, F, D>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let T5BiasConfig { bidirectional, max_distance, .. } = self.config;
        write!(
            f,
            "T5Bias(num_heads={NH}, num_buckets={BUCKETS}, max_distance={max_distance}, \
             bidirectional={bidirectional})"
        )
    }
}

shown! {
    [const NH: usize, const BUCKETS: usize, F: Dtype, D: Storage<F>] T5Bias<NH, BUCKETS, F, D>,
    num_heads: NH, num_buckets: BUCKETS; config
}
