//! The figure of the notebook on LayerNorm, and of the book's chapter.

use crate::chart::{Axis, Mark, Series, chart, power_of_two};
use crate::error::Result;
use crate::plot::{BLUE, Figure, INK, VERMILLION};
use plotters::prelude::SeriesLabelPosition;

/// The variance of a row as the mean of squares minus the squared mean, in `f32`.
pub fn one_pass(row: &[f32]) -> f32 {
    let n = row.len() as f32;
    let (sum, squares) =
        row.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    squares / n - (sum / n) * (sum / n)
}

/// The variance of a row as the mean of the squared distances from the mean, in `f32`.
pub fn two_passes(row: &[f32]) -> f32 {
    let n = row.len() as f32;
    let mean = row.iter().sum::<f32>() / n;
    row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n
}

/// Elements of the token in the figure.
const ELEMENTS: usize = 64;

/// A token of variance 1 around `mean`: 64 values at equal distances, in a mixed order.
fn token(mean: f32) -> Vec<f32> {
    let middle = (ELEMENTS as f32 - 1.0) / 2.0;
    let width = ((ELEMENTS * ELEMENTS - 1) as f32 / 12.0).sqrt();
    let place = |j: usize| (37 * j % ELEMENTS) as f32;
    (0..ELEMENTS).map(|j| mean + (place(j) - middle) / width).collect()
}

/// The variance in `f32` of a token whose variance is 1, computed in one pass and in two, against its
/// mean.
///
/// # Errors
/// What plotters reports.
pub fn variances() -> Result<Figure> {
    let means = || (32..=104).map(|eighth| f64::from(eighth) / 8.0);
    let curve = |variance: fn(&[f32]) -> f32| {
        means().map(move |power| (power, f64::from(variance(&token(power.exp2() as f32)))))
    };
    let truth = [(4.0, 1.0), (13.2, 1.0)];
    let series = [
        Series::new("the variance, 1", INK, Mark::Dotted, truth),
        Series::new("mean(x²) − mean(x)²", VERMILLION, Mark::Triangles, curve(one_pass)),
        Series::new("mean((x − mean)²)", BLUE, Mark::Circles, curve(two_passes)),
    ];
    let x = Axis { name: "mean of the token", range: 4.0..13.2, labels: 10, label: power_of_two };
    let y = Axis {
        name: "variance in f32",
        range: -6.0..18.0,
        labels: 12,
        label: |y| format!("{y:.0}"),
    };
    let question = "What does a large mean do to the variance?";
    chart(question, (x, y), &series, SeriesLabelPosition::UpperLeft)
}
