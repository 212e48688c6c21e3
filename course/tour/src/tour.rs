//! `cargo course tour`: one text through the embeddings, GroupRMSNorm and RoPE, in the order of a
//! Transformer.

use crate::error::{Error, Result};
use crate::figures::{self, clocks, decay, products, rms, shards, wavelengths};
use crate::finding::Finding;
use crate::show::{finding, time};
use crate::steps::heads::{self, QueriesKeys};
use crate::steps::long::{self, LongCall};
use crate::steps::norm::{self, Normed};
use crate::steps::rope::{LONGEST_TRAINING, training_length};
use crate::steps::*;
use console::{measure_text_width, style};
use indicatif::{ProgressBar, ProgressStyle};
use learner::exercise::Workspace;
use learner::terminal::Terminal;
use notebook_support::plot::thousands;
use notebook_support::text::{
    MAX_BYTES, MAX_TOKENS, TOKENIZER_IDS, Text, Tokens, printable, tokenize, visible,
};
use quadrivium::tensor::Cpu;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the tour is asked to do.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The text; the course's own prose if there is none.
    pub text: Option<PathBuf>,
    /// The folder for the figures; no figures if there is none.
    pub figures: Option<PathBuf>,
    /// Print the findings as JSON, and nothing else.
    pub json: bool,
}

/// All that the tour computed. The figures are drawn from it.
#[derive(Debug, Clone)]
pub struct Tour {
    /// The tokens of the text.
    pub tokens: Tokens,
    /// After the norm.
    pub normed: Normed,
    /// Queries and keys before they turn.
    pub heads: QueriesKeys,
    /// The call on the whole text.
    pub long: LongCall,
    /// Every invariant that was measured.
    pub findings: Vec<Finding>,
}

/// Runs the tour and prints it. Returns whether every invariant holds.
///
/// # Errors
/// A text that can't be used, a figure that can't be written, standard output that can't be
/// written.
pub fn run(options: &Options) -> Result<bool> {
    let start = Instant::now();
    let text = match &options.text {
        Some(path) => Text::read(path).map_err(Error::Text)?,
        None => own_prose()?,
    };
    let mut terminal = if options.json { Terminal::silent() } else { Terminal::stdout() };
    let tour = measure(&text, &mut terminal)?;
    if let Some(folder) = &options.figures {
        let files = draw_all(folder, &tour)?;
        terminal.heading("Figures")?;
        for (file, question) in files {
            terminal
                .line(&format!("  {}", style(printable(&file.display().to_string())).bold()))?;
            terminal.text("      ", question)?;
        }
    }
    let failed = tour.findings.iter().filter(|f| !f.holds).count();
    terminal.heading("Result")?;
    let (total, seconds) = (tour.findings.len(), time(start.elapsed()));
    let verdict = if failed == 0 {
        style(format!("All {total} invariants hold.")).green().bold()
    } else {
        style(format!("{failed} of {total} invariants do not hold.")).red().bold()
    };
    terminal.line(&format!("  {verdict} {seconds} in all."))?;
    let next = "src has the components, tests/suite their tests. The figures are SVG files: open them \
                in a browser.";
    terminal.entry("next", next)?;
    if options.json {
        let json = serde_json::to_string_pretty(&tour.findings).map_err(std::io::Error::from);
        Terminal::stdout().line(&json.map_err(learner::Error::from)?)?;
    }
    Ok(failed == 0)
}

/// The course's own prose: the pages that one reads first.
fn own_prose() -> Result<Text> {
    let workspace = Workspace::find()?;
    let [first, second] = ["README.md", "CONTRIBUTING.md"].map(|file| workspace.read(file));
    let content = format!("{}\n{}", first?, second?);
    Ok(Text { name: "the course's own prose".into(), content, cut: false })
}

/// Draws every figure of a tour into `folder`. Returns the files and their questions.
fn draw_all(folder: &Path, tour: &Tour) -> Result<Vec<(PathBuf, &'static str)>> {
    std::fs::create_dir_all(folder).map_err(|e| figures::refuse(folder, e))?;
    let Tour { tokens, normed, heads, long, .. } = tour;
    let mut files = Vec::new();
    let mut add = |name: &str, question| {
        let file = folder.join(name);
        files.push((file.clone(), question));
        file
    };
    rms::draw(&add("rms.svg", rms::QUESTION), &normed.before, &normed.after)?;
    shards::draw(&add("shards.svg", shards::QUESTION), &tokens.ids)?;
    clocks::draw(&add("clocks.svg", clocks::QUESTION))?;
    let (trained, text) = (long.training_length, tokens.ids.len());
    let file = add("wavelengths.svg", wavelengths::QUESTION);
    wavelengths::draw(&file, long.ratio, trained, text)?;
    decay::draw(&add("decay.svg", decay::QUESTION), long.ratio)?;
    let (q, k) = (heads.q.as_vec(), heads.k.as_vec());
    let (turned_q, turned_k) = (long.turned.q.as_vec(), long.turned.k.as_vec());
    let file = add("products.svg", products::QUESTION);
    products::draw(&file, &tokens.ids, (&q, &k), (&turned_q, &turned_k))?;
    Ok(files)
}

/// Takes a text through all steps, printing each as it is done.
///
/// # Errors
/// A text that can't be used; what a component or the device reports.
pub fn measure(text: &Text, terminal: &mut Terminal) -> Result<Tour> {
    let tokens = tokenize(text).map_err(Error::Text)?;
    introduce(terminal, text, &tokens)?;
    let dev = Cpu::default();
    let (tables, drawing) = draw_tables(&dev)?;
    let s = tokens.ids.len();
    let mut findings = Vec::new();

    terminal.heading(&format!("1  VocabEmbedding<{TABLE_ROWS}, {HIDDEN}>"))?;
    terminal.entry("what", "Each token id picks one row of a table. Nothing is computed.")?;
    terminal.entry("shapes", &format!("ids [1, {s}] -> x [1, {s}, {HIDDEN}]"))?;
    let embedding = embedding::run(&dev, &tables, &tokens.ids)?;
    let times = format!("; drawing the tables {}", time(drawing));
    finish(terminal, &mut findings, &embedding, &times)?;
    let x = embedding.output;

    terminal
        .heading(&format!("2  ParallelVocabEmbedding<{TABLE_ROWS}, {HIDDEN}, {WORLD_SIZE}>"))?;
    let what = format!(
        "The same table, cut into {WORLD_SIZE} shards of {} rows. Each rank looks up the ids that \
         it owns and gives zeros for the others; the sum is the embedding.",
        thousands(SHARD_ROWS)
    );
    terminal.entry("what", &what)?;
    let shapes =
        format!("ids [1, {s}] -> {WORLD_SIZE} x [1, {s}, {HIDDEN}] -> sum [1, {s}, {HIDDEN}]");
    terminal.entry("shapes", &shapes)?;
    terminal.entry("load", &load(&tokens.ids))?;
    let parallel = parallel::run(&dev, &tables, &tokens.ids, &x)?;
    finish(terminal, &mut findings, &parallel, "")?;

    terminal.heading(&format!("3  GroupRmsNorm<{HIDDEN}, {GROUP}>"))?;
    let what = format!(
        "Each token has {GROUPS} groups of {GROUP} numbers. Each group is divided by its root \
         mean square, then multiplied by gamma."
    );
    terminal.entry("what", &what)?;
    let shapes = format!("x [1, {s}, {HIDDEN}] -> y [1, {s}, {HIDDEN}]");
    terminal.entry("shapes", &shapes)?;
    let normed = norm::run(&dev, &parallel.output)?;
    terminal.entry("RMS", &range_of_rms(&normed.output))?;
    finish(terminal, &mut findings, &normed, "")?;
    let normed = normed.output;

    terminal.heading(&format!("4  NtkAwareRope<{HEAD_DIM}>, within the training length"))?;
    let (heads, projecting) = heads::run(&dev, &normed.y)?;
    let rows = training_length(s);
    let what = format!(
        "Two fixed random matrices make queries and keys. Each head has {PLANES} planes, and \
         plane i turns by m theta_i at position m. The training length is set to {rows}, half of \
         the text but at most {LONGEST_TRAINING}."
    );
    terminal.entry("what", &what)?;
    let shapes = format!(
        "y [1, {s}, {HIDDEN}] -> q, k [1, {s}, {HEADS}, {HEAD_DIM}]; turned here: the first {rows}"
    );
    terminal.entry("shapes", &shapes)?;
    let within = rope::run(&dev, &heads)?;
    let times = format!("; the matrices {}", time(projecting));
    finish(terminal, &mut findings, &within, &times)?;

    terminal.heading(&format!("5  NtkAwareRope<{HEAD_DIM}>, past the training length"))?;
    let long = long::run(&dev, &heads)?;
    explain_long_call(terminal, s, &long.output)?;
    finish(terminal, &mut findings, &long, "")?;

    Ok(Tour { tokens, normed, heads, long: long.output, findings })
}

/// The times of a step, and its findings.
fn finish<T>(
    terminal: &mut Terminal,
    findings: &mut Vec<Finding>,
    step: &Step<T>,
    more: &str,
) -> Result<()> {
    let (forward, checks) = (time(step.forward), time(step.checks));
    terminal.entry("time", &format!("forward {forward}; checks {checks}{more}"))?;
    for measured in &step.findings {
        finding(terminal, measured)?;
    }
    findings.extend(step.findings.iter().cloned());
    Ok(())
}

/// Draws the tables with a progress bar on stderr, if stderr is a terminal.
fn draw_tables(dev: &Cpu) -> Result<(embedding::Tables, Duration)> {
    let start = Instant::now();
    let bar = ProgressBar::new(embedding::DRAWN_TABLES as u64);
    if let Ok(style) = ProgressStyle::with_template("  drawing tables {bar:30} {pos}/{len}") {
        bar.set_style(style);
    }
    bar.tick();
    let tables = embedding::draw(dev, || bar.inc(1));
    bar.finish_and_clear();
    Ok((tables?, start.elapsed()))
}

fn introduce(terminal: &mut Terminal, text: &Text, tokens: &Tokens) -> Result<()> {
    let title = "Quadrivium: one text through embeddings, norm and rotation";
    terminal.line(&style(title).bold().to_string())?;
    terminal.line("")?;
    let different = tokens.ids.iter().collect::<BTreeSet<_>>().len();
    let (count, different) = (thousands(tokens.ids.len()), thousands(different));
    let name = &text.name;
    terminal.entry("text", &format!("{name}: {count} tokens ({different} different)"))?;
    if tokens.dropped > 0 || text.cut {
        let dropped = thousands(tokens.dropped);
        let more = if text.cut { " or more" } else { "" };
        let used = thousands(MAX_TOKENS);
        let mut note = format!(
            "Only the first {used} tokens are used, so that the tour stays quick. \
             {dropped}{more} are left out."
        );
        if tokens.dropped == 0 {
            let read = MAX_BYTES / 1024;
            note = format!("Only the first {read} KiB are read, so that the tour stays quick.");
        }
        terminal.entry("cut", &note)?;
    }
    let padding = TABLE_ROWS - TOKENIZER_IDS;
    let note = format!(
        "cl100k_base, {} ids. The table has {} rows, so that {WORLD_SIZE} ranks can share it; the \
         last {padding} are padding.",
        thousands(TOKENIZER_IDS),
        thousands(TABLE_ROWS)
    );
    terminal.entry("tokenizer", &note)?;
    terminal.entry("begins", &first_tokens(tokens))?;
    let note = "u = 2^-24, the rounding of one f32 operation. An invariant holds if what was \
                measured is at most its bound; the bounds count roundings.";
    Ok(terminal.entry("bounds", note)?)
}

/// The first tokens with their ids, as many as fit in two lines.
fn first_tokens(tokens: &Tokens) -> String {
    let mut out = String::new();
    for (piece, id) in tokens.pieces.iter().zip(&tokens.ids) {
        let next = format!("{}={id} ", visible(piece));
        if measure_text_width(&out) + measure_text_width(&next) > 120 {
            break;
        }
        out += &next;
    }
    out
}

fn load(ids: &[usize]) -> String {
    let share = |n: usize| 100.0 * n as f64 / ids.len() as f64;
    let ranks: Vec<String> = (parallel::load(ids).iter())
        .map(|&n| format!("{} ({:.0}%)", thousands(n), share(n)))
        .collect();
    format!(
        "tokens on ranks 0 to {}: {}. Frequent tokens have low ids, so equal shards do not mean \
         equal work.",
        WORLD_SIZE - 1,
        ranks.join(", ")
    )
}

fn range_of_rms(normed: &Normed) -> String {
    let range = |x: &[f64]| {
        let low = x.iter().copied().fold(f64::INFINITY, f64::min);
        let high = x.iter().copied().fold(0.0, f64::max);
        format!("{low:.4} to {high:.4}")
    };
    format!("before {}, after {} (without gamma)", range(&normed.before), range(&normed.after))
}

fn explain_long_call(terminal: &mut Terminal, tokens: usize, long: &LongCall) -> Result<()> {
    let LongCall { training_length, ratio, fixed, dynamic, slowest_wavelength, .. } = long;
    let just_past = &long.ratio_just_past;
    let what = format!(
        "The text has {tokens} tokens, the training length is {training_length}. The module \
         chooses k' = {ratio}, the smallest even number with {training_length} k' >= {tokens}, and \
         a larger base: every plane but the fastest turns more slowly."
    );
    terminal.entry("what", &what)?;
    let shapes = format!("q, k [1, {tokens}, {HEADS}, {HEAD_DIM}] -> the same shapes");
    terminal.entry("shapes", &shapes)?;
    let [before, after] = slowest_wavelength.map(|positions| thousands(positions.round() as usize));
    let note = format!(
        "one turn of the slowest plane took {before} positions, now {after}: {ratio} times as many"
    );
    terminal.entry("slowest", &note)?;
    for (name, [(k0, cached0), (k1, cached1)]) in [("static", fixed), ("dynamic", dynamic)] {
        let note = format!(
            "k = {k0}, {cached0} cached positions; after the call k = {k1}, {cached1} cached"
        );
        terminal.entry(name, &note)?;
    }
    if ratio != just_past {
        let note = format!(
            "Past the cache, row by row is another computation: each call chooses its own k'. The \
             row at position {training_length} alone would get k' = {just_past}, not {ratio}."
        );
        terminal.entry("caution", &note)?;
    }
    Ok(())
}
