//! Made for the chapter on absolute positions.

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::Result;
use crate::figures::{save, write};
use contract::absolute::oracle::PositionLoops;
use contract::oracle::Oracle;
use notebook_support::chart::{Axis, Mark, Series, chart};
use notebook_support::plot::{BLUE, INK, VERMILLION, axis_font, thousands};
use plotters::prelude::*;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "absolute-table", draw: heat_map },
        Figure { name: "absolute-distance", draw: by_distance },
    ],
    listings: &[Listing { name: "absolute-by-hand", text: by_hand_text }],
    numbers,
};

const BASE: f64 = 10_000.0;

/// What is shown: positions and columns.
const SHOWN: [usize; 2] = [128, 64];

/// Blue below 0, white at 0, vermillion above, in a few steps, so that equal neighbours are drawn as one.
const STEPS: f64 = 5.0;

fn colour(step: i32) -> RGBColor {
    let RGBColor(r, g, b) = if step < 0 { BLUE } else { VERMILLION };
    let part = f64::from(step.abs()) / STEPS;
    let mix = |c: u8| (255.0 + (f64::from(c) - 255.0) * part).round() as u8;
    RGBColor(mix(r), mix(g), mix(b))
}

fn heat_map(out: &Path) -> Result<()> {
    let [positions, h] = SHOWN;
    let table = Oracle.table(h, BASE, 0..positions);
    save(out, "What does a row of the table look like?", (960, 500), |area| {
        // A position is 6 wide, a column 6 high.
        let corner = |m: usize, c: usize| (110 + 6 * m as i32, 30 + 6 * c as i32);
        for c in 0..h {
            let step = |m: usize| (STEPS * table[m * h + c]).round() as i32;
            let mut first = 0;
            for m in 1..=positions {
                if m == positions || step(m) != step(first) {
                    let ((left, top), (right, bottom)) = (corner(first, c), corner(m, c + 1));
                    let place = [(left, top), (right, bottom)];
                    area.draw(&Rectangle::new(place, colour(step(first)).filled()))?;
                    first = m;
                }
            }
        }
        for m in [0, 32, 64, 96] {
            let (x, y) = corner(m, h);
            area.draw(&Text::new(m.to_string(), (x, y + 6), axis_font()))?;
        }
        for c in [0, 16, 32, 48, 63] {
            let (x, y) = corner(0, c);
            area.draw(&Text::new(c.to_string(), (x - 30, y - 4), axis_font()))?;
        }
        let (x, y) = corner(50, h);
        area.draw(&Text::new("position m", (x, y + 30), axis_font().color(&INK)))?;
        area.draw(&Text::new("column", (10, 215), axis_font().color(&INK)))?;
        Ok(())
    })
}

/// The inner product of two rows, in parts of its largest.
fn product(j: usize, h: usize) -> f64 {
    let cosine = |i| (j as f64 * Oracle.frequency(i, h, BASE)).cos();
    2.0 / h as f64 * (0..h / 2).map(cosine).sum::<f64>()
}

fn by_distance(out: &Path) -> Result<()> {
    let of = |h: usize| {
        (-100i32..=100).map(move |j| (f64::from(j), product(j.unsigned_abs() as usize, h)))
    };
    let series = [
        Series::new("h = 64", BLUE, Mark::Line, of(64)),
        Series::new("h = 8", VERMILLION, Mark::Dashed, of(8)),
    ];
    let x = Axis {
        name: "distance m − n",
        range: -100.0..100.0,
        labels: 11,
        label: |j| format!("{j:.0}"),
    };
    let y = Axis {
        name: "P[m]·P[n], divided by h/2",
        range: -0.2..1.1,
        labels: 7,
        label: |y| format!("{y:.1}"),
    };
    let question = "How alike are two rows?";
    write(out, &chart(question, (x, y), &series, SeriesLabelPosition::UpperRight)?)
}

/// Four columns, base 100: frequencies 1 and 0.1.
fn by_hand_text() -> Result<String> {
    let mut text = String::from("position    sin m    cos m   sin m/10   cos m/10\n");
    for m in [0, 1, 2, 3, 10] {
        let row = Oracle.row(m, 4, 100.0);
        let _ =
            writeln!(text, "{m:8} {:8.4} {:8.4} {:10.4} {:10.4}", row[0], row[1], row[2], row[3]);
    }
    Ok(text)
}

/// `(1, 0)` at two positions, with sinusoids of one plane.
fn score(m: f64, n: f64) -> f64 {
    1.0 + m.sin() + n.sin() + (m - n).cos()
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    // The positions of a full turn of the last pair.
    for h in [8, 512] {
        let turn = std::f64::consts::TAU * 10_000f64.powf((h - 2) as f64 / h as f64);
        numbers.add(&format!("absolute/longest-{h}"), thousands(turn.round() as usize));
    }
    numbers.add("absolute/score-0-1", format!("{:.2}", score(0.0, 1.0)));
    numbers.add("absolute/score-4-5", format!("{:.2}", score(4.0, 5.0)));
    let angle = |m: f64| (f64::from(m as f32 * 0.1f32) - m * 0.1).abs();
    numbers.add("absolute/f32-angle", format!("{:.3}", angle(999_999.0)));
    numbers.add("absolute/cos-1", format!("{:.4}", 1f64.cos()));
    numbers.add("absolute/sin-1", format!("{:.4}", 1f64.sin()));
    numbers.add("absolute/sin-2", format!("{:.4}", 2f64.sin()));
    numbers.add("absolute/product-1", format!("{:.2}", product(1, 64)));
    numbers.add("absolute/product-10", format!("{:.2}", product(10, 64)));
    Ok(())
}
