//! Initial values: the numbers PyTorch gives for the same seed, on the CPU.
//!
//! Source: the behaviour of `torch.manual_seed`, `torch.nn.init.uniform_` and
//! `torch.nn.init.normal_` in PyTorch 2.15, as `tests/goldens` records it. The generator is
//! MT19937 (Matsumoto and Nishimura 1998), seeded with the low 32 bits of the seed. No ambient
//! random state is read or changed.
//!
//! Tables of every float type start from the same `f32` draws, rounded to their type.

use crate::error::{Result, require};
use crate::tensor::{Device, Float, ReshapeTo, Shape, Tensor};
use rand_mt::Mt;
use std::cell::Cell;

/// A distribution and a seed: everything that decides a table's first values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// Uniform on `[low, high)`.
    Uniform {
        /// Smallest value.
        low: f64,
        /// End of the range.
        high: f64,
        /// Seed of the generator.
        seed: u64,
    },
    /// Normal with the given mean and standard deviation.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation (not the variance).
        std: f64,
        /// Seed of the generator.
        seed: u64,
    },
}

impl Init {
    /// Checks the numbers.
    ///
    /// # Errors
    /// A range that is not finite or runs backward; a mean that is not finite; a negative or
    /// not finite standard deviation.
    pub fn check(&self) -> Result<()> {
        match *self {
            Init::Uniform { low, high, .. } => {
                require(low.is_finite(), "init_range.0", "finite", low)?;
                let rule = "finite and not below init_range.0";
                require(high.is_finite() && low <= high, "init_range.1", rule, high)
            }
            Init::Normal { mean, std, .. } => {
                require(mean.is_finite(), "init_mean", "finite", mean)?;
                let rule = "finite and at least 0";
                require(std.is_finite() && std >= 0.0, "init_std", rule, std)
            }
        }
    }

    /// The first `n` values, in the order in which a table of any shape is filled.
    pub fn values(&self, n: usize) -> Vec<f32> {
        match *self {
            Init::Uniform { low, high, seed } => uniform(n, low, high, seed),
            Init::Normal { mean, std, seed } => normal(n, mean, std, seed),
        }
    }

    /// Fills `table` with its values. Nothing is drawn from the device's own generator.
    ///
    /// # Errors
    /// What [`Init::check`] or the device reports; then `table` is as it was.
    pub fn fill<S: Shape, F: Float, D: Device<F>>(
        &self,
        table: &mut Tensor<S, F, D>,
    ) -> Result<()> {
        use crate::error::Error;
        self.check()?;
        self.write(table).map_err(Error::device)
    }

    fn write<S: Shape, F: Float, D: Device<F>>(
        &self,
        table: &mut Tensor<S, F, D>,
    ) -> std::result::Result<(), D::Err> {
        use crate::tensor::HasShape;
        let values = self.values(table.shape().num_elements());
        let values: Vec<F> = values.iter().map(|&x| Float::from_f64(f64::from(x))).collect();
        // `copy_from` writes memory in its physical order, and keeps the tensor's identity,
        // by which optimizers know it.
        *table = table.clone().try_contiguous()?;
        table.copy_from(&values);
        Ok(())
    }
}

/// The low 32 bits of the seed start the generator.
fn generator(seed: u64) -> Mt {
    Mt::new(seed as u32)
}

/// One draw from `[0, 1)` with 24 bits, exact in `f32`.
fn unit_f32(mt: &mut Mt) -> f32 {
    (mt.next_u32() & 0x00FF_FFFF) as f32 * (-24.0f32).exp2()
}

/// One draw from `[0, 1)` with 53 bits: two words, the first is the high one.
fn unit_f64(mt: &mut Mt) -> f64 {
    let high = u64::from(mt.next_u32());
    let low = u64::from(mt.next_u32());
    (((high << 32) | low) & ((1 << 53) - 1)) as f64 * (-53.0f64).exp2()
}

fn uniform(n: usize, low: f64, high: f64, seed: u64) -> Vec<f32> {
    let (low, high) = (low as f32, high as f32);
    let mut mt = generator(seed);
    (0..n).map(|_| unit_f32(&mut mt) * (high - low) + low).collect()
}

/// Normal values. PyTorch has two algorithms, and the size of the table chooses.
fn normal(n: usize, mean: f64, std: f64, seed: u64) -> Vec<f32> {
    let mut mt = generator(seed);
    if n < 16 {
        normal_short(n, mean, std, &mut mt)
    } else {
        normal_long(n, mean as f32, std as f32, &mut mt)
    }
}

/// Fewer than 16 values: Box-Muller in double precision, two values a pair of draws.
fn normal_short(n: usize, mean: f64, std: f64, mt: &mut Mt) -> Vec<f32> {
    let mut values = Vec::with_capacity(n + 1);
    while values.len() < n {
        let u1 = unit_f64(mt);
        let u2 = unit_f64(mt);
        let radius = (-2.0 * (-u2).ln_1p()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * u1).sin_cos();
        values.push((radius * cos * std + mean) as f32);
        values.push((radius * sin * std + mean) as f32);
    }
    values.truncate(n);
    values
}

/// 16 values or more: all uniforms first, then Box-Muller in blocks of 16, `j` with `j + 8`.
fn normal_long(n: usize, mean: f32, std: f32, mt: &mut Mt) -> Vec<f32> {
    let mut values: Vec<f32> = (0..n).map(|_| unit_f32(mt)).collect();
    for block in values.chunks_exact_mut(16) {
        box_muller_16(block, mean, std);
    }
    if n % 16 != 0 {
        // The tail does not fill a block: draw the LAST 16 values anew.
        let tail = &mut values[n - 16..];
        tail.fill_with(|| unit_f32(mt));
        box_muller_16(tail, mean, std);
    }
    values
}

fn box_muller_16(block: &mut [f32], mean: f32, std: f32) {
    for j in 0..8 {
        let u1 = 1.0 - block[j]; // (0, 1], so that the logarithm is finite
        let u2 = block[j + 8];
        let radius = (-2.0 * f64::from(u1).ln()).sqrt();
        let angle = std::f32::consts::TAU * u2; // in f32, as PyTorch does
        let (sin, cos) = f64::from(angle).sin_cos();
        block[j] = (radius * cos) as f32 * std + mean;
        block[j + 8] = (radius * sin) as f32 * std + mean;
    }
}

thread_local! {
    static NEXT_RESET: Cell<Option<Init>> = const { Cell::new(None) };
}

/// Says how the next table that dfdx resets on this thread is filled.
///
/// dfdx resets a table through a plain function, which can't know the module's settings. The
/// module leaves them here when dfdx reaches for its table, which is just before.
pub(crate) fn prepare_reset(init: Init) {
    NEXT_RESET.set(Some(init));
}

/// The function that dfdx calls. See [`prepare_reset`].
pub(crate) fn reset<S: Shape, F: Float, D: Device<F>>(
    table: &mut Tensor<S, F, D>,
) -> std::result::Result<(), D::Err> {
    match NEXT_RESET.take() {
        Some(init) => init.write(table),
        None => Ok(()),
    }
}
