//! The planes as clocks, at two places of a text.

use super::*;
use crate::figures::Area;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

/// A query and a key of one head of 8, half-split.
const Q: [f32; 8] = [1.0, 0.9, -0.5, 0.8, 0.3, -0.6, 0.9, 0.4];
const K: [f32; 8] = [0.8, -0.4, 0.7, 0.9, -0.6, 0.9, 0.5, -0.2];

/// Four clocks, twice: the pair moves on together.
///
/// # Errors
/// A file that can't be written.
pub fn clocks(out: &Path) -> Result<()> {
    let rope = module::<8>(BASE, 64, 1, false)?;
    let hands = |m: usize, n: usize| -> Result<_> {
        Ok((m, n, turned(&rope, &Q, m)?, turned(&rope, &K, n)?))
    };
    let places = [hands(7, 3)?, hands(19, 15)?];
    save(out, "Both hands move on by 12. What stays?", (900, 560), |area| {
        for (row, (m, n, q, k)) in places.iter().enumerate() {
            let top = 250 * row as i32;
            let words = format!("m = {m}, n = {n}: the dot product is {:.4}", dot(q, k));
            let centred = axis_font().pos(Pos::new(HPos::Center, VPos::Top));
            area.draw(&Text::new(words, (444, top + 8), centred))?;
            for plane in 0..4 {
                let centre = (120 + 216 * plane as i32, top + 130);
                clock(area, centre, [(q, BLUE, 0), (k, VERMILLION, 8)], plane)?;
            }
        }
        let y = 506;
        area.draw(&PathElement::new([(230, y), (270, y)], BLUE.stroke_width(4)))?;
        area.draw(&Text::new("query, turned by m", (280, y - 8), small_font()))?;
        let dashed = DashedPathElement::new([(480, y), (520, y)], 8, 6, VERMILLION.stroke_width(4));
        area.draw(&dashed)?;
        area.draw(&Text::new("key, turned by n", (530, y - 8), small_font()))?;
        Ok(())
    })
}

fn clock(
    area: &Area,
    (x, y): (i32, i32),
    hands: [(&Vec<f32>, RGBColor, i32); 2],
    plane: usize,
) -> Painted {
    area.draw(&Circle::new((x, y), 78, INK.stroke_width(1)))?;
    for (head, color, dash) in hands {
        let place = |value: f32| (66.0 * f64::from(value)).round() as i32;
        let tip = (x + place(head[plane]), y - place(head[plane + 4]));
        let style = color.stroke_width(4);
        if dash == 0 {
            area.draw(&PathElement::new([(x, y), tip], style))?;
        } else {
            area.draw(&DashedPathElement::new([(x, y), tip], dash, 6, style))?;
        }
    }
    let below = small_font().pos(Pos::new(HPos::Center, VPos::Top));
    let theta = ["1", "0.1", "0.01", "0.001"][plane];
    area.draw(&Text::new(format!("plane {plane}: {theta} rad a position"), (x, y + 86), below))?;
    Ok(())
}
