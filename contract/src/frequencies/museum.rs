//! Bugs of stretched RoPE.

use crate::component::Bug;
use crate::frequencies::interface::StretchedRope;
use crate::frequencies::oracle::{StretchedRopeLoops, implementation};
use crate::oracle::Oracle;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::f64::consts::TAU;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl StretchedRopeLoops for $name { $($steps)* }
        || -> Box<dyn StretchedRope> { implementation($name) }
    }};
}

/// What a module that never forgets holds: the longest text so far, for each of its settings.
#[derive(Default)]
struct DynamicKeeps(RefCell<BTreeMap<(u64, u64), f64>>);

impl StretchedRopeLoops for DynamicKeeps {
    fn dynamic_ratio(&self, f: f64, ms: f64, length: f64) -> f64 {
        let mut longest = self.0.borrow_mut();
        let longest = longest.entry((f.to_bits(), ms.to_bits())).or_insert(0.0);
        *longest = longest.max(length);
        Oracle.dynamic_ratio(f, ms, *longest)
    }
}

/// All of them.
pub static BUGS: &[Bug<dyn StretchedRope>] = &[
    Bug {
        id: "frequencies/interpolation-multiplies",
        misconception: "multiplies the frequencies by the factor instead of dividing",
        story: "A factor of 4 was read as 1/4, as some programs write it. Angles grow four times as fast, and no shape tells.",
        source: None,
        named_by: "frequencies/interpolation-at-a-multiple",
        implementation: bug!(InterpolationMultiplies {
        fn interpolated(&self, i: usize, d: f64, base: f64, s: f64) -> f64 {
        self.theta(i, d, base) * s
        }
        }),
    },
    Bug {
        id: "frequencies/interpolation-of-the-base",
        misconception: "multiplies the base by the factor instead of dividing the frequencies",
        story: "Both slow the slow planes. Here the fastest plane turns as before.",
        source: None,
        named_by: "frequencies/interpolation-at-a-multiple",
        implementation: bug!(InterpolationOfTheBase {
        fn interpolated(&self, i: usize, d: f64, base: f64, s: f64) -> f64 {
        self.theta(i, d, base * s)
        }
        }),
    },
    Bug {
        id: "frequencies/interpolation-spares-the-first-plane",
        misconception: "leaves the fastest plane as it is",
        story: "NTK was in mind, which does.",
        source: None,
        named_by: "frequencies/interpolation-at-a-multiple",
        implementation: bug!(InterpolationSparesTheFirstPlane {
        fn interpolated(&self, i: usize, d: f64, base: f64, s: f64) -> f64 {
        self.theta(i, d, base) / if i == 0 { 1.0 } else { s }
        }
        }),
    },
    Bug {
        id: "frequencies/exponents-of-the-head",
        misconception: "counts the exponents in the whole head where a part of it turns",
        story: "The table was made for head_dim, and its first columns were taken. At position 0 both agree, and then they drift apart.",
        source: Some("pie pull request 603"),
        named_by: "frequencies/part-as-a-small-head",
        implementation: bug!(ExponentsOfTheHead {
        fn width(&self, _rotary_dim: usize, head_dim: usize) -> usize {
        head_dim
        }
        }),
    },
    Bug {
        id: "frequencies/ntk-base-times-the-factor",
        misconception: "multiplies the base by the factor, without its power",
        story: "The power d/(d − 2) is near 1 for large heads, so it seems to be a detail.",
        source: Some("CineScale issue 7"),
        named_by: "frequencies/ntk-ends",
        implementation: bug!(NtkBaseTimesTheFactor {
        fn ntk_power(&self, _: f64) -> f64 {
        1.0
        }
        }),
    },
    Bug {
        id: "frequencies/ntk-power-of-d-minus-1",
        misconception: "takes the power d/(d − 1)",
        story: "One less was remembered. The last plane has the exponent (d − 2)/d.",
        source: None,
        named_by: "frequencies/ntk-ends",
        implementation: bug!(NtkPowerOfDMinus1 {
        fn ntk_power(&self, d: f64) -> f64 {
        d / (d - 1.0)
        }
        }),
    },
    Bug {
        id: "frequencies/ntk-power-inverted",
        misconception: "takes the power (d − 2)/d",
        story: "The quotient was turned over.",
        source: None,
        named_by: "frequencies/ntk-ends",
        implementation: bug!(NtkPowerInverted {
        fn ntk_power(&self, d: f64) -> f64 {
        (d - 2.0) / d
        }
        }),
    },
    Bug {
        id: "frequencies/ntk-slows-evenly",
        misconception: "divides plane i by a number that grows evenly from 1 to the factor",
        story: "The ends are right, and NTK is said to spread the factor over the planes. It spreads its logarithm.",
        source: None,
        named_by: "frequencies/ntk-is-one-base",
        implementation: bug!(NtkSlowsEvenly {
        fn ntk(&self, i: usize, d: f64, base: f64, s: f64) -> f64 {
        self.theta(i, d, base) / (1.0 + (s - 1.0) * i as f64 / (d / 2.0 - 1.0))
        }
        }),
    },
    Bug {
        id: "frequencies/dynamic-at-any-length",
        misconception: "takes the formula for short calls too",
        story: "Below the trained length the ratio is below 1, and the planes get faster than trained.",
        source: None,
        named_by: "frequencies/dynamic-short-is-plain",
        implementation: bug!(DynamicAtAnyLength {
        fn dynamic_ratio(&self, f: f64, ms: f64, length: f64) -> f64 {
        (f * length / ms - (f - 1.0)).max(1e-3)
        }
        }),
    },
    Bug {
        id: "frequencies/dynamic-is-static",
        misconception: "computes one ratio from the factor, and takes it for every length",
        story: "The largest length, f·ms, was put in for the length. Then f·f − (f − 1) is a constant: texts that fit are stretched too.",
        source: Some("vLLM issue 41236"),
        named_by: "frequencies/dynamic-short-is-plain",
        implementation: bug!(DynamicIsStatic {
        fn dynamic_ratio(&self, f: f64, _: f64, _: f64) -> f64 {
        f * f - (f - 1.0)
        }
        }),
    },
    Bug {
        id: "frequencies/dynamic-ratio-is-the-factor",
        misconception: "stretches by the factor itself once a text is too long",
        story: "Dynamic was taken for: off or on.",
        source: None,
        named_by: "frequencies/dynamic-slowest-plane",
        implementation: bug!(DynamicRatioIsTheFactor {
        fn dynamic_ratio(&self, f: f64, ms: f64, length: f64) -> f64 {
        if length > ms { f } else { 1.0 }
        }
        }),
    },
    Bug {
        id: "frequencies/dynamic-without-minus",
        misconception: "forgets to take f − 1 away",
        story: "f·L/ms alone jumps from 1 to f at the trained length. With f = 1 it is right.",
        source: None,
        named_by: "frequencies/dynamic-slowest-plane",
        implementation: bug!(DynamicWithoutMinus {
        fn dynamic_ratio(&self, f: f64, ms: f64, length: f64) -> f64 {
        if length > ms { f * length / ms } else { 1.0 }
        }
        }),
    },
    Bug {
        id: "frequencies/dynamic-without-factor",
        misconception: "takes L/ms, whatever the factor is",
        story: "That is the rule of the paper on YaRN. A configuration with a factor of 2 gets another model.",
        source: None,
        named_by: "frequencies/dynamic-slowest-plane",
        implementation: bug!(DynamicWithoutFactor {
        fn dynamic_ratio(&self, _: f64, ms: f64, length: f64) -> f64 {
        (length / ms).max(1.0)
        }
        }),
    },
    Bug {
        id: "frequencies/dynamic-keeps",
        misconception: "keeps the frequencies of the longest call",
        story: "A buffer was overwritten by a long call and never put back. The same question gets another answer after it.",
        source: Some("transformers issue 25306"),
        named_by: "frequencies/dynamic-forgets",
        implementation: || implementation(DynamicKeeps::default()),
    },
    Bug {
        id: "frequencies/length-of-the-call",
        misconception: "takes the rows of the call for the length of the text",
        story: "A prompt is right. Then the text is continued token by token, and each call has one row.",
        source: None,
        named_by: "frequencies/length-from-the-start",
        implementation: bug!(LengthOfTheCall {
        fn length(&self, _: usize, seq_len: usize) -> usize {
        seq_len
        }
        }),
    },
    Bug {
        id: "frequencies/length-of-the-cache",
        misconception: "takes the offset for the length of the text",
        story: "A long prompt has the offset 0, and so the frequencies of a short text.",
        source: Some("mistral.rs pull request 251"),
        named_by: "frequencies/length-from-the-start",
        implementation: bug!(LengthOfTheCache {
        fn length(&self, offset: usize, _: usize) -> usize {
        offset
        }
        }),
    },
    Bug {
        id: "frequencies/longrope-lists-exchanged",
        misconception: "takes the long list for short texts, and the short one for long texts",
        story: "The comparison was turned round.",
        source: None,
        named_by: "frequencies/longrope-list-by-length",
        implementation: bug!(LongropeListsExchanged {
        fn is_long(&self, length: usize, ms: usize) -> bool {
        length <= ms
        }
        }),
    },
    Bug {
        id: "frequencies/longrope-always-long",
        misconception: "takes the long list for every text",
        story: "The list was chosen by the room that was reserved, and not by the text. Short texts are turned by divisors up to 60.",
        source: Some("llama.cpp issue 24823"),
        named_by: "frequencies/longrope-list-by-length",
        implementation: bug!(LongropeAlwaysLong {
        fn is_long(&self, _: usize, _: usize) -> bool {
        true
        }
        }),
    },
    Bug {
        id: "frequencies/longrope-long-from-ms-on",
        misconception: "takes the long list at the trained length itself",
        story: "< for ≤. One length alone is wrong.",
        source: Some("unsloth pull request 10681"),
        named_by: "frequencies/longrope-list-by-length",
        implementation: bug!(LongropeLongFromMsOn {
        fn is_long(&self, length: usize, ms: usize) -> bool {
        length >= ms
        }
        }),
    },
    Bug {
        id: "frequencies/longrope-multiplies",
        misconception: "multiplies by the divisors",
        story: "They are called factors.",
        source: None,
        named_by: "frequencies/longrope-list-by-length",
        implementation: bug!(LongropeMultiplies {
        fn divided(&self, theta: f64, divisor: f64, _: f64) -> f64 {
        theta * divisor
        }
        }),
    },
    Bug {
        id: "frequencies/longrope-divides-by-the-factor-too",
        misconception: "divides by the factor as well",
        story: "All other rules divide by it.",
        source: None,
        named_by: "frequencies/longrope-list-by-length",
        implementation: bug!(LongropeDividesByTheFactorToo {
        fn divided(&self, theta: f64, divisor: f64, s: f64) -> f64 {
        theta / divisor / s
        }
        }),
    },
    Bug {
        id: "frequencies/longrope-divisors-below-1",
        misconception: "cuts divisors below 1",
        story: "No plane shall be faster than trained, it was thought. A search may find that one should be.",
        source: None,
        named_by: "frequencies/longrope-any-divisor",
        implementation: bug!(LongropeDivisorsBelow1 {
        fn divided(&self, theta: f64, divisor: f64, _: f64) -> f64 {
        theta / divisor.max(1.0)
        }
        }),
    },
    Bug {
        id: "frequencies/longrope-scale-without-root",
        misconception: "forgets the root of the scale",
        story: "Queries and keys have the scale both, so the scores have its square, and the square was written.",
        source: None,
        named_by: "frequencies/longrope-scale",
        implementation: bug!(LongropeScaleWithoutRoot {
        fn long_scale(&self, s: f64, ms: f64, _: bool) -> f64 {
        1.0 + s.ln() / ms.ln()
        }
        }),
    },
    Bug {
        id: "frequencies/longrope-scale-for-long-texts",
        misconception: "scales long texts only",
        story: "Short texts have their own list, so they seem to be untouched. The model was trained with the scale on both.",
        source: None,
        named_by: "frequencies/longrope-scale",
        implementation: bug!(LongropeScaleForLongTexts {
        fn long_scale(&self, s: f64, ms: f64, is_long: bool) -> f64 {
        if is_long { (1.0 + s.ln() / ms.ln()).sqrt() } else { 1.0 }
        }
        }),
    },
    Bug {
        id: "frequencies/longrope-scale-of-yarn",
        misconception: "takes YaRN's scale",
        story: "There is one function for the scale, and it was called for both rules.",
        source: None,
        named_by: "frequencies/longrope-scale",
        implementation: bug!(LongropeScaleOfYarn {
        fn long_scale(&self, s: f64, _: f64, _: bool) -> f64 {
        self.yarn_scale(s)
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-ramp-backward",
        misconception: "interpolates the fast planes, and leaves the slow ones",
        story: "The mask says which share is kept, and was taken for the share that is interpolated.",
        source: None,
        named_by: "frequencies/yarn-ends",
        implementation: bug!(YarnRampBackward {
        fn yarn_kept(&self, i: f64, ends: [f64; 2], turns: f64) -> f64 {
        1.0 - Oracle.yarn_kept(i, ends, turns)
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-limits-exchanged",
        misconception: "exchanges beta fast and beta slow",
        story: "32 and 1 are two numbers without units. The ramp then ends before it begins.",
        source: None,
        named_by: "frequencies/yarn-ends",
        implementation: bug!(YarnLimitsExchanged {
        fn yarn_ends(&self, [fast, slow]: [f64; 2], d: f64, base: f64, ms: f64) -> [f64; 2] {
        [self.yarn_plane(slow, d, base, ms), self.yarn_plane(fast, d, base, ms)]
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-all-interpolated",
        misconception: "interpolates every plane alike",
        story: "Positions were divided by the factor, for all planes: that is interpolation under another name.",
        source: Some("LLMs-from-scratch pull request 940"),
        named_by: "frequencies/yarn-ends",
        implementation: bug!(YarnAllInterpolated {
        fn yarn_kept(&self, _: f64, _: [f64; 2], _: f64) -> f64 {
        0.0
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-stretched-length",
        misconception: "counts turns over the stretched length",
        story: "A configuration has two lengths, and max_position_embeddings is the longer one.",
        source: Some("Megatron-LM issue 1418"),
        named_by: "frequencies/yarn-ends",
        implementation: bug!(YarnStretchedLength {
        fn yarn_length(&self, ms: f64, s: f64) -> f64 {
        ms * s
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-without-two-pi",
        misconception: "counts radians for turns",
        story: "ms·θ is an angle. A turn has 2π of it.",
        source: None,
        named_by: "frequencies/yarn-ends",
        implementation: bug!(YarnWithoutTwoPi {
        fn yarn_plane(&self, turns: f64, d: f64, base: f64, ms: f64) -> f64 {
        d * (ms / turns).ln() / (2.0 * base.ln())
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-log-of-two-kinds",
        misconception: "takes the natural logarithm above and the decimal one below",
        story: "log is ln in one language and log10 in another. A quotient of two is right in either, if both are of one kind.",
        source: None,
        named_by: "frequencies/yarn-ends",
        implementation: bug!(YarnLogOfTwoKinds {
        fn yarn_plane(&self, turns: f64, d: f64, base: f64, ms: f64) -> f64 {
        d * (ms / (turns * TAU)).ln() / (2.0 * base.log10())
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-not-rounded-at-all",
        misconception: "does not round the ends of the ramp",
        story: "The paper does not round. The code of its authors does, and models were trained with it.",
        source: None,
        named_by: "frequencies/yarn-ramp",
        implementation: bug!(YarnNotRoundedAtAll {
        fn yarn_rounded(&self, ends: [f64; 2], _: bool) -> [f64; 2] {
        ends
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-always-rounded",
        misconception: "rounds the ends of the ramp even if it shall not",
        story: "A setting that came later, truncate, was not read. GPT-OSS has it off.",
        source: Some("vLLM pull request 28244"),
        named_by: "frequencies/yarn-not-rounded",
        implementation: bug!(YarnAlwaysRounded {
        fn yarn_rounded(&self, ends: [f64; 2], _: bool) -> [f64; 2] {
        Oracle.yarn_rounded(ends, true)
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-rounded-inwards",
        misconception: "rounds the ends of the ramp inwards",
        story: "ceil and floor were exchanged. The ramp is up to two planes shorter.",
        source: None,
        named_by: "frequencies/yarn-ramp",
        implementation: bug!(YarnRoundedInwards {
        fn yarn_rounded(&self, [first, last]: [f64; 2], truncate: bool) -> [f64; 2] {
        if truncate { [first.ceil(), last.floor()] } else { [first, last] }
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-ramp-of-the-paper",
        misconception: "lets the ramp fall evenly in turns, not in planes",
        story: "So the paper has it. The code that trained the models counts planes, and the two differ between the ends.",
        source: None,
        named_by: "frequencies/yarn-ramp",
        implementation: bug!(YarnRampOfThePaper {
        fn yarn_kept(&self, _: f64, _: [f64; 2], turns: f64) -> f64 {
        ((turns - 1.0) / 31.0).clamp(0.0, 1.0)
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-ramp-not-cut",
        misconception: "does not cut the ramp off at 0 and 1",
        story: "Planes before it get faster than they were, and planes behind it turn backward.",
        source: None,
        named_by: "frequencies/yarn-between",
        implementation: bug!(YarnRampNotCut {
        fn yarn_kept(&self, i: f64, [first, last]: [f64; 2], _: f64) -> f64 {
        1.0 - (i - first) / (last - first)
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-ramp-ends-in-the-head",
        misconception: "cuts the end of the ramp off at the last plane",
        story: "There are d/2 planes, and the published code cuts at d − 1. It looks like its mistake, but models were trained with it.",
        source: None,
        named_by: "frequencies/yarn-any",
        implementation: bug!(YarnRampEndsInTheHead {
        fn yarn_within(&self, [first, last]: [f64; 2], d: f64) -> [f64; 2] {
        [first.max(0.0), last.min(d / 2.0 - 1.0)]
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-scale-missing",
        misconception: "leaves the scale at 1",
        story: "Two settings of the file cancelled, or the scale was taken for an option. The model speaks fluently, and does not do what it is told.",
        source: Some("exllamav3 issue 259"),
        named_by: "frequencies/yarn-scale",
        implementation: bug!(YarnScaleMissing {
        fn yarn_scale(&self, _: f64) -> f64 {
        1.0
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-scale-squared",
        misconception: "squares the scale",
        story: "The file holds the whole scale, and it was multiplied by the scale once more.",
        source: Some("sglang pull request 33558"),
        named_by: "frequencies/yarn-scale",
        implementation: bug!(YarnScaleSquared {
        fn yarn_scale(&self, s: f64) -> f64 {
        (0.1 * s.ln() + 1.0).powi(2)
        }
        }),
    },
    Bug {
        id: "frequencies/yarn-scale-decimal",
        misconception: "takes the decimal logarithm in the scale",
        story: "log was read as log10. 1.06 for 1.14 at a factor of 4.",
        source: None,
        named_by: "frequencies/yarn-scale",
        implementation: bug!(YarnScaleDecimal {
        fn yarn_scale(&self, s: f64) -> f64 {
        0.1 * s.log10() + 1.0
        }
        }),
    },
    Bug {
        id: "frequencies/llama3-not-applied",
        misconception: "gives the plain frequencies back",
        story: "The new list was computed, and the old one was returned. Up to the trained length hardly anybody sees it.",
        source: Some("transformers pull request 32330"),
        named_by: "frequencies/llama3-three-bands",
        implementation: bug!(Llama3NotApplied {
        fn llama3(&self, theta: f64, _: f64, _: f64, _: [f64; 2]) -> f64 {
        theta
        }
        }),
    },
    Bug {
        id: "frequencies/llama3-wavelengths-for-turns",
        misconception: "compares the limits with wavelengths where turns are meant",
        story: "A long wave has a low frequency, so each comparison is the wrong way round.",
        source: None,
        named_by: "frequencies/llama3-three-bands",
        implementation: bug!(Llama3WavelengthsForTurns {
        fn llama3_turns(&self, theta: f64, ms: f64) -> f64 {
        TAU / (ms * theta)
        }
        }),
    },
    Bug {
        id: "frequencies/llama3-limits-exchanged",
        misconception: "exchanges the low and the high limit",
        story: "The slow planes stay and the fast ones are interpolated.",
        source: None,
        named_by: "frequencies/llama3-three-bands",
        implementation: bug!(Llama3LimitsExchanged {
        fn llama3_kept(&self, turns: f64, low: f64, high: f64) -> f64 {
        1.0 - Oracle.llama3_kept(turns, low, high)
        }
        }),
    },
    Bug {
        id: "frequencies/llama3-ramp-backward",
        misconception: "turns the ramp between the limits round",
        story: "smooth and 1 − smooth change places. Both ends are right, and between them the frequencies jump.",
        source: None,
        named_by: "frequencies/llama3-a-quarter",
        implementation: bug!(Llama3RampBackward {
        fn llama3_kept(&self, turns: f64, low: f64, high: f64) -> f64 {
        let kept = Oracle.llama3_kept(turns, low, high);
        if kept > 0.0 && kept < 1.0 { 1.0 - kept } else { kept }
        }
        }),
    },
    Bug {
        id: "frequencies/llama3-no-ramp",
        misconception: "leaves the planes between the limits as they are",
        story: "The first two cases were written, and the third one falls through.",
        source: None,
        named_by: "frequencies/llama3-a-quarter",
        implementation: bug!(Llama3NoRamp {
        fn llama3_kept(&self, turns: f64, low: f64, _: f64) -> f64 {
        if turns < low { 0.0 } else { 1.0 }
        }
        }),
    },
    Bug {
        id: "frequencies/llama3-ramp-not-cut",
        misconception: "does not cut the ramp off at the limits",
        story: "Three cases became one line. Planes above the high limit get faster than they were, and those below the low \
                one slower than interpolated.",
        source: None,
        named_by: "frequencies/llama3-three-bands",
        implementation: bug!(Llama3RampNotCut {
            fn llama3_kept(&self, turns: f64, low: f64, high: f64) -> f64 {
                (turns - low) / (high - low)
            }
        }),
    },
    Bug {
        id: "frequencies/llama3-divides-twice",
        misconception: "divides by the factor once more between the limits",
        story: "The list that was mixed had been divided already.",
        source: None,
        named_by: "frequencies/llama3-no-jump",
        implementation: bug!(Llama3DividesTwice {
        fn llama3(&self, theta: f64, s: f64, ms: f64, [low, high]: [f64; 2]) -> f64 {
        let kept = Oracle.llama3_kept(Oracle.llama3_turns(theta, ms), low, high);
        let between = kept > 0.0 && kept < 1.0;
        self.mix(if between { theta / s } else { theta }, s, kept)
        }
        }),
    },
    Bug {
        id: "frequencies/llama3-periods-mixed",
        misconception: "mixes wavelengths instead of frequencies",
        story: "The mean of two wavelengths is not the wavelength of the mean frequency.",
        source: None,
        named_by: "frequencies/llama3-a-quarter",
        implementation: bug!(Llama3PeriodsMixed {
        fn llama3(&self, theta: f64, s: f64, ms: f64, [low, high]: [f64; 2]) -> f64 {
        let kept = Oracle.llama3_kept(Oracle.llama3_turns(theta, ms), low, high);
        theta / (kept + s * (1.0 - kept))
        }
        }),
    },
    Bug {
        id: "frequencies/llama3-trained-at-8192",
        misconception: "counts turns over 8192 positions, whatever the trained length is",
        story: "The number stands in the first code, and all of the first models had it.",
        source: None,
        named_by: "frequencies/llama3-three-bands",
        implementation: bug!(Llama3TrainedAt8192 {
        fn llama3_length(&self, _: f64, _: f64) -> f64 {
        8192.0
        }
        }),
    },
    Bug {
        id: "frequencies/llama3-stretched-length",
        misconception: "counts turns over the stretched length",
        story: "8 · 8192 is the longest text, and not the trained one.",
        source: None,
        named_by: "frequencies/llama3-three-bands",
        implementation: bug!(Llama3StretchedLength {
        fn llama3_length(&self, ms: f64, s: f64) -> f64 {
        ms * s
        }
        }),
    },
    Bug {
        id: "frequencies/llama3-without-two-pi",
        misconception: "counts radians for turns",
        story: "The wavelength is 2π/θ, and 1/θ was taken.",
        source: None,
        named_by: "frequencies/llama3-three-bands",
        implementation: bug!(Llama3WithoutTwoPi {
        fn llama3_turns(&self, theta: f64, ms: f64) -> f64 {
        ms * theta
        }
        }),
    },
    Bug {
        id: "frequencies/turned-backward",
        misconception: "turns the other way",
        story: "A sign. Scores are the same as long as queries and keys are turned alike, so a fresh model learns; a trained one does not fit.",
        source: None,
        named_by: "frequencies/turn-first-step",
        implementation: bug!(TurnedBackward {
        fn turn(&self, [a, b]: [f64; 2], [cos, sin]: [f64; 2]) -> [f64; 2] {
        [a * cos + b * sin, b * cos - a * sin]
        }
        fn turn_back(&self, [a, b]: [f64; 2], [cos, sin]: [f64; 2]) -> [f64; 2] {
        [a * cos - b * sin, b * cos + a * sin]
        }
        fn dangle(&self, _: [f64; 2], y: [f64; 2], dy: [f64; 2]) -> f64 {
        dy[0] * y[1] - dy[1] * y[0]
        }
        }),
    },
    Bug {
        id: "frequencies/neighbours-paired",
        misconception: "pairs neighbours where halves are meant",
        story: "The other layout. Lengths and distances are kept, so that no law of them breaks.",
        source: None,
        named_by: "frequencies/turn-first-step",
        implementation: bug!(NeighboursPaired {
        fn pair(&self, i: usize, _: usize, _: usize) -> [usize; 2] {
        [2 * i, 2 * i + 1]
        }
        }),
    },
    Bug {
        id: "frequencies/pairs-of-the-head",
        misconception: "pairs an element with the one half a head further, where a part turns",
        story: "The list was filled up with zeros to the whole head. What turns is then no part of it.",
        source: Some("cascadia pull request 69"),
        named_by: "frequencies/rest-of-a-head-stays",
        implementation: bug!(PairsOfTheHead {
        fn pair(&self, i: usize, _: usize, hd: usize) -> [usize; 2] {
        [i, i + hd / 2]
        }
        }),
    },
    Bug {
        id: "frequencies/last-part-turned",
        misconception: "turns the last part of a head instead of the first",
        story: "x[-d:] for x[:d]. DeepSeek's heads are built so, and others are not.",
        source: None,
        named_by: "frequencies/rest-of-a-head-stays",
        implementation: bug!(LastPartTurned {
        fn pair(&self, i: usize, planes: usize, hd: usize) -> [usize; 2] {
        [hd - 2 * planes + i, hd - planes + i]
        }
        }),
    },
    Bug {
        id: "frequencies/rest-scaled",
        misconception: "scales what does not turn as well",
        story: "The scale was put on the whole head, after the parts had been joined again.",
        source: None,
        named_by: "frequencies/rest-of-a-head-stays",
        implementation: bug!(RestScaled {
        fn scale_behind(&self, scale: f64) -> f64 {
        scale
        }
        }),
    },
    Bug {
        id: "frequencies/rest-zeroed",
        misconception: "leaves zeros where a head does not turn",
        story: "The result was allocated, and only the part that turns was written.",
        source: None,
        named_by: "frequencies/rest-of-a-head-stays",
        implementation: bug!(RestZeroed {
        fn scale_behind(&self, _: f64) -> f64 {
        0.0
        }
        }),
    },
    Bug {
        id: "frequencies/scale-forgotten",
        misconception: "does not apply the scale",
        story: "The rule gives two things back, and the second one was dropped.",
        source: None,
        named_by: "frequencies/length-times-scale",
        implementation: bug!(ScaleForgotten {
        fn scales(&self, _: f64) -> [f64; 2] {
        [1.0, 1.0]
        }
        }),
    },
    Bug {
        id: "frequencies/scale-on-cosines",
        misconception: "scales the cosines alone",
        story: "There are two tables, and one line was forgotten. At position 0 nothing is missing.",
        source: None,
        named_by: "frequencies/length-times-scale",
        implementation: bug!(ScaleOnCosines {
        fn scales(&self, scale: f64) -> [f64; 2] {
        [scale, 1.0]
        }
        }),
    },
    Bug {
        id: "frequencies/scale-squared",
        misconception: "applies the scale twice",
        story: "Once in the tables, and once to the queries and the keys.",
        source: None,
        named_by: "frequencies/length-times-scale",
        implementation: bug!(ScaleSquared {
        fn scales(&self, scale: f64) -> [f64; 2] {
        [scale * scale, scale * scale]
        }
        }),
    },
    Bug {
        id: "frequencies/offset-forgotten",
        misconception: "begins each call at position 0",
        story: "Whole texts are right. With a cache of keys, each new token is the first one.",
        source: None,
        named_by: "frequencies/pieces-are-the-whole",
        implementation: bug!(OffsetForgotten {
        fn position(&self, _: usize, t: usize) -> f64 {
        t as f64
        }
        }),
    },
    Bug {
        id: "frequencies/positions-from-1",
        misconception: "counts positions from 1",
        story: "Distances do not change, so a fresh model learns. A trained one, whose first token is at 0, does not fit.",
        source: None,
        named_by: "frequencies/turn-first-step",
        implementation: bug!(PositionsFrom1 {
        fn position(&self, offset: usize, t: usize) -> f64 {
        (offset + t + 1) as f64
        }
        }),
    },
    Bug {
        id: "frequencies/position-cut-at-the-table",
        misconception: "takes the last row of a table of 64 for all positions behind it",
        story: "An index was cut off where an error was due.",
        source: None,
        named_by: "frequencies/scores-by-distance",
        implementation: bug!(PositionCutAtTheTable {
        fn position(&self, offset: usize, t: usize) -> f64 {
        (offset + t).min(63) as f64
        }
        }),
    },
    Bug {
        id: "frequencies/gradient-turned-forward",
        misconception: "turns the gradient as the values are turned",
        story: "A transpose was forgotten. At position 0 it is right.",
        source: None,
        named_by: "frequencies/gradient-turns-back",
        implementation: bug!(GradientTurnedForward {
        fn turn_back(&self, pair: [f64; 2], turns: [f64; 2]) -> [f64; 2] {
        self.turn(pair, turns)
        }
        }),
    },
    Bug {
        id: "frequencies/gradient-without-scale",
        misconception: "turns the gradient back without the scale",
        story: "The inverse of a turn is its transpose. With a scale it is not.",
        source: None,
        named_by: "frequencies/gradient-turns-back",
        implementation: bug!(GradientWithoutScale {
        fn scales_back(&self, _: f64) -> [f64; 2] {
        [1.0, 1.0]
        }
        }),
    },
    Bug {
        id: "frequencies/gradient-divided-by-scale",
        misconception: "divides the gradient by the scale",
        story: "The inverse was taken for the transpose.",
        source: None,
        named_by: "frequencies/gradient-turns-back",
        implementation: bug!(GradientDividedByScale {
        fn scales_back(&self, scale: f64) -> [f64; 2] {
        [1.0 / scale, 1.0 / scale]
        }
        }),
    },
    Bug {
        id: "frequencies/theta-without-position",
        misconception: "forgets the position in the gradient of a frequency",
        story: "The slope of the angle was taken for that of the frequency. Far tokens, which say most, count as near ones.",
        source: None,
        named_by: "frequencies/theta-by-hand",
        implementation: bug!(ThetaWithoutPosition {
        fn angle_per_theta(&self, _: usize, _: usize) -> f64 {
        1.0
        }
        }),
    },
    Bug {
        id: "frequencies/theta-row-for-position",
        misconception: "takes the row for the position in the gradient of a frequency",
        story: "The offset was forgotten on the way back alone.",
        source: None,
        named_by: "frequencies/theta-by-hand",
        implementation: bug!(ThetaRowForPosition {
        fn angle_per_theta(&self, _: usize, t: usize) -> f64 {
        t as f64
        }
        }),
    },
    Bug {
        id: "frequencies/theta-sign",
        misconception: "gives the gradient of a frequency the wrong sign",
        story: "The quarter turn goes one way there and the other way back. The loss rises.",
        source: None,
        named_by: "frequencies/theta-by-hand",
        implementation: bug!(ThetaSign {
        fn dangle(&self, _: [f64; 2], y: [f64; 2], dy: [f64; 2]) -> f64 {
        dy[0] * y[1] - dy[1] * y[0]
        }
        }),
    },
    Bug {
        id: "frequencies/theta-from-x",
        misconception: "takes x where the turned pair is meant",
        story: "At small angles the two are alike.",
        source: None,
        named_by: "frequencies/theta-by-hand",
        implementation: bug!(ThetaFromX {
        fn dangle(&self, x: [f64; 2], _: [f64; 2], dy: [f64; 2]) -> f64 {
        dy[1] * x[0] - dy[0] * x[1]
        }
        }),
    },
    Bug {
        id: "frequencies/theta-scaled-twice",
        misconception: "multiplies the gradient of a frequency by the scale",
        story: "The slope is made of y, and y is scaled already. Trained frequencies mostly stand without a scale, and there it is right.",
        source: None,
        named_by: "frequencies/theta-by-hand",
        implementation: bug!(ThetaScaledTwice {
        fn scale_of_theta(&self, scale: f64) -> f64 {
        scale
        }
        }),
    },
    Bug {
        id: "frequencies/theta-half-of-the-pair",
        misconception: "counts the second element of a pair alone",
        story: "The table holds each frequency twice, and the gradient of one half was taken.",
        source: None,
        named_by: "frequencies/theta-by-hand",
        implementation: bug!(ThetaHalfOfThePair {
        fn dangle(&self, _: [f64; 2], y: [f64; 2], dy: [f64; 2]) -> f64 {
        dy[1] * y[0]
        }
        }),
    },
    Bug {
        id: "frequencies/theta-of-one-head",
        misconception: "takes the gradient of the first head alone",
        story: "The table is the same for all heads, and so is its gradient, it was thought.",
        source: None,
        named_by: "frequencies/theta-adds-up",
        implementation: bug!(ThetaOfOneHead {
        fn counts(&self, [_, _, n]: [usize; 3], _: [usize; 4]) -> f64 {
        if n == 0 { 1.0 } else { 0.0 }
        }
        }),
    },
    Bug {
        id: "frequencies/theta-mean-over-the-batch",
        misconception: "takes the mean over the batch",
        story: "The loss is a mean already.",
        source: None,
        named_by: "frequencies/theta-adds-up",
        implementation: bug!(ThetaMeanOverTheBatch {
        fn counts(&self, _: [usize; 3], shape: [usize; 4]) -> f64 {
        1.0 / shape[0] as f64
        }
        }),
    },
    Bug {
        id: "frequencies/theta-mean-over-heads",
        misconception: "takes the mean over the heads",
        story: "An average was written where the sum over a broadcast axis is due.",
        source: None,
        named_by: "frequencies/theta-adds-up",
        implementation: bug!(ThetaMeanOverHeads {
        fn counts(&self, _: [usize; 3], shape: [usize; 4]) -> f64 {
        1.0 / shape[2] as f64
        }
        }),
    },
];
