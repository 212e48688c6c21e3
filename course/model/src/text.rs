//! The text: where it comes from, and which part of it is held out.

use crate::error::{Error, Result, shown};
use crate::tokens::pieces;
use std::path::PathBuf;

/// Ten pages of the course's own book, one after the other, which are trained on if no other text is named. They are a
/// copy: a page that is written again changes no loss that was measured.
const BOOK: &str = include_str!("book.txt");

/// Of this many blocks, the last one is held out.
const HELD_OUT: usize = 10;
/// Bytes of a block, of a long text. A shorter one has [`BLOCKS`].
const BLOCK: usize = 4096;
/// Blocks that a text has at least.
const BLOCKS: usize = 40;
/// The most bytes of a text: see [`Text::read`].
const LONGEST: u64 = 100_000_000;
/// The most bytes of a word with the spaces before it. The tokenizer takes them in at once, and needs a hundred times as much
/// memory for it.
const UNSPACED: usize = 1 << 20;

/// A text and what to call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// What to call it in messages.
    pub name: String,
    /// The text.
    pub content: String,
}

impl Text {
    /// The course's own book.
    pub fn book() -> Self {
        Self { name: "the course's own book, 10 pages".into(), content: BOOK.into() }
    }

    /// Files, one after the other; the book if none is named.
    ///
    /// # Errors
    /// A file that can't be read or is not UTF-8; a pipe or a device; more than 100 MB in all.
    pub fn read(files: &[PathBuf]) -> Result<Self> {
        if files.is_empty() {
            return Ok(Self::book());
        }
        let mut content = String::new();
        let name = files.iter().map(|file| shown(file)).collect::<Vec<_>>().join(", ");
        for (nth, file) in files.iter().enumerate() {
            let path = shown(file);
            let bytes = learner::read::whole(file, LONGEST)
                .map_err(|e| Error::Unreadable { path: path.clone(), reason: e.to_string() })?;
            let text =
                str::from_utf8(&bytes).map_err(|e| Error::NotUtf8 { path, at: e.valid_up_to() })?;
            if nth > 0 {
                content.push('\n');
            }
            content.push_str(text);
            if content.len() as u64 > LONGEST {
                let rule = format!("all texts together have at most {LONGEST} bytes");
                return Err(Error::Text { name, rule, got: "more".into() });
            }
        }
        Ok(Self { name, content })
    }

    /// The part that is trained on, and the part that is held out: every tenth block. Blocks end at the end of a line,
    /// where there is one.
    pub fn split(&self) -> (String, String) {
        let (mut trained, mut held_out) = (String::new(), String::new());
        let least = (self.content.len() / BLOCKS).clamp(1, BLOCK);
        let mut rest = self.content.as_str();
        for nth in 1.. {
            if rest.is_empty() {
                break;
            }
            let (block, behind) = rest.split_at(end_of_block(rest, least));
            let part = if nth % HELD_OUT == 0 { &mut held_out } else { &mut trained };
            part.push_str(block);
            rest = behind;
        }
        (trained, held_out)
    }

    /// A text of which nothing can be learned is refused before anything is computed.
    ///
    /// # Errors
    /// An empty text, or one that repeats a single letter; a megabyte without a space.
    pub fn check(&self) -> Result<()> {
        let name = || self.name.clone();
        let words = pieces(&self.content, 1).map(str::len);
        if let Some(got) = words.max().filter(|bytes| *bytes > UNSPACED) {
            let rule = format!("a word with the spaces before it has at most {UNSPACED} bytes");
            return Err(Error::Text { name: name(), rule, got: got.to_string() });
        }
        let refused = |got: &str| Error::Text {
            name: name(),
            rule: "a text has at least 2 different letters".into(),
            got: got.into(),
        };
        let mut letters = self.content.chars();
        match letters.next() {
            None => Err(refused("an empty text")),
            Some(first) if letters.all(|letter| letter == first) => {
                Err(refused(&format!("{first:?} alone")))
            }
            Some(_) => Ok(()),
        }
    }
}

/// After the first end of a line from `least` on; in a long line, `2 least` or a little more.
fn end_of_block(text: &str, least: usize) -> usize {
    let most = (2 * least).min(text.len());
    let bytes = &text.as_bytes()[least.min(text.len())..most];
    if let Some(line) = bytes.iter().position(|byte| *byte == b'\n') {
        return least + line + 1;
    }
    (most..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(content: &str) -> Text {
        Text { name: "a test".into(), content: content.into() }
    }

    #[test]
    fn a_tenth_is_held_out() {
        let (trained, held_out) = Text::book().split();
        let part = held_out.len() as f64 / (trained.len() + held_out.len()) as f64;
        // A block is at least 4096 bytes and ends with its line: no line of the book is as long as that.
        assert!((0.08..0.12).contains(&part), "{part}");
        assert!(held_out.ends_with('\n'));
    }

    #[test]
    fn blocks_end_with_lines() {
        let lines: String = (0..200).map(|line| format!("line {line}\n")).collect();
        let (trained, held_out) = text(&lines).split();
        let mut all: Vec<&str> = trained.lines().chain(held_out.lines()).collect();
        assert_eq!(all.len(), 200, "no line is cut");
        all.sort_by_key(|line| line[5..].parse::<usize>().unwrap());
        assert!(all.iter().enumerate().all(|(n, line)| **line == format!("line {n}")));
    }

    #[test]
    fn texts_without_anything_to_learn() {
        for content in ["", "a", "aaaa", "ééé"] {
            assert!(text(content).check().is_err(), "{content}");
        }
        text("ab").check().unwrap();
    }

    #[test]
    fn a_text_without_spaces() {
        let words = |letters: usize| text(&format!("a {}\nb", "ab".repeat(letters / 2)));
        words(UNSPACED - 2).check().unwrap();
        let error = words(UNSPACED).check().unwrap_err().to_string();
        assert!(error.contains("got 1048577;"), "{error}");
    }

    proptest! {
        #[test]
        fn nothing_is_lost(content in "[aé名\n ]{0,300}") {
            let (trained, held_out) = text(&content).split();
            prop_assert_eq!(trained.len() + held_out.len(), content.len());
        }
    }
}
