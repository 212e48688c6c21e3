//! Figure 5: the bound that is quoted when someone says "inner products decay with distance".

use super::*;
use crate::error::Error;
use crate::steps::HEAD_DIM;
use crate::steps::rope::BASE;
use notebook_support::rope::averaged_bound;
use quadrivium::rope::rotary_frequencies;

/// The title.
pub const QUESTION: &str = "Does the bound on q·k fall with distance?";

/// Distances that are shown.
const DISTANCES: usize = 512;

/// The bound with and without NTK; `ratio` is `k'`.
///
/// # Errors
/// A file that can't be written.
pub fn draw(out: &Path, ratio: usize) -> Result<()> {
    let bound = |ratio: f64| -> Result<Vec<f64>> {
        let frequencies = rotary_frequencies(HEAD_DIM, BASE, ratio).map_err(Error::from)?;
        Ok(averaged_bound(&frequencies, DISTANCES))
    };
    let (plain, slowed) = (bound(1.0)?, bound(ratio as f64)?);
    save(out, QUESTION, (900, 460), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(24)
            .x_label_area_size(48)
            .y_label_area_size(66)
            .build_cartesian_2d(0.0..DISTANCES as f64, 0.0..18.0)?;
        axes(
            chart
                .configure_mesh()
                .x_desc("distance m - n, positions")
                .y_desc("averaged bound (no unit)")
                .x_labels(9)
                .x_label_formatter(&whole)
                .y_label_formatter(&whole),
        )
        .draw()?;
        for (values, name, color) in [
            (&slowed, format!("with NTK, k' = {ratio}"), VERMILLION),
            (&plain, "without NTK".to_string(), BLUE),
        ] {
            let points = values.iter().enumerate().map(|(m, &y)| (m as f64, y));
            chart.draw_series(LineSeries::new(points, color.stroke_width(2)))?.label(name).legend(
                move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)),
            );
        }
        legend(chart.configure_series_labels().position(SeriesLabelPosition::UpperRight)).draw()?;
        Ok(())
    })
}
