//! Figure 1: root mean square of each group, before and after the norm.

use super::*;
use crate::steps::GROUPS;
use quadrivium::GroupRmsNormConfig;

/// The title.
pub const QUESTION: &str = "Does every group leave the norm with RMS 1?";

/// `before` and `after` are `[s, g]`: the root mean square of each group.
///
/// # Errors
/// A file that can't be written.
pub fn draw(out: &Path, before: &[f64], after: &[f64]) -> Result<()> {
    save(out, QUESTION, (900, 440), |area| {
        let (left, right) = area.split_horizontally(450);
        along_the_text(&left, before, after)?;
        against_eps(&right, before, after)
    })
}

/// Left: both, along the text, on a log scale.
fn along_the_text(area: &Area, before: &[f64], after: &[f64]) -> Painted {
    let tokens = before.len() / GROUPS;
    let mut chart = ChartBuilder::on(area)
        .margin_right(14)
        .x_label_area_size(46)
        .y_label_area_size(62)
        .build_cartesian_2d(-0.5..tokens as f64 - 0.5, (0.003..3.0).log_scale())?;
    axes(
        chart
            .configure_mesh()
            .x_desc("token (position in the text)")
            .y_desc("RMS of a group (log scale)")
            .x_labels(6)
            .x_label_formatter(&whole)
            .y_label_formatter(&|y| format!("{y}")),
    )
    .draw()?;
    let chosen: Vec<usize> = spread(before.len(), 600).collect();
    let at = |i: usize| (i / GROUPS) as f64;
    chart
        .draw_series(chosen.iter().map(|&i| Circle::new((at(i), before[i]), 2, BLUE.filled())))?
        .label("before")
        .legend(|(x, y)| Circle::new((x + 8, y), 4, BLUE.filled()));
    chart
        .draw_series(chosen.iter().map(|&i| TriangleMarker::new((at(i), after[i]), 3, VERMILLION)))?
        .label("after, without gamma")
        .legend(|(x, y)| TriangleMarker::new((x + 8, y), 5, VERMILLION));
    let mut labels = chart.configure_series_labels();
    legend(labels.position(SeriesLabelPosition::Coordinate(110, 110))).draw()?;
    Ok(())
}

/// Right: after against before. All points lie on one curve, and eps bends it.
fn against_eps(area: &Area, before: &[f64], after: &[f64]) -> Painted {
    let eps = GroupRmsNormConfig::default().eps;
    let widest = before.iter().copied().fold(0.0, f64::max) * 1.1;
    let curve = |r: f64| r / (r * r + eps).sqrt();
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .x_label_area_size(46)
        .y_label_area_size(58)
        .build_cartesian_2d(0.0..widest, 0.0..1.1)?;
    axes(
        chart
            .configure_mesh()
            .x_desc("RMS of a group before")
            .y_desc("RMS after, without gamma")
            .x_labels(6)
            .x_label_formatter(&|x| format!("{x:.3}"))
            .y_label_formatter(&|y| format!("{y:.1}")),
    )
    .draw()?;
    let steps = (0..=200).map(|i| widest * f64::from(i) / 200.0);
    chart
        .draw_series(LineSeries::new(steps.map(|r| (r, curve(r))), INK.stroke_width(1)))?
        .label(format!("r / sqrt(r² + eps), eps = {eps:e}"))
        .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], INK));
    let chosen = spread(before.len(), 600);
    chart
        .draw_series(chosen.map(|i| TriangleMarker::new((before[i], after[i]), 3, VERMILLION)))?
        .label("groups of this text")
        .legend(|(x, y)| TriangleMarker::new((x + 8, y), 5, VERMILLION));
    legend(chart.configure_series_labels().position(SeriesLabelPosition::LowerRight)).draw()?;
    Ok(())
}
