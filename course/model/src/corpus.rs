//! A text as a model sees it: tokens to learn from, tokens that are held out, and the 3-gram model of the same tokens.

use crate::batches::{Batch, Batches, in_order};
use crate::error::{Error, Result};
use crate::ngram::Trigrams;
use crate::text::Text;
use crate::tokens::Tokens;
use sha2::{Digest, Sha256};

/// Places of the held-out text that are looked at, at most: more would take longer than a hundred steps.
const PLACES: usize = 16_384;

/// The tokens of a text.
#[derive(Debug)]
pub struct Corpus {
    /// Who made the tokens.
    pub tokens: Tokens,
    /// What is learned from.
    pub trained: Vec<usize>,
    /// What is held out, as far as it is looked at: whole windows, and one token more.
    pub held_out: Vec<usize>,
    /// Bytes of these.
    pub held_out_bytes: usize,
    shape: (usize, usize),
    vocab_size: usize,
}

impl Corpus {
    /// Cuts a text into tokens, with a tokenizer that is trained on the part that is learned from. `shape` is that of a
    /// batch, `[b, s]`.
    ///
    /// # Errors
    /// A text that is too short.
    pub fn new(text: &Text, shape: (usize, usize), vocab_size: usize) -> Result<Self> {
        text.check()?;
        let tokens = Tokens::train(&text.split().0, vocab_size)?;
        Self::with_tokens(text, tokens, shape, vocab_size)
    }

    /// The same with the tokens of a model that is there already.
    ///
    /// # Errors
    /// As for [`Corpus::new`].
    pub fn with_tokens(
        text: &Text,
        tokens: Tokens,
        shape: (usize, usize),
        vocab_size: usize,
    ) -> Result<Self> {
        text.check()?;
        let (trained, held_out) = text.split();
        let trained = tokens.encode(&trained)?;
        let mut held_out = tokens.encode(&held_out)?;
        let least = |part: &str, least: usize, got: usize| match got < least {
            true => Err(Error::Text {
                name: text.name.clone(),
                rule: format!("its {part} part has at least {least} tokens"),
                got: got.to_string(),
            }),
            false => Ok(()),
        };
        let (_, s) = shape;
        least("training", Batches::least(shape), trained.len())?;
        least("held-out", s + 1, held_out.len())?;
        held_out.truncate((held_out.len() - 1).min(PLACES) / s * s + 1);
        let held_out_bytes = tokens.decode(&held_out[1..])?.len();
        Ok(Self { tokens, trained, held_out, held_out_bytes, shape, vocab_size })
    }

    /// Rows of the model's table that no token has. The loss of a place is over all rows, so a model has to learn that these
    /// never come.
    pub fn rows_without_token(&self) -> usize {
        self.vocab_size.saturating_sub(self.tokens.len())
    }

    /// The held-out text in batches, each place once.
    pub fn asked(&self) -> Vec<Batch> {
        in_order(&self.held_out, self.shape)
    }

    /// The loss of the 3-gram model at each place that [`Corpus::asked`] asks about. Its context is never cut: at the start
    /// of a window it sees two tokens, and the model one.
    pub fn trigram_losses(&self) -> Vec<f64> {
        let model = Trigrams::new(&self.trained, self.vocab_size);
        let places = 1..self.held_out.len();
        places.map(|place| model.loss(&self.held_out, place..place + 1)).collect()
    }

    /// A number that is another one for other tokens.
    ///
    /// # Errors
    /// What the crate `tokenizers` reports.
    pub fn fingerprint(&self) -> Result<String> {
        let mut hash = Sha256::new();
        hash.update(self.tokens.json()?);
        for part in [&self.trained, &self.held_out] {
            hash.update((part.len() as u64).to_le_bytes());
            part.iter().for_each(|id| hash.update((*id as u64).to_le_bytes()));
        }
        Ok(hex(&hash.finalize()))
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean at each of `s` positions of the windows.
pub fn by_position(losses: &[f64], s: usize) -> Vec<f64> {
    (0..s).map(|t| mean(&losses.iter().skip(t).step_by(s).copied().collect::<Vec<_>>())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_models_are_asked_about_the_same_places() {
        let text = Text { name: "a test".into(), content: "one two three four\n".repeat(200) };
        let corpus = Corpus::new(&text, (2, 16), 272).unwrap();
        let places: usize = corpus.asked().iter().map(|batch| batch.next.len()).sum();
        assert_eq!(places, corpus.trigram_losses().len());
        let asked: Vec<usize> =
            corpus.asked().iter().flat_map(|batch| batch.next.clone()).collect();
        assert_eq!(asked, corpus.held_out[1..]);
    }

    #[test]
    fn positions_are_columns() {
        assert_eq!(by_position(&[1.0, 2.0, 3.0, 4.0], 2), [2.0, 3.0]);
    }

    #[test]
    fn a_text_that_is_too_short() {
        let text = Text { name: "a test".into(), content: "one two\n".into() };
        let error = Corpus::new(&text, (8, 128), 512).unwrap_err();
        assert!(error.to_string().contains("at least 1153 tokens"), "{error}");
    }
}
