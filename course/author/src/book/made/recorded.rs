//! The losses by position that `cargo course model long` wrote, with and without `--sweep`.

use crate::error::Result;
use crate::figures::write;
use notebook_support::long::{Line, figure};
use notebook_support::plot::thousands;
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

/// The numbers of a run.
#[derive(Deserialize)]
pub struct Recorded {
    pub trained_at: usize,
    pub steps: usize,
    pub tuning_steps: usize,
    pub tokens: usize,
    pub trigram: f64,
    pub seeds: Vec<OfSeed>,
}

/// Those of a seed.
#[derive(Deserialize)]
pub struct OfSeed {
    encodings: Vec<Losses>,
}

/// Those of one model.
#[derive(Deserialize)]
pub struct Losses {
    name: String,
    /// The mean loss of each band of `trained_at` positions.
    bands: Vec<f64>,
    /// Means of a quarter of a band.
    curve: Vec<f64>,
    /// The frequencies of each block, if they were trained.
    #[serde(default)]
    pub theta: Vec<Vec<f64>>,
}

/// The bands that a table shows: up to once, twice, four and eight times the trained length.
const SHOWN: [usize; 4] = [0, 1, 3, 7];

impl Recorded {
    /// The numbers in a file of `book/src/measured`.
    pub fn read(json: &str) -> Self {
        serde_json::from_str(json).expect("a file that a run wrote")
    }

    /// What was measured of one model, for each seed.
    pub fn of<'r>(&'r self, name: &'r str) -> impl Iterator<Item = &'r Losses> {
        let of = move |seed: &'r OfSeed| seed.encodings.iter().find(|losses| losses.name == name);
        self.seeds.iter().map(move |seed| of(seed).expect("every seed has every model"))
    }

    /// The mean over the seeds of one band, and half the distance between the smallest and the largest; nothing past the
    /// end of a model's positions.
    pub fn band(&self, name: &str, nth: usize) -> Option<[f64; 2]> {
        let losses: Option<Vec<f64>> =
            self.of(name).map(|losses| losses.bands.get(nth).copied()).collect();
        losses.map(|losses| spread(&losses))
    }

    /// The curves of these models, each the mean over the seeds, under the names that `shown` gives them.
    pub fn draw(
        &self,
        out: &Path,
        question: &str,
        names: &[&str],
        shown: impl Fn(&str) -> String,
    ) -> Result<()> {
        // The points of a band are in the middle of their quarters, counted from 1.
        let width = self.trained_at as f64 / 4.0;
        let line = |name: &&str| {
            let curves: Vec<&Losses> = self.of(name).collect();
            let point = |nth: usize| {
                let losses: Vec<f64> = curves.iter().map(|losses| losses.curve[nth]).collect();
                ((nth as f64 + 0.5) * width + 0.5, spread(&losses)[0])
            };
            Line { name: shown(name), points: (0..curves[0].curve.len()).map(point).collect() }
        };
        let lines: Vec<Line> = names.iter().map(line).collect();
        write(out, &figure(question, &lines, self.trained_at)?)
    }

    /// A row for each model: the mean over the seeds, and how far the seeds are apart.
    pub fn table(&self, names: &[&str], shown: impl Fn(&str) -> String) -> String {
        let mut text = format!("{:<20}", "loss at positions");
        for nth in SHOWN {
            let (from, to) = (nth * self.trained_at + 1, (nth + 1) * self.trained_at);
            let _ = write!(text, "{:>16}", format!("{} to {}", thousands(from), thousands(to)));
        }
        text.push('\n');
        for name in names {
            let _ = write!(text, "{:<20}", shown(name));
            for nth in SHOWN {
                let cell = match self.band(name, nth) {
                    Some([mean, half]) => format!("{mean:.2} ± {half:.2}"),
                    None => "-".to_string(),
                };
                let _ = write!(text, "{cell:>16}");
            }
            text.push('\n');
        }
        text
    }
}

/// The mean, and half the distance between the smallest and the largest.
pub fn spread(values: &[f64]) -> [f64; 2] {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    [mean, (values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least) / 2.0]
}
