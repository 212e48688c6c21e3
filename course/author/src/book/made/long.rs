//! Made for the chapter "Train short, test long". The losses were recorded: `cargo course model long` wrote them as
//! `long.json`, which is kept in `book/src/measured`.

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::{Error, Result};
use crate::figures::{BLUE, GREEN, INK, ORANGE, VERMILLION, chart, whole, write};
use notebook_support::chart::{Axis, Mark, Series, tenths};
use notebook_support::long::{Line, figure};
use notebook_support::plot::thousands;
use plotters::prelude::SeriesLabelPosition;
use quadrivium::pos_emb::{RotaryFrequencies, RotaryTables, XPos, XPosConfig, Yarn};
use quadrivium::position::alibi_slopes;
use quadrivium::rope::Layout;
use quadrivium::tensor::*;
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "long-distances", draw: distances },
        Figure {
            name: "long-trained",
            draw: |out| draw(out, "Which encoding goes on past its training?", TRAINED),
        },
        Figure {
            name: "long-stretched",
            draw: |out| draw(out, "How far does a trained RoPE stretch?", STRETCHED),
        },
        Figure {
            name: "long-moved",
            draw: |out| draw(out, "Can a model change from sinusoids to RoPE?", MOVED),
        },
    ],
    listings: &[
        Listing { name: "long-trained", text: || Ok(table(TRAINED)) },
        Listing { name: "long-stretched", text: || Ok(table(STRETCHED)) },
        Listing { name: "long-moved", text: || Ok(table(MOVED)) },
    ],
    numbers,
};

const TRAINED: &[&str] = &[
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
const STRETCHED: &[&str] = &[
    "rope",
    "interpolation",
    "ntk",
    "dynamic-ntk",
    "yarn",
    "interpolation-tuned",
    "ntk-tuned",
    "yarn-tuned",
];
const MOVED: &[&str] = &["sinusoidal", "sinusoidal-on", "sinusoidal-to-rope", "rope"];

const RECORDED: &str = include_str!("../../../../../book/src/measured/long.json");

#[derive(Deserialize)]
struct Recorded {
    trained_at: usize,
    steps: usize,
    tuning_steps: usize,
    tokens: usize,
    trigram: f64,
    seeds: Vec<OfSeed>,
}

#[derive(Deserialize)]
struct OfSeed {
    encodings: Vec<Losses>,
}

#[derive(Deserialize)]
struct Losses {
    name: String,
    /// The mean loss of each band of `trained_at` positions.
    bands: Vec<f64>,
    /// Means of a quarter of a band.
    curve: Vec<f64>,
}

fn recorded() -> Recorded {
    serde_json::from_str(RECORDED).expect("a file that a run wrote")
}

impl Recorded {
    /// What was measured of one encoding, for each seed.
    fn of<'r>(&'r self, name: &'r str) -> impl Iterator<Item = &'r Losses> {
        let of = move |seed: &'r OfSeed| seed.encodings.iter().find(|losses| losses.name == name);
        self.seeds.iter().map(move |seed| of(seed).expect("every seed has every encoding"))
    }

    /// The mean over the seeds of one band, the smallest and the largest.
    fn band(&self, name: &str, nth: usize) -> Option<[f64; 3]> {
        let losses: Option<Vec<f64>> =
            self.of(name).map(|losses| losses.bands.get(nth).copied()).collect();
        let losses = losses?;
        let mean = losses.iter().sum::<f64>() / losses.len() as f64;
        let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
        Some([mean, least, losses.iter().copied().fold(f64::NEG_INFINITY, f64::max)])
    }
}

fn draw(out: &Path, question: &str, names: &[&str]) -> Result<()> {
    let recorded = recorded();
    let seeds = recorded.seeds.len() as f64;
    let line = |name: &&str| {
        let mut sums = Vec::new();
        for losses in recorded.of(name) {
            sums.resize(losses.curve.len(), 0.0);
            for (sum, loss) in sums.iter_mut().zip(&losses.curve) {
                *sum += loss;
            }
        }
        // The points of a band are in the middle of their quarters, counted from 1.
        let width = recorded.trained_at as f64 / 4.0;
        let at = |nth: usize| (nth as f64 + 0.5) * width + 0.5;
        let point = |(nth, sum): (usize, &f64)| (at(nth), sum / seeds);
        Line { name: name.to_string(), points: sums.iter().enumerate().map(point).collect() }
    };
    let lines: Vec<Line> = names.iter().map(line).collect();
    write(out, &figure(question, &lines, recorded.trained_at)?)
}

/// The score of one query and one key, as the page's widget has them, by the library's own modules.
fn distances(out: &Path) -> Result<()> {
    let score = |position: &dyn Fn(usize) -> Result<f64>| -> Result<Vec<(f64, f64)>> {
        (0..=1024).step_by(2).map(|j| Ok((j as f64, position(j)?))).collect()
    };
    let rotated = |frequencies: &RotaryFrequencies| score(&|j| rotated_score(frequencies, j));
    let plain = RotaryFrequencies::plain(HEAD_DIM, BASE).map_err(Error::from)?;
    let yarn = Yarn { factor: 8.0, max_seq_len: 128, ..Yarn::default() };
    let yarn = RotaryFrequencies::yarn(HEAD_DIM, BASE, yarn).map_err(Error::from)?;
    let xpos = XPosConfig { max_position: 1025, ..Default::default() };
    let xpos = XPos::<HEAD_DIM, Cpu>::new(&Cpu::default(), xpos).map_err(Error::from)?;
    let slope = alibi_slopes(4).map_err(Error::from)?[3];
    let with_alibi = |j: usize| Ok(rotated_score(&plain, j)? - slope * j as f64);
    chart(
        out,
        "What is a distance to an encoding?",
        (
            Axis { name: "distance", range: 0.0..1024.0, labels: 9, label: whole },
            Axis { name: "score", range: -5.5..3.0, labels: 9, label: tenths },
        ),
        &[
            Series::new("RoPE", BLUE, Mark::Line, rotated(&plain)?),
            Series::new("YaRN", GREEN, Mark::Dashed, rotated(&yarn)?),
            Series::new("xPos", ORANGE, Mark::Dotted, score(&|j| xpos_score(&xpos, j))?),
            Series::new("RoPE and ALiBi", VERMILLION, Mark::Line, score(&with_alibi)?),
            Series::new("", INK, Mark::Dotted, [(128.0, -5.5), (128.0, 3.0)]),
        ],
        SeriesLabelPosition::LowerLeft,
    )
}

const HEAD_DIM: usize = 8;
const BASE: f64 = 10_000.0;
/// The query and the key of the page's widgets.
const Q: [f32; HEAD_DIM] = [1.0, 0.9, -0.5, 0.8, 0.3, -0.6, 0.9, 0.4];
const K: [f32; HEAD_DIM] = [0.8, -0.4, 0.7, 0.9, -0.6, 0.9, 0.5, -0.2];

type One = Tensor<Rank4<1, 1, 1, HEAD_DIM>, f32, Cpu>;

fn score_of(q: One, k: One) -> f64 {
    let sum: f64 = q.as_vec().iter().zip(k.as_vec()).map(|(q, k)| f64::from(q * k)).sum();
    sum / (HEAD_DIM as f64).sqrt()
}

/// The query at position `distance`, the key at 0.
fn rotated_score(frequencies: &RotaryFrequencies, distance: usize) -> Result<f64> {
    let dev = Cpu::default();
    let turned = |x: [f32; HEAD_DIM], position: usize| {
        let (of, at) = (Const::<HEAD_DIM>, position..position + 1);
        RotaryTables::of_frequencies(&dev, of, frequencies, at, Layout::HalfSplit)
            .and_then(|tables| tables.rotate(dev.tensor([[[x]]])))
            .map_err(Error::from)
    };
    Ok(score_of(turned(Q, distance)?, turned(K, 0)?))
}

fn xpos_score(xpos: &XPos<HEAD_DIM, Cpu>, distance: usize) -> Result<f64> {
    let dev = Cpu::default();
    let q = xpos.queries(dev.tensor([[[Q]]]), distance).map_err(Error::from)?;
    let k = xpos.keys(dev.tensor([[[K]]]), 0).map_err(Error::from)?;
    Ok(score_of(q, k))
}

/// The bands that a table shows: up to once, twice, four and eight times the trained length.
const SHOWN: [usize; 4] = [0, 1, 3, 7];

/// A row for each encoding: the mean over the seeds, and how far the seeds are apart.
fn table(names: &[&str]) -> String {
    let recorded = recorded();
    let mut text = format!("{:<20}", "loss at positions");
    for nth in SHOWN {
        let (from, to) = (nth * recorded.trained_at + 1, (nth + 1) * recorded.trained_at);
        let _ = write!(text, "{:>16}", format!("{} to {}", thousands(from), thousands(to)));
    }
    text.push('\n');
    for name in names {
        let _ = write!(text, "{name:<20}");
        for nth in SHOWN {
            let cell = match recorded.band(name, nth) {
                Some([mean, least, most]) => format!("{mean:.2} ± {:.2}", (most - least) / 2.0),
                None => "-".to_string(),
            };
            let _ = write!(text, "{cell:>16}");
        }
        text.push('\n');
    }
    text
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let recorded = recorded();
    numbers.add("long/seeds", recorded.seeds.len());
    numbers.add("long/steps", recorded.steps);
    numbers.add("long/tuning-steps", recorded.tuning_steps);
    numbers.add("long/tokens", thousands(recorded.tokens));
    numbers.add("long/trigram", format!("{:.2}", recorded.trigram));
    // Each number of the text: which encoding, at which of eight bands.
    for (name, bands) in [
        ("none", &[1, 8][..]),
        ("learned", &[1]),
        ("sinusoidal", &[1, 2]),
        ("t5", &[1, 8]),
        ("alibi", &[1, 8]),
        ("kerple-log", &[1, 8]),
        ("kerple-power", &[1, 8]),
        ("xl", &[1, 8]),
        ("rope", &[1, 2, 8]),
        ("xpos", &[1, 8]),
        ("partial", &[1, 8]),
        ("rope+alibi", &[1, 8]),
        ("linear", &[1, 8]),
        ("interpolation", &[1]),
        ("ntk", &[1, 2, 8]),
        ("dynamic-ntk", &[2, 8]),
        ("yarn", &[1, 2, 8]),
        ("interpolation-tuned", &[1, 8]),
        ("ntk-tuned", &[8]),
        ("yarn-tuned", &[1, 8]),
        ("sinusoidal-on", &[1, 8]),
        ("sinusoidal-to-rope", &[1, 8]),
    ] {
        for band in bands {
            let [mean, ..] = recorded.band(name, band - 1).unwrap_or([f64::NAN; 3]);
            numbers.add(&format!("long/{name}-{band}"), format!("{mean:.2}"));
        }
    }
    Ok(())
}
