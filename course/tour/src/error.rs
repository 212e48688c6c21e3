//! Why the tour stops. Every message says what to do.

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the tour stops before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text of the tour can't be used.
    #[error("{0}; give another file after --text")]
    Text(notebook_support::Error),

    /// A text can't be used, or a figure can't be painted.
    #[error(transparent)]
    Support(#[from] notebook_support::Error),

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

    /// There is no workspace, or standard output can't be written.
    #[error(transparent)]
    Learner(#[from] learner::Error),

    /// A component refused. On checked input it should not: this is a bug.
    #[error("a component refused its input: {0}")]
    Component(#[from] quadrivium::Error),
}

impl Error {
    /// Wraps what a dfdx device reports.
    pub fn device<E: std::fmt::Display>(error: E) -> Self {
        quadrivium::Error::device(error).into()
    }
}
