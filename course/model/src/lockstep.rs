//! Two models that must agree at every step: the learner's, which is trained, and the library's beside it.

use crate::batches::Batch;
use crate::error::Result;
use crate::network::{Llama, Network, Seen, Trainee};
use quadrivium::checkpoint::CheckpointConfig;
use quadrivium::tensor::nn::tensor_collection::{
    RecursiveWalker, TensorVisitor, ViewTensorMut, ViewTensorRef,
};
use quadrivium::tensor::*;
use std::path::Path;

/// How far the two losses of a step may be apart, beside the larger of 1 and the loss.
///
/// Before each step the library's model gets the learner's weights. So nothing adds up over steps: the two differ by the
/// roundings of one forward pass. A norm of `h = 128` elements sums 128 squares: of roundings with random signs, `sqrt(128)`
/// count, about 11 of size `2^-24`, and as many again of its single operations. There are 9 norms, and each reaches
/// the logits through at most three products of its block, so about `9 * 3 * 22 = 600` roundings in a logit of size
/// up to 10. The loss is a mean over 1024 tokens, whose roundings have random signs again: `600 * 10 / 32`, or 190.
/// The next power of two is 256, `2^8 * 2^-24`.
pub const LOSS_BOUND: f64 = 1.0 / (1u64 << 16) as f64;

/// How far the two norms of the gradients may be apart, as a part of their size: the backward pass has each rounding of the
/// forward pass twice, once in what it multiplies and once in what it makes, and nothing divides them by 32, since weights
/// of one tensor meet the same tokens: `600 * 2`, which is below `2^11 * 2^-24`.
pub const NORM_BOUND: f64 = 1.0 / (1u64 << 13) as f64;

/// The first step at which the two differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Differs {
    /// The step, from 0.
    pub step: usize,
    /// What differs.
    pub what: &'static str,
    /// The learner's number.
    pub mine: f64,
    /// The library's.
    pub library: f64,
    /// How far they may be apart.
    pub bound: f64,
}

/// A model of the learner's parts, and the library's model that looks over its shoulder.
pub struct Lockstep<const V: usize, M, L> {
    mine: Trainee<V, M>,
    library: Trainee<V, L>,
    step: usize,
    differs: Option<Differs>,
    /// The largest differences so far: of the losses, and of the norms.
    pub apart: [f64; 2],
}

impl<const V: usize, M: Llama<V>, L: Llama<V>> Lockstep<V, M, L> {
    /// The two, in the same state.
    pub fn new(mine: Trainee<V, M>, library: Trainee<V, L>) -> Self {
        Self { mine, library, step: 0, differs: None, apart: [0.0; 2] }
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
            let bound = [LOSS_BOUND, NORM_BOUND][nth];
            self.apart[nth] = self.apart[nth].max(apart);
            let differs = apart > bound || apart.is_nan();
            if self.differs.is_none() && differs {
                let bound = bound * sizes[nth];
                self.differs = Some(Differs { step: self.step, what, mine, library, bound });
            }
        }
    }
}

impl<const V: usize, M: Llama<V>, L: Llama<V>> Network for Lockstep<V, M, L> {
    fn config(&self) -> &CheckpointConfig {
        self.mine.config()
    }

    fn look(&mut self, batch: &Batch) -> Result<Seen> {
        copy_weights::<V, M, L>(&self.mine.model, &mut self.library.model)?;
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

    fn differs(&self) -> Option<Differs> {
        self.differs
    }

    fn apart(&self) -> Option<[f64; 2]> {
        Some(self.apart)
    }
}

/// Gives `to` the weights of `from`. Their tensors stand in the same order.
fn copy_weights<const V: usize, A: Llama<V>, B: Llama<V>>(from: &A, to: &mut B) -> Result<()> {
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
