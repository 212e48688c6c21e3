//! What rustc says, as `--error-format=json` writes it on a line.

use serde::Deserialize;

/// A message.
#[derive(Debug, Deserialize)]
pub struct Message {
    /// `error`, `warning`, `note` ..
    pub level: String,
    /// Its words.
    pub message: String,
    /// Its number, such as E0080.
    pub code: Option<Code>,
    /// All of it as a terminal shows it.
    pub rendered: Option<String>,
    /// The places that it is about.
    pub spans: Vec<Span>,
    /// Its notes.
    pub children: Vec<Message>,
}

/// The number of a message.
#[derive(Debug, Deserialize)]
pub struct Code {
    /// Such as E0080.
    pub code: String,
}

/// A place in a file.
#[derive(Debug, Deserialize)]
pub struct Span {
    /// As it was given to the compiler.
    pub file_name: String,
    /// Counted from 1.
    pub line_start: usize,
    /// Counted from 1.
    pub column_start: usize,
    /// Whether it is what the message is about.
    pub is_primary: bool,
}
