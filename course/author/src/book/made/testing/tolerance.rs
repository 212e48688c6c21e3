//! Figure: the measured error of the norm against its bound, over the group size.

use crate::error::Result;
use crate::figures::{BLUE, GREEN, INK, VERMILLION, axes, legend, save, whole};
use contract::component::Component;
use contract::interface::{GroupRmsNorm, NormCase};
use contract::laws::U;
use contract::norm::oracle::NormLoops;
use contract::oracle::Oracle;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use quadrivium::functional::group_rms_norm;
use quadrivium::init::Init;
use quadrivium::tensor::{Cpu, TensorFromVec};
use std::path::Path;

/// What many course tests allow.
pub const COMMON: f64 = 1e-4;

/// The bound: `(gz/2 + 4) · 2⁻²⁴`.
pub fn bound(group_size: usize) -> f64 {
    (group_size as f64 / 2.0 + 4.0) * U
}

/// Groups of this size, 32 tokens or more. Every |x| is from 0.5 to 2, every gamma from 0.5 to 1.5.
fn case(group_size: usize) -> NormCase {
    let rows = (4096 / group_size).max(32);
    let draw = |n, low, high, seed| Init::Uniform { low, high, seed }.values::<f32>(n);
    let sizes = draw(rows * group_size, 0.5, 2.0, 42);
    let signs = draw(rows * group_size, -1.0, 1.0, 43);
    let x = sizes.iter().zip(signs).map(|(size, sign)| size * sign.signum()).collect();
    let gamma = draw(group_size, 0.5, 1.5, 44);
    NormCase { shape: [1, rows, group_size], group_size, eps: 1e-5, gamma, x }
}

/// The largest relative difference to the oracle.
fn farthest(case: &NormCase, y: &[f32]) -> f64 {
    let truth = Oracle.passes(case, &vec![0.0; case.x.len()]).y;
    let off = |(&y, truth): (&f32, &f64)| ((f64::from(y) - truth) / truth).abs();
    y.iter().zip(&truth).map(off).fold(0.0, f64::max)
}

/// How far the library is off, at worst.
pub fn measured(group_size: usize) -> Result<f64> {
    let (case, dev) = (case(group_size), Cpu::default());
    let [b, s, h] = case.shape;
    let x = dev.tensor_from_vec(case.x.clone(), (b, s, h));
    let gamma = dev.tensor_from_vec(case.gamma.clone(), (h,));
    let y = group_rms_norm(x, &gamma, group_size, case.eps)?;
    Ok(farthest(&case, &y.as_vec()))
}

/// How far a norm without eps is off, at worst, on the same inputs.
pub fn without_eps(group_size: usize) -> f64 {
    let case = case(group_size);
    let bug = <dyn GroupRmsNorm>::bugs().iter().find(|bug| bug.id == "norm/no-eps");
    let y = bug.map(|bug| (bug.implementation)().forward(&case));
    farthest(&case, &y.and_then(|y| y.ok()).unwrap_or_default())
}

/// The group sizes of the figure.
pub fn sizes() -> impl Iterator<Item = usize> + Clone {
    (0..=11).map(|power| 1 << power)
}

/// Draws it.
pub fn draw(out: &Path) -> Result<()> {
    let measured = sizes().map(|gz| Ok((gz as f64, measured(gz)?))).collect::<Result<Vec<_>>>()?;
    save(out, "How far off may a right norm be?", (900, 480), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_right(24)
            .x_label_area_size(46)
            .y_label_area_size(92)
            .build_cartesian_2d((0.8..2600.0).log_scale().base(2.0), (1e-8..1e-2).log_scale())?;
        axes(
            chart
                .configure_mesh()
                .x_desc("group size gz (elements)")
                .y_desc("relative error of y (log scale)")
                .x_labels(12)
                .x_label_formatter(&whole)
                .y_label_formatter(&|y| format!("{y:.0e}")),
        )
        .draw()?;
        let line = DashedLineSeries::new([(0.8, COMMON), (2600.0, COMMON)], 8, 6, INK.into());
        chart
            .draw_series(line)?
            .label("a common tolerance, 1e-4")
            .legend(|(x, y)| DashedPathElement::new([(x, y), (x + 16, y)], 6, 4, INK));
        let line = sizes().map(|gz| (gz as f64, bound(gz)));
        chart
            .draw_series(LineSeries::new(line, BLUE.stroke_width(3)))?
            .label("the bound (gz/2 + 4) · 2⁻²⁴")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], BLUE.stroke_width(3)));
        let without = sizes().map(|gz| (gz as f64, without_eps(gz)));
        chart
            .draw_series(without.map(|at| TriangleMarker::new(at, 7, VERMILLION.filled())))?
            .label("a norm without eps, same inputs")
            .legend(|(x, y)| TriangleMarker::new((x + 8, y), 6, VERMILLION.filled()));
        chart
            .draw_series(measured.iter().map(|&at| Circle::new(at, 5, GREEN.filled())))?
            .label("the library, measured")
            .legend(|(x, y)| Circle::new((x + 8, y), 5, GREEN.filled()));
        legend(chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft)).draw()?;
        Ok(())
    })
}
