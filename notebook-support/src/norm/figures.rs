//! The figures of the notebook on GroupRMSNorm, and one of the book's chapter.

use crate::chart::{Axis, Mark, Series, chart, line, tenths};
use crate::error::{Error, Result};
use crate::plot::{
    Area, BLUE, Figure, GREEN, INK, Painted, VERMILLION, axes, axis_font, legend, small_font,
};
use plotters::prelude::*;
use std::ops::Range;

/// What the norm gives for a group of equal values `r`, with gamma 1: eps under the root.
pub fn inside(r: f64, eps: f64) -> f64 {
    r / (r * r + eps).sqrt()
}

/// The same with eps added to the root.
pub fn outside(r: f64, eps: f64) -> f64 {
    r / (r + eps)
}

/// Sizes of x in the figure on eps.
const SIZES: Range<f64> = 1e-8..1e1;
/// Sizes of y there.
const RESULTS: Range<f64> = 1e-6..1e1;

/// The size of y against the size of x, for each place where eps can be. `measured` are
/// `(size of x, size of y)`; the figure shows those that are on its axes.
///
/// # Errors
/// What plotters reports.
pub fn eps_places(eps: f64, measured: &[(f64, f64)]) -> Result<Figure> {
    Figure::paint("What comes out where x is not far above eps?", (860, 480), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(24)
            .x_label_area_size(50)
            .y_label_area_size(76)
            .build_cartesian_2d(SIZES.log_scale(), RESULTS.log_scale())?;
        let power = |x: &f64| format!("1e{:.0}", x.log10());
        axes(
            chart
                .configure_mesh()
                .x_desc("size of x (all elements of the group are equal)")
                .y_desc("size of y")
                .x_labels(10)
                .y_labels(8)
                .x_label_formatter(&power)
                .y_label_formatter(&power),
        )
        .draw()?;
        let curve = |y: &dyn Fn(f64) -> f64| -> Vec<(f64, f64)> {
            let sizes = (0..=180).map(|i| 10f64.powf(-8.0 + f64::from(i) / 20.0));
            sizes.map(|x| (x, y(x))).collect()
        };
        line(&mut chart, curve(&|_| 1.0), "no eps", GREEN, 3)?;
        let name = "eps outside: x / (rms + eps)";
        line(&mut chart, curve(&|x| outside(x, eps)), name, VERMILLION, 10)?;
        line(&mut chart, curve(&|x| inside(x, eps)), "eps inside: x / sqrt(ms + eps)", BLUE, 0)?;
        let at = eps.sqrt();
        if SIZES.contains(&at) {
            chart.draw_series([Circle::new((at, inside(at, eps)), 6, BLUE.filled())])?;
            chart.draw_series([Text::new(
                "x = sqrt(eps): y = 1/sqrt(2)",
                (at * 1.6, inside(at, eps) * 0.62),
                small_font(),
            )])?;
        }
        let shown = measured.iter().filter(|(x, y)| SIZES.contains(x) && RESULTS.contains(y));
        let shown: Vec<(f64, f64)> = shown.copied().collect();
        if !shown.is_empty() {
            chart
                .draw_series(shown.iter().map(|&at| TriangleMarker::new(at, 7, INK.filled())))?
                .label("measured")
                .legend(|(x, y)| TriangleMarker::new((x + 10, y), 6, INK.filled()));
        }
        legend(chart.configure_series_labels().position(SeriesLabelPosition::LowerRight)).draw()?;
        Ok(())
    })
}

/// How much of a gradient's part along x is left, `eps / (ms + eps)`, against eps, for a group with
/// mean square `mean_square`. `measured` are `(eps, share)`, the shares between 0 and 1.
///
/// # Errors
/// What plotters reports.
pub fn left_along_x(mean_square: f64, measured: &[(f64, f64)]) -> Result<Figure> {
    let eps = |power: f64| 10f64.powf(power);
    let powers = (-160..=40).map(|i| f64::from(i) / 20.0);
    let formula = powers.map(|power| (power, eps(power) / (mean_square + eps(power))));
    let measured = measured.iter().map(|(eps, share)| (eps.log10(), *share));
    let on_axes = measured.filter(|(x, y)| (-8.0..=2.0).contains(x) && (-0.05..=1.05).contains(y));
    let power: fn(&f64) -> String =
        |x| if (x - x.round()).abs() > 1e-9 { String::new() } else { format!("1e{x:.0}") };
    chart(
        "How much of the part along x comes through?",
        (
            Axis { name: "eps (log scale)", range: -8.0..2.0, labels: 11, label: power },
            Axis { name: "share that is left", range: -0.05..1.05, labels: 6, label: tenths },
        ),
        &[
            Series::new("formula: eps / (ms + eps)", BLUE, Mark::Line, formula),
            Series::new("measured", VERMILLION, Mark::Triangles, on_axes),
        ],
        SeriesLabelPosition::UpperLeft,
    )
}

/// Bars of one panel.
const BARS: usize = 48;
/// A panel shows values up to so many times the largest root mean square of its column.
const WIDTH: f64 = 3.0;
/// More rows of panels would be too low to read.
const MOST_GROUPS: usize = 8;

/// The values of each group as a histogram, before the norm and after it. `before` and `after` are
/// `[s, h]`, or `[b, s, h]`; a group is `group_size` neighbours of `h = hidden_size` elements. Each
/// panel has its own scale upward; all panels of a column have one scale across.
///
/// # Errors
/// Sizes that do not fit; more than 8 groups; what plotters reports.
pub fn histograms(
    before: &[f32],
    after: &[f32],
    hidden_size: usize,
    group_size: usize,
) -> Result<Figure> {
    let before = of_groups(before, hidden_size, group_size)?;
    let after = of_groups(after, hidden_size, group_size)?;
    let groups = before.len();
    let size = (860, 110 + 92 * groups as u32);
    Figure::paint("How large are the values of each group?", size, |area| {
        let (left, right) = area.split_horizontally(430);
        for (column, values, words) in
            [(left, before, "before the norm"), (right, after, "after the norm")]
        {
            let widest = values.iter().map(|group| rms(group)).fold(0.0, f64::max);
            let edge = if widest > 0.0 { WIDTH * widest } else { 1.0 };
            let (head, column) = column.split_vertically(26);
            head.draw(&Text::new(words, (180, 2), axis_font()))?;
            // The last panel is higher: the names of the axis are below it.
            let (upper, last) = column.split_vertically((groups as u32 - 1) * 92);
            let panels = if groups > 1 { upper.split_evenly((groups - 1, 1)) } else { vec![] };
            for (g, (panel, group)) in panels.iter().chain([&last]).zip(&values).enumerate() {
                one_histogram(panel, (g, group), edge, g + 1 == groups)?;
            }
        }
        Ok(())
    })
}

fn one_histogram(
    panel: &Area,
    (number, values): (usize, &[f64]),
    edge: f64,
    last: bool,
) -> Painted {
    let width = 2.0 * edge / BARS as f64;
    let mut counts = [0usize; BARS];
    for x in values {
        let bar = (x + edge) / width;
        if (0.0..BARS as f64).contains(&bar) {
            counts[bar as usize] += 1;
        }
    }
    let percent = |count: usize| 100.0 * count as f64 / values.len() as f64;
    let highest = percent(counts.iter().copied().max().unwrap_or(0)).max(1.0);
    let mut chart = ChartBuilder::on(panel)
        .margin_right(16)
        .margin_top(4)
        .x_label_area_size(if last { 50 } else { 4 })
        .y_label_area_size(70)
        .build_cartesian_2d(-edge..edge, 0.0..highest * 1.1)?;
    let label = |x: &f64| if last { short(*x) } else { String::new() };
    let mut mesh = chart.configure_mesh();
    axes(
        mesh.y_desc(format!("group {number}, %"))
            .x_labels(5)
            .y_labels(3)
            .x_label_formatter(&label)
            .y_label_formatter(&|y| format!("{y:.0}")),
    );
    if last {
        mesh.x_desc("value (of all tokens)");
    }
    mesh.draw()?;
    chart.draw_series(counts.iter().enumerate().filter(|(_, count)| **count > 0).map(
        |(i, &count)| {
            let from = -edge + i as f64 * width;
            Rectangle::new([(from, 0.0), (from + width, percent(count))], BLUE.filled())
        },
    ))?;
    let lost = values.iter().filter(|x| !x.is_finite()).count();
    let words = match lost {
        0 => format!("RMS {:.4}", rms(values)),
        _ => format!("{lost} not finite"),
    };
    chart.draw_series([Text::new(words, (edge * 0.42, highest), small_font())])?;
    Ok(())
}

/// A label of an axis, with as many digits as it needs.
fn short(x: f64) -> String {
    let x = (x * 1e4).round() / 1e4 + 0.0;
    format!("{x}")
}

/// The values of each group, over all tokens.
fn of_groups(rows: &[f32], hidden_size: usize, group_size: usize) -> Result<Vec<Vec<f64>>> {
    let refuse = |words: String| Err(Error::Figure(words));
    if group_size == 0 || hidden_size == 0 || !hidden_size.is_multiple_of(group_size) {
        return refuse(format!("groups of {group_size} do not divide tokens of {hidden_size}"));
    }
    if rows.is_empty() || !rows.len().is_multiple_of(hidden_size) {
        return refuse(format!("{} values are not whole tokens of {hidden_size}", rows.len()));
    }
    let groups = hidden_size / group_size;
    if groups > MOST_GROUPS {
        return refuse(format!("{groups} groups are too many to read, at most 8 are drawn"));
    }
    let mut values = vec![Vec::new(); groups];
    for (i, group) in rows.chunks_exact(group_size).enumerate() {
        values[i % groups].extend(group.iter().map(|&x| f64::from(x)));
    }
    Ok(values)
}

/// The root mean square of the values that are finite.
fn rms(values: &[f64]) -> f64 {
    let finite = || values.iter().filter(|x| x.is_finite());
    let count = finite().count().max(1);
    (finite().map(|x| x * x).sum::<f64>() / count as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_neighbours_in_each_token() {
        let rows: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let expected = [[0.0, 1.0, 2.0, 6.0, 7.0, 8.0], [3.0, 4.0, 5.0, 9.0, 10.0, 11.0]];
        assert_eq!(of_groups(&rows, 6, 3).unwrap(), expected);
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        for (rows, h, gz) in [(12, 6, 4), (12, 6, 0), (12, 0, 3), (10, 6, 3), (0, 6, 3), (18, 9, 1)]
        {
            let rows = vec![1.0; rows];
            assert!(matches!(histograms(&rows, &rows, h, gz), Err(Error::Figure(_))), "{h} {gz}");
        }
    }

    #[test]
    fn a_panel_says_how_loud_its_group_is() {
        let figure = histograms(&[3.0, 3.0, 0.5, -0.5], &[f32::NAN, 1.0, 1.0, 1.0], 4, 2).unwrap();
        for words in ["RMS 3.0000", "RMS 0.5000", "1 not finite", "RMS 1.0000", "group 1, %"] {
            assert!(figure.svg().contains(words), "{words} in {}", figure.svg());
        }
    }

    #[test]
    fn extremes_are_painted_without_a_mark_off_the_axes() {
        for eps in [0.0, 1e-30, 1e5] {
            let figure = eps_places(eps, &[(0.0, 0.0), (f64::NAN, 1.0)]).unwrap();
            assert!(!figure.svg().contains("1/sqrt(2)"));
            assert!(!figure.svg().contains("measured"));
        }
        assert!(eps_places(1e-5, &[(1.0, 1.0)]).unwrap().svg().contains("measured"));
        assert!(left_along_x(1.0, &[(0.0, 0.0), (1.0, f64::NAN)]).is_ok());
    }

    #[test]
    fn at_the_root_of_eps_the_places_differ() {
        assert!((inside(1e-2, 1e-4) - 0.5f64.sqrt()).abs() < 1e-12);
        assert!((outside(1e-2, 1e-4) - 1.0 / 1.01).abs() < 1e-12);
    }
}
