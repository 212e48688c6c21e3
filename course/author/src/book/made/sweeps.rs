//! Made for the chapter "Turning RoPE's knobs". The losses were recorded: `cargo course model long --sweep ..` wrote them as
//! `sweeps.json`, which is kept in `book/src/measured`.

use super::kinds::{Figure, Listing, Made, Numbers};
use super::recorded::{Losses, Recorded, spread};
use crate::error::{Error, Result};
use crate::figures::{BLUE, INK, VERMILLION, chart, whole};
use notebook_support::chart::{Axis, Mark, Series};
use notebook_support::plot::thousands;
use plotters::prelude::SeriesLabelPosition;
use quadrivium::pos_emb::ntk_base;
use quadrivium::rope::rotary_frequencies;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure {
            name: "sweeps-base",
            draw: |out| recorded().draw(out, "Which base goes on past the training?", BASES, shown),
        },
        Figure {
            name: "sweeps-length",
            draw: |out| recorded().draw(out, "Does a longer training go further?", LENGTHS, shown),
        },
        Figure { name: "sweeps-theta", draw: moved },
    ],
    listings: &[
        Listing { name: "sweeps-base", text: || Ok(recorded().table(BASES, shown)) },
        Listing { name: "sweeps-length", text: || Ok(recorded().table(LENGTHS, shown)) },
        Listing {
            name: "sweeps-theta",
            text: || Ok(recorded().table(&["rope", "theta", "exp-alpha"], shown)),
        },
        Listing { name: "sweeps-norm", text: || Ok(recorded().table(&["rope", "qk-norm"], shown)) },
        Listing { name: "sweeps-bias", text: || Ok(recorded().table(&["rope", "rope+t5"], shown)) },
        Listing {
            name: "sweeps-projections",
            text: || Ok(recorded().table(&["rope", "qk-bias"], shown)),
        },
        Listing { name: "sweeps-dropout", text: || Ok(recorded().table(DROPOUT, shown)) },
        Listing { name: "sweeps-moved", text: moved_text },
    ],
    numbers,
};

const BASES: &[&str] = &["base-100", "base-1000", "rope", "base-100000", "base-1000000"];
const DROPOUT: &[&str] = &["rope", "rope-dropout", "sinusoidal", "sinusoidal-dropout"];
const LENGTHS: &[&str] = &["length-32", "length-64", "rope", "length-256"];
/// Of the trained models.
const BASE: f64 = 10_000.0;

const RECORDED: &str = include_str!("../../../../../book/src/measured/sweeps.json");

fn recorded() -> Recorded {
    Recorded::read(RECORDED)
}

/// The size of the factor by which each plane was changed, the median over blocks, for each seed.
fn factors(recorded: &Recorded, name: &str) -> Vec<Vec<f64>> {
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
    recorded.of(name).map(of_seed).collect()
}

fn plain(hd: usize) -> Vec<f64> {
    rotary_frequencies(hd, BASE, 1.0).expect("an even head")
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

/// By which factor training changed the frequency of each plane.
fn moved(out: &Path) -> Result<()> {
    let recorded = recorded();
    let series = |name: &str, label: &str, color, mark| {
        let factors = factors(&recorded, name);
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
    let (of_theta, of_alpha) = (factors(&recorded, "theta"), factors(&recorded, "exp-alpha"));
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
        ("qk-bias", &[1]),
        ("rope-dropout", &[1]),
        ("sinusoidal", &[1]),
        ("sinusoidal-dropout", &[1]),
    ] {
        for band in bands {
            let [mean, _] = recorded.band(name, band - 1).unwrap_or([f64::NAN; 2]);
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
    let last = factors(&recorded, "theta").iter().map(|of_seed| of_seed[15]).collect::<Vec<f64>>();
    add("theta-last", format!("{:.0}", spread(&last)[0]));
    let cos = 11f64.cos();
    add("cos-11", format!("{cos:.3}"));
    let refused = |e| Error::from(e);
    add("ntk-base-4", thousands(ntk_base(BASE, 128, 4.0).map_err(refused)?.round() as usize));
    add("ntk-factor", format!("{:.0}", (1_000_000.0 / BASE).powf(126.0 / 128.0)));
    Ok(())
}
