//! Arguments and exit codes of the command `cargo course`. The work is in the library.

#![forbid(unsafe_code)]

use clap::{Args, CommandFactory, Parser, Subcommand};
use course::tour;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// The command of the course Quadrivium.
///
/// Four components make a front end of a Transformer: GroupRMSNorm, two vocabulary
/// embeddings and NTK-aware RoPE. This command shows them at work.
#[derive(Debug, Parser)]
#[command(name = "course", bin_name = "cargo course", version, max_term_width = 80)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Tour(TourArguments),
}

/// Take a real text through the four components and measure what must hold.
///
/// The text becomes tokens, the tokens become vectors (from one table, and from the same table in
/// four shards), the vectors are normalized in groups, and the queries and keys made of them are
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
struct TourArguments {
    /// A UTF-8 text file [default: the course's own prose].
    ///
    /// It must give at least 2 tokens. Of a long text the first 4096 tokens are used.
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,

    /// The folder for the figures. It is made if it is not there.
    ///
    /// Six SVG files are written, with fixed names. Older ones are replaced.
    #[arg(long, value_name = "DIR", default_value = "target/tour")]
    out: PathBuf,

    /// Print a JSON array of the invariants, and nothing else.
    ///
    /// Each has the fields component, invariant, measured, bound and holds. It holds if measured
    /// is at most bound. The figures are written as well, unless --no-figures is given.
    #[arg(long)]
    json: bool,

    /// Write no figures.
    #[arg(long, conflicts_with = "out")]
    no_figures: bool,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        None => {
            // If the reader of the help has gone, there is nobody to tell.
            let _ = Arguments::command().print_long_help();
            return ExitCode::SUCCESS;
        }
        Some(Command::Tour(TourArguments { text, out, json, no_figures })) => {
            let figures = (!no_figures).then_some(out);
            tour::run(&tour::Options { text, figures, json })
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            // `eprintln!` would panic if stderr is closed.
            let _ = writeln!(std::io::stderr(), "error: an invariant does not hold");
            ExitCode::from(1)
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}
