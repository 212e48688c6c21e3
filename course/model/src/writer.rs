//! What writes: a model of the library, or one of the learner's parts.

use crate::error::Result;
use quadrivium::model::Sampler;

/// A model that goes on with a text.
pub trait Writer {
    /// Takes tokens in, and gives the logits `[v]` of the one after them.
    ///
    /// # Errors
    /// More tokens than the model has positions; what the library refuses.
    fn next(&mut self, ids: &[usize]) -> Result<Vec<f32>>;

    /// Chooses one of the tokens by their logits `[v]`.
    ///
    /// # Errors
    /// Logits that can't be drawn from.
    fn choose(&mut self, logits: &[f32], sampler: &mut Sampler) -> Result<usize> {
        Ok(sampler.next(logits)?)
    }

    /// Forgets all tokens.
    fn forget(&mut self);

    /// Tokens that it can take in.
    fn positions(&self) -> usize;
}
