//! A sliding window, as Mistral has it.

use crate::error::{Error, Result};
use crate::position::{PositionEncoding, ScoreBias};
use crate::tensor::*;

/// A sliding window in a model: each token sees the last `W` positions, its own among them.
///
/// It adds minus infinity to the scores of what is farther away, so it may stand beside an encoding in each block, as the one that all
/// blocks share. What it hides must be finite: NaN plus minus infinity is NaN. It saves neither time nor memory, because all scores are
/// computed and all keys are kept; [`inference`](crate::inference) skips what no window shows.
/// [`sliding_window_mask`](super::sliding_window_mask) is the same as a table of queries and keys. Source: Beltagy et al. 2020,
/// "Longformer".
///
/// ```
/// use quadrivium::attention::SlidingWindow;
/// use quadrivium::model::LlamaTransformer;
/// use quadrivium::tensor::*;
///
/// let dev = Cpu::default();
/// let model = LlamaTransformer::<9, 8, 2, 1, 4, 24, 1, f32, _>::new(&dev, Default::default())?;
/// let rope = model.layers.modules[0].self_attn.position.clone();
/// let model = model.with_position(|_| Ok(rope.clone()), SlidingWindow::<2>)?;
/// let last = |ids: [usize; 4]| model.try_forward(dev.tensor([ids])).map(|logits| logits.as_vec()[27..].to_vec());
/// // One block: the last of four tokens sees the third and itself.
/// assert_eq!(last([1, 2, 3, 4])?, last([8, 7, 3, 4])?);
/// assert_ne!(last([1, 2, 3, 4])?, last([1, 2, 6, 4])?);
/// # Ok::<(), quadrivium::Error>(())
/// ```
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SlidingWindow<const W: usize>;

impl<const W: usize> ZeroSizedModule for SlidingWindow<W> {}

impl<const W: usize, const HD: usize, F: Float, D: Backend<F>> PositionEncoding<HD, F, D>
    for SlidingWindow<W>
{
    /// A window of 0 does not compile.
    fn on_scores<B: Dim, S: Dim, N: Dim, T: Tape<F, D>>(
        &self,
        queries: Tensor<(B, S, N, Const<HD>), F, D, T>,
        keys: usize,
    ) -> Result<ScoreBias<B, S, F, D, T>> {
        const { assert!(W > 0, "through a window of 0 positions, nothing is seen") };
        let num_heads = queries.shape().2.size();
        let row =
            (0..keys).map(|distance| if distance < W { F::zero() } else { F::neg_infinity() });
        let table = (0..num_heads).flat_map(|_| row.clone()).collect();
        let table = queries.device().try_tensor_from_vec(table, (num_heads, keys)); // [nh, t]
        Ok(ScoreBias::of_distances(table.map_err(Error::device)?.put_tape(T::default())))
    }
}
