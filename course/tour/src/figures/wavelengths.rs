//! Figure 4: how many positions each plane needs for one turn, with and without NTK.

use super::*;
use crate::error::Error;
use crate::steps::rope::BASE;
use crate::steps::{HEAD_DIM, PLANES};
use notebook_support::plot::thousands;
use quadrivium::rope::rotary_frequencies;
use std::f64::consts::TAU;

/// The title.
pub const QUESTION: &str = "Which planes does NTK slow down, and by how much?";

/// `ratio` is `k'`, `trained` is `ms`, `text` is the number of tokens.
///
/// # Errors
/// A file that can't be written.
pub fn draw(out: &Path, ratio: usize, trained: usize, text: usize) -> Result<()> {
    let wavelengths = |ratio: f64| -> Result<Vec<(f64, f64)>> {
        let frequencies = rotary_frequencies(HEAD_DIM, BASE, ratio).map_err(Error::from)?;
        Ok((0..PLANES).map(|i| (i as f64, TAU / frequencies[i])).collect())
    };
    let (plain, slowed) = (wavelengths(1.0)?, wavelengths(ratio as f64)?);
    let top = slowed[PLANES - 1].1.max(text as f64) * 4.0;
    save(out, QUESTION, (900, 500), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(20)
            .x_label_area_size(48)
            .y_label_area_size(96)
            .build_cartesian_2d(-0.5..PLANES as f64 - 0.5, (1.0..top).log_scale())?;
        axes(
            chart
                .configure_mesh()
                .x_desc("plane i (0 is the fastest)")
                .y_desc("positions for one turn (log scale)")
                .x_labels(16)
                .x_label_formatter(&whole)
                .y_label_formatter(&whole),
        )
        .draw()?;
        let ends = [-0.5, PLANES as f64 - 0.5];
        for (length, name, color) in
            [(text, "length of the text", PURPLE), (trained, "training length", GREEN)]
        {
            let line = ends.map(|x| (x, length as f64));
            chart
                .draw_series(DashedLineSeries::new(line, 8, 5, color.stroke_width(2)))?
                .label(format!("{name}: {} positions", thousands(length)))
                .legend(move |(x, y)| {
                    DashedPathElement::new([(x, y), (x + 18, y)], 8, 5, color.stroke_width(2))
                });
        }
        chart
            .draw_series(slowed.iter().map(|&p| TriangleMarker::new(p, 6, VERMILLION)))?
            .label(format!("with NTK, k' = {ratio}"))
            .legend(|(x, y)| TriangleMarker::new((x + 9, y), 6, VERMILLION));
        chart
            .draw_series(plain.iter().map(|&p| Circle::new(p, 4, BLUE.filled())))?
            .label("without NTK")
            .legend(|(x, y)| Circle::new((x + 9, y), 4, BLUE.filled()));
        legend(chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft)).draw()?;
        Ok(())
    })
}
