//! Made for the first pages of the book's parts: which component feeds which.

use super::kinds::{Figure, Made, Numbers};
use super::testing::boxes::{Sheet, arrow, words};
use crate::error::Result;
use crate::figures::{Area, BLUE, GREEN, INK, ORANGE, PURPLE, Painted, VERMILLION, save};
use plotters::prelude::{PathElement, Rectangle};
use plotters::style::{Color, RGBColor};
use std::path::Path;

/// All of it.
pub static MADE: Made = Made {
    figures: &[
        Figure { name: "parts-front-end", draw: front_end },
        Figure { name: "parts-model", draw: model },
        Figure { name: "parts-positions", draw: positions },
        Figure { name: "parts-machines", draw: machines },
        Figure { name: "parts-trust", draw: trust },
    ],
    listings: &[],
    numbers,
};

fn numbers(_numbers: &mut Numbers) -> Result<()> {
    Ok(())
}

type Place = ((i32, i32), (i32, i32));

/// A box of words.
fn sheet(area: &Area, (at, size): Place, frame: RGBColor, words: &[&str]) -> Painted {
    Sheet { at, size, frame, words }.draw(area)
}

/// A line without a tip: two ways to do one thing.
fn line(area: &Area, from: (i32, i32), to: (i32, i32)) -> Painted {
    Ok(area.draw(&PathElement::new(vec![from, to], INK.stroke_width(2)))?)
}

/// From ids to attention, and below each component its other form.
fn front_end(out: &Path) -> Result<()> {
    save(out, "What happens between the tokenizer and the first attention?", (900, 400), |area| {
        let row = 50;
        let top: [(i32, i32, RGBColor, &[&str]); 5] = [
            (10, 84, INK, &["ids", "[b, s]"]),
            (126, 200, BLUE, &["VocabEmbedding", "a row for each id", "[b, s, e]"]),
            (358, 174, ORANGE, &["GroupRMSNorm", "one size for all", "[b, s, h]"]),
            (564, 174, GREEN, &["RoPE", "turned by position", "[b, s, nh, hd]"]),
            (770, 110, INK, &["attention"]),
        ];
        for (i, (left, width, frame, words)) in top.into_iter().enumerate() {
            sheet(area, ((left, row), (width, 92)), frame, words)?;
            if let Some(next) = top.get(i + 1) {
                arrow(area, &[(left + width, row + 46), (next.0, row + 46)], INK)?;
            }
        }
        let below: [(i32, i32, RGBColor, &[&str]); 3] = [
            (104, 232, BLUE, &["ParallelVocabEmbedding", "the table, split across ranks"]),
            (358, 174, ORANGE, &["LayerNorm", "without the mean"]),
            (564, 174, GREEN, &["longer texts", "NTK, cache, offset"]),
        ];
        let joined = [(226, "or"), (445, "or"), (651, "and")];
        for ((left, width, frame, text), (above, join)) in below.into_iter().zip(joined) {
            line(area, (above, row + 92), (above, 226))?;
            words(area, (above + 28, 184), join)?;
            sheet(area, ((left, 226), (width, 72)), frame, text)?;
        }
        words(area, (445, 334), "An arrow is a tensor. Below each component is its other form.")
    })
}

/// A Llama decoder, what it is trained by, and what a step changes.
fn model(out: &Path) -> Result<()> {
    save(out, "Which part feeds which, and what does training change?", (900, 440), |area| {
        let row = 70;
        let middle = row + 42;
        let frame = Rectangle::new([(178, 34), (626, 190)], INK.stroke_width(1));
        area.draw(&frame)?;
        words(area, (402, 48), "a block, several times")?;
        let top: [(i32, i32, RGBColor, &[&str]); 6] = [
            (10, 138, BLUE, &["embedding", "ids to rows"]),
            (196, 84, ORANGE, &["norm"]),
            (304, 122, GREEN, &["attention", "with RoPE"]),
            (450, 70, ORANGE, &["norm"]),
            (544, 76, GREEN, &["SwiGLU"]),
            (650, 230, ORANGE, &["norm and output", "logits [b, s, v]"]),
        ];
        for (i, (left, width, frame, text)) in top.into_iter().enumerate() {
            sheet(area, ((left, row), (width, 84)), frame, text)?;
            if let Some(next) = top.get(i + 1) {
                arrow(area, &[(left + width, middle), (next.0, middle)], INK)?;
            }
        }
        words(area, (402, 174), "x is added to what each pair gives")?;
        sheet(
            area,
            ((650, 250), (230, 76)),
            VERMILLION,
            &["cross-entropy", "how surprised it is"],
        )?;
        arrow(area, &[(765, row + 84), (765, 250)], INK)?;
        sheet(
            area,
            ((250, 250), (304, 76)),
            PURPLE,
            &["a step of AdamW", "with every weight's gradient"],
        )?;
        arrow(area, &[(650, 288), (554, 288)], INK)?;
        arrow(area, &[(250, 288), (79, 288), (79, row + 84)], INK)?;
        arrow(area, &[(402, 250), (402, 190)], INK)?;
        words(area, (165, 312), "all weights move")?;
        words(
            area,
            (450, 366),
            "Training is this circle, over and over; costs are its bytes and operations.",
        )
    })
}

/// Where order enters.
fn positions(out: &Path) -> Result<()> {
    save(out, "Where can a position enter?", (900, 420), |area| {
        let row = 44;
        let top: [(i32, i32, &[&str]); 4] = [
            (20, 180, &["embeddings", "[b, s, h]"]),
            (270, 210, &["queries and keys", "[b, s, nh, hd]"]),
            (550, 150, &["scores", "[nh, s, t]"]),
            (760, 120, &["weights"]),
        ];
        for (i, (left, width, text)) in top.into_iter().enumerate() {
            sheet(area, ((left, row), (width, 70)), INK, text)?;
            if let Some(next) = top.get(i + 1) {
                arrow(area, &[(left + width, row + 35), (next.0, row + 35)], INK)?;
            }
        }
        let below: [(i32, i32, i32, RGBColor, &[&str]); 3] = [
            (20, 180, 110, BLUE, &["Absolute positions", "a vector is added"]),
            (270, 210, 375, GREEN, &["RoPE", "planes are turned"]),
            (524, 202, 625, ORANGE, &["Biases in the scores", "a number is added"]),
        ];
        for (left, width, middle, frame, text) in below {
            sheet(area, ((left, 176), (width, 70)), frame, text)?;
            arrow(area, &[(middle, 176), (middle, row + 70)], INK)?;
        }
        let last: [(i32, &[&str]); 2] = [
            (176, &["Stretched RoPE", "slower planes"]),
            (392, &["More rotations", "decay, two axes"]),
        ];
        for (left, text) in last {
            sheet(area, ((left, 292), (190, 70)), GREEN, text)?;
            let middle = left + 95;
            arrow(area, &[(middle, 292), (middle, 270), (375, 270), (375, 246)], INK)?;
        }
        Ok(())
    })
}

/// Four ranks: what each has, and what they say to each other.
fn machines(out: &Path) -> Result<()> {
    save(out, "What does a rank have, and what must all say?", (900, 470), |area| {
        sheet(
            area,
            ((40, 36), (820, 46)),
            INK,
            &["the ids of the batch: each rank has all of them"],
        )?;
        let left = |rank: i32| 40 + 210 * rank;
        for rank in 0..4 {
            let middle = left(rank) + 95;
            let of = format!("rank {rank}");
            arrow(area, &[(middle, 82), (middle, 108)], INK)?;
            sheet(area, ((left(rank), 108), (190, 64)), BLUE, &[&of, "its rows of the table"])?;
            arrow(area, &[(middle, 172), (middle, 198)], INK)?;
            arrow(area, &[(middle, 244), (middle, 270)], INK)?;
            sheet(area, ((left(rank), 270), (190, 64)), BLUE, &[&of, "logits of its rows"])?;
            arrow(area, &[(middle, 334), (middle, 360)], INK)?;
        }
        sheet(
            area,
            ((40, 198), (820, 46)),
            GREEN,
            &["a sum over the ranks: each has the tokens' rows, and computes the model"],
        )?;
        sheet(
            area,
            ((40, 360), (820, 46)),
            GREEN,
            &["the largest, the sums, the target: each has the same loss"],
        )
    })
}

/// What is compared with what.
fn trust(out: &Path) -> Result<()> {
    save(out, "Who judges, and who judges the judge?", (900, 420), |area| {
        sheet(
            area,
            ((20, 50), (190, 84)),
            BLUE,
            &["your code", "plain values in", "plain values out"],
        )?;
        sheet(
            area,
            ((290, 50), (190, 84)),
            PURPLE,
            &["a sandbox", "it can't reach", "its grader"],
        )?;
        sheet(
            area,
            ((560, 36), (320, 112)),
            GREEN,
            &[
                "the contract",
                "invariants, checked one by one",
                "an oracle in f64",
                "tolerances with a reason",
            ],
        )?;
        arrow(area, &[(210, 92), (290, 92)], INK)?;
        arrow(area, &[(480, 92), (560, 92)], INK)?;
        sheet(area, ((560, 226), (150, 78)), VERMILLION, &["the museum", "all caught"])?;
        sheet(area, ((730, 226), (150, 78)), BLUE, &["right variants", "none refused"])?;
        arrow(area, &[(635, 226), (635, 148)], INK)?;
        arrow(area, &[(805, 226), (805, 148)], INK)?;
        sheet(area, ((290, 226), (190, 78)), ORANGE, &["the grade", "and what is wrong"])?;
        arrow(area, &[(590, 148), (590, 188), (385, 188), (385, 226)], INK)?;
        words(area, (720, 334), "these test the test")?;
        words(area, (385, 334), "this is what you see")
    })
}
