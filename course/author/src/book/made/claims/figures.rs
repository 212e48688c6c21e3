//! The charts of the chapter.

use super::*;
use crate::figures::{BLUE, GREEN, ORANGE, PURPLE, VERMILLION, chart, whole};
use notebook_support::chart::{Axis, Mark, Series, power_of_two, tenths};
use notebook_support::rope::averaged_bound;
use plotters::prelude::SeriesLabelPosition;
use std::path::Path;

pub(super) fn longest(out: &Path) -> Result<()> {
    let turns = frequencies()?.into_iter().map(|theta| TAU / theta);
    let points = turns.enumerate().map(|(i, turn)| (i as f64, turn)).skip(48);
    let across = |y: f64| [(47.0, y), (64.0, y)];
    chart(
        out,
        "How long is the longest turn?",
        (
            Axis { name: "plane i", range: 47.0..64.0, labels: 17, label: whole },
            Axis { name: "positions for one turn", range: 0.0..80_000.0, labels: 9, label: whole },
        ),
        &[
            Series::new("2 pi 10,000: no plane's", VERMILLION, Mark::Dashed, across(TAU * BASE)),
            Series::new("the last 16 planes", BLUE, Mark::Circles, points),
        ],
        SeriesLabelPosition::MiddleLeft,
    )
}

pub(super) fn coincide(out: &Path) -> Result<()> {
    let theta = frequencies()?;
    let turn = one_turn(&theta);
    let points = theta.iter().enumerate().map(|(i, &theta)| (i as f64, gap(turn, theta)));
    chart(
        out,
        "Does everything return when the slowest plane does?",
        (
            Axis { name: "plane i", range: -1.0..64.0, labels: 14, label: whole },
            Axis {
                name: "gap after 54,410 positions",
                range: -0.05..2.7,
                labels: 6,
                label: tenths,
            },
        ),
        &[Series::new("0: the same place, 2: opposite", BLUE, Mark::Circles, points)],
        SeriesLabelPosition::UpperRight,
    )
}

pub(super) fn extrapolates(out: &Path) -> Result<()> {
    let theta = frequencies()?;
    let weights = quiet_weights(&theta);
    let largest = largest_score(&theta, &weights, TRAINED, 1.0);
    let line = |slower: f64| {
        let theta = theta.clone();
        (0..=4 * TRAINED)
            .step_by(64)
            .map(move |d| (d as f64, (score(&theta, &weights, d as f64 / slower) / largest).abs()))
    };
    chart(
        out,
        "What do training's small scores say about longer texts?",
        (
            Axis { name: "distance m - n", range: 0.0..16_640.0, labels: 9, label: whole },
            Axis {
                name: "score / largest in training",
                range: 0.0..240.0,
                labels: 7,
                label: whole,
            },
        ),
        &[
            Series::new("plain RoPE", BLUE, Mark::Line, line(1.0)),
            Series::new("position interpolation, s = 4", GREEN, Mark::Dashed, line(4.0)),
            Series::new(
                "end of the training length",
                PURPLE,
                Mark::Dotted,
                [(TRAINED as f64, 0.0), (TRAINED as f64, 180.0)],
            ),
        ],
        SeriesLabelPosition::UpperLeft,
    )
}

pub(super) fn decays(out: &Path) -> Result<()> {
    let theta = frequencies()?;
    let bound = averaged_bound(&theta, 2000);
    let distances = || (0..=2000usize).step_by(4).map(|d| (d, d as f64));
    let favourite = favourite_of(1000)?;
    chart(
        out,
        "Must a product fall with distance?",
        (
            Axis { name: "distance m - n", range: 0.0..2000.0, labels: 11, label: whole },
            Axis { name: "part of the largest", range: -1.1..2.1, labels: 7, label: tenths },
        ),
        &[
            Series::new(
                "the averaged bound",
                GREEN,
                Mark::Dotted,
                distances().map(|(d, x)| (x, bound[d] / bound[0])),
            ),
            Series::new(
                "a query that prefers distance 1000",
                BLUE,
                Mark::Line,
                distances().map(|(d, x)| (x, favourite(d))),
            ),
            Series::new(
                "plane 48 alone, q = -k",
                VERMILLION,
                Mark::Dashed,
                distances().map(|(_, x)| (x, -(x * theta[48]).cos())),
            ),
        ],
        SeriesLabelPosition::UpperLeft,
    )
}

pub(super) fn one_part(out: &Path) -> Result<()> {
    let length = |turn: fn([f64; 2]) -> [f64; 2]| {
        (0..=360).step_by(4).map(move |degrees| {
            let (sin, cos) = f64::from(degrees).to_radians().sin_cos();
            let [x, y] = turn([cos, sin]);
            (f64::from(degrees), f64::hypot(x, y))
        })
    };
    chart(
        out,
        "How long is a head of length 1 after the turn?",
        (
            Axis {
                name: "direction of the head, degrees",
                range: 0.0..360.0,
                labels: 9,
                label: whole,
            },
            Axis { name: "length at position 1", range: 0.0..2.2, labels: 6, label: tenths },
        ),
        &[
            Series::new("a rotation", BLUE, Mark::Line, length(rotated)),
            Series::new("one part twice", VERMILLION, Mark::Dashed, length(one_part_twice)),
            Series::new("the minus lost", ORANGE, Mark::Dotted, length(swapped)),
        ],
        SeriesLabelPosition::UpperRight,
    )
}

/// A product of two tokens that are 3 apart, by the position of the first.
fn three_apart(place: fn([f64; 2], f64) -> [f64; 2]) -> impl Iterator<Item = (f64, f64)> {
    let (q, k) = PAIR;
    (0..40).map(move |m| {
        let (a, b) = (place(q, f64::from(m) + 3.0), place(k, f64::from(m)));
        (f64::from(m), a[0] * b[0] + a[1] * b[1])
    })
}

pub(super) fn sign(out: &Path) -> Result<()> {
    chart(
        out,
        "At distance 3, does the product know where it stands?",
        (
            Axis { name: "position of the key", range: -1.0..40.0, labels: 9, label: whole },
            Axis { name: "product", range: -3.0..1.5, labels: 6, label: tenths },
        ),
        &[
            Series::new("with the minus", BLUE, Mark::Circles, three_apart(rotate)),
            Series::new("without it", VERMILLION, Mark::Triangles, three_apart(swap)),
        ],
        SeriesLabelPosition::UpperRight,
    )
}

pub(super) fn types(out: &Path) -> Result<()> {
    let keys = || (0..=512).map(|i| 1.0 + f64::from(i) / 512.0 / 32.0);
    let label: fn(&f64) -> String = |x| format!("{x:.3}");
    chart(
        out,
        "What is left of a key that takes the query's type?",
        (
            Axis { name: "an element of the key, f32", range: 1.0..1.032, labels: 5, label },
            Axis { name: "after the cast", range: 0.998..1.04, labels: 6, label },
        ),
        &[
            Series::new("its own type", BLUE, Mark::Dashed, keys().map(|x| (x, x))),
            Series::new(
                "bf16",
                VERMILLION,
                Mark::Line,
                keys().map(|x| (x, f64::from(bf16(x as f32)))),
            ),
        ],
        SeriesLabelPosition::UpperLeft,
    )
}

pub(super) fn kronecker(out: &Path) -> Result<()> {
    let change = |encode: fn(f64, f64) -> [f64; 8]| {
        let (before, after) = (encode(5.0, 2.0), encode(5.0, 3.0));
        (0..8).map(move |i| (i as f64, (before[i] - after[i]).abs()))
    };
    chart(
        out,
        "One step to the side: which elements of a head change?",
        (
            Axis { name: "element of the head", range: -0.5..7.5, labels: 8, label: whole },
            Axis { name: "change", range: -0.05..1.2, labels: 6, label: tenths },
        ),
        &[
            Series::new(
                "direct sum: rows, then columns",
                BLUE,
                Mark::Circles,
                change(summed_turns),
            ),
            Series::new("Kronecker product", VERMILLION, Mark::Triangles, change(multiplied_turns)),
        ],
        SeriesLabelPosition::UpperLeft,
    )
}

pub(super) fn memory(out: &Path) -> Result<()> {
    let line = |bytes: fn(f64) -> f64| {
        (0..=70).map(move |i| {
            let x = 10.0 + f64::from(i) / 10.0;
            (x, bytes(2f64.powf(x)).log2())
        })
    };
    chart(
        out,
        "What do positions cost in memory?",
        (
            Axis {
                name: "length L (log scale)",
                range: 10.0..17.0,
                labels: 8,
                label: power_of_two,
            },
            Axis {
                name: "bytes (log scale)",
                range: 10.0..50.0,
                labels: 5,
                label: |x| match *x as usize {
                    10 => "1 KiB".into(),
                    20 => "1 MiB".into(),
                    30 => "1 GiB".into(),
                    40 => "1 TiB".into(),
                    _ => String::new(),
                },
            },
        ),
        &[
            Series::new(
                "bias matrix, 32 heads, f16",
                VERMILLION,
                Mark::Line,
                line(|length| bias_bytes(length, 32.0)),
            ),
            Series::new(
                "RoPE's tables, head of 128, f32",
                BLUE,
                Mark::Dashed,
                line(|length| 2.0 * length * 128.0 * 4.0),
            ),
            Series::new(
                "ALiBi as a vector for each head, f16",
                GREEN,
                Mark::Dotted,
                line(|length| 32.0 * length * 2.0),
            ),
        ],
        SeriesLabelPosition::UpperLeft,
    )
}

pub(super) fn repeat(out: &Path) -> Result<()> {
    let points = |of: fn(usize) -> usize| (0..32).map(move |head| (head as f64, of(head) as f64));
    chart(
        out,
        "Which key head does each query head meet?",
        (
            Axis { name: "query head", range: -1.0..32.0, labels: 9, label: whole },
            Axis { name: "key head", range: -0.5..10.5, labels: 12, label: whole },
        ),
        &[
            Series::new("interleaved: trained so", BLUE, Mark::Circles, points(interleaved_head)),
            Series::new("tiled", VERMILLION, Mark::Crosses, points(tiled_head)),
        ],
        SeriesLabelPosition::UpperLeft,
    )
}

pub(super) fn adds(out: &Path) -> Result<()> {
    chart(
        out,
        "The same two tokens, 3 apart: is their product the same everywhere?",
        (
            Axis { name: "position of the key", range: -1.0..40.0, labels: 9, label: whole },
            Axis { name: "product", range: -2.0..2.5, labels: 6, label: tenths },
        ),
        &[
            Series::new("turned", BLUE, Mark::Circles, three_apart(rotate)),
            Series::new("a sinusoid added", VERMILLION, Mark::Triangles, three_apart(add_sinusoid)),
        ],
        SeriesLabelPosition::UpperRight,
    )
}
