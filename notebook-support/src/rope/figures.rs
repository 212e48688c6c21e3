//! RoPE's planes as clocks, what slows them, and what a product and a table make of them.

use super::numbers::{Angles, averaged_bound, product, table_error, turned};
use crate::chart::{Axis, Mark, Series, chart, line, tenths};
use crate::error::Result;
use crate::plot::{
    Area, BLUE, Figure, GREEN, INK, PURPLE, Painted, VERMILLION, axes, axis_font, legend,
    small_font, spread, thousands, whole,
};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use quadrivium::rope::rotary_frequencies;
use std::f64::consts::TAU;

/// The title of [`clocks`].
pub const CLOCKS: &str = "Which of RoPE's clocks are fast?";

/// At most `limit` planes, from the fastest to the slowest.
fn some_planes(planes: usize, limit: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = spread(planes, limit - 1).collect();
    if shown.last() != Some(&(planes - 1)) {
        shown.push(planes - 1);
    }
    shown
}

/// The angles of up to five planes at positions `0 ..= positions`, in turns.
///
/// # Errors
/// Settings that the library refuses.
pub fn clocks(head_dim: usize, base: f64, ratio: f64, positions: usize) -> Result<Figure> {
    let frequencies = rotary_frequencies(head_dim, base, ratio)?;
    let shown = some_planes(frequencies.len(), 5);
    Figure::paint(CLOCKS, (900, 620), |area| {
        let (_, height) = area.dim_in_pixel();
        // The last strip is taller: it carries the axis that all share.
        let axis = 44;
        let strip = (height - axis) / shown.len() as u32;
        let mut rest = area.clone();
        for (nth, &plane) in shown.iter().enumerate() {
            let is_last = nth + 1 == shown.len();
            let (strip, below) = rest.split_vertically(if is_last { strip + axis } else { strip });
            rest = below;
            let name = match plane {
                0 => " (fastest)",
                _ if is_last => " (slowest)",
                _ => "",
            };
            let axis = if is_last { axis } else { 0 };
            one_clock(&strip, (plane, name), frequencies[plane], positions, axis)?;
        }
        Ok(())
    })
}

fn one_clock(
    area: &Area,
    (plane, name): (usize, &str),
    theta: f64,
    positions: usize,
    axis: u32,
) -> Painted {
    let turn = TAU / theta;
    let for_one_turn = match turn {
        turn if turn < 100.0 => format!("{turn:.1}"),
        turn => thousands(turn.round() as usize),
    };
    let style = small_font();
    let mut chart = ChartBuilder::on(area)
        .caption(format!("plane {plane}{name}: one turn in {for_one_turn} positions"), style)
        .margin_right(20)
        .margin_top(8)
        .x_label_area_size(axis)
        .y_label_area_size(76)
        .build_cartesian_2d(0.0..positions as f64, 0.0..1.0)?;
    axes(
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc("position m")
            .y_desc("angle, turns")
            .x_labels(9)
            .y_labels(3)
            .x_label_formatter(&whole)
            .y_label_formatter(&|y| format!("{y:.1}")),
    )
    .draw()?;
    // One line a turn: a line from 1 back to 0 would look like a movement.
    for n in 0..=(positions as f64 / turn) as usize {
        let (start, end) = (n as f64 * turn, ((n + 1) as f64 * turn).min(positions as f64));
        chart.draw_series(LineSeries::new(
            [(start, 0.0), (end, (end - start) / turn)],
            BLUE.stroke_width(2),
        ))?;
    }
    Ok(())
}

/// A query at `m` and a key at `n` as hands of clocks, up to four planes, once for each `(m, n)`.
///
/// `q` and `k` are half-split heads of one size. The hands are drawn for values up to about 1.
///
/// # Errors
/// Settings that the library refuses.
pub fn hands(
    question: &str,
    (q, k): (&[f32], &[f32]),
    (base, ratio): (f64, f64),
    places: &[(usize, usize)],
) -> Result<Figure> {
    let frequencies = rotary_frequencies(q.len(), base, ratio)?;
    let shown = some_planes(frequencies.len(), 4);
    let rows: Vec<[Vec<f32>; 2]> = places
        .iter()
        .map(|&(m, n)| Ok([turned(q, m, base, ratio)?, turned(k, n, base, ratio)?]))
        .collect::<Result<_>>()?;
    let below = 250 * places.len() as i32;
    Figure::paint(question, (900, below as u32 + 60), |area| {
        for (row, ((m, n), [q, k])) in places.iter().zip(&rows).enumerate() {
            let top = 250 * row as i32;
            let dot: f64 = q.iter().zip(k).map(|(&q, &k)| f64::from(q) * f64::from(k)).sum();
            let words = format!("m = {m}, n = {n}: the dot product is {dot:.4}");
            let centred = axis_font().pos(Pos::new(HPos::Center, VPos::Top));
            area.draw(&Text::new(words, (444, top + 8), centred))?;
            for (nth, &plane) in shown.iter().enumerate() {
                let (x, y) = (120 + 216 * nth as i32, top + 130);
                let hands = [(q, BLUE, 0), (k, VERMILLION, 8)];
                let tips = hands.map(|(head, color, dash)| {
                    (head[plane], head[plane + frequencies.len()], color, dash)
                });
                dial(area, (x, y), tips)?;
                let theta = match frequencies[plane] {
                    theta if theta < 0.00095 => format!("{theta:.1e}"),
                    theta => format!("{theta:.4}").trim_end_matches(['0', '.']).to_string(),
                };
                let words = format!("plane {plane}: {theta} rad a position");
                let below = small_font().pos(Pos::new(HPos::Center, VPos::Top));
                area.draw(&Text::new(words, (x, y + 86), below))?;
            }
        }
        let y = below + 6;
        area.draw(&PathElement::new([(230, y), (270, y)], BLUE.stroke_width(4)))?;
        area.draw(&Text::new("query, turned by m", (280, y - 8), small_font()))?;
        let dashed = DashedPathElement::new([(480, y), (520, y)], 8, 6, VERMILLION.stroke_width(4));
        area.draw(&dashed)?;
        area.draw(&Text::new("key, turned by n", (530, y - 8), small_font()))?;
        Ok(())
    })
}

/// A clock with hands: their two numbers, colour, and dash or 0.
fn dial(area: &Area, (x, y): (i32, i32), hands: [(f32, f32, RGBColor, i32); 2]) -> Painted {
    area.draw(&Circle::new((x, y), 78, INK.stroke_width(1)))?;
    for (a, b, color, dash) in hands {
        let place = |value: f32| (66.0 * f64::from(value)).round() as i32;
        let tip = (x + place(a), y - place(b));
        let style = color.stroke_width(4);
        if dash == 0 {
            area.draw(&PathElement::new([(x, y), tip], style))?;
        } else {
            area.draw(&DashedPathElement::new([(x, y), tip], dash, 6, style))?;
        }
    }
    Ok(())
}

/// A name and two half-split heads.
pub type Pair<'a> = (&'a str, &'a [f64], &'a [f64]);

/// The averaged bound, as part of its value at distance 0, and products of up to three pairs, each as part
/// of the largest possible, at distances `0 ..= distances`.
///
/// # Errors
/// Settings that the library refuses.
pub fn decay(
    (head_dim, base, ratio): (usize, f64, f64),
    distances: usize,
    pairs: &[Pair],
) -> Result<Figure> {
    let theta = rotary_frequencies(head_dim, base, ratio)?;
    let bound = averaged_bound(&theta, distances);
    let of_its_largest = bound.iter().enumerate().map(|(r, b)| (r as f64, b / bound[0]));
    let mut series = vec![Series::new("the averaged bound", INK, Mark::Dotted, of_its_largest)];
    let styles = [(VERMILLION, Mark::Line), (BLUE, Mark::Dashed), (GREEN, Mark::Line)];
    for (&(name, q, k), (color, mark)) in pairs.iter().zip(styles) {
        let at = |r: usize| (r as f64, product(&theta, q, k, r as f64));
        series.push(Series::new(name, color, mark, (0..=distances).map(at)));
    }
    let x = Axis {
        name: "distance m - n, positions",
        range: 0.0..distances as f64,
        labels: 9,
        label: whole,
    };
    let y = Axis { name: "part of the largest", range: -1.0..1.8, labels: 6, label: tenths };
    let question = "The bound falls with distance. Must a product?";
    chart(question, (x, y), &series, SeriesLabelPosition::UpperRight)
}

/// How many times slower each plane gets for each ratio, by interpolation and by NTK. Two ratios have
/// their own colours.
///
/// # Errors
/// Settings that the library refuses.
pub fn slowing(head_dim: usize, base: f64, ratios: &[f64]) -> Result<Figure> {
    let plain = rotary_frequencies(head_dim, base, 1.0)?;
    let planes = plain.len();
    let slowed = |ratio: f64| -> Result<Vec<(f64, f64)>> {
        let ntk = rotary_frequencies(head_dim, base, ratio)?;
        Ok((0..planes).map(|i| (i as f64, plain[i] / ntk[i])).collect())
    };
    let curves = ratios.iter().map(|&ratio| slowed(ratio)).collect::<Result<Vec<_>>>()?;
    let flat = |ratio: f64| vec![(0.0, ratio), ((planes - 1) as f64, ratio)];
    let top = ratios.iter().fold(1.0, |top: f64, &ratio| top.max(ratio)) + 1.0;
    // The chart is 350 pixels high, and the legend is below the line of the largest ratio. A few
    // planes leave room at the right.
    let legend_at = match planes {
        16.. => SeriesLabelPosition::Coordinate(24, (350.0 / top).round() as i32 + 31),
        _ => SeriesLabelPosition::LowerRight,
    };
    Figure::paint("Which planes pay for the longer reach?", (900, 440), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(20)
            .x_label_area_size(48)
            .y_label_area_size(66)
            .build_cartesian_2d(0.0..planes as f64, 0.0..top)?;
        axes(
            chart
                .configure_mesh()
                .x_desc(format!("plane i (0 is the fastest), head_dim {head_dim}"))
                .y_desc("slowed by the factor")
                .x_labels(9)
                .y_labels(9)
                .x_label_formatter(&whole)
                .y_label_formatter(&whole),
        )
        .draw()?;
        for ((&ratio, ntk), &color) in
            ratios.iter().zip(curves).zip([BLUE, VERMILLION].iter().cycle())
        {
            line(&mut chart, flat(ratio), format!("interpolation, k = {ratio}"), color, 8)?;
            line(&mut chart, ntk, format!("NTK, k = {ratio}"), color, 0)?;
        }
        let mut labels = chart.configure_series_labels();
        legend(labels.position(legend_at).legend_area_size(34)).draw()?;
        Ok(())
    })
}

/// The error of tables against the position, from 100 to a million, by how their angles are built.
///
/// # Errors
/// Settings that the library refuses.
pub fn drift(head_dim: usize, base: f64, ratio: f64) -> Result<Figure> {
    let frequencies = rotary_frequencies(head_dim, base, ratio)?;
    let starts: Vec<usize> =
        (0..=32).map(|i| 10f64.powf(2.0 + f64::from(i) / 8.0) as usize).collect();
    let errors = |angles: Angles| -> Result<Vec<(f64, f64)>> {
        starts.iter().map(|&n| Ok((n as f64, table_error(&frequencies, angles, n)?))).collect()
    };
    let (library, single) = (errors(Angles::Library)?, errors(Angles::F32)?);
    let half = errors(Angles::Bf16Positions)?;
    let bound: Vec<_> = starts.iter().map(|&n| n as f64).map(|n| (n, n * 2f64.powi(-23))).collect();
    Figure::paint("How far are the tables off at position n?", (900, 500), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(24)
            .x_label_area_size(48)
            .y_label_area_size(84)
            .build_cartesian_2d((100.0..1e6).log_scale(), (1e-8..1e4).log_scale())?;
        axes(
            chart
                .configure_mesh()
                .x_desc("position n (log scale)")
                .y_desc("largest error (log scale)")
                .x_label_formatter(&whole)
                .y_label_formatter(&|y| if *y > 3.0 { String::new() } else { format!("{y:.0e}") }),
        )
        .draw()?;
        chart
            .draw_series(half.iter().map(|&p| {
                EmptyElement::at(p) + Rectangle::new([(-4, -4), (4, 4)], PURPLE.filled())
            }))?
            .label("positions in bf16")
            .legend(|(x, y)| Rectangle::new([(x + 8, y - 4), (x + 16, y + 4)], PURPLE.filled()));
        line(&mut chart, bound, "n · 2⁻²³", INK, 6)?;
        chart
            .draw_series(single.iter().map(|&p| TriangleMarker::new(p, 7, VERMILLION)))?
            .label("angles in f32")
            .legend(|(x, y)| TriangleMarker::new((x + 12, y), 7, VERMILLION));
        chart
            .draw_series(library.iter().map(|&p| Circle::new(p, 4, BLUE.filled())))?
            .label("angles in f64 (the library)")
            .legend(|(x, y)| Circle::new((x + 12, y), 4, BLUE.filled()));
        let mut labels = chart.configure_series_labels();
        legend(labels.position(SeriesLabelPosition::UpperLeft).legend_area_size(34)).draw()?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_and_the_slowest_plane_are_shown() {
        assert_eq!(some_planes(32, 5), [0, 8, 16, 24, 31]);
        assert_eq!(some_planes(4, 4), [0, 1, 2, 3]);
        assert_eq!(some_planes(2, 5), [0, 1]);
    }

    #[test]
    fn figures_take_the_smallest_head_and_refuse_a_smaller_one() {
        let ones = [1.0; 4];
        let all = |d: usize| {
            let head = ones[..d].to_vec();
            let single = vec![1.0f32; d];
            [
                clocks(d, 10_000.0, 2.0, 64),
                hands("q?", (&single, &single), (10_000.0, 2.0), &[(3, 1), (5, 3), (7, 5)]),
                decay((d, 10_000.0, 2.0), 64, &[("ones", &head, &head)]),
                slowing(d, 10_000.0, &[4.0]),
                drift(d, 10_000.0, 2.0),
            ]
        };
        assert!(all(4).iter().all(Result::is_ok));
        assert!(all(2).iter().all(Result::is_err));
    }
}
