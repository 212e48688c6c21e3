//! The charts of the chapter.

use super::formulas::*;
use super::{BASE, HEAD_DIM, STRETCH, TRAINED};
use crate::error::{Error, Result};
use crate::figures::{BLUE, GREEN, INK, ORANGE, PURPLE, VERMILLION, chart, whole};
use notebook_support::chart::{Axis, Mark, Series, power_of_two, tenths};
use plotters::prelude::SeriesLabelPosition;
use quadrivium::rope::rotary_frequencies;
use quadrivium::tensor::*;
use quadrivium::{VocabEmbedding, VocabEmbeddingConfig};
use std::f64::consts::TAU;
use std::path::Path;

/// Planes of a head.
const PLANES: usize = HEAD_DIM / 2;

/// Plain frequencies, or NTK's with a ratio.
pub(super) fn frequencies(ratio: f64) -> Result<Vec<f64>> {
    rotary_frequencies(HEAD_DIM, BASE, ratio).map_err(Error::from)
}

fn by_number(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    values.into_iter().enumerate().map(|(i, y)| (i as f64, y)).collect()
}

/// The most positions of the small learned table.
const ROWS: usize = 64;

/// How often each row of a table of 64 positions is seen by 16 texts of 3, 6, .., 48 tokens.
/// The table is a `VocabEmbedding` whose ids are positions; a gradient of ones counts.
pub(super) fn rows_seen() -> Result<Vec<f64>> {
    let dev = Cpu::default();
    let config = VocabEmbeddingConfig::default();
    let table = VocabEmbedding::<ROWS, 1, f32, _>::new(&dev, config).map_err(Error::from)?;
    let positions: Vec<usize> = (1..=16).flat_map(|text| 0..3 * text).collect();
    let count = positions.len();
    let ids = dev.tensor_from_vec(positions, (1usize, count)).leaky_trace();
    let rows = table.try_forward(ids).map_err(Error::from)?;
    let grads = rows.sum::<Rank0, _>().backward();
    Ok(grads.get(&table.weight).as_vec().into_iter().map(f64::from).collect())
}

pub(super) fn learned(out: &Path) -> Result<()> {
    chart(
        out,
        "Which rows of a learned table have learned anything?",
        (
            Axis { name: "position m", range: -1.0..64.0, labels: 14, label: whole },
            Axis { name: "times seen in training", range: 0.0..18.0, labels: 10, label: whole },
        ),
        &[Series::new("16 texts of 3 to 48 tokens", BLUE, Mark::Circles, by_number(rows_seen()?))],
        SeriesLabelPosition::UpperRight,
    )
}

pub(super) fn sinusoids(out: &Path) -> Result<()> {
    let wave = |j: usize| (0..=128).map(move |m| (m as f64, sinusoidal(m, HEAD_DIM)[j]));
    chart(
        out,
        "What do sinusoids add to an embedding, and where?",
        (
            Axis { name: "position m", range: 0.0..128.0, labels: 9, label: whole },
            Axis { name: "added to this element", range: -1.1..1.9, labels: 7, label: tenths },
        ),
        &[
            Series::new("element 0", BLUE, Mark::Dotted, wave(0)),
            Series::new("element 32", ORANGE, Mark::Line, wave(32)),
            Series::new("element 64", GREEN, Mark::Dashed, wave(64)),
            Series::new("element 127", VERMILLION, Mark::Circles, wave(127).step_by(8)),
        ],
        SeriesLabelPosition::UpperRight,
    )
}

pub(super) fn t5(out: &Path) -> Result<()> {
    let distances = || (1..=512usize).map(|d| (d, (d as f64).log2()));
    chart(
        out,
        "Which distances does T5 hold apart?",
        (
            Axis {
                name: "distance m - n (log scale)",
                range: 0.0..9.0,
                labels: 10,
                label: power_of_two,
            },
            Axis { name: "bucket", range: 0.0..34.0, labels: 9, label: whole },
        ),
        &[
            Series::new(
                "decoder: 32 buckets, one direction",
                BLUE,
                Mark::Line,
                distances().map(|(d, x)| (x, t5_bucket(d, 32, 128) as f64)),
            ),
            Series::new(
                "encoder: 16 buckets for each direction",
                VERMILLION,
                Mark::Dashed,
                distances().map(|(d, x)| (x, t5_bucket(d, 16, 128) as f64)),
            ),
        ],
        SeriesLabelPosition::UpperLeft,
    )
}

pub(super) fn alibi(out: &Path) -> Result<()> {
    let slopes = alibi_slopes(8);
    let marks = [(0, BLUE, Mark::Line), (2, ORANGE, Mark::Dashed), (4, GREEN, Mark::Dotted)];
    let line = |head: usize| {
        let slope = slopes[head];
        (0..=128).map(move |d| (f64::from(d), -slope * f64::from(d))).filter(|p| p.1 >= -16.0)
    };
    let mut series: Vec<Series> = marks
        .into_iter()
        .map(|(head, color, mark)| {
            let name = format!("head {}: slope 1/{}", head + 1, 1.0 / slopes[head]);
            Series::new(name, color, mark, line(head))
        })
        .collect();
    let name = format!("head 8: slope 1/{}", 1.0 / slopes[7]);
    series.push(Series::new(name, VERMILLION, Mark::Circles, line(7).step_by(8)));
    chart(
        out,
        "How much does ALiBi take away with distance?",
        (
            Axis { name: "distance m - n", range: 0.0..128.0, labels: 9, label: whole },
            Axis { name: "added to the score", range: -16.0..1.0, labels: 9, label: tenths },
        ),
        &series,
        SeriesLabelPosition::LowerMiddle,
    )
}

/// `sum_i cos(D theta_i) / (d/2)`: the product of two equal heads of ones at this distance,
/// as a part of what it is at distance 0.
pub(super) fn of_ones(frequencies: &[f64], distance: usize) -> f64 {
    let cosines = frequencies.iter().map(|theta| (distance as f64 * theta).cos());
    cosines.sum::<f64>() / frequencies.len() as f64
}

pub(super) fn rope(out: &Path) -> Result<()> {
    let theta = frequencies(1.0)?;
    let cosine = |i: usize| {
        let theta = theta[i];
        (0..=256).map(move |d| (f64::from(d), (f64::from(d) * theta).cos()))
    };
    chart(
        out,
        "What does a product of two turned heads do with distance?",
        (
            Axis { name: "distance m - n", range: 0.0..256.0, labels: 9, label: whole },
            Axis { name: "part of the product at 0", range: -1.1..1.9, labels: 7, label: tenths },
        ),
        &[
            Series::new(
                "all 64 planes, heads of ones",
                BLUE,
                Mark::Line,
                (0..=256).map(|d| (d as f64, of_ones(&theta, d))),
            ),
            Series::new("plane 20 alone", ORANGE, Mark::Dotted, cosine(20)),
            Series::new("plane 32 alone", VERMILLION, Mark::Dashed, cosine(32)),
        ],
        SeriesLabelPosition::UpperRight,
    )
}

pub(super) fn interpolation(out: &Path) -> Result<()> {
    let step =
        |theta: Vec<f64>| by_number(theta.into_iter().map(f64::log10)).into_iter().step_by(3);
    chart(
        out,
        "What does position interpolation cost nearby?",
        (
            Axis { name: "plane i", range: -1.0..64.0, labels: 14, label: whole },
            Axis {
                name: "turn from one position to the next",
                range: -5.0..0.5,
                labels: 7,
                label: |x| if x.fract() == 0.0 { format!("1e{x}") } else { String::new() },
            },
        ),
        &[
            Series::new("plain", BLUE, Mark::Circles, step(frequencies(1.0)?)),
            Series::new(
                "interpolated, k = 4",
                VERMILLION,
                Mark::Triangles,
                step(interpolated(HEAD_DIM, BASE, STRETCH)?),
            ),
        ],
        SeriesLabelPosition::UpperRight,
    )
}

/// How many times slower each plane is than the plain one.
fn slower(stretched: &[f64]) -> Result<Vec<(f64, f64)>> {
    Ok(by_number(frequencies(1.0)?.iter().zip(stretched).map(|(plain, new)| plain / new)))
}

pub(super) fn ntk(out: &Path) -> Result<()> {
    chart(
        out,
        "Which planes does NTK slow down, and by how much?",
        (
            Axis { name: "plane i", range: -1.0..64.0, labels: 14, label: whole },
            Axis { name: "times slower than plain", range: 0.5..5.5, labels: 6, label: tenths },
        ),
        &[
            Series::new(
                "position interpolation, k = 4",
                VERMILLION,
                Mark::Dashed,
                slower(&interpolated(HEAD_DIM, BASE, STRETCH)?)?,
            ),
            Series::new("NTK, k = 4", BLUE, Mark::Circles, slower(&frequencies(STRETCH)?)?),
        ],
        SeriesLabelPosition::UpperLeft,
    )
}

pub(super) fn yarn_ramp(out: &Path) -> Result<()> {
    let plain = frequencies(1.0)?;
    chart(
        out,
        "Which planes does YaRN leave alone?",
        (
            Axis { name: "plane i", range: -1.0..64.0, labels: 14, label: whole },
            Axis {
                name: "kept, the share of the plain frequency",
                range: -0.05..1.25,
                labels: 7,
                label: tenths,
            },
        ),
        &[
            Series::new(
                "the paper: linear in turns",
                BLUE,
                Mark::Circles,
                by_number(plain.iter().map(|&theta| yarn_kept(theta, TRAINED))),
            ),
            Series::new(
                "the published code: linear in i",
                VERMILLION,
                Mark::Triangles,
                by_number((0..PLANES).map(|i| yarn_kept_in_code(i, HEAD_DIM, BASE, TRAINED))),
            ),
        ],
        SeriesLabelPosition::UpperRight,
    )
}

/// The first plane that does not complete a turn within the training length.
pub(super) fn first_unfinished() -> Result<usize> {
    let turns = |theta: &f64| TRAINED as f64 * theta / TAU;
    Ok(frequencies(1.0)?.iter().filter(|theta| turns(theta) > 1.0).count())
}

/// The largest angle at the end of the stretched length, by the largest of training.
pub(super) fn reach(stretched: &[f64]) -> Result<Vec<f64>> {
    let plain = frequencies(1.0)?;
    Ok(plain.iter().zip(stretched).map(|(plain, new)| STRETCH * new / plain).collect())
}

pub(super) fn phases(out: &Path) -> Result<()> {
    let edge = first_unfinished()? as f64 - 0.5;
    let line = |name: &str, color, mark, stretched: Vec<f64>| -> Result<Series> {
        Ok(Series::new(name, color, mark, by_number(reach(&stretched)?)))
    };
    let series = [
        line("plain RoPE", INK, Mark::Dotted, frequencies(1.0)?)?,
        line("NTK, k = 4", BLUE, Mark::Circles, frequencies(STRETCH)?)?,
        line("YaRN, k = 4", GREEN, Mark::Triangles, yarn(HEAD_DIM, BASE, STRETCH, TRAINED)?)?,
        line(
            "interpolation, k = 4",
            VERMILLION,
            Mark::Dashed,
            interpolated(HEAD_DIM, BASE, STRETCH)?,
        )?,
        Series::new(
            "right of it: no full turn in training",
            PURPLE,
            Mark::Line,
            [(edge, 0.0), (edge, 4.5)],
        ),
    ];
    chart(
        out,
        "At 4 times the length, who asks for angles never seen?",
        (
            Axis { name: "plane i", range: -1.0..64.0, labels: 14, label: whole },
            Axis {
                name: "largest angle / largest in training",
                range: 0.0..7.5,
                labels: 8,
                label: tenths,
            },
        ),
        &series,
        SeriesLabelPosition::UpperLeft,
    )
}

pub(super) fn biases(out: &Path) -> Result<()> {
    let theta = frequencies(1.0)?;
    let distances = || (0..=512usize).map(|d| (d, d as f64));
    let content = 4.0;
    chart(
        out,
        "What becomes of a score of 4 when the key moves away?",
        (
            Axis { name: "distance m - n", range: 0.0..512.0, labels: 9, label: whole },
            Axis { name: "score", range: -1.0..7.0, labels: 9, label: tenths },
        ),
        &[
            Series::new("no encoding", INK, Mark::Dotted, [(0.0, content), (512.0, content)]),
            Series::new(
                "ALiBi, slope 1/256",
                BLUE,
                Mark::Circles,
                distances().map(|(_, x)| (x, content - x / 256.0)).step_by(16),
            ),
            Series::new(
                "T5, with biases -bucket/10",
                GREEN,
                Mark::Dashed,
                distances().map(|(d, x)| (x, content - t5_bucket(d, 32, 128) as f64 / 10.0)),
            ),
            Series::new(
                "RoPE, heads of ones",
                VERMILLION,
                Mark::Line,
                distances().map(|(d, x)| (x, content * of_ones(&theta, d))),
            ),
        ],
        SeriesLabelPosition::UpperRight,
    )
}
