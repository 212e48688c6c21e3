//! Made for the chapter "Turning RoPE's knobs". The losses were recorded: `cargo course model long --sweep ..` wrote them as
//! `sweeps.json`, which is kept in `book/src/measured`.

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::{Error, Result};
use crate::figures::{BLUE, INK, VERMILLION, chart, whole, write};
use notebook_support::chart::{Axis, Mark, Series};
use notebook_support::long::{Line, figure};
use notebook_support::plot::thousands;
use plotters::prelude::SeriesLabelPosition;
use quadrivium::pos_emb::ntk_base;
use quadrivium::rope::rotary_frequencies;
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure {
            name: "sweeps-base",
            draw: |out| draw(out, "Which base goes on past the training?", BASES),
        },
        Figure {
            name: "sweeps-length",
            draw: |out| draw(out, "Does a longer training go further?", LENGTHS),
        },
        Figure { name: "sweeps-theta", draw: moved },
    ],
    listings: &[
        Listing { name: "sweeps-base", text: || Ok(table(BASES)) },
        Listing { name: "sweeps-length", text: || Ok(table(LENGTHS)) },
        Listing { name: "sweeps-theta", text: || Ok(table(&["rope", "theta", "exp-alpha"])) },
        Listing { name: "sweeps-norm", text: || Ok(table(&["rope", "qk-norm"])) },
        Listing { name: "sweeps-bias", text: || Ok(table(&["rope", "rope+t5"])) },
        Listing { name: "sweeps-moved", text: moved_text },
    ],
    numbers,
};

const BASES: &[&str] = &["base-100", "base-1000", "rope", "base-100000", "base-1000000"];
const LENGTHS: &[&str] = &["length-32", "length-64", "rope", "length-256"];
/// Of the trained models.
const BASE: f64 = 10_000.0;

const RECORDED: &str = include_str!("../../../../../book/src/measured/sweeps.json");

#[derive(Deserialize)]
struct Recorded {
    trained_at: usize,
    steps: usize,
    tokens: usize,
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
    /// The frequencies of each block, if they were trained.
    #[serde(default)]
    theta: Vec<Vec<f64>>,
}

fn recorded() -> Recorded {
    serde_json::from_str(RECORDED).expect("a file that a run wrote")
}

impl Recorded {
    /// What was measured of one model, for each seed.
    fn of<'r>(&'r self, name: &'r str) -> impl Iterator<Item = &'r Losses> {
        let of = move |seed: &'r OfSeed| seed.encodings.iter().find(|losses| losses.name == name);
        self.seeds.iter().map(move |seed| of(seed).expect("every seed has every model"))
    }

    /// The mean over the seeds of one band, and half the distance between the smallest and the largest.
    fn band(&self, name: &str, nth: usize) -> [f64; 2] {
        let losses: Vec<f64> = self.of(name).map(|losses| losses.bands[nth]).collect();
        spread(&losses)
    }

    /// The size of the factor by which each plane was changed, the median over blocks, for each seed.
    fn factors(&self, name: &str) -> Vec<Vec<f64>> {
        let of_seed = |losses: &Losses| {
            let plain = plain(2 * losses.theta[0].len());
            let factor = |(plane, plain): (usize, &f64)| {
                let mut all: Vec<f64> =
                    losses.theta.iter().map(|theta| (theta[plane] / plain).abs()).collect();
                all.sort_by(f64::total_cmp);
                (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0
            };
            plain.iter().enumerate().map(factor).collect()
        };
        self.of(name).map(of_seed).collect()
    }
}

fn spread(values: &[f64]) -> [f64; 2] {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    [mean, (values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least) / 2.0]
}

fn plain(hd: usize) -> Vec<f64> {
    rotary_frequencies(hd, BASE, 1.0).expect("an even head")
}

fn draw(out: &Path, question: &str, names: &[&str]) -> Result<()> {
    let recorded = recorded();
    let line = |name: &&str| {
        let curves: Vec<&Losses> = recorded.of(name).collect();
        let width = recorded.trained_at as f64 / 4.0;
        let point = |nth: usize| {
            let losses: Vec<f64> = curves.iter().map(|losses| losses.curve[nth]).collect();
            ((nth as f64 + 0.5) * width + 0.5, spread(&losses)[0])
        };
        Line { name: shown(name), points: (0..curves[0].curve.len()).map(point).collect() }
    };
    let lines: Vec<Line> = names.iter().map(line).collect();
    write(out, &figure(question, &lines, recorded.trained_at)?)
}

/// How the pages call a model.
fn shown(name: &str) -> String {
    match name.split_once('-') {
        Some(("base", base)) => format!("base {}", thousands(base.parse().expect("a number"))),
        Some(("length", length)) => format!("trained at {length}"),
        _ if name == "rope" => "RoPE as it is".to_string(),
        _ => name.to_string(),
    }
}

/// The bands that a table shows: up to once, twice, four and eight times the trained length.
const SHOWN: [usize; 4] = [0, 1, 3, 7];

/// A row for each model: the mean over the seeds, and how far the seeds are apart.
fn table(names: &[&str]) -> String {
    let recorded = recorded();
    let mut text = format!("{:<20}", "loss at positions");
    for nth in SHOWN {
        let (from, to) = (nth * recorded.trained_at + 1, (nth + 1) * recorded.trained_at);
        let _ = write!(text, "{:>16}", format!("{} to {}", thousands(from), thousands(to)));
    }
    text.push('\n');
    for name in names {
        let _ = write!(text, "{:<20}", shown(name));
        for nth in SHOWN {
            let [mean, half] = recorded.band(name, nth);
            let _ = write!(text, "{:>16}", format!("{mean:.2} ± {half:.2}"));
        }
        text.push('\n');
    }
    text
}

/// By which factor training changed the frequency of each plane.
fn moved(out: &Path) -> Result<()> {
    let recorded = recorded();
    let series = |name: &str, label: &str, color, mark| {
        let factors = recorded.factors(name);
        let point = |plane: usize| {
            let all: Vec<f64> = factors.iter().map(|of_seed| of_seed[plane].log10()).collect();
            (plane as f64, spread(&all)[0])
        };
        Series::new(label, color, mark, (0..factors[0].len()).map(point))
    };
    chart(
        out,
        "How far does training move a frequency?",
        (
            Axis { name: "plane", range: -0.5..15.5, labels: 16, label: whole },
            Axis {
                name: "frequency after training / before",
                range: -1.0..3.0,
                labels: 5,
                label: |x| format!("{}", 10f64.powf(*x)),
            },
        ),
        &[
            series("theta", "theta trained", VERMILLION, Mark::Circles),
            series("exp-alpha", "theta exp(alpha)", BLUE, Mark::Line),
            Series::new("", INK, Mark::Dotted, [(-0.5, 0.0), (15.5, 0.0)]),
        ],
        SeriesLabelPosition::UpperLeft,
    )
}

fn moved_text() -> Result<String> {
    let recorded = recorded();
    let mut text =
        format!("{:<7}{:>14}{:>26}{:>26}\n", "plane", "theta", "trained / before", "exp(alpha)");
    let (of_theta, of_alpha) = (recorded.factors("theta"), recorded.factors("exp-alpha"));
    let plain = plain(2 * of_theta[0].len());
    for plane in [0, 1, 2, 4, 6, 8, 10, 12, 15] {
        let cell = |factors: &[Vec<f64>]| {
            let all: Vec<f64> = factors.iter().map(|of_seed| of_seed[plane]).collect();
            let [mean, half] = spread(&all);
            let digits = if mean.abs() < 100.0 { 2 } else { 0 };
            format!("{mean:.digits$} ± {half:.digits$}")
        };
        let _ = writeln!(
            text,
            "{plane:<7}{:>14.6}{:>26}{:>26}",
            plain[plane],
            cell(&of_theta),
            cell(&of_alpha)
        );
    }
    Ok(text)
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let add = &mut |name: &str, value: String| numbers.add(&format!("sweeps/{name}"), value);
    let recorded = recorded();
    add("seeds", recorded.seeds.len().to_string());
    add("steps", recorded.steps.to_string());
    add("tokens", thousands(recorded.tokens));
    for (name, bands) in [
        ("base-100", &[1, 8][..]),
        ("rope", &[1, 8]),
        ("length-32", &[1, 8]),
        ("length-256", &[1, 8]),
        ("theta", &[1, 8]),
        ("exp-alpha", &[1, 8]),
        ("qk-norm", &[1, 8]),
        ("rope+t5", &[1, 8]),
    ] {
        for band in bands {
            let [mean, _] = recorded.band(name, band - 1);
            add(&format!("{name}-{band}"), format!("{mean:.2}"));
        }
    }
    let every = |name: &str| -> Vec<f64> {
        let blocks = recorded.of(name).flat_map(|losses| losses.theta.clone());
        let factors = |block: Vec<f64>| {
            let plain = plain(2 * block.len());
            block.into_iter().zip(plain).map(|(theta, plain)| theta / plain).collect::<Vec<f64>>()
        };
        blocks.flat_map(factors).collect()
    };
    let of_theta = every("theta");
    add("frequencies", of_theta.len().to_string());
    add("backwards", of_theta.iter().filter(|factor| **factor < 0.0).count().to_string());
    let most = every("exp-alpha").into_iter().map(|factor| (factor - 1.0).abs());
    add("alpha-most", format!("{:.0}", 100.0 * most.fold(0.0, f64::max)));
    let last = recorded.factors("theta").iter().map(|of_seed| of_seed[15]).collect::<Vec<f64>>();
    add("theta-last", format!("{:.0}", spread(&last)[0]));
    let cos = 11f64.cos();
    add("cos-11", format!("{cos:.3}"));
    let refused = |e| Error::from(e);
    add("ntk-base-4", thousands(ntk_base(BASE, 128, 4.0).map_err(refused)?.round() as usize));
    add("ntk-factor", format!("{:.0}", (1_000_000.0 / BASE).powf(126.0 / 128.0)));
    Ok(())
}
