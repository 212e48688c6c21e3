//! Why a command stops. Every message says what to do.

use crate::compile_error::CompileError;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a command stops before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Standard output can't be written, and not because its reader has gone.
    #[error("can't write to standard output: {0}")]
    Output(#[from] std::io::Error),

    /// No task has this name.
    #[error(
        "no task is called \"{got}\"\n\
         rule      a task is named by its number or its name, several by their component\n\
         expected  {known}\n\
         got       {got}\n\
         to do     {to_do}"
    )]
    UnknownTask {
        /// What was asked for.
        got: String,
        /// What there is.
        known: String,
        /// The nearest name, or where names are seen.
        to_do: String,
    },

    /// A component where one task is needed.
    #[error(
        "\"{got}\" names several tasks, and this command is about one\n\
         rule      one task is named by its number or its name\n\
         expected  a number from {first} to {last}\n\
         got       {got}\n\
         to do     name one of them, such as {first}"
    )]
    SeveralTasks {
        /// What was asked for.
        got: String,
        /// The first of the tasks.
        first: &'static str,
        /// The last of them.
        last: &'static str,
    },

    /// The grades can't be written.
    #[error(
        "the grades can't be written, so nothing was graded\n\
         rule      --json needs a file that can be written\n\
         expected  a file in a folder that exists\n\
         got       {path}: {reason}\n\
         to do     name another file after --json, or make its folder first"
    )]
    Json {
        /// The file.
        path: String,
        /// What the system says.
        reason: String,
    },

    /// A file was saved while it was graded, so the grades would be those of another text.
    #[error("a file was saved in the meantime; grade again")]
    Saved,

    /// The learner's code does not compile.
    #[error("{0}")]
    DoesNotCompile(Box<CompileError>),

    /// A task's place in a file is not marked, or the file can't be read.
    #[error(
        "task {name} has no place in {file}\n\
         rule      a task stands between `// task {name}: begin` and `// task {name}: end`\n\
         expected  each of the two lines once\n\
         got       {problem}\n\
         to do     put it right, or start the whole file again: `cargo course reset \
         {component}` (it keeps a copy of yours)"
    )]
    Markers {
        /// The file.
        file: String,
        /// The task.
        name: String,
        /// What is wrong.
        problem: String,
        /// The component that the file is for.
        component: String,
    },

    /// A file of the workspace can't be read or written.
    #[error("can't use {file}: {reason}; check that it is there and yours, then try again")]
    File {
        /// The file, named from the workspace.
        file: String,
        /// What the system says.
        reason: String,
    },

    /// Nothing says where the course is.
    #[error(
        "the course is not found from here\n\
         rule      a program of the course works on the copy that cargo runs it in, or that the current folder is in\n\
         expected  the folder that you cloned, or one inside it\n\
         got       a program that was started from somewhere else, without cargo\n\
         to do     run `cargo course` in that folder, or name the folder in QUADRIVIUM_ROOT"
    )]
    NoWorkspace,

    /// The folder of the course has no exercises, or is not there any more.
    #[error(
        "there are no exercises in {root}\n\
         rule      a program works on the copy of the course that it was started in, or that QUADRIVIUM_ROOT names\n\
         expected  a folder with exercises/src in it\n\
         got       {reason}\n\
         to do     if the folder has moved, run `cargo course` where it is now; if QUADRIVIUM_ROOT is set, correct it"
    )]
    NoExercises {
        /// The folder.
        root: String,
        /// What the system says.
        reason: String,
    },

    /// Cargo, or the autograder, could not do its part.
    #[error("{what}: {reason}")]
    Program {
        /// What did not work.
        what: &'static str,
        /// What was said.
        reason: String,
    },
}
