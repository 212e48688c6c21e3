//! What `cargo course model long` understands.

use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;

/// The encodings that a model is trained with, each from its beginning.
pub const ENCODINGS: &[&str] = &[
    "none",
    "sinusoidal",
    "learned",
    "t5",
    "alibi",
    "kerple-log",
    "kerple-power",
    "xl",
    "rope",
    "xpos",
    "partial",
    "rope+alibi",
    "linear",
];

/// What is made from the model that was trained with RoPE: other frequencies, and some steps at the longer length.
pub const STRETCHED: [&str; 7] = [
    "interpolation",
    "ntk",
    "dynamic-ntk",
    "yarn",
    "interpolation-tuned",
    "ntk-tuned",
    "yarn-tuned",
];

/// What goes on from the model that was trained with sinusoids: with sinusoids, and with RoPE instead, as RoFormer did.
pub const MOVED: [&str; 2] = ["sinusoidal-on", "sinusoidal-to-rope"];

/// What one setting of RoPE does, each with models of their own: the values of the setting in their order. `rope` is the model
/// that all sweeps share: base 10,000, trained at 128 positions, with nothing else.
pub const SWEEPS: [(&str, &[&str]); 7] = [
    ("base", &["base-100", "base-1000", "rope", "base-100000", "base-1000000"]),
    ("length", &["length-32", "length-64", "rope", "length-256"]),
    ("theta", &["rope", "theta", "exp-alpha"]),
    ("norm", &["rope", "qk-norm"]),
    ("bias", &["rope", "rope+t5"]),
    ("projections", &["rope", "qk-bias"]),
    ("dropout", &["rope", "rope-dropout", "sinusoidal", "sinusoidal-dropout"]),
];

/// The models of these sweeps, each once, in their order.
pub fn swept(asked: &[String]) -> Vec<&'static str> {
    let of_asked = SWEEPS.iter().filter(|(sweep, _)| asked.iter().any(|name| name == sweep));
    let mut names = Vec::new();
    for name in of_asked.flat_map(|(_, names)| names.iter().copied()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// All of them, in the order in which they are shown.
pub fn all_encodings() -> impl Iterator<Item = &'static str> {
    ENCODINGS.iter().copied().chain(STRETCHED).chain(MOVED)
}

/// Train short, test long: one model for each position encoding, and its loss far past the length that it was trained
/// at.
///
/// All are trained at 128 positions, with the same seed, text and steps, and then tested on the held-out text at up
/// to 1,024. The one with RoPE is also stretched by other frequencies, by interpolation, NTK and YaRN, at once and
/// after some steps at 1,024 positions, and the one with sinusoids goes on with them and with RoPE. You can stop a run
/// at any moment, since the same command goes on with it and ends with the same bits.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  cargo course model long                           all encodings
  cargo course model long --only rope alibi ntk     three of them
  cargo course model long --seeds 42 43 44          three times each
  cargo course model long --text a.txt --out long   your text, in folder long
  cargo course model long --sweep base theta        RoPE with five bases, and with trained frequencies

Exit codes:
  0  all was trained and measured
  2  wrong arguments, a text or a folder that can't be used")]
pub struct LongArguments {
    /// A UTF-8 text file; give --text several times for several, one after another [default: pages of the course's
    /// own book].
    #[arg(long, value_name = "FILE")]
    pub text: Vec<PathBuf>,

    /// The folder of the runs, which is made if it is not there.
    ///
    /// It gets a folder for each seed, with one for each encoding in it, and long.json with all numbers, and the
    /// figures long.svg, stretched.svg and moved.svg.
    #[arg(long, value_name = "DIR", default_value = "target/model-long")]
    pub out: PathBuf,

    /// Steps of each encoding.
    #[arg(long, default_value_t = 600, allow_negative_numbers = true)]
    pub steps: usize,

    /// Steps of a model that goes on from another.
    #[arg(long, value_name = "STEPS", default_value_t = 60, allow_negative_numbers = true)]
    pub tune: usize,

    /// The seeds of the weights and of the order of the text, one or several.
    #[arg(long, value_name = "SEED", num_args = 1.., default_values_t = [42], allow_negative_numbers = true)]
    pub seeds: Vec<u64>,

    /// Only these encodings [default: all].
    #[arg(
        long,
        value_name = "NAME",
        num_args = 1..,
        value_parser = PossibleValuesParser::new(all_encodings())
    )]
    pub only: Vec<String>,

    /// Train RoPE with several values of a setting instead: of its base, of the trained length, with trained frequencies, with
    /// normalized queries and keys, with a learned bias beside it, with biased queries and keys, with dropout. The numbers go
    /// to sweeps.json in the folder.
    #[arg(
        long,
        value_name = "NAME",
        num_args = 1..,
        value_parser = PossibleValuesParser::new(SWEEPS.map(|(name, _)| name)),
        conflicts_with = "only"
    )]
    pub sweep: Vec<String>,

    /// Begin again and replace the runs in the folder, which go on otherwise.
    #[arg(long)]
    pub fresh: bool,

    /// Models that are much too small, for tests.
    #[arg(long, hide = true)]
    pub tiny: bool,
}
