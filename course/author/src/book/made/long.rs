//! Made for the chapter "Train short, test long". The losses were recorded: `cargo course model long` wrote them as
//! `long.json`, which is kept in `book/src/measured`.

use super::kinds::{Figure, Listing, Made, Numbers};
use super::recorded::Recorded;
use crate::error::{Error, Result};
use crate::figures::{BLUE, GREEN, INK, ORANGE, VERMILLION, chart, whole};
use notebook_support::chart::{Axis, Mark, Series, tenths};
use notebook_support::plot::thousands;
use plotters::prelude::SeriesLabelPosition;
use quadrivium::pos_emb::{RotaryFrequencies, RotaryTables, XPos, XPosConfig, Yarn};
use quadrivium::position::alibi_slopes;
use quadrivium::rope::Layout;
use quadrivium::tensor::*;
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
        Listing { name: "long-trained", text: || table(TRAINED) },
        Listing { name: "long-stretched", text: || table(STRETCHED) },
        Listing { name: "long-moved", text: || table(MOVED) },
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

fn recorded() -> Recorded {
    Recorded::read(RECORDED)
}

fn draw(out: &Path, question: &str, names: &[&str]) -> Result<()> {
    recorded().draw(out, question, names, str::to_string)
}

fn table(names: &[&str]) -> Result<String> {
    Ok(recorded().table(names, str::to_string))
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
            let [mean, _] = recorded.band(name, band - 1).unwrap_or([f64::NAN; 2]);
            numbers.add(&format!("long/{name}-{band}"), format!("{mean:.2}"));
        }
    }
    Ok(())
}
