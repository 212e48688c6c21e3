//! Bugs of NTK-aware RoPE.

use crate::component::{bug, bugs};
use crate::graded_cases::BLOCK;
use crate::oracle::{Oracle, to_f16};
use crate::rope::interface::*;
use crate::rope::oracle::{Machine, RopeLoops, length_of_text, pick_rows};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

bugs! {
    // --- frequencies ------------------------------------------------------------------------
    NoNtk, Interpolation, BaseTimesRatio, ExponentOnBeta, RatioOnBeta, ExponentInverted, IntegerExponent, NtkTwice,
    RatioFloored, NtkFromTwo, LastPlaneOnly, SpreadLinearly, HalfExponent, OverHalf, ToTheEnd, FromOne, SlowestFirst,
    Wavelengths, BaseFixed, FrequencyFloor, OddHead, HeadTwo, AnyBase, AnyRatio,
    // --- tables -----------------------------------------------------------------------------
    Degrees, FullTurns, CosSinSwapped, FromPositionOne, NegativeAngles, SideBySide, MirroredHalf, FromZero,
    EndInclusive, PositionsF16, PositionsBf16, FrequenciesF16, AnglesF16, Positions16Bits, ShortPi, TablesF16,
    AttentionFactor, TablesIgnoreRatio, PositionClamped,
    // --- rotation ---------------------------------------------------------------------------
    AdjacentPairs, LayoutIgnored, MirroredPairs, SignFlipped, BothPlus, HalfLeft, InPlace, NoSwap, OnePartTwice,
    CosineOnly, Partial, Scaled, Renormalized, Added, Clamped, TurnedInF16, PerBatchRow, HeadsArePositions,
    FirstRowForAll, RowsReversed, WholeMatrix, LongerTables, BroadcastTables,
    // --- layouts ----------------------------------------------------------------------------
    WrongWay, BothWays, SecondFirst, AcrossHeads, SplitNothing, SplitFirstHead,
    // --- gradient ---------------------------------------------------------------------------
    TurnedForward, WithoutSine, SliceOverwrites, FirstHalf, NoGradient, Unturned, Inverse, HalfSplitOnly, OneHead,
    Clipped,
    // --- ratio_for_length -------------------------------------------------------------------
    RatioOdd, FloorPlusOne, RatioFloor, PowerOfTwo, RatioDoubled, RatioInF32, RatioByShift,
    // --- the module -------------------------------------------------------------------------
    OffsetIgnored, OffsetUnread, OffsetByOne, OffsetOneShort, OffsetTwice, OffsetForAll, RotatedTwice,
    LengthWithoutOffset, RatioWithoutOffset, RecomputedAtEnd, OneRowLate, LongCallClipped, LongCallWraps, OldRatio,
    LongCallRefused, RatioOnTop, NewRowsOnly, LongCallRestarts, StaticPersists, StaticRatioLeaks, StaticCacheLeaks,
    DynamicForgets, DynamicInverted, DynamicRatioOnly, DynamicCacheOnly, DynamicAppends, DynamicOldFrequencies,
    DynamicCacheOfCall, DynamicOldOutput, StaticOddRatio, MeasuredByCache, GrowsOnce, SecondCallStale, DynamicShrinks,
    FollowsLength, TableOfMsRows, FirstRatioIgnored, RatioMadeEven, CacheInF16, CachePositionsF16, LongPositionsF16,
    OffsetWraps, RefusedCallChanges, AnyTrainingLength, UncheckedSettings, SharedTables,
    // --- a position for each token ----------------------------------------------------------
    IdsIgnored, IdsOfTheFirstRow, IdsCountedOn, IdsUpToTheRow, LongestTextForAll, PaddingCountsAsLength,
    GradientIgnoresIds, OneRowOfIdsForAll, BlockStartsAtZero, LaneTailLeft,
}

/// The nearest value of `bf16`.
fn to_bf16(x: f64) -> f64 {
    half::bf16::from_f64(x).to_f64()
}

/// The tables rounded to `f16`.
fn tables_to_f16(tables: Tables) -> Tables {
    let round = |table: Vec<f32>| table.into_iter().map(|x| to_f16(f64::from(x))).collect();
    Tables { cos: round(tables.cos), sin: round(tables.sin) }
}

/// The case with a single row of tables repeated for all rows of `x`.
fn broadcast(case: &RotateCase) -> RotateCase {
    let [_, s, _, d] = case.shape;
    let one = case.tables.cos.len() == d && case.tables.sin.len() == d;
    if d == 0 || !one || s > case.x.len() {
        return case.clone();
    }
    RotateCase { tables: pick_rows(&case.tables, d, 0..s), ..case.clone() }
}

/// Keeps tables by head size and number of rows only, whatever the base is.
#[derive(Default)]
struct SharedTables(RefCell<BTreeMap<(usize, usize), Tables>>);

/// shares tables between modules of one head size and length, whatever their base
///
/// A global cache whose key forgets the base and the ratio. With one module it is right.
#[bug("rope/shared-tables", named_by = "rope/modules-are-apart", of = SharedTables::default())]
impl RopeLoops for SharedTables {
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        let state = Oracle.fresh(settings)?;
        let key = (settings.head_dim, state.cached_len);
        let tables = self.0.borrow_mut().entry(key).or_insert(state.tables).clone();
        Ok(RopeState { tables, ..state })
    }
}

// --- frequencies ------------------------------------------------------------------------

/// ignores the NTK ratio in the frequencies
///
/// The ratio is stored and makes the cache longer, but the base stays. With ratio 1 it is right.
#[bug("rope/no-ntk", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for NoNtk {
    fn ntk_base(&self, base: f64, _: f64, _: usize) -> f64 {
        base
    }
}

/// divides all frequencies by the ratio, which is position interpolation
///
/// The older way to stretch RoPE. It slows the fast planes too, which is what NTK was made to avoid; the last plane comes out
/// right.
#[bug("rope/position-interpolation", named_by = "rope/fastest-plane-first")]
impl RopeLoops for Interpolation {
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        Oracle.frequency(i, d, base, 1.0) / ratio
    }
}

/// multiplies the base by the ratio itself, without the exponent d/(d − 2)
///
/// For d = 128 the exponent is 1.016, so it looks like a detail. The last plane is then slowed by k^((d−2)/d), not by k.
#[bug("rope/base-times-ratio", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for BaseTimesRatio {
    fn ntk_base(&self, base: f64, ratio: f64, _: usize) -> f64 {
        base * ratio
    }
}

/// applies the exponent d/(d − 2) to β, where it belongs to the base
///
/// base' = base·k^(d/(d−2)) and β' = β·k^(2/(d−2)) are the same. The factor of one was combined with the other.
#[bug("rope/ntk-exponent-on-beta", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for ExponentOnBeta {
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        let d = d as f64;
        (base.powf(2.0 / d) * ratio.powf(d / (d - 2.0))).powi(-(i as i32))
    }
}

/// multiplies β by the ratio itself
///
/// c was taken to be k. Each plane is slowed k times more than the one before, the last by k^(d/2−1).
#[bug("rope/ntk-ratio-on-beta", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for RatioOnBeta {
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        (base.powf(2.0 / d as f64) * ratio).powi(-(i as i32))
    }
}

/// uses the exponent (d − 2)/d, upside down
///
/// For d = 128 the two differ by 3 %.
#[bug("rope/ntk-exponent-inverted", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for ExponentInverted {
    fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
        base * ratio.powf((d as f64 - 2.0) / d as f64)
    }
}

/// divides d by d − 2 in integers, so that the exponent is 1
///
/// Both are integers, and so is their quotient. For d = 4 it is exact.
#[bug("rope/ntk-integer-exponent", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for IntegerExponent {
    fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
        base * ratio.powi((d / (d - 2)) as i32)
    }
}

/// applies the NTK ratio twice
///
/// Once where the base is scaled and once where the frequencies are made of it.
#[bug("rope/ntk-twice", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for NtkTwice {
    fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
        Oracle.ntk_base(Oracle.ntk_base(base, ratio, d), ratio, d)
    }
}

/// cuts the fraction off the ratio
///
/// A cast to an integer, since ratios of modules are whole numbers. NTK has no need of that.
#[bug("rope/ntk-ratio-floored", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for RatioFloored {
    fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
        Oracle.ntk_base(base, ratio.floor(), d)
    }
}

/// applies no NTK below ratio 2
///
/// A guard against rounding: the ratio was thought to be 1 or an even number.
#[bug("rope/ntk-from-two", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for NtkFromTwo {
    fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
        if ratio < 2.0 { base } else { Oracle.ntk_base(base, ratio, d) }
    }
}

/// slows the last plane and no other
///
/// Written to satisfy the one number that everybody quotes. NTK spreads the slowing over all planes.
#[bug("rope/ntk-last-plane-only", named_by = "rope/ntk-constant-quotient")]
impl RopeLoops for LastPlaneOnly {
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        let plain = Oracle.frequency(i, d, base, 1.0);
        if i + 1 == d / 2 { plain / ratio } else { plain }
    }
}

/// spreads the slowing over the planes linearly, from 1 to k
///
/// Both ends are right. In between the slowing must grow by a constant factor, not by a constant step.
#[bug("rope/ntk-spread-linearly", named_by = "rope/ntk-constant-quotient")]
impl RopeLoops for SpreadLinearly {
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        let share = i as f64 / (d as f64 / 2.0 - 1.0);
        Oracle.frequency(i, d, base, 1.0) / (1.0 + (ratio - 1.0) * share)
    }
}

/// uses i/d in the exponent where 2i/d belongs
///
/// The paper counts planes, PyTorch code counts dimensions in steps of 2, and one was read as the other.
#[bug("rope/i-not-2i", named_by = "rope/plain-frequencies")]
impl RopeLoops for HalfExponent {
    fn exponent(&self, i: usize, d: usize) -> f64 {
        i as f64 / d as f64
    }
}

/// divides 2i by d/2, not by d
///
/// The frequencies were made from the number of planes, which was taken for d.
#[bug("rope/exponent-over-half", named_by = "rope/plain-frequencies")]
impl RopeLoops for OverHalf {
    fn exponent(&self, i: usize, d: usize) -> f64 {
        2.0 * i as f64 / (d as f64 / 2.0)
    }
}

/// lets the last plane reach 1/base exactly
///
/// An even spacing from 0 to 1 with both ends. The right exponents stop one step short, at (d − 2)/d.
#[bug("rope/exponent-to-the-end", named_by = "rope/plain-frequencies")]
impl RopeLoops for ToTheEnd {
    fn exponent(&self, i: usize, d: usize) -> f64 {
        2.0 * i as f64 / (d as f64 - 2.0)
    }
}

/// starts the exponents at i = 1, so that plane 0 is slowed already
///
/// The paper writes base^(−2(i−1)/d) with i from 1. The minus one was dropped and the 1 was kept.
#[bug("rope/exponent-from-one", named_by = "rope/fastest-plane-first")]
impl RopeLoops for FromOne {
    fn exponent(&self, i: usize, d: usize) -> f64 {
        2.0 * (i + 1) as f64 / d as f64
    }
}

/// orders the frequencies from the slowest to the fastest
///
/// "θ_0 is the low frequency", says many a tutorial. It is the fastest.
#[bug("rope/slowest-first", named_by = "rope/fastest-plane-first")]
impl RopeLoops for SlowestFirst {
    fn frequencies(&self, d: usize, base: f64, ratio: f64) -> Vec<f64> {
        (0..d / 2).rev().map(|i| self.frequency(i, d, base, ratio)).collect()
    }
}

/// forgets the minus in the exponent, so that frequencies grow
///
/// base^(2i/d) is what a position is divided by. Here it multiplies.
#[bug("rope/wavelengths", named_by = "rope/fastest-plane-first")]
impl RopeLoops for Wavelengths {
    fn exponent(&self, i: usize, d: usize) -> f64 {
        -2.0 * i as f64 / d as f64
    }
}

/// uses base 10,000 whatever base it is given
///
/// The setting is stored, printed, and never read.
#[bug("rope/base-fixed", named_by = "rope/plain-frequencies")]
impl RopeLoops for BaseFixed {
    fn ntk_base(&self, _: f64, ratio: f64, d: usize) -> f64 {
        Oracle.ntk_base(10_000.0, ratio, d)
    }
}

/// never lets a frequency fall below 10⁻⁴
///
/// A floor against planes that hardly turn. With base 10,000 no plane reaches it, with larger bases and NTK many do.
#[bug("rope/frequency-floor", named_by = "rope/frequencies-f64-loops")]
impl RopeLoops for FrequencyFloor {
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        Oracle.frequency(i, d, base, ratio).max(1e-4)
    }
}

/// accepts an odd head size and drops the last dimension
///
/// Integer division, and one dimension never turns.
#[bug("rope/odd-head-size", named_by = "rope/frequencies-refuse")]
impl RopeLoops for OddHead {
    fn check_head(&self, d: usize) -> Reply<()> {
        Oracle.check_head(d - d % 2)
    }
}

/// accepts head size 2, for which the NTK exponent d/(d − 2) is infinite
///
/// 2 is even, and plain RoPE works with it. NTK gives a base of infinity.
#[bug("rope/head-size-two", named_by = "rope/frequencies-refuse")]
impl RopeLoops for HeadTwo {
    fn check_head(&self, d: usize) -> Reply<()> {
        if d == 2 { Ok(()) } else { Oracle.check_head(d) }
    }
}

/// accepts any base, also 1, negative ones and infinity
///
/// Nobody passes them on purpose. A base read from a broken file is 0, and all frequencies are NaN then.
#[bug("rope/any-base", named_by = "rope/frequencies-refuse")]
impl RopeLoops for AnyBase {
    fn check_base(&self, _: f64) -> Reply<()> {
        Ok(())
    }
}

/// accepts ratios below 1
///
/// The module checks its own, so the function was left open. A ratio of 0 makes every frequency but the first infinite.
#[bug("rope/any-ratio", named_by = "rope/frequencies-refuse")]
impl RopeLoops for AnyRatio {
    fn check_ratio(&self, _: f64) -> Reply<()> {
        Ok(())
    }
    fn check_settings(&self, settings: &RopeSettings) -> Reply<()> {
        Oracle.check_settings(settings)
    }
}

// --- tables -----------------------------------------------------------------------------

/// takes the angles for degrees
///
/// Calculators and some languages do. At position 0 it is right.
#[bug("rope/degrees", named_by = "rope/tables-position-one")]
impl RopeLoops for Degrees {
    fn cos_sin(&self, angle: f64) -> (f64, f64) {
        Oracle.cos_sin(angle.to_radians())
    }
}

/// multiplies the angles by 2π
///
/// A frequency is turns per second in physics. θ is radians per position.
#[bug("rope/full-turns", named_by = "rope/tables-position-one")]
impl RopeLoops for FullTurns {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        std::f64::consts::TAU * position as f64 * theta
    }
}

/// has cosine and sine swapped
///
/// Many functions return sin first.
#[bug("rope/cos-sin-swapped", named_by = "rope/tables-position-zero")]
impl RopeLoops for CosSinSwapped {
    fn cos_sin(&self, angle: f64) -> (f64, f64) {
        (angle.sin(), angle.cos())
    }
}

/// counts positions from 1
///
/// Inner products of a query and a key do not change at all, so the model works; the values differ from everybody else's.
#[bug("rope/positions-from-one", named_by = "rope/tables-position-zero")]
impl RopeLoops for FromPositionOne {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        (position + 1) as f64 * theta
    }
}

/// builds the table for negative angles
///
/// The rotation turns the wrong way. Queries and keys do so together, and attention scores keep their distances with the sign
/// changed.
#[bug("rope/negative-angles", named_by = "rope/tables-position-one")]
impl RopeLoops for NegativeAngles {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        -(position as f64 * theta)
    }
}

/// repeats each frequency side by side, (t0, t0, t1, t1), in a half-split table
///
/// Repeat-interleave where a concatenation belongs. That is the table of the other layout.
#[bug("rope/repeated-side-by-side", named_by = "rope/tables-equal-halves")]
impl RopeLoops for SideBySide {
    fn plane(&self, j: usize, _: usize) -> usize {
        j / 2
    }
}

/// mirrors the second half of each row
///
/// The pairs were thought of as (0, d − 1), (1, d − 2), and so on.
#[bug("rope/mirrored-half", named_by = "rope/tables-equal-halves")]
impl RopeLoops for MirroredHalf {
    fn plane(&self, j: usize, d: usize) -> usize {
        if j < d / 2 { j } else { d - 1 - j }
    }
}

/// starts every table at position 0
///
/// The start of the range was used for the number of rows only. In prefill it is 0.
#[bug("rope/tables-from-zero", named_by = "rope/tables-rows")]
impl RopeLoops for FromZero {
    fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
        Oracle.tables(d, base, ratio, 0..positions.len())
    }
}

/// builds one row too many, for the end of the range too
///
/// A range that includes its end. The rows that exist are right.
#[bug("rope/tables-end-inclusive", named_by = "rope/tables-rows")]
impl RopeLoops for EndInclusive {
    fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
        Oracle.tables(d, base, ratio, positions.start..positions.end.saturating_add(1))
    }
}

/// counts positions in f16, which has no odd numbers above 2048
///
/// The positions were cast to the model's type with everything else. Above 2048 neighbours share a position.
#[bug(
    "rope/positions-in-f16",
    named_by = "rope/tables-precision",
    source = "candle PR #3520; transformers PR #29285"
)]
impl RopeLoops for PositionsF16 {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        f64::from(to_f16(position as f64)) * theta
    }
}

/// counts positions in bf16, which has no odd numbers above 256
///
/// bf16 has eight bits of precision. Models trained in it hide the loss, other code shows it.
#[bug(
    "rope/positions-in-bf16",
    named_by = "rope/tables-precision",
    source = "candle PR #3520; transformers PR #29285"
)]
impl RopeLoops for PositionsBf16 {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        to_bf16(position as f64) * theta
    }
}

/// rounds the frequencies to f16 before it multiplies by the position
///
/// They are a buffer of the module, and the module was cast. The error grows with the position.
#[bug(
    "rope/frequencies-in-f16",
    named_by = "rope/tables-precision",
    source = "candle PR #3520; transformers PR #29285"
)]
impl RopeLoops for FrequenciesF16 {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        position as f64 * f64::from(to_f16(theta))
    }
}

/// rounds the angles to f16
///
/// Autocast ran the product of positions and frequencies in half precision.
#[bug("rope/angles-in-f16", named_by = "rope/tables-precision")]
impl RopeLoops for AnglesF16 {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        f64::from(to_f16(position as f64 * theta))
    }
}

/// counts positions in 16 bits, so that 65,536 is 0 again
///
/// No model was longer than that when it was written.
#[bug("rope/positions-in-16-bits", named_by = "rope/tables-precision")]
impl RopeLoops for Positions16Bits {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        f64::from(position as u16) * theta
    }
}

/// reduces the angles by 6.2832, a 2π with five digits
///
/// A range reduction by hand. Each full turn adds an error of 1.5e-5.
#[bug("rope/short-pi", named_by = "rope/tables-precision")]
impl RopeLoops for ShortPi {
    fn cos_sin(&self, angle: f64) -> (f64, f64) {
        Oracle.cos_sin(angle % (62_832.0 / 10_000.0))
    }
}

/// rounds cosines and sines to f16
///
/// The cache was stored in the model's type. Lengths change by one part in 2000.
#[bug("rope/tables-in-f16", named_by = "rope/tables-on-circle")]
impl RopeLoops for TablesF16 {
    fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
        tables_to_f16(Oracle.tables(d, base, ratio, positions))
    }
}

/// scales the tables by 0.1·ln(ratio) + 1
///
/// YaRN's attention factor, which belongs to YaRN. With ratio 1 it is 1.
#[bug("rope/attention-factor", named_by = "rope/tables-on-circle")]
impl RopeLoops for AttentionFactor {
    fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
        let factor = (0.1 * ratio.ln() + 1.0) as f32;
        let Tables { mut cos, mut sin } = Oracle.tables(d, base, ratio, positions);
        cos.iter_mut().chain(&mut sin).for_each(|value| *value *= factor);
        Tables { cos, sin }
    }
}

/// builds tables from the plain frequencies, whatever the ratio
///
/// There is a right function for the frequencies. The tables call another one.
#[bug("rope/tables-ignore-ratio", named_by = "rope/tables-f64-loops")]
impl RopeLoops for TablesIgnoreRatio {
    fn tables(&self, d: usize, base: f64, _: f64, positions: Range<usize>) -> Tables {
        Oracle.tables(d, base, 1.0, positions)
    }
}

/// stops counting at position 4096
///
/// The longest length of one model, as a constant in the code.
#[bug("rope/position-clamped", named_by = "rope/tables-precision")]
impl RopeLoops for PositionClamped {
    fn angle(&self, position: usize, theta: f64) -> f64 {
        position.min(4096) as f64 * theta
    }
}

// --- rotation ---------------------------------------------------------------------------

/// turns adjacent dimensions together in the half-split layout
///
/// The paper and GPT-J pair neighbours, Llama and GPT-NeoX pair halves. The most common mix-up of all: shapes agree, weights do
/// not.
#[bug("rope/adjacent-pairs", named_by = "rope/rotate-unit-vector")]
impl RopeLoops for AdjacentPairs {
    fn pair(&self, _: Layout, i: usize, d: usize) -> [usize; 2] {
        Oracle.pair(Layout::Interleaved, i, d)
    }
}

/// turns halves together in the interleaved layout
///
/// The layout was accepted and not used.
#[bug("rope/layout-ignored", named_by = "rope/rotate-interleaved")]
impl RopeLoops for LayoutIgnored {
    fn pair(&self, _: Layout, i: usize, d: usize) -> [usize; 2] {
        Oracle.pair(Layout::HalfSplit, i, d)
    }
}

/// pairs the first dimension with the last, the second with the last but one
///
/// A fold instead of a cut. Each plane still has two dimensions.
#[bug("rope/mirrored-pairs", named_by = "rope/rotate-unit-vector")]
impl RopeLoops for MirroredPairs {
    fn pair(&self, layout: Layout, i: usize, d: usize) -> [usize; 2] {
        match layout {
            Layout::HalfSplit => [i, d - 1 - i],
            Layout::Interleaved => Oracle.pair(layout, i, d),
        }
    }
}

/// turns the other way: the minus stands on the second half
///
/// rotate_half as (x2, −x1). All lengths are kept, and the relative property too.
#[bug("rope/sign-flipped", named_by = "rope/rotate-unit-vector")]
impl RopeLoops for SignFlipped {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        Oracle.turn(x, cos, sin.map(|s| -s))
    }
    fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        Oracle.turn_back(dy, cos, sin.map(|s| -s))
    }
}

/// has no minus: both sines are added
///
/// rotate_half as (x2, x1), a swap. It stretches where it should turn.
#[bug("rope/both-plus", named_by = "rope/rotate-keeps-lengths")]
impl RopeLoops for BothPlus {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [x[0] * cos[0] + x[1] * sin[0], x[1] * cos[1] + x[0] * sin[1]]
    }
}

/// turns the first half and leaves the second as it is
///
/// The second assignment is missing.
#[bug("rope/half-left", named_by = "rope/rotate-keeps-lengths")]
impl RopeLoops for HalfLeft {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [Oracle.turn(x, cos, sin)[0], x[1]]
    }
}

/// computes the second half from the first half that is already turned
///
/// In place, line by line. The old value was needed once more.
#[bug("rope/in-place", named_by = "rope/rotate-keeps-lengths")]
impl RopeLoops for InPlace {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        let first = Oracle.turn(x, cos, sin)[0];
        [first, x[1] * cos[1] + first * sin[1]]
    }
}

/// changes signs but does not swap the halves
///
/// rotate_half as (−x1, x2): the concatenation has its parts in the old order.
#[bug("rope/no-swap", named_by = "rope/rotate-keeps-lengths")]
impl RopeLoops for NoSwap {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [x[0] * cos[0] - x[0] * sin[0], x[1] * cos[1] + x[1] * sin[1]]
    }
}

/// writes the imaginary part of the complex product into both halves
///
/// q1·cos + q0·sin for both parts, as a tutorial has it; the concatenation of one tensor with itself.
#[bug("rope/one-part-twice", named_by = "rope/rotate-keeps-lengths")]
impl RopeLoops for OnePartTwice {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [Oracle.turn(x, cos, sin)[1]; 2]
    }
}

/// multiplies by the cosine and forgets the sine
///
/// The second term was lost. At position 0 it is right.
#[bug("rope/cosine-only", named_by = "rope/rotate-keeps-lengths")]
impl RopeLoops for CosineOnly {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], _: [f64; 2]) -> [f64; 2] {
        [x[0] * cos[0], x[1] * cos[1]]
    }
}

/// turns the first half of the planes only
///
/// Partial rotary embedding, as some models have it by a setting. This one has none.
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
/// The scale of the scores was moved into the queries, and came back here.
#[bug("rope/scaled", named_by = "rope/rotate-position-zero")]
impl RopeLoops for Scaled {
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        let root = (case.shape[3] as f64).sqrt();
        Oracle.rotate(case).into_iter().map(|y| y / root).collect()
    }
}

/// divides cosine and sine by their length before the turn
///
/// A guard for tables that are not on the circle. True tables hide it; the rotation is no longer what its tables say.
#[bug("rope/renormalized", named_by = "rope/rotate-f64-loops")]
impl RopeLoops for Renormalized {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        let length = cos[0].hypot(sin[0]).max(1e-9);
        Oracle.turn(x, cos.map(|c| c / length), sin.map(|s| s / length))
    }
}

/// adds cosine and sine to x instead of turning x by them
///
/// That is the sinusoidal position embedding of the first Transformer.
#[bug("rope/added", named_by = "rope/rotate-linear")]
impl RopeLoops for Added {
    fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [x[0] + sin[0], x[1] + cos[1]]
    }
}

/// clamps the result to ±4
///
/// A guard against overflow, from a quantized model.
#[bug("rope/clamped", named_by = "rope/rotate-linear")]
impl RopeLoops for Clamped {
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        Oracle.rotate(case).into_iter().map(|y| y.clamp(-4.0, 4.0)).collect()
    }
}

/// computes the turn in f16
///
/// The tables were cast to the model's type before the product. Three digits are left.
#[bug("rope/turned-in-f16", named_by = "rope/rotate-composes")]
impl RopeLoops for TurnedInF16 {
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        let tables = tables_to_f16(case.tables.clone());
        Oracle.rotate(&RotateCase { tables, ..case.clone() })
    }
}

/// lets the position count on with each batch row
///
/// Rows of a batch were packed one after the other. With one batch row it is right.
#[bug("rope/position-per-batch-row", named_by = "rope/rotate-same-for-all")]
impl RopeLoops for PerBatchRow {
    fn table_row(&self, [b, t, _]: [usize; 3], shape: &[usize; 4]) -> usize {
        (b + t) % shape[1]
    }
}

/// takes the head for the position
///
/// The tensor was [b, nh, s, hd] in the code that this came from. With one head and one token nobody sees it.
#[bug("rope/heads-are-positions", named_by = "rope/rotate-same-for-all")]
impl RopeLoops for HeadsArePositions {
    fn table_row(&self, [_, _, n]: [usize; 3], shape: &[usize; 4]) -> usize {
        n % shape[1]
    }
}

/// turns every row by the first row of the tables
///
/// A broadcast along the wrong axis. Decoding one token at a time is right.
#[bug("rope/first-row-for-all", named_by = "rope/rotate-unit-vector")]
impl RopeLoops for FirstRowForAll {
    fn table_row(&self, _: [usize; 3], _: &[usize; 4]) -> usize {
        0
    }
}

/// takes the rows of the tables in reverse
///
/// Distances between tokens keep their size and change their sign.
#[bug("rope/rows-reversed", named_by = "rope/rotate-unit-vector")]
impl RopeLoops for RowsReversed {
    fn table_row(&self, [_, t, _]: [usize; 3], shape: &[usize; 4]) -> usize {
        shape[1] - 1 - t
    }
}

/// multiplies by the whole rotation matrix, its zeros included
///
/// The matrix of the paper, written out. Besides the waste, 0 · NaN is NaN: one plane spoils its whole head.
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
/// The whole cache was passed without a slice. With an offset, the rows are those of the start.
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
/// Broadcasting does that without a word, in many libraries.
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
/// The two undo each other either way round, so a round trip passes. For d = 4 they are even the same.
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
/// One function for both, because the reordering was thought to be its own inverse. For d = 4 it is.
#[bug("rope/interleave-both-ways", named_by = "rope/half-split-order")]
impl RopeLoops for BothWays {
    fn to_half_split(&self, d: usize, x: &[f32]) -> Vec<f32> {
        Oracle.to_interleaved(d, x)
    }
}

/// puts the second half's value first in each pair
///
/// The two parts of a stack were given in the wrong order. Every plane turns the other way then.
#[bug("rope/interleave-second-first", named_by = "rope/interleaved-order")]
impl RopeLoops for SecondFirst {
    fn half_split_place(&self, j: usize, d: usize) -> usize {
        Oracle.half_split_place(j ^ 1, d)
    }
}

/// interleaves the whole tensor, not each head
///
/// A reshape without the head axis. With one head it is right.
#[bug("rope/interleave-across-heads", named_by = "rope/interleaved-order")]
impl RopeLoops for AcrossHeads {
    fn to_interleaved(&self, _: usize, x: &[f32]) -> Vec<f32> {
        Oracle.to_interleaved(x.len().max(2), x)
    }
}

/// returns its input from to_half_split
///
/// A reshape to pairs and back, with the transpose forgotten in between.
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

// --- gradient ---------------------------------------------------------------------------

/// turns the gradient by +m, not by −m
///
/// The backward pass called the forward pass. Lengths are right, and training still lowers the loss.
#[bug("rope/gradient-turned-forward", named_by = "rope/gradient-turns-back")]
impl RopeLoops for TurnedForward {
    fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        Oracle.turn(dy, cos, sin)
    }
}

/// forgets the sine in the gradient
///
/// rotate_half ran on data without a tape, so that only x · cos has a gradient.
#[bug("rope/gradient-without-sine", named_by = "rope/gradient-keeps-lengths")]
impl RopeLoops for WithoutSine {
    fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], _: [f64; 2]) -> [f64; 2] {
        [dy[0] * cos[0], dy[1] * cos[1]]
    }
}

/// keeps only the part of the gradient that goes through rotate_half
///
/// dfdx's `slice` WRITES its gradient over what is there, where it should add. So a tensor that is sliced and used once more
/// loses a part, silently. Exchange the halves with `roll`, or take everything from the slices: each part sliced once, and the
/// whole not used again.
#[bug(
    "rope/gradient-slice-overwrites",
    named_by = "rope/gradient-keeps-lengths",
    source = "dfdx 0.13.0, src/tensor_ops/slice/cpu_kernel.rs"
)]
impl RopeLoops for SliceOverwrites {
    fn turn_back(&self, dy: [f64; 2], _: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        Oracle.turn_back(dy, [0.0, 0.0], sin)
    }
}

/// gives the first half its gradient and the second half zeros
///
/// A slice whose other part was never added.
#[bug("rope/gradient-first-half", named_by = "rope/gradient-keeps-lengths")]
impl RopeLoops for FirstHalf {
    fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        [Oracle.turn_back(dy, cos, sin)[0], 0.0]
    }
}

/// sends no gradient through the rotation
///
/// The result was made from data without a tape. Queries and keys stop learning, values go on.
#[bug("rope/no-gradient", named_by = "rope/gradient-keeps-lengths")]
impl RopeLoops for NoGradient {
    fn turn_back(&self, _: [f64; 2], _: [f64; 2], _: [f64; 2]) -> [f64; 2] {
        [0.0, 0.0]
    }
}

/// passes the gradient on as it is
///
/// A straight-through gradient. Its length is right.
#[bug("rope/gradient-unturned", named_by = "rope/gradient-turns-back")]
impl RopeLoops for Unturned {
    fn turn_back(&self, dy: [f64; 2], _: [f64; 2], _: [f64; 2]) -> [f64; 2] {
        dy
    }
}

/// uses the inverse in the gradient, where the transpose belongs
///
/// For true tables the two are the same. Scaled tables, as some models have them, tell.
#[bug("rope/gradient-inverse", named_by = "rope/gradient-adjoint")]
impl RopeLoops for Inverse {
    fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
        let square = (cos[0] * cos[0] + sin[0] * sin[0]).max(1e-12);
        Oracle.turn_back(dy, cos, sin).map(|dx| dx / square)
    }
}

/// sends the gradient to half-split pairs in the interleaved layout too
///
/// The second layout got a forward pass of its own and shared the backward pass.
#[bug("rope/gradient-half-split-only", named_by = "rope/gradient-turns-back")]
impl RopeLoops for HalfSplitOnly {
    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
        let layout = Layout::HalfSplit;
        Oracle.rotate_backward(&RotateCase { layout, ..case.clone() }, dy)
    }
}

/// gives every head the gradient of the first
///
/// The broadcast over heads was undone by taking one of them.
#[bug("rope/gradient-of-one-head", named_by = "rope/gradient-f64-loops")]
impl RopeLoops for OneHead {
    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
        let [_, _, nh, d] = case.shape;
        let dx = Oracle.rotate_backward(case, dy);
        (0..dx.len()).map(|i| dx[i - i % (nh * d) + i % d]).collect()
    }
}

/// clips the gradient to ±2
///
/// Clipping belongs to the optimizer, on the norm of all gradients.
#[bug("rope/gradient-clipped", named_by = "rope/gradient-f64-loops")]
impl RopeLoops for Clipped {
    fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
        let dx = Oracle.rotate_backward(case, dy);
        dx.into_iter().map(|dx| dx.clamp(-2.0, 2.0)).collect()
    }
}

// --- ratio_for_length -------------------------------------------------------------------

/// takes the smallest ratio that is large enough, even or odd
///
/// ⌈L / ms⌉ is the formula from memory. It agrees for every second multiple.
#[bug("rope/long-ratio-odd", named_by = "rope/long-ratio-edges")]
impl RopeLoops for RatioOdd {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        Some(length.div_ceil(max_seq_len))
    }
}

/// goes one step too far at exact multiples: floor plus one is no ceiling
///
/// 2·(L / (2·ms) + 1) in integers. Only the edges differ.
#[bug("rope/long-ratio-floor-plus-one", named_by = "rope/long-ratio-edges")]
impl RopeLoops for FloorPlusOne {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        (length / max_seq_len.saturating_mul(2)).checked_add(1)?.checked_mul(2)
    }
}

/// rounds the ratio down, so that the longest positions do not fit
///
/// Integer division without a ceiling, and at least 2.
#[bug("rope/long-ratio-floor", named_by = "rope/long-ratio-edges")]
impl RopeLoops for RatioFloor {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        (length / max_seq_len.saturating_mul(2)).max(1).checked_mul(2)
    }
}

/// takes the next power of 2
///
/// Even, large enough, and the same up to 4. From 5 on it is not minimal.
#[bug("rope/long-ratio-power-of-two", named_by = "rope/long-ratio-edges")]
impl RopeLoops for PowerOfTwo {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        length.div_ceil(max_seq_len).max(2).checked_next_power_of_two()
    }
}

/// doubles the ratio that is large enough, to make it even
///
/// 2·⌈L / ms⌉ is even, and twice what is needed.
#[bug("rope/long-ratio-doubled", named_by = "rope/long-ratio-edges")]
impl RopeLoops for RatioDoubled {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        length.div_ceil(max_seq_len).checked_mul(2)
    }
}

/// divides in f32, which rounds long lengths
///
/// ceil wants a float. 2²⁶ + 1 is 2²⁶ in f32, and one step is lost.
#[bug("rope/long-ratio-in-f32", named_by = "rope/long-ratio-edges")]
impl RopeLoops for RatioInF32 {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        let steps = (length as f32 / (2.0 * max_seq_len as f32)).ceil();
        (steps as usize).max(1).checked_mul(2)
    }
}

/// computes the ratio with a shift, which is right for powers of 2 only
///
/// ms is 2048 or 4096 in every model at hand, so the division became a shift.
#[bug("rope/long-ratio-of-power-lengths", named_by = "rope/long-ratio-smallest-even")]
impl RopeLoops for RatioByShift {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        if max_seq_len < 4096 {
            return Oracle.long_ratio(length, max_seq_len);
        }
        Oracle.long_ratio(length, 1 << max_seq_len.ilog2())
    }
}

// --- the module -------------------------------------------------------------------------

/// ignores the offset
///
/// Every decoded token believes that it is the first. Prefill is right, and so are all tests without a cache.
#[bug("rope/offset-ignored", named_by = "rope/offset", source = "mlx-vlm #1983")]
impl RopeLoops for OffsetIgnored {
    fn positions(&self, _: usize, s: usize) -> Range<usize> {
        0..s
    }
}

/// never reads the offset, neither for the positions nor for the length of a call
///
/// The argument is there and nobody uses it. A prompt is right, every token after it stands at position 0.
#[bug("rope/offset-unread", named_by = "rope/offset")]
impl RopeLoops for OffsetUnread {
    fn positions(&self, _: usize, s: usize) -> Range<usize> {
        0..s
    }
    fn end(&self, _: usize, s: usize) -> Reply<usize> {
        Ok(s)
    }
}

/// is one position too far when there is an offset
///
/// The offset was the number of tokens so far in one place and the index of the last one in the other.
#[bug("rope/offset-off-by-one", named_by = "rope/offset", source = "flash-linear-attention #766")]
impl RopeLoops for OffsetByOne {
    fn positions(&self, offset: usize, s: usize) -> Range<usize> {
        let start = if offset == 0 { 0 } else { offset.saturating_add(1) };
        start..start.saturating_add(s)
    }
}

/// is one position short when there is an offset
///
/// offset − 1, because positions start at 0. So does the offset.
#[bug("rope/offset-one-short", named_by = "rope/offset")]
impl RopeLoops for OffsetOneShort {
    fn positions(&self, offset: usize, s: usize) -> Range<usize> {
        let start = offset.saturating_sub(1);
        start..start + s
    }
}

/// adds the offset twice
///
/// Once in the caller and once in the module.
#[bug("rope/offset-twice", named_by = "rope/offset")]
impl RopeLoops for OffsetTwice {
    fn positions(&self, offset: usize, s: usize) -> Range<usize> {
        let start = offset.saturating_mul(2);
        start..start.saturating_add(s)
    }
}

/// puts all rows of a call at its offset
///
/// Written for decoding, where a call has one row. Chunked prefill is wrong.
#[bug("rope/offset-for-all-rows", named_by = "rope/turns-by-position")]
impl RopeLoops for OffsetForAll {
    fn rows_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Tables> {
        let rows = Oracle.rows_of_call(machine, offset, s)?;
        let d = machine.settings.head_dim;
        let first = |table: &[f32]| table[..d.min(table.len())].repeat(s);
        Ok(Tables { cos: first(&rows.cos), sin: first(&rows.sin) })
    }
}

/// turns a row twice when it comes with an offset
///
/// Keys were turned when they were cached, and again when they were read.
#[bug("rope/rotated-twice", named_by = "rope/offset", source = "shainet #110")]
impl RopeLoops for RotatedTwice {
    fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
        let y = Oracle.call(machine, case)?;
        if case.offset == 0 {
            return Ok(y);
        }
        let x = y.iter().map(|&y| y as f32).collect();
        Oracle.call(machine, &RopeCase { x, ..case.clone() })
    }
}

/// asks whether s fits into the cache, where offset + s must fit
///
/// Decoded tokens past the end are one row each, and one row always fits. They all get the last position.
#[bug("rope/length-without-offset", named_by = "rope/offset-counts-in-length")]
impl RopeLoops for LengthWithoutOffset {
    fn rows_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Tables> {
        if self.fits(s, &machine.state) {
            return Ok(self.cached_rows(machine, self.positions(offset, s)));
        }
        Oracle.rows_of_call(machine, offset, s)
    }
    fn after_call(&self, machine: &Machine, _: usize, s: usize) -> Reply<Option<RopeState>> {
        Oracle.after_call(machine, 0, s)
    }
}

/// computes k' from s, not from offset + s
///
/// The call is known to be long, but its ratio is that of a shorter one.
#[bug("rope/ratio-without-offset", named_by = "rope/offset-counts-in-length")]
impl RopeLoops for RatioWithoutOffset {
    fn ratio_of_call(&self, machine: &Machine, _: usize, s: usize) -> Reply<usize> {
        self.ratio_for_length(s, machine.settings.max_seq_len)
    }
}

/// recomputes k' when the call ends exactly at the end of the cache
///
/// < where ≤ belongs. Position es − 1 is the last one needed, and it is cached.
#[bug("rope/recomputed-at-end", named_by = "rope/exact-end-uses-cache")]
impl RopeLoops for RecomputedAtEnd {
    fn fits(&self, end: usize, state: &RopeState) -> bool {
        end < state.cached_len
    }
}

/// takes a call that is one row too long for a short one
///
/// The last position was compared with the number of rows. The last row of the cache serves twice.
#[bug("rope/one-row-late", named_by = "rope/long-call-ratio")]
impl RopeLoops for OneRowLate {
    fn fits(&self, end: usize, state: &RopeState) -> bool {
        end <= state.cached_len + 1
    }
}

/// keeps positions past the cache at its last row
///
/// A clamp that avoids the index error. All late tokens share a position.
#[bug("rope/long-call-clipped", named_by = "rope/long-call-ratio")]
impl RopeLoops for LongCallClipped {
    fn fits(&self, _: usize, _: &RopeState) -> bool {
        true
    }
}

/// takes positions past the cache modulo its length
///
/// A ring buffer. Token es looks like token 0.
#[bug("rope/long-call-wraps", named_by = "rope/long-call-ratio")]
impl RopeLoops for LongCallWraps {
    fn rows_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Tables> {
        let mut rows = Tables { cos: Vec::new(), sin: Vec::new() };
        for t in 0..s {
            let m = (offset + t) % machine.state.cached_len;
            let row = self.cached_rows(machine, m..m + 1);
            rows.cos.extend(row.cos);
            rows.sin.extend(row.sin);
        }
        Ok(rows)
    }
    fn after_call(&self, _: &Machine, _: usize, _: usize) -> Reply<Option<RopeState>> {
        Ok(None)
    }
}

/// goes on with the old frequencies in a long call
///
/// The cache got more rows, the base did not change. That is plain RoPE past its training length.
#[bug("rope/long-call-old-ratio", named_by = "rope/long-call-ratio")]
impl RopeLoops for OldRatio {
    fn long_rows(&self, machine: &Machine, _: usize, positions: Range<usize>) -> Tables {
        Oracle.long_rows(machine, machine.state.ratio, positions)
    }
}

/// refuses a call past the cache
///
/// The index error was made into a message.
#[bug("rope/long-call-refused", named_by = "rope/long-call-ratio")]
impl RopeLoops for LongCallRefused {
    fn ratio_of_call(&self, _: &Machine, offset: usize, s: usize) -> Reply<usize> {
        Err(Refusal::new(format!("offset {offset} and {s} rows are more than the cache has")))
    }
}

/// multiplies k' by the ratio that the module has already
///
/// k' is measured from ms. Somebody read it as how much more is needed. With ratio 1 it is right.
#[bug("rope/long-call-ratio-on-top", named_by = "rope/long-call-ratio")]
impl RopeLoops for RatioOnTop {
    fn ratio_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<usize> {
        Ok(Oracle.ratio_of_call(machine, offset, s)?.saturating_mul(machine.settings.ratio))
    }
}

/// uses the new frequencies past the cache only, and the old ones before
///
/// The cached rows were kept and new ones appended for the call. One sequence is turned by two sets of frequencies.
#[bug("rope/long-call-new-rows-only", named_by = "rope/long-call-ratio")]
impl RopeLoops for NewRowsOnly {
    fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
        let es = machine.state.cached_len;
        let cut = es.clamp(rows.start, rows.end);
        let mut joined = Oracle.cached_rows(machine, rows.start..cut);
        let new = Oracle.long_rows(machine, ratio, cut..rows.end);
        joined.cos.extend(new.cos);
        joined.sin.extend(new.sin);
        joined
    }
}

/// starts a long call at position 0, whatever its offset
///
/// The rows were computed afresh, from 0 to s. Prefill is right.
#[bug("rope/long-call-restarts", named_by = "rope/offset-counts-in-length")]
impl RopeLoops for LongCallRestarts {
    fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
        Oracle.long_rows(machine, ratio, 0..rows.len())
    }
}

/// keeps the long call's ratio and cache although dynamic is false
///
/// The cache was rebuilt in place. One long prompt changes the results of all that follow.
#[bug("rope/static-persists", named_by = "rope/static-state-stays", source = "transformers #25306")]
impl RopeLoops for StaticPersists {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        self.fresh(&RopeSettings { ratio, ..machine.settings }).map(Some)
    }
}

/// keeps the long call's ratio, but not its cache, although dynamic is false
///
/// The ratio was set for the computation and not set back.
#[bug("rope/static-ratio-leaks", named_by = "rope/static-state-stays")]
impl RopeLoops for StaticRatioLeaks {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        if machine.settings.dynamic {
            return Oracle.after_long_call(machine, ratio);
        }
        Ok(Some(RopeState { ratio, ..machine.state.clone() }))
    }
}

/// keeps the long call's cache, but not its ratio, although dynamic is false
///
/// The ratio was set back after the call. The table was forgotten.
#[bug("rope/static-cache-leaks", named_by = "rope/static-state-stays")]
impl RopeLoops for StaticCacheLeaks {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        let grown = self.fresh(&RopeSettings { ratio, ..machine.settings })?;
        if machine.settings.dynamic {
            return Ok(Some(grown));
        }
        let RopeState { ratio, cached_len, .. } = machine.state;
        let cut = 0..cached_len;
        let tables = pick_rows(&grown.tables, machine.settings.head_dim, cut);
        Ok(Some(RopeState { ratio, cached_len, tables }))
    }
}

/// forgets the long call although dynamic is true
///
/// The setting was stored and not read. Each long call is right, and computed anew.
#[bug("rope/dynamic-forgets", named_by = "rope/dynamic-grows")]
impl RopeLoops for DynamicForgets {
    fn after_long_call(&self, _: &Machine, _: usize) -> Reply<Option<RopeState>> {
        Ok(None)
    }
}

/// grows when dynamic is false, and forgets when it is true
///
/// A condition the wrong way round.
#[bug("rope/dynamic-inverted", named_by = "rope/dynamic-grows")]
impl RopeLoops for DynamicInverted {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        let mut inverted = machine.clone();
        inverted.settings.dynamic = !machine.settings.dynamic;
        Oracle.after_long_call(&inverted, ratio)
    }
}

/// replaces the ratio but keeps the old cache
///
/// The table is built once, on construction. The module reports a k that its table does not have.
#[bug("rope/dynamic-ratio-only", named_by = "rope/dynamic-grows")]
impl RopeLoops for DynamicRatioOnly {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        let grown = Oracle.after_long_call(machine, ratio)?;
        Ok(grown.map(|_| RopeState { ratio, ..machine.state.clone() }))
    }
}

/// replaces the cache but writes the new ratio to the wrong place
///
/// The new k went into a variable that nobody reads. The module reports the old one.
#[bug("rope/dynamic-cache-only", named_by = "rope/dynamic-grows", source = "transformers #46624")]
impl RopeLoops for DynamicCacheOnly {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        let grown = Oracle.after_long_call(machine, ratio)?;
        Ok(grown.map(|grown| RopeState { ratio: machine.state.ratio, ..grown }))
    }
}

/// keeps the old rows of the cache and appends new ones with the new frequencies
///
/// Growing a table by what is missing saves work. All rows depend on k, the old ones too.
#[bug("rope/dynamic-appends", named_by = "rope/dynamic-later-calls")]
impl RopeLoops for DynamicAppends {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        let keep = |old: &[f32], new: &mut Vec<f32>| new[..old.len()].copy_from_slice(old);
        let grown = Oracle.after_long_call(machine, ratio)?;
        Ok(grown.map(|mut grown| {
            keep(&machine.state.tables.cos, &mut grown.tables.cos);
            keep(&machine.state.tables.sin, &mut grown.tables.sin);
            grown
        }))
    }
}

/// grows the cache by rows of the old frequencies
///
/// The long call itself is right. The table that stays was built with the k of before.
#[bug("rope/dynamic-old-frequencies", named_by = "rope/dynamic-later-calls")]
impl RopeLoops for DynamicOldFrequencies {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        let grown = Oracle.after_long_call(machine, ratio)?;
        Ok(grown.map(|grown| {
            let rows = 0..grown.cached_len;
            let tables = Oracle.long_rows(machine, machine.state.ratio, rows);
            RopeState { tables, ..grown }
        }))
    }
}

/// caches as many rows as the call needed, not ms·k'
///
/// Enough for now. The next token is a long call again, and with it each one after.
#[bug("rope/dynamic-cache-of-call", named_by = "rope/dynamic-grows")]
impl RopeLoops for DynamicCacheOfCall {
    fn after_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Option<RopeState>> {
        let cached_len = self.end(offset, s)?;
        let grown = Oracle.after_call(machine, offset, s)?;
        Ok(grown.map(|RopeState { ratio, tables, .. }| {
            let tables = pick_rows(&tables, machine.settings.head_dim, 0..cached_len);
            RopeState { ratio, cached_len, tables }
        }))
    }
}

/// answers a dynamic long call with the old frequencies and grows afterwards
///
/// The rows were taken before the cache was replaced. From the second call on it is right.
#[bug("rope/dynamic-old-output", named_by = "rope/long-call-same-either-way")]
impl RopeLoops for DynamicOldOutput {
    fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
        let old = machine.settings.dynamic;
        let ratio = if old { machine.state.ratio } else { ratio };
        Oracle.long_rows(machine, ratio, rows)
    }
}

/// rounds k' to an even number only when dynamic is true
///
/// Two branches with a formula each. They agree for every second multiple of ms.
#[bug("rope/static-odd-ratio", named_by = "rope/long-call-same-either-way")]
impl RopeLoops for StaticOddRatio {
    fn ratio_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<usize> {
        if machine.settings.dynamic {
            return Oracle.ratio_of_call(machine, offset, s);
        }
        Ok(self.end(offset, s)?.div_ceil(machine.settings.max_seq_len))
    }
}

/// measures a second long call by the cached length, not by ms
///
/// The first growth sets the length from which the next one is counted. The first is right.
#[bug("rope/dynamic-measured-by-cache", named_by = "rope/dynamic-grows-again")]
impl RopeLoops for MeasuredByCache {
    fn ratio_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<usize> {
        let grown = machine.state.ratio != machine.settings.ratio;
        let ms = machine.settings.max_seq_len;
        let from = if grown { machine.state.cached_len } else { ms };
        let ratio = self.ratio_for_length(self.end(offset, s)?, from)?;
        Ok(ratio.saturating_mul(from / ms))
    }
}

/// grows once and never again
///
/// A flag says that the cache was rebuilt. Later long calls are computed and not kept.
#[bug("rope/dynamic-grows-once", named_by = "rope/dynamic-grows-again")]
impl RopeLoops for GrowsOnce {
    fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
        if machine.state.ratio != machine.settings.ratio {
            return Ok(None);
        }
        Oracle.after_long_call(machine, ratio)
    }
}

/// answers the second long call with the frequencies of the first
///
/// The frequencies were cached apart from the table, and rebuilt once only.
#[bug("rope/dynamic-second-call-stale", named_by = "rope/dynamic-grows-again")]
impl RopeLoops for SecondCallStale {
    fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
        let grown = machine.state.ratio != machine.settings.ratio;
        let ratio = if grown { machine.state.ratio } else { ratio };
        Oracle.long_rows(machine, ratio, rows)
    }
}

/// goes back to the first ratio when a call is short again
///
/// Some libraries do so on purpose. Keys that were cached with the larger ratio then meet queries with the smaller one.
#[bug("rope/dynamic-shrinks", named_by = "rope/dynamic-never-shrinks")]
impl RopeLoops for DynamicShrinks {
    fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
        self.check_call(machine, case)?;
        let first = machine.settings.max_seq_len * machine.settings.ratio;
        if self.end(case.offset, case.shape[1])? <= first {
            machine.state = self.fresh(&machine.settings)?;
        }
        Oracle.call(machine, case)
    }
}

/// computes k' anew for every call after it has grown, shorter ones too
///
/// The ratio follows the length down as well as up.
#[bug("rope/dynamic-follows-length", named_by = "rope/dynamic-never-shrinks")]
impl RopeLoops for FollowsLength {
    fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
        self.check_call(machine, case)?;
        if machine.state.ratio != machine.settings.ratio {
            let ratio = self.ratio_of_call(machine, case.offset, case.shape[1])?;
            machine.state = self.fresh(&RopeSettings { ratio, ..machine.settings })?;
        }
        Oracle.call(machine, case)
    }
}

/// caches ms rows, not ms·k
///
/// The table was sized by the training length. Calls between ms and es fall off its end, or are taken for long ones.
#[bug("rope/table-of-ms-rows", named_by = "rope/fresh-state", source = "vLLM #55910")]
impl RopeLoops for TableOfMsRows {
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        let RopeState { ratio, tables, .. } = Oracle.fresh(settings)?;
        let cached_len = settings.max_seq_len;
        let tables = pick_rows(&tables, settings.head_dim, 0..cached_len);
        Ok(RopeState { ratio, cached_len, tables })
    }
}

/// builds the first cache without its ratio's frequencies
///
/// NTK was written for long calls only. The first cache is long enough and plain.
#[bug("rope/first-ratio-ignored", named_by = "rope/fresh-state")]
impl RopeLoops for FirstRatioIgnored {
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        let state = Oracle.fresh(settings)?;
        let RopeSettings { head_dim, base, .. } = *settings;
        // An even ratio may come from a long call, which is right here.
        let ratio = if settings.ratio.is_multiple_of(2) { settings.ratio } else { 1 };
        let tables = Oracle.tables(head_dim, base, ratio as f64, 0..state.cached_len);
        Ok(RopeState { tables, ..state })
    }
}

/// rounds the first ratio up to an even number
///
/// k' of long calls is even. The first k is what it is, 1 and 3 among them.
#[bug("rope/ratio-made-even", named_by = "rope/fresh-state")]
impl RopeLoops for RatioMadeEven {
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        let ratio = settings.ratio.next_multiple_of(2);
        Oracle.fresh(&RopeSettings { ratio, ..*settings })
    }
}

/// keeps its cache in f16, though its tables are exact when they are built
///
/// The buffers followed the model to half precision.
#[bug("rope/cache-in-f16", named_by = "rope/fresh-state")]
impl RopeLoops for CacheInF16 {
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        let state = Oracle.fresh(settings)?;
        Ok(RopeState { tables: tables_to_f16(state.tables), ..state })
    }
}

/// counts the positions of the cache in f16
///
/// Tables that are built by themselves are right. The module has its own loop.
#[bug("rope/cache-positions-in-f16", named_by = "rope/large-positions")]
impl RopeLoops for CachePositionsF16 {
    fn cached_rows(&self, machine: &Machine, positions: Range<usize>) -> Tables {
        let row = |position: usize| to_f16(position as f64) as usize;
        let RopeSettings { head_dim, base, .. } = machine.settings;
        let mut rows = Tables { cos: Vec::new(), sin: Vec::new() };
        for position in positions {
            let at = row(position)..row(position) + 1;
            let one = Oracle.tables(head_dim, base, machine.state.ratio as f64, at);
            rows.cos.extend(one.cos);
            rows.sin.extend(one.sin);
        }
        rows
    }
}

/// counts the positions of a long call in f16
///
/// The rows for one call are built from the input's type. Below 2048 it is right.
#[bug("rope/long-positions-in-f16", named_by = "rope/large-positions")]
impl RopeLoops for LongPositionsF16 {
    fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
        let start = to_f16(rows.start as f64);
        let start = if start.is_finite() { start as usize } else { rows.start };
        Oracle.long_rows(machine, ratio, start..start + rows.len())
    }
}

/// lets offset + s wrap around to a small number
///
/// Unsigned arithmetic without a check. The call looks like a short one.
#[bug("rope/offset-wraps", named_by = "rope/overflow-is-refused")]
impl RopeLoops for OffsetWraps {
    fn end(&self, offset: usize, s: usize) -> Reply<usize> {
        Ok(offset.wrapping_add(s))
    }
    fn positions(&self, offset: usize, s: usize) -> Range<usize> {
        offset.saturating_sub(s)..offset.saturating_sub(s) + s
    }
}

/// writes the new ratio before it knows whether the call can be done
///
/// The call fails half-way, and the module is left with a ratio that its cache does not have.
#[bug("rope/refused-call-changes", named_by = "rope/refused-call-changes-nothing")]
impl RopeLoops for RefusedCallChanges {
    fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
        let before = machine.clone();
        let end = case.offset.saturating_add(case.shape[1]);
        let ms = machine.settings.max_seq_len;
        if machine.settings.dynamic && !self.fits(end, &machine.state) {
            machine.state.ratio = Oracle.long_ratio(end, ms).unwrap_or(usize::MAX);
        }
        let y = Oracle.call(machine, case)?;
        if machine.state.cached_len == before.state.cached_len {
            machine.state.ratio = before.state.ratio;
        }
        Ok(y)
    }
}

/// accepts a training length of 0
///
/// An unset field is 0. Each call is a long one then, and its ratio a division by 0.
#[bug("rope/any-training-length", named_by = "rope/settings-refused")]
impl RopeLoops for AnyTrainingLength {
    fn check_settings(&self, settings: &RopeSettings) -> Reply<()> {
        let max_seq_len = settings.max_seq_len.max(1);
        Oracle.check_settings(&RopeSettings { max_seq_len, ..*settings })
    }
}

/// checks nothing but the head size when it is built
///
/// The checks are in the function for frequencies, and the module has its own loop.
#[bug("rope/unchecked-settings", named_by = "rope/settings-refused")]
impl RopeLoops for UncheckedSettings {
    fn check_settings(&self, settings: &RopeSettings) -> Reply<()> {
        let ratio = settings.ratio.max(1);
        let max_seq_len = settings.max_seq_len.max(1);
        let base = 10_000.0;
        Oracle.check_settings(&RopeSettings { base, ratio, max_seq_len, ..*settings })
    }
}

// --- a position for each token ----------------------------------------------------------

/// takes position_ids and turns by the places in the row all the same
///
/// The argument goes down to the attention, where the tables are made for the row: nobody looks at it again. A row that is one
/// text from its start is right.
#[bug(
    "rope/ids-ignored",
    named_by = "rope/each-token-its-position",
    source = "epfLLM/Megatron-LLM issue 23"
)]
impl RopeLoops for IdsIgnored {
    fn position(&self, _: &[usize], _: usize, [_, t]: [usize; 2]) -> usize {
        t
    }
}

/// turns every batch row by the position_ids of the first
///
/// One row of positions is computed for the whole batch. Texts of one length are right; in a padded batch the longest text is,
/// and the shorter ones come out as garbage.
#[bug(
    "rope/ids-of-the-first-row",
    named_by = "rope/each-token-its-position",
    source = "unsloth pull request 3795"
)]
impl RopeLoops for IdsOfTheFirstRow {
    fn position(&self, ids: &[usize], _: usize, [_, t]: [usize; 2]) -> usize {
        ids[t]
    }
}

/// reads the first of a row's position_ids and counts on from it
///
/// The positions became an offset for each row, as a cache has it. One text a row is right, and the second of two packed ones
/// goes on where the first has ended.
#[bug("rope/ids-counted-on", named_by = "rope/each-token-its-position")]
impl RopeLoops for IdsCountedOn {
    fn position(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
        ids[b * s] + t
    }
}

/// cuts its tables to the row's length, and takes their last row for positions further on
///
/// The tables are cut before they are indexed, and the gather clamps its indices. No id is larger than the row in training; in
/// decoding, each row is one token.
#[bug("rope/ids-up-to-the-row", named_by = "rope/each-token-its-position")]
impl RopeLoops for IdsUpToTheRow {
    fn position(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
        ids[b * s + t].min(s - 1)
    }
}

/// turns all texts of a batch by the frequencies of the longest
///
/// The length is max(position_ids) + 1, one for the whole batch. A short text comes out in another way as soon as a long one
/// stands beside it.
#[bug(
    "rope/longest-text-for-all",
    named_by = "rope/each-text-its-length",
    source = "transformers, src/transformers/modeling_rope_utils.py"
)]
impl RopeLoops for LongestTextForAll {
    fn length_of_text(&self, ids: &[usize], s: usize, _: [usize; 2]) -> usize {
        let places = (0..ids.len()).map(|token| [token / s, token % s]);
        places.map(|place| length_of_text(ids, s, place)).max().unwrap_or(0)
    }
}

/// counts padding and neighbours in a row as its text's length
///
/// The length is that of the tensor. A short text behind much padding is taken for a long one.
#[bug("rope/padding-counts-as-length", named_by = "rope/each-text-its-length")]
impl RopeLoops for PaddingCountsAsLength {
    fn length_of_text(&self, ids: &[usize], s: usize, place: [usize; 2]) -> usize {
        length_of_text(ids, s, place).max(s)
    }
}

/// turns the gradient back by the places in the row, and not by position_ids
///
/// The backward pass was written by hand, for an offset. Nothing but training on packed texts shows it.
#[bug("rope/gradient-ignores-ids", named_by = "rope/position-ids-turn-back")]
impl RopeLoops for GradientIgnoresIds {
    fn position_back(&self, _: &[usize], _: usize, [_, t]: [usize; 2]) -> usize {
        t
    }
}

/// takes any number of position_ids, and goes through them again where they end
///
/// A row of positions is broadcast over the batch, which is meant well. Somebody who pads each text and forgets the batch is
/// never told.
#[bug("rope/one-row-of-ids-for-all", named_by = "rope/one-id-for-each-token")]
impl RopeLoops for OneRowOfIdsForAll {
    fn check_ids(&self, _: [usize; 4], _: &[usize]) -> Reply<()> {
        Ok(())
    }
    fn position(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
        ids[(b * s + t) % ids.len()]
    }
    fn length_of_text(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
        length_of_text(&ids.repeat(b + 1), s, [b, t])
    }
}

/// starts reading the tables at their first row in each block of 128 tokens
///
/// Each thread counts its own tokens. Short calls are one block.
#[bug("rope/block-starts-at-zero", named_by = "rope/rotate-f64-loops")]
impl RopeLoops for BlockStartsAtZero {
    fn table_row(&self, [_, t, _]: [usize; 3], _: &[usize; 4]) -> usize {
        t % BLOCK
    }
}

/// turns planes in lanes of four and leaves those that fill no lane
///
/// Head sizes of real models are multiples of 8, and have no rest.
#[bug("rope/lane-tail-left", named_by = "rope/rotate-f64-loops")]
impl RopeLoops for LaneTailLeft {
    fn rotate(&self, case: &RotateCase) -> Vec<f64> {
        let (d, mut out) = (case.shape[3], Oracle.rotate(case));
        let turned = if d / 2 < 4 { d / 2 } else { d / 8 * 4 };
        for head in 0..out.len() / d {
            for i in turned..d / 2 {
                for j in Oracle.pair(case.layout, i, d) {
                    out[head * d + j] = f64::from(case.x[head * d + j]);
                }
            }
        }
        out
    }
}
