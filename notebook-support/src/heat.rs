//! Squares of products as colours, and the scale that says which colour is which value.

use crate::plot::{Area, BLUE, INK, Painted, VERMILLION, axes, axis_font, small_font, whole};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The width of each of two maps.
const WIDTH: u32 = 430;

/// Two squares of products side by side, each with its title, and one scale for both, called `unit`.
///
/// White is 0. The columns of `marked` are framed. The area is about 960 wide.
///
/// # Errors
/// What plotters reports.
pub fn heat_maps(
    area: &Area,
    unit: &str,
    maps: [(&str, &[Vec<f64>]); 2],
    marked: &[usize],
) -> Painted {
    let values = maps.iter().flat_map(|(_, values)| values.iter().flatten());
    let largest = values.fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let limit = if largest > 0.0 { largest } else { 1.0 };
    let mut rest = area.clone();
    for (title, values) in maps {
        let (map, right) = rest.split_horizontally(WIDTH);
        heat_map(&map, title, values, limit, marked)?;
        rest = right;
    }
    color_scale(&rest, unit, limit)
}

/// Blue below 0, white at 0, vermillion above.
pub(crate) fn heat(x: f64) -> RGBColor {
    let RGBColor(r, g, b) = if x < 0.0 { BLUE } else { VERMILLION };
    let mix = |c: u8| (255.0 + (f64::from(c) - 255.0) * x.abs().min(1.0)).round() as u8;
    RGBColor(mix(r), mix(g), mix(b))
}

/// A square of products, white at 0, with the columns of `marked` in frames.
fn heat_map(
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

/// The colours from `limit` to `-limit`.
fn color_scale(area: &Area, unit: &str, limit: f64) -> Painted {
    let (_, height) = area.dim_in_pixel();
    let (top, bottom) = (40, height as i32 - 60);
    let steps = 40;
    let y = |step: i32| top + (bottom - top) * step / steps;
    for step in 0..steps {
        let x = 1.0 - 2.0 * (f64::from(step) + 0.5) / f64::from(steps);
        area.draw(&Rectangle::new([(4, y(step)), (18, y(step + 1))], heat(x).filled()))?;
    }
    let beside = small_font().pos(Pos::new(HPos::Left, VPos::Center));
    for (at, value) in [(top, limit), ((top + bottom) / 2, 0.0), (bottom, -limit)] {
        area.draw(&Text::new(format!("{value:.1}"), (24, at), beside.clone()))?;
    }
    area.draw(&Text::new(unit.to_string(), (0, top - 26), small_font()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Figure;

    #[test]
    fn heat_at_the_ends() {
        assert_eq!(heat(0.0), WHITE);
        assert_eq!((heat(-1.0), heat(1.0)), (BLUE, VERMILLION));
    }

    #[test]
    fn both_maps_share_one_scale() {
        let (pale, strong) = ([vec![1.0]], [vec![-2.5]]);
        let maps = [("pale", &pale[..]), ("strong", &strong[..])];
        let figure = Figure::paint("?", (960, 500), |area| heat_maps(area, "q·k", maps, &[]));
        let figure = figure.unwrap();
        for word in ["q·k", "2.5", "0.0", "-2.5"] {
            assert!(figure.svg().lines().any(|line| line == word), "{word}: {}", figure.svg());
        }
        let color = |RGBColor(r, g, b): RGBColor| format!("fill=\"#{r:02X}{g:02X}{b:02X}\"");
        assert!(figure.svg().contains(&color(heat(1.0 / 2.5))), "{}", figure.svg());
        // Without any value but 0 there is a scale, too.
        let zero = [vec![0.0]];
        let maps = [("a", &zero[..]), ("b", &zero[..])];
        assert!(Figure::paint("?", (960, 500), |area| heat_maps(area, "", maps, &[])).is_ok());
    }
}
