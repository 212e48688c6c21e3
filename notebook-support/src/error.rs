//! Why a text or a figure can't be had.

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a text or a figure can't be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text can't be read.
    #[error("can't read {name}: {reason}; a text file is needed")]
    Unreadable {
        /// The file.
        name: String,
        /// What the system says.
        reason: String,
    },

    /// The text is not UTF-8.
    #[error("{name} is not UTF-8 text: byte {at} does not fit; convert it to UTF-8")]
    NotUtf8 {
        /// The file.
        name: String,
        /// The first byte that does not fit, counted from 0.
        at: usize,
    },

    /// Fewer than two tokens.
    #[error(
        "{name} is too short: at least 2 tokens are needed, because RoPE compares positions, and \
         this text has {tokens}"
    )]
    TooShort {
        /// The file.
        name: String,
        /// Its number of tokens.
        tokens: usize,
    },

    /// Too few letters to train on.
    #[error(
        "the text can't be trained on: at least {least} letters are needed, got {letters}; take a longer text"
    )]
    ShortText {
        /// The fewest.
        least: usize,
        /// What there is.
        letters: usize,
    },

    /// The tokenizer gave up.
    #[error("the tokenizer can't read this text: {0}")]
    Tokenizer(String),

    /// A figure can't be painted.
    #[error("the figure can't be painted: {0}")]
    Figure(String),

    /// A component refused its input.
    #[error(transparent)]
    Component(#[from] quadrivium::Error),
}
