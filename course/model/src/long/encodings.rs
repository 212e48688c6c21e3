//! The position encodings, each in the same model.
//!
//! All weights of a model are drawn from the run's seed, regardless of its encoding; what an encoding adds has seeds
//! after those. The optimizer is the same too. It decides by shape what decays, so T5's table of buckets, learned
//! positions, and Transformer-XL's `u`, `v` and `W_r` decay as all matrices do, and KERPLE's two lists do not.

use super::biased::Biased;
use super::dropout::Dropped;
use super::heads::{ExpAlphaRope, OnNormed};
use super::linear::Linearly;
use crate::error::{Error, Result};
use crate::network::{Library, Llama, Network, Other, Trainee};
use crate::sizes::{self, INIT_STD, LONGER, SMALL_VOCAB, Size, TINY_VOCAB};
use quadrivium::pos_emb::{
    DynamicNtk, DynamicNtkRope, DynamicNtkRopeConfig, LearnableRope, LearnableRopeConfig,
    RotaryFrequencies, ScaledRope, ScaledRopeConfig, XPos, XPosConfig, Yarn,
};
use quadrivium::position::{
    Alibi, Kerple, KerpleConfig, KerpleKernel, LearnedPositions, LearnedPositionsConfig,
    NoPosition, PositionEncoding, Positions, Sinusoidal, T5Bias, T5BiasConfig, TransformerXl,
    TransformerXlConfig,
};
use quadrivium::tensor::*;

/// The base of all rotations.
pub(super) const BASE: f64 = 10_000.0;
/// Seeds from here on, after those of a model's own weights.
const SEEDS: u64 = 1000;

/// The frequencies of a rotation of heads of size `hd`, in a model that was trained at `ms` positions.
fn frequencies(name: &str, hd: usize, ms: usize) -> quadrivium::error::Result<RotaryFrequencies> {
    let factor = LONGER as f64;
    if let Some(base) = name.strip_prefix("base-").and_then(|base| base.parse().ok()) {
        return RotaryFrequencies::plain(hd, base);
    }
    match name.strip_suffix("-tuned").unwrap_or(name) {
        "interpolation" => RotaryFrequencies::interpolated(hd, BASE, factor),
        "ntk" => RotaryFrequencies::ntk(hd, BASE, factor),
        "yarn" => {
            let yarn = Yarn { factor, max_seq_len: ms, ..Yarn::default() };
            RotaryFrequencies::yarn(hd, BASE, yarn)
        }
        "partial" => RotaryFrequencies::plain(hd / 2, BASE),
        _ => RotaryFrequencies::plain(hd, BASE),
    }
}

/// Sinusoids as they were published: on tokens that were multiplied by the root of the hidden size. Without that, they
/// would drown the tokens. Source: Vaswani et al. 2017, sections 3.4 and 3.5.
///
/// A model that was trained so and goes on with RoPE keeps the multiplication, and has no sinusoids.
#[derive(Debug, Default, Clone, Copy)]
struct OnScaledTokens {
    without: bool,
}

impl ZeroSizedModule for OnScaledTokens {}

impl<const HD: usize> PositionEncoding<HD, f32, Cpu> for OnScaledTokens {
    fn on_tokens<const H: usize, B: Dim, S: Dim, T: Tape<f32, Cpu>>(
        &self,
        tokens: Tensor<(B, S, Const<H>), f32, Cpu, T>,
        positions: &Positions,
    ) -> quadrivium::error::Result<Tensor<(B, S, Const<H>), f32, Cpu, T>> {
        let scaled = tokens.try_mul((H as f64).sqrt() as f32)?; //            [b, s, h]
        if self.without {
            return Ok(scaled);
        }
        Sinusoidal::default().try_forward((scaled, positions)) //             [b, s, h]
    }
}

/// A model with its name. `after` ends each step.
fn named<const V: usize, M: Llama<V> + 'static>(
    (dev, name, size): (&Cpu, &str, Size),
    model: M,
    after: fn(&mut M) -> Result<()>,
) -> Result<Box<dyn Network>> {
    let other = Other { encoding: name.to_string(), after };
    Ok(Box::new(Trainee::<V, M>::new(dev, model, Library, size.config())?.with(other)))
}

/// The models of a size. `[h, nh, hd, ms]` are its hidden size, query heads, head size and trained length; `[q, k]` are the elements of all its queries and keys.
macro_rules! models {
    ($of_size:ident, $model:path, $size:expr, $v:ident, [$h:literal, $nh:literal, $hd:literal, $ms:literal], [$q:literal, $k:literal]) => {
        fn $of_size(name: &str, seed: u64) -> Result<Box<dyn Network>> {
            let dev = sizes::device();
            let of = (&dev, name, $size);
            let model = $model(&dev, seed)?;
            let own = |nth: usize| seed.wrapping_add(SEEDS + 10 * nth as u64);
            let rope = || {
                let mut config = ScaledRopeConfig::new(frequencies(name, $hd, $ms)?, LONGER * $ms);
                config.rotary_dim = Some(config.frequencies.rotary_dim());
                ScaledRope::<$hd, Cpu>::new(&dev, config)
            };
            let none = |_| Ok(NoPosition);
            match name {
                "none" => named::<$v, _>(of, model.with_position(none, NoPosition)?, |_| Ok(())),
                "sinusoidal" | "sinusoidal-on" => {
                    let shared = OnScaledTokens { without: false };
                    named::<$v, _>(of, model.with_position(none, shared)?, |_| Ok(()))
                }
                "sinusoidal-to-rope" => {
                    let (rope, shared) = (rope()?, OnScaledTokens { without: true });
                    let model = model.with_position(|_| Ok(rope.clone()), shared)?;
                    named::<$v, _>(of, model, |_| Ok(()))
                }
                "linear" => {
                    let model = model.with_position(none, NoPosition)?;
                    let plain = frequencies(name, $hd, $ms)?;
                    let plain = plain.frequencies();
                    let model = Linearly::new(&dev, model, plain, LONGER * $ms)?;
                    named::<$v, _>(of, model, |_| Ok(()))
                }
                "learned" => {
                    let config = LearnedPositionsConfig { init_std: INIT_STD, init_seed: own(0) };
                    let shared = LearnedPositions::<$ms, $h, f32, Cpu>::new(&dev, config)?;
                    named::<$v, _>(of, model.with_position(none, shared)?, |_| Ok(()))
                }
                "t5" => {
                    let config = T5BiasConfig { init_seed: own(0), ..Default::default() };
                    let shared = T5Bias::<$nh, 32, f32, Cpu>::new(&dev, config)?;
                    named::<$v, _>(of, model.with_position(none, shared)?, |_| Ok(()))
                }
                "alibi" => named::<$v, _>(of, model.with_position(none, Alibi::<$nh>)?, |_| Ok(())),
                "kerple-log" | "kerple-power" => {
                    let log = name == "kerple-log";
                    let kernel = if log { KerpleKernel::Logarithmic } else { KerpleKernel::Power };
                    let block = |nth| {
                        let config = KerpleConfig { kernel, init_seed: own(nth) };
                        Kerple::<$nh, f32, Cpu>::new(&dev, config)
                    };
                    // Where the authors' code has its numbers before each call.
                    named::<$v, _>(of, model.with_position(block, NoPosition)?, |model| {
                        for block in &mut model.layers.modules {
                            block.self_attn.position.clamp()?;
                        }
                        Ok(())
                    })
                }
                "xl" => {
                    let block = |nth| {
                        let config = TransformerXlConfig {
                            base: BASE,
                            init_std: INIT_STD,
                            init_seed: own(nth),
                        };
                        TransformerXl::<$h, $nh, $hd, f32, Cpu>::new(&dev, config)
                    };
                    named::<$v, _>(of, model.with_position(block, NoPosition)?, |_| Ok(()))
                }
                "xpos" => {
                    let config =
                        XPosConfig { base: BASE, max_position: LONGER * $ms, ..Default::default() };
                    let xpos = XPos::<$hd, Cpu>::new(&dev, config)?;
                    let model = model.with_position(|_| Ok(xpos.clone()), NoPosition)?;
                    named::<$v, _>(of, model, |_| Ok(()))
                }
                "rope+alibi" => {
                    // ANCHOR: with_position
                    let rope = rope()?; // the blocks share its table
                    let model = model.with_position(|_| Ok(rope.clone()), Alibi::<$nh>)?;
                    // ANCHOR_END: with_position
                    named::<$v, _>(of, model, |_| Ok(()))
                }
                "rope+t5" => {
                    let rope = rope()?;
                    let config = T5BiasConfig { init_seed: own(0), ..Default::default() };
                    let shared = T5Bias::<$nh, 32, f32, Cpu>::new(&dev, config)?;
                    let model = model.with_position(|_| Ok(rope.clone()), shared)?;
                    named::<$v, _>(of, model, |_| Ok(()))
                }
                "theta" => {
                    let config = LearnableRopeConfig { base: BASE, ..Default::default() };
                    let block = |_| LearnableRope::<$hd, f32, Cpu>::new(&dev, config);
                    named::<$v, _>(of, model.with_position(block, NoPosition)?, |_| Ok(()))
                }
                "exp-alpha" => {
                    let block = |_| ExpAlphaRope::<$hd, f32, Cpu>::new(&dev, BASE);
                    named::<$v, _>(of, model.with_position(block, NoPosition)?, |_| Ok(()))
                }
                "qk-norm" => {
                    let rope = rope()?;
                    let eps = $size.config().rms_norm_eps;
                    let block = |_| OnNormed::new(&dev, eps, rope.clone());
                    named::<$v, _>(of, model.with_position(block, NoPosition)?, |_| Ok(()))
                }
                "qk-bias" => {
                    let rope = rope()?;
                    let block = |_| Biased::<$q, $k, f32, Cpu, _>::new(&dev, rope.clone());
                    named::<$v, _>(of, model.with_position(block, NoPosition)?, |_| Ok(()))
                }
                "rope-dropout" => {
                    let rope = rope()?;
                    let shared = Dropped(NoPosition);
                    let model = model.with_position(|_| Ok(rope.clone()), shared)?;
                    named::<$v, _>(of, model, |_| Ok(()))
                }
                "sinusoidal-dropout" => {
                    let shared = Dropped(OnScaledTokens { without: false });
                    named::<$v, _>(of, model.with_position(none, shared)?, |_| Ok(()))
                }
                "dynamic-ntk" => {
                    let ntk = DynamicNtk { factor: 1.0, max_seq_len: $ms };
                    let config = DynamicNtkRopeConfig { base: BASE, ntk, ..Default::default() };
                    let rope = DynamicNtkRope::<$hd, Cpu>::new(&dev, config)?;
                    let model = model.with_position(|_| Ok(rope.clone()), NoPosition)?;
                    named::<$v, _>(of, model, |_| Ok(()))
                }
                "rope"
                | "base-100"
                | "base-1000"
                | "base-100000"
                | "base-1000000"
                | "length-32"
                | "length-64"
                | "length-256"
                | "partial"
                | "interpolation"
                | "interpolation-tuned"
                | "ntk"
                | "ntk-tuned"
                | "yarn"
                | "yarn-tuned" => {
                    let rope = rope()?;
                    let model = model.with_position(|_| Ok(rope.clone()), NoPosition)?;
                    named::<$v, _>(of, model, |_| Ok(()))
                }
                _ => Err(Error::Encoding { name: name.to_string() }),
            }
        }
    };
}

models!(small, sizes::small, Size::Small, SMALL_VOCAB, [128, 4, 32, 128], [128, 64]);
models!(tiny, sizes::tiny, Size::Tiny, TINY_VOCAB, [16, 2, 8, 16], [16, 8]);

/// A model with the encoding of that name, untrained.
///
/// # Errors
/// What the library refuses.
pub fn network(name: &str, size: Size, seed: u64) -> Result<Box<dyn Network>> {
    match size {
        Size::Small => small(name, seed),
        Size::Tiny => tiny(name, seed),
    }
}
