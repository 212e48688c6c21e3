//! Made for the chapter on shapes as types, and for the page on Rust.

use super::kinds::{Figure, Listing, Made, Numbers};
use super::testing::boxes::{Sheet, arrow, words};
use crate::error::Result;
use crate::figures::{BLUE, INK, ORANGE, VERMILLION, save};
use learner::exercise::Workspace;
use plotters::style::RGBColor;
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "shapes-tape", draw: tape },
        Figure { name: "shapes-when", draw: when },
    ],
    listings: &[Listing { name: "rust-first-task", text: first_task }],
    numbers,
};

fn numbers(_numbers: &mut Numbers) -> Result<()> {
    Ok(())
}

/// The first function of the first component, as a learner finds it.
fn first_task() -> Result<String> {
    let starter = Workspace::find()?.starter("embedding")?;
    let function = starter.split_once("\n///").unwrap_or_default().1;
    let end = function.find("\n}\n").unwrap_or_default();
    Ok(format!("///{}\n}}\n", &function[..end]))
}

/// Two ways to use a tensor twice, and which of them the gradient sees.
fn tape(out: &Path) -> Result<()> {
    save(out, "Which copy does the gradient see?", (900, 420), |area| {
        let sheet = |at, size, frame, words: &[&str]| Sheet { at, size, frame, words }.draw(area);
        words(area, (220, 18), "a clone of the data")?;
        words(area, (664, 18), "with_empty_tape")?;
        for (left, right) in [(20, false), (464, true)] {
            sheet((left + 120, 40), (160, 56), BLUE, &["x, taped"])?;
            let copy: &[&str] = if right {
                &["the same x", "with a tape of its own"]
            } else {
                &["the same numbers", "without a tape"]
            };
            let frame = if right { BLUE } else { VERMILLION };
            sheet((left + 190, 150), (210, 70), frame, copy)?;
            arrow(area, &[(left + 150, 96), (left + 150, 262)], INK)?;
            arrow(area, &[(left + 250, 96), (left + 250, 150)], INK)?;
            arrow(area, &[(left + 250, 220), (left + 250, 262)], INK)?;
            sheet((left + 90, 262), (220, 56), INK, &["product"])?;
            words(area, (left + 116, 180), "dy · x")?;
            if right {
                words(area, (left + 300, 242), "dy · x")?;
            } else {
                words(area, (left + 300, 242), "nothing")?;
            }
            let sum =
                if right { "dx = 2x · dy: right" } else { "dx = x · dy: half of it is lost" };
            words(area, (left + 200, 352), sum)?;
        }
        Ok(())
    })
}

/// What is noticed by whom.
fn when(out: &Path) -> Result<()> {
    save(out, "When is a wrong size seen?", (900, 300), |area| {
        let columns: [(&str, RGBColor, &[&str]); 3] = [
            (
                "cargo check",
                BLUE,
                &["two types differ", "", "Const<8> meets Const<6>", "ids of f32"],
            ),
            (
                "cargo build",
                ORANGE,
                &["a const assertion fails", "", "groups of 3 in 8", "7 rows for 2 ranks"],
            ),
            (
                "the program runs",
                VERMILLION,
                &["a value is refused", "", "an id outside the table", "rank 2 of 2 ranks"],
            ),
        ];
        for (i, (title, frame, lines)) in columns.into_iter().enumerate() {
            let left = 10 + 290 * i as i32;
            words(area, (left + 130, 22), title)?;
            Sheet { at: (left, 48), size: (260, 150), frame, words: lines }.draw(area)?;
            if i < 2 {
                arrow(area, &[(left + 260, 123), (left + 290, 123)], INK)?;
            }
        }
        words(area, (285, 232), "for every input, before anything runs")?;
        words(area, (720, 232), "for this input, an error value")
    })
}
