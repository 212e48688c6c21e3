//! Frequencies, and the tables of their angles.

use super::Rope;
use crate::component::{NET, law};
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::{U, widen};
use crate::oracle::Oracle;
use crate::rope::interface::*;
use crate::rope::menu;
use crate::rope::oracle::RopeLoops;
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;
use std::fmt;
use std::ops::Range;

// --- inputs ---------------------------------------------------------------------------------

/// What frequencies are made of.
#[derive(Debug, Clone, Copy)]
struct Scale {
    head_dim: usize,
    base: f64,
    ratio: f64,
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { head_dim, base, ratio } = self;
        write!(f, "head_dim {head_dim}, base {base}, ratio {ratio}")
    }
}

/// Scales, and positions.
#[derive(Debug, Clone)]
struct Asked {
    scale: Scale,
    positions: Range<usize>,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, positions {:?}", self.scale, self.positions)
    }
}

/// Head sizes from the smallest to that of a large model, any base, ratios with a fraction too.
fn scales() -> impl Strategy<Value = Scale> {
    let head_dim = prop::sample::select(vec![4usize, 6, 8, 10, 16, 64, 128]);
    (head_dim, 100.0..1e6f64, 1.0..16.0f64).prop_map(|(head_dim, base, ratio)| Scale {
        head_dim,
        base: base.round(),
        ratio: (4.0 * ratio).round() / 4.0,
    })
}

/// Tables of up to four rows that start anywhere in the first 5000 positions.
fn tables_asked() -> impl Strategy<Value = Asked> {
    let head_dim = prop::sample::select(&menu::HEAD_DIM[..]);
    (scales(), head_dim, 0..5000usize, 1..=4usize).prop_map(|(scale, head_dim, start, rows)| {
        Asked { scale: Scale { head_dim, ..scale }, positions: start..start + rows }
    })
}

fn scale(head_dim: usize, base: f64, ratio: f64) -> Scale {
    Scale { head_dim, base, ratio }
}

// --- frequencies ----------------------------------------------------------------------------

fn frequencies(rope: &Rope, asked: Scale) -> Step<Vec<f64>> {
    let Scale { head_dim, base, ratio } = asked;
    let theta = answer("frequencies", || rope.frequencies(head_dim, base, ratio))
        .map_err(|violation| violation.on(asked))?;
    let length = Fault::Length { shape: vec![head_dim / 2], got: theta.len() };
    if theta.len() == head_dim / 2 {
        Ok(theta)
    } else {
        Err(Violation::new("frequencies", length).on(asked))
    }
}

/// How far a frequency may be off, relative to its value, when it is computed in `f32`.
fn frequency_tolerance(theta: f64) -> f64 {
    (6.0 - 2.0 * theta.ln()) * U
}

const FREQUENCY_WHY: &str = "(6 + 2·ln(1/θ))·2⁻²⁴ of the value: a power in f32, whose exponent \
                             and base are rounded, and six more roundings";

fn expect_frequencies(rope: &Rope, asked: Scale, expected: &[f64]) -> Step {
    let theta = frequencies(rope, asked)?;
    let tolerance = |i: usize| frequency_tolerance(expected[i]) * expected[i];
    let shape = [expected.len()];
    within_f64("frequencies", &shape, &theta, expected, tolerance, FREQUENCY_WHY)
        .map_err(|violation| violation.on(asked))
}

/// Plane 0 is the fastest, at 1 radian per position whatever the base and the ratio, and each plane is slower than the
/// one before.
#[law("rope/fastest-plane-first", see = "rope#frequencies", about = Frequencies, points = 2,
    formula = "θ₀ = 1,  θ_{i+1} < θ_i",
    stays = "It says which end is which, which many tutorials get wrong.")]
pub(super) fn fastest_plane_first(rope: &Rope, _: &Run) -> Verdict {
    for asked in [scale(4, 10_000.0, 1.0), scale(8, 500.0, 4.0), scale(64, 500_000.0, 2.5)] {
        let theta = frequencies(rope, asked)?;
        let near = (theta[0] - 1.0).abs() <= 2.0 * U;
        holds("frequencies", near, || {
            format!("θ_0 should be 1 for any base and ratio. It is {}", theta[0])
        })
        .map_err(|violation| violation.on(asked))?;
        let rising = (1..theta.len()).find(|&i| theta[i] >= theta[i - 1]);
        holds("frequencies", rising.is_none(), || {
            let i = rising.unwrap_or(0);
            format!("each θ should be below the one before. θ_{i} = {} is not", theta[i])
        })
        .map_err(|violation| violation.on(asked))?;
    }
    Ok(None)
}

/// Without NTK, at ratio 1, the frequencies fall from 1 towards 1/base by equal quotients: 1, 0.1, 0.01, 0.001 for d =
/// 8 and base 10,000.
#[law("rope/plain-frequencies", see = "rope#frequencies", about = Frequencies, points = 2,
    formula = "k = 1  ⇒  θ_i = base^(−2i/d)",
    stays = "Numbers that are known by heart, without NTK in the way.")]
pub(super) fn plain_frequencies(rope: &Rope, _: &Run) -> Verdict {
    for (asked, expected) in [
        (scale(4, 10_000.0, 1.0), vec![1.0, 1e-2]),
        (scale(8, 10_000.0, 1.0), vec![1.0, 1e-1, 1e-2, 1e-3]),
        (scale(6, 1e6, 1.0), vec![1.0, 1e-2, 1e-4]),
        (scale(16, 256.0, 1.0), (0..8).map(|i| 0.5f64.powi(i)).collect()),
    ] {
        expect_frequencies(rope, asked, &expected)?;
    }
    Ok(None)
}

/// NTK slows the last plane by exactly the ratio, as position interpolation would.
#[law("rope/ntk-slows-last-plane", see = "longer#ntk", about = Frequencies, points = 2,
    formula = "θ_{d/2−1}(k) = θ_{d/2−1}(1) / k",
    stays = "What NTK is for, in one number.")]
pub(super) fn ntk_slows_last_plane(rope: &Rope, _: &Run) -> Verdict {
    for (head_dim, base) in [(4, 10_000.0), (6, 500.0), (8, 10_000.0), (64, 500_000.0)] {
        let slowest = |ratio| -> Step<f64> {
            let asked = scale(head_dim, base, ratio);
            Ok(frequencies(rope, asked)?.last().copied().unwrap_or(f64::NAN))
        };
        let plain = slowest(1.0)?;
        for ratio in [2.0, 4.0, 2.5, 1.5] {
            let slowed = [slowest(ratio)?];
            let expected = [plain / ratio];
            let tolerance = 2.0 * frequency_tolerance(expected[0]) * expected[0];
            let why = "θ of the last plane for ratio 1, divided by the ratio; each is a power in \
                       f32, at 2·(6 + 2·ln(1/θ))·2⁻²⁴";
            within_f64("frequencies", &[1], &slowed, &expected, |_| tolerance, why).map_err(
                |violation| violation.on(format!("{}, last plane", scale(head_dim, base, ratio))),
            )?;
        }
    }
    Ok(None)
}

/// From plane to plane the frequency falls by one constant quotient, even with NTK.
#[law("rope/ntk-constant-quotient", see = "longer#ntk", about = Frequencies, points = 2,
    formula = "θ_{i+1} / θ_i = 1/(c·β),  β = base^(2/d),  c = k^(2/(d−2))",
    stays = "The other half of NTK: the end points alone do not fix the planes between.")]
pub(super) fn ntk_constant_quotient(rope: &Rope, run: &Run) -> Verdict {
    run.forall(scales(), |&asked| {
        let Scale { head_dim, base, ratio } = asked;
        let d = head_dim as f64;
        let theta = frequencies(rope, asked)?;
        let quotients: Vec<f64> = theta.windows(2).map(|pair| pair[1] / pair[0]).collect();
        let (beta, c) = (base.powf(2.0 / d), ratio.powf(2.0 / (d - 2.0)));
        let expected = vec![1.0 / (c * beta); quotients.len()];
        let slowest = Oracle.frequencies(head_dim, base, ratio)[head_dim / 2 - 1];
        let tolerance = 2.0 * frequency_tolerance(slowest) * expected[0];
        let why = "1/(c·β), β = base^(2/d), c = k^(2/(d−2)); both frequencies are powers in f32";
        within_f64("frequencies", &[expected.len()], &quotients, &expected, |_| tolerance, why)
    })?;
    Ok(None)
}

/// Ratio k₁ and then k₂ is ratio k₁·k₂, because NTK is nothing but another base.
#[law("rope/ntk-composes", see = "longer#ntk", about = Frequencies, points = 1,
    formula = "θ(base, k₁·k₂) = θ(base·k₁^(d/(d−2)), k₂)",
    stays = "A law without an oracle: it holds for every right NTK, whatever its numbers.")]
pub(super) fn ntk_composes(rope: &Rope, run: &Run) -> Verdict {
    let second = prop::sample::select(vec![1.0, 2.0, 3.0, 6.0]);
    let inputs = (scales(), second).prop_map(|(scale, second)| Twice { scale, second });
    run.forall(inputs, |&Twice { scale, second }| {
        let Scale { head_dim, base, ratio } = scale;
        let d = head_dim as f64;
        let slowed = Scale { base: base * ratio.powf(d / (d - 2.0)), ratio: second, head_dim };
        let at_once = frequencies(rope, Scale { ratio: ratio * second, ..scale })?;
        let one_by_one = frequencies(rope, slowed)?;
        let tolerance = |i: usize| 2.0 * frequency_tolerance(at_once[i].abs()) * at_once[i].abs();
        let why = "ratio k₁·k₂ at once; here base·k₁^(d/(d−2)) with ratio k₂. Each is a power in \
                   f32, at 2·(6 + 2·ln(1/θ))·2⁻²⁴";
        within_f64("frequencies", &[at_once.len()], &one_by_one, &at_once, tolerance, why)
    })?;
    Ok(None)
}

/// Two ratios, one after the other.
#[derive(Debug, Clone, Copy)]
struct Twice {
    scale: Scale,
    second: f64,
}

impl fmt::Display for Twice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, then ratio {}", self.scale, self.second)
    }
}

/// For any head size, base and ratio, frequencies are what plain f64 loops give.
#[law("rope/frequencies-f64-loops", see = "rope#frequencies", about = Frequencies, points = 3,
    formula = "θ_i = (base·k^(d/(d−2)))^(−2i/d)", stays = NET)]
pub(super) fn frequencies_f64_loops(rope: &Rope, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "frequencies")
}

/// What frequencies must be.
pub(in crate::rope) fn matches_frequencies(rope: &Rope, d: usize, base: f64, ratio: f64) -> Step {
    expect_frequencies(rope, scale(d, base, ratio), &Oracle.frequencies(d, base, ratio))
}

/// What has no frequencies.
pub(in crate::rope) fn no_frequencies(rope: &Rope, d: usize, base: f64, ratio: f64) -> Step {
    let rule = "an odd head size or one below 4, a base of 1 or less, or a ratio below 1";
    refusal("frequencies", rule, || rope.frequencies(d, base, ratio))
        .map(|_words| ())
        .map_err(|violation| violation.on(scale(d, base, ratio)))
}

/// Head sizes that are odd or below 4, bases of 1 or less, ratios below 1, NaN and an infinite base are refused.
#[law("rope/frequencies-refuse", see = "rope#frequencies", about = Refusal, points = 1,
    formula = "d odd, d < 4, base ≤ 1 or k < 1  ⇒  no result")]
pub(super) fn frequencies_refuse(rope: &Rope, _: &Run) -> Verdict {
    for (asked, rule) in [
        (scale(5, 10_000.0, 2.0), "an odd head size"),
        (scale(2, 10_000.0, 2.0), "head size 2: the NTK exponent d/(d − 2) is infinite"),
        (scale(0, 10_000.0, 2.0), "head size 0"),
        (scale(8, 1.0, 2.0), "base 1: all planes would be equally fast"),
        (scale(8, 0.5, 2.0), "a base below 1"),
        (scale(8, -3.0, 2.0), "a negative base"),
        (scale(8, f64::NAN, 2.0), "a base that is not a number"),
        (scale(8, f64::INFINITY, 2.0), "an infinite base"),
        (scale(8, 10_000.0, 0.5), "a ratio below 1"),
        (scale(8, 10_000.0, 0.0), "ratio 0"),
        (scale(8, 10_000.0, f64::NAN), "a ratio that is not a number"),
    ] {
        let Scale { head_dim, base, ratio } = asked;
        refusal("frequencies", rule, || rope.frequencies(head_dim, base, ratio))
            .map_err(|violation| violation.on(asked))?;
    }
    Ok(None)
}

// --- tables ---------------------------------------------------------------------------------

fn tables(rope: &Rope, asked: &Asked) -> Step<Tables> {
    let Asked { scale: Scale { head_dim, base, ratio }, positions } = asked;
    let tables = answer("tables", || rope.tables(*head_dim, *base, *ratio, positions.clone()))
        .map_err(|violation| violation.on(asked))?;
    for table in [&tables.cos, &tables.sin] {
        if table.len() != positions.len() * head_dim {
            let shape = vec![positions.len(), *head_dim];
            let fault = Fault::Length { shape, got: table.len() };
            return Err(Violation::new("tables", fault).on(asked));
        }
    }
    Ok(tables)
}

/// How far a table may be off at a position: an angle in `f32`, its cosine, and their rounding.
pub(super) fn table_tolerance(position: usize) -> f64 {
    2.0 * U * position as f64 + 4.0 * U
}

pub(super) const TABLE_WHY: &str = "n·2⁻²³ at position n, for an angle in f32, and 4·2⁻²⁴ for \
                                    the cosine and its rounding";

/// Compares tables with what they should be, and says how far they are off, and where.
fn expect_tables(rope: &Rope, asked: &Asked) -> Step<(f64, usize)> {
    let Asked { scale: Scale { head_dim, base, ratio }, positions } = asked;
    let got = tables(rope, asked)?;
    // The oracle's angles, not rounded to f32.
    let thetas = Oracle.frequencies(*head_dim, *base, *ratio);
    let shape = [positions.len(), *head_dim];
    let position = |i: usize| positions.start + i / head_dim;
    let mut worst = (0.0, positions.start);
    for (part, got) in [("cos", &got.cos), ("sin", &got.sin)] {
        let function = if part == "cos" { f64::cos } else { f64::sin };
        let angle = |i: usize| Oracle.angle(position(i), thetas[i % head_dim % (head_dim / 2)]);
        let expected: Vec<f64> = (0..got.len()).map(|i| function(angle(i))).collect();
        let tolerance = |i: usize| table_tolerance(position(i));
        within("tables", &shape, got, &expected, tolerance, &format!("{part}: {TABLE_WHY}"))
            .map_err(|violation| violation.on(asked))?;
        for (i, (got, expected)) in widen(got).iter().zip(&expected).enumerate() {
            let error = (got - expected).abs();
            if error > worst.0 {
                worst = (error, position(i));
            }
        }
    }
    Ok(worst)
}

/// All rows of small tables.
fn small() -> Vec<Asked> {
    let asked = |scale| Asked { scale, positions: 0..4 };
    vec![asked(scale(4, 10_000.0, 1.0)), asked(scale(8, 500.0, 2.0)), asked(scale(6, 1e5, 3.0))]
}

/// At position 0 all cosines are 1 and all sines are 0, exactly.
#[law("rope/tables-position-zero", see = "rope#tables", about = Rotation, points = 1,
    formula = "C[0, j] = 1,  S[0, j] = 0",
    stays = "The row that can be written down without a calculator.")]
pub(super) fn tables_position_zero(rope: &Rope, _: &Run) -> Verdict {
    for asked in small() {
        let d = asked.scale.head_dim;
        let Tables { cos, sin } = tables(rope, &asked)?;
        let why = "the cosine of 0, at position 0";
        same_values("tables", &[d], &cos[..d], &vec![1.0; d], why).map_err(|b| b.on(&asked))?;
        let why = "the sine of 0, at position 0";
        same_values("tables", &[d], &sin[..d], &vec![0.0; d], why).map_err(|b| b.on(&asked))?;
    }
    Ok(None)
}

/// At position 1 the first plane has turned by 1 radian.
#[law("rope/tables-position-one", see = "rope#tables", about = Rotation, points = 1,
    formula = "C[1, 0] = cos 1,  S[1, 0] = sin 1",
    stays = "The first row that tells radians from degrees, and cos 1 can be looked up.")]
pub(super) fn tables_position_one(rope: &Rope, _: &Run) -> Verdict {
    for asked in small() {
        let d = asked.scale.head_dim;
        let Tables { cos, sin } = tables(rope, &asked)?;
        let expected = [1f64.cos(), 1f64.sin()];
        let why = "cos 1 and sin 1: plane 0 turns by 1 radian per position. 4·2⁻²⁴ for rounding";
        within("tables", &[2], &[cos[d], sin[d]], &expected, |_| 4.0 * U, why).map_err(
            |violation| violation.on(format!("{asked}; row 1, column 0 of cos and sin")),
        )?;
    }
    Ok(None)
}

/// Both halves of a row are equal, bit for bit: plane i is in columns i and i + d/2.
#[law("rope/tables-equal-halves", see = "rope#layouts", about = Order, points = 2,
    formula = "C[t, i] = C[t, i + d/2],  S[t, i] = S[t, i + d/2]",
    stays = "A wrong layout shows here by name; elsewhere it is just a wrong number.")]
pub(super) fn tables_equal_halves(rope: &Rope, run: &Run) -> Verdict {
    run.forall(tables_asked(), |asked| {
        let d = asked.scale.head_dim;
        let Tables { cos, sin } = tables(rope, asked)?;
        for table in [cos, sin] {
            for row in table.chunks(d) {
                let (first, second) = row.split_at(d / 2);
                let why = "the first half of its row: plane i has columns i and i + d/2";
                same_values("tables", &[d / 2], second, first, why)?;
            }
        }
        Ok(())
    })?;
    Ok(None)
}

/// Each cosine and its sine are a point on the unit circle.
#[law("rope/tables-on-circle", see = "rope#tables", about = Rotation, points = 1,
    formula = "C² + S² = 1, within 4·2⁻²⁴",
    stays = "A law without an oracle: it tells a wrong size from a wrong angle.")]
pub(super) fn tables_on_circle(rope: &Rope, run: &Run) -> Verdict {
    run.forall(tables_asked(), |asked| {
        let Tables { cos, sin } = tables(rope, asked)?;
        let squares = |(c, s): (f64, f64)| c * c + s * s;
        let got: Vec<f64> = widen(&cos).into_iter().zip(widen(&sin)).map(squares).collect();
        let shape = [asked.positions.len(), asked.scale.head_dim];
        let why = "cos² + sin² is 1; both are rounded, and squares double it: 4·2⁻²⁴";
        within_f64("tables", &shape, &got, &vec![1.0; got.len()], |_| 4.0 * U, why)
    })?;
    Ok(None)
}

/// Row t is for position start + t, and there are as many rows as positions.
#[law("rope/tables-rows", see = "rope#tables", about = Offset, points = 1,
    formula = "tables(a..b)[t] = tables(0..b)[a + t]",
    stays = "It looks only at the rows, whatever they hold.")]
pub(super) fn tables_rows(rope: &Rope, _: &Run) -> Verdict {
    for asked in small() {
        let d = asked.scale.head_dim;
        let whole = tables(rope, &Asked { positions: 0..7, ..asked.clone() })?;
        for positions in [0..7, 2..5, 6..7] {
            let rows = positions.start * d..positions.end * d;
            let asked = Asked { positions: positions.clone(), ..asked.clone() };
            let part = tables(rope, &asked)?;
            for (part, whole) in [(&part.cos, &whole.cos), (&part.sin, &whole.sin)] {
                let expected = widen(&whole[rows.clone()]);
                let why = "the same position in a table that starts at 0; 2·2⁻²⁴ for rounding";
                let shape = [positions.len(), d];
                within("tables", &shape, part, &expected, |_| 2.0 * U, why)
                    .map_err(|violation| violation.on(&asked))?;
            }
        }
    }
    Ok(None)
}

/// What `f64` angles give at any position: half an ulp of 1, twice for safety.
const F64_ANGLES: f64 = 2.0 * U;

/// Angles stay within the tolerance at positions 4095, 20,010 and a million, unlike those from positions or frequencies
/// in half precision.
#[law("rope/tables-precision", see = "rope#precision", about = Precision, points = 2,
    formula = "|C − cos(n·θ)| ≤ n·2⁻²³ + 4·2⁻²⁴;  angles in f64 give 2⁻²⁴ at every n")]
pub(super) fn tables_precision(rope: &Rope, _: &Run) -> Verdict {
    let scales = [scale(8, 10_000.0, 1.0), scale(4, 10_000.0, 4.0), scale(16, 500_000.0, 1.0)];
    let mut measured = Vec::new();
    for positions in [0..2, 4095..4096, 20_010..20_012, 1_000_003..1_000_005] {
        let mut worst = (0.0, 0);
        for scale in scales {
            let asked = Asked { scale, positions: positions.clone() };
            let (error, position) = expect_tables(rope, &asked)?;
            if error > worst.0 {
                worst = (error, position);
            }
        }
        if worst.0 > F64_ANGLES {
            measured.push(format!("{:.1e} at position {}", worst.0, worst.1));
        }
    }
    Ok((!measured.is_empty()).then(|| {
        format!("angles built in f32: off by {}; f64 angles give 6e-8", measured.join(", "))
    }))
}

/// For any settings and positions, tables are what plain f64 loops give.
#[law("rope/tables-f64-loops", see = "rope#tables", about = Rotation, points = 3,
    formula = "C[t, j] = cos((a + t)·θ_{j mod d/2}),  S likewise", stays = NET)]
pub(super) fn tables_f64_loops(rope: &Rope, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "tables")
}

/// What tables must be.
pub(in crate::rope) fn matches_tables(
    rope: &Rope,
    d: usize,
    base: f64,
    ratio: f64,
    positions: Range<usize>,
) -> Step {
    expect_tables(rope, &Asked { scale: scale(d, base, ratio), positions }).map(drop)
}

/// An implementation with `f64` angles at position a million has them everywhere. An angle in `f32` says nothing any
/// more beyond 2²³, so nothing is asked of it there.
pub(in crate::rope) fn exact_far_out(rope: &Rope) -> Step {
    let asked = |scale, start: usize| Asked { scale, positions: start..start + 2 };
    let plain = || scale(4, 10_000.0, 1.0);
    if expect_tables(rope, &asked(plain(), 1_000_003))?.0 > F64_ANGLES {
        return Ok(());
    }
    // An angle, its frequency and their product, each rounded in f64; with a ratio, two more powers.
    let far = [24, 32, 40].map(|bits| (plain(), 4.0, bits));
    for (scale, roundings, bits) in far.into_iter().chain([(scale(16, 500_000.0, 3.0), 16.0, 24)]) {
        let start = (1 << bits) + 1;
        let asked = asked(scale, start);
        let (error, position) = expect_tables(rope, &asked)?;
        let allowed = F64_ANGLES + roundings * position as f64 * f64::EPSILON;
        let why = || {
            format!(
                "off by {error:.1e} at position {position}, where f64 angles give {allowed:.1e}"
            )
        };
        holds("tables", error <= allowed, why).map_err(|violation| violation.on(asked))?;
    }
    Ok(())
}
