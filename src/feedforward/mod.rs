//! The feed-forward network of a block: SwiGLU, and the rule for its size.
//!
//! This file holds the weights. The computation between them is [`silu_mul`].

mod formula;
pub(crate) mod fused;

pub use formula::{ffn_hidden_size, silu_mul};
pub(crate) use fused::gate_rows;

use crate::error::Result;
use crate::linear::{Linear, LinearConfig};
use crate::module::{parts, shown};
use crate::tensor::*;

/// SwiGLU: `down(silu(gate(x)) * up(x))`, each token for itself.
///
/// - `H`: hidden size of the model.
/// - `FF`: hidden size of the network between, `f`; [`ffn_hidden_size`] computes the usual one.
///
/// Input and output are `[b, s, H]`. `gate`, `down` and `up` are `W_1`, `W_2` and `W_3` in Llama's own code. Source:
/// Shazeer 2020, "GLU Variants Improve Transformer".
///
/// ```
/// use quadrivium::feedforward::SwiGlu;
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let network = SwiGlu::<4, 8, f32, _>::new(&dev, 42, 0.02)?;
/// let x: Tensor<Rank3<1, 3, 4>, f32, _> = dev.sample_normal();
/// assert_eq!(network.try_forward(x)?.shape().concrete(), [1, 3, 4]);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Clone)]
pub struct SwiGlu<const H: usize, const FF: usize, F: Dtype, D: Storage<F>> {
    /// Its silu opens and closes what passes, `[f, h]`.
    pub gate_proj: Linear<Const<H>, Const<FF>, F, D>,
    /// What passes, `[f, h]`.
    pub up_proj: Linear<Const<H>, Const<FF>, F, D>,
    /// Back to tokens, `[h, f]`.
    pub down_proj: Linear<Const<FF>, Const<H>, F, D>,
}

impl<const H: usize, const FF: usize, F: Float, D: Backend<F>> SwiGlu<H, FF, F, D> {
    /// A network with its three matrices drawn from `seed`, `seed + 1` and `seed + 2`, normal with standard
    /// deviation `init_std`.
    ///
    /// # Errors
    /// A standard deviation that is negative or not finite; what the device reports.
    pub fn new(dev: &D, seed: u64, init_std: f64) -> Result<Self> {
        let config = |nth| LinearConfig { init_std, init_seed: seed.wrapping_add(nth) };
        Ok(Self {
            gate_proj: Linear::new(dev, config(0))?,
            up_proj: Linear::new(dev, config(1))?,
            down_proj: Linear::new(dev, config(2))?,
        })
    }
}

impl<const H: usize, const FF: usize, B: Dim, S: Dim, F: Float, D: Backend<F>, T: Tape<F, D>>
    Module<Tensor<(B, S, Const<H>), F, D, T>> for SwiGlu<H, FF, F, D>
{
    type Output = Tensor<(B, S, Const<H>), F, D, T>;
    type Error = crate::Error;

    fn try_forward(&self, x: Tensor<(B, S, Const<H>), F, D, T>) -> Result<Self::Output> {
        let gate = self.gate_proj.try_forward(x.with_empty_tape())?; //       [b, s, f]
        let up = self.up_proj.try_forward(x)?; //                             [b, s, f]
        self.down_proj.try_forward(silu_mul(gate, up)?) //                    [b, s, h]
    }
}

parts! {
    [const H: usize, const FF: usize] SwiGlu<H, FF>
    { gate_proj: "gate_proj", up_proj: "up_proj", down_proj: "down_proj" }
}

shown! {
    [const H: usize, const FF: usize, F: Dtype, D: Storage<F>] SwiGlu<H, FF, F, D>, hidden_size: H, ffn_hidden_size: FF
}
