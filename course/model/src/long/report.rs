//! What `cargo course model long` shows and writes.

use super::measure::{bands, curve};
use crate::corpus::mean;
use crate::error::Result;
use crate::figures;
use crate::show::Show;
use course::arguments::{MOVED, STRETCHED};
use notebook_support::long::Line;
use notebook_support::plot::thousands;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The losses of one encoding and one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// A number that belongs to the weights.
    pub weights: String,
    /// A number that belongs to the tokens of the text.
    pub text: String,
    /// The losses of its first steps. None if it is another model, asked in another way.
    pub began: Vec<f32>,
    /// Why there is no longer text, if there is none.
    pub end: Option<String>,
    /// The mean loss at each position.
    pub losses: Vec<f64>,
    /// The frequencies of each block, if they were trained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub theta: Vec<Vec<f64>>,
}

/// All that was measured.
#[derive(Debug)]
pub struct Report {
    /// The length of training.
    pub s: usize,
    /// Steps of each encoding.
    pub steps: usize,
    /// Steps of a fine-tuning.
    pub tune: usize,
    /// Tokens that each band asks about.
    pub tokens: usize,
    /// The mean loss of a 3-gram model, of these.
    pub trigram: f64,
    /// Each seed with its encodings.
    pub seeds: Vec<(u64, Vec<(String, Measured)>)>,
}

fn row(show: &mut Show, name: &str, bands: &[f64], all: usize) -> Result<()> {
    let cell = |nth: usize| bands.get(nth).map_or("-".to_string(), |loss| format!("{loss:.3}"));
    let cells: String = (0..all).map(|nth| format!("{:>7}", cell(nth))).collect();
    show.line(&format!("  {name:<20}{cells}"))
}

/// The first line of a table.
///
/// # Errors
/// Standard output can't be written.
pub fn head(show: &mut Show, what: &str, s: usize, all: usize) -> Result<()> {
    show.line("")?;
    show.line(&format!("  {what}, held-out loss at positions up to"))?;
    let cells: String = (1..=all).map(|nth| format!("{:>7}", thousands(nth * s))).collect();
    show.line(&format!("  {:<20}{cells}", ""))
}

/// A line of a table.
///
/// # Errors
/// Standard output can't be written.
pub fn line(show: &mut Show, name: &str, measured: &Measured, s: usize, all: usize) -> Result<()> {
    row(show, name, &bands(&measured.losses, s), all)
}

impl Report {
    /// The mean over the seeds at each position, of each encoding.
    fn means(&self) -> Vec<(&str, Vec<f64>)> {
        let Some((_, first)) = self.seeds.first() else { return Vec::new() };
        let mut means = Vec::new();
        for (nth, (name, measured)) in first.iter().enumerate() {
            let at = |t: usize| {
                let losses = self.seeds.iter().map(|(_, of_seed)| of_seed[nth].1.losses[t]);
                mean(&losses.collect::<Vec<_>>())
            };
            means.push((name.as_str(), (0..measured.losses.len()).map(at).collect()));
        }
        means
    }

    /// The means over several seeds, and why a line ends.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub fn show(&self, show: &mut Show, all: usize) -> Result<()> {
        if self.seeds.len() > 1 {
            head(show, &format!("mean of {} seeds", self.seeds.len()), self.s, all)?;
            for (name, losses) in self.means() {
                row(show, name, &bands(&losses, self.s), all)?;
            }
        }
        let first = self.seeds.first().into_iter().flat_map(|(_, of)| of);
        for (name, reason) in first.filter_map(|(name, m)| Some((name, m.end.as_ref()?))) {
            show.line("")?;
            show.sentence(&format!("{name} ends there: {reason}."))?;
        }
        Ok(())
    }

    /// Writes the figures: the encodings that were trained, what was made of RoPE, and of sinusoids. Returns their files.
    ///
    /// # Errors
    /// A file that can't be written.
    pub fn draw(&self, out: &Path) -> Result<Vec<std::path::PathBuf>> {
        let means = self.means();
        let lines = |wanted: &dyn Fn(&str) -> bool| -> Vec<Line> {
            let line = |(name, losses): &(&str, Vec<f64>)| Line {
                name: name.to_string(),
                points: curve(losses, self.s),
            };
            means.iter().filter(|(name, _)| wanted(name)).map(line).collect()
        };
        let stretched = |name: &str| STRETCHED.contains(&name);
        let moved = |name: &str| MOVED.contains(&name);
        let trained = lines(&|name| !stretched(name) && !moved(name));
        let gone_on = lines(&|name| moved(name) || ["sinusoidal", "rope"].contains(&name));
        let made = lines(&|name| stretched(name) || name == "rope");
        let mut written = Vec::new();
        let mut draw = |name: &str, question: &str, lines: &[Line]| -> Result<()> {
            let file = out.join(name);
            figures::write(&file, &notebook_support::long::figure(question, lines, self.s)?)?;
            written.push(file);
            Ok(())
        };
        if !trained.is_empty() {
            draw("long.svg", "Which encoding goes on past its training?", &trained)?;
        }
        if made.iter().any(|line| stretched(&line.name)) {
            draw("stretched.svg", "How far does a trained RoPE stretch?", &made)?;
        }
        if gone_on.iter().any(|line| moved(&line.name)) {
            draw("moved.svg", "Can a model change from sinusoids to RoPE?", &gone_on)?;
        }
        Ok(written)
    }

    /// All numbers, an encoding a line, losses with four digits after the point.
    pub fn json(&self) -> String {
        let list = |losses: &mut dyn Iterator<Item = f64>| {
            losses.map(|loss| format!("{loss:.4}")).collect::<Vec<_>>().join(", ")
        };
        let encoding = |(name, measured): &(String, Measured)| {
            let bands = list(&mut bands(&measured.losses, self.s).into_iter());
            let curve = list(&mut curve(&measured.losses, self.s).into_iter().map(|(_, y)| y));
            // The shortest digits that are this `f32` and no other.
            let began: Vec<String> = measured.began.iter().map(f32::to_string).collect();
            let began = began.join(", ");
            let block = |theta: &Vec<f64>| {
                let theta: Vec<String> = theta.iter().map(|theta| format!("{theta:.4e}")).collect();
                format!("[{}]", theta.join(", "))
            };
            let theta: Vec<String> = measured.theta.iter().map(block).collect();
            let theta = match theta.is_empty() {
                true => String::new(),
                false => format!(",\n          \"theta\": [{}]", theta.join(",\n            ")),
            };
            format!(
                "        {{ \"name\": \"{name}\", \"began\": [{began}], \"bands\": [{bands}],\n          \"curve\": [{curve}]{theta} }}"
            )
        };
        let seed = |(seed, encodings): &(u64, Vec<(String, Measured)>)| {
            let encodings: Vec<String> = encodings.iter().map(encoding).collect();
            let encodings = encodings.join(",\n");
            format!("    {{ \"seed\": {seed},\n      \"encodings\": [\n{encodings}\n      ] }}")
        };
        let seeds: Vec<String> = self.seeds.iter().map(seed).collect();
        let Self { s, steps, tune, tokens, trigram, .. } = self;
        format!(
            "{{\n  \"trained_at\": {s},\n  \"steps\": {steps},\n  \"tuning_steps\": {tune},\n  \"tokens\": {tokens},\n  \
             \"trigram\": {trigram:.4},\n  \"seeds\": [\n{}\n  ]\n}}\n",
            seeds.join(",\n")
        )
    }
}
