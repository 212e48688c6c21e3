//! Made for the chapter on more rotations.

use super::kinds::{Figure, Listing, Made, Numbers};
use crate::error::Result;
use crate::figures::write;
use contract::interface::{AxialCase, LinearCase, Sections, XPosCase};
use contract::oracle::Oracle;
use contract::rotations::museum::BUGS;
use contract::rotations::oracle::RotationsLoops;
use notebook_support::chart::{Axis, Mark, Series, chart, tenths};
use notebook_support::plot::{
    Area, BLUE, Figure as Picture, INK, Painted, VERMILLION, axes, axis_font, thousands, whole,
};
use plotters::prelude::*;
use std::fmt::Write;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "rotations-decay", draw: decay },
        Figure { name: "rotations-patches", draw: patches },
    ],
    listings: &[
        Listing { name: "rotations-axial-by-hand", text: axial_text },
        Listing { name: "rotations-linear-by-hand", text: linear_text },
    ],
    numbers,
};

const HEAD_DIM: usize = 64;
const BASE: f64 = 10_000.0;

/// The mean over the planes of what a score at this distance has of them.
fn mean(distance: usize, scale: impl Fn(usize) -> f64) -> f64 {
    let planes = HEAD_DIM / 2;
    let plane = |i: usize| scale(i) * (distance as f64 * Oracle.theta(i, planes, BASE)).cos();
    (0..planes).map(plane).sum::<f64>() / planes as f64
}

fn xpos_mean(distance: usize) -> f64 {
    mean(distance, |i| Oracle.query_scale(Oracle.zeta(i, HEAD_DIM), distance as f64 / 512.0))
}

fn decay(out: &Path) -> Result<()> {
    let distances = || (0..=64).map(|step| step * 32);
    let of = |value: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
        distances().map(|distance| (distance as f64, value(distance))).collect()
    };
    let series = [
        Series::new("RoPE", BLUE, Mark::Circles, of(&|distance| mean(distance, |_| 1.0))),
        Series::new("xPos", VERMILLION, Mark::Triangles, of(&xpos_mean)),
    ];
    let x = Axis {
        name: "distance of query and key, in positions",
        range: 0.0..2048.0,
        labels: 9,
        label: whole,
    };
    let y = Axis { name: "score, 1 at distance 0", range: -0.2..1.0, labels: 7, label: tenths };
    let question = "How does a score fade with the distance?";
    write(out, &chart(question, (x, y), &series, SeriesLabelPosition::UpperRight)?)
}

/// Patches on each side of the picture.
const SIDE: usize = 15;
/// The patch that asks, in row and column: the middle.
const MIDDLE: usize = SIDE / 2;

/// What a head of ones scores with itself, a head for each patch: the middle one with each of them.
fn grid(planes: &[usize], of: impl Fn(usize, usize) -> Vec<usize>) -> Vec<Vec<f64>> {
    let patches = SIDE * SIDE;
    let coordinates = (0..patches).flat_map(|at| of(at / SIDE, at % SIDE)).collect();
    let case = AxialCase {
        shape: [1, patches, 1, 32],
        planes: planes.to_vec(),
        sections: Sections::Anew,
        base: 100.0,
        coordinates,
        x: vec![1.0; patches * 32],
    };
    let y = Oracle.axial(&case);
    let heads: Vec<&[f64]> = y.chunks(32).collect();
    let asks = heads[MIDDLE * SIDE + MIDDLE];
    let score = |key: &[f64]| asks.iter().zip(key).map(|(q, k)| q * k).sum::<f64>() / 32.0;
    let scores: Vec<f64> = heads.iter().map(|key| score(key)).collect();
    scores.chunks(SIDE).map(<[f64]>::to_vec).collect()
}

fn by_rows_and_columns() -> Vec<Vec<f64>> {
    grid(&[8, 8], |row, column| vec![row, column])
}

fn by_number() -> Vec<Vec<f64>> {
    grid(&[16], |row, column| vec![row * SIDE + column])
}

/// White at 0, vermillion above, blue below.
fn shade(x: f64) -> RGBColor {
    let RGBColor(r, g, b) = if x < 0.0 { BLUE } else { VERMILLION };
    let mix = |c: u8| (255.0 + (f64::from(c) - 255.0) * x.abs().min(1.0)).round() as u8;
    RGBColor(mix(r), mix(g), mix(b))
}

fn picture(area: &Area, title: &str, scores: &[Vec<f64>]) -> Painted {
    let size = SIDE as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(title, axis_font())
        .margin_right(10)
        .x_label_area_size(46)
        .y_label_area_size(58)
        .build_cartesian_2d(0.0..size, size..0.0)?;
    axes(
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc("column")
            .y_desc("row")
            .x_labels(4)
            .y_labels(4)
            .x_label_formatter(&whole)
            .y_label_formatter(&whole),
    )
    .draw()?;
    for (row, scores) in scores.iter().enumerate() {
        chart.draw_series(scores.iter().enumerate().map(|(column, score)| {
            let corner = (column as f64, row as f64);
            Rectangle::new([corner, (corner.0 + 1.0, corner.1 + 1.0)], shade(*score).filled())
        }))?;
    }
    let corner = (MIDDLE as f64, MIDDLE as f64);
    chart.draw_series([Rectangle::new([corner, (corner.0 + 1.0, corner.1 + 1.0)], INK)])?;
    Ok(())
}

/// Which shade is which score.
fn scale(area: &Area) -> Painted {
    // 41 shades, 8 high each.
    let place = |step: i32| 60 + 8 * step;
    for step in 0..=40 {
        let corners = [(10, place(step)), (28, place(step + 1))];
        area.draw(&Rectangle::new(corners, shade(1.0 - f64::from(step) / 20.0).filled()))?;
    }
    for step in [0, 10, 20, 30, 40] {
        let score = format!("{:.1}", 1.0 - f64::from(step) / 20.0);
        area.draw(&Text::new(score, (34, place(step) - 2), axis_font()))?;
    }
    area.draw(&Text::new("score", (10, 36), axis_font()))?;
    Ok(())
}

fn patches(out: &Path) -> Result<()> {
    let question = "Which patches are near to the one in the frame?";
    let maps =
        [("by row and column", by_rows_and_columns()), ("by the number of the patch", by_number())];
    let painted = Picture::paint(question, (980, 470), |area| {
        let (maps_area, bar) = area.split_horizontally(900);
        let (left, right) = maps_area.split_horizontally(450);
        scale(&bar)?;
        for (area, (title, scores)) in [left, right].iter().zip(&maps) {
            picture(area, title, scores)?;
        }
        Ok(())
    })?;
    write(out, &painted)
}

/// A head of 8 at row 3, column 5, with base 100.
fn axial_text() -> Result<String> {
    let mut text = String::from(
        "plane  coordinate   frequency, each section   one list   angle, each section\n",
    );
    let case = |sections| AxialCase {
        shape: [1, 1, 1, 8],
        planes: vec![2, 2],
        sections,
        base: 100.0,
        coordinates: vec![3, 5],
        x: vec![0.0; 8],
    };
    let (anew, list) = (case(Sections::Anew), case(Sections::OneList));
    for plane in 0..4 {
        let axis = Oracle.axis(&anew, plane);
        let name = ["row 3", "column 5"][axis];
        let (each, one) = (Oracle.frequency(&anew, plane), Oracle.frequency(&list, plane));
        let angle = Oracle.axial_angle(&anew, 0, plane);
        let _ = writeln!(text, "{plane:5}  {name:10} {each:25.3} {one:10.3} {angle:21.2}");
    }
    Ok(text)
}

/// Five equal tokens whose features are 4 in plane 0 and practically 0 elsewhere.
fn five() -> LinearCase {
    let head = [3.0, -20.0, -20.0, -20.0];
    let q: Vec<f32> = head.into_iter().cycle().take(20).collect();
    LinearCase {
        shape: [1, 5, 1, 4],
        base: Some(100.0),
        offset: 0,
        k: q.clone(),
        q,
        v: vec![1.0; 20],
    }
}

fn linear_text() -> Result<String> {
    let y = Oracle.linear(&five(), &[]).y;
    // What the museum's bug gives, that turns both.
    let bug = BUGS.iter().find(|bug| bug.id == "rotations/linear-denominator-turned");
    let both = bug.and_then(|bug| (bug.implementation)().linear(&five()).ok()).unwrap_or_default();
    let mut text = String::from("m   turned sum   plain sum      y   if both were turned\n");
    for (m, (y, both)) in y.chunks(4).zip(both.chunks(4)).enumerate() {
        let plain = 16.0 * (m + 1) as f64;
        let (y, turned, both) = (y[0], y[0] * plain, both[0]);
        let _ = writeln!(text, "{m}  {turned:11.2} {plain:11.1} {y:6.3} {both:21.3}");
    }
    Ok(text)
}

fn numbers(numbers: &mut Numbers) -> Result<()> {
    let mut add = |name: &str, value: String| numbers.add(&format!("rotations/{name}"), value);
    add("zeta-first", format!("{:.3}", Oracle.zeta(0, HEAD_DIM)));
    add("zeta-last", format!("{:.3}", Oracle.zeta(HEAD_DIM / 2 - 1, HEAD_DIM)));
    add("rope-at-1024", format!("{:.2}", mean(1024, |_| 1.0)));
    add("xpos-at-1024", format!("{:.2}", xpos_mean(1024)));
    // The first plane of a key far from its center.
    let far = |offset| XPosCase {
        shape: [1, 1, 1, HEAD_DIM],
        base: BASE,
        scale_base: 512.0,
        center: 0,
        offset,
        q: Vec::new(),
        k: Vec::new(),
    };
    let grown = Oracle.key_scale(Oracle.zeta(0, HEAD_DIM), Oracle.exponent(&far(4096), 0));
    add("key-at-4096", thousands(grown.round() as usize));
    let (map, line) = (by_rows_and_columns(), by_number());
    add("patch-beside", format!("{:.2}", map[MIDDLE][MIDDLE + 1]));
    add("number-below", format!("{:.2}", line[MIDDLE + 1][MIDDLE]));
    add("number-beside", format!("{:.2}", line[MIDDLE][MIDDLE + 1]));
    let y = Oracle.linear(&five(), &[]).y;
    add("fourth", format!("{:.3}", y[12]));
    add("fifth", format!("{:.2}", y[16]).replace('-', "−"));
    let (hd, s) = (128, 4096);
    add("state-numbers", thousands(hd * hd + hd));
    add("cache-numbers", thousands(2 * s * hd));
    Ok(())
}
