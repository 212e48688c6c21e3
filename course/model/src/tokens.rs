//! Tokens: byte-pair encoding over bytes, trained on the training part of the text.

use crate::error::{Error, Result, shown};
use crate::guard::caught;
use notebook_support::text::visible;
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

/// The most bytes of `tokenizer.json`. Those in use have some megabytes.
const FILE: u64 = 1 << 28;
/// The crate keeps some hundred bytes for each byte of a text that it cuts, so it gets a long text in pieces of about this
/// many bytes.
const PIECE: usize = 1 << 16;
/// The most bytes of a text for a tokenizer of another kind than [`Tokens::train`] makes: it takes a text in at once.
const AT_ONCE: usize = 1 << 23;

/// A tokenizer, as `tokenizer.json` describes it.
#[derive(Debug, Clone)]
pub struct Tokens {
    tokenizer: Tokenizer,
    /// Whether the tokens of [`pieces`], one after the other, are those of the text.
    in_pieces: bool,
}

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
            .train(&mut TrainerWrapper::from(trainer), pieces(text, PIECE))
            .map_err(|e| refuse(Path::new("the text"), e, "try another text"))?;
        Ok(Self { tokenizer, in_pieces: true })
    }

    /// The tokenizer in a folder.
    ///
    /// # Errors
    /// A `tokenizer.json` that is missing or broken; one with ids that the vocabulary of the model does not have.
    pub fn load(folder: &Path, vocab_size: usize) -> Result<Self> {
        let file = folder.join("tokenizer.json");
        let to_do = "fetch it again, with the model that it belongs to";
        let bytes = learner::read::whole(&file, FILE).map_err(|e| refuse(&file, e, to_do))?;
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
        let in_pieces = is_cut_at_spaces(&json);
        let tokens = Self { tokenizer, in_pieces };
        let ids =
            tokens.tokenizer.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1);
        if ids == 0 {
            return Err(refuse(&file, "it has no tokens", to_do));
        }
        if ids > vocab_size {
            let reason = format!(
                "it has ids up to {}, and the model's table {vocab_size} rows, for the ids from 0 to {}",
                ids - 1,
                vocab_size - 1
            );
            return Err(refuse(&file, reason, to_do));
        }
        Ok(tokens)
    }

    /// The text of `tokenizer.json`.
    ///
    /// # Errors
    /// What the crate `tokenizers` reports.
    pub fn json(&self) -> Result<String> {
        self.tokenizer
            .to_string(true)
            .map_err(|e| refuse(Path::new("tokenizer.json"), e, "try another text"))
    }

    /// The ids of a text.
    ///
    /// # Errors
    /// What the crate `tokenizers` reports; more than 8 MB for a tokenizer of another kind than [`Tokens::train`] makes.
    pub fn encode(&self, text: &str) -> Result<Vec<usize>> {
        let refused = |e: &dyn std::fmt::Display| {
            refuse(Path::new("the text"), e, "try another text, or fetch tokenizer.json again")
        };
        self.check_length(text)?;
        let mut ids = Vec::new();
        for piece in pieces(text, if self.in_pieces { PIECE } else { AT_ONCE }) {
            let encoding = calm(|| self.tokenizer.encode_fast(piece, false));
            let encoding = encoding.map_err(|e| refused(&e))?.map_err(|e| refused(&e))?;
            ids.extend(encoding.get_ids().iter().map(|id| *id as usize));
        }
        Ok(ids)
    }

    /// The ids of a prompt: those of its text, with the tokens that its model was trained to see before and behind a text, if
    /// tokenizer.json has such.
    ///
    /// # Errors
    /// As for [`Tokens::encode`].
    pub fn prompt(&self, text: &str) -> Result<Vec<usize>> {
        if self.in_pieces || text.is_empty() {
            return self.encode(text);
        }
        self.check_length(text)?;
        let refused = |e: &dyn std::fmt::Display| {
            refuse(Path::new("the text"), e, "try another text, or fetch tokenizer.json again")
        };
        let encoding = calm(|| self.tokenizer.encode_fast(text, true));
        let encoding = encoding.map_err(|e| refused(&e))?.map_err(|e| refused(&e))?;
        Ok(encoding.get_ids().iter().map(|id| *id as usize).collect())
    }

    fn check_length(&self, text: &str) -> Result<()> {
        if self.in_pieces || text.len() <= AT_ONCE {
            return Ok(());
        }
        let reason = format!(
            "it is not of the kind that `cargo course model train` makes, so it gets {AT_ONCE} bytes at most, and the text has {}",
            text.len()
        );
        Err(refuse(Path::new("tokenizer.json"), reason, "name a shorter text"))
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
        calm(|| self.tokenizer.decode(&ids, false))
            .map_err(|e| refused(&e))?
            .map_err(|e| refused(&e))
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
        self.tokenizer.get_vocab_size(true)
    }

    /// Logits `[v]` in which what is no token can't be drawn. A table may have more rows than there are tokens, as where it
    /// was padded to a round number, and a model has no reason to find such a row impossible.
    pub fn of_tokens(&self, mut logits: Vec<f32>) -> Vec<f32> {
        for (id, logit) in logits.iter_mut().enumerate() {
            if self.tokenizer.id_to_token(id as u32).is_none() {
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

/// A text in pieces of at least `least` bytes, except for the last one. Each begins with the space after a word, where
/// GPT-2's pattern always ends a token, and which it never looks back over. The tokens of the pieces are therefore
/// those of the text.
pub(crate) fn pieces(text: &str, least: usize) -> impl Iterator<Item = &str> + Send {
    let mut rest = text;
    std::iter::from_fn(move || {
        let from = rest.ceil_char_boundary(least.max(1));
        let mut before = rest[..from].chars().next_back();
        let ends = |letter: char| {
            let word = before.replace(letter).is_some_and(|before| !before.is_whitespace());
            word && letter.is_whitespace()
        };
        let end = rest[from..].find(ends).map_or(rest.len(), |end| from + end);
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Whether a tokenizer cuts a text as [`Tokens::train`] lets it, and knows no tokens that could reach over a space.
fn is_cut_at_spaces(json: &Value) -> bool {
    let of = |name: &str| json.pointer(name).unwrap_or(&Value::Null);
    let pattern = ["/type", "/add_prefix_space", "/use_regex"]
        .map(|name| of(&format!("/pre_tokenizer{name}")).clone());
    of("/normalizer").is_null()
        && pattern == [Value::from("ByteLevel"), Value::from(false), Value::from(true)]
        && of("/added_tokens").as_array().is_none_or(Vec::is_empty)
        && (of("/post_processor").is_null() || of("/post_processor/type") == "ByteLevel")
}

/// The bytes of a file in JSON, without the mark that some editors put before the first letter.
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(bytes)
}

/// Runs the crate `tokenizers`, which panics over some settings that it has read without a complaint.
fn calm<T>(work: impl FnOnce() -> T) -> std::result::Result<T, &'static str> {
    caught(work).map_err(|_| "the crate tokenizers can't do what tokenizer.json asks for")
}

/// Whether a part of a tokenizer is a precompiled table. The crate trusts what is in one: a broken one can ask for more
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

    #[test]
    fn a_text_in_pieces_gives_the_tokenizer_that_it_gives_at_once() {
        let text = include_str!("../../../book/src/layernorm.md").repeat(PIECE / 5000);
        assert!(pieces(&text, PIECE).count() > 1);
        let tokens = Tokens::train(&text, 400).unwrap();
        let mut at_once = tokens.tokenizer.clone();
        let trainer = BpeTrainerBuilder::new()
            .vocab_size(400)
            .min_frequency(2)
            .max_token_length(Some(LONGEST))
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .show_progress(false)
            .build();
        at_once.train(&mut TrainerWrapper::from(trainer), [&text].into_iter()).unwrap();
        assert_eq!(tokens.json().unwrap(), at_once.to_string(true).unwrap());
        let ids = at_once.encode_fast(text.as_str(), false).unwrap();
        let ids: Vec<usize> = ids.get_ids().iter().map(|id| *id as usize).collect();
        assert!(tokens.encode(&text).unwrap() == ids);
    }

    #[test]
    fn a_tokenizer_of_another_kind_gets_a_text_at_once() {
        let json = |change: &dyn Fn(&mut Value)| {
            let mut json = serde_json::from_str(&TOKENS.json().unwrap()).unwrap();
            change(&mut json);
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
            Tokens::load(folder.path(), 512).unwrap()
        };
        assert!(json(&|_| ()).in_pieces);
        let others: [&dyn Fn(&mut Value); 4] = [
            &|json| json["pre_tokenizer"]["add_prefix_space"] = true.into(),
            &|json| json["pre_tokenizer"]["use_regex"] = false.into(),
            &|json| json["pre_tokenizer"] = Value::Null,
            &|json| json["normalizer"] = serde_json::json!({ "type": "Lowercase" }),
        ];
        for change in others {
            let tokens = json(change);
            assert!(!tokens.in_pieces);
            let error = tokens.encode(&" ".repeat(AT_ONCE + 1)).unwrap_err().to_string();
            assert!(error.contains("8388608 bytes at most, and the text has 8388609"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn pieces_have_the_tokens_of_the_text(
            text in "([a-zé']{1,4}|[0-9.!]{1,3}|[ \n\t\u{a0}\u{2003}]{1,3}){0,40}",
            least in 0usize..20,
        ) {
            let whole = TOKENS.tokenizer.encode_fast(text.as_str(), false).unwrap();
            let mut ids = Vec::new();
            for piece in pieces(&text, least) {
                ids.extend_from_slice(TOKENS.tokenizer.encode_fast(piece, false).unwrap().get_ids());
            }
            prop_assert_eq!(pieces(&text, least).collect::<String>(), text.clone());
            prop_assert_eq!(ids.as_slice(), whole.get_ids());
        }

        #[test]
        fn decoding_gives_the_text_back(text in any::<String>()) {
            let ids = TOKENS.encode(&text).unwrap();
            prop_assert_eq!(TOKENS.decode(&ids).unwrap(), text);
        }
    }
}
