//! Figure 2: which rank owns which token.

use super::*;
use crate::steps::parallel::{load, owners};
use crate::steps::{SHARD_ROWS, TABLE_ROWS, WORLD_SIZE};
use crate::terminal::thousands;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The title.
pub const QUESTION: &str = "Do equal shards of the table mean equal work?";

/// `ids` are the tokens of the text.
///
/// # Errors
/// A file that can't be written.
pub fn draw(out: &Path, ids: &[usize]) -> Result<()> {
    save(out, QUESTION, (900, 440), |area| {
        let (left, right) = area.split_horizontally(560);
        ids_along_the_text(&left, ids)?;
        tokens_of_each_rank(&right, ids)
    })
}

fn ids_along_the_text(area: &Area, ids: &[usize]) -> Painted {
    let owners = owners(ids);
    let mut chart = ChartBuilder::on(area)
        .margin_right(62) // room for the names of the ranks
        .x_label_area_size(46)
        .y_label_area_size(84)
        .build_cartesian_2d(-0.5..ids.len() as f64 - 0.5, 0.0..TABLE_ROWS as f64)?;
    axes(
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc("token (position in the text)")
            .y_desc("token id")
            .x_labels(8)
            .x_label_formatter(&whole)
            .y_label_formatter(&whole),
    )
    .draw()?;
    let end = ids.len() as f64 - 0.5;
    for rank in 1..WORLD_SIZE {
        let edge = (rank * SHARD_ROWS) as f64;
        chart.draw_series([PathElement::new([(-0.5, edge), (end, edge)], INK)])?;
    }
    chart.draw_series(
        spread(ids.len(), 1500)
            .map(|t| Circle::new((t as f64, ids[t] as f64), 2, FOUR[owners[t]].filled())),
    )?;
    for rank in 0..WORLD_SIZE {
        let middle = (rank as f64 + 0.5) * SHARD_ROWS as f64;
        let (x, y) = chart.backend_coord(&(end, middle));
        let (left, top) = area.get_base_pixel();
        let beside = small_font().pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(format!("rank {rank}"), (x - left + 8, y - top), beside))?;
    }
    Ok(())
}

fn tokens_of_each_rank(area: &Area, ids: &[usize]) -> Painted {
    let load = load(ids);
    let most = load.iter().copied().max().unwrap_or(0);
    let mut chart = ChartBuilder::on(area)
        .margin_right(16)
        .margin_top(8)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(-0.5..WORLD_SIZE as f64 - 0.5, 0.0..most as f64 * 1.12)?;
    axes(
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc("rank")
            .y_desc("tokens that the rank owns")
            .x_labels(WORLD_SIZE)
            .x_label_formatter(&whole)
            .y_label_formatter(&whole),
    )
    .draw()?;
    let fair = ids.len() as f64 / WORLD_SIZE as f64;
    let line =
        DashedLineSeries::new([(-0.5, fair), (WORLD_SIZE as f64 - 0.5, fair)], 6, 4, INK.into());
    chart
        .draw_series(line)?
        .label("equal work")
        .legend(|(x, y)| DashedPathElement::new([(x, y), (x + 16, y)], 6, 4, INK));
    for (rank, &n) in load.iter().enumerate() {
        let (x, y) = (rank as f64, n as f64);
        let bar = Rectangle::new([(x - 0.35, 0.0), (x + 0.35, y)], FOUR[rank].filled());
        chart.draw_series([bar])?;
        let above = small_font().pos(Pos::new(HPos::Center, VPos::Bottom));
        chart.draw_series([Text::new(thousands(n), (x, y), above)])?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .margin(10)
        .label_font(small_font())
        .background_style(WHITE)
        .border_style(PALE)
        .draw()?;
    Ok(())
}
