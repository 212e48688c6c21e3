//! Tokens: byte-pair encoding over bytes, trained on the training part of the text.

use crate::error::{Error, Result, shown};
use crate::guard::caught;
use kit::text::visible;
use serde_json::Value;
use std::path::Path;
use tokenizers::models::bpe::{BPE, BpeTrainerBuilder};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{Tokenizer, models::TrainerWrapper};

/// The longest token that is made, in bytes: no text becomes one token.
const LONGEST: usize = 16;
/// How much longer a tokenizer may make a text, at most. Llama's makes 3 bytes of a space;
/// chains of a few replacements by one letter are in use.
const LONGER: usize = 256;

/// A tokenizer, as `tokenizer.json` describes it.
#[derive(Debug, Clone)]
pub struct Tokens(Tokenizer);

impl Tokens {
    /// Merges the most frequent pairs of `text` until there are `vocab_size` tokens. The 256 bytes are tokens from the
    /// start, so there is no text that has none.
    ///
    /// # Errors
    /// What the crate `tokenizers` reports.
    pub fn train(text: &str, vocab_size: usize) -> Result<Self> {
        let mut tokenizer = Tokenizer::new(BPE::default());
        // No space is put in front of a text: what is decoded is what was encoded.
        tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
        tokenizer.with_decoder(Some(ByteLevel::default()));
        let trainer = BpeTrainerBuilder::new()
            .vocab_size(vocab_size)
            .min_frequency(2)
            .max_token_length(Some(LONGEST))
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .show_progress(false)
            .build();
        tokenizer
            .train(&mut TrainerWrapper::from(trainer), [text].into_iter())
            .map_err(|e| refuse(Path::new("the text"), e, "try another text"))?;
        Ok(Self(tokenizer))
    }

    /// The tokenizer in a folder.
    ///
    /// # Errors
    /// A `tokenizer.json` that is missing or broken; one with ids that the vocabulary of the model does not have.
    pub fn load(folder: &Path, vocab_size: usize) -> Result<Self> {
        let file = folder.join("tokenizer.json");
        let to_do = "fetch it again, with the model that it belongs to";
        let bytes = std::fs::read(&file).map_err(|e| refuse(&file, e, to_do))?;
        let mut json: Value =
            serde_json::from_slice(without_mark(&bytes)).map_err(|e| refuse(&file, e, to_do))?;
        if has_precompiled(&json) {
            let reason =
                "its normalizer is a precompiled table, which no Llama has, and which is not read";
            return Err(refuse(&file, reason, to_do));
        }
        if ["normalizer", "decoder"].iter().any(|part| longer(&json[*part]) > LONGER) {
            let reason =
                format!("its replacements can make a text more than {LONGER} times as long");
            return Err(refuse(&file, reason, to_do));
        }
        if let Some(dropout) = json.pointer_mut("/model/dropout") {
            *dropout = Value::Null; // it is for training: with it, a text would have other tokens each time
        }
        let read = calm(|| Tokenizer::from_bytes(json.to_string()))
            .map_err(|e| refuse(&file, e, to_do))?;
        let mut tokenizer = read.map_err(|e| refuse(&file, e, to_do))?;
        // A prompt is neither cut nor filled up.
        tokenizer.with_truncation(None).map_err(|e| refuse(&file, e, to_do))?;
        tokenizer.with_padding(None);
        let tokens = Self(tokenizer);
        let ids = tokens.0.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1);
        if ids == 0 || ids > vocab_size {
            let reason = format!("its ids end below {ids}, and the model has {vocab_size}");
            return Err(refuse(&file, reason, to_do));
        }
        Ok(tokens)
    }

    /// The text of `tokenizer.json`.
    ///
    /// # Errors
    /// What the crate `tokenizers` reports.
    pub fn json(&self) -> Result<String> {
        self.0
            .to_string(true)
            .map_err(|e| refuse(Path::new("tokenizer.json"), e, "try another text"))
    }

    /// The ids of a text.
    ///
    /// # Errors
    /// What the crate `tokenizers` reports.
    pub fn encode(&self, text: &str) -> Result<Vec<usize>> {
        let refused = |e: &dyn std::fmt::Display| {
            refuse(Path::new("the text"), e, "try another text, or fetch tokenizer.json again")
        };
        let encoding = calm(|| self.0.encode_fast(text, false)).map_err(|e| refused(&e))?;
        let encoding = encoding.map_err(|e| refused(&e))?;
        Ok(encoding.get_ids().iter().map(|id| *id as usize).collect())
    }

    /// The text of ids. A letter that is not complete becomes a replacement character.
    ///
    /// # Errors
    /// What the crate `tokenizers` reports.
    pub fn decode(&self, ids: &[usize]) -> Result<String> {
        let ids: Vec<u32> = ids.iter().map(|id| *id as u32).collect();
        let refused = |e: &dyn std::fmt::Display| {
            refuse(Path::new("the text"), e, "try another prompt, or fetch tokenizer.json again")
        };
        calm(|| self.0.decode(&ids, false)).map_err(|e| refused(&e))?.map_err(|e| refused(&e))
    }

    /// Each id by itself, as a reader can see it: spaces as `␣`, and what is no whole letter as `�`.
    ///
    /// # Errors
    /// What the crate `tokenizers` reports.
    pub fn visible(&self, ids: &[usize]) -> Result<Vec<String>> {
        ids.iter().map(|id| Ok(visible(self.decode(&[*id])?.as_bytes()))).collect()
    }

    /// How many different tokens there are.
    pub fn len(&self) -> usize {
        self.0.get_vocab_size(true)
    }

    /// Logits `[v]` in which what is no token can't be drawn. A table may have more rows than there are tokens, as where it
    /// was padded to a round number, and a model has no reason to find such a row impossible.
    pub fn of_tokens(&self, mut logits: Vec<f32>) -> Vec<f32> {
        for (id, logit) in logits.iter_mut().enumerate() {
            if self.0.id_to_token(id as u32).is_none() {
                *logit = f32::NEG_INFINITY;
            }
        }
        logits
    }

    /// Whether there are none. It never is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The bytes of a file in JSON, without the mark that some editors put before the first letter.
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(bytes)
}

/// Runs the crate `tokenizers`, which panics over some settings that it has read without a complaint.
fn calm<T>(work: impl FnOnce() -> T) -> std::result::Result<T, &'static str> {
    caught(work).map_err(|_| "the crate tokenizers can't do what tokenizer.json asks for")
}

/// Whether a part of a tokenizer is a precompiled table. The crate trusts what stands in one: a broken one can ask for more
/// memory than there is, and that ends the process.
fn has_precompiled(json: &Value) -> bool {
    match json {
        Value::Object(part) => {
            part.get("type").is_some_and(|kind| kind == "Precompiled")
                || ["normalizer", "normalizers"]
                    .iter()
                    .any(|name| part.get(*name).is_some_and(has_precompiled))
        }
        Value::Array(parts) => parts.iter().any(has_precompiled),
        _ => false,
    }
}

/// How much longer the replacements in a part of a tokenizer can make a text, one after the other. One may match at each
/// byte, and between bytes too. A chain of long ones would ask for more memory than there is.
fn longer(json: &Value) -> usize {
    match json {
        Value::Object(part) => {
            let text = |name: &str| part.get(name).and_then(Value::as_str).map_or(0, str::len);
            let here = match part.get("type").and_then(Value::as_str) {
                Some("Replace") => 1 + text("content"),
                Some("Prepend") => 1 + text("prepend"),
                _ => 1,
            };
            part.values().map(longer).fold(here, usize::saturating_mul)
        }
        Value::Array(parts) => parts.iter().map(longer).fold(1, usize::saturating_mul),
        _ => 1,
    }
}

fn refuse(path: &Path, reason: impl std::fmt::Display, to_do: &'static str) -> Error {
    Error::Tokenizer { path: shown(path), reason: reason.to_string(), to_do }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    static TOKENS: LazyLock<Tokens> =
        LazyLock::new(|| Tokens::train(&"the norm of a token ".repeat(20), 270).unwrap());

    #[test]
    fn frequent_words_are_tokens() {
        assert_eq!(TOKENS.encode("norm").unwrap().len(), 2, "n, orm");
        assert!(TOKENS.len() <= 270);
    }

    #[test]
    fn the_same_text_gives_the_same_tokenizer() {
        let text = include_str!("../../../book/src/layernorm.md");
        let one = Tokens::train(text, 400).unwrap().json().unwrap();
        assert_eq!(one, Tokens::train(text, 400).unwrap().json().unwrap());
    }

    proptest! {
        #[test]
        fn decoding_gives_the_text_back(text in any::<String>()) {
            let ids = TOKENS.encode(&text).unwrap();
            prop_assert_eq!(TOKENS.decode(&ids).unwrap(), text);
        }
    }
}
