//! Bugs of NTK-aware RoPE.

use crate::component::Bug;
use crate::graded_cases::BLOCK;
use crate::oracle::{Oracle, to_f16};
use crate::rope::interface::*;
use crate::rope::oracle::{Machine, RopeLoops, implementation, length_of_text, pick_rows};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

/// A bug: its name, and the steps that it writes wrong.
macro_rules! bug {
    ($name:ident { $($steps:item)* }) => {{
        struct $name;
        impl RopeLoops for $name { $($steps)* }
        || -> Box<dyn NtkAwareRope> { implementation($name) }
    }};
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

impl RopeLoops for SharedTables {
    fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
        let state = Oracle.fresh(settings)?;
        let key = (settings.head_dim, state.cached_len);
        let tables = self.0.borrow_mut().entry(key).or_insert(state.tables).clone();
        Ok(RopeState { tables, ..state })
    }
}

/// All of them.
pub static BUGS: &[Bug<dyn NtkAwareRope>] = &[
    // --- frequencies ------------------------------------------------------------------------
    Bug {
        id: "rope/no-ntk",
        misconception: "ignores the NTK ratio in the frequencies",
        story: "The ratio is stored and makes the cache longer, but the base stays. With ratio 1 \
                it is right.",
        source: None,
        named_by: "rope/ntk-slows-last-plane",
        implementation: bug!(NoNtk {
            fn ntk_base(&self, base: f64, _: f64, _: usize) -> f64 {
                base
            }
        }),
    },
    Bug {
        id: "rope/position-interpolation",
        misconception: "divides all frequencies by the ratio, which is position interpolation",
        story: "The older way to stretch RoPE. It slows the fast planes too, which is what NTK \
                was made to avoid; the last plane comes out right.",
        source: None,
        named_by: "rope/fastest-plane-first",
        implementation: bug!(Interpolation {
            fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
                Oracle.frequency(i, d, base, 1.0) / ratio
            }
        }),
    },
    Bug {
        id: "rope/base-times-ratio",
        misconception: "multiplies the base by the ratio itself, without the exponent d/(d − 2)",
        story: "For d = 128 the exponent is 1.016, so it looks like a detail. The last plane is \
                then slowed by k^((d−2)/d), not by k.",
        source: None,
        named_by: "rope/ntk-slows-last-plane",
        implementation: bug!(BaseTimesRatio {
            fn ntk_base(&self, base: f64, ratio: f64, _: usize) -> f64 {
                base * ratio
            }
        }),
    },
    Bug {
        id: "rope/ntk-exponent-on-beta",
        misconception: "applies the exponent d/(d − 2) to β, where it belongs to the base",
        story: "base' = base·k^(d/(d−2)) and β' = β·k^(2/(d−2)) are the same. The factor of one \
                was combined with the other.",
        source: None,
        named_by: "rope/ntk-slows-last-plane",
        implementation: bug!(ExponentOnBeta {
            fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
                let d = d as f64;
                (base.powf(2.0 / d) * ratio.powf(d / (d - 2.0))).powi(-(i as i32))
            }
        }),
    },
    Bug {
        id: "rope/ntk-ratio-on-beta",
        misconception: "multiplies β by the ratio itself",
        story: "c was taken to be k. Each plane is slowed k times more than the one before, the \
                last by k^(d/2−1).",
        source: None,
        named_by: "rope/ntk-slows-last-plane",
        implementation: bug!(RatioOnBeta {
            fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
                (base.powf(2.0 / d as f64) * ratio).powi(-(i as i32))
            }
        }),
    },
    Bug {
        id: "rope/ntk-exponent-inverted",
        misconception: "uses the exponent (d − 2)/d, upside down",
        story: "For d = 128 the two differ by 3 %.",
        source: None,
        named_by: "rope/ntk-slows-last-plane",
        implementation: bug!(ExponentInverted {
            fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
                base * ratio.powf((d as f64 - 2.0) / d as f64)
            }
        }),
    },
    Bug {
        id: "rope/ntk-integer-exponent",
        misconception: "divides d by d − 2 in integers, so that the exponent is 1",
        story: "Both are integers, and so is their quotient. For d = 4 it is exact.",
        source: None,
        named_by: "rope/ntk-slows-last-plane",
        implementation: bug!(IntegerExponent {
            fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
                base * ratio.powi((d / (d - 2)) as i32)
            }
        }),
    },
    Bug {
        id: "rope/ntk-twice",
        misconception: "applies the NTK ratio twice",
        story: "Once where the base is scaled and once where the frequencies are made of it.",
        source: None,
        named_by: "rope/ntk-slows-last-plane",
        implementation: bug!(NtkTwice {
            fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
                Oracle.ntk_base(Oracle.ntk_base(base, ratio, d), ratio, d)
            }
        }),
    },
    Bug {
        id: "rope/ntk-ratio-floored",
        misconception: "cuts the fraction off the ratio",
        story: "A cast to an integer, since ratios of modules are whole numbers. NTK has no need \
                of that.",
        source: None,
        named_by: "rope/ntk-slows-last-plane",
        implementation: bug!(RatioFloored {
            fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
                Oracle.ntk_base(base, ratio.floor(), d)
            }
        }),
    },
    Bug {
        id: "rope/ntk-from-two",
        misconception: "applies no NTK below ratio 2",
        story: "A guard against rounding: the ratio was thought to be 1 or an even number.",
        source: None,
        named_by: "rope/ntk-slows-last-plane",
        implementation: bug!(NtkFromTwo {
            fn ntk_base(&self, base: f64, ratio: f64, d: usize) -> f64 {
                if ratio < 2.0 { base } else { Oracle.ntk_base(base, ratio, d) }
            }
        }),
    },
    Bug {
        id: "rope/ntk-last-plane-only",
        misconception: "slows the last plane and no other",
        story: "Written to satisfy the one number that everybody quotes. NTK spreads the slowing \
                over all planes.",
        source: None,
        named_by: "rope/ntk-constant-quotient",
        implementation: bug!(LastPlaneOnly {
            fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
                let plain = Oracle.frequency(i, d, base, 1.0);
                if i + 1 == d / 2 { plain / ratio } else { plain }
            }
        }),
    },
    Bug {
        id: "rope/ntk-spread-linearly",
        misconception: "spreads the slowing over the planes linearly, from 1 to k",
        story: "Both ends are right. In between the slowing must grow by a constant factor, not \
                by a constant step.",
        source: None,
        named_by: "rope/ntk-constant-quotient",
        implementation: bug!(SpreadLinearly {
            fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
                let share = i as f64 / (d as f64 / 2.0 - 1.0);
                Oracle.frequency(i, d, base, 1.0) / (1.0 + (ratio - 1.0) * share)
            }
        }),
    },
    Bug {
        id: "rope/i-not-2i",
        misconception: "uses i/d in the exponent where 2i/d belongs",
        story: "The paper counts planes, PyTorch code counts dimensions in steps of 2, and one \
                was read as the other.",
        source: None,
        named_by: "rope/plain-frequencies",
        implementation: bug!(HalfExponent {
            fn exponent(&self, i: usize, d: usize) -> f64 {
                i as f64 / d as f64
            }
        }),
    },
    Bug {
        id: "rope/exponent-over-half",
        misconception: "divides 2i by d/2, not by d",
        story: "The frequencies were made from the number of planes, which was taken for d.",
        source: None,
        named_by: "rope/plain-frequencies",
        implementation: bug!(OverHalf {
            fn exponent(&self, i: usize, d: usize) -> f64 {
                2.0 * i as f64 / (d as f64 / 2.0)
            }
        }),
    },
    Bug {
        id: "rope/exponent-to-the-end",
        misconception: "lets the last plane reach 1/base exactly",
        story: "An even spacing from 0 to 1 with both ends. The right exponents stop one step \
                short, at (d − 2)/d.",
        source: None,
        named_by: "rope/plain-frequencies",
        implementation: bug!(ToTheEnd {
            fn exponent(&self, i: usize, d: usize) -> f64 {
                2.0 * i as f64 / (d as f64 - 2.0)
            }
        }),
    },
    Bug {
        id: "rope/exponent-from-one",
        misconception: "starts the exponents at i = 1, so that plane 0 is slowed already",
        story: "The paper writes base^(−2(i−1)/d) with i from 1. The minus one was dropped and \
                the 1 was kept.",
        source: None,
        named_by: "rope/fastest-plane-first",
        implementation: bug!(FromOne {
            fn exponent(&self, i: usize, d: usize) -> f64 {
                2.0 * (i + 1) as f64 / d as f64
            }
        }),
    },
    Bug {
        id: "rope/slowest-first",
        misconception: "orders the frequencies from the slowest to the fastest",
        story: "\"θ_0 is the low frequency\", says many a tutorial. It is the fastest.",
        source: None,
        named_by: "rope/fastest-plane-first",
        implementation: bug!(SlowestFirst {
            fn frequencies(&self, d: usize, base: f64, ratio: f64) -> Vec<f64> {
                (0..d / 2).rev().map(|i| self.frequency(i, d, base, ratio)).collect()
            }
        }),
    },
    Bug {
        id: "rope/wavelengths",
        misconception: "forgets the minus in the exponent, so that frequencies grow",
        story: "base^(2i/d) is what a position is divided by. Here it multiplies.",
        source: None,
        named_by: "rope/fastest-plane-first",
        implementation: bug!(Wavelengths {
            fn exponent(&self, i: usize, d: usize) -> f64 {
                -2.0 * i as f64 / d as f64
            }
        }),
    },
    Bug {
        id: "rope/base-fixed",
        misconception: "uses base 10,000 whatever base it is given",
        story: "The setting is stored, printed, and never read.",
        source: None,
        named_by: "rope/plain-frequencies",
        implementation: bug!(BaseFixed {
            fn ntk_base(&self, _: f64, ratio: f64, d: usize) -> f64 {
                Oracle.ntk_base(10_000.0, ratio, d)
            }
        }),
    },
    Bug {
        id: "rope/frequency-floor",
        misconception: "never lets a frequency fall below 10⁻⁴",
        story: "A floor against planes that hardly turn. With base 10,000 no plane reaches it, \
                with larger bases and NTK many do.",
        source: None,
        named_by: "rope/frequencies-f64-loops",
        implementation: bug!(FrequencyFloor {
            fn frequency(&self, i: usize, d: usize, base: f64, ratio: f64) -> f64 {
                Oracle.frequency(i, d, base, ratio).max(1e-4)
            }
        }),
    },
    Bug {
        id: "rope/odd-head-size",
        misconception: "accepts an odd head size and drops the last dimension",
        story: "Integer division, and one dimension never turns.",
        source: None,
        named_by: "rope/frequencies-refuse",
        implementation: bug!(OddHead {
            fn check_head(&self, d: usize) -> Reply<()> {
                Oracle.check_head(d - d % 2)
            }
        }),
    },
    Bug {
        id: "rope/head-size-two",
        misconception: "accepts head size 2, for which the NTK exponent d/(d − 2) is infinite",
        story: "2 is even, and plain RoPE works with it. NTK gives a base of infinity.",
        source: None,
        named_by: "rope/frequencies-refuse",
        implementation: bug!(HeadTwo {
            fn check_head(&self, d: usize) -> Reply<()> {
                if d == 2 { Ok(()) } else { Oracle.check_head(d) }
            }
        }),
    },
    Bug {
        id: "rope/any-base",
        misconception: "accepts any base, also 1, negative ones and infinity",
        story: "Nobody passes them on purpose. A base read from a broken file is 0, and all \
                frequencies are NaN then.",
        source: None,
        named_by: "rope/frequencies-refuse",
        implementation: bug!(AnyBase {
            fn check_base(&self, _: f64) -> Reply<()> {
                Ok(())
            }
        }),
    },
    Bug {
        id: "rope/any-ratio",
        misconception: "accepts ratios below 1",
        story: "The module checks its own, so the function was left open. A ratio of 0 makes every \
                frequency but the first infinite.",
        source: None,
        named_by: "rope/frequencies-refuse",
        implementation: bug!(AnyRatio {
            fn check_ratio(&self, _: f64) -> Reply<()> {
                Ok(())
            }
            fn check_settings(&self, settings: &RopeSettings) -> Reply<()> {
                Oracle.check_settings(settings)
            }
        }),
    },
    // --- tables -----------------------------------------------------------------------------
    Bug {
        id: "rope/degrees",
        misconception: "takes the angles for degrees",
        story: "Calculators and some languages do. At position 0 it is right.",
        source: None,
        named_by: "rope/tables-position-one",
        implementation: bug!(Degrees {
            fn cos_sin(&self, angle: f64) -> (f64, f64) {
                Oracle.cos_sin(angle.to_radians())
            }
        }),
    },
    Bug {
        id: "rope/full-turns",
        misconception: "multiplies the angles by 2π",
        story: "A frequency is turns per second in physics. θ is radians per position.",
        source: None,
        named_by: "rope/tables-position-one",
        implementation: bug!(FullTurns {
            fn angle(&self, position: usize, theta: f64) -> f64 {
                std::f64::consts::TAU * position as f64 * theta
            }
        }),
    },
    Bug {
        id: "rope/cos-sin-swapped",
        misconception: "has cosine and sine swapped",
        story: "Many functions return sin first.",
        source: None,
        named_by: "rope/tables-position-zero",
        implementation: bug!(CosSinSwapped {
            fn cos_sin(&self, angle: f64) -> (f64, f64) {
                (angle.sin(), angle.cos())
            }
        }),
    },
    Bug {
        id: "rope/positions-from-one",
        misconception: "counts positions from 1",
        story: "Inner products of a query and a key do not change at all, so the model works; \
                the values differ from everybody else's.",
        source: None,
        named_by: "rope/tables-position-zero",
        implementation: bug!(FromPositionOne {
            fn angle(&self, position: usize, theta: f64) -> f64 {
                (position + 1) as f64 * theta
            }
        }),
    },
    Bug {
        id: "rope/negative-angles",
        misconception: "builds the table for negative angles",
        story: "The rotation turns the wrong way. Queries and keys do so together, and attention \
                scores keep their distances with the sign changed.",
        source: None,
        named_by: "rope/tables-position-one",
        implementation: bug!(NegativeAngles {
            fn angle(&self, position: usize, theta: f64) -> f64 {
                -(position as f64 * theta)
            }
        }),
    },
    Bug {
        id: "rope/repeated-side-by-side",
        misconception: "repeats each frequency side by side, (t0, t0, t1, t1), in a half-split \
                        table",
        story: "Repeat-interleave where a concatenation belongs. That is the table of the other \
                layout.",
        source: None,
        named_by: "rope/tables-equal-halves",
        implementation: bug!(SideBySide {
            fn plane(&self, j: usize, _: usize) -> usize {
                j / 2
            }
        }),
    },
    Bug {
        id: "rope/mirrored-half",
        misconception: "mirrors the second half of each row",
        story: "The pairs were thought of as (0, d − 1), (1, d − 2), and so on.",
        source: None,
        named_by: "rope/tables-equal-halves",
        implementation: bug!(MirroredHalf {
            fn plane(&self, j: usize, d: usize) -> usize {
                if j < d / 2 { j } else { d - 1 - j }
            }
        }),
    },
    Bug {
        id: "rope/tables-from-zero",
        misconception: "starts every table at position 0",
        story: "The start of the range was used for the number of rows only. In prefill it is 0.",
        source: None,
        named_by: "rope/tables-rows",
        implementation: bug!(FromZero {
            fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
                Oracle.tables(d, base, ratio, 0..positions.len())
            }
        }),
    },
    Bug {
        id: "rope/tables-end-inclusive",
        misconception: "builds one row too many, for the end of the range too",
        story: "A range that includes its end. The rows that exist are right.",
        source: None,
        named_by: "rope/tables-rows",
        implementation: bug!(EndInclusive {
            fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
                Oracle.tables(d, base, ratio, positions.start..positions.end.saturating_add(1))
            }
        }),
    },
    Bug {
        id: "rope/positions-in-f16",
        misconception: "counts positions in f16, which has no odd numbers above 2048",
        story: "The positions were cast to the model's type with everything else. Above 2048 \
                neighbours share a position.",
        source: Some("candle PR #3520; transformers PR #29285"),
        named_by: "rope/tables-precision",
        implementation: bug!(PositionsF16 {
            fn angle(&self, position: usize, theta: f64) -> f64 {
                f64::from(to_f16(position as f64)) * theta
            }
        }),
    },
    Bug {
        id: "rope/positions-in-bf16",
        misconception: "counts positions in bf16, which has no odd numbers above 256",
        story: "bf16 has eight bits of precision. Models trained in it hide the loss, other code \
                shows it.",
        source: Some("candle PR #3520; transformers PR #29285"),
        named_by: "rope/tables-precision",
        implementation: bug!(PositionsBf16 {
            fn angle(&self, position: usize, theta: f64) -> f64 {
                to_bf16(position as f64) * theta
            }
        }),
    },
    Bug {
        id: "rope/frequencies-in-f16",
        misconception: "rounds the frequencies to f16 before it multiplies by the position",
        story: "They are a buffer of the module, and the module was cast. The error grows with \
                the position.",
        source: Some("candle PR #3520; transformers PR #29285"),
        named_by: "rope/tables-precision",
        implementation: bug!(FrequenciesF16 {
            fn angle(&self, position: usize, theta: f64) -> f64 {
                position as f64 * f64::from(to_f16(theta))
            }
        }),
    },
    Bug {
        id: "rope/angles-in-f16",
        misconception: "rounds the angles to f16",
        story: "Autocast ran the product of positions and frequencies in half precision.",
        source: None,
        named_by: "rope/tables-precision",
        implementation: bug!(AnglesF16 {
            fn angle(&self, position: usize, theta: f64) -> f64 {
                f64::from(to_f16(position as f64 * theta))
            }
        }),
    },
    Bug {
        id: "rope/positions-in-16-bits",
        misconception: "counts positions in 16 bits, so that 65,536 is 0 again",
        story: "No model was longer than that when it was written.",
        source: None,
        named_by: "rope/tables-precision",
        implementation: bug!(Positions16Bits {
            fn angle(&self, position: usize, theta: f64) -> f64 {
                f64::from(position as u16) * theta
            }
        }),
    },
    Bug {
        id: "rope/short-pi",
        misconception: "reduces the angles by 6.2832, a 2π with five digits",
        story: "A range reduction by hand. Each full turn adds an error of 1.5e-5.",
        source: None,
        named_by: "rope/tables-precision",
        implementation: bug!(ShortPi {
            fn cos_sin(&self, angle: f64) -> (f64, f64) {
                Oracle.cos_sin(angle % (62_832.0 / 10_000.0))
            }
        }),
    },
    Bug {
        id: "rope/tables-in-f16",
        misconception: "rounds cosines and sines to f16",
        story: "The cache was stored in the model's type. Lengths change by one part in 2000.",
        source: None,
        named_by: "rope/tables-on-circle",
        implementation: bug!(TablesF16 {
            fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
                tables_to_f16(Oracle.tables(d, base, ratio, positions))
            }
        }),
    },
    Bug {
        id: "rope/attention-factor",
        misconception: "scales the tables by 0.1·ln(ratio) + 1",
        story: "YaRN's attention factor, which belongs to YaRN. With ratio 1 it is 1.",
        source: None,
        named_by: "rope/tables-on-circle",
        implementation: bug!(AttentionFactor {
            fn tables(&self, d: usize, base: f64, ratio: f64, positions: Range<usize>) -> Tables {
                let factor = (0.1 * ratio.ln() + 1.0) as f32;
                let Tables { mut cos, mut sin } = Oracle.tables(d, base, ratio, positions);
                cos.iter_mut().chain(&mut sin).for_each(|value| *value *= factor);
                Tables { cos, sin }
            }
        }),
    },
    Bug {
        id: "rope/tables-ignore-ratio",
        misconception: "builds tables from the plain frequencies, whatever the ratio",
        story: "There is a right function for the frequencies. The tables call another one.",
        source: None,
        named_by: "rope/tables-f64-loops",
        implementation: bug!(TablesIgnoreRatio {
            fn tables(&self, d: usize, base: f64, _: f64, positions: Range<usize>) -> Tables {
                Oracle.tables(d, base, 1.0, positions)
            }
        }),
    },
    Bug {
        id: "rope/position-clamped",
        misconception: "stops counting at position 4096",
        story: "The longest length of one model, as a constant in the code.",
        source: None,
        named_by: "rope/tables-precision",
        implementation: bug!(PositionClamped {
            fn angle(&self, position: usize, theta: f64) -> f64 {
                position.min(4096) as f64 * theta
            }
        }),
    },
    // --- rotation ---------------------------------------------------------------------------
    Bug {
        id: "rope/adjacent-pairs",
        misconception: "turns adjacent dimensions together in the half-split layout",
        story: "The paper and GPT-J pair neighbours, Llama and GPT-NeoX pair halves. The most \
                common mix-up of all: shapes agree, weights do not.",
        source: None,
        named_by: "rope/rotate-unit-vector",
        implementation: bug!(AdjacentPairs {
            fn pair(&self, _: Layout, i: usize, d: usize) -> [usize; 2] {
                Oracle.pair(Layout::Interleaved, i, d)
            }
        }),
    },
    Bug {
        id: "rope/layout-ignored",
        misconception: "turns halves together in the interleaved layout",
        story: "The layout was accepted and not used.",
        source: None,
        named_by: "rope/rotate-interleaved",
        implementation: bug!(LayoutIgnored {
            fn pair(&self, _: Layout, i: usize, d: usize) -> [usize; 2] {
                Oracle.pair(Layout::HalfSplit, i, d)
            }
        }),
    },
    Bug {
        id: "rope/mirrored-pairs",
        misconception: "pairs the first dimension with the last, the second with the last but one",
        story: "A fold instead of a cut. Each plane still has two dimensions.",
        source: None,
        named_by: "rope/rotate-unit-vector",
        implementation: bug!(MirroredPairs {
            fn pair(&self, layout: Layout, i: usize, d: usize) -> [usize; 2] {
                match layout {
                    Layout::HalfSplit => [i, d - 1 - i],
                    Layout::Interleaved => Oracle.pair(layout, i, d),
                }
            }
        }),
    },
    Bug {
        id: "rope/sign-flipped",
        misconception: "turns the other way: the minus stands on the second half",
        story: "rotate_half as (x2, −x1). All lengths are kept, and the relative property too.",
        source: None,
        named_by: "rope/rotate-unit-vector",
        implementation: bug!(SignFlipped {
            fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                Oracle.turn(x, cos, sin.map(|s| -s))
            }
            fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                Oracle.turn_back(dy, cos, sin.map(|s| -s))
            }
        }),
    },
    Bug {
        id: "rope/both-plus",
        misconception: "has no minus: both sines are added",
        story: "rotate_half as (x2, x1), a swap. It stretches where it should turn.",
        source: None,
        named_by: "rope/rotate-keeps-lengths",
        implementation: bug!(BothPlus {
            fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                [x[0] * cos[0] + x[1] * sin[0], x[1] * cos[1] + x[0] * sin[1]]
            }
        }),
    },
    Bug {
        id: "rope/half-left",
        misconception: "turns the first half and leaves the second as it is",
        story: "The second assignment is missing.",
        source: None,
        named_by: "rope/rotate-keeps-lengths",
        implementation: bug!(HalfLeft {
            fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                [Oracle.turn(x, cos, sin)[0], x[1]]
            }
        }),
    },
    Bug {
        id: "rope/in-place",
        misconception: "computes the second half from the first half that is already turned",
        story: "In place, line by line. The old value was needed once more.",
        source: None,
        named_by: "rope/rotate-keeps-lengths",
        implementation: bug!(InPlace {
            fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                let first = Oracle.turn(x, cos, sin)[0];
                [first, x[1] * cos[1] + first * sin[1]]
            }
        }),
    },
    Bug {
        id: "rope/no-swap",
        misconception: "changes signs but does not swap the halves",
        story: "rotate_half as (−x1, x2): the concatenation has its parts in the old order.",
        source: None,
        named_by: "rope/rotate-keeps-lengths",
        implementation: bug!(NoSwap {
            fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                [x[0] * cos[0] - x[0] * sin[0], x[1] * cos[1] + x[1] * sin[1]]
            }
        }),
    },
    Bug {
        id: "rope/one-part-twice",
        misconception: "writes the imaginary part of the complex product into both halves",
        story: "q1·cos + q0·sin for both parts, as a tutorial has it; the concatenation of one \
                tensor with itself.",
        source: None,
        named_by: "rope/rotate-keeps-lengths",
        implementation: bug!(OnePartTwice {
            fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                [Oracle.turn(x, cos, sin)[1]; 2]
            }
        }),
    },
    Bug {
        id: "rope/cosine-only",
        misconception: "multiplies by the cosine and forgets the sine",
        story: "The second term was lost. At position 0 it is right.",
        source: None,
        named_by: "rope/rotate-keeps-lengths",
        implementation: bug!(CosineOnly {
            fn turn(&self, x: [f64; 2], cos: [f64; 2], _: [f64; 2]) -> [f64; 2] {
                [x[0] * cos[0], x[1] * cos[1]]
            }
        }),
    },
    Bug {
        id: "rope/partial",
        misconception: "turns the first half of the planes only",
        story: "Partial rotary embedding, as some models have it by a setting. This one has none.",
        source: None,
        named_by: "rope/rotate-unit-vector",
        implementation: bug!(Partial {
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
        }),
    },
    Bug {
        id: "rope/scaled",
        misconception: "divides by √d as well, which is attention's task",
        story: "The scale of the scores was moved into the queries, and came back here.",
        source: None,
        named_by: "rope/rotate-position-zero",
        implementation: bug!(Scaled {
            fn rotate(&self, case: &RotateCase) -> Vec<f64> {
                let root = (case.shape[3] as f64).sqrt();
                Oracle.rotate(case).into_iter().map(|y| y / root).collect()
            }
        }),
    },
    Bug {
        id: "rope/renormalized",
        misconception: "divides cosine and sine by their length before the turn",
        story: "A guard for tables that are not on the circle. True tables hide it; the rotation \
                is no longer what its tables say.",
        source: None,
        named_by: "rope/rotate-f64-loops",
        implementation: bug!(Renormalized {
            fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                let length = cos[0].hypot(sin[0]).max(1e-9);
                Oracle.turn(x, cos.map(|c| c / length), sin.map(|s| s / length))
            }
        }),
    },
    Bug {
        id: "rope/added",
        misconception: "adds cosine and sine to x instead of turning x by them",
        story: "That is the sinusoidal position embedding of the first Transformer.",
        source: None,
        named_by: "rope/rotate-linear",
        implementation: bug!(Added {
            fn turn(&self, x: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                [x[0] + sin[0], x[1] + cos[1]]
            }
        }),
    },
    Bug {
        id: "rope/clamped",
        misconception: "clamps the result to ±4",
        story: "A guard against overflow, from a quantized model.",
        source: None,
        named_by: "rope/rotate-linear",
        implementation: bug!(Clamped {
            fn rotate(&self, case: &RotateCase) -> Vec<f64> {
                Oracle.rotate(case).into_iter().map(|y| y.clamp(-4.0, 4.0)).collect()
            }
        }),
    },
    Bug {
        id: "rope/turned-in-f16",
        misconception: "computes the turn in f16",
        story: "The tables were cast to the model's type before the product. Three digits are \
                left.",
        source: None,
        named_by: "rope/rotate-composes",
        implementation: bug!(TurnedInF16 {
            fn rotate(&self, case: &RotateCase) -> Vec<f64> {
                let tables = tables_to_f16(case.tables.clone());
                Oracle.rotate(&RotateCase { tables, ..case.clone() })
            }
        }),
    },
    Bug {
        id: "rope/position-per-batch-row",
        misconception: "lets the position count on with each batch row",
        story: "Rows of a batch were packed one after the other. With one batch row it is right.",
        source: None,
        named_by: "rope/rotate-same-for-all",
        implementation: bug!(PerBatchRow {
            fn table_row(&self, [b, t, _]: [usize; 3], shape: &[usize; 4]) -> usize {
                (b + t) % shape[1]
            }
        }),
    },
    Bug {
        id: "rope/heads-are-positions",
        misconception: "takes the head for the position",
        story: "The tensor was [b, nh, s, hd] in the code that this came from. With one head and \
                one token nobody sees it.",
        source: None,
        named_by: "rope/rotate-same-for-all",
        implementation: bug!(HeadsArePositions {
            fn table_row(&self, [_, _, n]: [usize; 3], shape: &[usize; 4]) -> usize {
                n % shape[1]
            }
        }),
    },
    Bug {
        id: "rope/first-row-for-all",
        misconception: "turns every row by the first row of the tables",
        story: "A broadcast along the wrong axis. Decoding one token at a time is right.",
        source: None,
        named_by: "rope/rotate-unit-vector",
        implementation: bug!(FirstRowForAll {
            fn table_row(&self, _: [usize; 3], _: &[usize; 4]) -> usize {
                0
            }
        }),
    },
    Bug {
        id: "rope/rows-reversed",
        misconception: "takes the rows of the tables in reverse",
        story: "Distances between tokens keep their size and change their sign.",
        source: None,
        named_by: "rope/rotate-unit-vector",
        implementation: bug!(RowsReversed {
            fn table_row(&self, [_, t, _]: [usize; 3], shape: &[usize; 4]) -> usize {
                shape[1] - 1 - t
            }
        }),
    },
    Bug {
        id: "rope/whole-matrix",
        misconception: "multiplies by the whole rotation matrix, its zeros included",
        story: "The matrix of the paper, written out. Besides the waste, 0 · NaN is NaN: one \
                plane spoils its whole head.",
        source: None,
        named_by: "rope/rotate-planes-apart",
        implementation: bug!(WholeMatrix {
            fn rotate(&self, case: &RotateCase) -> Vec<f64> {
                let mut y = Oracle.rotate(case);
                for (y, x) in y.chunks_mut(case.shape[3]).zip(case.x.chunks(case.shape[3])) {
                    let zeros: f64 = x.iter().map(|&x| 0.0 * f64::from(x)).sum();
                    y.iter_mut().for_each(|y| *y += zeros);
                }
                y
            }
        }),
    },
    Bug {
        id: "rope/longer-tables",
        misconception: "accepts tables with more rows than x and uses the first ones",
        story: "The whole cache was passed without a slice. With an offset, the rows are those \
                of the start.",
        source: None,
        named_by: "rope/rotate-table-shape",
        implementation: bug!(LongerTables {
            fn check_rotate(&self, case: &RotateCase) -> Reply<()> {
                let [_, s, _, d] = case.shape;
                let rows = |table: &[f32]| table[..table.len().min(s.saturating_mul(d))].to_vec();
                let tables =
                    Tables { cos: rows(&case.tables.cos), sin: rows(&case.tables.sin) };
                Oracle.check_rotate(&RotateCase { tables, ..case.clone() })
            }
        }),
    },
    Bug {
        id: "rope/broadcast-tables",
        misconception: "accepts tables with a single row and turns all rows by it",
        story: "Broadcasting does that without a word, in many libraries.",
        source: None,
        named_by: "rope/rotate-table-shape",
        implementation: bug!(BroadcastTables {
            fn check_rotate(&self, case: &RotateCase) -> Reply<()> {
                Oracle.check_rotate(&broadcast(case))
            }
            fn rotate(&self, case: &RotateCase) -> Vec<f64> {
                Oracle.rotate(&broadcast(case))
            }
            fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
                Oracle.rotate_backward(&broadcast(case), dy)
            }
        }),
    },
    // --- layouts ----------------------------------------------------------------------------
    Bug {
        id: "rope/interleave-wrong-way",
        misconception: "splits where it should interleave, and interleaves where it should split",
        story: "The two undo each other either way round, so a round trip passes. For d = 4 they \
                are even the same.",
        source: None,
        named_by: "rope/interleaved-order",
        implementation: bug!(WrongWay {
            fn to_interleaved(&self, d: usize, x: &[f32]) -> Vec<f32> {
                Oracle.to_half_split(d, x)
            }
            fn to_half_split(&self, d: usize, x: &[f32]) -> Vec<f32> {
                Oracle.to_interleaved(d, x)
            }
        }),
    },
    Bug {
        id: "rope/interleave-both-ways",
        misconception: "interleaves in both directions",
        story: "One function for both, because the reordering was thought to be its own inverse. \
                For d = 4 it is.",
        source: None,
        named_by: "rope/half-split-order",
        implementation: bug!(BothWays {
            fn to_half_split(&self, d: usize, x: &[f32]) -> Vec<f32> {
                Oracle.to_interleaved(d, x)
            }
        }),
    },
    Bug {
        id: "rope/interleave-second-first",
        misconception: "puts the second half's value first in each pair",
        story: "The two parts of a stack were given in the wrong order. Every plane turns the \
                other way then.",
        source: None,
        named_by: "rope/interleaved-order",
        implementation: bug!(SecondFirst {
            fn half_split_place(&self, j: usize, d: usize) -> usize {
                Oracle.half_split_place(j ^ 1, d)
            }
        }),
    },
    Bug {
        id: "rope/interleave-across-heads",
        misconception: "interleaves the whole tensor, not each head",
        story: "A reshape without the head axis. With one head it is right.",
        source: None,
        named_by: "rope/interleaved-order",
        implementation: bug!(AcrossHeads {
            fn to_interleaved(&self, _: usize, x: &[f32]) -> Vec<f32> {
                Oracle.to_interleaved(x.len().max(2), x)
            }
        }),
    },
    Bug {
        id: "rope/split-nothing",
        misconception: "returns its input from to_half_split",
        story: "A reshape to pairs and back, with the transpose forgotten in between.",
        source: None,
        named_by: "rope/half-split-order",
        implementation: bug!(SplitNothing {
            fn to_half_split(&self, _: usize, x: &[f32]) -> Vec<f32> {
                x.to_vec()
            }
        }),
    },
    Bug {
        id: "rope/split-first-head",
        misconception: "splits the first head and leaves the others interleaved",
        story: "An index was left at 0.",
        source: None,
        named_by: "rope/half-split-order",
        implementation: bug!(SplitFirstHead {
            fn to_half_split(&self, d: usize, x: &[f32]) -> Vec<f32> {
                let (first, rest) = x.split_at(d.min(x.len()));
                [Oracle.to_half_split(d, first), rest.to_vec()].concat()
            }
        }),
    },
    // --- gradient ---------------------------------------------------------------------------
    Bug {
        id: "rope/gradient-turned-forward",
        misconception: "turns the gradient by +m, not by −m",
        story: "The backward pass called the forward pass. Lengths are right, and training still \
                lowers the loss.",
        source: None,
        named_by: "rope/gradient-turns-back",
        implementation: bug!(TurnedForward {
            fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                Oracle.turn(dy, cos, sin)
            }
        }),
    },
    Bug {
        id: "rope/gradient-without-sine",
        misconception: "forgets the sine in the gradient",
        story: "rotate_half ran on data without a tape, so that only x · cos has a gradient.",
        source: None,
        named_by: "rope/gradient-keeps-lengths",
        implementation: bug!(WithoutSine {
            fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], _: [f64; 2]) -> [f64; 2] {
                [dy[0] * cos[0], dy[1] * cos[1]]
            }
        }),
    },
    Bug {
        id: "rope/gradient-slice-overwrites",
        misconception: "keeps only the part of the gradient that goes through rotate_half",
        story: "dfdx's `slice` WRITES its gradient over what is there, where it should add. So a tensor that is \
                sliced and used once more loses a part, silently. Exchange the halves with `roll`, or take \
                everything from the slices: each part sliced once, and the whole not used again.",
        source: Some("dfdx 0.13.0, src/tensor_ops/slice/cpu_kernel.rs"),
        named_by: "rope/gradient-keeps-lengths",
        implementation: bug!(SliceOverwrites {
            fn turn_back(&self, dy: [f64; 2], _: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                Oracle.turn_back(dy, [0.0, 0.0], sin)
            }
        }),
    },
    Bug {
        id: "rope/gradient-first-half",
        misconception: "gives the first half its gradient and the second half zeros",
        story: "A slice whose other part was never added.",
        source: None,
        named_by: "rope/gradient-keeps-lengths",
        implementation: bug!(FirstHalf {
            fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                [Oracle.turn_back(dy, cos, sin)[0], 0.0]
            }
        }),
    },
    Bug {
        id: "rope/no-gradient",
        misconception: "sends no gradient through the rotation",
        story: "The result was made from data without a tape. Queries and keys stop learning, \
                values go on.",
        source: None,
        named_by: "rope/gradient-keeps-lengths",
        implementation: bug!(NoGradient {
            fn turn_back(&self, _: [f64; 2], _: [f64; 2], _: [f64; 2]) -> [f64; 2] {
                [0.0, 0.0]
            }
        }),
    },
    Bug {
        id: "rope/gradient-unturned",
        misconception: "passes the gradient on as it is",
        story: "A straight-through gradient. Its length is right.",
        source: None,
        named_by: "rope/gradient-turns-back",
        implementation: bug!(Unturned {
            fn turn_back(&self, dy: [f64; 2], _: [f64; 2], _: [f64; 2]) -> [f64; 2] {
                dy
            }
        }),
    },
    Bug {
        id: "rope/gradient-inverse",
        misconception: "uses the inverse in the gradient, where the transpose belongs",
        story: "For true tables the two are the same. Scaled tables, as some models have them, \
                tell.",
        source: None,
        named_by: "rope/gradient-adjoint",
        implementation: bug!(Inverse {
            fn turn_back(&self, dy: [f64; 2], cos: [f64; 2], sin: [f64; 2]) -> [f64; 2] {
                let square = (cos[0] * cos[0] + sin[0] * sin[0]).max(1e-12);
                Oracle.turn_back(dy, cos, sin).map(|dx| dx / square)
            }
        }),
    },
    Bug {
        id: "rope/gradient-half-split-only",
        misconception: "sends the gradient to half-split pairs in the interleaved layout too",
        story: "The second layout got a forward pass of its own and shared the backward pass.",
        source: None,
        named_by: "rope/gradient-turns-back",
        implementation: bug!(HalfSplitOnly {
            fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
                let layout = Layout::HalfSplit;
                Oracle.rotate_backward(&RotateCase { layout, ..case.clone() }, dy)
            }
        }),
    },
    Bug {
        id: "rope/gradient-of-one-head",
        misconception: "gives every head the gradient of the first",
        story: "The broadcast over heads was undone by taking one of them.",
        source: None,
        named_by: "rope/gradient-f64-loops",
        implementation: bug!(OneHead {
            fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
                let [_, _, nh, d] = case.shape;
                let dx = Oracle.rotate_backward(case, dy);
                (0..dx.len()).map(|i| dx[i - i % (nh * d) + i % d]).collect()
            }
        }),
    },
    Bug {
        id: "rope/gradient-clipped",
        misconception: "clips the gradient to ±2",
        story: "Clipping belongs to the optimizer, on the norm of all gradients.",
        source: None,
        named_by: "rope/gradient-f64-loops",
        implementation: bug!(Clipped {
            fn rotate_backward(&self, case: &RotateCase, dy: &[f32]) -> Vec<f64> {
                let dx = Oracle.rotate_backward(case, dy);
                dx.into_iter().map(|dx| dx.clamp(-2.0, 2.0)).collect()
            }
        }),
    },
    // --- ratio_for_length -------------------------------------------------------------------
    Bug {
        id: "rope/long-ratio-odd",
        misconception: "takes the smallest ratio that is large enough, even or odd",
        story: "⌈L / ms⌉ is the formula from memory. It agrees for every second multiple.",
        source: None,
        named_by: "rope/long-ratio-edges",
        implementation: bug!(RatioOdd {
            fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
                Some(length.div_ceil(max_seq_len))
            }
        }),
    },
    Bug {
        id: "rope/long-ratio-floor-plus-one",
        misconception: "goes one step too far at exact multiples: floor plus one is no ceiling",
        story: "2·(L / (2·ms) + 1) in integers. Only the edges differ.",
        source: None,
        named_by: "rope/long-ratio-edges",
        implementation: bug!(FloorPlusOne {
            fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
                (length / max_seq_len.saturating_mul(2)).checked_add(1)?.checked_mul(2)
            }
        }),
    },
    Bug {
        id: "rope/long-ratio-floor",
        misconception: "rounds the ratio down, so that the longest positions do not fit",
        story: "Integer division without a ceiling, and at least 2.",
        source: None,
        named_by: "rope/long-ratio-edges",
        implementation: bug!(RatioFloor {
            fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
                (length / max_seq_len.saturating_mul(2)).max(1).checked_mul(2)
            }
        }),
    },
    Bug {
        id: "rope/long-ratio-power-of-two",
        misconception: "takes the next power of 2",
        story: "Even, large enough, and the same up to 4. From 5 on it is not minimal.",
        source: None,
        named_by: "rope/long-ratio-edges",
        implementation: bug!(PowerOfTwo {
            fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
                length.div_ceil(max_seq_len).max(2).checked_next_power_of_two()
            }
        }),
    },
    Bug {
        id: "rope/long-ratio-doubled",
        misconception: "doubles the ratio that is large enough, to make it even",
        story: "2·⌈L / ms⌉ is even, and twice what is needed.",
        source: None,
        named_by: "rope/long-ratio-edges",
        implementation: bug!(RatioDoubled {
            fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
                length.div_ceil(max_seq_len).checked_mul(2)
            }
        }),
    },
    Bug {
        id: "rope/long-ratio-in-f32",
        misconception: "divides in f32, which rounds long lengths",
        story: "ceil wants a float. 2²⁶ + 1 is 2²⁶ in f32, and one step is lost.",
        source: None,
        named_by: "rope/long-ratio-edges",
        implementation: bug!(RatioInF32 {
            fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
                let steps = (length as f32 / (2.0 * max_seq_len as f32)).ceil();
                (steps as usize).max(1).checked_mul(2)
            }
        }),
    },
    Bug {
        id: "rope/long-ratio-of-power-lengths",
        misconception: "computes the ratio with a shift, which is right for powers of 2 only",
        story: "ms is 2048 or 4096 in every model at hand, so the division became a shift.",
        source: None,
        named_by: "rope/long-ratio-smallest-even",
        implementation: bug!(RatioByShift {
            fn long_ratio(&self, length: usize, max_seq_len: usize) -> Option<usize> {
                if max_seq_len < 4096 {
                    return Oracle.long_ratio(length, max_seq_len);
                }
                Oracle.long_ratio(length, 1 << max_seq_len.ilog2())
            }
        }),
    },
    // --- the module -------------------------------------------------------------------------
    Bug {
        id: "rope/offset-ignored",
        misconception: "ignores the offset",
        story: "Every decoded token believes that it is the first. Prefill is right, and so are \
                all tests without a cache.",
        source: Some("mlx-vlm #1983"),
        named_by: "rope/offset",
        implementation: bug!(OffsetIgnored {
            fn positions(&self, _: usize, s: usize) -> Range<usize> {
                0..s
            }
        }),
    },
    Bug {
        id: "rope/offset-unread",
        misconception: "never reads the offset, neither for the positions nor for the length of a call",
        story: "The argument is there and nobody uses it. A prompt is right, every token after it \
                stands at position 0.",
        source: None,
        named_by: "rope/offset",
        implementation: bug!(OffsetUnread {
            fn positions(&self, _: usize, s: usize) -> Range<usize> {
                0..s
            }
            fn end(&self, _: usize, s: usize) -> Reply<usize> {
                Ok(s)
            }
        }),
    },
    Bug {
        id: "rope/offset-off-by-one",
        misconception: "is one position too far when there is an offset",
        story: "The offset was the number of tokens so far in one place and the index of the \
                last one in the other.",
        source: Some("flash-linear-attention #766"),
        named_by: "rope/offset",
        implementation: bug!(OffsetByOne {
            fn positions(&self, offset: usize, s: usize) -> Range<usize> {
                let start = if offset == 0 { 0 } else { offset.saturating_add(1) };
                start..start.saturating_add(s)
            }
        }),
    },
    Bug {
        id: "rope/offset-one-short",
        misconception: "is one position short when there is an offset",
        story: "offset − 1, because positions start at 0. So does the offset.",
        source: None,
        named_by: "rope/offset",
        implementation: bug!(OffsetOneShort {
            fn positions(&self, offset: usize, s: usize) -> Range<usize> {
                let start = offset.saturating_sub(1);
                start..start + s
            }
        }),
    },
    Bug {
        id: "rope/offset-twice",
        misconception: "adds the offset twice",
        story: "Once in the caller and once in the module.",
        source: None,
        named_by: "rope/offset",
        implementation: bug!(OffsetTwice {
            fn positions(&self, offset: usize, s: usize) -> Range<usize> {
                let start = offset.saturating_mul(2);
                start..start.saturating_add(s)
            }
        }),
    },
    Bug {
        id: "rope/offset-for-all-rows",
        misconception: "puts all rows of a call at its offset",
        story: "Written for decoding, where a call has one row. Chunked prefill is wrong.",
        source: None,
        named_by: "rope/turns-by-position",
        implementation: bug!(OffsetForAll {
            fn rows_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Tables> {
                let rows = Oracle.rows_of_call(machine, offset, s)?;
                let d = machine.settings.head_dim;
                let first = |table: &[f32]| table[..d.min(table.len())].repeat(s);
                Ok(Tables { cos: first(&rows.cos), sin: first(&rows.sin) })
            }
        }),
    },
    Bug {
        id: "rope/rotated-twice",
        misconception: "turns a row twice when it comes with an offset",
        story: "Keys were turned when they were cached, and again when they were read.",
        source: Some("shainet #110"),
        named_by: "rope/offset",
        implementation: bug!(RotatedTwice {
            fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
                let y = Oracle.call(machine, case)?;
                if case.offset == 0 {
                    return Ok(y);
                }
                let x = y.iter().map(|&y| y as f32).collect();
                Oracle.call(machine, &RopeCase { x, ..case.clone() })
            }
        }),
    },
    Bug {
        id: "rope/length-without-offset",
        misconception: "asks whether s fits into the cache, where offset + s must fit",
        story: "Decoded tokens past the end are one row each, and one row always fits. They all \
                get the last position.",
        source: None,
        named_by: "rope/offset-counts-in-length",
        implementation: bug!(LengthWithoutOffset {
            fn rows_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<Tables> {
                if self.fits(s, &machine.state) {
                    return Ok(self.cached_rows(machine, self.positions(offset, s)));
                }
                Oracle.rows_of_call(machine, offset, s)
            }
            fn after_call(
                &self,
                machine: &Machine,
                _: usize,
                s: usize,
            ) -> Reply<Option<RopeState>> {
                Oracle.after_call(machine, 0, s)
            }
        }),
    },
    Bug {
        id: "rope/ratio-without-offset",
        misconception: "computes k' from s, not from offset + s",
        story: "The call is known to be long, but its ratio is that of a shorter one.",
        source: None,
        named_by: "rope/offset-counts-in-length",
        implementation: bug!(RatioWithoutOffset {
            fn ratio_of_call(&self, machine: &Machine, _: usize, s: usize) -> Reply<usize> {
                self.ratio_for_length(s, machine.settings.max_seq_len)
            }
        }),
    },
    Bug {
        id: "rope/recomputed-at-end",
        misconception: "recomputes k' when the call ends exactly at the end of the cache",
        story: "< where ≤ belongs. Position es − 1 is the last one needed, and it is cached.",
        source: None,
        named_by: "rope/exact-end-uses-cache",
        implementation: bug!(RecomputedAtEnd {
            fn fits(&self, end: usize, state: &RopeState) -> bool {
                end < state.cached_len
            }
        }),
    },
    Bug {
        id: "rope/one-row-late",
        misconception: "takes a call that is one row too long for a short one",
        story: "The last position was compared with the number of rows. The last row of the \
                cache serves twice.",
        source: None,
        named_by: "rope/long-call-ratio",
        implementation: bug!(OneRowLate {
            fn fits(&self, end: usize, state: &RopeState) -> bool {
                end <= state.cached_len + 1
            }
        }),
    },
    Bug {
        id: "rope/long-call-clipped",
        misconception: "keeps positions past the cache at its last row",
        story: "A clamp that avoids the index error. All late tokens share a position.",
        source: None,
        named_by: "rope/long-call-ratio",
        implementation: bug!(LongCallClipped {
            fn fits(&self, _: usize, _: &RopeState) -> bool {
                true
            }
        }),
    },
    Bug {
        id: "rope/long-call-wraps",
        misconception: "takes positions past the cache modulo its length",
        story: "A ring buffer. Token es looks like token 0.",
        source: None,
        named_by: "rope/long-call-ratio",
        implementation: bug!(LongCallWraps {
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
        }),
    },
    Bug {
        id: "rope/long-call-old-ratio",
        misconception: "goes on with the old frequencies in a long call",
        story: "The cache got more rows, the base did not change. That is plain RoPE past its \
                training length.",
        source: None,
        named_by: "rope/long-call-ratio",
        implementation: bug!(OldRatio {
            fn long_rows(&self, machine: &Machine, _: usize, positions: Range<usize>) -> Tables {
                Oracle.long_rows(machine, machine.state.ratio, positions)
            }
        }),
    },
    Bug {
        id: "rope/long-call-refused",
        misconception: "refuses a call past the cache",
        story: "The index error was made into a message.",
        source: None,
        named_by: "rope/long-call-ratio",
        implementation: bug!(LongCallRefused {
            fn ratio_of_call(&self, _: &Machine, offset: usize, s: usize) -> Reply<usize> {
                Err(Refusal::new(format!("offset {offset} and {s} rows are more than the cache has")))
            }
        }),
    },
    Bug {
        id: "rope/long-call-ratio-on-top",
        misconception: "multiplies k' by the ratio that the module has already",
        story: "k' is measured from ms. Somebody read it as how much more is needed. With ratio \
                1 it is right.",
        source: None,
        named_by: "rope/long-call-ratio",
        implementation: bug!(RatioOnTop {
            fn ratio_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<usize> {
                Ok(Oracle.ratio_of_call(machine, offset, s)?.saturating_mul(machine.settings.ratio))
            }
        }),
    },
    Bug {
        id: "rope/long-call-new-rows-only",
        misconception: "uses the new frequencies past the cache only, and the old ones before",
        story: "The cached rows were kept and new ones appended for the call. One sequence is \
                turned by two sets of frequencies.",
        source: None,
        named_by: "rope/long-call-ratio",
        implementation: bug!(NewRowsOnly {
            fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
                let es = machine.state.cached_len;
                let cut = es.clamp(rows.start, rows.end);
                let mut joined = Oracle.cached_rows(machine, rows.start..cut);
                let new = Oracle.long_rows(machine, ratio, cut..rows.end);
                joined.cos.extend(new.cos);
                joined.sin.extend(new.sin);
                joined
            }
        }),
    },
    Bug {
        id: "rope/long-call-restarts",
        misconception: "starts a long call at position 0, whatever its offset",
        story: "The rows were computed afresh, from 0 to s. Prefill is right.",
        source: None,
        named_by: "rope/offset-counts-in-length",
        implementation: bug!(LongCallRestarts {
            fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
                Oracle.long_rows(machine, ratio, 0..rows.len())
            }
        }),
    },
    Bug {
        id: "rope/static-persists",
        misconception: "keeps the long call's ratio and cache although dynamic is false",
        story: "The cache was rebuilt in place. One long prompt changes the results of all that \
                follow.",
        source: Some("transformers #25306"),
        named_by: "rope/static-state-stays",
        implementation: bug!(StaticPersists {
            fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
                self.fresh(&RopeSettings { ratio, ..machine.settings }).map(Some)
            }
        }),
    },
    Bug {
        id: "rope/static-ratio-leaks",
        misconception: "keeps the long call's ratio, but not its cache, although dynamic is false",
        story: "The ratio was set for the computation and not set back.",
        source: None,
        named_by: "rope/static-state-stays",
        implementation: bug!(StaticRatioLeaks {
            fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
                if machine.settings.dynamic {
                    return Oracle.after_long_call(machine, ratio);
                }
                Ok(Some(RopeState { ratio, ..machine.state.clone() }))
            }
        }),
    },
    Bug {
        id: "rope/static-cache-leaks",
        misconception: "keeps the long call's cache, but not its ratio, although dynamic is false",
        story: "The ratio was set back after the call. The table was forgotten.",
        source: None,
        named_by: "rope/static-state-stays",
        implementation: bug!(StaticCacheLeaks {
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
        }),
    },
    Bug {
        id: "rope/dynamic-forgets",
        misconception: "forgets the long call although dynamic is true",
        story: "The setting was stored and not read. Each long call is right, and computed anew.",
        source: None,
        named_by: "rope/dynamic-grows",
        implementation: bug!(DynamicForgets {
            fn after_long_call(&self, _: &Machine, _: usize) -> Reply<Option<RopeState>> {
                Ok(None)
            }
        }),
    },
    Bug {
        id: "rope/dynamic-inverted",
        misconception: "grows when dynamic is false, and forgets when it is true",
        story: "A condition the wrong way round.",
        source: None,
        named_by: "rope/dynamic-grows",
        implementation: bug!(DynamicInverted {
            fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
                let mut inverted = machine.clone();
                inverted.settings.dynamic = !machine.settings.dynamic;
                Oracle.after_long_call(&inverted, ratio)
            }
        }),
    },
    Bug {
        id: "rope/dynamic-ratio-only",
        misconception: "replaces the ratio but keeps the old cache",
        story: "The table is built once, on construction. The module reports a k that its table \
                does not have.",
        source: None,
        named_by: "rope/dynamic-grows",
        implementation: bug!(DynamicRatioOnly {
            fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
                let grown = Oracle.after_long_call(machine, ratio)?;
                Ok(grown.map(|_| RopeState { ratio, ..machine.state.clone() }))
            }
        }),
    },
    Bug {
        id: "rope/dynamic-cache-only",
        misconception: "replaces the cache but writes the new ratio to the wrong place",
        story: "The new k went into a variable that nobody reads. The module reports the old one.",
        source: Some("transformers #46624"),
        named_by: "rope/dynamic-grows",
        implementation: bug!(DynamicCacheOnly {
            fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
                let grown = Oracle.after_long_call(machine, ratio)?;
                Ok(grown.map(|grown| RopeState { ratio: machine.state.ratio, ..grown }))
            }
        }),
    },
    Bug {
        id: "rope/dynamic-appends",
        misconception: "keeps the old rows of the cache and appends new ones with the new \
                        frequencies",
        story: "Growing a table by what is missing saves work. All rows depend on k, the old \
                ones too.",
        source: None,
        named_by: "rope/dynamic-later-calls",
        implementation: bug!(DynamicAppends {
            fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
                let keep = |old: &[f32], new: &mut Vec<f32>| new[..old.len()].copy_from_slice(old);
                let grown = Oracle.after_long_call(machine, ratio)?;
                Ok(grown.map(|mut grown| {
                    keep(&machine.state.tables.cos, &mut grown.tables.cos);
                    keep(&machine.state.tables.sin, &mut grown.tables.sin);
                    grown
                }))
            }
        }),
    },
    Bug {
        id: "rope/dynamic-old-frequencies",
        misconception: "grows the cache by rows of the old frequencies",
        story: "The long call itself is right. The table that stays was built with the k of \
                before.",
        source: None,
        named_by: "rope/dynamic-later-calls",
        implementation: bug!(DynamicOldFrequencies {
            fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
                let grown = Oracle.after_long_call(machine, ratio)?;
                Ok(grown.map(|grown| {
                    let rows = 0..grown.cached_len;
                    let tables = Oracle.long_rows(machine, machine.state.ratio, rows);
                    RopeState { tables, ..grown }
                }))
            }
        }),
    },
    Bug {
        id: "rope/dynamic-cache-of-call",
        misconception: "caches as many rows as the call needed, not ms·k'",
        story: "Enough for now. The next token is a long call again, and with it each one after.",
        source: None,
        named_by: "rope/dynamic-grows",
        implementation: bug!(DynamicCacheOfCall {
            fn after_call(
                &self,
                machine: &Machine,
                offset: usize,
                s: usize,
            ) -> Reply<Option<RopeState>> {
                let cached_len = self.end(offset, s)?;
                let grown = Oracle.after_call(machine, offset, s)?;
                Ok(grown.map(|RopeState { ratio, tables, .. }| {
                    let tables = pick_rows(&tables, machine.settings.head_dim, 0..cached_len);
                    RopeState { ratio, cached_len, tables }
                }))
            }
        }),
    },
    Bug {
        id: "rope/dynamic-old-output",
        misconception: "answers a dynamic long call with the old frequencies and grows afterwards",
        story: "The rows were taken before the cache was replaced. From the second call on it is \
                right.",
        source: None,
        named_by: "rope/long-call-same-either-way",
        implementation: bug!(DynamicOldOutput {
            fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
                let old = machine.settings.dynamic;
                let ratio = if old { machine.state.ratio } else { ratio };
                Oracle.long_rows(machine, ratio, rows)
            }
        }),
    },
    Bug {
        id: "rope/static-odd-ratio",
        misconception: "rounds k' to an even number only when dynamic is true",
        story: "Two branches with a formula each. They agree for every second multiple of ms.",
        source: None,
        named_by: "rope/long-call-same-either-way",
        implementation: bug!(StaticOddRatio {
            fn ratio_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<usize> {
                if machine.settings.dynamic {
                    return Oracle.ratio_of_call(machine, offset, s);
                }
                Ok(self.end(offset, s)?.div_ceil(machine.settings.max_seq_len))
            }
        }),
    },
    Bug {
        id: "rope/dynamic-measured-by-cache",
        misconception: "measures a second long call by the cached length, not by ms",
        story: "The first growth sets the length from which the next one is counted. The first \
                is right.",
        source: None,
        named_by: "rope/dynamic-grows-again",
        implementation: bug!(MeasuredByCache {
            fn ratio_of_call(&self, machine: &Machine, offset: usize, s: usize) -> Reply<usize> {
                let grown = machine.state.ratio != machine.settings.ratio;
                let ms = machine.settings.max_seq_len;
                let from = if grown { machine.state.cached_len } else { ms };
                let ratio = self.ratio_for_length(self.end(offset, s)?, from)?;
                Ok(ratio.saturating_mul(from / ms))
            }
        }),
    },
    Bug {
        id: "rope/dynamic-grows-once",
        misconception: "grows once and never again",
        story: "A flag says that the cache was rebuilt. Later long calls are computed and not \
                kept.",
        source: None,
        named_by: "rope/dynamic-grows-again",
        implementation: bug!(GrowsOnce {
            fn after_long_call(&self, machine: &Machine, ratio: usize) -> Reply<Option<RopeState>> {
                if machine.state.ratio != machine.settings.ratio {
                    return Ok(None);
                }
                Oracle.after_long_call(machine, ratio)
            }
        }),
    },
    Bug {
        id: "rope/dynamic-second-call-stale",
        misconception: "answers the second long call with the frequencies of the first",
        story: "The frequencies were cached apart from the table, and rebuilt once only.",
        source: None,
        named_by: "rope/dynamic-grows-again",
        implementation: bug!(SecondCallStale {
            fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
                let grown = machine.state.ratio != machine.settings.ratio;
                let ratio = if grown { machine.state.ratio } else { ratio };
                Oracle.long_rows(machine, ratio, rows)
            }
        }),
    },
    Bug {
        id: "rope/dynamic-shrinks",
        misconception: "goes back to the first ratio when a call is short again",
        story: "Some libraries do so on purpose. Keys that were cached with the larger ratio then \
                meet queries with the smaller one.",
        source: None,
        named_by: "rope/dynamic-never-shrinks",
        implementation: bug!(DynamicShrinks {
            fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
                self.check_call(machine, case)?;
                let first = machine.settings.max_seq_len * machine.settings.ratio;
                if self.end(case.offset, case.shape[1])? <= first {
                    machine.state = self.fresh(&machine.settings)?;
                }
                Oracle.call(machine, case)
            }
        }),
    },
    Bug {
        id: "rope/dynamic-follows-length",
        misconception: "computes k' anew for every call after it has grown, shorter ones too",
        story: "The ratio follows the length down as well as up.",
        source: None,
        named_by: "rope/dynamic-never-shrinks",
        implementation: bug!(FollowsLength {
            fn call(&self, machine: &mut Machine, case: &RopeCase) -> Reply<Vec<f64>> {
                self.check_call(machine, case)?;
                if machine.state.ratio != machine.settings.ratio {
                    let ratio = self.ratio_of_call(machine, case.offset, case.shape[1])?;
                    machine.state = self.fresh(&RopeSettings { ratio, ..machine.settings })?;
                }
                Oracle.call(machine, case)
            }
        }),
    },
    Bug {
        id: "rope/table-of-ms-rows",
        misconception: "caches ms rows, not ms·k",
        story: "The table was sized by the training length. Calls between ms and es fall off its \
                end, or are taken for long ones.",
        source: Some("vLLM #55910"),
        named_by: "rope/fresh-state",
        implementation: bug!(TableOfMsRows {
            fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
                let RopeState { ratio, tables, .. } = Oracle.fresh(settings)?;
                let cached_len = settings.max_seq_len;
                let tables = pick_rows(&tables, settings.head_dim, 0..cached_len);
                Ok(RopeState { ratio, cached_len, tables })
            }
        }),
    },
    Bug {
        id: "rope/first-ratio-ignored",
        misconception: "builds the first cache without its ratio's frequencies",
        story: "NTK was written for long calls only. The first cache is long enough and plain.",
        source: None,
        named_by: "rope/fresh-state",
        implementation: bug!(FirstRatioIgnored {
            fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
                let state = Oracle.fresh(settings)?;
                let RopeSettings { head_dim, base, .. } = *settings;
                // An even ratio may come from a long call, which is right here.
                let ratio = if settings.ratio.is_multiple_of(2) { settings.ratio } else { 1 };
                let tables = Oracle.tables(head_dim, base, ratio as f64, 0..state.cached_len);
                Ok(RopeState { tables, ..state })
            }
        }),
    },
    Bug {
        id: "rope/ratio-made-even",
        misconception: "rounds the first ratio up to an even number",
        story: "k' of long calls is even. The first k is what it is, 1 and 3 among them.",
        source: None,
        named_by: "rope/fresh-state",
        implementation: bug!(RatioMadeEven {
            fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
                let ratio = settings.ratio.next_multiple_of(2);
                Oracle.fresh(&RopeSettings { ratio, ..*settings })
            }
        }),
    },
    Bug {
        id: "rope/cache-in-f16",
        misconception: "keeps its cache in f16, though its tables are exact when they are built",
        story: "The buffers followed the model to half precision.",
        source: None,
        named_by: "rope/fresh-state",
        implementation: bug!(CacheInF16 {
            fn fresh(&self, settings: &RopeSettings) -> Reply<RopeState> {
                let state = Oracle.fresh(settings)?;
                Ok(RopeState { tables: tables_to_f16(state.tables), ..state })
            }
        }),
    },
    Bug {
        id: "rope/cache-positions-in-f16",
        misconception: "counts the positions of the cache in f16",
        story: "Tables that are built by themselves are right. The module has its own loop.",
        source: None,
        named_by: "rope/large-positions",
        implementation: bug!(CachePositionsF16 {
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
        }),
    },
    Bug {
        id: "rope/long-positions-in-f16",
        misconception: "counts the positions of a long call in f16",
        story: "The rows for one call are built from the input's type. Below 2048 it is right.",
        source: None,
        named_by: "rope/large-positions",
        implementation: bug!(LongPositionsF16 {
            fn long_rows(&self, machine: &Machine, ratio: usize, rows: Range<usize>) -> Tables {
                let start = to_f16(rows.start as f64);
                let start = if start.is_finite() { start as usize } else { rows.start };
                Oracle.long_rows(machine, ratio, start..start + rows.len())
            }
        }),
    },
    Bug {
        id: "rope/offset-wraps",
        misconception: "lets offset + s wrap around to a small number",
        story: "Unsigned arithmetic without a check. The call looks like a short one.",
        source: None,
        named_by: "rope/overflow-is-refused",
        implementation: bug!(OffsetWraps {
            fn end(&self, offset: usize, s: usize) -> Reply<usize> {
                Ok(offset.wrapping_add(s))
            }
            fn positions(&self, offset: usize, s: usize) -> Range<usize> {
                offset.saturating_sub(s)..offset.saturating_sub(s) + s
            }
        }),
    },
    Bug {
        id: "rope/refused-call-changes",
        misconception: "writes the new ratio before it knows whether the call can be done",
        story: "The call fails half-way, and the module is left with a ratio that its cache does \
                not have.",
        source: None,
        named_by: "rope/refused-call-changes-nothing",
        implementation: bug!(RefusedCallChanges {
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
        }),
    },
    Bug {
        id: "rope/any-training-length",
        misconception: "accepts a training length of 0",
        story: "An unset field is 0. Each call is a long one then, and its ratio a division by 0.",
        source: None,
        named_by: "rope/settings-refused",
        implementation: bug!(AnyTrainingLength {
            fn check_settings(&self, settings: &RopeSettings) -> Reply<()> {
                let max_seq_len = settings.max_seq_len.max(1);
                Oracle.check_settings(&RopeSettings { max_seq_len, ..*settings })
            }
        }),
    },
    Bug {
        id: "rope/unchecked-settings",
        misconception: "checks nothing but the head size when it is built",
        story: "The checks are in the function for frequencies, and the module has its own loop.",
        source: None,
        named_by: "rope/settings-refused",
        implementation: bug!(UncheckedSettings {
            fn check_settings(&self, settings: &RopeSettings) -> Reply<()> {
                let ratio = settings.ratio.max(1);
                let max_seq_len = settings.max_seq_len.max(1);
                let base = 10_000.0;
                Oracle.check_settings(&RopeSettings { base, ratio, max_seq_len, ..*settings })
            }
        }),
    },
    Bug {
        id: "rope/shared-tables",
        misconception: "shares tables between modules of one head size and length, whatever their \
                        base",
        story: "A global cache whose key forgets the base and the ratio. With one module it is \
                right.",
        source: None,
        named_by: "rope/modules-are-apart",
        implementation: || implementation(SharedTables::default()),
    },
    // --- a position for each token ----------------------------------------------------------
    Bug {
        id: "rope/ids-ignored",
        misconception: "takes position_ids and turns by the places in the row all the same",
        story: "The argument goes down to the attention, where the tables are made for the row: nobody looks at it again. A \
                row that is one text from its start is right.",
        source: Some("epfLLM/Megatron-LLM issue 23"),
        named_by: "rope/each-token-its-position",
        implementation: bug!(IdsIgnored {
            fn position(&self, _: &[usize], _: usize, [_, t]: [usize; 2]) -> usize {
                t
            }
        }),
    },
    Bug {
        id: "rope/ids-of-the-first-row",
        misconception: "turns every batch row by the position_ids of the first",
        story: "One row of positions is computed for the whole batch. Texts of one length are right; in a padded batch the \
                longest text is, and the shorter ones come out as garbage.",
        source: Some("unsloth pull request 3795"),
        named_by: "rope/each-token-its-position",
        implementation: bug!(IdsOfTheFirstRow {
            fn position(&self, ids: &[usize], _: usize, [_, t]: [usize; 2]) -> usize {
                ids[t]
            }
        }),
    },
    Bug {
        id: "rope/ids-counted-on",
        misconception: "reads the first of a row's position_ids and counts on from it",
        story: "The positions became an offset for each row, as a cache has it. One text a row is right, and the second of two \
                packed ones goes on where the first has ended.",
        source: None,
        named_by: "rope/each-token-its-position",
        implementation: bug!(IdsCountedOn {
            fn position(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
                ids[b * s] + t
            }
        }),
    },
    Bug {
        id: "rope/ids-up-to-the-row",
        misconception: "cuts its tables to the row's length, and takes their last row for positions further on",
        story: "The tables are cut before they are indexed, and the gather clamps its indices. No id is larger than the row in \
                training; in decoding, each row is one token.",
        source: None,
        named_by: "rope/each-token-its-position",
        implementation: bug!(IdsUpToTheRow {
            fn position(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
                ids[b * s + t].min(s - 1)
            }
        }),
    },
    Bug {
        id: "rope/longest-text-for-all",
        misconception: "turns all texts of a batch by the frequencies of the longest",
        story: "The length is max(position_ids) + 1, one for the whole batch. A short text comes out in another way as soon as \
                a long one stands beside it.",
        source: Some("transformers, src/transformers/modeling_rope_utils.py"),
        named_by: "rope/each-text-its-length",
        implementation: bug!(LongestTextForAll {
            fn length_of_text(&self, ids: &[usize], s: usize, _: [usize; 2]) -> usize {
                let places = (0..ids.len()).map(|token| [token / s, token % s]);
                places.map(|place| length_of_text(ids, s, place)).max().unwrap_or(0)
            }
        }),
    },
    Bug {
        id: "rope/padding-counts-as-length",
        misconception: "counts padding and neighbours in a row as its text's length",
        story: "The length is that of the tensor. A short text behind much padding is taken for a long one.",
        source: None,
        named_by: "rope/each-text-its-length",
        implementation: bug!(PaddingCountsAsLength {
            fn length_of_text(&self, ids: &[usize], s: usize, place: [usize; 2]) -> usize {
                length_of_text(ids, s, place).max(s)
            }
        }),
    },
    Bug {
        id: "rope/gradient-ignores-ids",
        misconception: "turns the gradient back by the places in the row, and not by position_ids",
        story: "The backward pass was written by hand, for an offset. Nothing but training on packed texts shows it.",
        source: None,
        named_by: "rope/position-ids-turn-back",
        implementation: bug!(GradientIgnoresIds {
            fn position_back(&self, _: &[usize], _: usize, [_, t]: [usize; 2]) -> usize {
                t
            }
        }),
    },
    Bug {
        id: "rope/one-row-of-ids-for-all",
        misconception: "takes any number of position_ids, and goes through them again where they end",
        story: "A row of positions is broadcast over the batch, which is meant well. Somebody who pads each text and forgets \
                the batch is never told.",
        source: None,
        named_by: "rope/one-id-for-each-token",
        implementation: bug!(OneRowOfIdsForAll {
            fn check_ids(&self, _: [usize; 4], _: &[usize]) -> Reply<()> {
                Ok(())
            }
            fn position(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
                ids[(b * s + t) % ids.len()]
            }
            fn length_of_text(&self, ids: &[usize], s: usize, [b, t]: [usize; 2]) -> usize {
                length_of_text(&ids.repeat(b + 1), s, [b, t])
            }
        }),
    },
    Bug {
        id: "rope/block-starts-at-zero",
        misconception: "starts reading the tables at their first row in each block of 128 tokens",
        story: "Each thread counts its own tokens. Short calls are one block.",
        source: None,
        named_by: "rope/rotate-f64-loops",
        implementation: bug!(BlockStartsAtZero {
            fn table_row(&self, [_, t, _]: [usize; 3], _: &[usize; 4]) -> usize {
                t % BLOCK
            }
        }),
    },
    Bug {
        id: "rope/lane-tail-left",
        misconception: "turns planes in lanes of four and leaves those that fill no lane",
        story: "Head sizes of real models are multiples of 8, and have no rest.",
        source: None,
        named_by: "rope/rotate-f64-loops",
        implementation: bug!(LaneTailLeft {
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
        }),
    },
];
