//! SwiGLU in a notebook.

use crate::chart::{Axis, Mark, Series, chart};
use crate::check::{Verdict, check, not_asked};
use crate::error::Result;
use crate::plot::{BLUE, Figure, INK, VERMILLION};
use contract::interface::{Manner, Reply, SizeCase, SwiGlu, SwiGluCase, SwiGluGrads};
use plotters::prelude::SeriesLabelPosition;

/// A learner's rule for the size between.
pub type Size = fn(hidden_size: usize, multiple_of: usize, multiplier: Option<f64>) -> usize;

/// Grades it by the invariants of the task `feedforward/size`.
pub fn check_size(size: Size) -> Verdict {
    check::<dyn SwiGlu>("feedforward/size", &Lines(size))
}

/// A learner's silu beside relu, and its slope, measured by central differences.
///
/// # Errors
/// What plotters reports.
pub fn gates(silu: fn(f32) -> f32) -> Result<Figure> {
    // Steps of 1/8 from −6 to 6, which are exact.
    let curve = |of: &dyn Fn(f32) -> f32| -> Vec<(f64, f64)> {
        let steps = (-48i16..=48).map(|eighth| f32::from(eighth) / 8.0);
        steps.map(|a| (f64::from(a), f64::from(of(a)))).collect()
    };
    let step = 1.0f32 / 32.0;
    let slope = |a: f32| (silu(a + step) - silu(a - step)) / (2.0 * step);
    let series = [
        Series::new("relu", INK, Mark::Dotted, curve(&|a: f32| a.max(0.0))),
        Series::new("silu", BLUE, Mark::Circles, curve(&silu)),
        Series::new("the slope of silu", VERMILLION, Mark::Triangles, curve(&slope)),
    ];
    let x = Axis { name: "a", range: -6.0..6.0, labels: 13, label: |a| format!("{a:.0}") };
    let y = Axis { name: "value", range: -1.0..6.0, labels: 8, label: |y| format!("{y:.0}") };
    chart("How does silu differ from relu?", (x, y), &series, SeriesLabelPosition::UpperLeft)
}

struct Lines(Size);

impl SwiGlu for Lines {
    fn size(&self, case: &SizeCase) -> Reply<usize> {
        Ok((self.0)(case.hidden_size, case.multiple_of, case.multiplier))
    }

    fn forward_in(&self, _: Manner, _: &SwiGluCase) -> Reply<Vec<f32>> {
        Err(not_asked())
    }

    fn backward_in(&self, _: Manner, _: &SwiGluCase, _: &[f32]) -> Reply<SwiGluGrads> {
        Err(not_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(size: usize, multiplier: Option<f64>) -> usize {
        multiplier.map_or(size, |multiplier| (multiplier * size as f64) as usize)
    }

    #[test]
    fn right_lines_pass() {
        let verdict = check_size(|h, multiple_of, multiplier| {
            cut(8 * h / 3, multiplier).next_multiple_of(multiple_of)
        });
        assert!(verdict.passed, "{verdict}");
    }

    #[test]
    fn wrong_lines_are_named() {
        let verdict = check_size(|h, multiple_of, multiplier| {
            cut(8 * h / 3, multiplier) / multiple_of * multiple_of
        });
        assert!(!verdict.passed);
        assert!(verdict.to_string().contains("rounds down to the multiple"), "{verdict}");
    }
}
