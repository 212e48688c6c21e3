//! Why a command stops. Every message says what to do.

use quadrivium::checkpoint::{CheckpointProblem, SizeDiffers};
use std::fmt;
use std::path::Path;

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a command stops before its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text file that can't be read.
    #[error("can't read {path}: {reason}; name a text file after --text")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        reason: String,
    },

    /// A file that is no text.
    #[error(
        "{path} is not UTF-8: byte {at} is not part of any letter; name a text file after --text"
    )]
    NotUtf8 {
        /// The file.
        path: String,
        /// The first byte that is wrong.
        at: usize,
    },

    /// A text that is too small or too large.
    #[error("{name} can't be used: {rule}, got {got}; name another text after --text")]
    Text {
        /// What the text is called.
        name: String,
        /// The rule, in words.
        rule: String,
        /// What there is.
        got: String,
    },

    /// The tokenizer refused.
    #[error("{path}: the tokenizer can't be used: {reason}; {to_do}")]
    Tokenizer {
        /// Its file.
        path: String,
        /// What is wrong.
        reason: String,
        /// What to do.
        to_do: &'static str,
    },

    /// A prompt without a token.
    #[error(
        "the prompt is empty: a model goes on from at least 1 token; give some words after --prompt"
    )]
    Prompt,

    /// A prompt of too few or too many tokens for maps.
    #[error(
        "the prompt has {tokens} token{}: heads are shown on {least} to {most}; give a {} one after --prompt",
        if *tokens == 1 { "" } else { "s" },
        if tokens < least { "longer" } else { "shorter" }
    )]
    PromptLength {
        /// Its tokens.
        tokens: usize,
        /// The fewest.
        least: usize,
        /// The most: the positions of the model, or what maps have room for.
        most: usize,
    },

    /// An encoding without a model: its name was added to the list alone.
    #[error(
        "no model is made with {name}: its name is in course/src/arguments/long.rs, and a line is missing in the \
         `match` of course/model/src/long/encodings.rs"
    )]
    Encoding {
        /// The encoding.
        name: String,
    },

    /// A folder or a file that can't be written.
    #[error("can't write {path}: {reason}; choose another folder with --out")]
    Write {
        /// The file or the folder.
        path: String,
        /// What the system says.
        reason: String,
    },

    /// A file in a checkpoint's folder that no run wrote.
    #[error("{path}: no run wrote it, so --fresh does not remove it; move it to another folder")]
    NotOurs {
        /// The file.
        path: String,
    },

    /// A folder for a run, with a model in it that is no run's.
    #[error(
        "{path} holds a model itself, and anyone who reads {path} gets that one and not the run's; choose another folder with --out"
    )]
    HoldsModel {
        /// The folder.
        path: String,
    },

    /// A folder without a model in it.
    #[error(
        "there is no model in {path}: a folder of a run, or one with config.json, model.safetensors and \
         tokenizer.json, was expected; train one with `cargo course model train`, or name another folder"
    )]
    NoModel {
        /// The folder.
        path: String,
    },

    /// A checkpoint of a run that can't go on.
    #[error(
        "{path}: {reason}; put the folder back as it was, or begin again with --fresh, which replaces it"
    )]
    Broken {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A model that is not the one that its run wrote.
    #[error(
        "{path}: {reason}; put the folder back as it was, or remove {training} from it, if the model is not meant to \
         be that run's"
    )]
    Changed {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
        /// The file that says what the run wrote.
        training: &'static str,
    },

    /// A model that sees fewer tokens at once than it is asked about.
    #[error(
        "`max_position_embeddings` is {positions} in the model's config.json, but it would have to read {needed} \
         tokens at once; choose a model with at least as many positions"
    )]
    Positions {
        /// Those of the model.
        positions: usize,
        /// Those that are asked about.
        needed: usize,
    },

    /// A model of another size than those that there are types for.
    #[error(
        "{path}: this command uses models of the sizes that it trains, and here {differences}; a program of your own \
         can load it, with the type of its size"
    )]
    OtherSize {
        /// The file.
        path: String,
        /// Each size that differs.
        differences: String,
    },

    /// A run with other settings is in the folder.
    #[error(
        "{path} holds a run with different settings: {differences}; give the same ones to go on, name another \
         folder with --out, or begin again with --fresh, which replaces it"
    )]
    OtherRun {
        /// The folder.
        path: String,
        /// Each setting that differs.
        differences: String,
    },

    /// A folder in which another process trains.
    #[error(
        "{path} is in use: another `cargo course model train` writes there; wait for it, or name another folder \
         with --out"
    )]
    InUse {
        /// The folder.
        path: String,
    },

    /// A task that is not solved yet.
    #[error(
        "your code is not complete: this needs task {task}, which is still a todo!(); solve it \
         (`cargo course check {task}` grades it), then try again"
    )]
    Unsolved {
        /// The task.
        task: String,
    },

    /// A program that was built without the learner's parts.
    #[error(
        "this program was built without your code; `cargo course model` builds it with yours, if --mine is asked for"
    )]
    WithoutMine,

    /// No text is named, and the book is not what the model learned.
    #[error(
        "{path} did not learn from the course's own book: name its text with --text, or another one to measure it on"
    )]
    OtherText {
        /// The folder of the model.
        path: String,
    },

    /// The learner's code panicked.
    #[error(
        "your code panicked {moment}: {message}; `cargo course check` looks at it part by part"
    )]
    Panicked {
        /// When.
        moment: Moment,
        /// What it said.
        message: String,
    },

    /// A setting outside its range.
    #[error("{name} must be {rule}, got {got}")]
    Setting {
        /// The option.
        name: &'static str,
        /// The rule, in words.
        rule: &'static str,
        /// What was given.
        got: String,
    },

    /// The library refused.
    #[error(transparent)]
    Library(quadrivium::Error),

    /// A figure can't be painted.
    #[error(transparent)]
    Support(#[from] notebook_support::Error),

    /// There is no workspace, or standard output can't be written.
    #[error(transparent)]
    Learner(#[from] learner::Error),
}

/// The library speaks to who writes a program; here someone calls a command.
impl From<quadrivium::Error> for Error {
    fn from(error: quadrivium::Error) -> Self {
        match error {
            quadrivium::Error::Checkpoint { path, problem: CheckpointProblem::Sizes(sizes) } => {
                let one = |size: &SizeDiffers| {
                    format!("`{}` is {}, not {}", size.name, size.in_file, size.in_type)
                };
                let differences = sizes.iter().map(one).collect::<Vec<_>>().join(", ");
                Self::OtherSize { path, differences }
            }
            quadrivium::Error::Checkpoint { path, problem: CheckpointProblem::Tie { in_file } } => {
                let differences = format!("`tie_word_embeddings` is {in_file}, not {}", !in_file);
                Self::OtherSize { path, differences }
            }
            quadrivium::Error::Setting { name, rule, got } if option(name).is_some() => {
                let name = option(name).unwrap_or_default();
                Self::Setting { name, rule, got: got.to_string() }
            }
            error => Self::Library(error),
        }
    }
}

/// The option of a command that gives a setting of the library.
fn option(setting: &str) -> Option<&'static str> {
    const OPTIONS: [(&str, &str); 5] = [
        ("temperature", "--temperature"),
        ("top_k", "--top-k"),
        ("top_p", "--top-p"),
        ("min_p", "--min-p"),
        ("repetition_penalty", "--repetition-penalty"),
    ];
    OPTIONS.iter().find(|(name, _)| *name == setting).map(|(_, option)| *option)
}

impl Error {
    /// Something that can't be written.
    pub fn write(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Write { path: shown(path), reason: reason.to_string() }
    }

    /// A checkpoint that can't be used.
    pub fn broken(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Broken { path: shown(path), reason: reason.to_string() }
    }
}

/// A path that can't steer the terminal.
pub fn shown(path: &Path) -> String {
    notebook_support::text::printable(&path.display().to_string())
}

/// When the learner's code is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before anything is computed.
    Start,
    /// In a step of training.
    Step(usize),
    /// While it writes, with so many tokens before.
    At(usize),
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => write!(f, "at its start"),
            Self::Step(step) => write!(f, "in step {step}"),
            Self::At(tokens) => write!(f, "at position {tokens}"),
        }
    }
}
