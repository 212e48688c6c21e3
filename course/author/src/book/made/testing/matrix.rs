//! Figure: the kill matrix of the norm.

use crate::error::Result;
use crate::figures::{BLUE, INK, ORANGE, PALE, save, small_font};
use contract::component::Component;
use contract::interface::GroupRmsNorm;
use contract::matrix::{Cell, Matrix, matrix};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;
use std::sync::OnceLock;

/// Size of a cell.
const WIDE: i32 = 25;
const HIGH: i32 = 19;
/// Where the cells begin.
const LEFT: i32 = 210;
const TOP: i32 = 190;

/// The matrix under two seeds. (The proof takes more; the picture is the same.)
pub fn of_the_norm() -> &'static Matrix {
    static MATRIX: OnceLock<Matrix> = OnceLock::new();
    MATRIX.get_or_init(|| matrix::<dyn GroupRmsNorm>(0..2))
}

/// What follows the slash of an id.
fn short(id: &str) -> &str {
    id.split_once('/').map_or(id, |(_, name)| name)
}

/// Bugs below each other, invariants beside each other.
pub fn draw(out: &Path) -> Result<()> {
    let Matrix { rows, invariants, .. } = of_the_norm();
    let size = (LEFT + WIDE * invariants.len() as i32 + 40, TOP + HIGH * rows.len() as i32 + 70);
    let size = (size.0 as u32, size.1 as u32);
    save(out, "Which invariant catches which bug of the norm?", size, |area| {
        let beside = Pos::new(HPos::Right, VPos::Center);
        let above = small_font().transform(FontTransform::Rotate270);
        let above = above.pos(Pos::new(HPos::Left, VPos::Center));
        for (column, (id, _)) in invariants.iter().enumerate() {
            let x = LEFT + WIDE * column as i32 + WIDE / 2;
            area.draw(&Text::new(short(id), (x, TOP - 8), above.clone()))?;
        }
        for (r, row) in rows.iter().enumerate() {
            let y = TOP + HIGH * r as i32;
            if r % 2 == 0 {
                let end = LEFT + WIDE * invariants.len() as i32;
                let band = [(LEFT, y), (end, y + HIGH)];
                area.draw(&Rectangle::new(band, PALE.mix(0.5).filled()))?;
            }
            let at = (LEFT - 8, y + HIGH / 2);
            area.draw(&Text::new(short(row.bug), at, small_font().pos(beside)))?;
            for (column, cell) in row.cells.iter().enumerate() {
                let (x, named) =
                    (LEFT + WIDE * column as i32, invariants[column].0 == row.named_by);
                let middle = (x + WIDE / 2, y + HIGH / 2);
                match cell {
                    Cell::Never => {}
                    _ if named => {
                        area.draw(&Circle::new(middle, 8, ORANGE.filled()))?;
                        area.draw(&Circle::new(middle, 8, INK.stroke_width(2)))?;
                    }
                    Cell::Always => {
                        let corners = [(x + 6, y + 3), (x + WIDE - 6, y + HIGH - 3)];
                        area.draw(&Rectangle::new(corners, BLUE.filled()))?;
                    }
                    Cell::Sometimes => {
                        let corners = [(x + 6, y + 3), (x + WIDE - 6, y + HIGH - 3)];
                        area.draw(&Rectangle::new(corners, BLUE.stroke_width(2)))?;
                    }
                }
            }
        }
        let y = TOP + HIGH * rows.len() as i32 + 16;
        let after = small_font().pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Circle::new((LEFT + 8, y), 8, ORANGE.filled()))?;
        area.draw(&Circle::new((LEFT + 8, y), 8, INK.stroke_width(2)))?;
        area.draw(&Text::new("catches it, and gives it its name", (LEFT + 24, y), after.clone()))?;
        area.draw(&Rectangle::new([(LEFT + 312, y - 7), (LEFT + 325, y + 7)], BLUE.filled()))?;
        area.draw(&Text::new("catches it too", (LEFT + 336, y), after))?;
        Ok(())
    })
}

/// What is counted in the matrix.
pub struct Counts {
    /// Bugs of the norm that exactly one invariant catches.
    pub caught_by_one: usize,
    /// The most bugs that one invariant catches.
    pub most: usize,
    /// Invariants that catch no bug alone.
    pub never_alone: usize,
}

/// Counts.
pub fn counts() -> Counts {
    let matrix = of_the_norm();
    let kills = |cells: &[Cell]| cells.iter().filter(|cell| **cell != Cell::Never).count();
    let columns = 0..<dyn GroupRmsNorm>::invariants().len();
    let caught =
        |column: usize| matrix.rows.iter().filter(|row| row.cells[column] != Cell::Never).count();
    Counts {
        caught_by_one: matrix.rows.iter().filter(|row| kills(&row.cells) == 1).count(),
        most: columns.clone().map(caught).max().unwrap_or(0),
        never_alone: columns.filter(|&column| matrix.alone(column) == 0).count(),
    }
}
