//! A chart of lines and points, which is what most figures are.

use crate::error::Result;
use crate::plot::{Figure, Painted, axes, legend, small_font};
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use std::ops::Range;

/// One axis.
pub struct Axis {
    /// What it measures, with its unit.
    pub name: &'static str,
    /// From where to where.
    pub range: Range<f64>,
    /// About how many labels it has.
    pub labels: usize,
    /// How a label is written.
    pub label: fn(&f64) -> String,
}

/// How values are drawn. No two series of a figure share shape and dash.
#[derive(Clone, Copy)]
pub enum Mark {
    /// A whole line.
    Line,
    /// Dashes.
    Dashed,
    /// Short dashes.
    Dotted,
    /// Points that are filled circles.
    Circles,
    /// Points that are filled triangles.
    Triangles,
    /// Points that are crosses.
    Crosses,
}

/// Some values with a name in the legend. Without a name they are not in it.
pub struct Series {
    /// In the legend.
    pub name: String,
    /// Of the line or the points.
    pub color: RGBColor,
    /// How they are drawn.
    pub mark: Mark,
    /// `(x, y)`.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Values with a name.
    pub fn new(
        name: impl Into<String>,
        color: RGBColor,
        mark: Mark,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self { name: name.into(), color, mark, points: points.into_iter().collect() }
    }
}

/// Draws it. `legend_at` says where the names are.
///
/// # Errors
/// What plotters reports.
pub fn chart(
    question: &str,
    (x, y): (Axis, Axis),
    series: &[Series],
    legend_at: SeriesLabelPosition,
) -> Result<Figure> {
    Figure::paint(question, (860, 460), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(24)
            .x_label_area_size(50)
            .y_label_area_size(84)
            .build_cartesian_2d(x.range, y.range)?;
        axes(
            chart
                .configure_mesh()
                .x_desc(x.name)
                .y_desc(y.name)
                .x_labels(x.labels)
                .y_labels(y.labels)
                .x_label_formatter(&x.label)
                .y_label_formatter(&y.label),
        )
        .draw()?;
        for Series { name, color, mark, points } in series {
            let (color, mark) = (*color, *mark);
            let stroke = color.stroke_width(3);
            let points = points.iter().copied();
            let drawn = match mark {
                Mark::Line => chart.draw_series(LineSeries::new(points, stroke))?,
                Mark::Dashed => chart.draw_series(DashedLineSeries::new(points, 10, 6, stroke))?,
                Mark::Dotted => chart.draw_series(DashedLineSeries::new(points, 3, 5, stroke))?,
                Mark::Circles => {
                    chart.draw_series(points.map(|p| Circle::new(p, 4, color.filled())))?
                }
                Mark::Triangles => {
                    chart.draw_series(points.map(|p| TriangleMarker::new(p, 6, color.filled())))?
                }
                Mark::Crosses => chart.draw_series(points.map(|p| Cross::new(p, 5, stroke)))?,
            };
            if !name.is_empty() {
                drawn.label(name.as_str()).legend(move |(x, y)| {
                    let line = [(x, y), (x + 22, y)];
                    let middle = (x + 11, y);
                    match mark {
                        Mark::Line => PathElement::new(line, stroke).into_dyn(),
                        Mark::Dashed => DashedPathElement::new(line, 10, 6, stroke).into_dyn(),
                        Mark::Dotted => DashedPathElement::new(line, 3, 5, stroke).into_dyn(),
                        Mark::Circles => Circle::new(middle, 4, color.filled()).into_dyn(),
                        Mark::Triangles => {
                            TriangleMarker::new(middle, 6, color.filled()).into_dyn()
                        }
                        Mark::Crosses => Cross::new(middle, 5, stroke).into_dyn(),
                    }
                });
            }
        }
        if series.iter().any(|series| !series.name.is_empty()) {
            legend(chart.configure_series_labels().position(legend_at)).draw()?;
        }
        Ok(())
    })
}

/// A line with an entry in the legend. `dash` is 0 for a whole line.
pub fn line<X, Y>(
    chart: &mut ChartContext<SVGBackend, Cartesian2d<X, Y>>,
    points: Vec<(f64, f64)>,
    name: impl Into<String>,
    color: RGBColor,
    dash: i32,
) -> Painted
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let style = color.stroke_width(3);
    if dash == 0 {
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
    } else {
        let series = DashedLineSeries::new(points, dash, dash, style);
        chart
            .draw_series(series)?
            .label(name)
            .legend(move |(x, y)| DashedPathElement::new([(x, y), (x + 24, y)], dash, dash, style));
    }
    Ok(())
}

/// A label with one decimal.
pub fn tenths(x: &f64) -> String {
    format!("{:.1}", x + 0.0)
}

/// A label for an axis of logarithms to base 2: the number itself, if it is whole.
pub fn power_of_two(x: &f64) -> String {
    if (x - x.round()).abs() > 1e-9 {
        return String::new();
    }
    crate::plot::thousands(2f64.powf(*x).round() as usize)
}

/// Centred text.
pub fn centred() -> TextStyle<'static> {
    use plotters::style::text_anchor::{HPos, Pos, VPos};
    small_font().pos(Pos::new(HPos::Center, VPos::Center))
}
