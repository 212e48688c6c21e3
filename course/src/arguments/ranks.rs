//! `cargo course ranks`.

// A comment on a variant would replace the help of what is in it.
#![allow(missing_docs)]

use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

/// Train the small model with its table split across ranks that are processes, under MPI.
///
/// It needs Open MPI, which nothing else in the course does, and starts itself under mpirun, on this machine or on the hosts
/// that you name. Each rank has all blocks and a part of the table's rows, for embedding and output. The table at the end
/// shows for each rank its rows, its memory, the part of the text's tokens that it owns, the bytes it sent, and its time.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course ranks                        4 ranks, the course's own book
  cargo course ranks -n 2 --text a.txt      2 ranks, your text
  cargo course ranks -n 4 --copies 2        2 ranks share a model, 2 copies
  cargo course ranks --out a --steps 100    with checkpoints in the folder a
  cargo course model generate --model a     writes with the model at the end
  cargo course ranks --model target/model   trains a model further
  cargo course ranks -n 4 --host a:2,b:2    2 ranks on each of two hosts, which
                                            mpirun reaches with ssh
  cargo course ranks -n 8 --hostfile FILE -- --mca btl_tcp_if_include eth0
                                            what follows -- goes to mpirun
  mpirun -n 4 target/release/ranks ranks    in a world that is there already,
  srun --mpi=pmix -n 4 target/release/ranks ranks    nothing is launched

Every host needs Open MPI and this build of the program at the same path. The
text and the model are sent to hosts that lack them. --out names an absolute path on every host:
a folder that they share, or one on each host's own disk.

Exit codes:
  0  all ranks did their steps
  2  wrong arguments, no MPI, a text or a folder that can't be used, a rank
     that ended")]
pub struct RanksArguments {
    /// Ranks, all copies together. Each copy has 1, 2, 3, 4, 6, 8, 9, 12 or 16, and with a model of `model train` 1, 2, 4, 8 or 16 [default: 4, or with --tensor-parallel 2 a copy, or as many as mpirun or srun
    /// has started].
    #[arg(short = 'n', long = "ranks", allow_negative_numbers = true)]
    pub ranks: Option<usize>,

    /// Hosts, as mpirun takes them: HOST or HOST:RANKS, separated by commas.
    #[arg(long, value_name = "HOSTS")]
    pub host: Vec<OsString>,

    /// A file that lists the hosts, in mpirun's format.
    #[arg(long, value_name = "FILE")]
    pub hostfile: Vec<PathBuf>,

    /// A UTF-8 text file [default: pages of the course's own book].
    #[arg(long, value_name = "FILE")]
    pub text: Option<PathBuf>,

    /// Begin from a model in Hugging Face's layout that `model train` or ranks have written, with its own tokenizer.
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,

    /// Copies of the model, each of which reads other batches.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    pub copies: usize,

    /// Cut the blocks across the ranks of a copy too: attention by heads, the network by columns. Each copy then has 1 or 2 ranks,
    /// because the model has 2 key and value heads.
    #[arg(long)]
    pub tensor_parallel: bool,

    /// Steps in all.
    #[arg(long, default_value_t = 20, allow_negative_numbers = true)]
    pub steps: usize,

    /// The seed of the weights and of the order of the text.
    #[arg(long, default_value_t = 42, allow_negative_numbers = true)]
    pub seed: u64,

    /// The order in which sums over ranks are made.
    #[arg(long, value_enum, default_value_t = SumOrder::Fixed)]
    pub order: SumOrder,

    /// Keep checkpoints in this folder, and go on from the newest, with any number of ranks. The last one is also a model that
    /// `model generate --model DIR` and transformers can read.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Steps between two checkpoints.
    #[arg(long, value_name = "STEPS", default_value_t = 10, allow_negative_numbers = true)]
    pub every: usize,

    /// Seconds that a rank waits for another one.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, allow_negative_numbers = true)]
    pub patience: u64,

    /// Print a JSON object instead of the table.
    #[arg(long)]
    pub json: bool,

    /// Further arguments for mpirun.
    #[arg(last = true, value_name = "MPIRUN")]
    pub mpirun: Vec<OsString>,

    /// A model that is much too small, for tests.
    #[arg(long, hide = true)]
    pub tiny: bool,

    /// What one rank does wrong, for tests: RANK:FAULT or RANK:FAULT:STEP.
    #[arg(long, hide = true)]
    pub fault: Option<Fault>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SumOrder {
    /// That of the vocabulary: any number of ranks gives the same bits.
    Fixed,
    /// MPI's own, which is faster.
    Any,
}

/// What one rank does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    pub rank: usize,
    pub kind: FaultKind,
    /// Before which step; 0 for those that show at the start.
    pub step: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FaultKind {
    /// Has another seed.
    Seed,
    /// Reads another text.
    Text,
    /// Has a tokenizer with other tokens.
    Vocabulary,
    /// Is another version of the program.
    Version,
    /// Is not there when MPI starts.
    Never,
    /// Is there, and does not come to MPI.
    Late,
    /// Stops, and stays.
    Stuck,
    /// Ends as if all were done.
    Leaves,
    /// Panics.
    Panics,
    /// Reads another batch.
    Batch,
    /// Writes to a folder that is a file.
    Disk,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let wrong = || format!("{text} is not RANK:FAULT or RANK:FAULT:STEP");
        let rank = parts.next().and_then(|rank| rank.parse().ok()).ok_or_else(wrong)?;
        let kind = FaultKind::from_str(parts.next().unwrap_or_default(), true)?;
        let step = parts.next().map_or(Ok(0), str::parse).map_err(|_| wrong())?;
        Ok(Self { rank, kind, step })
    }
}
