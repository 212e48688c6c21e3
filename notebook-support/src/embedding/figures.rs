//! The figures of VocabEmbedding.

use super::Counted;
use crate::error::Result;
use crate::plot::{
    Area, BLUE, Figure, Painted, VERMILLION, axes, legend, small_font, thousands, whole,
};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::f64::consts::TAU;

/// Width of a bar, in standard deviations.
const BAR: f64 = 0.25;
/// Number of bars.
const BARS: usize = 34;

/// Values as a histogram, against the normal density with this mean and standard deviation. `name` is
/// theirs in the legend. Values that are more than 4.25 standard deviations off are left out.
///
/// # Errors
/// What plotters reports.
pub fn histogram(values: &[f32], (mean, std): (f64, f64), name: &str) -> Result<Figure> {
    let width = BAR * std;
    let half = width * BARS as f64 / 2.0;
    let (start, end) = (mean - half, mean + half);
    let mut counts = [0u32; BARS];
    for &z in values {
        let bar = ((f64::from(z) - start) / width).floor();
        if (0.0..BARS as f64).contains(&bar) {
            counts[bar as usize] += 1;
        }
    }
    let area_of_all = values.len() as f64 * BAR;
    let density = |x: f64| {
        let z = (x - mean) / std;
        area_of_all * (-z * z / 2.0).exp() / TAU.sqrt()
    };
    let top = above(density(mean).max(counts.iter().copied().max().unwrap_or(0).into()));
    let room = if top < 1000.0 { 64 } else { 84 }; // for the labels
    let decimals = (-std.log10()).ceil().clamp(0.0, 9.0) as usize;
    Figure::paint("Are the first values of a table normal?", (820, 420), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(20)
            .x_label_area_size(46)
            .y_label_area_size(room)
            .build_cartesian_2d(start..end, 0.0..top)?;
        axes(
            chart
                .configure_mesh()
                .disable_x_mesh()
                .x_desc(format!("initial value (mean {mean}, standard deviation {std})"))
                .y_desc("values in a bar")
                .x_labels(9)
                .x_label_formatter(&|x| format!("{x:.decimals$}"))
                .y_label_formatter(&whole),
        )
        .draw()?;
        let bar = |(i, &n): (usize, &u32)| {
            let x = start + width * i as f64;
            let gap = 0.02 * std;
            Rectangle::new([(x + gap, 0.0), (x + width - gap, n.into())], BLUE.filled())
        };
        chart
            .draw_series(counts.iter().enumerate().map(bar))?
            .label(name)
            .legend(|(x, y)| Rectangle::new([(x, y - 6), (x + 16, y + 6)], BLUE.filled()));
        let line = (0..=300).map(|i| mean - half * (1.0 - f64::from(i) / 150.0));
        chart
            .draw_series(LineSeries::new(
                line.map(|x| (x, density(x))),
                VERMILLION.stroke_width(3),
            ))?
            .label("normal density")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], VERMILLION.stroke_width(3)));
        legend(chart.configure_series_labels().position(SeriesLabelPosition::UpperRight)).draw()?;
        Ok(())
    })
}

/// A round number that leaves some room above the highest bar.
fn above(highest: f64) -> f64 {
    let highest = highest.max(1.0);
    let step = 10f64.powf(highest.log10().floor()) / 5.0;
    (highest * 1.13 / step).ceil() * step
}

/// How many tokens have a bar.
const SHOWN: usize = 14;

/// The largest gradients as bars, and all of them in order. `counted` comes from [`super::by_gradient`],
/// and `unused` is the number of rows whose gradient is 0.
///
/// # Errors
/// What plotters reports.
pub fn counts(counted: &[Counted], unused: usize) -> Result<Figure> {
    let most = counted.first().map_or(1.0, |first| f64::from(first.gradient));
    Figure::paint("What is the gradient of a table when every dy is 1?", (900, 470), |area| {
        let (left, right) = area.split_horizontally(430);
        largest(&left, &counted[..counted.len().min(SHOWN)], most)?;
        all_of_them(&right, counted, most, unused)
    })
}

fn largest(area: &Area, counted: &[Counted], most: f64) -> Painted {
    let mut chart = ChartBuilder::on(area)
        .margin_left(100) // room for the tokens
        .margin_right(28)
        .x_label_area_size(46)
        .build_cartesian_2d(0.0..most * 1.14, -0.6..SHOWN as f64 - 0.4)?;
    axes(
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_desc("gradient of the token's row")
            .x_labels(6)
            .x_label_formatter(&whole),
    )
    .draw()?;
    let (left, top) = area.get_base_pixel();
    for (i, Counted { piece, gradient, .. }) in counted.iter().enumerate() {
        let y = (SHOWN - 1 - i) as f64;
        let bar = [(0.0, y - 0.34), (f64::from(*gradient), y + 0.34)];
        chart.draw_series([Rectangle::new(bar, BLUE.filled())])?;
        let (x, row) = chart.backend_coord(&(0.0, y));
        let before = small_font().pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(piece.clone(), (x - left - 10, row - top), before))?;
        let (x, row) = chart.backend_coord(&(f64::from(*gradient), y));
        let after = small_font().pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(format!("{gradient}"), (x - left + 6, row - top), after))?;
    }
    Ok(())
}

fn all_of_them(area: &Area, counted: &[Counted], most: f64, unused: usize) -> Painted {
    let mut chart = ChartBuilder::on(area)
        .margin_right(22)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(
            (0.9..counted.len() as f64 * 1.4).log_scale(),
            (0.8..most * 1.5).log_scale(),
        )?;
    axes(
        chart
            .configure_mesh()
            .x_desc("rows with a gradient, the largest first (log scale)")
            .y_desc("gradient of the row (log scale)")
            .x_label_formatter(&whole)
            .y_label_formatter(&whole),
    )
    .draw()?;
    let point = |i: usize| (i as f64 + 1.0, f64::from(counted[i].gradient));
    chart.draw_series((0..counted.len()).map(|i| Circle::new(point(i), 3, BLUE.filled())))?;
    let (left, top) = area.get_base_pixel();
    let (x, y) = chart.backend_coord(&(1.0, 1.0));
    let at = (x - left + 8, y - top - 64);
    let note = format!("{} rows are never looked up:", thousands(unused));
    area.draw(&Text::new(note, at, small_font()))?;
    area.draw(&Text::new("their gradient is exactly 0", (at.0, at.1 + 22), small_font()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_has_room_at_any_scale() {
        assert_eq!([above(408.5), above(85_000.0)], [480.0, 98_000.0]);
        let figure = histogram(&[0.01, -0.02, 0.5], (0.0, 0.02), "three values").unwrap();
        assert!(figure.svg().contains("three values") && figure.svg().contains("-0.04"));
    }
}
