//! Diagrams of one idea each: boxes of words, and arrows.

use super::kinds::{Figure, Made, Numbers};
use super::testing::boxes::{Sheet, arrow, words};
use crate::error::Result;
use crate::figures::{Area, BLUE, GREEN, INK, ORANGE, PALE, PURPLE, Painted, VERMILLION, save};
use plotters::prelude::{PathElement, Rectangle};
use plotters::style::{Color, RGBColor};
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "attention-shared-heads", draw: shared_heads },
        Figure { name: "attention-cache-in-time", draw: cache_in_time },
        Figure { name: "feedforward-gate", draw: gate },
        Figure { name: "model-block", draw: block },
        Figure { name: "collectives-ring", draw: ring },
        Figure { name: "collectives-heads", draw: heads_on_ranks },
        Figure { name: "ownership-rounds", draw: rounds },
        Figure { name: "fooled-line", draw: judge_and_sandbox },
    ],
    listings: &[],
    numbers,
};

fn numbers(_numbers: &mut Numbers) -> Result<()> {
    Ok(())
}

fn sheet(
    area: &Area,
    at: (i32, i32),
    size: (i32, i32),
    frame: RGBColor,
    words: &[&str],
) -> Painted {
    Sheet { at, size, frame, words }.draw(area)
}

/// A cell of a picture that counts: full or empty.
fn cell(area: &Area, (x, y): (i32, i32), side: i32, colour: RGBColor) -> Painted {
    let ends = [(x, y), (x + side, y + side)];
    area.draw(&Rectangle::new(ends, colour.filled()))?;
    Ok(area.draw(&Rectangle::new(ends, INK.stroke_width(1)))?)
}

/// Eight query heads over two key heads.
fn shared_heads(out: &Path) -> Result<()> {
    save(out, "Which heads share their keys and values?", (900, 300), |area| {
        for group in 0..2 {
            let colour = if group == 0 { BLUE } else { GREEN };
            let of_keys = (130 + 400 * group, 150);
            let name = format!("keys and values {group}");
            sheet(area, of_keys, (190, 50), colour, &[&name])?;
            for head in 0..4 {
                let left = 30 + 400 * group + 100 * head;
                let name = format!("query {}", 4 * group + head);
                sheet(area, (left, 40), (88, 46), colour, &[&name])?;
                let to = of_keys.0 + 50 + 30 * head;
                arrow(area, &[(left + 44, 86), (left + 44, 118), (to, 118), (to, 150)], INK)?;
            }
        }
        words(area, (450, 226), "nh = 8 queries, nkv = 2: query head j reads key head ⌊j / 4⌋")
    })
}

/// What a decoder computes at each step, and what it keeps.
fn cache_in_time(out: &Path) -> Result<()> {
    save(out, "What does a cache spare?", (900, 390), |area| {
        for (side, title) in ["without a cache", "with a cache"].into_iter().enumerate() {
            let left = 60 + 440 * side as i32;
            words(area, (left + 150, 34), title)?;
            for step in 0..6 {
                let y = 62 + 36 * step;
                words(area, (left + 16, y + 14), &format!("step {}", step + 1))?;
                for token in 0..=step {
                    let is_new = token == step;
                    let colour = match (side, is_new) {
                        (0, _) | (_, true) => ORANGE,
                        _ => PALE,
                    };
                    cell(area, (left + 70 + 34 * token, y), 28, colour)?;
                }
            }
        }
        cell(area, (180, 292), 18, ORANGE)?;
        words(area, (290, 302), "keys and values computed")?;
        cell(area, (520, 292), 18, PALE)?;
        words(area, (640, 302), "keys and values kept")
    })
}

/// SwiGLU.
fn gate(out: &Path) -> Result<()> {
    save(out, "Where does the gate sit?", (900, 310), |area| {
        sheet(area, (20, 100), (120, 56), INK, &["x", "[b, s, h]"])?;
        sheet(area, (220, 40), (150, 56), BLUE, &["W₁, the gate", "[b, s, f]"])?;
        sheet(area, (420, 40), (110, 56), PURPLE, &["silu"])?;
        sheet(area, (220, 160), (150, 56), GREEN, &["W₃", "[b, s, f]"])?;
        sheet(area, (580, 100), (60, 56), ORANGE, &["×"])?;
        sheet(area, (690, 100), (190, 56), VERMILLION, &["W₂", "[b, s, h]"])?;
        arrow(area, &[(140, 128), (180, 128), (180, 68), (220, 68)], INK)?;
        arrow(area, &[(140, 128), (180, 128), (180, 188), (220, 188)], INK)?;
        arrow(area, &[(370, 68), (420, 68)], INK)?;
        arrow(area, &[(530, 68), (610, 68), (610, 100)], INK)?;
        arrow(area, &[(370, 188), (610, 188), (610, 156)], INK)?;
        arrow(area, &[(640, 128), (690, 128)], INK)?;
        words(
            area,
            (470, 246),
            "The upper path says how much of each element of the lower one passes.",
        )
    })
}

/// A block of the decoder with its residual path.
fn block(out: &Path) -> Result<()> {
    save(out, "On which way is nothing multiplied?", (900, 310), |area| {
        let row = 150;
        let top: [(i32, i32, RGBColor, &[&str]); 4] = [
            (120, 90, ORANGE, &["norm"]),
            (240, 160, BLUE, &["attention", "with RoPE"]),
            (510, 90, ORANGE, &["norm"]),
            (630, 120, GREEN, &["SwiGLU"]),
        ];
        for (left, width, frame, text) in top {
            sheet(area, (left, row), (width, 60), frame, text)?;
        }
        for x in [440, 790] {
            sheet(area, (x - 20, 50), (40, 40), INK, &["+"])?;
        }
        arrow(area, &[(20, 70), (420, 70)], VERMILLION)?;
        arrow(area, &[(460, 70), (770, 70)], VERMILLION)?;
        arrow(area, &[(810, 70), (880, 70)], VERMILLION)?;
        arrow(area, &[(70, 70), (70, row + 30), (120, row + 30)], INK)?;
        arrow(area, &[(210, row + 30), (240, row + 30)], INK)?;
        arrow(area, &[(400, row + 30), (440, row + 30), (440, 90)], INK)?;
        arrow(area, &[(480, 70), (480, row + 30), (510, row + 30)], INK)?;
        arrow(area, &[(600, row + 30), (630, row + 30)], INK)?;
        arrow(area, &[(750, row + 30), (790, row + 30), (790, 90)], INK)?;
        words(area, (250, 46), "the residual path, [b, s, h]")?;
        words(area, (450, 244), "Each half reads the path through a norm, and adds what it finds.")
    })
}

/// A ring of four ranks, in the first step and in the last one.
fn ring(out: &Path) -> Result<()> {
    save(out, "Who sends what in a ring?", (900, 320), |area| {
        let names = ["A", "B", "C", "D"];
        for rank in 0..4_i32 {
            let left = 40 + 215 * rank;
            let name = format!("rank {rank}");
            sheet(area, (left, 60), (150, 44), BLUE, &[&name])?;
            if rank < 3 {
                arrow(area, &[(left + 150, 82), (left + 215, 82)], INK)?;
            }
            // In step 0 a rank sends the block of its own number, in each further step the one that it has just added to.
            for (step, y) in (0..3).zip([140, 186, 232]) {
                let sent = names[(rank - step).rem_euclid(4) as usize];
                words(area, (left + 75, y), &format!("step {step}: sends {sent} on"))?;
            }
        }
        arrow(area, &[(760, 60), (760, 26), (115, 26), (115, 60)], INK)?;
        words(
            area,
            (450, 290),
            "After w - 1 steps each rank has one block's whole sum, and as many steps more hand the sums round.",
        )
    })
}

/// The attention of a block on two ranks.
fn heads_on_ranks(out: &Path) -> Result<()> {
    save(out, "What crosses from rank to rank?", (900, 330), |area| {
        sheet(area, (20, 112), (110, 60), ORANGE, &["norm(x)", "[b, s, h]"])?;
        for (rank, (colour, y)) in [(BLUE, 40), (GREEN, 190)].into_iter().enumerate() {
            let heads = format!("heads {} and {}", 2 * rank, 2 * rank + 1);
            sheet(area, (210, y), (170, 56), colour, &["rows of q, k, v", &heads])?;
            sheet(area, (420, y), (110, 56), colour, &["attention"])?;
            sheet(area, (570, y), (150, 56), colour, &["columns of o", "[b, s, h]"])?;
            arrow(area, &[(130, 142), (165, 142), (165, y + 28), (210, y + 28)], VERMILLION)?;
            arrow(area, &[(380, y + 28), (420, y + 28)], INK)?;
            arrow(area, &[(530, y + 28), (570, y + 28)], INK)?;
            let to = if rank == 0 { 112 } else { 172 };
            arrow(area, &[(720, y + 28), (825, y + 28), (825, to)], VERMILLION)?;
            words(area, (470, y + 74), &format!("rank {rank}"))?;
        }
        sheet(area, (770, 112), (110, 60), ORANGE, &["sum", "[b, s, h]"])?;
        words(area, (290, 142), "back: two gradients, one sum")?;
        words(area, (650, 142), "forward: two parts, one sum")?;
        words(area, (450, 296), "Queries, keys, values and scores never leave their rank.")
    })
}

/// Two rounds of the shuffle: each changes one half by the other.
fn rounds(out: &Path) -> Result<()> {
    save(out, "Why can every round be undone?", (900, 340), |area| {
        for round in 0..2 {
            let y = 30 + 120 * round;
            let (high, low) = (255, 645);
            let (from, to) = if round == 0 { (low, high) } else { (high, low) };
            sheet(area, (180, y), (150, 44), BLUE, &["high half"])?;
            sheet(area, (570, y), (150, 44), GREEN, &["low half"])?;
            let (name, side) = if round == 0 { ("f(low)", -1) } else { ("f(high)", 1) };
            sheet(area, (390, y + 52), (120, 40), PURPLE, &[name])?;
            arrow(area, &[(from, y + 44), (from, y + 72), (450 - side * 60, y + 72)], INK)?;
            arrow(area, &[(450 + side * 60, y + 72), (to, y + 72), (to, y + 44)], INK)?;
            words(area, (to + side * 24, y + 60), "⊕")?;
            words(area, (450, y + 22), &format!("round {}", round + 1))?;
        }
        words(
            area,
            (450, 278),
            "One half stays as it is, so f of it is known, and the same exclusive or once more takes it away again.",
        )
    })
}

/// What runs where when a grade counts.
fn judge_and_sandbox(out: &Path) -> Result<()> {
    save(out, "On which side of the line is what?", (900, 340), |area| {
        let line = PathElement::new(vec![(450, 30), (450, 250)], VERMILLION.stroke_width(3));
        area.draw(&line)?;
        words(area, (215, 40), "trusted: the lecturer's process")?;
        words(area, (680, 40), "not trusted: a sandbox for each task")?;
        sheet(area, (30, 70), (150, 70), GREEN, &["the contract", "oracle, laws"])?;
        sheet(area, (230, 70), (150, 70), ORANGE, &["the judge", "asks, compares"])?;
        sheet(area, (30, 180), (150, 56), INK, &["the grade"])?;
        sheet(area, (560, 70), (150, 70), BLUE, &["the student's", "code"])?;
        sheet(area, (750, 70), (130, 70), INK, &["no files", "no network"])?;
        arrow(area, &[(180, 105), (230, 105)], INK)?;
        arrow(area, &[(380, 92), (560, 92)], INK)?;
        arrow(area, &[(560, 122), (380, 122)], INK)?;
        arrow(area, &[(305, 140), (305, 208), (180, 208)], INK)?;
        words(area, (510, 80), "inputs")?;
        words(area, (510, 138), "answers")?;
        words(
            area,
            (450, 276),
            "Only plain values cross the line, over one pipe. What comes back is data, and never runs.",
        )
    })
}
