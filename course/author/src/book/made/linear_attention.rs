//! Made for the chapter "What linear attention can carry".

use super::kinds::{Figure, Made, Numbers};
use crate::error::Result;
use crate::figures::{BLUE, GREEN, INK, ORANGE, VERMILLION, chart, whole};
use notebook_support::chart::{Axis, Mark, Series, tenths};
use notebook_support::plot::thousands;
use plotters::prelude::SeriesLabelPosition;
use std::path::Path;

/// All of it.
pub static MADE: Made =
    Made { figures: &[Figure { name: "carry-weights", draw: weights }], listings: &[], numbers };

const THETA: f64 = 0.3;
const GAMMA: f64 = 0.9;

fn weights(out: &Path) -> Result<()> {
    let of = |weight: fn(f64) -> f64| {
        (0..=160).map(move |t| {
            let d = f64::from(t) / 4.0;
            (d, weight(d))
        })
    };
    chart(
        out,
        "Which weights by distance does a running state carry?",
        (
            Axis { name: "distance", range: 0.0..40.0, labels: 9, label: whole },
            Axis { name: "weight", range: -1.1..3.4, labels: 10, label: tenths },
        ),
        &[
            Series::new("rotation", BLUE, Mark::Line, of(|d| (THETA * d).cos())),
            Series::new("1 + cos", GREEN, Mark::Line, of(|d| 1.0 + (THETA * d).cos())),
            Series::new("decay", VERMILLION, Mark::Dashed, of(|d| GAMMA.powf(d))),
            Series::new("both", ORANGE, Mark::Dotted, of(|d| GAMMA.powf(d) * (THETA * d).cos())),
            Series::new("1 - distance / 40", INK, Mark::Line, of(|d| 1.0 - d / 40.0)),
        ],
        SeriesLabelPosition::UpperRight,
    )
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let add = &mut |name: &str, value: String| numbers.add(&format!("carry/{name}"), value);
    // One key that agrees among 999 that are orthogonal to the query.
    add("sharpest-cos", format!("{:.4}", 2.0 / (2.0 + 999.0)));
    let softmax = 8f64.exp() / (8f64.exp() + 999.0);
    add("sharpest-exp", format!("{softmax:.2}"));
    // Where gamma^-n is past the largest f32.
    let end = |gamma: f64| (f64::from(f32::MAX).ln() / -gamma.ln()).floor() as usize;
    add("end-0.9", thousands(end(GAMMA)));
    add("end-first-head", thousands(end(1.0 - 1.0 / 32.0)));
    add("half-first-head", format!("{:.0}", 0.5f64.ln() / (1.0 - 1.0 / 32.0f64).ln()));
    let planes = 3f64.powi(4);
    add("features-4-planes", format!("{planes:.0}"));
    Ok(())
}
