//! The figures of the tour: SVG files, drawn from numbers that a step measured or a formula gives.

pub mod clocks;
pub mod decay;
pub mod products;
pub mod rms;
pub mod shards;
pub mod wavelengths;

pub(crate) use kit::plot::{
    Area, BLUE, GREEN, INK, ORANGE, PALE, PURPLE, Painted, VERMILLION, axes, axis_font, legend,
    small_font, spread, whole,
};

use crate::error::{Error, Result};
use crate::tour::Tour;
use kit::chart::{Axis, Series};
use kit::text::printable;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use std::path::{Path, PathBuf};

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
    write(out, &kit::plot::Figure::paint(question, size, paint)?)
}

/// Writes a figure.
pub(crate) fn write(out: &Path, figure: &kit::plot::Figure) -> Result<()> {
    std::fs::write(out, figure.svg()).map_err(|e| refuse(out, e))
}

/// Draws a chart and writes it.
pub(crate) fn chart(
    out: &Path,
    question: &str,
    axes: (Axis, Axis),
    series: &[Series],
    legend_at: SeriesLabelPosition,
) -> Result<()> {
    write(out, &kit::chart::chart(question, axes, series, legend_at)?)
}

fn refuse(path: &Path, reason: impl std::fmt::Display) -> Error {
    Error::Figure { path: printable(&path.display().to_string()), reason: reason.to_string() }
}
