//! Bugs of the rotation, and of the two layouts.

use super::tables_to_f16;
use crate::component::bug;
use crate::oracle::Oracle;
use crate::rope::interface::*;
use crate::rope::oracle::{RopeLoops, pick_rows};

/// The case with a single row of tables repeated for all rows of `x`.
fn broadcast(case: &RotateCase) -> RotateCase {
    let [_, s, _, d] = case.shape;
    let one = case.tables.cos.len() == d && case.tables.sin.len() == d;
    if d == 0 || !one || s > case.x.len() {
        return case.clone();
    }
    RotateCase { tables: pick_rows(&case.tables, d, 0..s), ..case.clone() }
}

// --- rotation ---------------------------------------------------------------------------

/// turns adjacent dimensions together in the half-split layout
///
/// The paper and GPT-J pair neighbours, while Llama and GPT-NeoX pair halves. It is the most common mix-up: shapes
/// agree, but weights do not.
#[bug("rope/adjacent-pairs", named_by = "rope/rotate-unit-vector")]
impl RopeLoops for AdjacentPairs {
    fn pair(&self, _: Layout, i: usize, d: usize) -> [usize; 2] {
        Oracle.pair(Layout::Interleaved, i, d)
    }
}

/// turns halves together in the interleaved layout
///
/// The layout was accepted but never used.
#[bug("rope/layout-ignored", named_by = "rope/rotate-interleaved")]
impl RopeLoops for LayoutIgnored {
    fn pair(&self, _: Layout, i: usize, d: usize) -> [usize; 2] {
        Oracle.pair(Layout::HalfSplit, i, d)
    }
}

/// pairs the first dimension with the last, the second with the last but one
///
/// It folds instead of cutting, and each plane still has two dimensions.
#[bug("rope/mirrored-pairs", named_by = "rope/rotate-unit-vector")]
impl RopeLoops for MirroredPairs {
    fn pair(&self, layout: Layout, i: usize, d: usize) -> [usize; 2] {
        match layout {
            Layout::HalfSplit => [i, d - 1 - i],
            Layout::Interleaved => Oracle.pair(layout, i, d),
        }
    }
}

/// turns the other way: the minus is on the second half
///
/// With rotate_half as (x2, −x1), lengths and the relative property are kept.
#[bug("rope/sign-flipped", named_by = "rope/rotate-unit-vector")]
impl RopeLoops for SignFlipped {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        Oracle.turn(x, cos, sin.map(|s| -s))
    }
    fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        Oracle.turn_back(dy, cos, sin.map(|s| -s))
    }
}

/// adds both sines, without a minus
///
/// With rotate_half as (x2, x1), a swap, it stretches where it should turn.
#[bug("rope/both-plus", named_by = "rope/rotate-keeps-lengths")]
impl RopeLoops for BothPlus {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [x[0] * cos[0] + x[1] * sin[0], x[1] * cos[1] + x[0] * sin[1]]
    }
}

/// turns the first half and leaves the second unchanged
///
/// The second assignment is missing.
#[bug("rope/half-left", named_by = "rope/rotate-keeps-lengths")]
impl RopeLoops for HalfLeft {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [Oracle.turn(x, cos, sin)[0], x[1]]
    }
}

/// computes the second half from the first half after it was turned
///
/// It works in place, although the old value was needed once more.
#[bug("rope/in-place", named_by = "rope/rotate-keeps-lengths")]
impl RopeLoops for InPlace {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        let first = Oracle.turn(x, cos, sin)[0];
        [first, x[1] * cos[1] + first * sin[1]]
    }
}

/// changes signs but does not swap the halves
///
/// rotate_half gives (−x1, x2), because the concatenation has its parts in the old order.
#[bug("rope/no-swap", named_by = "rope/rotate-keeps-lengths")]
impl RopeLoops for NoSwap {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [x[0] * cos[0] - x[0] * sin[0], x[1] * cos[1] + x[1] * sin[1]]
    }
}

/// writes the imaginary part of the complex product into both halves
///
/// A tutorial has q1·cos + q0·sin for both parts, because it concatenates one tensor with itself.
#[bug("rope/one-part-twice", named_by = "rope/rotate-keeps-lengths")]
impl RopeLoops for OnePartTwice {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [Oracle.turn(x, cos, sin)[1]; 2]
    }
}

/// multiplies by the cosine and forgets the sine
///
/// The second term was lost, but at position 0 the result is right.
#[bug("rope/cosine-only", named_by = "rope/rotate-keeps-lengths")]
impl RopeLoops for CosineOnly {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], _: [f64; 2]) -> [f64; 2] {
        [x[0] * cos[0], x[1] * cos[1]]
    }
}

/// turns only the first half of the planes
///
/// Some models have a setting for partial rotary embedding, but this one has none.
#[bug("rope/partial", named_by = "rope/rotate-unit-vector")]
impl RopeLoops for Partial {
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        let d = case.shape[3];
        let mut y = Oracle.rotate(case);
        for i in d / 4..d / 2 {
            for j in Oracle.pair(case.layout, i, d) {
                let x = case.x.iter().skip(j).step_by(d);
                let y = y.iter_mut().skip(j).step_by(d);
                y.zip(x).for_each(|(y, &x)| *y = f64::from(x));
            }
        }
        y
    }
}

/// divides by √d as well, which is attention's task
///
/// The scale of the scores was moved into the queries and came back here.
#[bug("rope/scaled", named_by = "rope/rotate-position-zero")]
impl RopeLoops for Scaled {
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        let root = (case.shape[3] as f64).sqrt();
        Oracle.rotate(case).into_iter().map(|y| y / root).collect()
    }
}

/// divides cosine and sine by their length before the turn
///
/// It guards against tables off the circle, and true ones hide that the rotation is no longer what its tables say.
#[bug("rope/renormalized", named_by = "rope/rotate-f64-loops")]
impl RopeLoops for Renormalized {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        let length = cos[0].hypot(sin[0]).max(1e-9);
        Oracle.turn(x, cos.map(|c| c / length), sin.map(|s| s / length))
    }
}

/// adds cosine and sine to x instead of turning x by them
///
/// That is the sinusoidal position embedding of the original Transformer.
#[bug("rope/added", named_by = "rope/rotate-linear")]
impl RopeLoops for Added {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [x[0] + sin[0], x[1] + cos[1]]
    }
}

/// clamps the result to ±4
///
/// It is a guard against overflow, from a quantized model.
#[bug("rope/clamped", named_by = "rope/rotate-linear")]
impl RopeLoops for Clamped {
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        Oracle.rotate(case).into_iter().map(|y| y.clamp(-4.0, 4.0)).collect()
    }
}

/// computes the rotation in f16
///
/// The tables were cast to the model's type before the product, which leaves three digits.
#[bug("rope/turned-in-f16", named_by = "rope/rotate-composes")]
impl RopeLoops for TurnedInF16 {
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        let tables = tables_to_f16(case.tables.clone());
        Oracle.rotate(&RotateCase { tables, ..case.clone() })
    }
}

/// advances the position with each batch row
///
/// Batch rows were packed one after another, which is right with a single one.
#[bug("rope/position-per-batch-row", named_by = "rope/rotate-same-for-all")]
impl RopeLoops for PerBatchRow {
    fn table_row(&self, [b, t, _]: [usize; 3], shape: &[usize; 4]) -> usize {
        (b + t) % shape[1]
    }
}

/// uses the head as the position
///
/// The tensor was [b, nh, s, hd] in the original code, and with one head and token nothing shows.
#[bug("rope/heads-are-positions", named_by = "rope/rotate-same-for-all")]
impl RopeLoops for HeadsArePositions {
    fn table_row(&self, [_, _, n]: [usize; 3], shape: &[usize; 4]) -> usize {
        n % shape[1]
    }
}

/// turns every row by the first row of the tables
///
/// It broadcasts along the wrong axis, but decoding one token at a time is right.
#[bug("rope/first-row-for-all", named_by = "rope/rotate-unit-vector")]
impl RopeLoops for FirstRowForAll {
    fn table_row(&self, _: [usize; 3], _: &[usize; 4]) -> usize {
        0
    }
}

/// reads the rows of the tables in reverse
///
/// Distances between tokens keep their size but change their sign.
#[bug("rope/rows-reversed", named_by = "rope/rotate-unit-vector")]
impl RopeLoops for RowsReversed {
    fn table_row(&self, [_, t, _]: [usize; 3], shape: &[usize; 4]) -> usize {
        shape[1] - 1 - t
    }
}

/// multiplies by the whole rotation matrix, its zeros included
///
/// The paper's matrix is written out, which is wasteful, and as 0 · NaN is NaN, one plane spoils its head.
#[bug("rope/whole-matrix", named_by = "rope/rotate-planes-apart")]
impl RopeLoops for WholeMatrix {
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        let mut y = Oracle.rotate(case);
        for (y, x) in y.chunks_mut(case.shape[3]).zip(case.x.chunks(case.shape[3])) {
            let zeros: f64 = x.iter().map(|&x| 0.0 * f64::from(x)).sum();
            y.iter_mut().for_each(|y| *y += zeros);
        }
        y
    }
}

/// accepts tables with more rows than x and uses the first ones
///
/// The whole cache was passed without a slice, so with an offset the rows are those of the start.
#[bug("rope/longer-tables", named_by = "rope/rotate-table-shape")]
impl RopeLoops for LongerTables {
    fn check_rotate(&self, case: &RotateCase) -> Reply<()> {
        let [_, s, _, d] = case.shape;
        let rows = |table: &[f32]| table[..table.len().min(s.saturating_mul(d))].to_vec();
        let tables = Tables { cos: rows(&case.tables.cos), sin: rows(&case.tables.sin) };
        Oracle.check_rotate(&RotateCase { tables, ..case.clone() })
    }
}

/// accepts tables with a single row and turns all rows by it
///
/// Broadcasting does that without a warning in many libraries.
#[bug("rope/broadcast-tables", named_by = "rope/rotate-table-shape")]
impl RopeLoops for BroadcastTables {
    fn check_rotate(&self, case: &RotateCase) -> Reply<()> {
        Oracle.check_rotate(&broadcast(case))
    }
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        Oracle.rotate(&broadcast(case))
    }
    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
        Oracle.rotate_backward(&broadcast(case), dy)
    }
}

// --- layouts ----------------------------------------------------------------------------

/// splits where it should interleave, and interleaves where it should split
///
/// They undo each other either way, so a round trip passes, and for d = 4 they are even the same.
#[bug("rope/interleave-wrong-way", named_by = "rope/interleaved-order")]
impl RopeLoops for WrongWay {
    fn to_interleaved(&self, d: usize, x: &[f32]) -> Vec<f32> {
        Oracle.to_half_split(d, x)
    }
    fn to_half_split(&self, d: usize, x: &[f32]) -> Vec<f32> {
        Oracle.to_interleaved(d, x)
    }
}

/// interleaves in both directions
///
/// One function does both, as the reordering was thought to be its own inverse, which it is for d = 4.
#[bug("rope/interleave-both-ways", named_by = "rope/half-split-order")]
impl RopeLoops for BothWays {
    fn to_half_split(&self, d: usize, x: &[f32]) -> Vec<f32> {
        Oracle.to_interleaved(d, x)
    }
}

/// puts the second half's value first in each pair
///
/// The two parts of a stack were given in the wrong order, so every plane turns the other way.
#[bug("rope/interleave-second-first", named_by = "rope/interleaved-order")]
impl RopeLoops for SecondFirst {
    fn half_split_place(&self, j: usize, d: usize) -> usize {
        Oracle.half_split_place(j ^ 1, d)
    }
}

/// interleaves the whole tensor instead of each head
///
/// The reshape lacks the head axis, which is right with one head.
#[bug("rope/interleave-across-heads", named_by = "rope/interleaved-order")]
impl RopeLoops for AcrossHeads {
    fn to_interleaved(&self, _: usize, x: &[f32]) -> Vec<f32> {
        Oracle.to_interleaved(x.len().max(2), x)
    }
}

/// returns the input of to_half_split unchanged
///
/// It reshapes to pairs and back, but forgets the transpose in between.
#[bug("rope/split-nothing", named_by = "rope/half-split-order")]
impl RopeLoops for SplitNothing {
    fn to_half_split(&self, _: usize, x: &[f32]) -> Vec<f32> {
        x.to_vec()
    }
}

/// splits the first head and leaves the others interleaved
///
/// An index was left at 0.
#[bug("rope/split-first-head", named_by = "rope/half-split-order")]
impl RopeLoops for SplitFirstHead {
    fn to_half_split(&self, d: usize, x: &[f32]) -> Vec<f32> {
        let (first, rest) = x.split_at(d.min(x.len()));
        [Oracle.to_half_split(d, first), rest.to_vec()].concat()
    }
}
