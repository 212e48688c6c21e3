//! RoPE with frequencies that are trained.

mod formula;
mod fused;

pub use formula::rotate_by_frequencies;

use crate::error::{Error, Result};
use crate::frequencies::scaled::write_unusual;
use crate::module::shown;
use crate::number::Number;
use crate::positions::Positions;
use crate::rope::Layout;
use crate::rope::assert_head;
use crate::rope::rotary_frequencies;
use crate::tensor::*;
use std::cell::Cell;
use std::fmt;

/// Settings of a [`LearnableRope`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearnableRopeConfig {
    /// The frequencies start at `base^(-2i/d)`. Above 1. Default 10,000.
    pub base: f64,
    /// Which two dimensions turn together. Default [`Layout::HalfSplit`].
    pub layout: Layout,
}

impl Default for LearnableRopeConfig {
    fn default() -> Self {
        Self { base: 10_000.0, layout: Layout::HalfSplit }
    }
}

/// Rotary position embedding whose frequencies are weights.
///
/// `HD`: head size. It must be even and at least 4; if not, it does not compile.
///
/// The input is `[b, s, nh, HD]`, alone, as `(x, offset)`, where row `t` is at position `offset + t`, or as
/// `(x, &position_ids)` with a position for each token, `[b, s]`. The output has the input's shape, type and device. There is no
/// table: each call builds its own rows. With frequencies that have not been trained, the output is that of RoPE with
/// frequencies rounded to `F`.
///
/// An error in a frequency is an error in the angle times the position, so in `f16` only short texts are turned
/// right. And the gradient grows with the position: it needs a smaller learning rate than other weights do.
///
/// ```
/// use quadrivium::pos_emb::{LearnableRope, LearnableRopeConfig};
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let rope = LearnableRope::<4, f64, _>::new(&dev, LearnableRopeConfig::default())?;
/// let grads = rope.alloc_grads();
/// let x: Tensor<Rank4<1, 3, 1, 4>, f64, _> = dev.ones();
/// let grads = rope.try_forward(x.traced(grads))?.sum::<Rank0, _>().backward();
/// // a cos - b sin + a sin + b cos: the slope at position m is -2 m sin(m theta).
/// let want: f64 = (1..3).map(|m| -2.0 * f64::from(m) * f64::from(m).sin()).sum();
/// assert!((grads.get(&rope.theta).as_vec()[0] - want).abs() < 1e-6);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct LearnableRope<const HD: usize, F: Dtype, D: Storage<F>> {
    /// The frequencies, `[hd/2]`, in radians per position.
    pub theta: Tensor<(Quotient<HD, 2>,), F, D>,
    config: LearnableRopeConfig,
}

impl<const HD: usize, F: Float, D: Backend<F>> LearnableRope<HD, F, D> {
    /// A module whose frequencies are those of RoPE.
    ///
    /// # Errors
    /// A `base` that is not finite or not above 1; what the device reports.
    pub fn new(dev: &D, config: LearnableRopeConfig) -> Result<Self> {
        const { assert_head(HD) };
        let theta = rotary_frequencies(HD, config.base, 1.0)?;
        let theta = theta.into_iter().map(F::nearest).collect();
        let theta = dev.try_tensor_from_vec(theta, Default::default()).map_err(Error::device)?;
        Ok(Self { theta, config })
    }
}

impl<const HD: usize, F: Dtype, D: Storage<F>> LearnableRope<HD, F, D> {
    /// The settings.
    pub fn config(&self) -> &LearnableRopeConfig {
        &self.config
    }
}

type Heads<B, S, N, const HD: usize> = (B, S, N, Const<HD>);

impl<const HD: usize, B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>, P>
    Module<(Tensor<Heads<B, S, N, HD>, F, D, T>, P)> for LearnableRope<HD, F, D>
where
    P: Into<Positions>,
{
    type Output = Tensor<Heads<B, S, N, HD>, F, D, T>;
    type Error = Error;

    fn try_forward(
        &self,
        (x, positions): (Tensor<Heads<B, S, N, HD>, F, D, T>, P),
    ) -> Result<Self::Output> {
        rotate_by_frequencies(x, &self.theta, positions, self.config.layout)
    }
}

impl<const HD: usize, B: Dim, S: Dim, N: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tensor<Heads<B, S, N, HD>, F, D, T>> for LearnableRope<HD, F, D>
{
    type Output = Tensor<Heads<B, S, N, HD>, F, D, T>;
    type Error = Error;

    fn try_forward(&self, x: Tensor<Heads<B, S, N, HD>, F, D, T>) -> Result<Self::Output> {
        self.try_forward((x, 0))
    }
}

impl<const HD: usize, F: Dtype, D: Storage<F>> NonMutableModule for LearnableRope<HD, F, D> {}

thread_local! {
    /// The base of the module that dfdx resets next, as in `init`.
    static NEXT_RESET: Cell<f64> = const { Cell::new(10_000.0) };
}

/// The function that dfdx calls to reset the frequencies.
fn reset<const HD: usize, F: Float, D: Backend<F>>(
    theta: &mut Tensor<(Quotient<HD, 2>,), F, D>,
) -> std::result::Result<(), D::Err> {
    let base = NEXT_RESET.get();
    let plain = |i| F::nearest(base.powf(-2.0 * i as f64 / HD as f64));
    let plain: Vec<F> = (0..HD / 2).map(plain).collect();
    *theta = theta.device().try_tensor_from_vec(plain, *theta.shape())?;
    Ok(())
}

impl<const HD: usize, F: Float, D: Backend<F>> TensorCollection<F, D> for LearnableRope<HD, F, D> {
    type To<F2: Dtype, D2: Device<F2>> = LearnableRope<HD, F2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, F, D>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        const { assert_head(HD) };
        let config = Cell::new(LearnableRopeConfig::default()); // as in `drawn_weight`
        NEXT_RESET.set(config.get().base);
        visitor.visit_fields(
            Self::tensor(
                "theta",
                |rope| {
                    config.set(rope.config);
                    &rope.theta
                },
                |rope| {
                    config.set(rope.config);
                    NEXT_RESET.set(rope.config.base);
                    &mut rope.theta
                },
                TensorOptions::reset_with(reset::<HD, F, D>),
            ),
            |theta| LearnableRope { theta, config: config.get() },
        )
    }
}

impl<const HD: usize, F: Dtype, D: Storage<F>> fmt::Display for LearnableRope<HD, F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LearnableRopeConfig { base, layout } = self.config;
        write!(f, "LearnableRope(head_dim={HD}, base={}", Number(base))?;
        write_unusual(f, HD, HD, layout)
    }
}

shown! {
    [const HD: usize, F: Dtype, D: Storage<F>] LearnableRope<HD, F, D>, head_dim: HD; config
}
