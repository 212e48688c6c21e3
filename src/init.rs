//! Initial values: the numbers PyTorch gives for the same seed, on the CPU.
//!
//! Source: the behaviour of `torch.manual_seed`, `torch.nn.init.uniform_` and
//! `torch.nn.init.normal_` in PyTorch 2.15 on a CPU with AVX2, as `tests/goldens` records it.
//! The generator is MT19937 (Matsumoto and Nishimura 1998), seeded with the low 32 bits of the
//! seed. No ambient random state is read or changed.
//!
//! `f32` and `f64` tables are drawn as PyTorch draws them: uniform values are equal bit for bit.
//! Normal values differ in their last bits, because PyTorch takes logarithm and sine in `f32`.
//! An `f16` table is the `f32` table rounded. (PyTorch's own `f16` draws differ in the last 16
//! values of a table whose size is not a multiple of 16.)

use crate::checks::{check_size, require};
use crate::error::{Error, Result};
use crate::tensor::{Device, Float, HasShape, ReshapeTo, Shape, Tensor};
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
    /// A number that is not finite in `f32`; a range that runs backward or is wider than the
    /// largest `f32`; a negative standard deviation.
    pub fn check(&self) -> Result<()> {
        let finite = |x: f64| (x as f32).is_finite();
        match *self {
            Init::Uniform { low, high, .. } => {
                require(finite(low), "init_range.0", "finite in f32", low)?;
                let rule = "finite in f32 and not below init_range.0";
                require(finite(high) && low <= high, "init_range.1", rule, high)?;
                require(finite(high - low), "the width of init_range", "finite in f32", high - low)
            }
            Init::Normal { mean, std, .. } => {
                require(finite(mean), "init_mean", "finite in f32", mean)?;
                let rule = "finite in f32 and at least 0";
                require(finite(std) && std >= 0.0, "init_std", rule, std)
            }
        }
    }

    /// The first `n` values, in the order in which a table of any shape is filled.
    pub fn values<F: Float>(&self, n: usize) -> Vec<F> {
        // The low 32 bits of the seed start the generator.
        match *self {
            Init::Uniform { low, high, seed } => {
                let drawn = uniform::<F::Wide>(n, low, high, &mut Mt::new(seed as u32));
                // Rounding to f16 may reach the end of the range again.
                let (low, high) = (F::nearest(low), F::nearest(high));
                let inside = |x: F| if x == high { low } else { x };
                drawn.into_iter().map(|x| inside(narrow(x))).collect()
            }
            Init::Normal { mean, std, seed } => {
                let drawn = normal::<F::Wide>(n, mean, std, &mut Mt::new(seed as u32));
                drawn.into_iter().map(narrow).collect()
            }
        }
    }

    /// Fills `table` with its values. Nothing is drawn from the device's own generator.
    ///
    /// # Errors
    /// What [`Init::check`] or the device reports; a table that is empty or has more elements than
    /// memory has addresses; a value that is not finite in its type. Then `table` is as it was.
    pub fn fill<S: Shape, F: Float, D: Device<F>>(
        &self,
        table: &mut Tensor<S, F, D>,
    ) -> Result<()> {
        self.check()?;
        check_size("the table", table.shape())?;
        let values: Vec<F> = self.values(table.shape().num_elements());
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            let got = num_traits::Float::abs(*value).to_f64().unwrap_or(f64::NAN);
            let rule = "finite in the table's float type: use a smaller init_range or init_std";
            return Err(Error::Setting { name: "every initial value", rule, got });
        }
        Self::write(&values, table).map_err(Error::device)
    }

    fn write<S: Shape, F: Float, D: Device<F>>(
        values: &[F],
        table: &mut Tensor<S, F, D>,
    ) -> std::result::Result<(), D::Err> {
        // `copy_from` writes memory in its physical order, and keeps the tensor's identity,
        // by which optimizers know it.
        *table = table.clone().try_contiguous()?;
        table.copy_from(values);
        Ok(())
    }
}

/// The nearest value of the table's type: PyTorch draws `f16` in `f32`.
fn narrow<W: Float, F: Float>(x: W) -> F {
    F::nearest(wide(x))
}

fn wide<W: Float>(x: W) -> f64 {
    x.to_f64().unwrap_or(f64::NAN)
}

/// One draw from `[0, 1)`, exact in `W`: 24 bits of one word for `f32`, 53 bits of two words for
/// `f64`, of which the first is the high one.
fn unit<W: Float>(mt: &mut Mt) -> W {
    let mut bits = u64::from(mt.next_u32());
    if W::SIGNIFICANT_BITS > 32 {
        bits = (bits << 32) | u64::from(mt.next_u32());
    }
    let kept = bits & ((1 << W::SIGNIFICANT_BITS) - 1);
    W::nearest(kept as f64 * (-f64::from(W::SIGNIFICANT_BITS)).exp2())
}

/// `u * (high - low) + low`, rounded once. What rounds up to `high` becomes `low`.
fn uniform<T: Float>(n: usize, low: f64, high: f64, mt: &mut Mt) -> Vec<T> {
    let (low, high) = (T::nearest(low), T::nearest(high));
    let value = |mt: &mut Mt| {
        let x = unit::<T>(mt).mul_add(high - low, low);
        if x == high { low } else { x }
    };
    (0..n).map(|_| value(mt)).collect()
}

// ANCHOR: normal
/// Normal values. PyTorch has two algorithms, and the size of the table chooses.
fn normal<T: Float>(n: usize, mean: f64, std: f64, mt: &mut Mt) -> Vec<T> {
    if n < 16 {
        normal_short(n, mean, std, mt).into_iter().map(T::nearest).collect()
    } else {
        normal_long(n, T::nearest(mean), T::nearest(std), mt)
    }
}

/// Fewer than 16 values: Box-Muller in double precision, two values for each two draws.
fn normal_short(n: usize, mean: f64, std: f64, mt: &mut Mt) -> Vec<f64> {
    let mut values = Vec::with_capacity(n + 1);
    while values.len() < n {
        let u1 = unit::<f64>(mt);
        let u2 = unit::<f64>(mt);
        let radius = (-2.0 * (-u2).ln_1p()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * u1).sin_cos();
        values.push((radius * cos).mul_add(std, mean));
        values.push((radius * sin).mul_add(std, mean));
    }
    values.truncate(n);
    values
}

/// 16 values or more: all uniforms first, then Box-Muller in blocks of 16, `j` with `j + 8`.
fn normal_long<T: Float>(n: usize, mean: T, std: T, mt: &mut Mt) -> Vec<T> {
    let mut values: Vec<T> = (0..n).map(|_| unit::<T>(mt)).collect();
    for block in values.chunks_exact_mut(16) {
        box_muller_16(block, mean, std);
    }
    if n % 16 != 0 {
        // The tail does not fill a block: draw the LAST 16 values again.
        let tail = &mut values[n - 16..];
        tail.fill_with(|| unit::<T>(mt));
        box_muller_16(tail, mean, std);
    }
    values
}

fn box_muller_16<T: Float>(block: &mut [T], mean: T, std: T) {
    for j in 0..8 {
        let u1 = T::one() - block[j]; // (0, 1], so that the logarithm is finite
        let u2 = block[j + 8];
        let radius = (-2.0 * wide(u1).ln()).sqrt();
        let angle = T::nearest(std::f64::consts::TAU) * u2; // rounded to T, as PyTorch does
        let (sin, cos) = wide(angle).sin_cos();
        block[j] = T::nearest(radius * cos).mul_add(std, mean);
        block[j + 8] = T::nearest(radius * sin).mul_add(std, mean);
    }
}
// ANCHOR_END: normal

thread_local! {
    static NEXT_RESET: Cell<Init> =
        const { Cell::new(Init::Normal { mean: 0.0, std: 1.0, seed: 42 }) };
}

/// Says how the next table that dfdx resets on this thread is filled.
///
/// dfdx resets a table through a plain function, which can't know the module's settings. The
/// module leaves them here when dfdx reaches for its table, which is just before.
pub(crate) fn prepare_reset(init: Init) {
    NEXT_RESET.set(init);
}

/// The function that dfdx calls. See [`prepare_reset`].
pub(crate) fn reset<S: Shape, F: Float, D: Device<F>>(
    table: &mut Tensor<S, F, D>,
) -> std::result::Result<(), D::Err> {
    let values: Vec<F> = NEXT_RESET.get().values(table.shape().num_elements());
    Init::write(&values, table)
}
