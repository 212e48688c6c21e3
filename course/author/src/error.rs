//! Why a command about the book or the notebooks stops. Every message says what to do.

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a command stops before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What the learner's half says: no workspace, no output.
    #[error(transparent)]
    Learner(#[from] learner::Error),

    /// A step of the tour, from which the book has numbers and figures.
    #[error(transparent)]
    Tour(#[from] tour::Error),

    /// A text can't be used, or a figure can't be painted.
    #[error(transparent)]
    Support(#[from] notebook_support::Error),

    /// Something can't be read or written, or a program can't be run.
    #[error("can't write to standard output: {0}")]
    Output(#[from] std::io::Error),

    /// A file of the workspace can't be read or written.
    #[error("can't use {file}: {reason}; check that it is there and yours, then try again")]
    File {
        /// The file, named from the workspace.
        file: String,
        /// What the system says.
        reason: String,
    },

    /// Jupyter or its kernel could not do its part.
    #[error("{what}: {reason}")]
    Program {
        /// What did not work.
        what: &'static str,
        /// What was said.
        reason: String,
    },

    /// The sources of the book are not in order.
    #[error(
        "the book can't be built\n\
         rule      everything in its pages is there, and every number is what the code gives\n\
         expected  no complaint\n\
         got       {}\n\
         to do     fix the pages in book/src, then build again", .0.join("\n          ")
    )]
    Book(Vec<String>),

    /// More questions than there are.
    #[error(
        "an exam can't have {count} {what}: there are {there}; ask for fewer, or name more components"
    )]
    TooManyQuestions {
        /// Of which kind.
        what: &'static str,
        /// How many were asked for.
        count: usize,
        /// How many there are.
        there: usize,
    },

    /// A folder that a site can't be put into.
    #[error(
        "the book can't be written to {folder}\n\
         rule      --build needs a folder that is new, empty, or holds a book already, and that can \
         be written\n\
         expected  such a folder\n\
         got       {folder}: {reason}\n\
         to do     name another folder after --build"
    )]
    Site {
        /// The folder.
        folder: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The book or the notebooks can't be served.
    #[error(
        "nothing can be served on port {port}\n\
         rule      a port can be used by one program at a time\n\
         expected  a free port\n\
         got       {reason}\n\
         to do     leave out --port, and a free port is found"
    )]
    Serve {
        /// The port.
        port: u16,
        /// What the system says.
        reason: String,
    },

    /// The book or the notebooks can't be served at this address.
    #[error(
        "nothing can be served at \"{host}\"\n\
         rule      --host needs an address of this machine, or a name for one\n\
         expected  127.0.0.1 for this machine alone, 0.0.0.0 for all who can reach it, or one of its own addresses\n\
         got       \"{host}\": {reason}\n\
         to do     correct --host; without it, only this machine reaches what is served"
    )]
    Host {
        /// The address or the name.
        host: String,
        /// What the system says.
        reason: String,
    },

    /// What the notebooks need is missing, one line for each.
    #[error("the notebooks can't be opened yet\n{}", .0.join("\n"))]
    Missing(Vec<String>),

    /// No notebook has this name.
    #[error(
        "no notebook is called \"{got}\"\n\
         rule      a notebook is named by its file or by its subject\n\
         expected  {known}\n\
         got       {got}\n\
         to do     name one of them, or none for all"
    )]
    UnknownNotebook {
        /// What was asked for.
        got: String,
        /// What there is.
        known: String,
    },

    /// A component that can't be written. Nothing was.
    #[error(
        "the component can't be written, so nothing was\n\
         rule      {rule}\n\
         expected  {expected}\n\
         got       {got}\n\
         to do     {to_do}"
    )]
    Component {
        /// The rule, in words.
        rule: String,
        /// What it asks for.
        expected: String,
        /// What there is.
        got: String,
        /// What to do.
        to_do: String,
    },

    /// A component was written in part, and the rest can't be taken back.
    #[error(
        "{reason}, and not all that was written could be taken back; look at `git status`: {left}"
    )]
    HalfWritten {
        /// Why it stopped.
        reason: String,
        /// What is left, by name.
        left: String,
    },

    /// A component refused. On checked input it should not: this is a bug.
    #[error("a component refused its input: {0}")]
    Refused(#[from] quadrivium::Error),
}

impl Error {
    /// Wraps what a dfdx device reports.
    pub(crate) fn device<E: std::fmt::Display>(error: E) -> Self {
        quadrivium::Error::device(error).into()
    }
}
