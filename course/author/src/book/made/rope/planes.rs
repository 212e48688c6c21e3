//! What NTK and interpolation do to each plane.

use super::*;
use notebook_support::plot::thousands;
use std::f64::consts::TAU;
use std::path::Path;

const RATIO: f64 = 4.0;

/// Positions for one turn of each plane.
///
/// # Errors
/// A file that can't be written.
pub fn wavelengths(out: &Path) -> Result<()> {
    let (plain, ntk) = (frequencies(1.0)?, frequencies(RATIO)?);
    let waves = |theta: &[f64], slowed: f64| -> Vec<(f64, f64)> {
        theta.iter().enumerate().map(|(i, theta)| (i as f64, slowed * TAU / theta)).collect()
    };
    save(out, "How many positions does each plane need for one turn?", (900, 480), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(20)
            .x_label_area_size(48)
            .y_label_area_size(100)
            .build_cartesian_2d(-1.0..PLANES as f64, (3.0..1e6).log_scale())?;
        axes(
            chart
                .configure_mesh()
                .x_desc("plane i (0 is the fastest), head_dim 128")
                .y_desc("positions (log scale)")
                .x_labels(9)
                .x_label_formatter(&whole)
                .y_label_formatter(&whole),
        )
        .draw()?;
        let ends = vec![(-1.0, TRAINED as f64), (PLANES as f64, TRAINED as f64)];
        line(&mut chart, ends, format!("training length {}", thousands(TRAINED)), GREEN, 6)?;
        let every = |points: Vec<(f64, f64)>| points.into_iter().step_by(3);
        chart
            .draw_series(every(waves(&plain, RATIO)).map(|p| {
                EmptyElement::at(p) + Rectangle::new([(-5, -5), (5, 5)], INK.stroke_width(2))
            }))?
            .label("linear interpolation, k = 4")
            .legend(|(x, y)| {
                Rectangle::new([(x + 7, y - 5), (x + 17, y + 5)], INK.stroke_width(2))
            });
        chart
            .draw_series(every(waves(&ntk, 1.0)).map(|p| TriangleMarker::new(p, 8, VERMILLION)))?
            .label("NTK, k = 4")
            .legend(|(x, y)| TriangleMarker::new((x + 12, y), 8, VERMILLION));
        chart
            .draw_series(every(waves(&plain, 1.0)).map(|p| Circle::new(p, 4, BLUE.filled())))?
            .label("k = 1")
            .legend(|(x, y)| Circle::new((x + 12, y), 4, BLUE.filled()));
        legend(chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft)).draw()?;
        Ok(())
    })
}

/// How much slower each plane gets.
///
/// # Errors
/// A file that can't be written.
pub fn slowing(out: &Path) -> Result<()> {
    write(out, &notebook_support::rope::slowing(HEAD, BASE, &[2.0 * RATIO, RATIO])?)
}
