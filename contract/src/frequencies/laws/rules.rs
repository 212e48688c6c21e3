//! The frequencies of each rule.

use super::Any;
use crate::component::{NET, law};
use crate::frequencies::interface::*;
use crate::frequencies::oracle::StretchedRopeLoops;
use crate::frequencies::tolerance::{FREQUENCY_WHY, SCALE_WHY, of_frequencies};
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::U;
use crate::oracle::Oracle;
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;
use std::f64::consts::TAU;

// --- inputs ---------------------------------------------------------------------------------

/// A call of so many rows from position 0, of a head all of which turns.
fn call(rule: Stretch, d: usize, base: f64, seq_len: usize) -> FrequenciesCase {
    FrequenciesCase { rule, head_dim: d, rotary_dim: d, base, offset: 0, seq_len }
}

/// `theta_i` of plain RoPE.
fn plain(d: usize, base: f64) -> Vec<f64> {
    (0..d / 2).map(|i| (-base.ln() * 2.0 * i as f64 / d as f64).exp()).collect()
}

/// Head sizes from the smallest to that of a large model, any base, factors with a fraction too.
fn settings() -> impl Strategy<Value = (usize, f64, f64)> {
    let d = prop::sample::select(vec![4usize, 6, 8, 10, 16, 64, 128]);
    (d, 100.0..1e6f64, 1.0..16.0f64)
        .prop_map(|(d, base, s)| (d, base.round(), (4.0 * s).round() / 4.0))
}

fn dynamic(factor: f64, max_seq_len: usize) -> Stretch {
    Stretch::DynamicNtk { factor, max_seq_len }
}

fn yarn(factor: f64, max_seq_len: usize) -> Stretch {
    Stretch::Yarn { factor, max_seq_len, beta_fast: 32.0, beta_slow: 1.0, truncate: true }
}

fn llama3(factor: f64, max_seq_len: usize, [low, high]: [f64; 2]) -> Stretch {
    Stretch::Llama3 { factor, max_seq_len, low_freq_factor: low, high_freq_factor: high }
}

/// Divisors that fall and rise, and lie on both sides of 1.
fn longrope(factor: f64, max_seq_len: usize) -> Stretch {
    Stretch::LongRope {
        factor,
        max_seq_len,
        short_factor: vec![1.0, 1.125, 1.5, 1.25],
        long_factor: vec![1.0, 3.0, 2.5, 7.0],
    }
}

// --- asking ---------------------------------------------------------------------------------

/// The frequencies and the scale, as many as there must be.
fn ask(rope: &Any, case: &FrequenciesCase) -> Step<Frequencies> {
    let got =
        answer("frequencies", || rope.frequencies(case)).map_err(|violation| violation.on(case))?;
    let (planes, got_planes) = (case.rotary_dim / 2, got.frequencies.len());
    if got_planes == planes {
        return Ok(got);
    }
    let fault = Fault::Length { shape: vec![planes], got: got_planes };
    Err(Violation::new("frequencies", fault).on(case))
}

/// How far each of a case's frequencies may be off.
fn off(case: &FrequenciesCase) -> Vec<f64> {
    of_frequencies(case, &Oracle.frequencies(case)).0
}

/// Compares frequencies with what they should be, `times` what one answer may be off.
fn expect(case: &FrequenciesCase, got: &[f64], expected: &[f64], times: f64, what: &str) -> Step {
    let off = off(case);
    let why = format!("{what}. {FREQUENCY_WHY}");
    within_f64("frequencies", &[expected.len()], got, expected, |i| times * off[i], &why)
        .map_err(|violation| violation.on(case))
}

fn expect_scale(case: &FrequenciesCase, got: f64, expected: f64, what: &str) -> Step {
    let why = format!("the scale is {what}. {SCALE_WHY}");
    within_f64("frequencies", &[1], &[got], &[expected], |_| 4.0 * U * expected, &why)
        .map_err(|violation| violation.on(case))
}

/// What a rule must give: the frequencies and the scale of the loops.
pub(in crate::frequencies) fn matches_frequencies(rope: &Any, case: &FrequenciesCase) -> Step {
    let right = Oracle.frequencies(case);
    let got = ask(rope, case)?;
    expect(case, &got.frequencies, &right.frequencies, 1.0, "what f64 loops give")?;
    let (_, scale) = of_frequencies(case, &right);
    within_f64("frequencies", &[1], &[got.scale], &[right.scale], |_| scale, SCALE_WHY)
        .map_err(|violation| violation.on(case))
}

/// One answer, and another one that must be the same, bit for bit.
fn same(case: &FrequenciesCase, got: &Frequencies, expected: &Frequencies, why: &str) -> Step {
    let shape = [expected.frequencies.len()];
    within_f64("frequencies", &shape, &got.frequencies, &expected.frequencies, |_| 0.0, why)
        .and_then(|()| {
            within_f64("frequencies", &[1], &[got.scale], &[expected.scale], |_| 0.0, why)
        })
        .map_err(|violation| violation.on(case))
}

// --- position interpolation -----------------------------------------------------------------

/// With interpolation, position m·k turns as far as position m does without it.
#[law("frequencies/interpolation-at-a-multiple", see = "frequencies#interpolation", about = Frequencies, points = 2,
    formula = "k·θ'ᵢ = θᵢ")]
pub(super) fn interpolation_at_a_multiple(rope: &Any, run: &Run) -> Verdict {
    run.forall(settings().prop_map(Sized), |&Sized((d, base, factor))| {
        let case = call(Stretch::Interpolated { factor }, d, base, 8);
        let slow = ask(rope, &case)?.frequencies;
        let times: Vec<f64> = slow.iter().map(|theta| theta * factor).collect();
        let off = off(&case);
        let why = format!("k times it is the plain frequency. {FREQUENCY_WHY}");
        let tolerance = |i: usize| factor * off[i];
        within_f64("frequencies", &[d / 2], &times, &plain(d, base), tolerance, &why)
            .map_err(|violation| violation.on(&case))
    })?;
    Ok(None)
}

/// A size, a base and a factor.
#[derive(Debug, Clone, Copy)]
struct Sized((usize, f64, f64));

impl std::fmt::Display for Sized {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self((d, base, factor)) = self;
        write!(f, "rotary_dim {d}, base {base}, factor {factor}")
    }
}

/// For any size, base and factor, interpolated frequencies are those of the formula.
#[law("frequencies/interpolation-any", see = "frequencies#interpolation", about = Frequencies, points = 2,
    formula = "θ'ᵢ = θᵢ / k", stays = NET)]
pub(super) fn interpolation_any(rope: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "frequencies (interpolated)")
}

/// If only a part of a head turns, its frequencies are those of a head of that size.
#[law("frequencies/part-as-a-small-head", see = "frequencies#definition", about = Frequencies, points = 1,
    formula = "θᵢ(d of hd) = θᵢ(d of d)")]
pub(super) fn part_as_a_small_head(rope: &Any, _: &Run) -> Verdict {
    for (rule, d, head_dim) in [
        (Stretch::Ntk { factor: 2.0 }, 4, 8),
        (Stretch::Ntk { factor: 4.0 }, 6, 8),
        (Stretch::Ntk { factor: 1.5 }, 4, 64),
    ] {
        let small = call(rule, d, 10_000.0, 8);
        let part = FrequenciesCase { head_dim, ..small.clone() };
        let (expected, got) = (ask(rope, &small)?, ask(rope, &part)?);
        same(&part, &got, &expected, "what a head of rotary_dim elements has, all of which turn")?;
    }
    Ok(None)
}

// --- NTK ------------------------------------------------------------------------------------

/// NTK leaves the fastest plane as it is, and slows the slowest by the factor.
#[law("frequencies/ntk-ends", see = "frequencies#ntk", about = Frequencies, points = 2,
    formula = "θ'₀ = 1,  θ'ₙ = θₙ / k,  n = d/2 − 1",
    stays = "Dynamic NTK has the same power and shows the same bugs. This law is for code that has NTK alone.")]
pub(super) fn ntk_ends(rope: &Any, run: &Run) -> Verdict {
    run.forall(settings().prop_map(Sized), |&Sized((d, base, factor))| {
        let case = call(Stretch::Ntk { factor }, d, base, 8);
        let got = ask(rope, &case)?.frequencies;
        let last = d / 2 - 1;
        let expected = [1.0, plain(d, base)[last] / factor];
        let off = off(&case);
        let why = format!("1, and that of the slowest plane divided by k. {FREQUENCY_WHY}");
        let tolerance = |i: usize| 2.0 * off[[0, last][i]];
        within_f64("frequencies", &[2], &[got[0], got[last]], &expected, tolerance, &why)
            .map_err(|violation| violation.on(format!("{case}; first and last plane")))
    })?;
    Ok(None)
}

/// With NTK, each plane is slower than the one before by the same quotient.
#[law("frequencies/ntk-is-one-base", see = "frequencies#ntk", about = Frequencies, points = 1,
    formula = "θ'ᵢ₊₁ / θ'ᵢ = const")]
pub(super) fn ntk_is_one_base(rope: &Any, run: &Run) -> Verdict {
    run.forall(settings().prop_map(Sized), |&Sized((d, base, factor))| {
        let case = call(Stretch::Ntk { factor }, d, base, 8);
        let theta = ask(rope, &case)?.frequencies;
        let quotients: Vec<f64> = theta.windows(2).map(|pair| pair[1] / pair[0]).collect();
        // Both frequencies of a quotient may be off, and so may both of the first one.
        let right = Oracle.frequencies(&case).frequencies;
        let slowest = off(&case)[d / 2 - 1] / right[d / 2 - 1];
        let expected = vec![quotients[0]; quotients.len()];
        let tolerance = |_| 4.0 * slowest * quotients[0].abs();
        let why = format!("the first quotient; four frequencies are in the two. {FREQUENCY_WHY}");
        within_f64("frequencies", &[expected.len()], &quotients, &expected, tolerance, &why)
            .map_err(|violation| violation.on(format!("{case}; quotients of neighbours")))
    })?;
    Ok(None)
}

/// For any size, base and factor, NTK's frequencies are those of the formula.
#[law("frequencies/ntk-any", see = "frequencies#ntk", about = Frequencies, points = 2,
    formula = "θ'ᵢ = θᵢ(base'),  ln base' = ln base + d/(d−2)·ln k", stays = NET)]
pub(super) fn ntk_any(rope: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "frequencies (ntk)")
}

// --- dynamic NTK ----------------------------------------------------------------------------

/// Dynamic NTK changes no frequency of calls up to the trained length.
#[law("frequencies/dynamic-short-is-plain", see = "frequencies#dynamic", about = Frequencies, points = 2,
    formula = "L ≤ ms  ⇒  θ' = θ",
    stays = "It asks only short calls. After a longer one, another law asks the same.")]
pub(super) fn dynamic_short_is_plain(rope: &Any, _: &Run) -> Verdict {
    for (factor, ms) in [(2.0, 16), (8.0, 100), (1.0, 64)] {
        for length in [1, ms / 2, ms - 1, ms] {
            let case = call(dynamic(factor, ms), 8, 10_000.0, length);
            let got = ask(rope, &case)?.frequencies;
            expect(
                &case,
                &got,
                &plain(8, 10_000.0),
                1.0,
                "plain RoPE: the call is no longer than ms",
            )?;
        }
    }
    Ok(None)
}

/// Past the trained length, each further position slows the slowest plane by the same amount.
#[law("frequencies/dynamic-slowest-plane", see = "frequencies#dynamic", about = Frequencies, points = 2,
    formula = "L > ms  ⇒  θₙ / θ'ₙ = 1 + f·(L − ms)/ms")]
pub(super) fn dynamic_slowest_plane(rope: &Any, run: &Run) -> Verdict {
    // A separate length for each run: keeping the longest call is covered by another law.
    let more = (run.seed % 997) as usize;
    for (factor, ms) in [(2.0, 17 + more), (8.0, 101 + more), (1.0, 65 + more)] {
        for past in [1, ms / 2, ms, 5 * ms] {
            let case = call(dynamic(factor, ms), 6, 500.0, ms + past);
            let slowest = ask(rope, &case)?.frequencies[2];
            let ratio = 1.0 + factor * past as f64 / ms as f64;
            let (expected, off) = ([plain(6, 500.0)[2] / ratio], off(&case)[2]);
            let why = format!("plain, divided by 1 + f·(L − ms)/ms = {ratio}. {FREQUENCY_WHY}");
            within_f64("frequencies", &[1], &[slowest], &expected, |_| 2.0 * off, &why)
                .map_err(|violation| violation.on(format!("{case}; last plane")))?;
        }
    }
    Ok(None)
}

/// A short call after a long one has the frequencies that it had before.
#[law("frequencies/dynamic-forgets", see = "frequencies#dynamic", about = State, points = 2,
    formula = "θ'(L) after θ'(L₂) = θ'(L), bit for bit")]
pub(super) fn dynamic_forgets(rope: &Any, _: &Run) -> Verdict {
    for (factor, ms) in [(3.0, 19), (5.0, 99)] {
        let call = |length| call(dynamic(factor, ms), 8, 10_000.0, length);
        for length in [ms / 2, ms] {
            ask(rope, &call(7 * ms))?;
            let got = ask(rope, &call(length))?.frequencies;
            let what = "plain RoPE, also after a call of 7 ms: this one is no longer than ms";
            expect(&call(length), &got, &plain(8, 10_000.0), 1.0, what)?;
        }
    }
    Ok(None)
}

/// The length that counts is that of the text, from position 0 to the end of the call.
#[law("frequencies/length-from-the-start", see = "frequencies#dynamic", about = Offset, points = 2,
    formula = "θ'(offset a, n rows) = θ'(offset 0, a + n rows)")]
pub(super) fn length_from_the_start(rope: &Any, _: &Run) -> Verdict {
    for factor in [2.5, 1.5] {
        for length in [23, 24, 40] {
            let whole = call(dynamic(factor, 23), 8, 10_000.0, length);
            let expected = ask(rope, &whole)?;
            for seq_len in [1, 2, length - 1] {
                let case = FrequenciesCase { offset: length - seq_len, seq_len, ..whole.clone() };
                let why = "what a call from position 0 to the same end has";
                same(&case, &ask(rope, &case)?, &expected, why)?;
            }
        }
    }
    Ok(None)
}

/// For any settings and length, dynamic frequencies are those of the formula.
#[law("frequencies/dynamic-any", see = "frequencies#dynamic", about = Frequencies, points = 2,
    formula = "θ' = NTK with k = f·L/ms − (f − 1), or 1", stays = NET)]
pub(super) fn dynamic_any(rope: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "frequencies (dynamic)")
}

// --- LongRoPE -------------------------------------------------------------------------------

/// LongRoPE divides by the short list up to the trained length, and by the long one beyond it.
#[law("frequencies/longrope-list-by-length", see = "frequencies#longrope", about = Frequencies, points = 2,
    formula = "L ≤ ms  ⇒  θ'ᵢ = θᵢ / shortᵢ,  else θᵢ / longᵢ")]
pub(super) fn longrope_list_by_length(rope: &Any, _: &Run) -> Verdict {
    let rule = longrope(4.0, 32);
    let Stretch::LongRope { short_factor, long_factor, .. } = &rule else { return Ok(None) };
    for (length, divisors) in [
        (1, short_factor),
        (31, short_factor),
        (32, short_factor),
        (33, long_factor),
        (128, long_factor),
    ] {
        let case = call(rule.clone(), 8, 10_000.0, length);
        let got = ask(rope, &case)?.frequencies;
        let expected: Vec<f64> =
            plain(8, 10_000.0).iter().zip(divisors).map(|(theta, by)| theta / by).collect();
        let what = "plain, divided by the short list up to ms and by the long one beyond it";
        expect(&case, &got, &expected, 1.0, what)?;
    }
    Ok(None)
}

/// LongRoPE takes its divisors as they are, even below 1 or above k.
#[law("frequencies/longrope-any-divisor", see = "frequencies#longrope", about = Frequencies, points = 1,
    formula = "shortᵢ = ½  ⇒  θ'ᵢ = 2·θᵢ")]
pub(super) fn longrope_any_divisor(rope: &Any, _: &Run) -> Verdict {
    let divisors = vec![0.5, 16.0, 0.75, 32.0];
    let rule = Stretch::LongRope {
        factor: 4.0,
        max_seq_len: 32,
        short_factor: divisors.clone(),
        long_factor: divisors.clone(),
    };
    for length in [32, 64] {
        let case = call(rule.clone(), 8, 10_000.0, length);
        let times: Vec<f64> = ask(rope, &case)?
            .frequencies
            .iter()
            .zip(&divisors)
            .map(|(theta, by)| theta * by)
            .collect();
        let off = off(&case);
        let why = format!("the divisor times it is the plain frequency. {FREQUENCY_WHY}");
        let tolerance = |i: usize| off[i] * divisors[i];
        within_f64("frequencies", &[4], &times, &plain(8, 10_000.0), tolerance, &why)
            .map_err(|violation| violation.on(&case))?;
    }
    Ok(None)
}

/// LongRoPE's scale depends on the factor and the trained length, and is the same with both lists.
#[law("frequencies/longrope-scale", see = "frequencies#longrope", about = Frequencies, points = 2,
    formula = "scale² = 1 + ln k / ln ms")]
pub(super) fn longrope_scale(rope: &Any, _: &Run) -> Verdict {
    // Scales that can be written down: ln k / ln ms is 1, 1/2, 3 and 0.
    for (factor, ms, squared) in [(64.0, 64, 2.0), (8.0, 64, 1.5), (64.0, 4, 4.0), (1.0, 64, 1.0)] {
        for length in [ms / 2, 3 * ms] {
            let case = call(longrope(factor, ms), 8, 10_000.0, length);
            let got = ask(rope, &case)?.scale;
            expect_scale(&case, got, f64::sqrt(squared), "the root of 1 + ln k / ln ms")?;
        }
    }
    Ok(None)
}

/// For any lists and lengths, LongRoPE's frequencies and scale are those of the formula.
#[law("frequencies/longrope-any", see = "frequencies#longrope", about = Frequencies, points = 2,
    formula = "θ'ᵢ = θᵢ / divisorᵢ,  scale² = 1 + ln k / ln ms", stays = NET)]
pub(super) fn longrope_any(rope: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "frequencies (longrope)")
}

// --- YaRN -----------------------------------------------------------------------------------

/// Head size, base and trained length of published models, and small ones. The ends of their ramps are far from whole
/// numbers, so that no rounding moves them.
const YARN: [(usize, f64, usize); 3] =
    [(64, 10_000.0, 4096), (128, 1e6, 32_768), (32, 500.0, 1000)];

/// The plane, not whole, that turns so often over `ms`.
fn plane_that_turns(turns: f64, d: usize, base: f64, ms: usize) -> f64 {
    d as f64 / 2.0 * (ms as f64 / TAU / turns).ln() / base.ln()
}

/// YaRN leaves planes that turn often over the trained length unchanged, and interpolates those that do not turn once.
#[law("frequencies/yarn-ends", see = "frequencies#yarn", about = Frequencies, points = 2,
    formula = "turns > 32  ⇒  θ' = θ;  turns < 1  ⇒  θ' = θ / k",
    stays = "It counts turns and knows no planes, so it can be checked by hand.")]
pub(super) fn yarn_ends(rope: &Any, _: &Run) -> Verdict {
    for (d, base, ms) in YARN {
        for factor in [2.0, 16.0] {
            let case = call(yarn(factor, ms), d, base, 8);
            let (mut got, mut expected) = (ask(rope, &case)?.frequencies, plain(d, base));
            for (i, theta) in expected.iter_mut().enumerate() {
                let turns = ms as f64 * *theta / TAU;
                match turns {
                    _ if turns > 32.0 => {}
                    _ if turns < 1.0 => *theta /= factor,
                    _ => (*theta, got[i]) = (0.0, 0.0), // on the ramp
                }
            }
            let what = "plain for planes that turn more than 32 times over ms, divided by k for those that do not turn \
                        once; those between are not compared";
            expect(&case, &got, &expected, 1.0, what)?;
        }
    }
    Ok(None)
}

/// The share of each plane that stays, as the answer shows: 1 is plain, 0 is interpolated.
fn shares(case: &FrequenciesCase, got: &[f64], factor: f64) -> Vec<f64> {
    let share = |(got, theta): (&f64, f64)| (got / theta - 1.0 / factor) / (1.0 - 1.0 / factor);
    got.iter().zip(plain(case.rotary_dim, case.base)).map(share).collect()
}

/// How far such shares may be off.
fn off_shares(case: &FrequenciesCase, factor: f64) -> Vec<f64> {
    let (off, theta) = (off(case), plain(case.rotary_dim, case.base));
    (0..off.len()).map(|i| off[i] / theta[i] / (1.0 - 1.0 / factor)).collect()
}

fn ramp(rope: &Any, truncate: bool) -> Verdict {
    for (d, base, ms) in YARN {
        let factor = 4.0;
        let rule =
            Stretch::Yarn { factor, max_seq_len: ms, beta_fast: 32.0, beta_slow: 1.0, truncate };
        let case = call(rule, d, base, 8);
        let ends = [32.0, 1.0].map(|turns| plane_that_turns(turns, d, base, ms));
        let [first, last] = if truncate { [ends[0].floor(), ends[1].ceil()] } else { ends };
        let expected: Vec<f64> =
            (0..d / 2).map(|i| ((last - i as f64) / (last - first)).clamp(0.0, 1.0)).collect();
        let got = shares(&case, &ask(rope, &case)?.frequencies, factor);
        let off = off_shares(&case, factor);
        let why = format!(
            "the share that stays falls from 1 at plane {first} to 0 at plane {last}. {FREQUENCY_WHY}"
        );
        within_f64("frequencies", &[d / 2], &got, &expected, |i| off[i], &why)
            .map_err(|violation| violation.on(format!("{case}; shares")))?;
    }
    Ok(None)
}

/// In between, YaRN's ramp falls by equal steps from plane to plane, and its ends are whole planes.
#[law("frequencies/yarn-ramp", see = "frequencies#yarn", about = Frequencies, points = 2,
    formula = "keptᵢ − keptᵢ₊₁ = 1/(last − first),  first = ⌊…⌋,  last = ⌈…⌉")]
pub(super) fn yarn_ramp(rope: &Any, _: &Run) -> Verdict {
    ramp(rope, true)
}

/// With truncate = false, the ends of the ramp are not rounded.
#[law("frequencies/yarn-not-rounded", see = "frequencies#yarn", about = Frequencies, points = 1,
    formula = "keptᵢ = 1 − (i − first)/(last − first),  first and last not whole")]
pub(super) fn yarn_not_rounded(rope: &Any, _: &Run) -> Verdict {
    ramp(rope, false)
}

/// YaRN scales queries and keys by a number that grows with the logarithm of the factor.
#[law("frequencies/yarn-scale", see = "frequencies#yarn", about = Frequencies, points = 2,
    formula = "scale = 0.1·ln k + 1")]
pub(super) fn yarn_scale(rope: &Any, _: &Run) -> Verdict {
    for (factor, expected) in [(1.0, 1.0), (2.0, 1.069_314_718), (16.0, 1.277_258_872)] {
        let case = call(yarn(factor, 4096), 64, 10_000.0, 8);
        let got = ask(rope, &case)?.scale;
        expect_scale(&case, got, expected, "0.1·ln k + 1")?;
    }
    Ok(None)
}

/// Each plane's frequency lies between its interpolated and its plain one, and below that of the plane before.
#[law("frequencies/yarn-between", see = "frequencies#yarn", about = Frequencies, points = 1,
    formula = "θᵢ / k ≤ θ'ᵢ ≤ θᵢ,  θ'ᵢ₊₁ < θ'ᵢ",
    stays = "It needs no formula of the ramp: any other ramp keeps it too.")]
pub(super) fn yarn_between(rope: &Any, _: &Run) -> Verdict {
    for (d, base, ms) in YARN {
        let factor = 8.0;
        let case = call(yarn(factor, ms), d, base, 8);
        let (got, off) = (ask(rope, &case)?.frequencies, off(&case));
        for (i, theta) in plain(d, base).into_iter().enumerate() {
            let between = (theta / factor - off[i]..=theta + off[i]).contains(&got[i]);
            holds("frequencies", between, || {
                format!(
                    "plane {i} has {}, which is not between {} and {theta}",
                    got[i],
                    theta / factor
                )
            })
            .map_err(|violation| violation.on(&case))?;
            let falls = i == 0 || got[i] < got[i - 1];
            holds("frequencies", falls, || format!("plane {i} is no slower than the one before"))
                .map_err(|violation| violation.on(&case))?;
        }
    }
    Ok(None)
}

/// For any settings, YaRN's frequencies and scale are those of the formula.
#[law("frequencies/yarn-any", see = "frequencies#yarn", about = Frequencies, points = 2,
    formula = "θ'ᵢ = θᵢ·keptᵢ + θᵢ/k·(1 − keptᵢ)", stays = NET)]
pub(super) fn yarn_any(rope: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "frequencies (yarn)")
}

// --- Llama 3 --------------------------------------------------------------------------------

/// Head size, base, trained length: Llama 3's, and small ones.
const LLAMA3: [(usize, f64, usize); 3] =
    [(128, 500_000.0, 8192), (32, 10_000.0, 1024), (8, 100.0, 64)];

/// Llama 3's rule leaves planes that turn often over the trained length unchanged, and interpolates those that rarely
/// turn.
#[law("frequencies/llama3-three-bands", see = "frequencies#llama3", about = Frequencies, points = 2,
    formula = "turns > high  ⇒  θ' = θ;  turns < low  ⇒  θ' = θ / k")]
pub(super) fn llama3_three_bands(rope: &Any, _: &Run) -> Verdict {
    for (d, base, ms) in LLAMA3 {
        let factor = 8.0;
        let case = call(llama3(factor, ms, [1.0, 4.0]), d, base, 8);
        let (mut got, mut expected) = (ask(rope, &case)?.frequencies, plain(d, base));
        for (i, theta) in expected.iter_mut().enumerate() {
            let turns = ms as f64 * *theta / TAU;
            match turns {
                _ if turns > 4.0 => {}
                _ if turns < 1.0 => *theta /= factor,
                _ => (*theta, got[i]) = (0.0, 0.0), // between
            }
        }
        let what = "plain for planes that turn more than 4 times over ms, divided by k for those that do not turn once; those \
                    between are not compared";
        expect(&case, &got, &expected, 1.0, what)?;
    }
    Ok(None)
}

/// What plane `i` becomes, with limits that are made from how often it turns.
fn plane_with(
    rope: &Any,
    i: usize,
    limits: impl Fn(f64) -> [f64; 2],
) -> Step<(FrequenciesCase, f64, f64)> {
    let (d, base, ms) = (16, 1000.0, 3000);
    let theta = plain(d, base)[i];
    let case = call(llama3(5.0, ms, limits(ms as f64 * theta / TAU)), d, base, 8);
    let got = ask(rope, &case)?.frequencies[i];
    Ok((case, theta, got))
}

/// A plane a quarter of the way from low to high keeps a quarter of its frequency.
#[law("frequencies/llama3-a-quarter", see = "frequencies#llama3", about = Frequencies, points = 2,
    formula = "turns = low + ¼(high − low)  ⇒  θ' = ¼θ + ¾θ/k")]
pub(super) fn llama3_a_quarter(rope: &Any, _: &Run) -> Verdict {
    for i in [0, 3, 7] {
        let (case, theta, got) = plane_with(rope, i, |turns| [0.75 * turns, 1.75 * turns])?;
        let (expected, off) = ([0.25 * theta + 0.75 * theta / 5.0], off(&case)[i]);
        let why = format!("a quarter of θ and three quarters of θ/k. {FREQUENCY_WHY}");
        within_f64("frequencies", &[1], &[got], &expected, |_| off, &why)
            .map_err(|violation| violation.on(format!("{case}; plane {i}")))?;
    }
    Ok(None)
}

/// Where a band ends, the next one begins with the same frequency.
#[law("frequencies/llama3-no-jump", see = "frequencies#llama3", about = Frequencies, points = 1,
    formula = "turns → low  ⇒  θ' → θ/k;  turns → high  ⇒  θ' → θ",
    stays = "It knows no formula of the ramp: any other one without a jump keeps it.")]
pub(super) fn llama3_no_jump(rope: &Any, _: &Run) -> Verdict {
    // A thousandth of the way inside an end, and outside it.
    for (i, step) in [(0, 1e-3), (3, -1e-3), (7, 1e-3)] {
        for (end, kept) in [(0.0, 0.0), (1.0, 1.0)] {
            let (case, theta, got) = plane_with(rope, i, |turns| {
                let (width, inside) = (turns / 2.0, end + step);
                [turns - inside * width, turns + (1.0 - inside) * width]
            })?;
            let expected = [theta / 5.0 + kept * (theta - theta / 5.0)];
            // A ramp of frequencies climbs by less than θ, and one of wavelengths by k·θ at its steepest.
            let off = off(&case)[i] + 5e-3 * theta;
            let why = format!("what the next band has, and k thousandths of θ. {FREQUENCY_WHY}");
            within_f64("frequencies", &[1], &[got], &expected, |_| off, &why)
                .map_err(|violation| violation.on(format!("{case}; plane {i}")))?;
        }
    }
    Ok(None)
}

/// Only the number of turns counts: multiplying the trained length and both limits by the same number changes nothing.
#[law("frequencies/llama3-turns-alone", see = "frequencies#llama3", about = Frequencies, points = 1,
    formula = "θ'(2ms, 2low, 2high) = θ'(ms, low, high)",
    stays = "A law without an oracle: a fixed length or limit breaks it.")]
pub(super) fn llama3_turns_alone(rope: &Any, _: &Run) -> Verdict {
    for (d, base, ms) in LLAMA3 {
        let case = |times: usize| {
            let limits = [1.0, 4.0].map(|turns| turns * times as f64);
            call(llama3(4.0, times * ms, limits), d, base, 8)
        };
        let once = ask(rope, &case(1))?.frequencies;
        for times in [2, 16] {
            let case = case(times);
            let got = ask(rope, &case)?.frequencies;
            expect(&case, &got, &once, 2.0, "what shorter texts with smaller limits have")?;
        }
    }
    Ok(None)
}

/// For any settings, Llama 3's frequencies are those of the formula.
#[law("frequencies/llama3-any", see = "frequencies#llama3", about = Frequencies, points = 2,
    formula = "θ'ᵢ = θᵢ·kept + θᵢ/k·(1 − kept),  kept = (turns − low)/(high − low), cut to 0 … 1", stays = NET)]
pub(super) fn llama3_any(rope: &Any, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "frequencies (llama3)")
}
