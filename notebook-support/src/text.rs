//! Reads the text and turns it into token ids.
//!
//! The tokenizer is cl100k_base, a byte-pair vocabulary whose ids end at 100,276. Special tokens
//! are not recognised: `<|endoftext|>` in a file is plain text here, because a file is not trusted.

use crate::error::{Error, Result};
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

/// The number of ids of cl100k_base: the largest id is 100,276.
pub const TOKENIZER_IDS: usize = 100_277;

/// At most this many tokens are used, so that all stays quick.
pub const MAX_TOKENS: usize = 4096;

/// At most this much of a file is read. The longest token of cl100k_base has 128 bytes, so
/// [`MAX_TOKENS`] tokens never need more.
pub const MAX_BYTES: usize = MAX_TOKENS * 128;

/// A text and what to call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// What to call it in messages.
    pub name: String,
    /// The text.
    pub content: String,
    /// Whether the file is longer than [`MAX_BYTES`], and the rest was not read.
    pub cut: bool,
}

impl Text {
    /// The Apache licence of this course: English prose that does not change, for figures that must
    /// not either.
    pub fn licence() -> Self {
        let content = include_str!("../../LICENSE-APACHE").into();
        Self { name: "the course's licence".into(), content, cut: false }
    }

    /// The beginning of a file, at most [`MAX_BYTES`].
    ///
    /// # Errors
    /// A file that can't be read or is not UTF-8; a pipe or a device.
    pub fn read(path: &Path) -> Result<Self> {
        let name = printable(&path.display().to_string());
        let unreadable =
            |e: std::io::Error| Error::Unreadable { name: name.clone(), reason: e.to_string() };
        let about = std::fs::metadata(path).map_err(unreadable)?;
        if !about.is_file() && !about.is_dir() {
            let reason = "it is a pipe or a device, which may have no end, and a file was expected";
            return Err(unreadable(std::io::Error::other(reason)));
        }
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        // One byte more than is used, to know whether there is more.
        file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        let cut = bytes.len() > MAX_BYTES;
        bytes.truncate(MAX_BYTES);
        let content = match String::from_utf8(bytes) {
            Ok(content) => content,
            Err(error) => {
                let (at, cut_letter) =
                    (error.utf8_error().valid_up_to(), error.utf8_error().error_len().is_none());
                if !(cut && cut_letter) {
                    return Err(Error::NotUtf8 { name, at });
                }
                // The cut went through a letter: it is not part of the text.
                let mut bytes = error.into_bytes();
                bytes.truncate(at);
                String::from_utf8(bytes).map_err(|_| Error::NotUtf8 { name: name.clone(), at })?
            }
        };
        Ok(Self { name, content, cut })
    }
}

/// The tokens of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// Ids, each below [`TOKENIZER_IDS`], at most [`MAX_TOKENS`].
    pub ids: Vec<usize>,
    /// The bytes of each token, which together are the text. A token may be part of a letter.
    pub pieces: Vec<Vec<u8>>,
    /// Tokens that were read but are not used.
    pub dropped: usize,
}

/// Splits a text into tokens.
///
/// # Errors
/// Fewer than 2 tokens; a text that the tokenizer gives up on.
pub fn tokenize(text: &Text) -> Result<Tokens> {
    let bpe = tiktoken_rs::cl100k_base().map_err(|e| Error::Tokenizer(e.to_string()))?;
    // `encode` reports an error where `encode_ordinary` panics: on runs of white space that
    // are too long for its regular expression.
    let (mut ranks, _) =
        bpe.encode(&text.content, &HashSet::new()).map_err(|e| Error::Tokenizer(e.to_string()))?;
    if ranks.len() < 2 {
        return Err(Error::TooShort { name: text.name.clone(), tokens: ranks.len() });
    }
    let dropped = ranks.len().saturating_sub(MAX_TOKENS);
    ranks.truncate(MAX_TOKENS);
    let pieces = (ranks.iter().map(|&rank| bpe.decode_bytes(&[rank])))
        .collect::<std::result::Result<_, _>>()
        .map_err(|e| Error::Tokenizer(e.to_string()))?;
    let ids = ranks.iter().map(|&rank| rank as usize).collect();
    Ok(Tokens { ids, pieces, dropped })
}

/// The text with control characters written out, so that a file can't steer the terminal.
pub fn printable(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\'' | '"' | '\\' => out.push(c),
            _ => out.extend(c.escape_debug()),
        }
    }
    out
}

/// A token as a reader can see it: spaces as `␣`, part of a letter as its bytes, at most 20
/// characters.
pub fn visible(piece: &[u8]) -> String {
    let shown = match std::str::from_utf8(piece) {
        Ok(text) => printable(text).replace(' ', "␣"),
        Err(_) => piece.iter().map(|byte| format!("\\x{byte:02X}")).collect(),
    };
    console::truncate_str(&shown, 20, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &str) -> Text {
        Text { name: "a test".into(), content: content.into(), cut: false }
    }

    #[test]
    fn known_ids() {
        // As OpenAI's own tiktoken gives them.
        let tokens = tokenize(&text("hello world")).unwrap();
        assert_eq!(tokens.ids, [15339, 1917]);
        assert_eq!(tokens.pieces, [&b"hello"[..], b" world"]);
    }

    #[test]
    fn special_tokens_are_plain_text() {
        assert!(tokenize(&text("<|endoftext|>")).unwrap().ids.len() > 1);
    }

    #[test]
    fn pieces_make_the_text() {
        let licence = Text::licence();
        let tokens = tokenize(&licence).unwrap();
        assert!(licence.content.as_bytes().starts_with(&tokens.pieces.concat()));
        assert!(tokens.ids.iter().all(|&id| id < TOKENIZER_IDS));
    }

    #[test]
    fn too_short_is_an_error() {
        for content in ["", "a"] {
            assert!(matches!(tokenize(&text(content)), Err(Error::TooShort { .. })));
        }
    }

    #[test]
    fn tokens_can_be_seen() {
        assert_eq!(visible(b" the"), "␣the");
        assert_eq!(visible(&[0xE6, 0x98]), "\\xE6\\x98");
        assert_eq!(visible(&[b' '; 128]).chars().count(), 20);
    }

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(printable("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
    }
}
