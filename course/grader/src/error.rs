//! What ends the command.

use std::path::PathBuf;

/// A result of the command.
pub type Result<T> = std::result::Result<T, Error>;

/// Why it ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Arguments, or a file that they name.
    #[error("{what}\nexpected  {expected}\ngot       {got}\nto do     {to_do}")]
    Argument {
        /// The rule.
        what: String,
        /// What was expected.
        expected: String,
        /// What came.
        got: String,
        /// What to do.
        to_do: String,
    },
    /// Another program.
    #[error("{what}\n{reason}")]
    Program {
        /// What it did not do.
        what: &'static str,
        /// Its own words.
        reason: String,
    },
    /// A file or folder.
    #[error("{path} {what}: {reason}", path = .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What could not be done.
        what: &'static str,
        /// Why.
        reason: std::io::Error,
    },
    /// What failed may be the machine's fault, or it comes to something else each time. That is never a grade.
    #[error("{0}")]
    Machine(String),
    /// The sandbox does not hold.
    #[error("{what}\ngot       {got}\nto do     {to_do}")]
    Sandbox {
        /// The rule.
        what: &'static str,
        /// What came.
        got: String,
        /// What to do.
        to_do: &'static str,
    },
    /// The course itself.
    #[error(transparent)]
    Course(#[from] learner::error::Error),
}

impl Error {
    /// A file or folder, and what could not be done with it.
    pub fn file(
        path: impl Into<PathBuf>,
        what: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |reason| Self::File { path, what, reason }
    }
}
