//! The figures of the chapter on VocabEmbedding.

use super::{by_frequency, counted, normal, polar, uniforms};
use crate::error::Result;
use crate::figures::{Area, BLUE, INK, ORANGE, PALE, Painted, VERMILLION};
use crate::figures::{axes, legend, save, small_font, whole};
use crate::terminal::thousands;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::f64::consts::TAU;
use std::path::Path;

/// Which token is counted how often: the gradient of a real text when every `dy` is 1.
pub(super) fn counts(out: &Path) -> Result<()> {
    let (tokens, gradient) = counted()?;
    let ids = by_frequency(&tokens, &gradient);
    let unused = gradient.iter().filter(|g| g.to_bits() == 0).count();
    save(out, "What is the gradient of a table when every dy is 1?", (900, 470), |area| {
        let (left, right) = area.split_horizontally(430);
        most_frequent(&left, &ids)?;
        all_of_them(&right, &ids, unused)
    })
}

const SHOWN: usize = 14;

fn most_frequent(area: &Area, ids: &[(usize, String, f32)]) -> Painted {
    let most = f64::from(ids[0].2);
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
    for (i, (_, piece, count)) in ids[..SHOWN].iter().enumerate() {
        let y = (SHOWN - 1 - i) as f64;
        let bar = [(0.0, y - 0.34), (f64::from(*count), y + 0.34)];
        chart.draw_series([Rectangle::new(bar, BLUE.filled())])?;
        let (x, row) = chart.backend_coord(&(0.0, y));
        let before = small_font().pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(piece.clone(), (x - left - 10, row - top), before))?;
        let (x, row) = chart.backend_coord(&(f64::from(*count), y));
        let after = small_font().pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(format!("{count}"), (x - left + 6, row - top), after))?;
    }
    Ok(())
}

fn all_of_them(area: &Area, ids: &[(usize, String, f32)], unused: usize) -> Painted {
    let most = f64::from(ids[0].2);
    let mut chart = ChartBuilder::on(area)
        .margin_right(22)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(
            (0.9..ids.len() as f64 * 1.4).log_scale(),
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
    let point = |i: usize| (i as f64 + 1.0, f64::from(ids[i].2));
    chart.draw_series((0..ids.len()).map(|i| Circle::new(point(i), 3, BLUE.filled())))?;
    let (left, top) = area.get_base_pixel();
    let (x, y) = chart.backend_coord(&(1.0, 1.0));
    let at = (x - left + 8, y - top - 64);
    let note = format!("{} rows are never looked up:", thousands(unused));
    area.draw(&Text::new(note, at, small_font()))?;
    area.draw(&Text::new("their gradient is exactly 0", (at.0, at.1 + 22), small_font()))?;
    Ok(())
}

/// Pairs of uniforms in the square, and the same pairs as normal values.
pub(super) fn box_muller(out: &Path) -> Result<()> {
    let d = uniforms(2048);
    let pairs: Vec<(f64, f64)> =
        d.chunks(16).flat_map(|block| (0..8).map(|j| (block[j], block[j + 8]))).collect();
    let is_ring = |&&(u, _): &&(f64, f64)| (0.55..0.65).contains(&u);
    let is_wedge = |&&(_, t): &&(f64, f64)| (0.05..0.12).contains(&t);
    let paint = |area: &Area, square: bool| -> Painted {
        let (range, names) = if square {
            (0.0..1.0, ("d[j]: becomes the radius", "d[j + 8]: becomes the angle"))
        } else {
            (-4.0..4.0, ("z[j] = radius · cos(angle)", "z[j + 8] = radius · sin(angle)"))
        };
        let place = |&(u, t): &(f64, f64)| {
            let (radius, angle) = polar(u, t);
            if square { (u, t) } else { (radius * angle.cos(), radius * angle.sin()) }
        };
        let mut chart = ChartBuilder::on(area)
            .margin_right(18)
            .x_label_area_size(46)
            .y_label_area_size(60)
            .build_cartesian_2d(range.clone(), range)?;
        axes(
            chart
                .configure_mesh()
                .x_desc(names.0)
                .y_desc(names.1)
                .x_labels(5)
                .y_labels(5)
                .x_label_formatter(&|x| if square { format!("{x:.1}") } else { format!("{x:.0}") })
                .y_label_formatter(&|x| if square { format!("{x:.1}") } else { format!("{x:.0}") }),
        )
        .draw()?;
        let others = pairs.iter().filter(|pair| !is_ring(pair) && !is_wedge(pair));
        chart.draw_series(others.map(|pair| Circle::new(place(pair), 2, BLUE.filled())))?;
        let ring = pairs.iter().filter(|pair| is_ring(pair) && !is_wedge(pair));
        chart.draw_series(ring.map(|pair| TriangleMarker::new(place(pair), 5, ORANGE)))?;
        let wedge = pairs.iter().filter(|pair| is_wedge(pair));
        chart.draw_series(wedge.map(|pair| Cross::new(place(pair), 4, VERMILLION)))?;
        Ok(())
    };
    save(out, "How do two uniform numbers become two normal ones?", (900, 480), |area| {
        let (left, right) = area.split_horizontally(444);
        paint(&left, true)?;
        paint(&right, false)
    })
}

/// Rows times columns of the table in the histogram.
pub(super) const TABLE_VALUES: usize = 64 * 64;
/// Width of a bar.
const BAR: f64 = 0.25;

/// The initial values of a table against the normal density.
pub(super) fn histogram(out: &Path) -> Result<()> {
    let values = normal(TABLE_VALUES);
    let bars = 34;
    let start = -BAR * f64::from(bars) / 2.0;
    let mut counts = vec![0u32; bars as usize];
    for z in values {
        let bar = ((f64::from(z) - start) / BAR).floor();
        if (0.0..f64::from(bars)).contains(&bar) {
            counts[bar as usize] += 1;
        }
    }
    let area_of_all = TABLE_VALUES as f64 * BAR;
    let density = |x: f64| area_of_all * (-x * x / 2.0).exp() / TAU.sqrt();
    save(out, "Are the first values of a table normal?", (820, 420), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(20)
            .x_label_area_size(46)
            .y_label_area_size(64)
            .build_cartesian_2d(start..-start, 0.0..480.0)?;
        axes(
            chart
                .configure_mesh()
                .disable_x_mesh()
                .x_desc("initial value (mean 0, standard deviation 1)")
                .y_desc("values in a bar")
                .x_labels(9)
                .x_label_formatter(&|x| format!("{x:.0}"))
                .y_label_formatter(&whole),
        )
        .draw()?;
        let bar = |(i, &n): (usize, &u32)| {
            let x = start + BAR * i as f64;
            Rectangle::new([(x + 0.02, 0.0), (x + BAR - 0.02, n.into())], BLUE.filled())
        };
        chart
            .draw_series(counts.iter().enumerate().map(bar))?
            .label("a table of 64 · 64 values, seed 42")
            .legend(|(x, y)| Rectangle::new([(x, y - 6), (x + 16, y + 6)], BLUE.filled()));
        let line = (0..=300).map(|i| start * (1.0 - f64::from(i) / 150.0));
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

/// Two tables from one seed, of 32 and of 30 values.
pub(super) fn tail(out: &Path) -> Result<()> {
    let (whole_blocks, with_tail) = (normal(32), normal(30));
    save(out, "What does the tail rule change?", (900, 430), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(20)
            .x_label_area_size(46)
            .y_label_area_size(60)
            .build_cartesian_2d(-0.7..31.7, -3.2..4.0)?;
        let renewed = [(13.5, -3.2), (29.5, 4.0)];
        chart.draw_series([Rectangle::new(renewed, PALE.filled())])?;
        axes(
            chart
                .configure_mesh()
                .disable_mesh()
                .x_desc("place in the table")
                .y_desc("initial value, seed 42")
                .x_labels(17)
                .x_label_formatter(&whole)
                .y_label_formatter(&|y| format!("{y:.0}")),
        )
        .draw()?;
        let points = |values: &[f32]| -> Vec<(f64, f64)> {
            values.iter().enumerate().map(|(i, &z)| (i as f64, z.into())).collect()
        };
        let (a, b) = (points(&whole_blocks), points(&with_tail));
        chart.draw_series(a.iter().zip(&b).map(|(&a, &b)| PathElement::new([a, b], INK)))?;
        chart
            .draw_series(a.into_iter().map(|a| Circle::new(a, 5, BLUE.filled())))?
            .label("a table of 32 values")
            .legend(|(x, y)| Circle::new((x + 8, y), 5, BLUE.filled()));
        chart
            .draw_series(
                b.into_iter().map(|b| TriangleMarker::new(b, 7, VERMILLION.stroke_width(2))),
            )?
            .label("a table of 30 values")
            .legend(|(x, y)| TriangleMarker::new((x + 8, y), 7, VERMILLION));
        legend(chart.configure_series_labels().position(SeriesLabelPosition::UpperRight)).draw()?;
        let (left, top) = area.get_base_pixel();
        let (x, y) = chart.backend_coord(&(15.0, -2.75));
        let note = "drawn anew for 30 values: the last 16";
        area.draw(&Text::new(note, (x - left + 4, y - top), small_font()))?;
        Ok(())
    })
}
