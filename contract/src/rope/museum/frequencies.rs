//! Bugs of the frequencies, and of the ratio for a length.

use crate::component::bug;
use crate::oracle::Oracle;
use crate::rope::interface::*;
use crate::rope::oracle::RopeLoops;

// --- frequencies ------------------------------------------------------------------------

/// ignores the NTK ratio in the frequencies
///
/// The ratio is stored and makes the cache longer, but the base stays, which is right with ratio 1.
#[bug("rope/no-ntk", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for NoNtk {
    fn ntk_base(&self, base: f64, _: f64, _: usize) -> f64 {
        base
    }
}

/// divides all frequencies by the ratio, which is position interpolation
///
/// This older way to stretch RoPE gets the last plane right, but it also slows the fast planes, which NTK was made to
/// avoid.
#[bug("rope/position-interpolation", named_by = "rope/fastest-plane-first")]
impl RopeLoops for Interpolation {
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        Oracle.frequency(i, d, base, 1.0) / ratio
    }
}

/// multiplies the base by the ratio itself, without the exponent d/(d − 2)
///
/// For d = 128 the exponent is 1.016 and looks negligible, but the last plane is slowed by k^((d−2)/d), not by k.
#[bug("rope/base-times-ratio", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for BaseTimesRatio {
    fn ntk_base(&self, base: f64, ratio: f64, _: usize) -> f64 {
        base * ratio
    }
}

/// applies the exponent d/(d − 2) to β, although it belongs to the base
///
/// base' = base·k^(d/(d−2)) and β' = β·k^(2/(d−2)) are the same, but the factor of one was combined with the other.
#[bug("rope/ntk-exponent-on-beta", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for ExponentOnBeta {
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        let d = d as f64;
        (base.powf(2.0 / d) * ratio.powf(d / (d - 2.0))).powi(-(i as i32))
    }
}

/// multiplies β by the ratio itself
///
/// c was taken to be k, so each plane is slowed k times more than the one before, and the last by k^(d/2−1).
#[bug("rope/ntk-ratio-on-beta", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for RatioOnBeta {
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        (base.powf(2.0 / d as f64) * ratio).powi(-(i as i32))
    }
}

/// uses the inverted exponent (d − 2)/d
///
/// For d = 128 the two exponents differ by only 3 %.
#[bug("rope/ntk-exponent-inverted", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for ExponentInverted {
    fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
        base * ratio.powf((d as f64 - 2.0) / d as f64)
    }
}

/// divides d by d − 2 in integers, so that the exponent is 1
///
/// Both are integers, so their quotient is too, and for d = 4 it is exact.
#[bug("rope/ntk-integer-exponent", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for IntegerExponent {
    fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
        base * ratio.powi((d / (d - 2)) as i32)
    }
}

/// applies the NTK ratio twice
///
/// It is applied when the base is scaled and again when the frequencies are computed.
#[bug("rope/ntk-twice", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for NtkTwice {
    fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
        Oracle.ntk_base(Oracle.ntk_base(base, ratio, d), ratio, d)
    }
}

/// rounds the ratio down to an integer
///
/// Modules have whole ratios, so it is cast to an integer, but NTK does not need that.
#[bug("rope/ntk-ratio-floored", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for RatioFloored {
    fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
        Oracle.ntk_base(base, ratio.floor(), d)
    }
}

/// applies no NTK below ratio 2
///
/// It guards against rounding, because the ratio was thought to be 1 or even.
#[bug("rope/ntk-from-two", named_by = "rope/ntk-slows-last-plane")]
impl RopeLoops for NtkFromTwo {
    fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
        if ratio < 2.0 { base } else { Oracle.ntk_base(base, ratio, d) }
    }
}

/// slows only the last plane
///
/// This satisfies the number that everybody quotes, but NTK spreads the slowing over all planes.
#[bug("rope/ntk-last-plane-only", named_by = "rope/ntk-constant-quotient")]
impl RopeLoops for LastPlaneOnly {
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        let plain = Oracle.frequency(i, d, base, 1.0);
        if i + 1 == d / 2 { plain / ratio } else { plain }
    }
}

/// spreads the slowing over the planes linearly, from 1 to k
///
/// Both ends are right, but in between the slowing must grow by a constant factor, not by a constant step.
#[bug("rope/ntk-spread-linearly", named_by = "rope/ntk-constant-quotient")]
impl RopeLoops for SpreadLinearly {
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        let share = i as f64 / (d as f64 / 2.0 - 1.0);
        Oracle.frequency(i, d, base, 1.0) / (1.0 + (ratio - 1.0) * share)
    }
}

/// uses i/d in the exponent instead of 2i/d
///
/// The paper counts planes, while PyTorch code counts dimensions in steps of 2, and one was read as the other.
#[bug("rope/i-not-2i", named_by = "rope/plain-frequencies")]
impl RopeLoops for HalfExponent {
    fn exponent(&self, i: usize, d: usize) -> f64 {
        i as f64 / d as f64
    }
}

/// divides 2i by d/2 instead of d
///
/// The frequencies were computed from the number of planes, which was mistaken for d.
#[bug("rope/exponent-over-half", named_by = "rope/plain-frequencies")]
impl RopeLoops for OverHalf {
    fn exponent(&self, i: usize, d: usize) -> f64 {
        2.0 * i as f64 / (d as f64 / 2.0)
    }
}

/// lets the last plane reach 1/base exactly
///
/// The exponents run evenly from 0 to 1, but the right ones stop one step short, at (d − 2)/d.
#[bug("rope/exponent-to-the-end", named_by = "rope/plain-frequencies")]
impl RopeLoops for ToTheEnd {
    fn exponent(&self, i: usize, d: usize) -> f64 {
        2.0 * i as f64 / (d as f64 - 2.0)
    }
}

/// starts the exponents at i = 1, so that plane 0 is slowed already
///
/// The paper writes base^(−2(i−1)/d) with i from 1, but the minus one was dropped and the start at 1 kept.
#[bug("rope/exponent-from-one", named_by = "rope/fastest-plane-first")]
impl RopeLoops for FromOne {
    fn exponent(&self, i: usize, d: usize) -> f64 {
        2.0 * (i + 1) as f64 / d as f64
    }
}

/// orders the frequencies from the slowest to the fastest
///
/// "θ_0 is the low frequency", many tutorials say, but it is the fastest.
#[bug("rope/slowest-first", named_by = "rope/fastest-plane-first")]
impl RopeLoops for SlowestFirst {
    fn frequencies(&self, d: usize, base: f64, ratio: f64) -> Vec<f64> {
        (0..d / 2).rev().map(|i| self.frequency(i, d, base, ratio)).collect()
    }
}

/// forgets the minus in the exponent, so that frequencies grow
///
/// A position is divided by base^(2i/d), but here it is multiplied.
#[bug("rope/wavelengths", named_by = "rope/fastest-plane-first")]
impl RopeLoops for Wavelengths {
    fn exponent(&self, i: usize, d: usize) -> f64 {
        -2.0 * i as f64 / d as f64
    }
}

/// uses base 10,000 whatever base it is given
///
/// The setting is stored and printed, but never read.
#[bug("rope/base-fixed", named_by = "rope/plain-frequencies")]
impl RopeLoops for BaseFixed {
    fn ntk_base(&self, _: f64, ratio: f64, d: usize) -> f64 {
        Oracle.ntk_base(10_000.0, ratio, d)
    }
}

/// never lets a frequency fall below 10⁻⁴
///
/// It guards against planes that hardly turn. With base 10,000 no plane reaches the floor, but with larger bases and
/// NTK many do.
#[bug("rope/frequency-floor", named_by = "rope/frequencies-f64-loops")]
impl RopeLoops for FrequencyFloor {
    fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
        Oracle.frequency(i, d, base, ratio).max(1e-4)
    }
}

/// accepts an odd head size and drops the last dimension
///
/// Integer division drops it, so one dimension never turns.
#[bug("rope/odd-head-size", named_by = "rope/frequencies-refuse")]
impl RopeLoops for OddHead {
    fn check_head(&self, d: usize) -> Reply<()> {
        Oracle.check_head(d - d % 2)
    }
}

/// accepts head size 2, for which the NTK exponent d/(d − 2) is infinite
///
/// 2 is even and plain RoPE works with it, but NTK gives a base of infinity.
#[bug("rope/head-size-two", named_by = "rope/frequencies-refuse")]
impl RopeLoops for HeadTwo {
    fn check_head(&self, d: usize) -> Reply<()> {
        if d == 2 { Ok(()) } else { Oracle.check_head(d) }
    }
}

/// accepts any base, even 1, negative ones and infinity
///
/// A base read from a broken file is 0, which makes every frequency except the first infinite.
#[bug("rope/any-base", named_by = "rope/frequencies-refuse")]
impl RopeLoops for AnyBase {
    fn check_base(&self, _: f64) -> Reply<()> {
        Ok(())
    }
}

/// accepts ratios below 1
///
/// The module checks its own, so the function was left open, and a ratio of 0 makes every frequency except the first
/// infinite.
#[bug("rope/any-ratio", named_by = "rope/frequencies-refuse")]
impl RopeLoops for AnyRatio {
    fn check_ratio(&self, _: f64) -> Reply<()> {
        Ok(())
    }
    fn check_settings(&self, settings: &RopeSettings) -> Reply<()> {
        Oracle.check_settings(settings)
    }
}

// --- ratio_for_length -------------------------------------------------------------------

/// takes the smallest ratio that is large enough, even or odd
///
/// ⌈L / ms⌉ is the formula as remembered, and it agrees for every second multiple.
#[bug("rope/long-ratio-odd", named_by = "rope/long-ratio-edges")]
impl RopeLoops for RatioOdd {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        Some(length.div_ceil(max_seq_len))
    }
}

/// goes one step too far at exact multiples, because floor plus one is not a ceiling
///
/// 2·(L / (2·ms) + 1) in integers differs only at the edges.
#[bug("rope/long-ratio-floor-plus-one", named_by = "rope/long-ratio-edges")]
impl RopeLoops for FloorPlusOne {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        (length / max_seq_len.saturating_mul(2)).checked_add(1)?.checked_mul(2)
    }
}

/// rounds the ratio down, so that the longest positions do not fit
///
/// It divides integers without a ceiling, then takes at least 2.
#[bug("rope/long-ratio-floor", named_by = "rope/long-ratio-edges")]
impl RopeLoops for RatioFloor {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        (length / max_seq_len.saturating_mul(2)).max(1).checked_mul(2)
    }
}

/// takes the next power of 2
///
/// It is even, large enough and the same up to 4, but from 5 on it is not minimal.
#[bug("rope/long-ratio-power-of-two", named_by = "rope/long-ratio-edges")]
impl RopeLoops for PowerOfTwo {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        length.div_ceil(max_seq_len).max(2).checked_next_power_of_two()
    }
}

/// doubles the ratio that is large enough, to make it even
///
/// 2·⌈L / ms⌉ is even, but twice what is needed.
#[bug("rope/long-ratio-doubled", named_by = "rope/long-ratio-edges")]
impl RopeLoops for RatioDoubled {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        length.div_ceil(max_seq_len).checked_mul(2)
    }
}

/// divides in f32, which rounds long lengths
///
/// ceil wants a float, but 2²⁶ + 1 becomes 2²⁶ in f32, so one step is lost.
#[bug("rope/long-ratio-in-f32", named_by = "rope/long-ratio-edges")]
impl RopeLoops for RatioInF32 {
    fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
        let steps = (length as f32 / (2.0 * max_seq_len as f32)).ceil();
        (steps as usize).max(1).checked_mul(2)
    }
}

/// computes the ratio with a shift, which is right only for powers of 2
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
