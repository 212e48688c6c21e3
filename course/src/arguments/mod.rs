//! What `cargo course` understands. Its texts are its help.

// A comment on a variant would replace the help of what is in it.
#![allow(missing_docs)]

mod grade;
mod long;
mod ranks;

pub use grade::{Format, GradeArguments, Package, SandboxLines};
pub use long::{LongArguments, MOVED, STRETCHED, SWEEPS, all_encodings, swept};
pub use ranks::{Fault, FaultKind, RanksArguments, SumOrder};

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use contract::registry::COMPONENTS;
use std::path::PathBuf;

/// The command of the course Quadrivium.
///
/// The exercises let you write the components of a Transformer, and the tour shows the embeddings,
/// GroupRMSNorm and RoPE at work.
///
/// Without a command, the course opens: it serves the book on this machine's own address, and a
/// board shows what is done, what is next, and what is wrong with it. The board grades again at
/// each save, and when you press r. Leave it with q.
#[derive(Debug, Parser)]
#[command(name = "course", bin_name = "cargo course", version, max_term_width = 80)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Serve the book on this address of the machine, or the address of this name [default: 127.0.0.1].
    ///
    /// By default only this machine reaches it. With 0.0.0.0, which a container or a remote machine needs,
    /// everyone who can reach this machine can read it.
    #[arg(long)]
    pub host: Option<String>,

    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Tour(TourArguments),
    Check(CheckArguments),
    Hint(HintArguments),
    Diff(DiffArguments),
    Reset(ResetArguments),
    Grade(GradeArguments),
    Matrix(MatrixArguments),
    Bench(BenchArguments),
    Model(ModelArguments),
    Ranks(RanksArguments),
    Read(ReadArguments),
    Lab(LabArguments),
    Exam(ExamArguments),
    New(NewArguments),
    #[command(hide = true)]
    Kernel(KernelArguments),
}

/// Take a real text through the embeddings, GroupRMSNorm and RoPE, and measure what must hold.
///
/// The text becomes tokens, the tokens become vectors (from one table, and from the same table in
/// four shards), the vectors are normalized in groups, and the queries and keys made from them are
/// turned by their position, also past the training length. Each step shows its shapes, its time,
/// and its invariants: what was measured, the bound, and whether it holds.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course tour                              the course's own prose
  cargo course tour --text book.txt              your text
  cargo course tour --json --no-figures          for a script
  cargo course tour --out figures                SVG files in ./figures

Exit codes:
  0  every invariant holds
  1  an invariant does not hold
  2  wrong arguments, a text that can't be used, a file that can't be written")]
pub struct TourArguments {
    /// A UTF-8 text file [default: the course's own prose].
    ///
    /// It must give at least 2 tokens, and of a long text the first 4096 tokens are used.
    #[arg(long, value_name = "FILE")]
    pub text: Option<PathBuf>,

    /// The folder for the figures, which is made if it is not there.
    ///
    /// It gets six SVG files with fixed names, which replace older ones.
    #[arg(long, value_name = "DIR", default_value = "target/tour")]
    pub out: PathBuf,

    /// Print a JSON array of the invariants, and nothing else.
    ///
    /// Each has the fields component, invariant, measured, bound and holds, and it holds if
    /// measured is at most bound. The figures are written as well, unless --no-figures is given.
    #[arg(long)]
    pub json: bool,

    /// Write no figures.
    #[arg(long, conflicts_with = "out")]
    pub no_figures: bool,
}

/// Grade the exercises.
///
/// One line for each task, then the first failure in full: what is broken, on which input, and
/// what the code seems to do.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course check                 all tasks
  cargo course check norm/forward    one task
  cargo course check 2.2 2.3 rope    two tasks and a component
  cargo course check norm --watch    a component, again at each save
  cargo course check norm.rs:70      what is written there, as editors name it
  cargo course check --json -        the grades for a script

Exit codes:
  0  every selected task passes
  1  a selected task does not pass
  2  an unknown task, a file that can't be written, code that does not
     compile")]
pub struct CheckArguments {
    /// Tasks (norm/forward, its number, or a line of its place) and components (norm) [default: all tasks].
    pub tasks: Vec<String>,

    /// Grade again at each save, until Ctrl-C.
    #[arg(long)]
    pub watch: bool,

    /// Write the grades to this file, as a JSON array; - is standard output.
    ///
    /// With -, nothing else is printed on standard output, and the report goes to standard error.
    /// The fields are described in course/schemas/check.schema.json.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Get a hint: first the idea, then the formula, then the dfdx call, but never the answer.
#[derive(Debug, Args)]
pub struct HintArguments {
    /// A task: norm/forward, its number, or a line of its place (norm.rs:70).
    pub task: String,

    /// 1: the idea. 2: the formula. 3: the dfdx call.
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub tier: u8,

    /// Print the hint as a JSON object, and nothing else.
    ///
    /// The fields are described in course/schemas/hint.schema.json. Which hints you have seen is not
    /// stored, so name the level.
    #[arg(long)]
    pub json: bool,
}

/// Compare your code with the model solution, once yours passes.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit codes:
  0  each task passes, and the two are shown
  1  a task does not pass yet
  2  an unknown task, code that does not compile")]
pub struct DiffArguments {
    /// Tasks (norm/forward, or its number) and components (norm).
    #[arg(required = true)]
    pub tasks: Vec<String>,
}

/// Put the starter back in a task's place, and keep your file in exercises/backups.
#[derive(Debug, Args)]
pub struct ResetArguments {
    /// Tasks (norm/forward, or its number), and components (norm) for their whole files.
    #[arg(required = true)]
    pub tasks: Vec<String>,
}

/// Show which invariant catches which known bug.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit codes:
  0  every bug is caught, every invariant has a use, no correct variant is
     refused
  1  not so")]
pub struct MatrixArguments {
    /// Only this component.
    #[arg(value_parser = PossibleValuesParser::new(COMPONENTS.iter().map(|entry| entry.slug)))]
    pub component: Option<String>,

    /// Print the totals as one JSON object, and nothing else.
    #[arg(long)]
    pub json: bool,

    /// Judge the mutants instead: what each bug does, under one condition after another. Takes minutes.
    #[arg(long, conflicts_with = "json")]
    pub mutants: bool,
}

/// Let your code race the library's, a plain loop, and a copy of the same bytes.
///
/// The first run builds with optimization, which takes a few minutes. Your code takes part as soon
/// as its forward pass passes, and nothing is graded by its speed. PyTorch's bar comes from its
/// last recorded ratio to the library.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course bench                 all components
  cargo course bench norm            that one
  cargo course bench token           what a decoded token costs: no race, and none of your code
  cargo course bench token --size 25M
  cargo course bench --out figures   the SVG files in ./figures
  cargo course bench --check         is the library as fast as it should be?

Exit codes:
  0  the races were run; with --check, every ratio is within its bound
  1  with --check, a ratio is not
  2  a file that can't be written, code of the course that does not compile")]
pub struct BenchArguments {
    /// Only this component, or `token`: how fast models of 1 to 400 million random weights decode, beside how fast this machine reads.
    #[arg(value_parser = PossibleValuesParser::new(COMPONENTS.iter().map(|entry| entry.slug).chain([TOKEN])))]
    pub component: Option<String>,

    /// With `token`, only the model of this size; may be given several times.
    #[arg(long, value_name = "SIZE", requires = "component", conflicts_with = "check",
        value_parser = PossibleValuesParser::new(["1M", "25M", "100M", "400M"]))]
    pub size: Vec<String>,

    /// The folder for the figures.
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    pub out: PathBuf,

    /// Compare the library's code with plain loops, and a training step and a decoded token with their parts, and say which
    /// takes longer than it should. Your code does not run.
    #[arg(long, conflicts_with = "out")]
    pub check: bool,
}

/// What `bench` measures beside components.
pub const TOKEN: &str = "token";

impl BenchArguments {
    /// Whether a decoded token is measured, and no component.
    pub fn is_token(&self) -> bool {
        self.component.as_deref() == Some(TOKEN)
    }
}

/// Train a small Llama made of the course's parts, and let it write.
///
/// The first run builds with optimization, which takes a few minutes. The model has the parts of the
/// book, which are embedding, RMSNorm, RoPE, attention with grouped queries, and SwiGLU, and it is
/// trained on the book, or on a text of yours.
#[derive(Debug, Args)]
pub struct ModelArguments {
    #[command(subcommand)]
    pub command: ModelCommand,
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    Train(TrainArguments),
    Generate(GenerateArguments),
    Eval(EvalArguments),
    Inspect(InspectArguments),
    Attention(AttentionArguments),
    Long(LongArguments),
}

/// Train a model on a text, and compare it with a 3-gram model of the same text.
///
/// A tenth of the text is held out, of which the first 16,384 tokens are used for the
/// measurement, and the tokenizer and the model are trained on the rest. A run that was ended at any moment, by Ctrl-C
/// or a power cut, goes on with the same command, and ends with the same bits as one that was not.
/// The model is written in the layout of Hugging Face, which transformers reads.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course model train                       the course's own book
  cargo course model train --text a.txt --out a  your text, in the folder a
  cargo course model train --mine --steps 100    with your components
  cargo course model train --fresh --seed 7      begin again, another seed

Exit codes:
  0  the model is trained
  1  with --mine: a step differs from the library's
  2  wrong arguments, a text or a folder that can't be used, code that is not
     complete")]
pub struct TrainArguments {
    /// A UTF-8 text file; give --text several times for several, one after another [default:
    /// pages of the course's own book].
    ///
    /// A few thousand letters are the least, though far too few to learn much, and 100 MB are the
    /// most.
    #[arg(long, value_name = "FILE")]
    pub text: Vec<PathBuf>,

    /// The folder of the run, which is made if it is not there. With --mine: target/mine.
    ///
    /// It holds the newest checkpoint, in a folder that is named after its step, and after the last
    /// step the loss curve, too: loss.svg, with its numbers in loss.json.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "target/model",
        default_value_if("mine", "true", "target/mine")
    )]
    pub out: PathBuf,

    /// Steps in all. The learning rate rises in the first twentieth of them and falls in the
    /// others, so a run can't be made longer later.
    #[arg(long, default_value_t = 1500, allow_negative_numbers = true)]
    pub steps: usize,

    /// The seed of the weights and of the order of the text.
    #[arg(long, default_value_t = 42, allow_negative_numbers = true)]
    pub seed: u64,

    /// The highest learning rate.
    #[arg(long, default_value_t = 0.004, allow_negative_numbers = true)]
    pub rate: f64,

    /// Steps between two checkpoints, at each of which the held-out text is looked at.
    #[arg(long, value_name = "STEPS", default_value_t = 100, allow_negative_numbers = true)]
    pub every: usize,

    /// Begin again and replace the run in the folder, which goes on otherwise.
    #[arg(long)]
    pub fresh: bool,

    /// Train with your code from exercises/, and compare each step with the library's.
    ///
    /// Your norm, embedding and RoPE are put into the library's model. Once model/forward is
    /// solved, and all that it needs, the whole model is yours, and so is its loss.
    #[arg(long)]
    pub mine: bool,

    /// A model that is much too small, for tests.
    #[arg(long, hide = true)]
    pub tiny: bool,
}

/// Let a model continue a text.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course model generate --prompt \"The norm\"
  cargo course model generate --prompt \"The norm\" --temperature 0
                                                   the likeliest, always
  cargo course model generate --prompt \"The norm\" --top-p 0.9 --seed 7
  cargo course model generate --prompt \"The norm\" --mine
                                                   your model and your sampling

Exit codes:
  0  the text was written
  2  wrong arguments, a model or a prompt that can't be used, code that is not
     complete")]
pub struct GenerateArguments {
    /// How the text begins.
    #[arg(long, value_name = "TEXT")]
    pub prompt: String,

    /// The folder of a run, or of a checkpoint. With --mine: target/mine.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "target/model",
        default_value_if("mine", "true", "target/mine")
    )]
    pub model: PathBuf,

    /// Tokens to write.
    #[arg(long, default_value_t = 100, allow_negative_numbers = true)]
    pub tokens: usize,

    /// Logits are divided by it: below 1 likely tokens become likelier, at 0 the likeliest is always taken.
    #[arg(long, value_name = "T", default_value_t = 0.8, allow_negative_numbers = true)]
    pub temperature: f64,

    /// Draw only from the K likeliest tokens.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub top_k: Option<usize>,

    /// Draw only from the likeliest tokens that together have this probability.
    #[arg(long, value_name = "P", default_value_t = 1.0, allow_negative_numbers = true)]
    pub top_p: f64,

    /// Draw only from tokens at least this many times as likely as the likeliest.
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.0,
        allow_negative_numbers = true,
        conflicts_with = "mine"
    )]
    pub min_p: f64,

    /// Divide the logits of tokens that are in the text already by it, or multiply those below 0.
    #[arg(
        long,
        value_name = "R",
        default_value_t = 1.0,
        allow_negative_numbers = true,
        conflicts_with = "mine"
    )]
    pub repetition_penalty: f64,

    /// The seed of the draws.
    #[arg(long, default_value_t = 42, allow_negative_numbers = true)]
    pub seed: u64,

    /// End where this text comes; may be given several times.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub stop: Vec<String>,

    /// How the weights are kept in memory: fewer bytes are faster, and less exact.
    #[arg(long, value_enum, default_value_t = Weights::AsStored, conflicts_with = "mine")]
    pub weights: Weights,

    /// Compute with your code from exercises/: model/decode, model/sample, and all that they need.
    #[arg(long)]
    pub mine: bool,
}

/// How weights are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Weights {
    /// As the file has them, and in the file: nothing is copied.
    AsStored,
    /// 4 bytes each.
    F32,
    /// 2 bytes each, with 8 bits of the significand.
    Bf16,
    /// 2 bytes each, with 11 bits of the significand.
    F16,
    /// 1 byte each, and a factor for each row.
    Int8,
    /// Half a byte each, and a factor for each 32 in a row.
    Int4,
}

/// Measure a model on held-out text: its loss, its perplexity, and its loss by position.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course model eval                  the model in target/model, on the book
  cargo course model eval --model a --text a.txt
  cargo course model eval --weights int8 --weights int4

Exit codes:
  0  the model was measured
  2  wrong arguments, a model, a text or a folder that can't be used")]
pub struct EvalArguments {
    /// The text that the model was trained on, as train takes it [default: that of train]. A tenth
    /// of it is used for the measurement, and the 3-gram model beside it counts the rest.
    #[arg(long, value_name = "FILE")]
    pub text: Vec<PathBuf>,

    /// The folder of a run, or of a checkpoint.
    #[arg(long, value_name = "DIR", default_value = "target/model")]
    pub model: PathBuf,

    /// Measure the loss once more with the weights kept like this, and show it beside the first; may be given several times.
    #[arg(long, value_enum)]
    pub weights: Vec<Weights>,

    /// The folder for the figure [default: that of the model].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Show what a model costs: its parameters, its memory, its operations, its KV cache.
///
/// Nothing is loaded, because the sizes are enough.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course model inspect                      the model in target/model
  cargo course model inspect --model DIR          one in Hugging Face's layout
  cargo course model inspect --size llama-3-8b    known sizes

Exit codes:
  0  the model was shown
  2  wrong arguments, a folder without a model")]
pub struct InspectArguments {
    /// The folder of a run, or of a checkpoint.
    #[arg(long, value_name = "DIR", default_value = "target/model", conflicts_with = "size")]
    pub model: PathBuf,

    /// Sizes that are known by name.
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(["smollm-135m", "tinyllama-1.1b", "llama-3.2-1b", "llama-2-7b", "llama-3-8b", "llama-2-70b"]))]
    pub size: Option<String>,
}

/// What the heads are shown if no other text is named: a sentence of the chapter on attention, which is not trained on.
pub const PROMPT: &str = "Each token asks something, each earlier token answers how well it fits";

/// Show what the heads of a model look at: how far back, and on which tokens.
///
/// The weights of every head of every block on one text, as numbers and as maps: attention.svg, and all weights in
/// attention.json.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course model attention                       the model in target/model
  cargo course model attention --prompt \"The norm of the norm\"

Exit codes:
  0  the heads were shown
  2  wrong arguments, a model, a prompt or a folder that can't be used")]
pub struct AttentionArguments {
    /// The text that the heads read, of at least 3 tokens.
    #[arg(long, value_name = "TEXT", default_value = PROMPT)]
    pub prompt: String,

    /// The folder of a run, or of a checkpoint.
    #[arg(long, value_name = "DIR", default_value = "target/model")]
    pub model: PathBuf,

    /// The folder for the maps and the numbers [default: that of the model].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Read the book.
///
/// It is built and served on this machine's own address, which is printed, and nothing is opened by
/// itself. Since nothing is loaded from elsewhere, it works offline.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course read                  serve the book, until Ctrl-C
  cargo course read --open           and open it in the browser
  cargo course read --host 0.0.0.0   for other machines, too, or in a container
  cargo course read --build site     write it to ./site, for any web server

Exit codes:
  0  the book was built
  2  its sources are not in order, a folder, a host or a port can't be used")]
pub struct ReadArguments {
    /// Write the site to this folder instead of serving it.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["host", "port", "open"])]
    pub build: Option<PathBuf>,

    /// Serve on this address of the machine, or the address of this name [default: 127.0.0.1].
    ///
    /// By default only this machine reaches it. With 0.0.0.0, which a container or a remote machine needs,
    /// everyone who can reach this machine can read it.
    #[arg(long)]
    pub host: Option<String>,

    /// Serve on this port [default: 4143, or any free one].
    #[arg(long, allow_negative_numbers = true)]
    pub port: Option<u16>,

    /// Open the book in the browser.
    #[arg(long)]
    pub open: bool,

    /// For authors: make the figures and listings in book/src again, and put new numbers into the
    /// pages.
    #[arg(long, conflicts_with_all = ["build", "host", "port", "open"])]
    pub update: bool,

    /// Serve the book as long as standard input is open, and print only its address, as the board
    /// asks.
    #[arg(long, hide = true, conflicts_with_all = ["build", "update"])]
    pub beside: bool,
}

/// Open the notebooks in JupyterLab.
///
/// What is missing is installed first: a Python environment with JupyterLab, for this project only,
/// under target/lab, and the Rust kernel evcxr, which takes perhaps six minutes to build. The
/// kernel is kept in the user's cache folder, where the next copy of the course finds it. You need
/// Python 3.11 or newer. The page is on this machine's own address, and opening it again takes
/// seconds.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course lab                 all notebooks, in the browser
  cargo course lab norm            that one
  cargo course lab norm --clear    without its outputs, for a class
  cargo course lab --no-browser    only print the address
  cargo course lab --no-browser --host 0.0.0.0
                                   in a container, or for a remote machine
  cargo course lab --check         run them all, and compare their outputs

Exit codes:
  0  the page was served, or every notebook holds what it gives
  1  a notebook does not
  2  something is missing, an unknown notebook, a host that is not this
     machine, a port that is taken")]
pub struct LabArguments {
    /// One notebook: its subject (norm) or its file [default: all].
    pub notebook: Option<String>,

    /// Run the notebooks without a page, and compare what they give with what they hold.
    #[arg(long)]
    pub check: bool,

    /// For authors: run the notebooks, and keep the outputs in them.
    #[arg(long, conflicts_with = "check")]
    pub update: bool,

    /// Take the outputs out of the notebooks first, so that they don't give the answers away: `git restore notebooks`
    /// brings them back.
    #[arg(long, conflicts_with_all = ["check", "update"])]
    pub clear: bool,

    /// Open no browser.
    #[arg(long, conflicts_with_all = ["check", "update"])]
    pub no_browser: bool,

    /// Serve the page, and the book, on this address of the machine, or the address of this name [default: 127.0.0.1].
    ///
    /// By default only this machine can reach them. With 0.0.0.0, everyone who can reach this machine
    /// can read the book, and can run any program as you if they know the token in the page's
    /// address.
    #[arg(long, conflicts_with_all = ["check", "update"])]
    pub host: Option<String>,

    /// Serve the page on this port [default: 8888, or the next free one].
    #[arg(long, conflicts_with_all = ["check", "update"])]
    pub port: Option<u16>,
}

/// For lecturers: print an exam and its key.
///
/// Half of its questions are made: a wrong answer of a known bug, and four mistakes to choose from. The others are
/// drawn from a bank of written ones. The seed decides which questions are asked, and with which numbers, so each seed
/// gives a different exam, and the same seed the same one.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course exam --seed 7 --out exam         8 questions on all components
  cargo course exam norm rope --seed 7 --riddles 6 --written 0 --out exam

Exit codes:
  0  exam.html and key.html are in the folder
  2  more questions than there are, a folder that can't be written")]
pub struct ExamArguments {
    /// The components that it is about [default: all].
    #[arg(value_parser = PossibleValuesParser::new(COMPONENTS.iter().map(|entry| entry.slug)))]
    pub components: Vec<String>,

    /// Another seed gives a different exam.
    #[arg(long)]
    pub seed: u64,

    /// Wrong answers to explain, 4 points each.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub riddles: usize,

    /// Questions from the bank.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub written: usize,

    /// The folder for the two papers. It is made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// For authors: write the files of a new component.
///
/// All that a component needs is written from the templates in course/author/component: its folders
/// in contract, src and exercises, its adapters, its tests and its chapter, and its lines in the
/// lists. It compiles at once, and every place where something belongs says what, while nothing
/// that is there is overwritten. The chapter "Adding a component" of the book goes on from there.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course new softmax --type Softmax
  cargo course new alibi               its type is Alibi

Exit codes:
  0  all was written
  2  the name can't be used, or a file can't be written; then nothing was")]
pub struct NewArguments {
    /// What it is called everywhere: its folders, its page, the first part of all its names.
    pub slug: String,

    /// The name of its type [default: the slug in capitals, BatchNorm for batch_norm].
    #[arg(long = "type", value_name = "NAME")]
    pub type_name: Option<String>,
}

/// Run the notebooks' kernel. Jupyter calls this.
#[derive(Debug, Args)]
pub struct KernelArguments {
    /// The program evcxr_jupyter.
    pub evcxr: PathBuf,

    /// Where Jupyter says how the two talk.
    pub connection_file: PathBuf,
}
