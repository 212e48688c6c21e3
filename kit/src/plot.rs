//! How every figure of the course is drawn: colours, fonts, axes, and the figure itself.
//!
//! Each figure answers the question in its title. They have a white background of their own, so
//! they can be read on a dark page. Text stays text. The same numbers give the same bytes.
//!
//! Colours are those of Okabe and Ito (2008), which readers with any kind of colour vision can
//! tell apart.

use crate::error::{Error, Result};
use plotters::chart::{MeshStyle, SeriesLabelStyle};
use plotters::coord::ranged1d::Ranged;
use plotters::coord::{CoordTranslate, Shift};
use plotters::prelude::*;

/// Almost black, for text and axes.
pub const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// For grids.
pub const PALE: RGBColor = RGBColor(0xDD, 0xDD, 0xDD);
/// Okabe and Ito's blue.
pub const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xB2);
/// Okabe and Ito's orange.
pub const ORANGE: RGBColor = RGBColor(0xE6, 0x9F, 0x00);
/// Okabe and Ito's bluish green.
pub const GREEN: RGBColor = RGBColor(0x00, 0x9E, 0x73);
/// Okabe and Ito's vermillion.
pub const VERMILLION: RGBColor = RGBColor(0xD5, 0x5E, 0x00);
/// Okabe and Ito's reddish purple.
pub const PURPLE: RGBColor = RGBColor(0xCC, 0x79, 0xA7);
/// One colour for each of four ranks or groups.
pub const FOUR: [RGBColor; 4] = [BLUE, ORANGE, GREEN, PURPLE];

/// Where a figure is painted.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What plotters reports, of whatever kind.
pub type Painted = std::result::Result<(), Box<dyn std::error::Error>>;

/// Axes as all figures have them: small dark labels, and pale lines where there is a grid.
pub fn axes<'m, 'a, 'b, X: Ranged, Y: Ranged, B: DrawingBackend>(
    mesh: &'m mut MeshStyle<'a, 'b, X, Y, B>,
) -> &'m mut MeshStyle<'a, 'b, X, Y, B> {
    mesh.axis_desc_style(axis_font())
        .label_style(small_font())
        .bold_line_style(PALE)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
}

/// A legend in a pale frame.
pub fn legend<'m, 'a, 'b, B: DrawingBackend + 'a, C: CoordTranslate>(
    labels: &'m mut SeriesLabelStyle<'a, 'b, B, C>,
) -> &'m mut SeriesLabelStyle<'a, 'b, B, C> {
    labels.margin(14).label_font(small_font()).background_style(WHITE).border_style(PALE)
}

/// A figure, as SVG text. As the last value of a notebook's cell it is shown below the cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    svg: String,
}

impl Figure {
    /// Paints a figure of `size` pixels, with the question that it answers as its title.
    ///
    /// # Errors
    /// What plotters reports.
    pub fn paint(
        question: &str,
        size: (u32, u32),
        paint: impl FnOnce(&Area) -> Painted,
    ) -> Result<Self> {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let paint_all = || -> Painted {
            area.fill(&WHITE)?;
            let title = ("sans-serif", 25).into_font().color(&INK);
            paint(&area.margin(6, 6, 6, 10).titled(question, title)?)?;
            Ok(area.present()?)
        };
        paint_all().map_err(|e| Error::Figure(e.to_string()))?;
        drop(area); // the backend closes the file's tags when it goes
        // For screen readers: the question is the name of the picture.
        let svg = svg.replacen('>', &format!(" role=\"img\">\n<title>{question}</title>"), 1);
        Ok(Self { svg })
    }

    /// The SVG text.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// Called by the notebooks' kernel to show it. As a picture, not as HTML: pages that only
    /// display a notebook show pictures, and drop SVG that stands in HTML.
    pub fn evcxr_display(&self) {
        println!("EVCXR_BEGIN_CONTENT image/svg+xml\n{}\nEVCXR_END_CONTENT", self.svg);
    }
}

/// The font of axis names.
pub fn axis_font() -> TextStyle<'static> {
    ("sans-serif", 18).into_font().color(&INK)
}

/// The font of numbers and notes.
pub fn small_font() -> TextStyle<'static> {
    ("sans-serif", 16).into_font().color(&INK)
}

/// The label of an axis that counts. Between whole numbers there is none.
pub fn whole(x: &f64) -> String {
    let nearest = x.round();
    if (x - nearest).abs() > 1e-9 || nearest < 0.0 {
        return String::new();
    }
    thousands(nearest as usize)
}

/// At most `limit` numbers of `0 .. n`, evenly spread: more points would only hide each other.
pub fn spread(n: usize, limit: usize) -> impl Iterator<Item = usize> {
    let used = n.min(limit);
    (0..used).map(move |i| i * n / used)
}

/// Blue below 0, white at 0, vermillion above.
pub fn heat(x: f64) -> RGBColor {
    let RGBColor(r, g, b) = if x < 0.0 { BLUE } else { VERMILLION };
    let mix = |c: u8| (255.0 + (f64::from(c) - 255.0) * x.abs().min(1.0)).round() as u8;
    RGBColor(mix(r), mix(g), mix(b))
}

/// A square of products, white at 0, with the columns of `marked` in frames.
pub fn heat_map(
    area: &Area,
    title: &str,
    values: &[Vec<f64>],
    limit: f64,
    marked: &[usize],
) -> Painted {
    let size = values.len() as f64;
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
            .x_desc("key's position n")
            .y_desc("query's position m")
            .x_labels(5)
            .y_labels(5)
            .x_label_formatter(&whole)
            .y_label_formatter(&whole),
    )
    .draw()?;
    for (m, row) in values.iter().enumerate() {
        chart.draw_series(row.iter().enumerate().map(|(n, x)| {
            let corner = (n as f64, m as f64);
            Rectangle::new([corner, (corner.0 + 1.0, corner.1 + 1.0)], heat(x / limit).filled())
        }))?;
    }
    chart.draw_series(marked.iter().map(|&n| {
        let corner = (n as f64, 0.0);
        Rectangle::new([corner, (corner.0 + 1.0, size)], INK)
    }))?;
    Ok(())
}

/// A whole number with commas between thousands.
pub fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_whole_numbers() {
        assert_eq!([0.0, 0.5, 1200.0, -1.0].map(|x| whole(&x)), ["0", "", "1,200", ""]);
    }

    #[test]
    fn heat_at_the_ends() {
        assert_eq!(heat(0.0), WHITE);
        assert_eq!((heat(-1.0), heat(1.0)), (BLUE, VERMILLION));
    }

    #[test]
    fn spread_covers_the_range() {
        assert_eq!(spread(3, 10).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(spread(10, 5).collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
        assert_eq!(spread(0, 5).count(), 0);
    }
}
