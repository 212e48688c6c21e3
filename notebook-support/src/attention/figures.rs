//! The figures of attention, and the numbers behind them.

use crate::chart::{Axis, Mark, Series, centred, chart, tenths};
use crate::error::Result;
use crate::plot::{BLUE, Figure, GREEN, INK, PALE, Painted, VERMILLION, axis_font};
use plotters::prelude::*;

/// The bytes that the keys and values of one position take: two of each, of `nkv` heads of `hd` elements, in every
/// layer.
pub fn kv_bytes(layers: usize, nkv: usize, hd: usize, bytes: usize) -> usize {
    2 * layers * nkv * hd * bytes
}

/// The bytes in units of 2 to the 30.
pub fn gib(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1u32 << 30)
}

/// The sizes that Llama 2 7B and Llama 3 8B share: layers, query heads, head size, and two bytes an element.
pub const LAYERS: usize = 32;
/// Query heads.
pub const HEADS: usize = 32;
/// Elements of a head.
pub const HEAD_DIM: usize = 128;
/// Bytes of an element in half precision.
pub const BYTES: usize = 2;

/// The memory of a text's keys and values against its length, for 32, 8 and 1 key heads.
///
/// # Errors
/// What plotters reports.
pub fn memory() -> Result<Figure> {
    let line = |nkv: usize| {
        (40..=68).map(move |quarter| {
            let positions = f64::from(quarter) / 4.0;
            let bytes = kv_bytes(LAYERS, nkv, HEAD_DIM, BYTES) as f64 * positions.exp2();
            (positions, (bytes / f64::from(1u32 << 30)).log2())
        })
    };
    let series = [
        Series::new("32 key heads: MHA, as Llama 2 7B", VERMILLION, Mark::Line, line(32)),
        Series::new("8 key heads: GQA, as Llama 3 8B", BLUE, Mark::Dashed, line(8)),
        Series::new("1 key head: MQA", GREEN, Mark::Dotted, line(1)),
    ];
    let label = |x: &f64| match x.round() {
        x if x < 10.0 => String::new(),
        x => format!("{}k", 2f64.powf(x - 10.0)),
    };
    let x = Axis { name: "positions of one text", range: 10.0..17.0, labels: 8, label };
    let label = |y: &f64| match y.round() as i32 {
        y if y < 0 => format!("1/{}", 1 << -y),
        y => (1u32 << y).to_string(),
    };
    let y = Axis { name: "GiB of keys and values", range: -6.0..7.0, labels: 14, label };
    let question = "How much memory do the keys and values of a text take?";
    chart(question, (x, y), &series, SeriesLabelPosition::UpperLeft)
}

/// New tokens, and positions before them.
const NEW: usize = 4;
const BEFORE: usize = 5;

/// The mask of some tokens after others, and the one of code that takes them for the first ones.
///
/// # Errors
/// What plotters reports.
pub fn masks() -> Result<Figure> {
    let question = "Who sees whom when tokens came before?";
    Figure::paint(question, (960, 400), |area| {
        let (left, right) = area.split_horizontally(480);
        mask(&left, "as it must be: j ≤ p + t", BLUE, |row, key| key <= BEFORE + row)?;
        mask(&right, "a triangle at the top left: j ≤ t", VERMILLION, |row, key| key <= row)
    })
}

fn mask(
    area: &DrawingArea<SVGBackend, plotters::coord::Shift>,
    title: &str,
    color: RGBColor,
    sees: impl Fn(usize, usize) -> bool,
) -> Painted {
    const SIDE: i32 = 40;
    let (x, y) = (64, 92);
    area.draw(&Text::new(title, (x, 24), axis_font()))?;
    let text = |words: String, at: (i32, i32)| area.draw(&Text::new(words, at, centred()));
    let edge = x + BEFORE as i32 * SIDE;
    for key in 0..BEFORE + NEW {
        text(key.to_string(), (x + key as i32 * SIDE + SIDE / 2, y - 14))?;
    }
    for row in 0..NEW {
        text((BEFORE + row).to_string(), (x - 20, y + row as i32 * SIDE + SIDE / 2))?;
        for key in 0..BEFORE + NEW {
            let corner = (x + key as i32 * SIDE, y + row as i32 * SIDE);
            let cell = [corner, (corner.0 + SIDE - 3, corner.1 + SIDE - 3)];
            let fill = if sees(row, key) { color } else { PALE };
            area.draw(&Rectangle::new(cell, fill.filled()))?;
        }
    }
    let foot = y + NEW as i32 * SIDE;
    area.draw(&PathElement::new([(edge - 2, y - 28), (edge - 2, foot + 10)], INK.stroke_width(3)))?;
    text("in the cache, p = 5".to_string(), (x + BEFORE as i32 * SIDE / 2, foot + 24))?;
    text("new, s = 4".to_string(), (edge + NEW as i32 * SIDE / 2, foot + 24))?;
    text("rows ask, columns may be read; numbers are positions".to_string(), (240, foot + 60))?;
    Ok(())
}

/// The weight of the first of two keys whose scores are `score` and `score - ln 3`, in `f32`: 3/4 on paper. `subtract`
/// says whether the largest score is subtracted first.
pub fn first_weight(score: f32, subtract: bool) -> f32 {
    let scores = [score, score - 3f32.ln()];
    let largest = if subtract { score } else { 0.0 };
    let [first, second] = scores.map(|score| (score - largest).exp());
    first / (first + second)
}

/// The weight of a key against the size of its score, with the largest score subtracted and without.
///
/// # Errors
/// What plotters reports.
pub fn maximum() -> Result<Figure> {
    // Close together where the exponentials lose their digits, and apart where all is well.
    let scores = || {
        let close = (-416..-380).map(|quarter| quarter as f32 / 4.0);
        close.chain((-94..=120).step_by(6).map(|score| score as f32))
    };
    let alone = scores().map(|score| (f64::from(score), f64::from(first_weight(score, false))));
    let alone = alone.filter(|(_, weight)| weight.is_finite());
    let whole = [-120.0, 120.0].map(|score| (score, f64::from(first_weight(score as f32, true))));
    let series = [
        Series::new("largest score subtracted first", BLUE, Mark::Line, whole),
        Series::new("exponentials of the scores themselves", VERMILLION, Mark::Triangles, alone),
    ];
    let x = Axis {
        name: "score of the first key; the second is ln 3 lower",
        range: -124.0..124.0,
        labels: 12,
        label: |x| format!("{x:.0}"),
    };
    let y = Axis { name: "its weight in f32", range: 0.5..1.1, labels: 6, label: tenths };
    let question = "Where does a softmax end that subtracts nothing?";
    chart(question, (x, y), &series, SeriesLabelPosition::UpperMiddle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_known_models() {
        assert_eq!(kv_bytes(LAYERS, 32, HEAD_DIM, BYTES), 512 << 10); // Llama 2 7B
        assert_eq!(kv_bytes(LAYERS, 8, HEAD_DIM, BYTES), 128 << 10); // Llama 3 8B
        assert_eq!(kv_bytes(80, 8, 128, 2), 320 << 10); // Llama 2 70B
        assert_eq!(gib(kv_bytes(LAYERS, 32, HEAD_DIM, BYTES) * 4096), 2.0);
    }

    #[test]
    fn the_exponential_ends() {
        for score in [-120.0, -50.0, 0.0, 88.0, 120.0] {
            assert!((first_weight(score, true) - 0.75).abs() < 1e-5, "{score}");
        }
        assert!((first_weight(50.0, false) - 0.75).abs() < 1e-5);
        assert!(first_weight(89.0, false).is_nan());
        assert!(first_weight(-104.0, false).is_nan());
        assert!((first_weight(-102.0, false) - 0.75).abs() > 0.05);
    }
}
