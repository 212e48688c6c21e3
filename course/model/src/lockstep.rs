//! Two models that must agree at every step: the learner's, which is trained, and the library's beside it.

use crate::batches::Batch;
use crate::error::Result;
use crate::network::{Apart, Computes, Differs, Llama, Network, Seen, Trainee};
use quadrivium::checkpoint::{AsLlama, CheckpointConfig};
use quadrivium::tensor::nn::tensor_collection::{
    RecursiveWalker, TensorVisitor, ViewTensorMut, ViewTensorRef,
};
use quadrivium::tensor::*;
use std::path::Path;

/// How far two losses and two norms of gradients may be apart: the losses beside the larger of 1 and the loss, the norms
/// beside their size. This is for a model with the learner's norm, table and RoPE, and the library's other parts.
///
/// Before each step the library's model gets the learner's weights. Nothing therefore adds up over steps: the two
/// differ by the roundings of one forward pass. A norm of `h = 128` elements sums 128 squares: of roundings with random
/// signs, `sqrt(128)` count, about 11 of size `2^-24`, and as many again of its single operations. There are 9 norms,
/// and each reaches the logits through at most three products of its block, so about `9 * 3 * 22 = 600` roundings in a
/// logit of size up to 10. The loss is a mean over 512 tokens, whose roundings have random signs again: `600 * 10 /
/// 22`, or 270. The next power of two is 512, and the bound `2^9 * 2^-24`. (The small model of the tests has fewer
/// tokens and shorter sums; its bounds would be smaller.)
///
/// The backward pass has each rounding of the forward pass twice, once in what it multiplies and once in what it makes. Of
/// the error of a token's gradient the norm sees what points along the sum of all tokens' gradients, again with random
/// signs: `600 * 2 / 22`, or 55, and `2^6 * 2^-24`.
pub const PARTS: [f64; 2] = [1.0 / (1u64 << 15) as f64, 1.0 / (1u64 << 18) as f64];

/// The same for a model of the learner's parts alone.
///
/// Now every operation is another one. In a block these are two norms, `2 * 22`; queries, keys and values, `3 * 11`; their
/// scores, sums of 32 products that are turned and scaled, 9, and in the exponent of a score of size up to 10 ten times
/// these, 90; the sum of 128 exponentials, the mean of the values and the output, `3 * 11`; gate, silu and up, 27; down, a sum
/// of 384 products, 20. That makes 256 in each of 4 blocks, and with the last norm, the logits and the loss some 1070.
/// Three products further, as above, 3200: `3200 * 10 / 22` is below `2^11`, and `3200 * 2 / 22` below `2^9`.
pub const WHOLE: [f64; 2] = [1.0 / (1u64 << 13) as f64, 1.0 / (1u64 << 15) as f64];

/// A model of the learner's parts, and the library's model that looks over its shoulder.
pub struct Lockstep<const V: usize, M, C, L> {
    mine: Trainee<V, M, C>,
    library: Trainee<V, L>,
    bounds: [f64; 2],
    parts: String,
    step: usize,
    differs: Option<Differs>,
    /// The largest differences so far: of the losses, and of the norms.
    apart: [f64; 2],
}

impl<const V: usize, M, C, L> Lockstep<V, M, C, L> {
    /// The two, in the same state. `bounds` are how far their losses and their norms may be apart, `parts` are words for
    /// what is the learner's.
    pub fn new(
        mine: Trainee<V, M, C>,
        library: Trainee<V, L>,
        bounds: [f64; 2],
        parts: String,
    ) -> Self {
        Self { mine, library, bounds, parts, step: 0, differs: None, apart: [0.0; 2] }
    }

    /// Notes how far the two are apart.
    fn compare(&mut self, mine: Seen, library: Seen) {
        let pairs = [
            ("loss", f64::from(mine.loss), f64::from(library.loss)),
            ("norm of the gradients", mine.norm, library.norm),
        ];
        let sizes = [pairs[0].2.abs().max(1.0), pairs[1].2];
        for (nth, (what, mine, library)) in pairs.into_iter().enumerate() {
            let apart = (mine - library).abs() / sizes[nth];
            let bound = self.bounds[nth];
            self.apart[nth] = self.apart[nth].max(apart);
            let differs = apart > bound || apart.is_nan();
            if self.differs.is_none() && differs {
                let bound = bound * sizes[nth];
                self.differs = Some(Differs { step: self.step, what, mine, library, bound });
            }
        }
    }
}

impl<const V: usize, M, C: Computes<V, M>, L: Llama<V>> Network for Lockstep<V, M, C, L>
where
    M: TensorCollection<f32, Cpu> + AsLlama,
{
    fn config(&self) -> &CheckpointConfig {
        self.mine.config()
    }

    fn look(&mut self, batch: &Batch) -> Result<Seen> {
        copy_weights(&self.mine.model, &mut self.library.model)?;
        let library = self.library.look(batch)?;
        self.library.forget()?;
        let mine = self.mine.look(batch)?;
        self.compare(mine, library);
        Ok(mine)
    }

    fn update(&mut self, rate: f64) -> Result<()> {
        self.step += 1;
        self.mine.update(rate)
    }

    fn losses(&self, batch: &Batch) -> Result<Vec<f64>> {
        self.mine.losses(batch)
    }

    fn save(&mut self, folder: &Path) -> Result<()> {
        self.mine.save(folder)
    }

    fn load(&mut self, folder: &Path, step: usize) -> Result<()> {
        self.step = step;
        self.mine.load(folder, step)
    }

    fn take_weights(&mut self, folder: &Path) -> Result<()> {
        self.mine.take_weights(folder)
    }

    fn parts(&self) -> Option<String> {
        Some(self.parts.clone())
    }

    fn differs(&self) -> Option<Differs> {
        self.differs
    }

    fn apart(&self) -> Option<Apart> {
        Some(Apart { most: self.apart, bounds: self.bounds })
    }
}

/// Gives `to` the weights of `from`. Their tensors are in the same order.
fn copy_weights<A: TensorCollection<f32, Cpu>, B: TensorCollection<f32, Cpu>>(
    from: &A,
    to: &mut B,
) -> Result<()> {
    let mut taken = Taken(Vec::new());
    A::iter_tensors(&mut RecursiveWalker { m: from, f: &mut taken })
        .map_err(quadrivium::Error::from)?;
    let mut given = Given(taken.0.into_iter());
    B::iter_tensors(&mut RecursiveWalker { m: to, f: &mut given })
        .map_err(quadrivium::Error::from)?;
    Ok(())
}

struct Taken(Vec<Vec<f32>>);

impl TensorVisitor<f32, Cpu> for Taken {
    type Viewer = ViewTensorRef;
    type Err = CpuError;
    type E2 = f32;
    type D2 = Cpu;

    fn visit<S: Shape>(
        &mut self,
        _: TensorOptions<S, f32, Cpu>,
        tensor: &Tensor<S, f32, Cpu>,
    ) -> std::result::Result<Option<Tensor<S, f32, Cpu>>, CpuError> {
        self.0.push(tensor.as_vec());
        Ok(None)
    }
}

struct Given(std::vec::IntoIter<Vec<f32>>);

impl TensorVisitor<f32, Cpu> for Given {
    type Viewer = ViewTensorMut;
    type Err = CpuError;
    type E2 = f32;
    type D2 = Cpu;

    fn visit<S: Shape>(
        &mut self,
        _: TensorOptions<S, f32, Cpu>,
        tensor: &mut Tensor<S, f32, Cpu>,
    ) -> std::result::Result<Option<Tensor<S, f32, Cpu>>, CpuError> {
        if let Some(values) = self.0.next() {
            tensor.copy_from(&values);
        }
        Ok(None)
    }
}
