//! Bugs of NTK-aware RoPE, step by step.

mod calls;
mod frequencies;
mod gradient;
mod ids;
mod rotation;
mod state;
mod tables;

use crate::component::bugs;
use crate::oracle::to_f16;
use crate::rope::interface::Tables;
use calls::*;
use frequencies::*;
use gradient::*;
use ids::*;
use rotation::*;
use state::*;
use tables::*;

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

/// The tables rounded to `f16`.
fn tables_to_f16(tables: Tables) -> Tables {
    let round = |table: Vec<f32>| table.into_iter().map(|x| to_f16(f64::from(x))).collect();
    Tables { cos: round(tables.cos), sin: round(tables.sin) }
}
