//! The figures of a training run.

use crate::error::Result;
use crate::plot::{BLUE, Figure, GREEN, Painted, VERMILLION, axes, legend, whole};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::series::DashedLineSeries;

/// A loss curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Of the batches, each a mean of some steps: after how many steps, and the loss.
    pub trained: Vec<(f64, f64)>,
    /// Of the held-out text.
    pub held_out: Vec<(f64, f64)>,
    /// Of a 3-gram model on the same text.
    pub trigram: f64,
    /// Steps in all.
    pub steps: usize,
}

/// How a line is drawn, so that it is known without its colour too.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stroke {
    Plain,
    /// With a mark at each point.
    Marked,
    Dashed,
}

/// A line: its points, its name, its colour, and how it is drawn.
type Line<'p> = (&'p [(f64, f64)], &'static str, RGBColor, Stroke);

impl Curve {
    /// The losses over the steps.
    ///
    /// # Errors
    /// What plotters reports.
    pub fn figure(&self) -> Result<Figure> {
        let steps = self.steps as f64;
        let level = [(0.0, self.trigram), (steps, self.trigram)];
        paint(
            "What does the model learn?",
            "steps",
            steps,
            &[
                (&self.trained, "the batches that it learns from", BLUE, Stroke::Plain),
                (&self.held_out, "text that is held out", VERMILLION, Stroke::Marked),
                (&level, "a 3-gram model, held out", GREEN, Stroke::Dashed),
            ],
        )
    }
}

/// The loss by how many tokens a model sees, 1 to `s`, of it and of a 3-gram model.
///
/// # Errors
/// What plotters reports.
pub fn by_position(model: &[f64], trigram: &[f64]) -> Result<Figure> {
    let points = |losses: &[f64]| -> Vec<(f64, f64)> {
        losses.iter().enumerate().map(|(t, loss)| (t as f64 + 1.0, *loss)).collect()
    };
    let question = "Does the model use what lies further back?";
    paint(
        question,
        "tokens that the model sees",
        model.len() as f64,
        &[
            (&points(model), "the model", VERMILLION, Stroke::Plain),
            (&points(trigram), "a 3-gram model, which sees two", GREEN, Stroke::Dashed),
        ],
    )
}

fn paint(question: &str, axis: &str, end: f64, lines: &[Line]) -> Result<Figure> {
    let losses = || lines.iter().flat_map(|(points, ..)| points.iter().map(|(_, loss)| *loss));
    let least = losses().fold(f64::INFINITY, f64::min).floor();
    let most = losses().fold(f64::NEG_INFINITY, f64::max).ceil();
    Figure::paint(question, (900, 460), |area| -> Painted {
        let mut chart = ChartBuilder::on(area)
            .margin_right(24)
            .x_label_area_size(48)
            .y_label_area_size(66)
            .build_cartesian_2d(0.0..end, least..most.max(least + 1.0))?;
        let mut mesh = chart.configure_mesh();
        let mesh = mesh.x_desc(axis).y_desc("loss (nats a token)").y_labels(8);
        axes(mesh.x_label_formatter(&whole)).draw()?;
        for &(points, name, color, stroke) in lines {
            let style = color.stroke_width(2);
            let points = || points.iter().copied();
            if stroke == Stroke::Dashed {
                let line = DashedLineSeries::new(points(), 8, 5, style);
                chart.draw_series(line)?.label(name).legend(move |(x, y)| {
                    DashedPathElement::new([(x, y), (x + 18, y)], 5, 3, style)
                });
                continue;
            }
            let marked = stroke == Stroke::Marked;
            let line = LineSeries::new(points(), style);
            chart.draw_series(line)?.label(name).legend(move |(x, y)| {
                let mark = if marked { 3 } else { 0 };
                EmptyElement::at((x, y))
                    + PathElement::new([(0, 0), (18, 0)], style)
                    + Circle::new((9, 0), mark, color.filled())
            });
            if marked {
                chart.draw_series(points().map(|point| Circle::new(point, 3, color.filled())))?;
            }
        }
        let place = SeriesLabelPosition::UpperRight;
        legend(chart.configure_series_labels().position(place)).draw()?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_one_step_has_a_figure() {
        let curve =
            Curve { trained: vec![(0.0, 3.0)], held_out: vec![(0.0, 3.0)], trigram: 3.0, steps: 1 };
        assert!(curve.figure().unwrap().svg().contains("3-gram"));
        assert!(by_position(&[3.0, 2.0], &[2.5, 2.5]).unwrap().svg().ends_with("</svg>\n"));
    }
}
