//! The figures of ParallelVocabEmbedding.

use crate::error::Result;
use crate::plot::{
    Area, FOUR, Figure, INK, PALE, Painted, VERMILLION, axes, legend, small_font, spread,
    thousands, whole,
};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use quadrivium::Error as Refused;
use quadrivium::parallel::shard_range;

/// The title of [`load`].
pub const LOAD: &str = "Do equal shards of the table mean equal work?";

/// Which rank owns which token of a text, and how many tokens each rank owns. `ids` are the tokens.
/// From the fifth rank on the colours begin again.
///
/// # Errors
/// A world size that does not divide `vocab_size`, an id outside of it, what plotters reports.
pub fn load(ids: &[usize], vocab_size: usize, world_size: usize) -> Result<Figure> {
    let rows = shard_range(vocab_size, world_size, 0)?.len();
    if let Some(position) = ids.iter().position(|&id| id >= vocab_size) {
        return Err(Refused::TokenId { id: ids[position], batch: 0, position, vocab_size }.into());
    }
    let cut = Cut { rows, world_size };
    Figure::paint(LOAD, (900, 440), |area| {
        let (left, right) = area.split_horizontally(560);
        cut.ids_along_the_text(&left, ids)?;
        cut.tokens_of_each_rank(&right, ids)
    })
}

struct Cut {
    /// `n`.
    rows: usize,
    /// `w`.
    world_size: usize,
}

fn color(rank: usize) -> RGBColor {
    FOUR[rank % FOUR.len()]
}

impl Cut {
    fn ids_along_the_text(&self, area: &Area, ids: &[usize]) -> Painted {
        let Self { rows, world_size } = *self;
        let mut chart = ChartBuilder::on(area)
            .margin_right(62) // room for the names of the ranks
            .x_label_area_size(46)
            .y_label_area_size(84)
            .build_cartesian_2d(-0.5..ids.len() as f64 - 0.5, 0.0..(rows * world_size) as f64)?;
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
        for rank in 1..world_size {
            let edge = (rank * rows) as f64;
            chart.draw_series([PathElement::new([(-0.5, edge), (end, edge)], INK)])?;
        }
        chart
            .draw_series(spread(ids.len(), 1500).map(|t| {
                Circle::new((t as f64, ids[t] as f64), 2, color(ids[t] / rows).filled())
            }))?;
        for rank in 0..world_size {
            let middle = (rank as f64 + 0.5) * rows as f64;
            let (x, y) = chart.backend_coord(&(end, middle));
            let (left, top) = area.get_base_pixel();
            let beside = small_font().pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(format!("rank {rank}"), (x - left + 8, y - top), beside))?;
        }
        Ok(())
    }

    fn tokens_of_each_rank(&self, area: &Area, ids: &[usize]) -> Painted {
        let Self { rows, world_size } = *self;
        let mut load = vec![0; world_size];
        ids.iter().for_each(|id| load[id / rows] += 1);
        let most = load.iter().copied().max().unwrap_or(0);
        let mut chart = ChartBuilder::on(area)
            .margin_right(16)
            .margin_top(8)
            .x_label_area_size(46)
            .y_label_area_size(64)
            .build_cartesian_2d(-0.5..world_size as f64 - 0.5, 0.0..most as f64 * 1.12)?;
        axes(
            chart
                .configure_mesh()
                .disable_mesh()
                .x_desc("rank")
                .y_desc("tokens that the rank owns")
                .x_labels(world_size)
                .x_label_formatter(&whole)
                .y_label_formatter(&whole),
        )
        .draw()?;
        let fair = ids.len() as f64 / world_size as f64;
        let line = [(-0.5, fair), (world_size as f64 - 0.5, fair)];
        chart
            .draw_series(DashedLineSeries::new(line, 6, 4, INK.into()))?
            .label("equal work")
            .legend(|(x, y)| DashedPathElement::new([(x, y), (x + 16, y)], 6, 4, INK));
        for (rank, &n) in load.iter().enumerate() {
            let (x, y) = (rank as f64, n as f64);
            let bar = Rectangle::new([(x - 0.35, 0.0), (x + 0.35, y)], color(rank).filled());
            chart.draw_series([bar])?;
            let above = small_font().pos(Pos::new(HPos::Center, VPos::Bottom));
            chart.draw_series([Text::new(thousands(n), (x, y), above)])?;
        }
        let mut labels = chart.configure_series_labels();
        legend(labels.position(SeriesLabelPosition::UpperRight)).draw()?;
        Ok(())
    }
}

/// Size of a cell with a number in it.
pub const CELL: (i32, i32) = (52, 40);

/// A cell with a number in it, and a strip in the colour of its owner. Without an owner it is shaded.
///
/// # Errors
/// What plotters reports.
pub fn cell(area: &Area, at: (i32, i32), text: String, owner: Option<usize>) -> Painted {
    let fill = if owner.is_some() { WHITE } else { PALE };
    filled_cell(area, at, text, owner, fill)
}

fn filled_cell(
    area: &Area,
    (x, y): (i32, i32),
    text: String,
    owner: Option<usize>,
    fill: RGBColor,
) -> Painted {
    let frame = [(x, y), (x + CELL.0, y + CELL.1)];
    area.draw(&Rectangle::new(frame, fill.filled()))?;
    if let Some(rank) = owner {
        let strip = [(x, y + CELL.1 - 9), (x + CELL.0, y + CELL.1)];
        area.draw(&Rectangle::new(strip, color(rank).filled()))?;
    }
    area.draw(&Rectangle::new(frame, INK))?;
    let lift = if owner.is_some() { 4 } else { 0 };
    let middle = (x + CELL.0 / 2, y + CELL.1 / 2 - lift);
    words(area, middle, text, HPos::Center)
}

/// Text at a place.
///
/// # Errors
/// What plotters reports.
pub fn words(area: &Area, at: (i32, i32), text: String, side: HPos) -> Painted {
    let style = small_font().pos(Pos::new(side, VPos::Center));
    Ok(area.draw(&Text::new(text, at, style))?)
}

/// What every rank gives for some tokens, and the sum.
///
/// `tokens` are a name and an id for each; `parts` has `[s, e]` of each rank in one row, and `shard_rows`
/// is `n`. A number other than 0 that comes from a rank that does not own the token has a frame and
/// another ground: it leaks. And so has its sum. Good for about 8 tokens, 4 ranks, and 2 numbers a row.
///
/// # Errors
/// What plotters reports.
pub fn sum(tokens: &[(String, usize)], parts: &[Vec<f32>], shard_rows: usize) -> Result<Figure> {
    let (s, w) = (tokens.len(), parts.len());
    let e = parts.iter().map(Vec::len).min().unwrap_or(0) / s.max(1);
    let names: Vec<String> = tokens.iter().map(|(name, id)| format!("{name}, id {id}")).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let (left, top) = (33 + 9 * longest as i32, 70);
    let step = e as i32 * CELL.0 + 64;
    let size = (left + (w as i32 + 1) * step + 38, top + s as i32 * CELL.1 + 100);
    let leaks = |rank: usize, t: usize, j: usize| {
        rank != tokens[t].1 / shard_rows && parts[rank][t * e + j] != 0.0
    };
    let mut some_leak = false;
    let question = "Where does each token find its row?";
    Figure::paint(question, (size.0 as u32, size.1 as u32), |area| {
        for (t, name) in names.into_iter().enumerate() {
            let y = top + t as i32 * CELL.1 + CELL.1 / 2;
            words(area, (left - 14, y), name, HPos::Right)?;
        }
        for block in 0..=w {
            let x = left + block as i32 * step;
            let is_sum = block == w;
            let name = if is_sum { "sum".into() } else { format!("rank {block}") };
            words(area, (x + e as i32 * CELL.0 / 2, top - 22), name, HPos::Center)?;
            let sign = if is_sum { "=" } else { "+" };
            if block > 0 {
                let middle = (x - 32, top + s as i32 * CELL.1 / 2);
                words(area, middle, sign.into(), HPos::Center)?;
            }
            for t in 0..s {
                let owner = tokens[t].1 / shard_rows;
                for j in 0..e {
                    let value: f32 = if is_sum {
                        parts.iter().map(|part| part[t * e + j]).sum()
                    } else {
                        parts[block][t * e + j]
                    };
                    let at = (x + j as i32 * CELL.0, top + t as i32 * CELL.1);
                    let has_row = is_sum || owner == block;
                    let bad = (0..w).any(|rank| (is_sum || rank == block) && leaks(rank, t, j));
                    let owner = has_row.then_some(owner);
                    if !bad {
                        cell(area, at, short(value), owner)?;
                        continue;
                    }
                    some_leak = true;
                    filled_cell(area, at, short(value), owner, LEAK)?;
                    let inner = [(at.0 + 3, at.1 + 3), (at.0 + CELL.0 - 3, at.1 + CELL.1 - 3)];
                    area.draw(&Rectangle::new(inner, VERMILLION.stroke_width(2)))?;
                }
            }
        }
        let note = "Shaded cells are zeros that are written. The strip has the owner's colour.";
        let below = (left, top + s as i32 * CELL.1 + 30);
        words(area, below, note.into(), HPos::Left)?;
        if some_leak {
            let note = "A frame: a number of another rank got in.";
            words(area, (below.0, below.1 + 24), note.into(), HPos::Left)?;
        }
        Ok(())
    })
}

/// The ground of a number that leaked.
const LEAK: RGBColor = RGBColor(0xFB, 0xE6, 0xD8);

/// At most two decimals. A negative zero has no sign.
fn short(x: f32) -> String {
    ((x * 100.0).round() / 100.0 + 0.0).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([5.0, 1.2345, -0.001, f32::NAN].map(short), ["5", "1.23", "0", "NaN"]);
    }

    #[test]
    fn load_refuses_what_has_no_owner() {
        let refused = |ids: &[usize], w| load(ids, 12, w).unwrap_err().to_string();
        assert!(refused(&[0], 5).contains("does not divide"));
        assert!(refused(&[0, 12], 4).contains("position [0, 1]"));
        let figure = load(&[0, 5, 11], 12, 6).unwrap();
        assert!(figure.svg().contains("rank 5"));
    }

    #[test]
    fn only_a_leak_has_a_frame() {
        let token = |id| (format!("token {id}"), id);
        let tokens = [token(0), token(3)];
        let right = sum(&tokens, &[vec![1.0, 0.0], vec![0.0, 2.0]], 2).unwrap();
        let leaking = sum(&tokens, &[vec![1.0, 0.0], vec![f32::NAN, 2.0]], 2).unwrap();
        let note = "another rank got in";
        assert!(!right.svg().contains(note) && leaking.svg().contains(note));
    }
}
