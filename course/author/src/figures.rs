//! Figures of the book: painted, and written as SVG files.

pub(crate) use notebook_support::plot::{
    Area, BLUE, GREEN, INK, ORANGE, PALE, PURPLE, Painted, VERMILLION, axes, axis_font, legend,
    small_font, whole,
};

use crate::error::{Error, Result};
use notebook_support::chart::{Axis, Series};
use notebook_support::text::printable;
use plotters::prelude::SeriesLabelPosition;
use std::path::Path;

/// Paints a figure and writes it.
pub(crate) fn save(
    out: &Path,
    question: &str,
    size: (u32, u32),
    paint: impl FnOnce(&Area) -> Painted,
) -> Result<()> {
    write(out, &notebook_support::plot::Figure::paint(question, size, paint)?)
}

/// Writes a figure.
pub(crate) fn write(out: &Path, figure: &notebook_support::plot::Figure) -> Result<()> {
    learner::save::write(out, figure.svg()).map_err(|e| refuse(out, e))
}

/// Draws a chart and writes it.
pub(crate) fn chart(
    out: &Path,
    question: &str,
    axes: (Axis, Axis),
    series: &[Series],
    legend_at: SeriesLabelPosition,
) -> Result<()> {
    write(out, &notebook_support::chart::chart(question, axes, series, legend_at)?)
}

fn refuse(path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::File { file: printable(&path.display().to_string()), reason: reason.to_string() }
}
