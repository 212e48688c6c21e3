//! Why a command stops. Every message says what to do.

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a command stops before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text can't be read.
    #[error("can't read {name}: {reason}; give the path of a text file after --text")]
    Unreadable {
        /// The file.
        name: String,
        /// What the system says.
        reason: String,
    },

    /// The text is not UTF-8.
    #[error(
        "{name} is not UTF-8 text: byte {at} does not fit; convert it to UTF-8, \
         or give another file after --text"
    )]
    NotUtf8 {
        /// The file.
        name: String,
        /// The first byte that does not fit, counted from 0.
        at: usize,
    },

    /// Fewer than two tokens.
    #[error(
        "{name} is too short: the tour needs at least 2 tokens, because RoPE compares positions, \
         and this text has {tokens}; give a longer text after --text"
    )]
    TooShort {
        /// The file.
        name: String,
        /// Its number of tokens.
        tokens: usize,
    },

    /// The tokenizer gave up.
    #[error("the tokenizer can't read this text: {0}; give another file after --text")]
    Tokenizer(String),

    /// A figure can't be drawn or written.
    #[error(
        "can't write the figure {path}: {reason}; choose another folder with --out, \
         or use --no-figures"
    )]
    Figure {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },

    /// Standard output can't be written, and not because its reader has gone.
    #[error("can't write to standard output: {0}")]
    Output(#[from] std::io::Error),

    /// A component refused. On checked input it should not: this is a bug.
    #[error("a component refused its input: {0}")]
    Component(#[from] quadrivium::Error),
}

impl Error {
    /// Wraps what a dfdx device reports.
    pub(crate) fn device<E: std::fmt::Display>(error: E) -> Self {
        quadrivium::Error::device(error).into()
    }
}
