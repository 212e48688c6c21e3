//! The figures of the chapter.

use super::calls::{forward, layer_norm, normal, rms};
use crate::error::Result;
use crate::figures::{
    Area, BLUE, GREEN, INK, PALE, Painted, VERMILLION, axes, axis_font, legend, save, small_font,
    whole, write,
};
use contract::interface::NormCase;
use contract::norm::oracle::NormLoops;
use contract::oracle::Oracle;
use plotters::element::DashedPathElement;
use plotters::prelude::{
    ChartBuilder, Circle, Color, DashedLineSeries, IntoLogRange, LineSeries, PathElement, RGBColor,
    SeriesLabelPosition, Text, TriangleMarker,
};
use std::path::Path;
use tour::steps::U;

/// The eps of most examples.
pub const EPS: f64 = 1e-5;
/// Elements of the token with one huge element.
pub const OUTLIER_TOKEN: usize = 64;
/// Where the huge element is.
const OUTLIER_AT: usize = 21;
/// How large it is. All others are 1 or -1.
pub const OUTLIER: f32 = 100.0;

/// What each place of eps gives for a group of equal values `r`, with gamma 1.
pub fn inside(r: f64) -> f64 {
    notebook_support::norm::inside(r, EPS)
}

/// Eps added to the root.
pub fn outside(r: f64) -> f64 {
    notebook_support::norm::outside(r, EPS)
}

pub fn eps(out: &Path) -> Result<()> {
    write(out, &notebook_support::norm::eps_places(EPS, &[])?)
}

/// One huge element among ones.
pub fn outlier_token() -> Vec<f32> {
    let sign = |j: usize| if j.is_multiple_of(2) { 1.0 } else { -1.0 };
    let mut x: Vec<f32> = (0..OUTLIER_TOKEN).map(sign).collect();
    x[OUTLIER_AT] = OUTLIER;
    x
}

/// The sizes of the token's elements after the norm: the huge one, and its neighbours.
pub fn outlier(group_size: usize) -> Result<(f64, f64)> {
    let y = forward(&outlier_token(), &[1.0; OUTLIER_TOKEN], group_size, EPS)?;
    Ok((f64::from(y[OUTLIER_AT]), f64::from(y[OUTLIER_AT - 1]).abs()))
}

pub fn groups(out: &Path) -> Result<()> {
    let question = "Which elements does one huge element make small?";
    let rows = [(64, BLUE), (16, VERMILLION), (4, GREEN)]
        .into_iter()
        .map(|(gz, color)| {
            Ok((gz, color, forward(&outlier_token(), &[1.0; OUTLIER_TOKEN], gz, EPS)?))
        })
        .collect::<Result<Vec<_>>>()?;
    save(out, question, (860, 540), |area| {
        let panels = area.split_evenly((3, 1));
        for (i, ((gz, color, y), panel)) in rows.iter().zip(&panels).enumerate() {
            let last = i == 2;
            let mut chart = ChartBuilder::on(panel)
                .margin_right(24)
                .margin_top(if i == 0 { 4 } else { 0 })
                .x_label_area_size(if last { 50 } else { 14 })
                .y_label_area_size(76)
                .build_cartesian_2d(-1.0..64.0, (0.008f64..60.0).log_scale())?;
            let label = |x: &f64| if last { whole(x) } else { String::new() };
            let mut mesh = chart.configure_mesh();
            axes(
                mesh.y_desc("|y|")
                    .x_labels(9)
                    .y_labels(4)
                    .x_label_formatter(&label)
                    .y_label_formatter(&|y| format!("{y}")),
            );
            if last {
                mesh.x_desc("element of the token");
            }
            mesh.draw()?;
            let edges = (0..=OUTLIER_TOKEN / gz).map(|g| (g * gz) as f64 - 0.5);
            chart.draw_series(
                edges.map(|x| PathElement::new([(x, 0.008), (x, 14.0)], INK.stroke_width(1))),
            )?;
            chart.draw_series(
                y.iter()
                    .enumerate()
                    .map(|(j, &y)| Circle::new((j as f64, f64::from(y.abs())), 4, color.filled())),
            )?;
            let words = format!("group size {gz}");
            chart.draw_series([Text::new(words, (52.0, 50.0), small_font())])?;
        }
        Ok(())
    })
}

/// Tokens, groups a token, and elements a group, in the figure on groups of different loudness.
const LOUD: (usize, usize, usize) = (24, 4, 32);

pub fn loudness(out: &Path) -> Result<()> {
    let (tokens, groups, gz) = LOUD;
    let h = groups * gz;
    // Group k is 2^k times as loud as group 0.
    let x: Vec<f32> = normal(tokens * h, 3)
        .iter()
        .enumerate()
        .map(|(i, x)| x * 2.0f32.powi((i % h / gz) as i32))
        .collect();
    let sizes = |y: &[f32]| y.chunks(gz).map(rms).collect::<Vec<f64>>();
    let plain = sizes(&forward(&x, &vec![1.0; h], h, EPS)?);
    let grouped = sizes(&forward(&x, &vec![1.0; h], gz, EPS)?);
    let question = "How loud is each group after the norm?";
    save(out, question, (860, 460), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(24)
            .x_label_area_size(50)
            .y_label_area_size(76)
            .build_cartesian_2d(-0.7..tokens as f64 - 0.3, (0.125f64..4.0).log_scale().base(2.0))?;
        axes(
            chart
                .configure_mesh()
                .x_desc("token (4 groups each)")
                .y_desc("RMS of a group after")
                .x_labels(12)
                .x_label_formatter(&whole)
                .y_label_formatter(&|y| format!("{y}")),
        )
        .draw()?;
        let token = |i: usize| (i / groups) as f64;
        chart
            .draw_series(
                plain.iter().enumerate().map(|(i, &y)| Circle::new((token(i), y), 4, BLUE)),
            )?
            .label("plain RMSNorm, group size 128")
            .legend(|(x, y)| Circle::new((x + 8, y), 4, BLUE));
        chart
            .draw_series(
                grouped
                    .iter()
                    .enumerate()
                    .map(|(i, &y)| TriangleMarker::new((token(i), y), 6, VERMILLION.filled())),
            )?
            .label("GroupRMSNorm, group size 32")
            .legend(|(x, y)| TriangleMarker::new((x + 8, y), 6, VERMILLION.filled()));
        legend(chart.configure_series_labels().position(SeriesLabelPosition::UpperRight)).draw()?;
        Ok(())
    })
}

/// A token of four elements, moved by `c`: what the two norms make of it.
pub const SHIFTED: [f64; 4] = [-1.5, -0.5, 0.25, 1.75];

pub fn shifted(c: f64) -> Result<(Vec<f64>, Vec<f64>)> {
    let x = SHIFTED.map(|x| x + c);
    let rms = forward(&x.map(|x| x as f32), &[1.0; 4], 4, EPS)?;
    Ok((layer_norm(&x, EPS), rms.into_iter().map(f64::from).collect()))
}

pub fn layernorm(out: &Path) -> Result<()> {
    let steps = (0..=80).map(|i| f64::from(i) / 8.0);
    let curves = steps.map(|c| Ok((c, shifted(c)?))).collect::<Result<Vec<_>>>()?;
    let question = "What do the two norms do with a mean?";
    save(out, question, (900, 460), |area| {
        let (left, right) = area.split_horizontally(430);
        in_the_plane(&left)?;
        along_a_shift(&right, &curves)
    })
}

/// Left: tokens of two elements.
fn in_the_plane(area: &Area) -> Painted {
    let mut chart = ChartBuilder::on(area)
        .margin_right(10)
        .margin_top(4)
        .x_label_area_size(50)
        .y_label_area_size(56)
        .build_cartesian_2d(-3.2..3.2, -3.2..3.2)?;
    axes(
        chart
            .configure_mesh()
            .x_desc("first element")
            .y_desc("second element")
            .x_labels(7)
            .y_labels(7)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0}")),
    )
    .draw()?;
    let diagonal = [(-3.2, -3.2), (3.2, 3.2)];
    chart.draw_series(DashedLineSeries::new(diagonal, 3, 6, INK.stroke_width(1)))?;
    let turn = |degrees: f64| (degrees.to_radians().cos(), degrees.to_radians().sin());
    let radius = 2.0f64.sqrt();
    let circle = (0..=120).map(|i| turn(f64::from(i) * 3.0)).map(|(x, y)| (x * radius, y * radius));
    chart.draw_series(LineSeries::new(circle, PALE.stroke_width(2)))?;
    let tokens: Vec<(f64, f64)> =
        [(10.0, 2.6), (75.0, 2.9), (120.0, 2.2), (165.0, 2.7), (235.0, 0.7), (330.0, 2.3)]
            .into_iter()
            .map(|(degrees, length)| (turn(degrees).0 * length, turn(degrees).1 * length))
            .collect();
    let onto_circle = |&(x, y): &(f64, f64)| {
        let length = f64::hypot(x, y);
        (x / length * radius, y / length * radius)
    };
    chart.draw_series(
        tokens
            .iter()
            .map(|token| PathElement::new([*token, onto_circle(token)], BLUE.stroke_width(1))),
    )?;
    chart
        .draw_series(tokens.iter().map(|&token| Circle::new(token, 4, INK)))?
        .label("token")
        .legend(|(x, y)| Circle::new((x + 8, y), 4, INK));
    chart
        .draw_series(tokens.iter().map(|token| Circle::new(onto_circle(token), 5, BLUE.filled())))?
        .label("RMSNorm")
        .legend(|(x, y)| Circle::new((x + 8, y), 5, BLUE.filled()));
    let after: Vec<Vec<f64>> = tokens.iter().map(|&(x, y)| layer_norm(&[x, y], 0.0)).collect();
    chart
        .draw_series(
            after.iter().map(|y| TriangleMarker::new((y[0], y[1]), 9, VERMILLION.filled())),
        )?
        .label("LayerNorm")
        .legend(|(x, y)| TriangleMarker::new((x + 8, y), 7, VERMILLION.filled()));
    legend(chart.configure_series_labels().position(SeriesLabelPosition::LowerLeft)).draw()?;
    Ok(())
}

/// Right: a token of four elements, moved.
fn along_a_shift(area: &Area, curves: &[(f64, (Vec<f64>, Vec<f64>))]) -> Painted {
    let mut chart = ChartBuilder::on(area)
        .margin_right(20)
        .margin_top(4)
        .x_label_area_size(50)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..10.0, -2.0..2.6)?;
    axes(
        chart
            .configure_mesh()
            .x_desc("number added to all four elements")
            .y_desc("y")
            .x_labels(6)
            .y_labels(6)
            .x_label_formatter(&whole)
            .y_label_formatter(&|y| format!("{y:.0}")),
    )
    .draw()?;
    for j in 0..4 {
        let layer = curves.iter().map(|(c, (layer, _))| (*c, layer[j]));
        let series =
            chart.draw_series(DashedLineSeries::new(layer, 8, 5, VERMILLION.stroke_width(2)))?;
        if j == 0 {
            series.label("LayerNorm").legend(|(x, y)| {
                DashedPathElement::new([(x, y), (x + 20, y)], 6, 3, VERMILLION.stroke_width(2))
            });
        }
    }
    for j in 0..4 {
        let rms = curves.iter().map(|(c, (_, rms))| (*c, rms[j]));
        let series = chart.draw_series(LineSeries::new(rms, BLUE.stroke_width(2)))?;
        if j == 0 {
            series
                .label("RMSNorm")
                .legend(|(x, y)| PathElement::new([(x, y), (x + 20, y)], BLUE.stroke_width(2)));
        }
    }
    legend(chart.configure_series_labels().position(SeriesLabelPosition::UpperRight)).draw()?;
    Ok(())
}

pub fn gradient(out: &Path) -> Result<()> {
    let question = "Which part of the incoming gradient passes?";
    // A group of two elements: xhat has length sqrt(2).
    let (angle, p) = (35f64.to_radians(), (-0.2, 1.5));
    let unit = (angle.cos(), angle.sin());
    let radius = 2.0f64.sqrt();
    let xhat = (unit.0 * radius, unit.1 * radius);
    let along = p.0 * unit.0 + p.1 * unit.1;
    let tip = (xhat.0 + p.0, xhat.1 + p.1);
    let radial = (xhat.0 + along * unit.0, xhat.1 + along * unit.1);
    let tangent = (tip.0 - along * unit.0, tip.1 - along * unit.1);
    save(out, question, (860, 500), |area| {
        // One unit is as long across as upward.
        let mut chart =
            ChartBuilder::on(area).margin(10).build_cartesian_2d(-2.6..2.75, -0.35..2.55)?;
        let circle = (0..=60).map(|i| f64::from(i) * 3f64.to_radians());
        let circle = circle.map(|t| (t.cos() * radius, t.sin() * radius));
        chart.draw_series(LineSeries::new(circle, PALE.stroke_width(3)))?;
        let ray = [(0.0, 0.0), (unit.0 * 3.2, unit.1 * 3.2)];
        chart.draw_series(DashedLineSeries::new(ray, 3, 6, INK.stroke_width(1)))?;
        for sides in [[tip, tangent], [tip, radial]] {
            chart.draw_series(DashedLineSeries::new(sides, 3, 5, INK.stroke_width(1)))?;
        }
        for (from, to, color) in [
            ((0.0, 0.0), xhat, INK),
            (xhat, radial, VERMILLION),
            (xhat, tangent, GREEN),
            (xhat, tip, BLUE),
        ] {
            chart.draw_series(arrow(from, to, color))?;
        }
        for (words, at) in [
            ("xhat, as long as sqrt(gz)", (0.05, -0.12)),
            ("arrives: gamma dy", (tip.0 + 0.06, tip.1 + 0.06)),
            ("along x: taken away", (radial.0 + 0.12, radial.1 - 0.12)),
            ("passes: rms times dx", (tangent.0 - 1.42, tangent.1 - 0.16)),
            ("all results of this group", (-2.5, 0.95)),
            ("(without eps)", (-2.5, 0.80)),
        ] {
            chart.draw_series([Text::new(words, at, axis_font())])?;
        }
        Ok(())
    })
}

/// A line with a head.
fn arrow(from: (f64, f64), to: (f64, f64), color: RGBColor) -> Vec<PathElement<(f64, f64)>> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = f64::hypot(dx, dy);
    let (dx, dy) = (dx / length * 0.12, dy / length * 0.12);
    let wing = |side: f64| (to.0 - dx - side * dy * 0.5, to.1 - dy + side * dx * 0.5);
    let style = color.stroke_width(3);
    vec![PathElement::new([from, to], style), PathElement::new([wing(1.0), to, wing(-1.0)], style)]
}

/// The largest relative error of the library's `y` over many groups of `gz`, in units of `2^-24`.
pub fn worst_rounding(gz: usize) -> Result<f64> {
    let tokens = 4096 / gz * 16;
    let case = NormCase {
        shape: [1, tokens, gz],
        group_size: gz,
        eps: EPS,
        gamma: normal(gz, 5),
        x: normal(tokens * gz, 11),
    };
    let expected = Oracle.passes(&case, &vec![0.0; case.x.len()]).y;
    let y = forward(&case.x, &case.gamma, gz, case.eps)?;
    let error = |(&y, &want): (&f32, &f64)| (f64::from(y) / want - 1.0).abs() / U;
    Ok(y.iter().zip(&expected).map(error).fold(0.0, f64::max))
}

/// The tolerance of the contract, in units of `2^-24`.
pub fn tolerance(gz: usize) -> f64 {
    gz as f64 / 2.0 + 4.0
}

pub fn rounding(out: &Path) -> Result<()> {
    let sizes: Vec<usize> = (0..=12).map(|j| 1 << j).collect();
    let measured =
        sizes.iter().map(|&gz| Ok((gz as f64, worst_rounding(gz)?))).collect::<Result<Vec<_>>>()?;
    let question = "How much do roundings cost, and how much is allowed?";
    save(out, question, (860, 460), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(24)
            .x_label_area_size(50)
            .y_label_area_size(86)
            .build_cartesian_2d((0.8f64..5200.0).log_scale(), (0.8f64..4000.0).log_scale())?;
        axes(
            chart
                .configure_mesh()
                .x_desc("group size")
                .y_desc("relative error, units of 2^-24")
                .x_label_formatter(&whole)
                .y_label_formatter(&whole),
        )
        .draw()?;
        let bound = sizes.iter().map(|&gz| (gz as f64, tolerance(gz)));
        chart
            .draw_series(LineSeries::new(bound, INK.stroke_width(2)))?
            .label("allowed: gz/2 + 4")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], INK.stroke_width(2)));
        chart
            .draw_series(
                measured.iter().map(|&at| TriangleMarker::new(at, 7, VERMILLION.filled())),
            )?
            .label("the library, worst of 65,536 values")
            .legend(|(x, y)| TriangleMarker::new((x + 9, y), 7, VERMILLION.filled()));
        legend(chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft)).draw()?;
        Ok(())
    })
}
