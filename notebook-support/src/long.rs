//! The figure of models that are asked about longer texts than they were trained on.

use crate::error::Result;
use crate::plot::{
    BLUE, Figure, GREEN, INK, ORANGE, PURPLE, Painted, VERMILLION, axes, small_font, whole,
};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::series::DashedLineSeries;

/// The loss of a model by position.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What it is called.
    pub name: String,
    /// Positions, and the loss there.
    pub points: Vec<(f64, f64)>,
}

const COLORS: [RGBColor; 6] = [BLUE, VERMILLION, GREEN, ORANGE, PURPLE, INK];
/// The width of the names beside the figure.
const NAMES: u32 = 230;

/// How a line is drawn: its colour, and for the second six and the third six of them in dashes and in dots.
fn stroke(nth: usize) -> (ShapeStyle, Option<[i32; 2]>) {
    let style = COLORS[nth % COLORS.len()].stroke_width(2);
    (style, [None, Some([9, 5]), Some([2, 4])][nth / COLORS.len() % 3])
}

/// The losses of models by position, with a mark at `trained`, the length that they were trained at.
///
/// # Errors
/// What plotters reports.
pub fn figure(question: &str, lines: &[Line], trained: usize) -> Result<Figure> {
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let least = points().fold(f64::INFINITY, |least, (_, y)| least.min(y));
    let most = points().fold(f64::NEG_INFINITY, |most, (_, y)| most.max(y));
    let (least, most) = ((2.0 * least).floor() / 2.0, (2.0 * most).ceil() / 2.0);
    let most = most.max(least + 0.5);
    let end = points().fold(1.0f64, |end, (x, _)| end.max(x));
    let trained = trained as f64;
    Figure::paint(question, (900, 520), |area| -> Painted {
        let (width, height) = area.dim_in_pixel();
        let (left, right) = area.split_horizontally(width - NAMES);
        let mut chart = ChartBuilder::on(&left)
            .margin_right(12)
            .x_label_area_size(48)
            .y_label_area_size(66)
            .build_cartesian_2d(0.0..end, least..most)?;
        let mut mesh = chart.configure_mesh();
        let mesh = mesh.x_desc("position").y_desc("loss (nats a token)").y_labels(8);
        axes(mesh.x_label_formatter(&whole)).draw()?;
        let mark = [(trained, least), (trained, most)];
        chart.draw_series(DashedLineSeries::new(mark, 3, 4, INK.stroke_width(1)))?;
        let place = (trained + end / 100.0, most - (most - least) / 40.0);
        chart.draw_series([Text::new("trained up to here", place, small_font())])?;
        let step = (height as i32 - 60) / lines.len().max(1) as i32;
        for (nth, line) in lines.iter().enumerate() {
            let (style, dashes) = stroke(nth);
            let y = 20 + nth as i32 * step.min(26);
            let sample = [(10, y), (44, y)];
            let points = line.points.iter().copied();
            match dashes {
                None => {
                    chart.draw_series(LineSeries::new(points, style))?;
                    right.draw(&PathElement::new(sample, style))?;
                }
                Some([on, off]) => {
                    chart.draw_series(DashedLineSeries::new(points, on, off, style))?;
                    right.draw(&DashedPathElement::new(sample, on, off, style))?;
                }
            }
            right.draw(&Text::new(line.name.clone(), (52, y - 8), small_font()))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_name() {
        let line = |nth: usize| Line {
            name: format!("encoding {nth}"),
            points: vec![(1.0, 3.0), (16.0, 2.0 + nth as f64)],
        };
        let lines: Vec<Line> = (0..19).map(line).collect();
        let figure = figure("How far?", &lines, 2).unwrap();
        assert!(lines.iter().all(|line| figure.svg().contains(&line.name)));
        let one = Line { name: "one".into(), points: vec![(1.0, 3.0)] };
        assert!(super::figure("How far?", &[one], 1).unwrap().svg().ends_with("</svg>\n"));
    }
}
