//! Writing on: from prompts to tokens, one at a time.

use super::cache::CacheKind;
use super::model::LlamaModel;
use crate::error::{Error, Result};
use crate::model::{Sampler, SamplingConfig};
use std::ops::ControlFlow;

/// How texts are written on.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateConfig {
    /// The most tokens that each text gets. Default 100.
    pub max_new_tokens: usize,
    /// How a token is chosen. Text `n` draws from the seed `n` places further, so up to rounding what it gets does not depend on the texts
    /// beside it.
    pub sampling: SamplingConfig,
    /// How keys and values are kept.
    pub cache: CacheKind,
    /// Tokens that end a text. Default: those of the checkpoint.
    pub eos_token_id: Option<Vec<usize>>,
    /// Tokens that are never chosen, such as rows of the table that no token has.
    pub suppress_tokens: Vec<usize>,
}

impl Default for GenerateConfig {
    fn default() -> Self {
        Self {
            max_new_tokens: 100,
            sampling: SamplingConfig::default(),
            cache: CacheKind::default(),
            eos_token_id: None,
            suppress_tokens: Vec::new(),
        }
    }
}

/// A text that is not at its end.
struct Text {
    /// Its place among the prompts.
    nth: usize,
    sampler: Sampler,
    /// Prompt and what came after it.
    ids: Vec<usize>,
    prompt: usize,
}

impl LlamaModel {
    /// Goes on with each of some texts, and returns what they got. A text ends at a token of `eos_token_id`, after
    /// `max_new_tokens`, and where the model has no more [`positions`](Self::positions). `on_token` is called with the number of
    /// the text and each new token that does not end it, as soon as it is there, and may end that text with
    /// [`ControlFlow::Break`], such as at a stop word.
    ///
    /// ```no_run
    /// use quadrivium::inference::{GenerateConfig, LlamaModel};
    /// use std::ops::ControlFlow;
    ///
    /// let model = LlamaModel::open("SmolLM-135M")?;
    /// let texts = model.generate(&[&[504, 2365, 282]], &GenerateConfig::default(), |_, id| {
    ///     println!("{id}");
    ///     ControlFlow::Continue(())
    /// })?;
    /// # assert_eq!(texts.len(), 1);
    /// # Ok::<(), quadrivium::Error>(())
    /// ```
    ///
    /// # Errors
    /// What [`decode`](Self::decode) and [`Sampler::new`] refuse; a token to suppress that is not below `vocab_size`.
    pub fn generate(
        &self,
        prompts: &[&[usize]],
        config: &GenerateConfig,
        mut on_token: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Vec<Vec<usize>>> {
        let vocab_size = self.config().llama.vocab_size;
        let outside = config.suppress_tokens.iter().position(|id| *id >= vocab_size);
        if let Some(position) = outside {
            let id = config.suppress_tokens[position];
            return Err(Error::TokenId { id, batch: 0, position, vocab_size });
        }
        let eos = config.eos_token_id.as_ref().unwrap_or(&self.config().llama.eos_token_id);
        let mut texts = Vec::new();
        for (nth, prompt) in prompts.iter().enumerate() {
            let seed = config.sampling.seed.wrapping_add(nth as u64);
            let sampler = Sampler::new(SamplingConfig { seed, ..config.sampling })?;
            texts.push(Text { nth, sampler, ids: prompt.to_vec(), prompt: prompt.len() });
        }
        let mut caches: Vec<_> = prompts.iter().map(|_| self.cache(config.cache)).collect();
        let mut written = vec![Vec::new(); prompts.len()];
        for _ in 0..config.max_new_tokens {
            if texts.is_empty() {
                break;
            }
            let new = texts.iter().zip(&caches).map(|(text, cache)| &text.ids[cache.len()..]);
            let mut logits = self.decode(&new.collect::<Vec<_>>(), &mut caches)?;
            let mut ended = Vec::new();
            for (text, logits) in texts.iter_mut().zip(logits.chunks_mut(vocab_size)) {
                config.suppress_tokens.iter().for_each(|id| logits[*id] = f32::NEG_INFINITY);
                config.sampling.penalize(logits, &text.ids)?;
                let id = text.sampler.next(logits)?;
                text.ids.push(id);
                let is_full = text.ids.len() > self.positions();
                ended.push(eos.contains(&id) || on_token(text.nth, id).is_break() || is_full);
            }
            let mut still = ended.iter().map(|ended| !ended);
            caches.retain(|_| still.next().unwrap_or(true));
            let mut nth = 0;
            for text in texts.extract_if(.., |_| {
                nth += 1;
                ended[nth - 1]
            }) {
                written[text.nth] = text.ids[text.prompt..].to_vec();
            }
        }
        for text in texts {
            written[text.nth] = text.ids[text.prompt..].to_vec();
        }
        Ok(written)
    }
}
