//! The figure of a roofline: what memory and cores allow, and what was reached.

use crate::chart::{Axis, Mark, Series, chart};
use crate::error::Result;
use crate::plot::{BLUE, Figure, INK, ORANGE, VERMILLION, thousands};
use plotters::prelude::SeriesLabelPosition;

/// The two bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Bytes a second.
    pub read: f64,
    /// Operations a second.
    pub products: f64,
}

/// What was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// One token after others.
    Token,
    /// Many tokens at once.
    Prompt,
}

/// A computation that was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Which.
    pub work: Work,
    /// Bytes of weights and cache.
    pub bytes: f64,
    /// Multiplications and additions.
    pub operations: f64,
    /// How long it took.
    pub seconds: f64,
}

/// Weights of fewer bytes may stay in a processor's cache from one token to the next; many have one of 32 MB.
const CACHED: f64 = 32e6;

/// Operations a second by operations a byte, both by powers of ten.
///
/// # Errors
/// What plotters reports.
pub fn figure(machine: Machine, points: &[Point]) -> Result<Figure> {
    const LEFT: f64 = -1.0;
    const RIGHT: f64 = 4.0;
    let Machine { read, products } = machine;
    let border = (products / read).log10();
    let giga = |rate: f64| rate.log10() - 9.0;
    let place = |point: &Point| {
        let Point { bytes, operations, seconds, .. } = *point;
        ((operations / bytes).log10(), giga(operations / seconds))
    };
    let of = |wanted: &dyn Fn(&Point) -> bool| -> Vec<(f64, f64)> {
        points.iter().filter(|point| wanted(point)).map(place).collect()
    };
    let roof = [(LEFT, giga(read) + LEFT), (border, giga(products)), (RIGHT, giga(products))];
    let is_token = |point: &Point| point.work == Work::Token;
    let series = [
        Series::new("what memory and cores allow", INK, Mark::Line, roof),
        Series::new(
            "a token, weights from memory",
            VERMILLION,
            Mark::Circles,
            of(&|point| is_token(point) && point.bytes >= CACHED),
        ),
        Series::new(
            "a token, weights that fit in a cache",
            ORANGE,
            Mark::Crosses,
            of(&|point| is_token(point) && point.bytes < CACHED),
        ),
        Series::new("a prompt", BLUE, Mark::Triangles, of(&|point| !is_token(point))),
    ];
    let all = || series.iter().flat_map(|series| &series.points).map(|(_, y)| *y);
    let least = all().fold(f64::INFINITY, f64::min).floor();
    let most = all().fold(f64::NEG_INFINITY, f64::max).ceil();
    let x = Axis { name: "operations for each byte", range: LEFT..RIGHT, labels: 6, label: power };
    let range = least..most.max(least + 1.0);
    let y = Axis { name: "billions of operations a second", range, labels: 4, label: power };
    let question = "Does a token wait for memory, or for the cores?";
    chart(question, (x, y), &series, SeriesLabelPosition::LowerRight)
}

/// A power of ten, at whole exponents only.
fn power(exponent: &f64) -> String {
    let whole = exponent.round();
    match (exponent - whole).abs() < 1e-9 {
        true if whole >= 0.0 => thousands(10f64.powf(whole) as usize),
        true => format!("{}", 10f64.powf(whole)),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_work_has_its_mark() {
        let machine = Machine { read: 2e10, products: 2e11 };
        let point = |work, bytes, operations| Point { work, bytes, operations, seconds: 0.1 };
        let points = [
            point(Work::Token, 1.6e9, 8e8),
            point(Work::Token, 4e6, 2e6),
            point(Work::Prompt, 1.6e9, 4e11),
        ];
        let svg = figure(machine, &points).unwrap();
        assert!(
            ["from memory", "in a cache", "a prompt", "1,000"]
                .iter()
                .all(|w| svg.svg().contains(w))
        );
        assert_eq!([-1.0, 0.0, 0.5, 3.0].map(|x| power(&x)), ["0.1", "1", "", "1,000"]);
    }
}
