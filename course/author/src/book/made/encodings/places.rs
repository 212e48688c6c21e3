//! A diagram: where each encoding enters attention.

use crate::error::Result;
use crate::figures::{BLUE, INK, ORANGE, PALE, VERMILLION, save, small_font};
use notebook_support::chart::centred;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

pub(super) fn draw(out: &Path) -> Result<()> {
    save(out, "Where does each encoding enter?", (860, 400), |area| {
        let stages = [
            ("embeddings", "x: [b, s, h]"),
            ("queries, keys", "q, k: [b, s, nh, hd]"),
            ("scores", "q k^T: [b, nh, s, s]"),
            ("weights", "softmax, times v"),
        ];
        let (width, step, top, bottom) = (178, 212, 30, 100);
        for (i, (name, shape)) in stages.into_iter().enumerate() {
            let left = 12 + step * i as i32;
            let corners = [(left, top), (left + width, bottom)];
            area.draw(&Rectangle::new(corners, PALE.filled()))?;
            area.draw(&Rectangle::new(corners, INK.stroke_width(2)))?;
            let middle = left + width / 2;
            area.draw(&Text::new(name, (middle, top + 22), centred()))?;
            area.draw(&Text::new(shape, (middle, top + 48), centred()))?;
            if i > 0 {
                let y = (top + bottom) / 2;
                arrow(area, (left - step + width, y), (left, y), INK)?;
            }
        }
        let entries = [
            (0, BLUE, "added once, below", &["learned", "sinusoidal"][..]),
            (1, VERMILLION, "turned, in each layer", &["RoPE", "interpolation", "NTK", "YaRN"]),
            (2, ORANGE, "added, in each layer", &["T5 bias", "ALiBi"]),
        ];
        for (stage, color, how, names) in entries {
            let middle = 12 + step * stage + width / 2;
            arrow(area, (middle, 190), (middle, bottom), color)?;
            let style = small_font().pos(Pos::new(HPos::Center, VPos::Center));
            area.draw(&Text::new(how, (middle, 206), style.clone()))?;
            for (line, name) in names.iter().enumerate() {
                area.draw(&Text::new(*name, (middle, 236 + 26 * line as i32), style.clone()))?;
            }
        }
        let middle = 12 + step * 3 + width / 2;
        for (line, text) in
            ["NoPE: nothing enters,", "order comes from", "the causal mask"].iter().enumerate()
        {
            area.draw(&Text::new(*text, (middle, 206 + 26 * line as i32), centred()))?;
        }
        Ok(())
    })
}

fn arrow(
    area: &crate::figures::Area,
    from: (i32, i32),
    to: (i32, i32),
    color: RGBColor,
) -> crate::figures::Painted {
    area.draw(&PathElement::new([from, to], color.stroke_width(3)))?;
    let (dx, dy) = ((to.0 - from.0).signum(), (to.1 - from.1).signum());
    let wing = |side: i32| (to.0 - 10 * dx + 6 * side * dy, to.1 - 10 * dy + 6 * side * dx);
    area.draw(&Polygon::new([to, wing(1), wing(-1)], color.filled()))?;
    Ok(())
}
