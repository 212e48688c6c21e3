//! The figures of the page "Who owns which row".

use super::{ALL_REDUCES, SHARINGS, STEP, loaded, owned, sum_ms, texts};
use crate::error::Result;
use crate::figures::{Area, BLUE, GREEN, INK, Painted, VERMILLION, axes, legend, save, whole};
use notebook_support::chart::{centred, power_of_two};
use notebook_support::parallel::{CELL, cell, words};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::path::Path;

/// One for each of three ways.
const COLORS: [RGBColor; 3] = [BLUE, VERMILLION, GREEN];

/// The owner of each of 12 ids on 3 ranks, in each way.
pub(super) fn owners(out: &Path) -> Result<()> {
    save(out, "Which of three ranks owns which id?", (820, 270), |area| {
        let (left, top) = (150, 40);
        words(area, (left - 16, top - 8), "id".into(), HPos::Right)?;
        for id in 0..12 {
            let x = left + id * CELL.0 + CELL.0 / 2;
            words(area, (x, top - 8), id.to_string(), HPos::Center)?;
        }
        for (nth, (name, sharing)) in (0..).zip(SHARINGS) {
            let y = top + 14 + nth * 60;
            words(area, (left - 16, y + CELL.1 / 2), name.into(), HPos::Right)?;
            let owned = owned(sharing, 12, 3)?;
            for id in 0..12usize {
                let rank = owned.owner(id)?;
                let at = (left + id as i32 * CELL.0, y);
                cell(area, at, rank.to_string(), Some(rank))?;
            }
        }
        Ok(())
    })
}

/// Ranks of the figure of loads.
const RANKS: usize = 8;

/// The share of the tokens that each of 8 ranks owns, of both texts.
pub(super) fn load(out: &Path) -> Result<()> {
    let texts = texts();
    let names = ["this book, v = 512", "Zipf's law, v = 128,256"];
    save(out, "Which share of the tokens does each of 8 ranks own?", (900, 440), |area| {
        let (left, right) = area.split_horizontally(450);
        for ((panel, name), (_, counts)) in [left, right].iter().zip(names).zip(&texts) {
            bars(panel, name, counts)?;
        }
        Ok(())
    })
}

fn bars(area: &Area, name: &str, counts: &[u64]) -> Painted {
    let mut chart = ChartBuilder::on(area)
        .margin_right(16)
        .margin_top(30)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(-0.5..RANKS as f64 - 0.5, 0.0..100.0)?;
    axes(
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_desc("rank")
            .y_desc("tokens, %")
            .x_labels(RANKS)
            .x_label_formatter(&whole)
            .y_label_formatter(&whole),
    )
    .draw()?;
    for (nth, ((sharing, kind), color)) in SHARINGS.into_iter().zip(COLORS).enumerate() {
        let load = loaded(kind, counts, RANKS)?;
        let bar = |rank: usize| {
            let from = rank as f64 - 0.39 + 0.26 * nth as f64;
            let share = 100.0 * load.share(rank).unwrap_or(0.0);
            Rectangle::new([(from, 0.0), (from + 0.24, share)], color.filled())
        };
        chart
            .draw_series((0..RANKS).map(bar))?
            .label(sharing)
            .legend(move |(x, y)| Rectangle::new([(x, y - 6), (x + 12, y + 6)], color.filled()));
    }
    let even = 100.0 / RANKS as f64;
    let line = [(-0.5, even), (RANKS as f64 - 0.5, even)];
    chart
        .draw_series(DashedLineSeries::new(line, 6, 4, INK.into()))?
        .label("an eighth")
        .legend(|(x, y)| DashedPathElement::new([(x, y), (x + 16, y)], 6, 4, INK));
    legend(chart.configure_series_labels().position(SeriesLabelPosition::UpperRight)).draw()?;
    let middle = area.dim_in_pixel().0 as i32 / 2 + 24;
    area.draw(&Text::new(name.to_string(), (middle, 16), centred()))?;
    Ok(())
}

/// The time of the sum after a lookup, for one token and for a step of training.
pub(super) fn cost(out: &Path) -> Result<()> {
    save(out, "How long does the sum over the ranks take, on paper?", (900, 460), |area| {
        let (left, right) = area.split_horizontally(450);
        times(&left, "1 token: 8 KiB", 1.0, SeriesLabelPosition::UpperLeft)?;
        times(&right, "4096 tokens: 32 MiB", STEP, SeriesLabelPosition::LowerRight)
    })
}

fn times(area: &Area, name: &str, tokens: f64, legend_at: SeriesLabelPosition) -> Painted {
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .margin_top(30)
        .x_label_area_size(46)
        .y_label_area_size(70)
        .build_cartesian_2d(0.8..12.2, (0.01..300.0).log_scale())?;
    axes(
        chart
            .configure_mesh()
            .x_desc("ranks w (log scale)")
            .y_desc("milliseconds (log scale)")
            .x_labels(7)
            .x_label_formatter(&power_of_two)
            .y_label_formatter(&|y| y.to_string()),
    )
    .draw()?;
    for (nth, ((way, all_reduce), color)) in ALL_REDUCES.into_iter().zip(COLORS).enumerate() {
        let points =
            (1..=12).map(|level| Ok((f64::from(level), sum_ms(all_reduce, 1 << level, tokens)?)));
        let points = points.collect::<Result<Vec<(f64, f64)>>>()?;
        chart.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?;
        match nth {
            0 => chart
                .draw_series(points.into_iter().map(|p| Circle::new(p, 5, color.filled())))?
                .label(way)
                .legend(move |(x, y)| Circle::new((x + 8, y), 5, color.filled())),
            1 => chart
                .draw_series(points.into_iter().map(|p| TriangleMarker::new(p, 7, color.filled())))?
                .label(way)
                .legend(move |(x, y)| TriangleMarker::new((x + 8, y), 7, color.filled())),
            _ => chart
                .draw_series(points.into_iter().map(|p| Cross::new(p, 5, color.stroke_width(2))))?
                .label(way)
                .legend(move |(x, y)| Cross::new((x + 8, y), 5, color.stroke_width(2))),
        };
    }
    legend(chart.configure_series_labels().position(legend_at)).draw()?;
    let middle = area.dim_in_pixel().0 as i32 / 2 + 24;
    area.draw(&Text::new(name.to_string(), (middle, 16), centred()))?;
    Ok(())
}
