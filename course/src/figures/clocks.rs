//! Figure 3: the planes of RoPE as clocks.

use super::*;
use crate::error::Error;
use crate::steps::rope::BASE;
use crate::steps::{HEAD_DIM, PLANES};
use crate::terminal::thousands;
use quadrivium::pos_emb::rotary_frequencies;
use std::f64::consts::TAU;

/// The title.
pub const QUESTION: &str = "Which of RoPE's clocks are fast?";

/// The planes that are shown, from the fastest to the slowest.
const SHOWN: [usize; 5] = [0, 8, 16, 24, PLANES - 1];

/// Positions that are shown.
const POSITIONS: usize = 256;

/// The angle of five planes of a head of 64, at positions 0 to 256, without NTK.
///
/// # Errors
/// A file that can't be written.
pub fn draw(out: &Path) -> Result<()> {
    let frequencies = rotary_frequencies(HEAD_DIM, BASE, 1.0).map_err(Error::from)?;
    save(out, QUESTION, (900, 620), |area| {
        let (_, height) = area.dim_in_pixel();
        // The last strip is taller: it carries the axis that all share.
        let axis = 44;
        let strip = (height - axis) / SHOWN.len() as u32;
        let mut rest = area.clone();
        for (nth, plane) in SHOWN.into_iter().enumerate() {
            let is_last = nth + 1 == SHOWN.len();
            let (strip, below) = rest.split_vertically(if is_last { strip + axis } else { strip });
            rest = below;
            one_clock(&strip, plane, frequencies[plane], if is_last { axis } else { 0 })?;
        }
        Ok(())
    })
}

fn one_clock(area: &Area, plane: usize, theta: f64, axis: u32) -> Painted {
    let turn = TAU / theta;
    let positions = match turn {
        turn if turn < 100.0 => format!("{turn:.1}"),
        turn => thousands(turn.round() as usize),
    };
    let name = match plane {
        0 => " (fastest)",
        _ if plane == PLANES - 1 => " (slowest)",
        _ => "",
    };
    let style = small_font();
    let mut chart = ChartBuilder::on(area)
        .caption(format!("plane {plane}{name}: one turn in {positions} positions"), style)
        .margin_right(20)
        .margin_top(8)
        .x_label_area_size(axis)
        .y_label_area_size(76)
        .build_cartesian_2d(0.0..POSITIONS as f64, 0.0..1.0)?;
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
    for n in 0..=(POSITIONS as f64 / turn) as usize {
        let (start, end) = (n as f64 * turn, ((n + 1) as f64 * turn).min(POSITIONS as f64));
        chart.draw_series(LineSeries::new(
            [(start, 0.0), (end, (end - start) / turn)],
            BLUE.stroke_width(2),
        ))?;
    }
    Ok(())
}
