//! Figure: implementation and contract.

use super::boxes::{Sheet, arrow, words};
use crate::error::Result;
use crate::figures::{BLUE, GREEN, INK, VERMILLION, save};
use plotters::style::RGBColor;
use std::path::Path;

/// Implementations on the left, the contract on the right, plain values between.
pub fn draw(out: &Path) -> Result<()> {
    save(out, "Who is judged, and by what?", (900, 490), |area| {
        let implementations: [(&[&str], RGBColor); 5] = [
            (&["the library"], BLUE),
            (&["your code"], BLUE),
            (&["PyTorch, recorded"], BLUE),
            (&["a correct variant"], BLUE),
            (&["a known bug"], VERMILLION),
        ];
        for (i, (lines, frame)) in implementations.into_iter().enumerate() {
            let top = 44 + 76 * i as i32;
            Sheet { at: (10, top), size: (220, 52), frame, words: lines }.draw(area)?;
            arrow(area, &[(274, top + 26), (318, top + 26)], INK)?;
            arrow(area, &[(274, top + 26), (230, top + 26)], INK)?;
        }
        words(area, (120, 18), "implementations")?;
        words(area, (373, 18), "the interface")?;
        let interface = [
            "trait",
            "",
            "values in:",
            "shapes, f32,",
            "seeds",
            "",
            "values out,",
            "or a",
            "refusal",
        ];
        Sheet { at: (318, 44), size: (120, 356), frame: INK, words: &interface }.draw(area)?;
        words(area, (695, 18), "the contract")?;
        let rooms: [&[&str]; 3] = [
            &["invariants", "witnesses and properties,", "each with id, formula, points"],
            &["oracle", "the formulas as f64 loops"],
            &["comparison", "bit by bit, or within a", "derived tolerance"],
        ];
        let heights = [100, 84, 100];
        let mut top = 44;
        for (lines, height) in rooms.into_iter().zip(heights) {
            Sheet { at: (530, top), size: (330, height), frame: GREEN, words: lines }.draw(area)?;
            top += height + 36;
        }
        arrow(area, &[(530, 94), (438, 94)], INK)?;
        arrow(area, &[(438, 366), (530, 366)], INK)?;
        arrow(area, &[(695, 144), (695, 180)], INK)?;
        arrow(area, &[(695, 264), (695, 300)], INK)?;
        arrow(area, &[(695, 400), (695, 430)], INK)?;
        words(area, (484, 72), "asks")?;
        words(area, (484, 344), "answers")?;
        words(area, (695, 446), "a verdict: kept, or broken and why")
    })
}
