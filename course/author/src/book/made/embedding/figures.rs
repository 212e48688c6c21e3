//! The figures of the chapter on VocabEmbedding.

use super::{counted, normal, polar, uniforms};
use crate::error::Result;
use crate::figures::{Area, BLUE, INK, ORANGE, PALE, Painted, VERMILLION};
use crate::figures::{axes, legend, save, small_font, whole, write};
use notebook_support::embedding::by_gradient;
use plotters::prelude::*;
use std::path::Path;

/// Which token is counted how often: the gradient of a real text when every `dy` is 1.
pub(super) fn counts(out: &Path) -> Result<()> {
    let (tokens, gradient) = counted()?;
    let unused = gradient.iter().filter(|g| g.to_bits() == 0).count();
    write(out, &notebook_support::embedding::counts(&by_gradient(&tokens, &gradient, 1), unused)?)
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

/// The initial values of a table against the normal density.
pub(super) fn histogram(out: &Path) -> Result<()> {
    let name = "a table of 64 · 64 values, seed 42";
    write(out, &notebook_support::embedding::histogram(&normal(TABLE_VALUES), (0.0, 1.0), name)?)
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
        let note = "drawn again for 30 values: the last 16";
        area.draw(&Text::new(note, (x - left + 4, y - top), small_font()))?;
        Ok(())
    })
}
