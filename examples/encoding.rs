//! Your own encoding, in a model: a penalty for what is farther away than a window.
//!
//! ```sh
//! cargo run --example encoding
//! ```

use quadrivium::error::{Error, Result};
use quadrivium::functional::{cross_entropy, next_tokens};
use quadrivium::model::{LlamaConfig, LlamaTransformer};
use quadrivium::position::{NoPosition, PositionEncoding, ScoreBias, alibi_slopes};
use quadrivium::tensor::*;

/// No text is longer. More would ask for memory that there is not.
const MOST: usize = 1 << 24;

// ANCHOR: bias
/// `-slope_n * max(0, j - window)` for head `n` at the distance `j`, `[nh, t]`: ALiBi that begins past a window.
///
/// # Errors
/// No heads; no positions, or more than memory has room for; what the device reports.
pub fn windowed_bias<F: Float, D: Device<F>>(
    dev: &D,
    num_heads: usize,
    window: usize,
    positions: usize,
) -> Result<Tensor<(usize, usize), F, D>> {
    let slopes = alibi_slopes(num_heads)?;
    if positions == 0 {
        return Err(Error::Empty { name: "positions", shape: vec![0] });
    }
    if positions > MOST {
        let (rule, got) = ("at most 2^24", positions as f64);
        return Err(Error::Setting { name: "positions", rule, got });
    }
    let row =
        |slope: f64| (0..positions).map(move |j| 0.0 - slope * j.saturating_sub(window) as f64);
    let table: Vec<F> = slopes.into_iter().flat_map(row).map(F::nearest).collect();
    dev.try_tensor_from_vec(table, (num_heads, positions)).map_err(Error::device) // [nh, t]
}
// ANCHOR_END: bias

// ANCHOR: module
/// ALiBi past a window, for `NH` heads. There are no weights.
#[derive(Debug, Default, Clone, Copy)]
pub struct Windowed<const NH: usize, const WINDOW: usize>;

/// dfdx builds a module without tensors by its `Default`.
impl<const NH: usize, const WINDOW: usize> ZeroSizedModule for Windowed<NH, WINDOW> {}

impl<const NH: usize, const WINDOW: usize, const HD: usize, F: Float, D: Backend<F>>
    PositionEncoding<HD, F, D> for Windowed<NH, WINDOW>
{
    fn on_scores<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Tensor<(B, S, N, Const<HD>), F, D, T>,
        keys: usize,
    ) -> Result<ScoreBias<B, S, F, D, T>> {
        let num_heads = queries.shape().2.size();
        if num_heads != NH {
            return Err(Error::Shape { name: "heads", expected: vec![NH], got: vec![num_heads] });
        }
        let table = windowed_bias(queries.device(), NH, WINDOW, keys)?; //    [nh, t]
        Ok(ScoreBias::of_distances(table.put_tape(T::default())))
    }
}
// ANCHOR_END: module

// ANCHOR: model
/// A small decoder with it: 4 heads over 2 key heads, of 8 elements each.
pub type Decoder = LlamaTransformer<
    50,
    32,
    4,
    2,
    8,
    64,
    2,
    f32,
    Cpu,
    quadrivium::model::Tied,
    quadrivium::VocabEmbedding<50, 32, f32, Cpu>,
    quadrivium::GroupRmsNorm<32, 32, f32, Cpu>,
    NoPosition,
    Windowed<4, 16>,
>;

/// The decoder, untrained. `NoPosition` is in each block, and `Windowed` once for all of them.
///
/// # Errors
/// What the library refuses.
pub fn decoder(dev: &Cpu) -> Result<Decoder> {
    let config = LlamaConfig { init_std: 0.1, ..Default::default() };
    let model = LlamaTransformer::<50, 32, 4, 2, 8, 64, 2, f32, Cpu, _>::tied(dev, config)?;
    model.with_position(|_| Ok(NoPosition), Windowed)
}
// ANCHOR_END: model

/// Prints the loss of a text before and after some steps.
///
/// # Errors
/// What the library refuses.
#[allow(dead_code)] // tests/suite/own_encoding.rs takes the rest
pub fn main() -> Result<()> {
    let dev = Cpu::default();
    let mut model = decoder(&dev)?;
    let text: Vec<usize> = (0..65).map(|t| (t * t + 3) % 50).collect();
    let (ids, next) = next_tokens(&dev.tensor_from_vec(text, (1usize, 65usize)))?; // [1, 64] both
    let mut adam = quadrivium::training::AdamW::new(Default::default())?;
    for step in 0..=40 {
        let grads = model.try_alloc_grads().map_err(Error::device)?;
        let loss = cross_entropy(model.try_forward(ids.clone().traced(grads))?, &next)?;
        if step % 20 == 0 {
            println!("after {step:2} steps the loss is {:.2}", loss.array());
        }
        let mut grads = loss.try_backward().map_err(Error::device)?;
        adam.update(&mut model, &mut grads, 0.01)?;
    }
    Ok(())
}
