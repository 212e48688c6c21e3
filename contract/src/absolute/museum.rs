//! Bugs of absolute positions.

use crate::absolute::interface::*;
use crate::absolute::oracle::{Ids, PositionLoops, check_below, check_rows};
use crate::component::{bug, bugs};
use crate::oracle::Oracle;
use std::ops::Range;

bugs! {
    // --- the table ---------------------------------------------------------------------------
    CosineFirst, SinesBeforeCosines, ExponentHalved, ExponentDoubled, ExponentOfEachColumn, Base1000, LastPlaneAtBase,
    FloorInTheExponent, F32Angles, Bf16Positions, StartsAtOne, TableFromZero, OddSizeAccepted,
    // --- the shift ---------------------------------------------------------------------------
    ShiftBackward, ShiftWithoutMinus, ShiftOfOneAngle, ShiftOfHalves,
    // --- what is added -----------------------------------------------------------------------
    OffsetIgnored, OffsetTwice, PositionCountsThroughTheBatch, TokensScaled,
    // --- the learned table -------------------------------------------------------------------
    WrapsPastTheTable, ClampsToTheLastRow, LastRowRefused, RefusalWithoutNumbers, LearnedOffsetIgnored, PaddingRows,
    RowsMultiplied,
    // --- gradients ---------------------------------------------------------------------------
    GradientOfXLost, GradientOfOneText, GradientMean, GradientFromRowZero, GradientOfAllRows,
    // --- a position for each token -----------------------------------------------------------
    IdsIgnored, IdsOfTheFirstText, IdsCountedOn, IdsClamped, LastIdCheckedAlone, IdWithoutNumbers, OneRowOfIdsForAll,
    GradientOverwrites, GradientOnceAText, GradientByColumn,
}

/// A position with the 8 bits that `bf16` has for it, rounded to even.
fn in_bf16(position: usize) -> f64 {
    let bits = (position as f32).to_bits();
    let rounded = bits + 0x7FFF + ((bits >> 16) & 1);
    f64::from(f32::from_bits(rounded & 0xFFFF_0000))
}

// --- the table ---------------------------------------------------------------------------

/// puts the cosine before the sine
///
/// exp(i·angle) has the cosine as its first part. A model trained this way learns as well, but with another model's weights
/// it reads every position wrong.
#[bug("absolute/cosine-first", named_by = "absolute/position-zero")]
impl PositionLoops for CosineFirst {
    fn pair(&self, angle: f64) -> [f64; 2] {
        [angle.cos(), angle.sin()]
    }
}

/// puts all sines before all cosines
///
/// The first code of the paper's authors did so, as fairseq and Marian still do, and there it is right. The columns are the
/// same in another order, so a model learns equally well, but weights do not transfer.
#[bug(
    "absolute/sines-before-cosines",
    named_by = "absolute/position-zero",
    source = "AllenNLP issue 2993"
)]
impl PositionLoops for SinesBeforeCosines {
    fn places(&self, i: usize, h: usize) -> [usize; 2] {
        [i, i + h / 2]
    }
}

/// has i instead of 2i in the exponent
///
/// i counts pairs, whereas h counts columns. The last plane turns a hundred times as fast as it should, and all others are
/// too fast as well.
#[bug("absolute/exponent-halved", named_by = "absolute/ten-times-slower")]
impl PositionLoops for ExponentHalved {
    fn frequency(&self, i: usize, h: usize, base: f64) -> f64 {
        base.powf(-(i as f64) / h as f64)
    }
}

/// has 4i instead of 2i in the exponent
///
/// The loop already visits every second column, but its index was doubled once more, so half of the planes stand still.
#[bug("absolute/exponent-doubled", named_by = "absolute/ten-times-slower")]
impl PositionLoops for ExponentDoubled {
    fn frequency(&self, i: usize, h: usize, base: f64) -> f64 {
        base.powf(-4.0 * i as f64 / h as f64)
    }
}

/// gives each column its own frequency
///
/// The exponent was computed from the column's number instead of the pair's. A sine and its cosine then turn at two speeds,
/// so no rotation takes one position to another.
#[bug(
    "absolute/exponent-of-each-column",
    named_by = "absolute/unit-circles",
    source = "DeepCTR issue 379"
)]
impl PositionLoops for ExponentOfEachColumn {
    fn row(&self, m: usize, h: usize, base: f64) -> Vec<f64> {
        let angle = |c: usize| m as f64 * base.powf(-(c as f64) / h as f64);
        let column = |c: usize| {
            if c.is_multiple_of(2) { angle(c).sin() } else { angle(c).cos() }
        };
        (0..h).map(column).collect()
    }
}

/// always uses 1000 as its base
///
/// A zero was lost. Short texts can't reveal it, because the slow planes hardly move in them.
#[bug(
    "absolute/base-1000",
    named_by = "absolute/ten-times-slower",
    source = "maxjcohen/transformer issue 62"
)]
impl PositionLoops for Base1000 {
    fn frequency(&self, i: usize, h: usize, _: f64) -> f64 {
        1000f64.powf(-2.0 * i as f64 / h as f64)
    }
}

/// divides by one plane less, so that the last one reaches 1 / base
///
/// The first code of the paper's authors has ln(base) / (h/2 − 1), and so has fairseq, where it is right. The paper's
/// formula ends one step earlier.
#[bug("absolute/last-plane-at-base", named_by = "absolute/ten-times-slower")]
impl PositionLoops for LastPlaneAtBase {
    fn frequency(&self, i: usize, h: usize, base: f64) -> f64 {
        let steps = (h / 2).saturating_sub(1).max(1);
        base.powf(-(i as f64) / steps as f64)
    }
}

/// rounds −ln(base) / h down to a whole number in the exponent
///
/// −log(base) / d // 2 was meant as −log(base) / (d // 2), but Python evaluates from left to right, so the quotient is −1.
/// All planes except the first stand still. The model was published, and matched images well.
#[bug(
    "absolute/floor-in-the-exponent",
    named_by = "absolute/ten-times-slower",
    source = "LoFTR issue 41"
)]
impl PositionLoops for FloorInTheExponent {
    fn frequency(&self, i: usize, h: usize, base: f64) -> f64 {
        (2.0 * i as f64 * (-base.ln() / h as f64).floor()).exp()
    }
}

/// computes angles in f32
///
/// At position m an angle is off by up to m·2⁻²⁴, which is nothing in the tests but a hundredth at position 200,000.
#[bug("absolute/f32-angles", named_by = "absolute/far-positions")]
impl PositionLoops for F32Angles {
    fn angle(&self, position: usize, w: f64) -> f64 {
        f64::from(position as f32 * w as f32)
    }
    fn shift_angle(&self, steps: usize, w: f64) -> f64 {
        f64::from(steps as f32 * w as f32)
    }
}

/// stores positions in bf16
///
/// The positions have the model's type, and because bf16 has 8 bits, neighbours share one vector from 257 on.
#[bug(
    "absolute/bf16-positions",
    named_by = "absolute/far-positions",
    source = "depthcharge pull request 82"
)]
impl PositionLoops for Bf16Positions {
    fn angle(&self, position: usize, w: f64) -> f64 {
        in_bf16(position) * w
    }
}

/// counts positions from 1
///
/// Row 0 was reserved for padding. A single model doesn't notice, but with another model's weights each token is one place
/// too far to the right.
#[bug("absolute/starts-at-one", named_by = "absolute/position-zero")]
impl PositionLoops for StartsAtOne {
    fn row(&self, m: usize, h: usize, base: f64) -> Vec<f64> {
        Oracle.row(m.saturating_add(1), h, base)
    }
}

/// starts every table at position 0
///
/// Only the length of the range was used, not its start, so whole texts are right.
#[bug("absolute/table-from-zero", named_by = "absolute/rows-are-a-slice")]
impl PositionLoops for TableFromZero {
    fn table(&self, h: usize, base: f64, positions: Range<usize>) -> Vec<f64> {
        Oracle.table(h, base, 0..positions.len())
    }
}

/// accepts an odd hidden size
///
/// h / 2 is rounded down, so the last column stays 0 and one element of each token has no position.
#[bug("absolute/odd-size-accepted", named_by = "absolute/sinusoids-refuse")]
impl PositionLoops for OddSizeAccepted {
    fn check(&self, _: usize, _: f64) -> Reply<()> {
        Ok(())
    }
}

// --- the shift ---------------------------------------------------------------------------

/// shifts backward instead of forward
///
/// The matrix was transposed, because vectors are rows in one book and columns in another. The transpose of a rotation is
/// the rotation back.
#[bug("absolute/shift-backward", named_by = "absolute/shift-moves")]
impl PositionLoops for ShiftBackward {
    fn block(&self, angle: f64) -> [[f64; 2]; 2] {
        let (sin, cos) = angle.sin_cos();
        [[cos, -sin], [sin, cos]]
    }
}

/// has no minus in the matrix of the shift
///
/// All signs in sin(a + b) are plus, and cos(a + b) was written the same way.
#[bug("absolute/shift-without-minus", named_by = "absolute/shift-moves")]
impl PositionLoops for ShiftWithoutMinus {
    fn block(&self, angle: f64) -> [[f64; 2]; 2] {
        let (sin, cos) = angle.sin_cos();
        [[cos, sin], [sin, cos]]
    }
}

/// turns all planes of a shift by the same angle
///
/// The steps themselves were used as the shift's angle, which is right for the single plane in the test.
#[bug("absolute/shift-of-one-angle", named_by = "absolute/shift-moves")]
impl PositionLoops for ShiftOfOneAngle {
    fn shift_angle(&self, steps: usize, _: f64) -> f64 {
        steps as f64
    }
}

/// pairs column i with column i + h/2 in the shift
///
/// Those are the pairs of RoPE's halves, in a table whose pairs are neighbours.
#[bug("absolute/shift-of-halves", named_by = "absolute/shift-moves")]
impl PositionLoops for ShiftOfHalves {
    fn shift_places(&self, i: usize, h: usize) -> [usize; 2] {
        [i, i + h / 2]
    }
}

// --- what is added -----------------------------------------------------------------------

/// adds the sinusoids from position 0 on, whatever the offset is
///
/// A text in one piece is right. With a cache each new token comes alone, and each is treated as the first.
#[bug(
    "absolute/offset-ignored",
    named_by = "absolute/sinusoids-start-at-the-offset",
    source = "transformers pull request 15751"
)]
impl PositionLoops for OffsetIgnored {
    fn position(&self, _: &SinusoidCase, _: usize, t: usize) -> usize {
        t
    }
}

/// adds the offset twice to a position
///
/// The caller had already added it to the positions. The prompt is right, but everything written after it drifts away.
#[bug("absolute/offset-twice", named_by = "absolute/sinusoids-start-at-the-offset")]
impl PositionLoops for OffsetTwice {
    fn position(&self, case: &SinusoidCase, _: usize, t: usize) -> usize {
        2 * case.offset + t
    }
}

/// keeps counting positions from one text of the batch to the next
///
/// The batch was flattened before the positions were computed, which makes no difference for a single text.
#[bug("absolute/position-counts-through-the-batch", named_by = "absolute/same-for-each-text")]
impl PositionLoops for PositionCountsThroughTheBatch {
    fn position(&self, case: &SinusoidCase, b: usize, t: usize) -> usize {
        case.offset + b * case.shape[1] + t
    }
}

/// multiplies tokens by √h before adding the sinusoids
///
/// The paper's embedding does so where the token is looked up. Here it happens a second time, and drowns the positions out.
#[bug("absolute/tokens-scaled", named_by = "absolute/additive")]
impl PositionLoops for TokensScaled {
    fn sum(&self, x: f64, p: f64, h: usize) -> f64 {
        x * (h as f64).sqrt() + p
    }
}

// --- the learned table -------------------------------------------------------------------

/// starts over at row 0 past the table's end
///
/// A remainder keeps every index in range. Nothing fails, and position 1024 becomes position 0.
#[bug("absolute/wraps-past-the-table", named_by = "absolute/past-the-table")]
impl PositionLoops for WrapsPastTheTable {
    fn check_rows(&self, _: &LearnedCase) -> Reply<()> {
        Ok(())
    }
    fn learned_row(&self, case: &LearnedCase, _: usize, t: usize) -> usize {
        case.offset.wrapping_add(t) % case.max_seq_len
    }
}

/// uses the last row for all positions past the table's end
///
/// Some frameworks clamp indices silently, and from there on a model can't tell places apart.
#[bug("absolute/clamps-to-the-last-row", named_by = "absolute/past-the-table")]
impl PositionLoops for ClampsToTheLastRow {
    fn check_rows(&self, case: &LearnedCase) -> Reply<()> {
        // What is no position at all is refused.
        check_rows(&LearnedCase { max_seq_len: usize::MAX, ..case.clone() }, case.shape[1])
    }
    fn learned_row(&self, case: &LearnedCase, _: usize, t: usize) -> usize {
        (case.offset + t).min(case.max_seq_len - 1)
    }
}

/// rejects the last row of the table
///
/// < was written for ≤, so a text as long as the table is rejected, but training never has one.
#[bug("absolute/last-row-refused", named_by = "absolute/whole-table")]
impl PositionLoops for LastRowRefused {
    fn check_rows(&self, case: &LearnedCase) -> Reply<()> {
        check_rows(case, case.shape[1].saturating_add(1))
    }
}

/// rejects a text without giving the numbers
///
/// The error says "out of range". Which position, and how many rows there are, is found an hour later.
#[bug("absolute/refusal-without-numbers", named_by = "absolute/refusal-names-the-rows")]
impl PositionLoops for RefusalWithoutNumbers {
    fn check_rows(&self, case: &LearnedCase) -> Reply<()> {
        check_rows(case, case.shape[1]).map_err(|_| Refusal::new("index out of range in self"))
    }
}

/// adds the learned rows from row 0 on, whatever the offset is
///
/// Each token after the prompt got the first row. Large models hardly minded, while small ones wrote nonsense.
#[bug(
    "absolute/learned-offset-ignored",
    named_by = "absolute/rows-are-taken",
    source = "mlx-lm pull request 93"
)]
impl PositionLoops for LearnedOffsetIgnored {
    fn learned_row(&self, _: &LearnedCase, _: usize, t: usize) -> usize {
        t
    }
}

/// skips the first two rows of the table
///
/// In fairseq's models, and in BART and OPT after them, positions start after the padding's number and the table has two
/// additional rows. There it is right. With another model's table each token gets the row of the next token but one.
#[bug(
    "absolute/padding-rows",
    named_by = "absolute/rows-are-taken",
    source = "transformers issue 20761"
)]
impl PositionLoops for PaddingRows {
    fn check_rows(&self, case: &LearnedCase) -> Reply<()> {
        check_rows(case, case.shape[1].saturating_add(2))
    }
    fn learned_row(&self, case: &LearnedCase, _: usize, t: usize) -> usize {
        case.offset + t + 2
    }
}

/// multiplies tokens by their rows
///
/// A gate was intended, or one letter was wrong. If the table starts at 1, the model even learns.
#[bug("absolute/rows-multiplied", named_by = "absolute/rows-are-taken")]
impl PositionLoops for RowsMultiplied {
    fn learned_sum(&self, x: f64, p: f64) -> f64 {
        x * p
    }
}

// --- gradients ---------------------------------------------------------------------------

/// passes no gradient through to the tokens
///
/// The sum was computed without the tape, so the layers above learn and the embedding below never does.
#[bug("absolute/gradient-of-x-lost", named_by = "absolute/gradient-passes")]
impl PositionLoops for GradientOfXLost {
    fn dx(&self, _: f64) -> f64 {
        0.0
    }
}

/// gives a row only the last text's gradient
///
/// = was written instead of +=, which is right for a batch of one, and that is what the test had.
#[bug("absolute/gradient-of-one-text", named_by = "absolute/gradient-counts-texts")]
impl PositionLoops for GradientOfOneText {
    fn add(&self, _: f64, dy: f64, _: usize) -> f64 {
        dy
    }
}

/// gives a row the mean over the texts instead of the sum
///
/// The loss is already a mean over the batch. Now the table learns more slowly the larger the batch is.
#[bug("absolute/gradient-mean", named_by = "absolute/gradient-counts-texts")]
impl PositionLoops for GradientMean {
    fn add(&self, sum: f64, dy: f64, b: usize) -> f64 {
        sum + dy / b as f64
    }
}

/// writes the gradient into the rows from 0 on, whatever the offset is
///
/// The backward pass was written for texts that start at 0, as all do in training.
#[bug("absolute/gradient-from-row-zero", named_by = "absolute/unseen-rows-stay")]
impl PositionLoops for GradientFromRowZero {
    fn gradient_row(&self, _: &LearnedCase, t: usize) -> usize {
        t
    }
}

/// gives a gradient to rows that no token used
///
/// A decay was written into the gradient, so rows that are never seen shrink to nothing.
#[bug("absolute/gradient-of-all-rows", named_by = "absolute/unseen-rows-stay")]
impl PositionLoops for GradientOfAllRows {
    fn dtable(&self, case: &LearnedCase, dy: &[f32]) -> Vec<f64> {
        let sums = Oracle.dtable(case, dy);
        let decay = case.table.iter().map(|&weight| 0.01 * f64::from(weight));
        sums.into_iter().zip(decay).map(|(sum, decay)| sum + decay).collect()
    }
}

// --- a position for each token -----------------------------------------------------------

/// accepts position_ids but adds the rows from 0 on all the same
///
/// The positions were not passed on. Texts of equal length are right, but in a batch padded at its start every text except
/// the longest is shifted, and the model answers worse without any error.
#[bug(
    "absolute/ids-ignored",
    named_by = "absolute/each-token-its-row",
    source = "nnsight pull request 673"
)]
impl PositionLoops for IdsIgnored {
    fn position_at(&self, _: Ids, _: usize, t: usize) -> usize {
        t
    }
}

/// gives every text the rows of the first one's position_ids
///
/// The batch has one row of positions, which was right as long as there was an offset.
#[bug("absolute/ids-of-the-first-text", named_by = "absolute/each-token-its-row")]
impl PositionLoops for IdsOfTheFirstText {
    fn position_at(&self, ids: Ids, _: usize, t: usize) -> usize {
        ids.of[t]
    }
}

/// reads only the first of a row's position_ids and counts on from it
///
/// The positions became an offset for each row, so the second of two packed texts continues where the first has ended.
#[bug("absolute/ids-counted-on", named_by = "absolute/each-token-its-row")]
impl PositionLoops for IdsCountedOn {
    fn position_at(&self, ids: Ids, b: usize, t: usize) -> usize {
        ids.of[b * ids.s] + t
    }
}

/// gives a position past the table its last row
///
/// A gather clamps its indices, as some frameworks do silently.
#[bug("absolute/ids-clamped", named_by = "absolute/id-past-the-table")]
impl PositionLoops for IdsClamped {
    fn check_below(&self, _: Ids) -> Reply<()> {
        Ok(())
    }
    fn position_at(&self, ids: Ids, b: usize, t: usize) -> usize {
        Oracle.position_at(ids, b, t).min(ids.rows - 1)
    }
}

/// compares only the last of each row's position_ids with the table's end
///
/// Positions grow along a row, so the last should be the largest. In a packed row it belongs to a short text.
#[bug("absolute/last-id-checked-alone", named_by = "absolute/id-past-the-table")]
impl PositionLoops for LastIdCheckedAlone {
    fn check_below(&self, ids: Ids) -> Reply<()> {
        let last: Vec<usize> = ids.of.iter().skip(ids.s - 1).step_by(ids.s).copied().collect();
        check_below(&last, ids.rows)
    }
}

/// rejects a position past the table without giving the numbers
///
/// The error says "out of range" about one of ten thousand positions.
#[bug("absolute/id-without-numbers", named_by = "absolute/id-past-the-table")]
impl PositionLoops for IdWithoutNumbers {
    fn check_below(&self, ids: Ids) -> Reply<()> {
        Oracle.check_below(ids).map_err(|_| Refusal::new("index out of range in self"))
    }
}

/// accepts any number of position_ids and starts over where they end
///
/// One row of positions is broadcast over the batch, which is meant well. If you pad each text and forget the batch,
/// nothing warns you.
#[bug("absolute/one-row-of-ids-for-all", named_by = "absolute/one-id-for-each-token")]
impl PositionLoops for OneRowOfIdsForAll {
    fn check_ids(&self, _: [usize; 3], _: &[usize]) -> Reply<()> {
        Ok(())
    }
    fn position_at(&self, ids: Ids, b: usize, t: usize) -> usize {
        ids.of[(b * ids.s + t) % ids.of.len()]
    }
}

/// gives a row only the gradient of the last token at that position instead of the sum
///
/// The backward pass of a gather became a scatter that overwrites. With an offset and one text no row is used twice.
#[bug(
    "absolute/gradient-overwrites",
    named_by = "absolute/tokens-at-one-position-add",
    source = "pytorch issue 1631"
)]
impl PositionLoops for GradientOverwrites {
    fn dtable_at(&self, ids: Ids, h: usize, dy: &[f32]) -> Vec<f64> {
        let mut rows = vec![0.0; ids.rows * h];
        for (&id, dy) in ids.of.iter().zip(dy.chunks(h)) {
            rows[id * h..].iter_mut().zip(dy).for_each(|(row, &dy)| *row = f64::from(dy));
        }
        rows
    }
}

/// counts a position once per text, however many tokens are there
///
/// table[ids] += dy gathers, adds and writes back, so the second of two tokens at one position wins. Texts are added in a
/// loop, so a batch of plain texts is right.
#[bug(
    "absolute/gradient-once-a-text",
    named_by = "absolute/tokens-at-one-position-add",
    source = "pytensor pull request 2242"
)]
impl PositionLoops for GradientOnceAText {
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
}

/// writes the gradient into the rows from 0 on, whatever position_ids are
///
/// The forward pass learned about position_ids, while the backward pass still sums over the batch.
#[bug("absolute/gradient-by-column", named_by = "absolute/tokens-at-one-position-add")]
impl PositionLoops for GradientByColumn {
    fn dtable_at(&self, ids: Ids, h: usize, dy: &[f32]) -> Vec<f64> {
        let columns: Vec<usize> = (0..ids.of.len()).map(|token| token % ids.s).collect();
        let rows = ids.rows.max(ids.s);
        let mut sums = Oracle.dtable_at(Ids { of: &columns, rows, ..ids }, h, dy);
        sums.truncate(ids.rows * h);
        sums
    }
}
