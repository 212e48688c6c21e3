//! What a reader of `cargo course ranks` sees.

use crate::communicator::Order;
use crate::size::Size;
use learner::terminal::Terminal;
use model::corpus::Corpus;
use model::text::Text;
use notebook_support::plot::thousands;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What one rank reports of its work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfRank {
    /// Among all ranks.
    pub rank: usize,
    /// The name of its host.
    pub host: String,
    /// Which copy of the model it has a part of.
    pub copy: usize,
    /// The ids whose rows it has.
    pub rows: Range<usize>,
    /// Bytes of these rows, and of its part of the blocks if they are cut.
    pub shard_bytes: usize,
    /// The part of the tokens of its copy that are its own, from 0 to 1.
    pub owned: f64,
    /// Bytes that it sent: see [`Communicator::sent`](crate::communicator::Communicator::sent).
    pub sent: u64,
    /// Seconds that its steps took.
    pub seconds: f64,
    /// Seconds of these in which it was in a call to the others.
    pub waited: f64,
}

/// A run, as all ranks together report it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The name of the text.
    pub text: String,
    /// Its bytes.
    pub bytes: usize,
    /// Tokens that are learned from.
    pub tokens: usize,
    /// `v`.
    pub vocab_size: usize,
    /// `h`.
    pub hidden_size: usize,
    /// Tokens of a step, of all copies.
    pub tokens_of_step: usize,
    /// Copies of the model.
    pub copies: usize,
    /// Whether the blocks are cut, too.
    pub tensor_parallel: bool,
    /// Whether sums over ranks are made in the order of the vocabulary.
    pub in_order: bool,
    /// Steps that were made before, by the checkpoint.
    pub begun: usize,
    /// The step of a checkpoint that was there in parts, and was passed over for the one before.
    pub in_parts: Option<usize>,
    /// The loss of each step.
    pub losses: Vec<f32>,
    /// A number that is another one for other weights at the end.
    pub weights: String,
    /// Rank by rank.
    pub ranks: Vec<OfRank>,
}

impl Run {
    /// A run that has not made a step.
    pub fn new(
        text: &Text,
        corpus: &Corpus,
        size: Size,
        (copies, tensor_parallel): (usize, bool),
        order: Order,
        begun: usize,
    ) -> Self {
        Self {
            text: text.name.clone(),
            bytes: text.content.len(),
            tokens: corpus.trained.len(),
            vocab_size: size.vocab_size,
            hidden_size: size.hidden_size,
            tokens_of_step: size.batch.0 * size.batch.1 * copies,
            copies,
            tensor_parallel,
            in_order: order != Order::Any,
            begun,
            in_parts: None,
            losses: Vec::new(),
            weights: String::new(),
            ranks: Vec::new(),
        }
    }
}

/// Prints a run as a JSON object.
///
/// # Errors
/// Standard output can't be written.
pub fn json(run: &Run) -> learner::Result<()> {
    let text = serde_json::to_string_pretty(run).unwrap_or_default();
    Terminal::stdout().line(&text)
}

/// Prints a run for a reader.
///
/// # Errors
/// Standard output can't be written.
pub fn table(run: &Run) -> learner::Result<()> {
    let mut out = Terminal::stdout();
    let Run { ranks, losses, begun, copies, .. } = run;
    let w = ranks.len() / copies.max(&1);
    out.entry(
        "text",
        &format!("{}: {} bytes, {} tokens", run.text, thousands(run.bytes), thousands(run.tokens)),
    )?;
    let shared = match copies {
        1 if w == 1 => "1 process has the whole table".to_string(),
        1 => format!("{w} processes share the table"),
        _ => format!("{} processes: {w} share the table of each of {copies} copies", ranks.len()),
    };
    out.entry("ranks", &shared)?;
    let (v, h) = (run.vocab_size, run.hidden_size);
    let blocks = match run.tensor_parallel {
        true => "the blocks are cut by heads and columns, and count as memory",
        false => "each rank has all blocks",
    };
    out.entry("table", &format!("{v} rows of {h} elements, at both ends; {blocks}"))?;
    let steps = format!(
        "{} to {}, {} tokens each",
        begun + 1,
        begun + losses.len(),
        thousands(run.tokens_of_step)
    );
    out.entry("steps", if losses.is_empty() { "none were left" } else { &steps })?;
    if let Some(newer) = run.in_parts {
        let words = format!("only parts of step {newer} were there; step {begun} was whole");
        out.entry("checkpoint", &words)?;
    }
    if let (Some(first), Some(last)) = (losses.first(), losses.last()) {
        out.entry("loss", &format!("{first:.3} in the first of them, {last:.3} in the last"))?;
    }
    out.entry("weights", &run.weights)?;
    out.entry(
        "sums",
        if run.in_order && run.tensor_parallel {
            "in the order of the vocabulary, heads and columns; all that a rank sends is counted"
        } else if run.in_order {
            "in the order of the vocabulary; all that a rank sends is counted"
        } else {
            "in MPI's own order; of each, 2 (w - 1) / w of the values are counted as sent, the least that any method needs"
        },
    )?;
    out.line("")?;
    let several = ranks.iter().any(|of| of.host != ranks[0].host);
    let host = if several { "  host" } else { "" };
    out.line(&format!(
        "  rank  rows         memory  tokens owned        sent     in calls    time{host}"
    ))?;
    for of in ranks {
        out.line(&format!(
            "  {:>4}  {:<9} {:>8}  {:>10.1} %  {:>12}  {:>7.1} s {:>5.1} s{}",
            of.rank,
            format!("{}-{}", of.rows.start, of.rows.end.saturating_sub(1)),
            amount(of.shard_bytes as f64),
            100.0 * of.owned,
            amount(of.sent as f64),
            of.waited,
            of.seconds,
            if several { format!("  {}", of.host) } else { String::new() },
        ))?;
    }
    Ok(())
}

/// Bytes in a unit that a reader can take in.
fn amount(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1024.0 => format!("{bytes:.0} B"),
        bytes if bytes < 1024.0 * 1024.0 => format!("{:.1} KiB", bytes / 1024.0),
        bytes => format!("{:.1} MiB", bytes / (1024.0 * 1024.0)),
    }
}
