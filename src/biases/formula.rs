//! The biases by distance as free functions, forward and backward side by side. That of Transformer-XL, which asks the query
//! as well, is in `transformer_xl/formula.rs`.

use crate::checks::{check_size, require, same_shape};
use crate::error::{Error, Result};
use crate::host::{from_host, table_shape, to_host};
use crate::tensor::*;

// ANCHOR: alibi_slopes
/// The slopes of the heads. Head `t` of `n`, counted from 1, has `2^(-8t / n)`, if `n` is a power of two.
///
/// For another number of heads, let `p` be the largest power of two below it: the slopes are those of `p` heads, and
/// then every other of `2p` heads, from the first on, as many as are left. They lie between those of `p`, and come in
/// no order with them. Source: Press et al. 2022, "Train Short, Test Long"; the second rule is that of their code,
/// `get_slopes` in ofirpress/attention_with_linear_biases.
///
/// # Errors
/// `num_heads` 0, or more than `2^16`.
pub fn alibi_slopes(num_heads: usize) -> Result<Vec<f64>> {
    let rule = "at least 1 and at most 65536";
    require((1..=MAX_HEADS).contains(&num_heads), "num_heads", rule, num_heads as f64)?;
    let of_power = |n: usize| (1..=n).map(move |t| (-8.0 * t as f64 / n as f64).exp2());
    let power = 1 << num_heads.ilog2();
    let between = of_power(2 * power).step_by(2);
    Ok(of_power(power).chain(between).take(num_heads).collect())
}
// ANCHOR_END: alibi_slopes

/// More heads than any model has. The slopes of more would be the same numbers again.
pub(super) const MAX_HEADS: usize = 1 << 16;

// ANCHOR: alibi_bias
/// `-slope * j` for each head at each distance `j`, `[nh, t]`. Computed in `f64` and rounded once.
///
/// In `f16`, a bias below -65,504 is minus infinity: such a key has no weight, as it would have none anyway.
///
/// # Errors
/// `num_heads` as for [`alibi_slopes`]; no positions, or more than memory has addresses; what the device reports.
pub fn alibi_bias<F: Float, D: Device<F>>(
    dev: &D,
    num_heads: usize,
    positions: usize,
) -> Result<Tensor<(usize, usize), F, D>> {
    let slopes = alibi_slopes(num_heads)?;
    let shape = table_shape(num_heads, positions)?;
    // 0 minus it, so that there is no -0 at distance 0.
    let row = |slope: f64| (0..positions).map(move |j| 0.0 - slope * j as f64);
    let table: Vec<f64> = slopes.into_iter().flat_map(row).collect();
    from_host(dev, &table, shape).map_err(Error::device) // [nh, t]
}
// ANCHOR_END: alibi_bias

// ANCHOR: t5_bucket
/// The bucket of a key that is `relative` positions from its query: KEY minus QUERY, so an earlier key has a
/// negative number.
///
/// Let `n` be the number of buckets. The distances below `n / 2` have a bucket each. The other half of the buckets
/// grows by a constant factor up to `max_distance`; the last takes all that is farther. If `bidirectional`, the
/// earlier keys have one half of the buckets and the later keys the other, each divided so. If not, a later key
/// counts as distance 0.
///
/// Source: Raffel et al. 2020, "T5"; the rule is `_relative_position_bucket` of Hugging Face's transformers. It takes
/// the logarithm in `f32`. Here it is in `f64`, and one that is a whole number up to rounding counts as that number.
/// The two can differ only where the exact one is a whole number or nearer to it than `n * 2^-22`. With 32
/// buckets up to 128, causal, that is at the distances 16, where `ln 1 = 0` in both, and 128, where both take the
/// last bucket; so they agree everywhere. If bidirectional, it is at 8, 16, 32, 64 and 128: there they agree if the
/// `f32` logarithms of 2, 4 and 8 are rounded to the nearest.
///
/// # Errors
/// Fewer than 2 buckets, or fewer than 4 if bidirectional; a `max_distance` that is not above the distances that have
/// their own bucket.
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
pub(super) struct Buckets {
    bidirectional: bool,
    /// Buckets of one direction.
    count: usize,
    max_distance: usize,
}

impl Buckets {
    pub(super) fn new(
        bidirectional: bool,
        num_buckets: usize,
        max_distance: usize,
    ) -> Result<Self> {
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
    let (weight, mut tape) = weight.retaped::<T>().try_in_order()?.split_tape();
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

// ANCHOR: kerple
/// How a bias falls with the distance `j`. Each head has its own `r1` and `r2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KerpleKernel {
    /// `-r1 ln(1 + r2 j)`.
    Logarithmic,
    /// `-r1 j^r2`. With `r2 = 1` it is ALiBi, with slopes that are learned.
    Power,
}

impl KerpleKernel {
    /// The least `r1` and `r2`.
    const LEAST: f64 = 0.01;

    /// The largest `r2`. A power above 2 would be no conditionally positive definite kernel.
    fn largest(self) -> f64 {
        if self == Self::Power { 2.0 } else { f64::INFINITY }
    }

    /// What `r1` and `r2` count as.
    pub(super) fn clamped(self, [r1, r2]: [f64; 2]) -> [f64; 2] {
        [r1.clamp(Self::LEAST, f64::INFINITY), r2.clamp(Self::LEAST, self.largest())] // NaN stays NaN
    }

    /// The bias at distance `j`.
    fn bias(self, [r1, r2]: [f64; 2], j: f64) -> f64 {
        match self {
            Self::Logarithmic => 0.0 - r1 * (r2 * j).ln_1p(),
            Self::Power => 0.0 - r1 * j.powf(r2),
        }
    }

    /// Its slopes: d bias / d r1 and d bias / d r2.
    fn slopes(self, [r1, r2]: [f64; 2], j: f64) -> [f64; 2] {
        match self {
            Self::Logarithmic => [-(r2 * j).ln_1p(), -r1 * j / (1.0 + r2 * j)],
            Self::Power if j == 0.0 => [0.0, 0.0], // 0^r2 ln 0 is 0 in the limit
            Self::Power => [-j.powf(r2), -r1 * j.powf(r2) * j.ln()],
        }
    }
}

/// The bias of each head at the distances `0 .. positions`, `[nh, t]`. Computed in `f64` and rounded once.
///
/// Shapes: `r1` and `r2` `[nh]`. Both are kept positive as in the authors' code: a number below 0.01 counts as 0.01,
/// and with [`KerpleKernel::Power`] an `r2` above 2 counts as 2. The gradient passes there, as if the number were at
/// the bound, so that an optimizer can bring it back. [`clamp`](super::Kerple::clamp) moves it there.
///
/// Source: Chi et al. 2022, "KERPLE"; the bounds are those of their code, `ParallelKerpleLog` and
/// `ParallelKerplePower` in chijames/KERPLE.
///
/// # Errors
/// An `r2` of another length; no positions, or more than memory has addresses; what the device reports.
pub fn kerple_bias<N: Dim, F: Float, D: Device<F>, T: Tape<F, D>>(
    kernel: KerpleKernel,
    r1: &Tensor<(N,), F, D>,
    r2: &Tensor<(N,), F, D>,
    positions: usize,
) -> Result<Tensor<(usize, usize), F, D, T>> {
    let nh = r1.shape().0.size();
    let shape = table_shape(nh, positions)?;
    same_shape("r2", &[nh], &[r2.shape().0.size()])?;
    let run = || -> Raw<_, D> {
        let (r1, tape) = r1.retaped::<T>().try_in_order()?.split_tape();
        let (r2, r2_tape) = r2.retaped::<T>().try_in_order()?.split_tape();
        let mut tape = tape.merge(r2_tape);
        let pairs = to_host(&r1).into_iter().zip(to_host(&r2));
        let r: Vec<[f64; 2]> = pairs.map(|(r1, r2)| kernel.clamped([r1, r2])).collect();
        let row = |&r: &[f64; 2]| (0..positions).map(move |j| kernel.bias(r, j as f64));
        let table: Vec<f64> = r.iter().flat_map(row).collect();
        let y = from_host(r1.device(), &table, shape)?; //                    [nh, t]
        on_backward(&mut tape, &y, move |dy, grads| {
            let (mut dr1, mut dr2) = (Vec::new(), Vec::new()); //             [nh]
            for (dy, r) in to_host(&dy).chunks(positions).zip(r) {
                let slopes = (0..positions).map(|j| kernel.slopes(r, j as f64));
                let add = |sum: [f64; 2], (dy, slope): (&f64, [f64; 2])| {
                    [sum[0] + dy * slope[0], sum[1] + dy * slope[1]]
                };
                let [of_r1, of_r2] = dy.iter().zip(slopes).fold([0.0; 2], add);
                dr1.push(of_r1);
                dr2.push(of_r2);
            }
            let dr1 = from_host(r1.device(), &dr1, *r1.shape())?;
            add_gradient(grads, &r1, dr1)?;
            let dr2 = from_host(r2.device(), &dr2, *r2.shape())?;
            add_gradient(grads, &r2, dr2)
        });
        Ok(y.put_tape(tape))
    };
    run().map_err(Error::device)
}
// ANCHOR_END: kerple
