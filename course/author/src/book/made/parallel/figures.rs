//! The figures of the chapter on ParallelVocabEmbedding.

use super::{F16, HAND, IDS, TRAINING, part, result_mib, ring_mib, shard_mib};
use crate::error::Result;
use crate::figures::{Area, BLUE, INK, Painted, VERMILLION};
use crate::figures::{axes, legend, save, whole, write};
use notebook_support::parallel::{CELL, cell, words};
use notebook_support::text::{Text as Prose, tokenize};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use quadrivium::parallel::shard_range;
use std::path::Path;

/// World sizes on the axes.
const WORLDS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// What a cut saves in memory, and what the sum costs in traffic.
pub(super) fn memory(out: &Path) -> Result<()> {
    save(out, "What does a rank hold, and what does it send?", (900, 440), |area| {
        let (left, right) = area.split_horizontally(450);
        held(&left)?;
        sent(&right)
    })
}

/// The label of a world size on a log scale of base 2.
fn world(x: &f64) -> String {
    whole(&x.exp2())
}

fn held(area: &Area) -> Painted {
    let mut chart = ChartBuilder::on(area)
        .margin_right(16)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(-0.2..5.2, (20.0..60_000.0).log_scale())?;
    axes(
        chart
            .configure_mesh()
            .x_desc("world size w")
            .y_desc("MiB on each rank (log scale)")
            .x_labels(6)
            .x_label_formatter(&world)
            .y_label_formatter(&whole),
    )
    .draw()?;
    let points = |bytes: usize| {
        WORLDS.iter().enumerate().map(move |(i, &w)| (i as f64, shard_mib(w, bytes)))
    };
    chart.draw_series(LineSeries::new(points(TRAINING), VERMILLION.stroke_width(2)))?;
    chart
        .draw_series(points(TRAINING).map(|p| TriangleMarker::new(p, 7, VERMILLION)))?
        .label("in training: 16 bytes a weight")
        .legend(|(x, y)| TriangleMarker::new((x + 8, y), 7, VERMILLION));
    chart.draw_series(LineSeries::new(points(F16), BLUE.stroke_width(2)))?;
    chart
        .draw_series(points(F16).map(|p| Circle::new(p, 5, BLUE.filled())))?
        .label("rows alone: 2 bytes a weight")
        .legend(|(x, y)| Circle::new((x + 8, y), 5, BLUE.filled()));
    legend(chart.configure_series_labels().position(SeriesLabelPosition::UpperRight)).draw()?;
    Ok(())
}

fn sent(area: &Area) -> Painted {
    let limit = 2.0 * result_mib();
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(-0.2..5.2, 0.0..limit * 1.6)?;
    axes(
        chart
            .configure_mesh()
            .x_desc("world size w")
            .y_desc("MiB that each rank sends")
            .x_labels(6)
            .x_label_formatter(&world)
            .y_label_formatter(&whole),
    )
    .draw()?;
    let line = [(-0.2, limit), (5.2, limit)];
    chart
        .draw_series(DashedLineSeries::new(line, 6, 4, INK.into()))?
        .label("2 · b · s · e values")
        .legend(|(x, y)| {
            plotters::element::DashedPathElement::new([(x, y), (x + 16, y)], 6, 4, INK)
        });
    let points = || WORLDS.iter().enumerate().map(|(i, &w)| (i as f64, ring_mib(w)));
    chart.draw_series(LineSeries::new(points(), BLUE.stroke_width(2)))?;
    chart
        .draw_series(points().map(|p| Circle::new(p, 5, BLUE.filled())))?
        .label("2 (w - 1) / w · b · s · e values")
        .legend(|(x, y)| Circle::new((x + 8, y), 5, BLUE.filled()));
    legend(chart.configure_series_labels().position(SeriesLabelPosition::UpperRight)).draw()?;
    Ok(())
}

/// The owner of each of 12 ids, in worlds of 1, 2, 3 and 4.
pub(super) fn owners(out: &Path) -> Result<()> {
    save(out, "Which rank owns which id?", (820, 330), |area| {
        let (left, top) = (150, 40);
        words(area, (left - 16, top - 8), "id".into(), HPos::Right)?;
        for id in 0..12 {
            let x = left + id * CELL.0 + CELL.0 / 2;
            words(area, (x, top - 8), id.to_string(), HPos::Center)?;
        }
        for world_size in 1..=4usize {
            let y = top + 14 + (world_size as i32 - 1) * 60;
            let name = format!("w = {world_size}");
            words(area, (left - 16, y + CELL.1 / 2), name, HPos::Right)?;
            for rank in 0..world_size {
                for id in shard_range(12, world_size, rank)? {
                    let at = (left + id as i32 * CELL.0, y);
                    cell(area, at, rank.to_string(), Some(rank))?;
                }
            }
        }
        Ok(())
    })
}

/// What every rank gives for four tokens, and the sum.
pub(super) fn sum(out: &Path) -> Result<()> {
    let parts = (0..HAND.2).map(|rank| Ok(part(rank)?.0)).collect::<Result<Vec<_>>>()?;
    let tokens: Vec<_> =
        IDS.iter().enumerate().map(|(t, &id)| (format!("token {t}"), id)).collect();
    write(out, &notebook_support::parallel::sum(&tokens, &parts, HAND.0 / HAND.2)?)
}

/// Which rank owns which token of the course's licence.
pub(super) fn load(out: &Path) -> Result<()> {
    let tokens = tokenize(&Prose::licence())?;
    Ok(tour::figures::shards::draw(out, &tokens.ids)?)
}
