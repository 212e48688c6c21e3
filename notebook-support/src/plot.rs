//! How every figure of the course is drawn: colours, fonts, axes, and the figure itself.
//!
//! Each figure answers the question in its title. They have their own white background, so
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
/// What plotters reports, of any kind.
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
    /// display a notebook show pictures, and drop SVG that is in HTML.
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
    fn spread_covers_the_range() {
        assert_eq!(spread(3, 10).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(spread(10, 5).collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
        assert_eq!(spread(0, 5).count(), 0);
    }
}
