//! The module with `u`, `v` and `W_r`.

use super::formula::{add_to_heads, relative_scores};
use crate::checks::{MAX_ELEMENTS, require};
use crate::error::{Error, Result};
use crate::init::{self, Init};
use crate::linear::{Linear, LinearConfig};
use crate::module::shown;
use crate::tensor::*;
use const_panic::concat_panic;
use std::cell::Cell;
use std::fmt;

/// Settings of a [`TransformerXl`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransformerXlConfig {
    /// The sinusoids' base. Default 10,000.
    pub base: f64,
    /// Standard deviation of the normal distribution that `u`, `v` and `W_r` start from; its mean is 0. Default 0.02,
    /// as in the authors' code.
    pub init_std: f64,
    /// Seed of `u`; that of `v` is one more, that of `W_r` two. Default 42.
    pub init_seed: u64,
}

impl Default for TransformerXlConfig {
    fn default() -> Self {
        Self { base: 10_000.0, init_std: 0.02, init_seed: 42 }
    }
}

impl TransformerXlConfig {
    /// What the `nth` of `u`, `v` and `W_r` is drawn from.
    fn init(&self, nth: u64) -> Init {
        Init::Normal { mean: 0.0, std: self.init_std, seed: self.init_seed.wrapping_add(nth) }
    }
}

/// Relative positions for `NH` heads of `HD` elements: `(q + u) . k + (q + v) . (W_r R_j)`, divided by the root of
/// `HD`.
///
/// - `H`: elements of a sinusoid `R_j`, the hidden size. It must be even; if not, it does not compile.
///
/// [`TransformerXl::add_to_queries`] adds `u`, and [`TransformerXl::by_score`] is the second product, which is a bias.
/// Source: Dai et al. 2019, "Transformer-XL". (There each block has its own `W_r`, and all share `u` and `v`, or each
/// has its own: `untie_r`.)
///
/// ```
/// use quadrivium::position::TransformerXl;
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let position = TransformerXl::<6, 2, 4, f32, _>::new(&dev, Default::default())?;
/// let q: Tensor<Rank4<1, 3, 2, 4>, f32, _> = dev.sample_normal(); //        [b, s, nh, hd]
/// let bias = position.by_score(q, 5)?; //                                   [b, nh, s, t]
/// assert_eq!(bias.shape().concrete(), [1, 2, 3, 5]);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct TransformerXl<const H: usize, const NH: usize, const HD: usize, F: Dtype, D: Storage<F>>
{
    /// What every query asks of the keys, `[nh, hd]`.
    pub u: Tensor<Rank2<NH, HD>, F, D>,
    /// What every query asks of the distances, `[nh, hd]`.
    pub v: Tensor<Rank2<NH, HD>, F, D>,
    /// `W_r`, from sinusoids to heads, `[nh * hd, h]`.
    pub r_proj: Linear<Const<H>, Product<NH, HD>, F, D>,
    config: TransformerXlConfig,
}

const fn assert_sizes(h: usize, nh: usize, hd: usize) {
    if h == 0 || h % 2 != 0 {
        concat_panic!(
            "hidden size ",
            h,
            " has no sinusoids: it must be even and at least 2, because each frequency has a sine and a cosine"
        );
    }
    match nh.checked_mul(hd) {
        Some(elements) if elements >= 1 && elements <= MAX_ELEMENTS => {}
        _ => concat_panic!(
            nh,
            " heads of size ",
            hd,
            " are none, or more than memory has addresses for"
        ),
    }
}

impl<const H: usize, const NH: usize, const HD: usize, F: Float, D: Backend<F>>
    TransformerXl<H, NH, HD, F, D>
{
    /// A module drawn from the settings.
    ///
    /// # Errors
    /// A `base` that is not finite or not above 1; a standard deviation that is negative or not finite; what the
    /// device reports.
    pub fn new(dev: &D, config: TransformerXlConfig) -> Result<Self> {
        const { assert_sizes(H, NH, HD) };
        let base = config.base;
        require(base.is_finite() && base > 1.0, "base", "finite and above 1", base)?;
        config.init(0).check()?;
        let of_linear =
            LinearConfig { init_std: config.init_std, init_seed: config.init_seed.wrapping_add(2) };
        let mut position = Self {
            u: dev.try_zeros().map_err(Error::device)?,
            v: dev.try_zeros().map_err(Error::device)?,
            r_proj: Linear::new(dev, of_linear)?,
            config,
        };
        position.reset_parameters()?;
        Ok(position)
    }

    /// Draws all three again. The same seed gives the same numbers.
    ///
    /// # Errors
    /// What the device reports.
    pub fn reset_parameters(&mut self) -> Result<()> {
        self.config.init(0).fill(&mut self.u)?;
        self.config.init(1).fill(&mut self.v)?;
        self.r_proj.reset_parameters()
    }

    /// Adds `u` to queries, `[b, s, nh, hd]`. It is the same at all positions.
    ///
    /// # Errors
    /// Another number of heads than `NH`; an empty input; what the device reports.
    pub fn add_to_queries<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        q: Tensor<(B, S, N, Const<HD>), F, D, T>,
    ) -> Result<Tensor<(B, S, N, Const<HD>), F, D, T>> {
        add_to_heads(q, &self.u)
    }

    /// `(q + v) . (W_r R_j) / sqrt(hd)`, `[b, nh, s, t]`. `q`, `[b, s, nh, hd]`, are the queries of the last `s` of
    /// `keys` positions, without `u`.
    ///
    /// # Errors
    /// Another number of heads than `NH`; fewer keys than queries; an empty input; what the device reports.
    pub fn by_score<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        q: Tensor<(B, S, N, Const<HD>), F, D, T>,
        keys: usize,
    ) -> Result<Tensor<(B, usize, S, usize), F, D, T>> {
        const { assert_sizes(H, NH, HD) };
        relative_scores(q, &self.v, &self.r_proj.weight, keys, self.config.base)
    }
}

impl<const H: usize, const NH: usize, const HD: usize, F: Dtype, D: Storage<F>>
    TransformerXl<H, NH, HD, F, D>
{
    /// The settings.
    pub fn config(&self) -> &TransformerXlConfig {
        &self.config
    }
}

impl<const H: usize, const NH: usize, const HD: usize, F: Float, D: Backend<F>>
    TensorCollection<F, D> for TransformerXl<H, NH, HD, F, D>
{
    type To<F2: Dtype, D2: Device<F2>> = TransformerXl<H, NH, HD, F2, D2>;

    fn iter_tensors<V: ModuleVisitor<Self, F, D>>(
        visitor: &mut V,
    ) -> std::result::Result<Option<Self::To<V::E2, V::D2>>, V::Err> {
        const { assert_sizes(H, NH, HD) };
        let config = Cell::new(TransformerXlConfig::default()); // as in `drawn_weight`
        init::prepare_reset(config.get().init(0));
        let u = Self::tensor(
            "u",
            |position| {
                config.set(position.config);
                &position.u
            },
            |position| {
                config.set(position.config);
                init::prepare_reset(position.config.init(0));
                &mut position.u
            },
            TensorOptions::reset_with(init::reset),
        );
        let v = Self::tensor(
            "v",
            |position| &position.v,
            |position| {
                init::prepare_reset(position.config.init(1));
                &mut position.v
            },
            TensorOptions::reset_with(init::reset),
        );
        let r_proj =
            Self::module("r_proj", |position| &position.r_proj, |position| &mut position.r_proj);
        visitor.visit_fields((u, v, r_proj), |(u, v, r_proj)| TransformerXl {
            u,
            v,
            r_proj,
            config: config.get(),
        })
    }
}

impl<const H: usize, const NH: usize, const HD: usize, F: Dtype, D: Storage<F>> fmt::Display
    for TransformerXl<H, NH, HD, F, D>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TransformerXl(hidden_size={H}, num_heads={NH}, head_dim={HD})")
    }
}

shown! {
    [const H: usize, const NH: usize, const HD: usize, F: Dtype, D: Storage<F>] TransformerXl<H, NH, HD, F, D>,
    hidden_size: H, num_heads: NH, head_dim: HD; config
}
