//! T5's relative biases: distances fall into buckets, and each bucket has a learned number for each head.

use crate::checks::{MAX_ELEMENTS, check_size, require};
use crate::error::{Error, Result};
use crate::host::{from_host, table_shape, to_host};
use crate::init::{self, Init};
use crate::tensor::*;
use const_panic::concat_panic;
use std::cell::Cell;
use std::fmt;

// ANCHOR: t5_bucket
/// The bucket of a key that stands `relative` positions from its query: KEY minus QUERY, so an earlier key has a
/// negative number.
///
/// Let `n` be the number of buckets. The distances below `n / 2` have a bucket each. The other half of the buckets
/// grows by a constant factor up to `max_distance`; the last takes all that is farther. If `bidirectional`, the
/// earlier keys have one half of the buckets and the later keys the other, each divided so. If not, a later key
/// counts as distance 0.
///
/// Source: Raffel et al. 2020, "T5"; the rule is `_relative_position_bucket` of Hugging Face's transformers. It takes
/// the logarithm in `f32`. Here it is in `f64`, and one that is a whole number but for its rounding counts as that
/// number. The two can differ only where the exact one is a whole number or nearer to it than `n * 2^-22`. With 32
/// buckets up to 128, causal, that is at the distances 16, where `ln 1 = 0` in both, and 128, where both take the
/// last bucket; so they agree everywhere. If bidirectional, it is at 8, 16, 32, 64 and 128: there they agree if the
/// `f32` logarithms of 2, 4 and 8 are rounded to the nearest.
///
/// # Errors
/// Fewer than 2 buckets, or fewer than 4 if bidirectional; a `max_distance` that is not above the distances with a
/// bucket of their own.
pub fn t5_bucket(
    relative: i64,
    bidirectional: bool,
    num_buckets: usize,
    max_distance: usize,
) -> Result<usize> {
    Ok(Buckets::new(bidirectional, num_buckets, max_distance)?.of(relative))
}

/// A rule that was checked.
#[derive(Debug, Clone, Copy)]
struct Buckets {
    bidirectional: bool,
    /// Buckets of one direction.
    count: usize,
    max_distance: usize,
}

impl Buckets {
    fn new(bidirectional: bool, num_buckets: usize, max_distance: usize) -> Result<Self> {
        let (least, rule) =
            if bidirectional { (4, "at least 4, 2 a direction") } else { (2, "at least 2") };
        require(num_buckets >= least, "num_buckets", rule, num_buckets as f64)?;
        let count = if bidirectional { num_buckets / 2 } else { num_buckets };
        let rule = "above the distances that have a bucket of their own, half of a direction's";
        require(max_distance > count / 2, "max_distance", rule, max_distance as f64)?;
        Ok(Self { bidirectional, count, max_distance })
    }

    fn of(&self, relative: i64) -> usize {
        let first = if self.bidirectional && relative > 0 { self.count } else { 0 };
        let later = if self.bidirectional { relative } else { relative.min(0) };
        first + self.of_distance(later.unsigned_abs())
    }

    fn of_distance(&self, distance: u64) -> usize {
        let exact = self.count / 2;
        if distance < exact as u64 {
            return distance as usize;
        }
        let span = (self.max_distance as f64 / exact as f64).ln();
        let buckets = (self.count - exact) as f64;
        let nth = (distance as f64 / exact as f64).ln() / span * buckets;
        // The quotient in each logarithm is off by half an ulp, and so is each step after it.
        let rounding = 4.0 * f64::EPSILON * (nth + buckets / span);
        let near = (nth - nth.round()).abs() <= rounding;
        let whole = if near { nth.round() } else { nth.floor() };
        exact + whole.min(buckets - 1.0) as usize
    }
}
// ANCHOR_END: t5_bucket

// ANCHOR: t5_bias
/// The bias of each head at the distances `0 .. positions` of keys up to the query's own, `[nh, t]`.
///
/// Shapes: `weight` `[buckets, nh]`. The numbers are copied. A number's gradient is the sum over all distances in its
/// bucket, added up in `f64`.
///
/// # Errors
/// As for [`t5_bucket`]; no positions, or more than memory has addresses; what the device reports.
pub fn t5_bias<K: Dim, N: Dim, F: Float, D: Device<F>, T: Tape<F, D>>(
    weight: &Tensor<(K, N), F, D>,
    bidirectional: bool,
    max_distance: usize,
    positions: usize,
) -> Result<Tensor<(usize, usize), F, D, T>> {
    let (buckets, heads) = *weight.shape();
    let rule = Buckets::new(bidirectional, buckets.size(), max_distance)?;
    let shape = table_shape(heads.size(), positions)?;
    let places = (0..positions).map(|j| rule.of(-(j as i64))).collect(); //   [t]
    look_up(weight, places, shape).map_err(Error::device) //                  [nh, t]
}

/// The bias of each head between each of the last `queries` of `keys` positions and all of them, `[nh, s, t]`. For
/// attention that looks in both directions.
///
/// Shapes: `weight` `[buckets, nh]`.
///
/// # Errors
/// As for [`t5_bias`]; fewer keys than queries.
pub fn t5_bias_between<K: Dim, N: Dim, F: Float, D: Device<F>, T: Tape<F, D>>(
    weight: &Tensor<(K, N), F, D>,
    bidirectional: bool,
    max_distance: usize,
    (queries, keys): (usize, usize),
) -> Result<Tensor<(usize, usize, usize), F, D, T>> {
    let (buckets, heads) = *weight.shape();
    let rule = Buckets::new(bidirectional, buckets.size(), max_distance)?;
    if keys < queries {
        return Err(Error::FewerKeys { keys, queries });
    }
    let shape = (heads.size(), queries, keys);
    check_size("the bias", &shape)?;
    let row = |query: usize| (0..keys).map(move |key| rule.of(key as i64 - query as i64));
    let places = (keys - queries..keys).flat_map(row).collect(); //           [s t]
    look_up(weight, places, shape).map_err(Error::device) //                  [nh, s, t]
}

/// `y[n, place] = weight[buckets[place], n]`, and backward `dweight[bucket, n] = sum of dy[n, place] over its places`.
fn look_up<S: Shape, K: Dim, N: Dim, F: Float, D: Device<F>, T: Tape<F, D>>(
    weight: &Tensor<(K, N), F, D>,
    buckets: Vec<usize>,
    shape: S,
) -> Raw<Tensor<S, F, D, T>, D> {
    let (weight, mut tape) = weight.retaped::<T>().try_contiguous()?.split_tape();
    let heads = weight.shape().1.size();
    let values = to_host(&weight); //                                         [buckets, nh]
    let of_head = |n| buckets.iter().map(move |bucket| bucket * heads + n);
    let found: Vec<f64> = (0..heads).flat_map(of_head).map(|place| values[place]).collect();
    let y = from_host(weight.device(), &found, shape)?; //                    [nh, ..]
    on_backward(&mut tape, &y, move |dy, grads| {
        let mut dweight = vec![0.0; values.len()]; //                         [buckets, nh]
        for (n, dy) in to_host(&dy).chunks(buckets.len()).enumerate() {
            dy.iter().zip(&buckets).for_each(|(dy, bucket)| dweight[bucket * heads + n] += dy);
        }
        let dweight = from_host(weight.device(), &dweight, *weight.shape())?;
        add_gradient(grads, &weight, dweight)
    });
    Ok(y.put_tape(tape))
}
// ANCHOR_END: t5_bias

/// Settings of a [`T5Bias`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct T5BiasConfig {
    /// Whether keys behind their query have buckets of their own, as in an encoder. Default false.
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
    /// As for [`t5_bucket`]; a standard deviation that is negative or not finite; what the device reports.
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

    /// Draws the weight anew. The same seed gives the same weight.
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

impl<const NH: usize, const BUCKETS: usize, F: Float, D: Backend<F>> TensorCollection<F, D>
    for T5Bias<NH, BUCKETS, F, D>
{
    type To<F2: Dtype, D2: Device<F2>> = T5Bias<NH, BUCKETS, F2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, F, D>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        const { assert_buckets(NH, BUCKETS) };
        let config = Cell::new(T5BiasConfig::default()); // as in GroupRmsNorm
        init::prepare_reset(config.get().init());
        visitor.visit_fields(
            Self::tensor(
                "weight",
                |bias| {
                    config.set(bias.config);
                    &bias.weight
                },
                |bias| {
                    config.set(bias.config);
                    init::prepare_reset(bias.config.init());
                    &mut bias.weight
                },
                TensorOptions::reset_with(init::reset),
            ),
            |weight| T5Bias { weight, config: config.get() },
        )
    }
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

/// Shows the settings, not the weight.
impl<const NH: usize, const BUCKETS: usize, F: Dtype, D: Storage<F>> fmt::Debug
    for T5Bias<NH, BUCKETS, F, D>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("T5Bias")
            .field("num_heads", &NH)
            .field("num_buckets", &BUCKETS)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
