//! Boxes with words in them, and arrows between: the diagrams.

use crate::figures::{Area, Painted, axis_font, small_font};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Height of a line of words.
const LINE: i32 = 21;

/// A box: its left upper corner, its size, its lines. The first line is larger.
pub struct Sheet<'w> {
    /// Left and top.
    pub at: (i32, i32),
    /// Width and height.
    pub size: (i32, i32),
    /// The colour of its frame.
    pub frame: RGBColor,
    /// What is in it.
    pub words: &'w [&'w str],
}

impl Sheet<'_> {
    /// Draws it.
    pub fn draw(&self, area: &Area) -> Painted {
        let ((x, y), (width, height)) = (self.at, self.size);
        let corners = [(x, y), (x + width, y + height)];
        area.draw(&Rectangle::new(corners, WHITE.filled()))?;
        area.draw(&Rectangle::new(corners, self.frame.stroke_width(3)))?;
        let middle = Pos::new(HPos::Center, VPos::Center);
        let top = y + height / 2 - LINE * (self.words.len() as i32 - 1) / 2;
        for (i, line) in self.words.iter().enumerate() {
            let font = if i == 0 { axis_font() } else { small_font() };
            let at = (x + width / 2, top + LINE * i as i32);
            area.draw(&Text::new(line.to_string(), at, font.pos(middle)))?;
        }
        Ok(())
    }
}

/// An arrow along straight lines. The last point is its tip.
pub fn arrow(area: &Area, points: &[(i32, i32)], color: RGBColor) -> Painted {
    area.draw(&PathElement::new(points.to_vec(), color.stroke_width(2)))?;
    let [.., before, tip] = points else { return Ok(()) };
    let (dx, dy) = ((tip.0 - before.0).signum(), (tip.1 - before.1).signum());
    let back = (tip.0 - 12 * dx, tip.1 - 12 * dy);
    let side = |s: i32| (back.0 + 6 * s * dy, back.1 + 6 * s * dx);
    area.draw(&Polygon::new(vec![*tip, side(1), side(-1)], color.filled()))?;
    Ok(())
}

/// Words in a line, their middle at a point.
pub fn words(area: &Area, at: (i32, i32), text: &str) -> Painted {
    let middle = Pos::new(HPos::Center, VPos::Center);
    area.draw(&Text::new(text.to_string(), at, small_font().pos(middle)))?;
    Ok(())
}
