//! Bugs of stretched RoPE.

use crate::component::{bug, bugs};
use crate::frequencies::oracle::StretchedRopeLoops;
use crate::oracle::Oracle;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::f64::consts::TAU;

bugs! {
    InterpolationMultiplies, InterpolationOfTheBase, InterpolationSparesTheFirstPlane, ExponentsOfTheHead,
    NtkBaseTimesTheFactor, NtkPowerOfDMinus1, NtkPowerInverted, NtkSlowsEvenly, DynamicAtAnyLength, DynamicIsStatic,
    DynamicRatioIsTheFactor, DynamicWithoutMinus, DynamicWithoutFactor, DynamicKeeps, LengthOfTheCall,
    LengthOfTheCache, LongropeListsExchanged, LongropeAlwaysLong, LongropeLongFromMsOn, LongropeMultiplies,
    LongropeDividesByTheFactorToo, LongropeDivisorsBelow1, LongropeScaleWithoutRoot, LongropeScaleForLongTexts,
    LongropeScaleOfYarn, YarnRampBackward, YarnLimitsExchanged, YarnAllInterpolated, YarnStretchedLength,
    YarnWithoutTwoPi, YarnLogOfTwoKinds, YarnNotRoundedAtAll, YarnAlwaysRounded, YarnRoundedInwards,
    YarnRampOfThePaper, YarnRampNotCut, YarnRampEndsInTheHead, YarnScaleMissing, YarnScaleSquared, YarnScaleDecimal,
    Llama3NotApplied, Llama3WavelengthsForTurns, Llama3LimitsExchanged, Llama3RampBackward, Llama3NoRamp,
    Llama3RampNotCut, Llama3DividesTwice, Llama3PeriodsMixed, Llama3TrainedAt8192, Llama3StretchedLength,
    Llama3WithoutTwoPi, TurnedBackward, NeighboursPaired, PairsOfTheHead, LastPartTurned, RestScaled, RestZeroed,
    ScaleForgotten, ScaleOnCosines, ScaleSquared, OffsetForgotten, PositionsFrom1, PositionCutAtTheTable,
    GradientTurnedForward, GradientWithoutScale, GradientDividedByScale, ThetaWithoutPosition, ThetaRowForPosition,
    ThetaSign, ThetaFromX, ThetaScaledTwice, ThetaHalfOfThePair, ThetaOfOneHead, ThetaMeanOverTheBatch,
    ThetaMeanOverHeads,
}

/// What a module that never forgets holds: the longest text so far, for each of its settings.
#[derive(Default)]
struct DynamicKeeps(RefCell<BTreeMap<(u64, u64), f64>>);

/// keeps the frequencies of the longest call
///
/// A long call overwrote a buffer that was never restored, so the same question gets another answer afterwards.
#[bug("frequencies/dynamic-keeps", named_by = "frequencies/dynamic-forgets",
    of = DynamicKeeps::default(), source = "transformers issue 25306")]
impl StretchedRopeLoops for DynamicKeeps {
    fn dynamic_ratio(&self, f: f64, ms: f64, length: f64) -> f64 {
        let mut longest = self.0.borrow_mut();
        let longest = longest.entry((f.to_bits(), ms.to_bits())).or_insert(0.0);
        *longest = longest.max(length);
        Oracle.dynamic_ratio(f, ms, *longest)
    }
}

/// multiplies the frequencies by the factor instead of dividing
///
/// A factor of 4 was read as 1/4, as some programs write it. Angles grow four times as fast, and no shape shows it.
#[bug("frequencies/interpolation-multiplies", named_by = "frequencies/interpolation-at-a-multiple")]
impl StretchedRopeLoops for InterpolationMultiplies {
    fn interpolated(&self, i: usize, d: f64, base: f64, k: f64) -> f64 {
        self.theta(i, d, base) * k
    }
}

/// multiplies the base by the factor instead of dividing the frequencies
///
/// Both slow down the slow planes, but here the fastest plane turns as before.
#[bug(
    "frequencies/interpolation-of-the-base",
    named_by = "frequencies/interpolation-at-a-multiple"
)]
impl StretchedRopeLoops for InterpolationOfTheBase {
    fn interpolated(&self, i: usize, d: f64, base: f64, k: f64) -> f64 {
        self.theta(i, d, base * k)
    }
}

/// leaves the fastest plane unchanged
///
/// The author had NTK in mind, which does so.
#[bug(
    "frequencies/interpolation-spares-the-first-plane",
    named_by = "frequencies/interpolation-at-a-multiple"
)]
impl StretchedRopeLoops for InterpolationSparesTheFirstPlane {
    fn interpolated(&self, i: usize, d: f64, base: f64, k: f64) -> f64 {
        self.theta(i, d, base) / if i == 0 { 1.0 } else { k }
    }
}

/// counts the exponents over the whole head where only part of it turns
///
/// The table was built for head_dim, and its first columns were used. At position 0 both agree, and then they drift apart.
#[bug(
    "frequencies/exponents-of-the-head",
    named_by = "frequencies/part-as-a-small-head",
    source = "pie pull request 603"
)]
impl StretchedRopeLoops for ExponentsOfTheHead {
    fn width(&self, _rotary_dim: usize, head_dim: usize) -> usize {
        head_dim
    }
}

/// multiplies the base by the factor without its power
///
/// The power d/(d − 2) is near 1 for large heads, so it looks like a detail.
#[bug(
    "frequencies/ntk-base-times-the-factor",
    named_by = "frequencies/ntk-ends",
    source = "CineScale issue 7"
)]
impl StretchedRopeLoops for NtkBaseTimesTheFactor {
    fn ntk_power(&self, _: f64) -> f64 {
        1.0
    }
}

/// uses the power d/(d − 1)
///
/// The code remembered one less. The last plane has the exponent (d − 2)/d.
#[bug("frequencies/ntk-power-of-d-minus-1", named_by = "frequencies/ntk-ends")]
impl StretchedRopeLoops for NtkPowerOfDMinus1 {
    fn ntk_power(&self, d: f64) -> f64 {
        d / (d - 1.0)
    }
}

/// uses the power (d − 2)/d
///
/// The quotient was inverted.
#[bug("frequencies/ntk-power-inverted", named_by = "frequencies/ntk-ends")]
impl StretchedRopeLoops for NtkPowerInverted {
    fn ntk_power(&self, d: f64) -> f64 {
        (d - 2.0) / d
    }
}

/// divides plane i by a number that grows linearly from 1 to the factor
///
/// The ends are right, and NTK is said to spread the factor over the planes, but it spreads its logarithm.
#[bug("frequencies/ntk-slows-evenly", named_by = "frequencies/ntk-is-one-base")]
impl StretchedRopeLoops for NtkSlowsEvenly {
    fn ntk(&self, i: usize, d: f64, base: f64, k: f64) -> f64 {
        self.theta(i, d, base) / (1.0 + (k - 1.0) * i as f64 / (d / 2.0 - 1.0))
    }
}

/// applies the formula to short calls too
///
/// Below the trained length the ratio is below 1, so the planes become faster than trained.
#[bug("frequencies/dynamic-at-any-length", named_by = "frequencies/dynamic-short-is-plain")]
impl StretchedRopeLoops for DynamicAtAnyLength {
    fn dynamic_ratio(&self, f: f64, ms: f64, length: f64) -> f64 {
        (f * length / ms - (f - 1.0)).max(1e-3)
    }
}

/// computes one ratio from the factor and uses it for every length
///
/// The largest length, f·ms, was used as the length. Then f·f − (f − 1) is a constant, and even texts that fit are
/// stretched.
#[bug(
    "frequencies/dynamic-is-static",
    named_by = "frequencies/dynamic-short-is-plain",
    source = "vLLM issue 41236"
)]
impl StretchedRopeLoops for DynamicIsStatic {
    fn dynamic_ratio(&self, f: f64, _: f64, _: f64) -> f64 {
        f * f - (f - 1.0)
    }
}

/// stretches by the factor itself once a text is too long
///
/// Dynamic was understood as either off or on.
#[bug("frequencies/dynamic-ratio-is-the-factor", named_by = "frequencies/dynamic-slowest-plane")]
impl StretchedRopeLoops for DynamicRatioIsTheFactor {
    fn dynamic_ratio(&self, f: f64, ms: f64, length: f64) -> f64 {
        if length > ms { f } else { 1.0 }
    }
}

/// forgets to subtract f − 1
///
/// f·L/ms alone jumps from 1 to f at the trained length, and for f = 1 it is right.
#[bug("frequencies/dynamic-without-minus", named_by = "frequencies/dynamic-slowest-plane")]
impl StretchedRopeLoops for DynamicWithoutMinus {
    fn dynamic_ratio(&self, f: f64, ms: f64, length: f64) -> f64 {
        if length > ms { f * length / ms } else { 1.0 }
    }
}

/// uses L/ms, whatever the factor is
///
/// That is the YaRN paper's rule, but a configuration with a factor of 2 gets another model.
#[bug("frequencies/dynamic-without-factor", named_by = "frequencies/dynamic-slowest-plane")]
impl StretchedRopeLoops for DynamicWithoutFactor {
    fn dynamic_ratio(&self, _: f64, ms: f64, length: f64) -> f64 {
        (length / ms).max(1.0)
    }
}

/// uses the number of rows in the call as the length of the text
///
/// A prompt is right, but then the text continues token by token, and each call has one row.
#[bug("frequencies/length-of-the-call", named_by = "frequencies/length-from-the-start")]
impl StretchedRopeLoops for LengthOfTheCall {
    fn length(&self, _: usize, seq_len: usize) -> usize {
        seq_len
    }
}

/// uses the offset as the length of the text
///
/// A long prompt has the offset 0, and so gets the frequencies of a short text.
#[bug(
    "frequencies/length-of-the-cache",
    named_by = "frequencies/length-from-the-start",
    source = "mistral.rs pull request 251"
)]
impl StretchedRopeLoops for LengthOfTheCache {
    fn length(&self, offset: usize, _: usize) -> usize {
        offset
    }
}

/// uses the long list for short texts and the short one for long texts
///
/// The comparison was reversed.
#[bug("frequencies/longrope-lists-exchanged", named_by = "frequencies/longrope-list-by-length")]
impl StretchedRopeLoops for LongropeListsExchanged {
    fn is_long(&self, length: usize, ms: usize) -> bool {
        length <= ms
    }
}

/// uses the long list for every text
///
/// The list was chosen by the reserved length instead of the text's. Short texts are slowed by divisors up to 60.
#[bug(
    "frequencies/longrope-always-long",
    named_by = "frequencies/longrope-list-by-length",
    source = "llama.cpp issue 24823"
)]
impl StretchedRopeLoops for LongropeAlwaysLong {
    fn is_long(&self, _: usize, _: usize) -> bool {
        true
    }
}

/// switches to the long list at the trained length itself
///
/// < was written for ≤, so only one length is wrong.
#[bug(
    "frequencies/longrope-long-from-ms-on",
    named_by = "frequencies/longrope-list-by-length",
    source = "unsloth pull request 10681"
)]
impl StretchedRopeLoops for LongropeLongFromMsOn {
    fn is_long(&self, length: usize, ms: usize) -> bool {
        length >= ms
    }
}

/// multiplies by the divisors
///
/// After all, they are called factors.
#[bug("frequencies/longrope-multiplies", named_by = "frequencies/longrope-list-by-length")]
impl StretchedRopeLoops for LongropeMultiplies {
    fn divided(&self, theta: f64, divisor: f64, _: f64) -> f64 {
        theta * divisor
    }
}

/// divides by the factor as well
///
/// All other rules divide by it.
#[bug(
    "frequencies/longrope-divides-by-the-factor-too",
    named_by = "frequencies/longrope-list-by-length"
)]
impl StretchedRopeLoops for LongropeDividesByTheFactorToo {
    fn divided(&self, theta: f64, divisor: f64, k: f64) -> f64 {
        theta / divisor / k
    }
}

/// clamps divisors to at least 1
///
/// The assumption was that no plane should be faster than trained, but a search may find one that should.
#[bug("frequencies/longrope-divisors-below-1", named_by = "frequencies/longrope-any-divisor")]
impl StretchedRopeLoops for LongropeDivisorsBelow1 {
    fn divided(&self, theta: f64, divisor: f64, _: f64) -> f64 {
        theta / divisor.max(1.0)
    }
}

/// forgets the root of the scale
///
/// Queries and keys both carry the scale, so the scores have its square, and the square was written.
#[bug("frequencies/longrope-scale-without-root", named_by = "frequencies/longrope-scale")]
impl StretchedRopeLoops for LongropeScaleWithoutRoot {
    fn long_scale(&self, k: f64, ms: f64, _: bool) -> f64 {
        1.0 + k.ln() / ms.ln()
    }
}

/// scales long texts only
///
/// Short texts have their own list and seem untouched, but the model was trained with the scale on both.
#[bug("frequencies/longrope-scale-for-long-texts", named_by = "frequencies/longrope-scale")]
impl StretchedRopeLoops for LongropeScaleForLongTexts {
    fn long_scale(&self, k: f64, ms: f64, is_long: bool) -> f64 {
        if is_long { (1.0 + k.ln() / ms.ln()).sqrt() } else { 1.0 }
    }
}

/// uses YaRN's scale
///
/// A single function computes the scale, and it was called for both rules.
#[bug("frequencies/longrope-scale-of-yarn", named_by = "frequencies/longrope-scale")]
impl StretchedRopeLoops for LongropeScaleOfYarn {
    fn long_scale(&self, k: f64, _: f64, _: bool) -> f64 {
        self.yarn_scale(k)
    }
}

/// interpolates the fast planes and leaves the slow ones
///
/// The mask says which share is kept, but was read as the share that is interpolated.
#[bug("frequencies/yarn-ramp-backward", named_by = "frequencies/yarn-ends")]
impl StretchedRopeLoops for YarnRampBackward {
    fn yarn_kept(&self, i: f64, ends: [f64; 2], turns: f64) -> f64 {
        1.0 - Oracle.yarn_kept(i, ends, turns)
    }
}

/// swaps beta fast and beta slow
///
/// 32 and 1 are two numbers without units. The ramp then ends before it starts.
#[bug("frequencies/yarn-limits-exchanged", named_by = "frequencies/yarn-ends")]
impl StretchedRopeLoops for YarnLimitsExchanged {
    fn yarn_ends(&self, [fast, slow]: [f64; 2], d: f64, base: f64, ms: f64) -> [f64; 2] {
        [self.yarn_plane(slow, d, base, ms), self.yarn_plane(fast, d, base, ms)]
    }
}

/// interpolates every plane equally
///
/// Positions were divided by the factor for all planes, which is plain interpolation under another name.
#[bug(
    "frequencies/yarn-all-interpolated",
    named_by = "frequencies/yarn-ends",
    source = "LLMs-from-scratch pull request 940"
)]
impl StretchedRopeLoops for YarnAllInterpolated {
    fn yarn_kept(&self, _: f64, _: [f64; 2], _: f64) -> f64 {
        0.0
    }
}

/// counts turns over the stretched length
///
/// A configuration has two lengths, and max_position_embeddings is the longer one.
#[bug(
    "frequencies/yarn-stretched-length",
    named_by = "frequencies/yarn-ends",
    source = "Megatron-LM issue 1418"
)]
impl StretchedRopeLoops for YarnStretchedLength {
    fn yarn_length(&self, ms: f64, k: f64) -> f64 {
        ms * k
    }
}

/// counts radians instead of turns
///
/// ms·θ is an angle, of which a turn takes 2π.
#[bug("frequencies/yarn-without-two-pi", named_by = "frequencies/yarn-ends")]
impl StretchedRopeLoops for YarnWithoutTwoPi {
    fn yarn_plane(&self, turns: f64, d: f64, base: f64, ms: f64) -> f64 {
        d * (ms / turns).ln() / (2.0 * base.ln())
    }
}

/// divides a natural logarithm by a decimal one
///
/// log is ln in one language and log10 in another. A quotient of two is right in either, as long as both are the same kind.
#[bug("frequencies/yarn-log-of-two-kinds", named_by = "frequencies/yarn-ends")]
impl StretchedRopeLoops for YarnLogOfTwoKinds {
    fn yarn_plane(&self, turns: f64, d: f64, base: f64, ms: f64) -> f64 {
        d * (ms / (turns * TAU)).ln() / (2.0 * base.log10())
    }
}

/// does not round the ends of the ramp
///
/// The paper does not round, but its authors' code does, and models were trained with it.
#[bug("frequencies/yarn-not-rounded-at-all", named_by = "frequencies/yarn-ramp")]
impl StretchedRopeLoops for YarnNotRoundedAtAll {
    fn yarn_rounded(&self, ends: [f64; 2], _: bool) -> [f64; 2] {
        ends
    }
}

/// rounds the ends of the ramp even when it should not
///
/// A later setting, truncate, was not read. GPT-OSS has it off.
#[bug(
    "frequencies/yarn-always-rounded",
    named_by = "frequencies/yarn-not-rounded",
    source = "vLLM pull request 28244"
)]
impl StretchedRopeLoops for YarnAlwaysRounded {
    fn yarn_rounded(&self, ends: [f64; 2], _: bool) -> [f64; 2] {
        Oracle.yarn_rounded(ends, true)
    }
}

/// rounds the ends of the ramp inwards
///
/// ceil and floor were swapped, so the ramp is up to two planes shorter.
#[bug("frequencies/yarn-rounded-inwards", named_by = "frequencies/yarn-ramp")]
impl StretchedRopeLoops for YarnRoundedInwards {
    fn yarn_rounded(&self, [first, last]: [f64; 2], truncate: bool) -> [f64; 2] {
        if truncate { [first.ceil(), last.floor()] } else { [first, last] }
    }
}

/// lets the ramp fall linearly in turns instead of planes
///
/// The paper does so, but the code that trained the models counts planes, and the two differ between the ends.
#[bug("frequencies/yarn-ramp-of-the-paper", named_by = "frequencies/yarn-ramp")]
impl StretchedRopeLoops for YarnRampOfThePaper {
    fn yarn_kept(&self, _: f64, _: [f64; 2], turns: f64) -> f64 {
        ((turns - 1.0) / 31.0).clamp(0.0, 1.0)
    }
}

/// does not clamp the ramp to 0 and 1
///
/// Planes before it become faster than they were, and planes after it turn backward.
#[bug("frequencies/yarn-ramp-not-cut", named_by = "frequencies/yarn-between")]
impl StretchedRopeLoops for YarnRampNotCut {
    fn yarn_kept(&self, i: f64, [first, last]: [f64; 2], _: f64) -> f64 {
        1.0 - (i - first) / (last - first)
    }
}

/// clamps the end of the ramp at the last plane
///
/// There are d/2 planes, but the published code clamps at d − 1. That looks like a mistake, but models were trained with
/// it.
#[bug("frequencies/yarn-ramp-ends-in-the-head", named_by = "frequencies/yarn-any")]
impl StretchedRopeLoops for YarnRampEndsInTheHead {
    fn yarn_within(&self, [first, last]: [f64; 2], d: f64) -> [f64; 2] {
        [first.max(0.0), last.min(d / 2.0 - 1.0)]
    }
}

/// leaves the scale at 1
///
/// Two settings in the file cancelled, or the scale was thought optional. The model speaks fluently, but does not follow
/// instructions.
#[bug(
    "frequencies/yarn-scale-missing",
    named_by = "frequencies/yarn-scale",
    source = "exllamav3 issue 259"
)]
impl StretchedRopeLoops for YarnScaleMissing {
    fn yarn_scale(&self, _: f64) -> f64 {
        1.0
    }
}

/// squares the scale
///
/// The file already holds the whole scale, which was then multiplied by the scale again.
#[bug(
    "frequencies/yarn-scale-squared",
    named_by = "frequencies/yarn-scale",
    source = "sglang pull request 33558"
)]
impl StretchedRopeLoops for YarnScaleSquared {
    fn yarn_scale(&self, k: f64) -> f64 {
        (0.1 * k.ln() + 1.0).powi(2)
    }
}

/// uses the decimal logarithm in the scale
///
/// log was read as log10, which gives 1.06 instead of 1.14 at a factor of 4.
#[bug("frequencies/yarn-scale-decimal", named_by = "frequencies/yarn-scale")]
impl StretchedRopeLoops for YarnScaleDecimal {
    fn yarn_scale(&self, k: f64) -> f64 {
        0.1 * k.log10() + 1.0
    }
}

/// returns the plain frequencies
///
/// The new list was computed, but the old one returned. Up to the trained length it hardly shows.
#[bug(
    "frequencies/llama3-not-applied",
    named_by = "frequencies/llama3-three-bands",
    source = "transformers pull request 32330"
)]
impl StretchedRopeLoops for Llama3NotApplied {
    fn llama3(&self, theta: f64, _: f64, _: f64, _: [f64; 2]) -> f64 {
        theta
    }
}

/// compares the limits with wavelengths instead of turns
///
/// A long wave has a low frequency, so each comparison is reversed.
#[bug("frequencies/llama3-wavelengths-for-turns", named_by = "frequencies/llama3-three-bands")]
impl StretchedRopeLoops for Llama3WavelengthsForTurns {
    fn llama3_turns(&self, theta: f64, ms: f64) -> f64 {
        TAU / (ms * theta)
    }
}

/// swaps the low and the high limit
///
/// The slow planes stay and the fast ones are interpolated.
#[bug("frequencies/llama3-limits-exchanged", named_by = "frequencies/llama3-three-bands")]
impl StretchedRopeLoops for Llama3LimitsExchanged {
    fn llama3_kept(&self, turns: f64, low: f64, high: f64) -> f64 {
        1.0 - Oracle.llama3_kept(turns, low, high)
    }
}

/// reverses the ramp between the limits
///
/// smooth and 1 − smooth are swapped. Both ends are right, and between them the frequencies jump.
#[bug("frequencies/llama3-ramp-backward", named_by = "frequencies/llama3-a-quarter")]
impl StretchedRopeLoops for Llama3RampBackward {
    fn llama3_kept(&self, turns: f64, low: f64, high: f64) -> f64 {
        let kept = Oracle.llama3_kept(turns, low, high);
        if kept > 0.0 && kept < 1.0 { 1.0 - kept } else { kept }
    }
}

/// leaves the planes between the limits unchanged
///
/// The first two cases were written, and the third one falls through.
#[bug("frequencies/llama3-no-ramp", named_by = "frequencies/llama3-a-quarter")]
impl StretchedRopeLoops for Llama3NoRamp {
    fn llama3_kept(&self, turns: f64, low: f64, _: f64) -> f64 {
        if turns < low { 0.0 } else { 1.0 }
    }
}

/// does not clamp the ramp at the limits
///
/// Three cases became one line. Planes above the high limit become faster than they were, and those below the low one
/// slower than interpolated.
#[bug("frequencies/llama3-ramp-not-cut", named_by = "frequencies/llama3-three-bands")]
impl StretchedRopeLoops for Llama3RampNotCut {
    fn llama3_kept(&self, turns: f64, low: f64, high: f64) -> f64 {
        (turns - low) / (high - low)
    }
}

/// divides by the factor again between the limits
///
/// The mixed list had already been divided.
#[bug("frequencies/llama3-divides-twice", named_by = "frequencies/llama3-no-jump")]
impl StretchedRopeLoops for Llama3DividesTwice {
    fn llama3(&self, theta: f64, k: f64, ms: f64, [low, high]: [f64; 2]) -> f64 {
        let kept = Oracle.llama3_kept(Oracle.llama3_turns(theta, ms), low, high);
        let between = kept > 0.0 && kept < 1.0;
        self.mix(if between { theta / k } else { theta }, k, kept)
    }
}

/// mixes wavelengths instead of frequencies
///
/// The mean of two wavelengths is not the wavelength of the mean frequency.
#[bug("frequencies/llama3-periods-mixed", named_by = "frequencies/llama3-a-quarter")]
impl StretchedRopeLoops for Llama3PeriodsMixed {
    fn llama3(&self, theta: f64, k: f64, ms: f64, [low, high]: [f64; 2]) -> f64 {
        let kept = Oracle.llama3_kept(Oracle.llama3_turns(theta, ms), low, high);
        theta / (kept + k * (1.0 - kept))
    }
}

/// counts turns over 8192 positions, whatever the trained length is
///
/// The number is hard-coded in the first code, and all of the first models had it.
#[bug("frequencies/llama3-trained-at-8192", named_by = "frequencies/llama3-three-bands")]
impl StretchedRopeLoops for Llama3TrainedAt8192 {
    fn llama3_length(&self, _: f64, _: f64) -> f64 {
        8192.0
    }
}

/// counts turns over the stretched length
///
/// 8 · 8192 is the longest text, not the trained one.
#[bug("frequencies/llama3-stretched-length", named_by = "frequencies/llama3-three-bands")]
impl StretchedRopeLoops for Llama3StretchedLength {
    fn llama3_length(&self, ms: f64, k: f64) -> f64 {
        ms * k
    }
}

/// counts radians instead of turns
///
/// The wavelength is 2π/θ, but 1/θ was used.
#[bug("frequencies/llama3-without-two-pi", named_by = "frequencies/llama3-three-bands")]
impl StretchedRopeLoops for Llama3WithoutTwoPi {
    fn llama3_turns(&self, theta: f64, ms: f64) -> f64 {
        ms * theta
    }
}

/// rotates in the other direction
///
/// A sign is wrong. Scores are unchanged as long as queries and keys rotate the same way, so a fresh model learns, but a
/// trained one does not fit.
#[bug("frequencies/turned-backward", named_by = "frequencies/turn-first-step")]
impl StretchedRopeLoops for TurnedBackward {
    fn turn(&self, [a, b]: [f64; 2], [cos, sin]: [f64; 2]) -> [f64; 2] {
        [a * cos + b * sin, b * cos - a * sin]
    }
    fn turn_back(&self, [a, b]: [f64; 2], [cos, sin]: [f64; 2]) -> [f64; 2] {
        [a * cos - b * sin, b * cos + a * sin]
    }
    fn dangle(&self, _: [f64; 2], y: [f64; 2], dy: [f64; 2]) -> f64 {
        dy[0] * y[1] - dy[1] * y[0]
    }
}

/// pairs neighbours instead of halves
///
/// It is the other layout, which keeps lengths and distances, so no law about those breaks.
#[bug("frequencies/neighbours-paired", named_by = "frequencies/turn-first-step")]
impl StretchedRopeLoops for NeighboursPaired {
    fn pair(&self, i: usize, _: usize, _: usize) -> [usize; 2] {
        [2 * i, 2 * i + 1]
    }
}

/// pairs an element with the one half a head further, where only a part turns
///
/// The list was padded with zeros to the whole head, so the pairs no longer lie within the part that turns.
#[bug(
    "frequencies/pairs-of-the-head",
    named_by = "frequencies/rest-of-a-head-stays",
    source = "cascadia pull request 69"
)]
impl StretchedRopeLoops for PairsOfTheHead {
    fn pair(&self, i: usize, _: usize, hd: usize) -> [usize; 2] {
        [i, i + hd / 2]
    }
}

/// rotates the last part of a head instead of the first
///
/// x[-d:] was written for x[:d]. DeepSeek's heads are built this way, and others are not.
#[bug("frequencies/last-part-turned", named_by = "frequencies/rest-of-a-head-stays")]
impl StretchedRopeLoops for LastPartTurned {
    fn pair(&self, i: usize, planes: usize, hd: usize) -> [usize; 2] {
        [hd - 2 * planes + i, hd - planes + i]
    }
}

/// also scales what does not turn
///
/// The scale was applied to the whole head, after the parts had been joined again.
#[bug("frequencies/rest-scaled", named_by = "frequencies/rest-of-a-head-stays")]
impl StretchedRopeLoops for RestScaled {
    fn scale_behind(&self, scale: f64) -> f64 {
        scale
    }
}

/// leaves zeros where a head does not turn
///
/// The result was allocated, but only the part that turns was written.
#[bug("frequencies/rest-zeroed", named_by = "frequencies/rest-of-a-head-stays")]
impl StretchedRopeLoops for RestZeroed {
    fn scale_behind(&self, _: f64) -> f64 {
        0.0
    }
}

/// does not apply the scale
///
/// The rule returns two things, and the second one was dropped.
#[bug("frequencies/scale-forgotten", named_by = "frequencies/length-times-scale")]
impl StretchedRopeLoops for ScaleForgotten {
    fn scales(&self, _: f64) -> [f64; 2] {
        [1.0, 1.0]
    }
}

/// scales only the cosines
///
/// There are two tables, and one line was forgotten. At position 0 nothing is missing.
#[bug("frequencies/scale-on-cosines", named_by = "frequencies/length-times-scale")]
impl StretchedRopeLoops for ScaleOnCosines {
    fn scales(&self, scale: f64) -> [f64; 2] {
        [scale, 1.0]
    }
}

/// applies the scale twice
///
/// It is applied once in the tables, and once to the queries and keys.
#[bug("frequencies/scale-squared", named_by = "frequencies/length-times-scale")]
impl StretchedRopeLoops for ScaleSquared {
    fn scales(&self, scale: f64) -> [f64; 2] {
        [scale * scale, scale * scale]
    }
}

/// starts each call at position 0
///
/// Whole texts are right, but with a cache of keys each new token becomes the first one.
#[bug("frequencies/offset-forgotten", named_by = "frequencies/pieces-are-the-whole")]
impl StretchedRopeLoops for OffsetForgotten {
    fn position(&self, _: usize, t: usize) -> f64 {
        t as f64
    }
}

/// counts positions from 1
///
/// Distances do not change, so a fresh model learns. A trained one, whose first token is at 0, does not fit.
#[bug("frequencies/positions-from-1", named_by = "frequencies/turn-first-step")]
impl StretchedRopeLoops for PositionsFrom1 {
    fn position(&self, offset: usize, t: usize) -> f64 {
        (offset + t + 1) as f64
    }
}

/// uses the last row of a table of 64 for all positions beyond it
///
/// The index was clamped where an error was due.
#[bug("frequencies/position-cut-at-the-table", named_by = "frequencies/scores-by-distance")]
impl StretchedRopeLoops for PositionCutAtTheTable {
    fn position(&self, offset: usize, t: usize) -> f64 {
        (offset + t).min(63) as f64
    }
}

/// rotates the gradient in the same direction as the values
///
/// A transpose was forgotten, which at position 0 makes no difference.
#[bug("frequencies/gradient-turned-forward", named_by = "frequencies/gradient-turns-back")]
impl StretchedRopeLoops for GradientTurnedForward {
    fn turn_back(&self, pair: [f64; 2], turns: [f64; 2]) -> [f64; 2] {
        self.turn(pair, turns)
    }
}

/// rotates the gradient back without the scale
///
/// The inverse of a rotation is its transpose, but with a scale it is not.
#[bug("frequencies/gradient-without-scale", named_by = "frequencies/gradient-turns-back")]
impl StretchedRopeLoops for GradientWithoutScale {
    fn scales_back(&self, _: f64) -> [f64; 2] {
        [1.0, 1.0]
    }
}

/// divides the gradient by the scale
///
/// The inverse was used instead of the transpose.
#[bug("frequencies/gradient-divided-by-scale", named_by = "frequencies/gradient-turns-back")]
impl StretchedRopeLoops for GradientDividedByScale {
    fn scales_back(&self, scale: f64) -> [f64; 2] {
        [1.0 / scale, 1.0 / scale]
    }
}

/// forgets the position in the gradient of a frequency
///
/// The angle's derivative was used for the frequency's. Far tokens, which say most, count like near ones.
#[bug("frequencies/theta-without-position", named_by = "frequencies/theta-by-hand")]
impl StretchedRopeLoops for ThetaWithoutPosition {
    fn angle_per_theta(&self, _: usize, _: usize) -> f64 {
        1.0
    }
}

/// uses the row as the position in the gradient of a frequency
///
/// The offset was forgotten in the backward pass alone.
#[bug("frequencies/theta-row-for-position", named_by = "frequencies/theta-by-hand")]
impl StretchedRopeLoops for ThetaRowForPosition {
    fn angle_per_theta(&self, _: usize, t: usize) -> f64 {
        t as f64
    }
}

/// gives the gradient of a frequency the wrong sign
///
/// The quarter turn has opposite directions in the forward and the backward pass, so the loss rises.
#[bug("frequencies/theta-sign", named_by = "frequencies/theta-by-hand")]
impl StretchedRopeLoops for ThetaSign {
    fn dangle(&self, _: [f64; 2], y: [f64; 2], dy: [f64; 2]) -> f64 {
        dy[0] * y[1] - dy[1] * y[0]
    }
}

/// uses x instead of the rotated pair
///
/// At small angles the two are close.
#[bug("frequencies/theta-from-x", named_by = "frequencies/theta-by-hand")]
impl StretchedRopeLoops for ThetaFromX {
    fn dangle(&self, x: [f64; 2], _: [f64; 2], dy: [f64; 2]) -> f64 {
        dy[1] * x[0] - dy[0] * x[1]
    }
}

/// multiplies the gradient of a frequency by the scale
///
/// The derivative is built from y, which is already scaled. Trained frequencies mostly come without a scale, where it is
/// right.
#[bug("frequencies/theta-scaled-twice", named_by = "frequencies/theta-by-hand")]
impl StretchedRopeLoops for ThetaScaledTwice {
    fn scale_of_theta(&self, scale: f64) -> f64 {
        scale
    }
}

/// counts only the second element of a pair
///
/// The table holds each frequency twice, and only one half's gradient was used.
#[bug("frequencies/theta-half-of-the-pair", named_by = "frequencies/theta-by-hand")]
impl StretchedRopeLoops for ThetaHalfOfThePair {
    fn dangle(&self, _: [f64; 2], y: [f64; 2], dy: [f64; 2]) -> f64 {
        dy[1] * y[0]
    }
}

/// uses only the first head's gradient
///
/// The table is the same for all heads, so its gradient seemed to be, too.
#[bug("frequencies/theta-of-one-head", named_by = "frequencies/theta-adds-up")]
impl StretchedRopeLoops for ThetaOfOneHead {
    fn counts(&self, [_, _, n]: [usize; 3], _: [usize; 4]) -> f64 {
        if n == 0 { 1.0 } else { 0.0 }
    }
}

/// averages over the batch
///
/// The loss is already a mean.
#[bug("frequencies/theta-mean-over-the-batch", named_by = "frequencies/theta-adds-up")]
impl StretchedRopeLoops for ThetaMeanOverTheBatch {
    fn counts(&self, _: [usize; 3], shape: [usize; 4]) -> f64 {
        1.0 / shape[0] as f64
    }
}

/// averages over the heads
///
/// An average was written instead of the sum over a broadcast axis.
#[bug("frequencies/theta-mean-over-heads", named_by = "frequencies/theta-adds-up")]
impl StretchedRopeLoops for ThetaMeanOverHeads {
    fn counts(&self, _: [usize; 3], shape: [usize; 4]) -> f64 {
        1.0 / shape[2] as f64
    }
}
