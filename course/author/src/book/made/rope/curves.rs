//! The bound on products, the drift of angles, and the ratio of long calls.

use super::*;
use notebook_support::rope::averaged_bound;
use notebook_support::rope::numbers::Angles;
use quadrivium::rope::ratio_for_length;
use std::path::Path;

/// Distances that are shown.
const DISTANCES: usize = 256;
/// The distance at which the pair that is made to measure fits.
pub const FITS: usize = 100;

/// Three pairs of heads.
pub struct Pairs {
    /// The same direction in every plane.
    pub equal: [Vec<f64>; 2],
    /// The query is the key, turned back by [`FITS`] positions.
    pub made: [Vec<f64>; 2],
    /// Nothing but the slowest plane.
    pub slow: [Vec<f64>; 2],
}

/// The pairs of the figure.
///
/// # Errors
/// What the library reports.
pub fn pairs() -> Result<Pairs> {
    let theta = frequencies(1.0)?;
    let ones = vec![1.0; HEAD];
    let back = (0..HEAD).map(|j| {
        let (sin, cos) = (FITS as f64 * theta[j % PLANES]).sin_cos();
        if j < PLANES { cos + sin } else { cos - sin }
    });
    let mut slow = vec![0.0; HEAD];
    slow[PLANES - 1] = 1.0;
    Ok(Pairs {
        equal: [ones.clone(), ones.clone()],
        made: [back.collect(), ones],
        slow: [slow.clone(), slow],
    })
}

/// Left the bound, right single pairs.
///
/// # Errors
/// A file that can't be written.
pub fn decay(out: &Path) -> Result<()> {
    let theta = frequencies(1.0)?;
    let bound = averaged_bound(&theta, DISTANCES);
    let Pairs { equal, made, slow } = pairs()?;
    let curve = |pair: &[Vec<f64>; 2]| -> Vec<(f64, f64)> {
        let at = |r: usize| (r as f64, product(&theta, &pair[0], &pair[1], r as f64));
        (0..=DISTANCES).map(at).collect()
    };
    save(out, "The bound falls. Do the products?", (960, 470), |area| {
        let (left, right) = area.split_horizontally(430);
        let mut chart = ChartBuilder::on(&left)
            .caption("the averaged bound B", axis_font())
            .margin_right(20)
            .x_label_area_size(48)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..DISTANCES as f64, 0.0..34.0)?;
        axes(
            chart
                .configure_mesh()
                .x_desc("distance r")
                .y_desc("B(r)")
                .x_labels(6)
                .x_label_formatter(&whole)
                .y_label_formatter(&whole),
        )
        .draw()?;
        let points = bound.iter().enumerate().map(|(r, &y)| (r as f64, y));
        chart.draw_series(LineSeries::new(points, INK.stroke_width(2)))?;
        let mut chart = ChartBuilder::on(&right)
            .caption("single pairs", axis_font())
            .margin_right(20)
            .x_label_area_size(48)
            .y_label_area_size(66)
            .build_cartesian_2d(0.0..DISTANCES as f64, -0.4..1.5)?;
        axes(
            chart
                .configure_mesh()
                .x_desc("distance r")
                .y_desc("product / (|q| |k|)")
                .x_labels(6)
                .x_label_formatter(&whole)
                .y_label_formatter(&|y| if *y > 1.05 { String::new() } else { format!("{y:.1}") }),
        )
        .draw()?;
        line(&mut chart, curve(&slow), "the slowest plane alone", GREEN, 8)?;
        line(&mut chart, curve(&made), "made to fit at distance 100", VERMILLION, 0)?;
        line(&mut chart, curve(&equal), "q = k, all ones", BLUE, 3)?;
        let mut labels = chart.configure_series_labels();
        legend(labels.position(SeriesLabelPosition::UpperRight).legend_area_size(34)).draw()?;
        Ok(())
    })
}

/// The largest error of a cosine or sine of a large head at 16 positions from `start` on.
///
/// # Errors
/// What the library reports.
pub fn table_error(angles: Angles, start: usize) -> Result<f64> {
    Ok(notebook_support::rope::table_error(&frequencies(1.0)?, angles, start)?)
}

/// The error of tables against the position.
///
/// # Errors
/// A file that can't be written.
pub fn drift(out: &Path) -> Result<()> {
    write(out, &notebook_support::rope::drift(HEAD, BASE, 1.0)?)
}

/// `k'` against the length of a call.
///
/// # Errors
/// A file that can't be written.
pub fn ratio(out: &Path) -> Result<()> {
    const MS: usize = 1000;
    let mut stairs = vec![(0.0, 1.0), (1.0, 1.0)];
    for length in (MS + 1..=9 * MS).step_by(1) {
        let at = (length - 1) as f64 / MS as f64;
        let k = ratio_for_length(length, MS)? as f64;
        if stairs.last().is_some_and(|&(_, last)| last != k) {
            stairs.push((at, k));
        }
        stairs.push((length as f64 / MS as f64, k));
    }
    // Only the corners.
    let corners: Vec<_> = (0..stairs.len())
        .filter(|&i| {
            i == 0
                || i + 1 == stairs.len()
                || stairs[i - 1].1 != stairs[i].1
                || stairs[i + 1].1 != stairs[i].1
        })
        .map(|i| stairs[i])
        .collect();
    let straight = |factor: f64| vec![(0.0, 1.0), (1.0, 1.0), (9.0, factor * 9.0 - (factor - 1.0))];
    save(out, "Which ratio does a call of length L get?", (900, 460), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(24)
            .x_label_area_size(48)
            .y_label_area_size(66)
            .build_cartesian_2d(0.0..9.0, 0.0..18.0)?;
        axes(
            chart
                .configure_mesh()
                .x_desc("length of the call in units of ms")
                .y_desc("ratio k'")
                .x_labels(10)
                .y_labels(10)
                .x_label_formatter(&whole)
                .y_label_formatter(&whole),
        )
        .draw()?;
        line(&mut chart, straight(2.0), "transformers, factor 2", GREEN, 3)?;
        line(&mut chart, straight(1.0), "transformers, factor 1: L / ms", BLUE, 9)?;
        line(&mut chart, corners, "here: the smallest even k'", VERMILLION, 0)?;
        let mut labels = chart.configure_series_labels();
        legend(labels.position(SeriesLabelPosition::UpperLeft).legend_area_size(34)).draw()?;
        Ok(())
    })
}
