//! What `cargo course grade` understands.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Grade submissions for the record: in a sandbox, and judged from outside it.
///
/// A submission is a folder, a .zip or a .tar.gz, from which the learner's files are taken: embedding.rs, norm.rs and
/// so on, best in exercises/src. A folder of these is a class, and so is Moodle's zip of all submissions, packed or
/// unpacked. Each one is built and run in a sandbox of bubblewrap's, without network, and answers with values over a
/// pipe, which the contract judges outside. Called again, it goes on where it ended. Linux only.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course grade submissions --out results    a folder of zips
  cargo course grade anna.zip --out results       one submission
  cargo course grade late --out results           late ones, into the same class
  cargo course grade submissions --out results \\
      --format moodle --settings grade.toml       a file for Moodle
  cargo course grade --out results \\
      --changes changes.toml                      what lies there, with changes
  cargo course grade --package gradescope \\
      --out package                               what a system wants uploaded

Exit codes:
  0  each submission has a grade
  1  some have none, and the class page says why
  2  wrong arguments, no sandbox, a folder that can't be used")]
pub struct GradeArguments {
    /// Submissions, or folders of submissions. Without any, --changes and --format apply to the results in the folder.
    pub submissions: Vec<PathBuf>,

    /// The folder of results, which is made if it is not there.
    ///
    /// It gets a folder with result.json and report.html for each submission, and grades.csv and class.html for the
    /// class.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// Submissions that are graded at the same time [default: one more than the machine has cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=512), allow_negative_numbers = true)]
    pub jobs: Option<u16>,

    /// The seed of the random inputs, from which each submission gets its own, made from this one and from its files
    /// [default: drawn, and kept in class.json].
    #[arg(long, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// A TOML file: which tasks, their points, partial credit, limits.
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,

    /// A TOML file of points that were changed by hand: who changed them, when and why.
    #[arg(long, value_name = "FILE")]
    pub changes: Option<PathBuf>,

    /// Write the results for another system as well.
    #[arg(long, value_name = "FORMAT")]
    pub format: Vec<Format>,

    /// What separates a submission's code from this machine.
    #[arg(long, value_name = "LINES", default_value = "full")]
    pub sandbox: SandboxLines,

    /// Grade only every N-th submission, beginning with the I-th, to spread a class over several machines.
    ///
    /// All of them need the same --seed. They may share a folder of results, or have folders that you copy into one,
    /// and a last call without this option writes the files for the class.
    #[arg(long, value_name = "I/N", value_parser = part, requires = "seed")]
    pub shard: Option<(usize, usize)>,

    /// Grade even what has a result already.
    #[arg(long)]
    pub fresh: bool,

    /// Write what another system wants uploaded, or what you hand out, and grade nothing.
    #[arg(long, value_name = "SYSTEM", conflicts_with_all = ["submissions", "format", "shard", "fresh", "changes"])]
    pub package: Option<Package>,
}

/// Results as another system reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Format {
    /// results.json of Gradescope, for each submission.
    Gradescope,
    /// results.json of PrairieLearn, for each submission.
    Prairielearn,
    /// JUnit XML, for the class.
    Junit,
    /// Autolab's feedback, for each submission.
    Autolab,
    /// A CSV file that Moodle imports.
    Moodle,
    /// A CSV file that Canvas imports.
    Canvas,
    /// A summary for a GitHub Actions run.
    Github,
}

/// Systems that grade on their own machines, and what students get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Package {
    /// An autograder archive.
    Gradescope,
    /// An external grader.
    Prairielearn,
    /// A workflow.
    Github,
    /// A copy of the course for your students, without its solutions.
    Handout,
}

/// The sandbox's lines of defence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SandboxLines {
    /// Namespaces by bubblewrap; within them Landlock, seccomp and limits.
    Full,
    /// Namespaces and limits: for a kernel without Landlock.
    Namespaces,
    /// Landlock, seccomp and limits: for a container that forbids namespaces.
    Confined,
    /// Limits alone, for your own code: all reports say so.
    None,
}

/// `I/N`.
fn part(words: &str) -> Result<(usize, usize), String> {
    let parts = words.split_once('/');
    let part = parts.and_then(|(nth, of)| Some((nth.parse().ok()?, of.parse().ok()?)));
    let fits = |(nth, of): &(usize, usize)| (1..=*of).contains(nth);
    part.filter(fits).ok_or_else(|| {
        "I/N is a part, counted from 1, and how many there are, such as 2/3".to_string()
    })
}
