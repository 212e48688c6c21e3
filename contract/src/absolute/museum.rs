//! Bugs of absolute positions.

use crate::absolute::interface::*;
use crate::absolute::oracle::{Ids, PositionLoops, check_below, check_rows, implementation};
use crate::component::Bug;
use crate::oracle::Oracle;
use std::ops::Range;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl PositionLoops for $name { $($steps)* }
        || -> Box<dyn AbsolutePositions> { implementation($name) }
    }};
}

/// A position with the 8 bits that `bf16` has for it, rounded to even.
fn in_bf16(position: usize) -> f64 {
    let bits = (position as f32).to_bits();
    let rounded = bits + 0x7FFF + ((bits >> 16) & 1);
    f64::from(f32::from_bits(rounded & 0xFFFF_0000))
}

/// All of them.
pub static BUGS: &[Bug<dyn AbsolutePositions>] = &[
    // --- the table ---------------------------------------------------------------------------
    Bug {
        id: "absolute/cosine-first",
        misconception: "puts the cosine before the sine",
        story: "exp(i·angle) has the cosine as its first part. A model that is trained so learns as well; with the \
                weights of another one it reads each position wrong.",
        source: None,
        named_by: "absolute/position-zero",
        implementation: bug!(CosineFirst {
            fn pair(&self, angle: f64) -> [f64; 2] {
                [angle.cos(), angle.sin()]
            }
        }),
    },
    Bug {
        id: "absolute/sines-before-cosines",
        misconception: "puts all sines before all cosines",
        story: "The first code of the paper's authors did so, and fairseq and Marian do: there it is right. The columns \
                are the same in another order, so a model learns as well; weights do not travel.",
        source: Some("AllenNLP issue 2993"),
        named_by: "absolute/position-zero",
        implementation: bug!(SinesBeforeCosines {
            fn places(&self, i: usize, h: usize) -> [usize; 2] {
                [i, i + h / 2]
            }
        }),
    },
    Bug {
        id: "absolute/exponent-halved",
        misconception: "has i in the exponent, not 2i",
        story: "i counts pairs, and h counts columns. The last plane turns a hundred times as fast as it should, \
                and all others too fast as well.",
        source: None,
        named_by: "absolute/ten-times-slower",
        implementation: bug!(ExponentHalved {
            fn frequency(&self, i: usize, h: usize, base: f64) -> f64 {
                base.powf(-(i as f64) / h as f64)
            }
        }),
    },
    Bug {
        id: "absolute/exponent-doubled",
        misconception: "has 4i in the exponent, not 2i",
        story: "The loop goes over every second column already, and its index was doubled once more. Half of the planes \
                stand still.",
        source: None,
        named_by: "absolute/ten-times-slower",
        implementation: bug!(ExponentDoubled {
            fn frequency(&self, i: usize, h: usize, base: f64) -> f64 {
                base.powf(-4.0 * i as f64 / h as f64)
            }
        }),
    },
    Bug {
        id: "absolute/exponent-of-each-column",
        misconception: "gives each column a frequency of its own",
        story: "The exponent was made from the number of the column, where the formula has that of the pair. A sine and \
                its cosine turn at two speeds, so no rotation takes one position to another.",
        source: Some("DeepCTR issue 379"),
        named_by: "absolute/unit-circles",
        implementation: bug!(ExponentOfEachColumn {
            fn row(&self, m: usize, h: usize, base: f64) -> Vec<f64> {
                let angle = |c: usize| m as f64 * base.powf(-(c as f64) / h as f64);
                let column = |c: usize| {
                    if c.is_multiple_of(2) { angle(c).sin() } else { angle(c).cos() }
                };
                (0..h).map(column).collect()
            }
        }),
    },
    Bug {
        id: "absolute/base-1000",
        misconception: "has a base of its own, 1000",
        story: "One zero was lost. Short texts can't show it: the slow planes hardly move in them.",
        source: Some("maxjcohen/transformer issue 62"),
        named_by: "absolute/ten-times-slower",
        implementation: bug!(Base1000 {
            fn frequency(&self, i: usize, h: usize, _: f64) -> f64 {
                1000f64.powf(-2.0 * i as f64 / h as f64)
            }
        }),
    },
    Bug {
        id: "absolute/last-plane-at-base",
        misconception: "divides by one plane less, so that the last one reaches 1 / base",
        story: "ln(base) / (h/2 − 1), as the first code of the paper's authors has it, and fairseq. There it is right; \
                the paper's formula ends one step before.",
        source: None,
        named_by: "absolute/ten-times-slower",
        implementation: bug!(LastPlaneAtBase {
            fn frequency(&self, i: usize, h: usize, base: f64) -> f64 {
                let steps = (h / 2).saturating_sub(1).max(1);
                base.powf(-(i as f64) / steps as f64)
            }
        }),
    },
    Bug {
        id: "absolute/floor-in-the-exponent",
        misconception: "cuts ln(base) / h to a whole number in the exponent",
        story: "−log(base) / d // 2 was meant as −log(base) / (d // 2), and Python goes from left to right: the quotient \
                is −1. All planes but the first stand still. The model was published, and matched images well.",
        source: Some("LoFTR issue 41"),
        named_by: "absolute/ten-times-slower",
        implementation: bug!(FloorInTheExponent {
            fn frequency(&self, i: usize, h: usize, base: f64) -> f64 {
                (2.0 * i as f64 * (-base.ln() / h as f64).floor()).exp()
            }
        }),
    },
    Bug {
        id: "absolute/f32-angles",
        misconception: "computes angles in f32",
        story: "At position m an angle is off by up to m·2⁻²⁴: by nothing in the tests, by a hundredth at position \
                200,000.",
        source: None,
        named_by: "absolute/far-positions",
        implementation: bug!(F32Angles {
            fn angle(&self, position: usize, w: f64) -> f64 {
                f64::from(position as f32 * w as f32)
            }
            fn shift_angle(&self, steps: usize, w: f64) -> f64 {
                f64::from(steps as f32 * w as f32)
            }
        }),
    },
    Bug {
        id: "absolute/bf16-positions",
        misconception: "holds positions in bf16",
        story: "The positions were made in the type of the model. From 257 on, neighbours share one vector: bf16 has 8 \
                bits.",
        source: Some("depthcharge pull request 82"),
        named_by: "absolute/far-positions",
        implementation: bug!(Bf16Positions {
            fn angle(&self, position: usize, w: f64) -> f64 {
                in_bf16(position) * w
            }
        }),
    },
    Bug {
        id: "absolute/starts-at-one",
        misconception: "counts positions from 1",
        story: "Row 0 was kept for padding. One model alone can't tell; with the weights of another, each token stands \
                one place too far to the right.",
        source: None,
        named_by: "absolute/position-zero",
        implementation: bug!(StartsAtOne {
            fn row(&self, m: usize, h: usize, base: f64) -> Vec<f64> {
                Oracle.row(m.saturating_add(1), h, base)
            }
        }),
    },
    Bug {
        id: "absolute/table-from-zero",
        misconception: "begins each table at position 0",
        story: "The length of the range was taken, and its start was not. Whole texts are right.",
        source: None,
        named_by: "absolute/rows-are-a-slice",
        implementation: bug!(TableFromZero {
            fn table(&self, h: usize, base: f64, positions: Range<usize>) -> Vec<f64> {
                Oracle.table(h, base, 0..positions.len())
            }
        }),
    },
    Bug {
        id: "absolute/odd-size-accepted",
        misconception: "accepts an odd hidden size",
        story: "h / 2 is cut, and the last column stays 0: one element of each token has no position.",
        source: None,
        named_by: "absolute/sinusoids-refuse",
        implementation: bug!(OddSizeAccepted {
            fn check(&self, _: usize, _: f64) -> Reply<()> {
                Ok(())
            }
        }),
    },
    // --- the shift ---------------------------------------------------------------------------
    Bug {
        id: "absolute/shift-backward",
        misconception: "shifts back where it should shift on",
        story: "The matrix was transposed: vectors are rows in one book and columns in another. The transpose of a \
                rotation is the rotation back.",
        source: None,
        named_by: "absolute/shift-moves",
        implementation: bug!(ShiftBackward {
            fn block(&self, angle: f64) -> [[f64; 2]; 2] {
                let (sin, cos) = angle.sin_cos();
                [[cos, -sin], [sin, cos]]
            }
        }),
    },
    Bug {
        id: "absolute/shift-without-minus",
        misconception: "has no minus in the matrix of the shift",
        story: "Of sin(a + b) all signs are plus, and cos(a + b) was written like it.",
        source: None,
        named_by: "absolute/shift-moves",
        implementation: bug!(ShiftWithoutMinus {
            fn block(&self, angle: f64) -> [[f64; 2]; 2] {
                let (sin, cos) = angle.sin_cos();
                [[cos, sin], [sin, cos]]
            }
        }),
    },
    Bug {
        id: "absolute/shift-of-one-angle",
        misconception: "turns all planes of a shift alike",
        story: "The angle of the shift was taken for the steps themselves. With one plane, which the test had, it is \
                right.",
        source: None,
        named_by: "absolute/shift-moves",
        implementation: bug!(ShiftOfOneAngle {
            fn shift_angle(&self, steps: usize, _: f64) -> f64 {
                steps as f64
            }
        }),
    },
    Bug {
        id: "absolute/shift-of-halves",
        misconception: "turns column i with column i + h/2 in the shift",
        story: "The pairs of RoPE's halves, in a table whose pairs are neighbours.",
        source: None,
        named_by: "absolute/shift-moves",
        implementation: bug!(ShiftOfHalves {
            fn shift_places(&self, i: usize, h: usize) -> [usize; 2] {
                [i, i + h / 2]
            }
        }),
    },
    // --- what is added -----------------------------------------------------------------------
    Bug {
        id: "absolute/offset-ignored",
        misconception: "adds the sinusoids from position 0 on, whatever the offset is",
        story: "A text in one piece is right. With a cache each new token comes alone, and each is told that it is the \
                first.",
        source: Some("transformers pull request 15751"),
        named_by: "absolute/sinusoids-start-at-the-offset",
        implementation: bug!(OffsetIgnored {
            fn position(&self, _: &SinusoidCase, _: usize, t: usize) -> usize {
                t
            }
        }),
    },
    Bug {
        id: "absolute/offset-twice",
        misconception: "adds the offset twice to a position",
        story: "The caller had added it to the positions already. The prompt is right, and what is written after it \
                runs away.",
        source: None,
        named_by: "absolute/sinusoids-start-at-the-offset",
        implementation: bug!(OffsetTwice {
            fn position(&self, case: &SinusoidCase, _: usize, t: usize) -> usize {
                2 * case.offset + t
            }
        }),
    },
    Bug {
        id: "absolute/position-counts-through-the-batch",
        misconception: "goes on counting positions from one text of the batch to the next",
        story: "The batch was made flat before the positions were. With one text there is no difference.",
        source: None,
        named_by: "absolute/same-for-each-text",
        implementation: bug!(PositionCountsThroughTheBatch {
            fn position(&self, case: &SinusoidCase, b: usize, t: usize) -> usize {
                case.offset + b * case.shape[1] + t
            }
        }),
    },
    Bug {
        id: "absolute/tokens-scaled",
        misconception: "multiplies tokens by √h before the sinusoids are added",
        story: "The paper's embedding does, where the token is looked up. Done here as well, it is done twice, and the \
                positions can hardly be heard.",
        source: None,
        named_by: "absolute/additive",
        implementation: bug!(TokensScaled {
            fn sum(&self, x: f64, p: f64, h: usize) -> f64 {
                x * (h as f64).sqrt() + p
            }
        }),
    },
    // --- the learned table -------------------------------------------------------------------
    Bug {
        id: "absolute/wraps-past-the-table",
        misconception: "begins again at row 0 past the table's end",
        story: "A remainder, so that no index is out of range. Nothing fails, and position 1024 is position 0.",
        source: None,
        named_by: "absolute/past-the-table",
        implementation: bug!(WrapsPastTheTable {
            fn check_rows(&self, _: &LearnedCase) -> Reply<()> {
                Ok(())
            }
            fn learned_row(&self, case: &LearnedCase, _: usize, t: usize) -> usize {
                case.offset.wrapping_add(t) % case.max_seq_len
            }
        }),
    },
    Bug {
        id: "absolute/clamps-to-the-last-row",
        misconception: "uses the last row for all positions past the table's end",
        story: "Indices are clamped in some frameworks, without a word. From there on a model can't tell places apart.",
        source: None,
        named_by: "absolute/past-the-table",
        implementation: bug!(ClampsToTheLastRow {
            fn check_rows(&self, case: &LearnedCase) -> Reply<()> {
                // What is no position at all is refused.
                check_rows(&LearnedCase { max_seq_len: usize::MAX, ..case.clone() }, case.shape[1])
            }
            fn learned_row(&self, case: &LearnedCase, _: usize, t: usize) -> usize {
                (case.offset + t).min(case.max_seq_len - 1)
            }
        }),
    },
    Bug {
        id: "absolute/last-row-refused",
        misconception: "refuses the last row of the table",
        story: "< where ≤ was meant. A text as long as the table is refused, and nobody trains on one.",
        source: None,
        named_by: "absolute/whole-table",
        implementation: bug!(LastRowRefused {
            fn check_rows(&self, case: &LearnedCase) -> Reply<()> {
                check_rows(case, case.shape[1].saturating_add(1))
            }
        }),
    },
    Bug {
        id: "absolute/refusal-without-numbers",
        misconception: "refuses without the numbers",
        story: "Out of range, it says. Which position, and how many rows there are, is found an hour later.",
        source: None,
        named_by: "absolute/refusal-names-the-rows",
        implementation: bug!(RefusalWithoutNumbers {
            fn check_rows(&self, case: &LearnedCase) -> Reply<()> {
                check_rows(case, case.shape[1]).map_err(|_| Refusal::new("index out of range in self"))
            }
        }),
    },
    Bug {
        id: "absolute/learned-offset-ignored",
        misconception: "adds the learned rows from row 0 on, whatever the offset is",
        story: "Each token that comes after the prompt got the first row. Large models hardly minded, small ones wrote \
                nonsense.",
        source: Some("mlx-lm pull request 93"),
        named_by: "absolute/rows-are-taken",
        implementation: bug!(LearnedOffsetIgnored {
            fn learned_row(&self, _: &LearnedCase, _: usize, t: usize) -> usize {
                t
            }
        }),
    },
    Bug {
        id: "absolute/padding-rows",
        misconception: "skips the first two rows of the table",
        story: "In fairseq's models, and in BART and OPT after them, positions begin behind the padding's number, and \
                the table has two rows more. There it is right. With another model's table each token gets the row of \
                the one after the next.",
        source: Some("transformers issue 20761"),
        named_by: "absolute/rows-are-taken",
        implementation: bug!(PaddingRows {
            fn check_rows(&self, case: &LearnedCase) -> Reply<()> {
                check_rows(case, case.shape[1].saturating_add(2))
            }
            fn learned_row(&self, case: &LearnedCase, _: usize, t: usize) -> usize {
                case.offset + t + 2
            }
        }),
    },
    Bug {
        id: "absolute/rows-multiplied",
        misconception: "multiplies tokens by their rows",
        story: "A gate was wanted, or one letter was wrong. Where the table begins at 1 it even learns.",
        source: None,
        named_by: "absolute/rows-are-taken",
        implementation: bug!(RowsMultiplied {
            fn learned_sum(&self, x: f64, p: f64) -> f64 {
                x * p
            }
        }),
    },
    // --- gradients ---------------------------------------------------------------------------
    Bug {
        id: "absolute/gradient-of-x-lost",
        misconception: "lets no gradient through to the tokens",
        story: "The sum was made without the tape. The layers above learn, and the embedding below never does.",
        source: None,
        named_by: "absolute/gradient-passes",
        implementation: bug!(GradientOfXLost {
            fn dx(&self, _: f64) -> f64 {
                0.0
            }
        }),
    },
    Bug {
        id: "absolute/gradient-of-one-text",
        misconception: "gives a row the gradient of the last text only",
        story: "= where += was meant. With a batch of one it is right, and that is what the test had.",
        source: None,
        named_by: "absolute/gradient-counts-texts",
        implementation: bug!(GradientOfOneText {
            fn add(&self, _: f64, dy: f64, _: usize) -> f64 {
                dy
            }
        }),
    },
    Bug {
        id: "absolute/gradient-mean",
        misconception: "gives a row the mean over the texts, not the sum",
        story: "A loss is a mean over the batch already. The table learns slower the larger the batch is.",
        source: None,
        named_by: "absolute/gradient-counts-texts",
        implementation: bug!(GradientMean {
            fn add(&self, sum: f64, dy: f64, b: usize) -> f64 {
                sum + dy / b as f64
            }
        }),
    },
    Bug {
        id: "absolute/gradient-from-row-zero",
        misconception: "puts the gradient into the rows from 0 on, whatever the offset is",
        story: "The way back was written for texts that begin at 0, as all do while a model is trained.",
        source: None,
        named_by: "absolute/unseen-rows-stay",
        implementation: bug!(GradientFromRowZero {
            fn gradient_row(&self, _: &LearnedCase, t: usize) -> usize {
                t
            }
        }),
    },
    Bug {
        id: "absolute/gradient-of-all-rows",
        misconception: "pulls on rows that no token used",
        story: "A decay was written into the gradient. Rows that are never seen shrink to nothing.",
        source: None,
        named_by: "absolute/unseen-rows-stay",
        implementation: bug!(GradientOfAllRows {
            fn dtable(&self, case: &LearnedCase, dy: &[f32]) -> Vec<f64> {
                let sums = Oracle.dtable(case, dy);
                let decay = case.table.iter().map(|&weight| 0.01 * f64::from(weight));
                sums.into_iter().zip(decay).map(|(sum, decay)| sum + decay).collect()
            }
        }),
    },
    // --- a position for each token -----------------------------------------------------------
    Bug {
        id: "absolute/ids-ignored",
        misconception: "takes position_ids and adds the rows from 0 on all the same",
        story: "The positions were not handed on. Texts of one length are right. In a batch that is padded at its start every \
                text but the longest is shifted, and the model answers worse, without an error.",
        source: Some("nnsight pull request 673"),
        named_by: "absolute/each-token-its-row",
        implementation: bug!(IdsIgnored {
            fn position_at(&self, _: Ids, _: usize, t: usize) -> usize {
                t
            }
        }),
    },
    Bug {
        id: "absolute/ids-of-the-first-text",
        misconception: "gives every text the rows of the first one's position_ids",
        story: "One row of positions for the batch, which was right as long as there was an offset.",
        source: None,
        named_by: "absolute/each-token-its-row",
        implementation: bug!(IdsOfTheFirstText {
            fn position_at(&self, ids: Ids, _: usize, t: usize) -> usize {
                ids.of[t]
            }
        }),
    },
    Bug {
        id: "absolute/ids-counted-on",
        misconception: "reads the first of a row's position_ids and counts on from it",
        story: "The positions became an offset for each row. The second of two packed texts goes on where the first has ended.",
        source: None,
        named_by: "absolute/each-token-its-row",
        implementation: bug!(IdsCountedOn {
            fn position_at(&self, ids: Ids, b: usize, t: usize) -> usize {
                ids.of[b * ids.s] + t
            }
        }),
    },
    Bug {
        id: "absolute/ids-clamped",
        misconception: "gives a position past the table its last row",
        story: "A gather that clamps its indices, as some frameworks do without a word.",
        source: None,
        named_by: "absolute/id-past-the-table",
        implementation: bug!(IdsClamped {
            fn check_below(&self, _: Ids) -> Reply<()> {
                Ok(())
            }
            fn position_at(&self, ids: Ids, b: usize, t: usize) -> usize {
                Oracle.position_at(ids, b, t).min(ids.rows - 1)
            }
        }),
    },
    Bug {
        id: "absolute/last-id-checked-alone",
        misconception: "compares with the table's end only the last of each row's position_ids",
        story: "Positions grow along a row, so the last is the largest. In a packed row it is that of a short text.",
        source: None,
        named_by: "absolute/id-past-the-table",
        implementation: bug!(LastIdCheckedAlone {
            fn check_below(&self, ids: Ids) -> Reply<()> {
                let last: Vec<usize> = ids.of.iter().skip(ids.s - 1).step_by(ids.s).copied().collect();
                check_below(&last, ids.rows)
            }
        }),
    },
    Bug {
        id: "absolute/id-without-numbers",
        misconception: "refuses a position past the table without the numbers",
        story: "Out of range, it says, of one of ten thousand positions.",
        source: None,
        named_by: "absolute/id-past-the-table",
        implementation: bug!(IdWithoutNumbers {
            fn check_below(&self, ids: Ids) -> Reply<()> {
                Oracle.check_below(ids).map_err(|_| Refusal::new("index out of range in self"))
            }
        }),
    },
    Bug {
        id: "absolute/one-row-of-ids-for-all",
        misconception: "takes any number of position_ids, and goes through them again where they end",
        story: "A row of positions is broadcast over the batch, which is meant well. Somebody who pads each text and forgets \
                the batch is never told.",
        source: None,
        named_by: "absolute/one-id-for-each-token",
        implementation: bug!(OneRowOfIdsForAll {
            fn check_ids(&self, _: [usize; 3], _: &[usize]) -> Reply<()> {
                Ok(())
            }
            fn position_at(&self, ids: Ids, b: usize, t: usize) -> usize {
                ids.of[(b * ids.s + t) % ids.of.len()]
            }
        }),
    },
    Bug {
        id: "absolute/gradient-overwrites",
        misconception: "gives a row the gradient of the last token that stands there, and not the sum",
        story: "The way back of a gather was a scatter that writes. With an offset and one text no row is used twice.",
        source: Some("pytorch issue 1631"),
        named_by: "absolute/tokens-at-one-position-add",
        implementation: bug!(GradientOverwrites {
            fn dtable_at(&self, ids: Ids, h: usize, dy: &[f32]) -> Vec<f64> {
                let mut rows = vec![0.0; ids.rows * h];
                for (&id, dy) in ids.of.iter().zip(dy.chunks(h)) {
                    rows[id * h..].iter_mut().zip(dy).for_each(|(row, &dy)| *row = f64::from(dy));
                }
                rows
            }
        }),
    },
    Bug {
        id: "absolute/gradient-once-a-text",
        misconception: "counts a position once in each text, however many tokens stand there",
        story: "table[ids] += dy gathers, adds, and writes back: of two tokens at one position the second wins. Texts are added \
                in a loop, so a batch of plain texts is right.",
        source: Some("pytensor pull request 2242"),
        named_by: "absolute/tokens-at-one-position-add",
        implementation: bug!(GradientOnceAText {
            fn dtable_at(&self, ids: Ids, h: usize, dy: &[f32]) -> Vec<f64> {
                let mut sums = vec![0.0; ids.rows * h];
                for (text, dy) in ids.of.chunks(ids.s).zip(dy.chunks(ids.s * h)) {
                    let before = sums.clone();
                    for (&id, dy) in text.iter().zip(dy.chunks(h)) {
                        for (at, &dy) in (id * h..).zip(dy) {
                            sums[at] = before[at] + f64::from(dy);
                        }
                    }
                }
                sums
            }
        }),
    },
    Bug {
        id: "absolute/gradient-by-column",
        misconception: "puts the gradient into the rows from 0 on, whatever position_ids are",
        story: "The forward pass was taught the positions, and the backward pass sums over the batch as before.",
        source: None,
        named_by: "absolute/tokens-at-one-position-add",
        implementation: bug!(GradientByColumn {
            fn dtable_at(&self, ids: Ids, h: usize, dy: &[f32]) -> Vec<f64> {
                let columns: Vec<usize> = (0..ids.of.len()).map(|token| token % ids.s).collect();
                let rows = ids.rows.max(ids.s);
                let mut sums = Oracle.dtable_at(Ids { of: &columns, rows, ..ids }, h, dy);
                sums.truncate(ids.rows * h);
                sums
            }
        }),
    },
];
