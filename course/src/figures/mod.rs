//! The figures: SVG files, drawn from numbers that a step measured or a formula gives.
//!
//! Each figure answers the question in its title. They have a white background of their own, so
//! they can be read on a dark page. Text stays text. The same numbers give the same bytes.
//!
//! Colours are those of Okabe and Ito (2008), which readers with any kind of colour vision can
//! tell apart.

pub mod clocks;
pub mod decay;
pub mod products;
pub mod rms;
pub mod shards;
pub mod wavelengths;

use crate::error::{Error, Result};
use crate::terminal::thousands;
use crate::text::printable;
use crate::tour::Tour;
use plotters::chart::{MeshStyle, SeriesLabelStyle};
use plotters::coord::ranged1d::Ranged;
use plotters::coord::{CoordTranslate, Shift};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use std::path::{Path, PathBuf};

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
pub(crate) fn axes<'m, 'a, 'b, X: Ranged, Y: Ranged, B: DrawingBackend>(
    mesh: &'m mut MeshStyle<'a, 'b, X, Y, B>,
) -> &'m mut MeshStyle<'a, 'b, X, Y, B> {
    mesh.axis_desc_style(axis_font())
        .label_style(small_font())
        .bold_line_style(PALE)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
}

/// A legend in a pale frame.
pub(crate) fn legend<'m, 'a, 'b, B: DrawingBackend + 'a, C: CoordTranslate>(
    labels: &'m mut SeriesLabelStyle<'a, 'b, B, C>,
) -> &'m mut SeriesLabelStyle<'a, 'b, B, C> {
    labels.margin(14).label_font(small_font()).background_style(WHITE).border_style(PALE)
}

/// Draws every figure of a tour into `folder`. Returns the files and their questions.
///
/// # Errors
/// A folder or a file that can't be written.
pub fn draw_all(folder: &Path, tour: &Tour) -> Result<Vec<(PathBuf, &'static str)>> {
    std::fs::create_dir_all(folder).map_err(|e| refuse(folder, e))?;
    let Tour { tokens, normed, heads, long, .. } = tour;
    let mut files = Vec::new();
    let mut add = |name: &str, question| {
        let file = folder.join(name);
        files.push((file.clone(), question));
        file
    };
    rms::draw(&add("rms.svg", rms::QUESTION), &normed.before, &normed.after)?;
    shards::draw(&add("shards.svg", shards::QUESTION), &tokens.ids)?;
    clocks::draw(&add("clocks.svg", clocks::QUESTION))?;
    let (trained, text) = (long.training_length, tokens.ids.len());
    let file = add("wavelengths.svg", wavelengths::QUESTION);
    wavelengths::draw(&file, long.ratio, trained, text)?;
    decay::draw(&add("decay.svg", decay::QUESTION), long.ratio)?;
    let (q, k) = (heads.q.as_vec(), heads.k.as_vec());
    let (turned_q, turned_k) = (long.turned.q.as_vec(), long.turned.k.as_vec());
    let file = add("products.svg", products::QUESTION);
    products::draw(&file, &tokens.ids, (&q, &k), (&turned_q, &turned_k))?;
    Ok(files)
}

/// Paints a figure and writes it.
pub(crate) fn save(
    out: &Path,
    question: &str,
    size: (u32, u32),
    paint: impl FnOnce(&Area) -> Painted,
) -> Result<()> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let paint_all = || -> Painted {
        area.fill(&WHITE)?;
        let title = ("sans-serif", 25).into_font().color(&INK);
        paint(&area.margin(6, 6, 6, 10).titled(question, title)?)?;
        Ok(area.present()?)
    };
    paint_all().map_err(|e| refuse(out, e))?;
    drop(area); // the backend closes the file's tags when it goes
    // For screen readers: the question is the name of the picture.
    let svg = svg.replacen('>', &format!(" role=\"img\">\n<title>{question}</title>"), 1);
    std::fs::write(out, svg).map_err(|e| refuse(out, e))
}

fn refuse(path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::Figure { path: printable(&path.display().to_string()), reason: reason.to_string() }
}

/// The font of axis names.
pub(crate) fn axis_font() -> TextStyle<'static> {
    ("sans-serif", 18).into_font().color(&INK)
}

/// The font of numbers and notes.
pub(crate) fn small_font() -> TextStyle<'static> {
    ("sans-serif", 16).into_font().color(&INK)
}

/// The label of an axis that counts. Between whole numbers there is none.
pub(crate) fn whole(x: &f64) -> String {
    let nearest = x.round();
    if (x - nearest).abs() > 1e-9 || nearest < 0.0 {
        return String::new();
    }
    thousands(nearest as usize)
}

/// At most `limit` numbers of `0 .. n`, evenly spread: more points would only hide each other.
pub(crate) fn spread(n: usize, limit: usize) -> impl Iterator<Item = usize> {
    let used = n.min(limit);
    (0..used).map(move |i| i * n / used)
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
