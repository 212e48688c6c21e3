//! The points of a class: in three numbers, and as a figure.

use super::page::number;
use crate::record::Record;
use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;

/// Median, quartiles and a histogram of those who were graded.
pub fn points(graded: &[&Record]) -> Markup {
    let mut points: Vec<f64> = graded
        .iter()
        .filter_map(|record| record.points)
        .filter(|points| points.is_finite())
        .collect();
    points.sort_by(f64::total_cmp);
    let out_of = graded.iter().map(|record| record.out_of).fold(0.0, f64::max);
    let at = |part: f64| number(quantile(&points, part));
    html! {
        h2 { "Points, out of " (number(out_of)) }
        dl {
            dt { "Median" } dd { strong { (at(0.5)) } }
            dt { "Quartiles" } dd { (at(0.25)) " and " (at(0.75)) }
            dt { "Least and most" } dd { (at(0.0)) " and " (at(1.0)) }
        }
        @if let Some(figure) = histogram(&points, out_of) {
            figure role="img" aria-label="Submissions by their points" { (figure) }
        }
    }
}

/// The value below which a part of the sorted values lies, on the line between its two neighbours.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = part * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// Bars of a histogram: where the first begins, how wide each is, and how many values each holds.
struct Bars {
    begin: f64,
    width: f64,
    counts: Vec<usize>,
}

/// Values in about a dozen bars, whose width is a round number.
fn bars(points: &[f64], out_of: f64) -> Option<Bars> {
    let most = points.iter().copied().fold(out_of, f64::max);
    let least = points.iter().copied().fold(0.0, f64::min);
    if !(most - least).is_finite() {
        return None;
    }
    let raw = ((most - least) / 12.0).max(1.0);
    let ten = 10f64.powf(raw.log10().floor());
    let width = [1.0, 2.0, 5.0].map(|n| n * ten).into_iter().find(|width| *width >= raw);
    let width = width.unwrap_or(10.0 * ten);
    let begin = (least / width).floor() * width;
    // The most points are in the last bar, not in a separate one.
    let bars = (((most - begin) / width).ceil() as usize).max(1);
    let mut counts = vec![0; bars];
    for points in points {
        counts[(((points - begin) / width) as usize).min(bars - 1)] += 1;
    }
    Some(Bars { begin, width, counts })
}

fn histogram(points: &[f64], out_of: f64) -> Option<Markup> {
    let mut svg = String::new();
    paint(&bars(points, out_of)?, &mut svg).ok()?;
    Some(PreEscaped(svg))
}

/// The page's style gives these colours others in the dark: see `page.rs`.
const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const PALE: RGBColor = RGBColor(0xDD, 0xDD, 0xDD);
const BAR: RGBColor = RGBColor(0x00, 0x72, 0xB2);

fn paint(bars: &Bars, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, (480, 230)).into_drawing_area();
    let font = ("sans-serif", 17).into_font().color(&INK);
    let end = bars.begin + bars.width * bars.counts.len() as f64;
    let top = bars.counts.iter().copied().max().unwrap_or(0).max(1);
    let mut chart = ChartBuilder::on(&area)
        .margin(8)
        .margin_right(16)
        .x_label_area_size(42)
        .y_label_area_size(46)
        .build_cartesian_2d(bars.begin..end, 0.0..top as f64)?;
    // Between whole numbers of submissions there is no label.
    let whole = |n: &f64| if n.fract().abs() < 1e-9 { number(*n) } else { String::new() };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_desc("points")
        .y_desc("submissions")
        .y_labels(top.min(4) + 1)
        .x_label_formatter(&|points| number(*points))
        .y_label_formatter(&whole)
        .axis_desc_style(font.clone())
        .label_style(font)
        .bold_line_style(PALE)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .draw()?;
    let filled = bars.counts.iter().enumerate().filter(|(_, n)| **n > 0);
    chart.draw_series(filled.map(|(place, n)| {
        let left = bars.begin + bars.width * (place as f64 + 0.06);
        Rectangle::new([(left, 0.0), (left + bars.width * 0.88, *n as f64)], BAR.filled())
    }))?;
    Ok(area.present()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_neighbours() {
        let at = |points: &[f64]| [0.25, 0.5, 0.75].map(|part| quantile(points, part));
        assert_eq!(at(&[1.0, 2.0, 3.0, 4.0, 10.0]), [2.0, 3.0, 4.0]);
        assert_eq!(at(&[0.0, 10.0]), [2.5, 5.0, 7.5]);
        assert_eq!(at(&[7.0]), [7.0; 3]);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn every_submission_stands_in_one_bar() {
        let bars_of = |points: &[f64], out_of| bars(points, out_of).expect("there is a figure");
        let Bars { begin, width, counts } = bars_of(&[0.0, 19.9, 20.0, 240.0, 99.5], 240.0);
        assert_eq!((begin, width, counts.len()), (0.0, 20.0, 12));
        assert_eq!((counts[0], counts[1], counts[4], counts[11]), (2, 1, 1, 1));
        // More than all, less than nothing, nothing at all.
        let odd = bars_of(&[-3.0, 13.0], 10.0);
        assert_eq!((odd.begin, odd.width, odd.counts.iter().sum::<usize>()), (-4.0, 2.0, 2));
        assert_eq!(bars_of(&[], 0.0).counts, [0]);
        assert!(bars(&[f64::INFINITY], 1.0).is_none());
        assert!(bars_of(&[1e300, 3.0], 1.0).counts.len() < 20);
    }
}
