//! The figures of the tour: SVG files, drawn from numbers that a step measured or a formula gives.

pub mod clocks;
pub mod decay;
pub mod products;
pub mod rms;
pub mod shards;
pub mod wavelengths;

pub(crate) use notebook_support::plot::{
    Area, BLUE, GREEN, INK, PURPLE, Painted, VERMILLION, axes, legend, spread, whole,
};

use crate::error::{Error, Result};
use notebook_support::text::printable;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
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

/// A folder or a file that can't be written.
pub(crate) fn refuse(path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::Figure { path: printable(&path.display().to_string()), reason: reason.to_string() }
}
