//! The ratio of long calls, and the module: a small machine that is called several times.

use super::frequencies::{TABLE_WHY, table_tolerance};
use super::{Rope, partner_sizes, values};
use crate::category::Category;
use crate::component::{NET, law};
use crate::graded_cases::judge::judge_graded_cases;
use crate::laws::{U, widen};
use crate::oracle::Oracle;
use crate::rope::interface::*;
use crate::rope::menu;
use crate::rope::oracle::{RopeLoops, implementation};
use crate::run::Run;
use crate::violation::*;
use proptest::prelude::*;
use std::fmt;

// --- ratio_for_length -----------------------------------------------------------------------

fn ratio(rope: &Rope, length: usize, max_seq_len: usize) -> Step<usize> {
    answer("ratio_for_length", || rope.ratio_for_length(length, max_seq_len))
        .map_err(|violation| violation.on(format!("length {length}, max_seq_len {max_seq_len}")))
}

/// A long call's ratio is right at the edges: it changes one position past a multiple of 2·ms, to the next even number.
#[law("rope/long-ratio-edges", see = "longer#long-calls", about = Frequencies, points = 2,
    formula = "k'(L) = 2·⌈L / (2·ms)⌉;  ms = 3: k'(6) = 2, k'(7) = 4, k'(13) = 6",
    stays = "The edges by hand, where every wrong rounding shows.")]
pub(super) fn long_ratio_edges(rope: &Rope, _: &Run) -> Verdict {
    for (length, max_seq_len, expected) in [
        (4, 3, 2), // one past 3 positions
        (6, 3, 2), // the end of 3 · 2
        (7, 3, 4), // one past it
        (12, 3, 4),
        (13, 3, 6), // 6 is even, and no power of 2
        (2049, 2048, 2),
        (4097, 2048, 4),
        (11, 1, 12),
        ((1 << 26) + 1, 2048, (1 << 15) + 2), // f32 has no 2²⁶ + 1
    ] {
        let got = ratio(rope, length, max_seq_len)?;
        holds("ratio_for_length", got == expected, || {
            format!(
                "k' should be {expected}, the smallest even number with {max_seq_len}·k' ≥ \
                 {length}. It is {got}"
            )
        })
        .map_err(|violation| violation.on(format!("length {length}, max_seq_len {max_seq_len}")))?;
    }
    Ok(None)
}

/// For any length and training length, even the largest, the ratio is the one that the definition gives.
#[law("rope/ratio-any-length", see = "longer#long-calls", about = Frequencies, points = 1,
    formula = "k' = 2·⌈L / (2·ms)⌉,  L to 2⁶⁴ − 1", stays = NET)]
pub(super) fn ratio_any_length(rope: &Rope, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "ratio_for_length")
}

/// What a ratio must be.
pub(in crate::rope) fn matches_ratio(rope: &Rope, length: usize, max_seq_len: usize) -> Step {
    let got = ratio(rope, length, max_seq_len)?;
    let expected = 2 * length.div_ceil(2 * max_seq_len);
    holds("ratio_for_length", got == expected, || format!("k' should be {expected}. It is {got}"))
        .map_err(|violation| violation.on(format!("length {length}, max_seq_len {max_seq_len}")))
}

/// There is no ratio for a training length of 0.
pub(in crate::rope) fn no_ratio(rope: &Rope) -> Step {
    refusal("ratio_for_length", "max_seq_len 0", || rope.ratio_for_length(5, 0))
        .map(|_words| ())
        .map_err(|violation| violation.on("length 5, max_seq_len 0"))
}

/// A long call's ratio is even, large enough, and no smaller even number would do.
#[law("rope/long-ratio-smallest-even", see = "longer#long-calls", about = Frequencies, points = 1,
    formula = "k' even,  ms·k' ≥ L,  ms·(k' − 2) < L")]
pub(super) fn long_ratio_smallest_even(rope: &Rope, run: &Run) -> Verdict {
    run.integers(|&(length, max_seq_len): &(u32, u16)| {
        let (length, max_seq_len) = (length as usize + 1, max_seq_len as usize + 1);
        let k = ratio(rope, length, max_seq_len)?;
        let rows = |k: usize| k.saturating_mul(max_seq_len);
        let even = k > 0 && k.is_multiple_of(2);
        let holds = |good, what: &str| {
            holds("ratio_for_length", good, || format!("k' is {k}, {what}"))
                .map_err(|b| b.on(format!("length {length}, max_seq_len {max_seq_len}")))
        };
        holds(even, "which is not even")?;
        holds(rows(k) >= length, "which is too small")?;
        holds(k < 2 || rows(k - 2) < length, "but 2 less would do")
    })?;
    Ok(None)
}

// --- modules, and scripts for them ------------------------------------------------------------

pub(super) type Module = Box<dyn RopeModule>;

pub(in crate::rope) fn settings(
    head_dim: usize,
    max_seq_len: usize,
    ratio: usize,
    dynamic: bool,
) -> RopeSettings {
    RopeSettings { head_dim, base: 10_000.0, max_seq_len, ratio, dynamic }
}

/// A module that is called several times. The input of each call is [`sample`].
#[derive(Debug, Clone)]
struct Script {
    settings: RopeSettings,
    /// Offset and number of rows.
    calls: Vec<(usize, usize)>,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.settings)?;
        let es = self.settings.max_seq_len * self.settings.ratio;
        write!(f, "\n{es} rows are cached at first. Calls, one after the other:")?;
        for (offset, s) in &self.calls {
            write!(f, "\noffset {offset}, {s} rows: positions {offset}..{}", offset + s)?;
        }
        Ok(())
    }
}

impl Script {
    fn case(&self, call: usize) -> RopeCase {
        let (offset, s) = self.calls[call];
        sample(self.settings.head_dim, offset, s)
    }
}

/// A call with two batch rows and two heads, uneven values of both signs.
fn sample(d: usize, offset: usize, s: usize) -> RopeCase {
    sample_of([2, s, 2, d], offset)
}

pub(super) fn sample_of(shape: [usize; 4], offset: usize) -> RopeCase {
    let n = shape.iter().product::<usize>();
    let x = (0..n).map(|i| ((i * 29 + 7) % 32) as f32 / 8.0 - 1.9375).collect();
    RopeCase { shape, offset, x }
}

pub(super) fn build(rope: &Rope, settings: &RopeSettings) -> Step<Module> {
    answer("build", || rope.build(settings)).map_err(|violation| violation.on(settings))
}

pub(super) fn forward(module: &mut Module, case: &RopeCase) -> Step<Vec<f32>> {
    let y = answer("forward", || module.forward(case))?;
    let length = Fault::Length { shape: case.shape.to_vec(), got: y.len() };
    if y.len() == case.x.len() { Ok(y) } else { Err(Violation::new("forward", length)) }
}

fn state(module: &Module) -> Step<RopeState> {
    answer("state", || module.state())
}

/// The oracle's module. The settings are always good ones.
fn truth(settings: &RopeSettings) -> Step<Module> {
    build(&*implementation(Oracle), settings)
}

/// How far a call may be off: its tables, and the turn.
fn call_tolerance(case: &RopeCase) -> Vec<f64> {
    tolerance_at(case, |token| case.offset.saturating_add(token % case.shape[1]))
}

/// The same, where each token, counted through all batch rows, has its own position.
pub(super) fn tolerance_at(case: &RopeCase, position: impl Fn(usize) -> usize) -> Vec<f64> {
    let [_, _, nh, d] = case.shape;
    let off = |i: usize| table_tolerance(position(i / d / nh)) + 4.0 * U;
    let sizes = partner_sizes(d, &case.x);
    sizes.iter().enumerate().map(|(i, size)| off(i) * size).collect()
}

pub(super) const CALL_WHY: &str = "(n·2⁻²³ + 8·2⁻²⁴)·(|x| + |partner|) at position n: an angle in f32, the \
                        rounding of cos and sin, and the turn in f32";

fn expect_values(case: &RopeCase, got: &[f32], expected: &[f32], why: &str) -> Step {
    let tolerance = call_tolerance(case);
    within("forward", &case.shape, got, &widen(expected), |i| tolerance[i], why)
}

/// The module's state is the oracle's: numbers exactly, tables up to their precision.
fn expect_state(module: &Module, truth: &Module) -> Step {
    let (got, expected) = (state(module)?, state(truth)?);
    let numbers = |state: &RopeState| format!("k = {}, {} rows", state.ratio, state.cached_len);
    let same = (got.ratio, got.cached_len) == (expected.ratio, expected.cached_len);
    holds("state", same, || {
        format!("the module should hold {}. It holds {}", numbers(&expected), numbers(&got))
    })?;
    let (ratio, d) = (expected.ratio, expected.tables.cos.len() / expected.cached_len);
    let shape = [expected.cached_len, d];
    for (part, got, expected) in [
        ("cos", &got.tables.cos, &expected.tables.cos),
        ("sin", &got.tables.sin, &expected.tables.sin),
    ] {
        let why = format!("cached {part}, ratio {ratio}: {TABLE_WHY}");
        let tolerance = |i: usize| table_tolerance(i / d) + U; // the oracle's are rounded too
        within("state", &shape, got, &widen(expected), tolerance, &why)?;
    }
    Ok(())
}

/// Which calls of a script are judged, and whether the state after each is.
#[derive(Clone, Copy)]
struct Judged {
    from: usize,
    values: bool,
    states: bool,
}

const VALUES: Judged = Judged { from: 0, values: true, states: false };
const STATES: Judged = Judged { from: 0, values: false, states: true };

/// Plays a script with the implementation and the oracle.
fn play(rope: &Rope, script: &Script, judged: Judged, why: &str) -> Step {
    let mut module = build(rope, &script.settings)?;
    let mut truth = truth(&script.settings)?;
    let mut call = |call: usize| {
        let case = script.case(call);
        let (got, expected) = (forward(&mut module, &case)?, forward(&mut truth, &case)?);
        if judged.values && call >= judged.from {
            expect_values(&case, &got, &expected, &format!("{why}. {CALL_WHY}"))?;
        }
        if judged.states && call >= judged.from {
            expect_state(&module, &truth)?;
        }
        Ok(())
    };
    (0..script.calls.len()).try_for_each(|i| {
        call(i).map_err(|b: Box<Violation>| b.on(format!("{script}\nwrong at call {}", i + 1)))
    })
}

fn play_all(
    rope: &Rope,
    scripts: impl IntoIterator<Item = (RopeSettings, Vec<(usize, usize)>)>,
    judged: Judged,
    why: &str,
) -> Verdict {
    for (settings, calls) in scripts {
        play(rope, &Script { settings, calls }, judged, why)?;
    }
    Ok(None)
}

// --- short calls ----------------------------------------------------------------------------

/// A new module holds its ratio and a cache of ms·k rows with that ratio's frequencies.
#[law("rope/fresh-state", see = "longer#cache", about = State, points = 2,
    formula = "es = ms·k,  C, S: [es, d]",
    stays = "A wrong cache is named before any call hides or shows it.")]
pub(super) fn fresh_state(rope: &Rope, _: &Run) -> Verdict {
    for dynamic in [false, true] {
        for settings in
            [settings(4, 3, 1, dynamic), settings(6, 5, 3, dynamic), settings(8, 4, 2, dynamic)]
        {
            expect_state(&build(rope, &settings)?, &truth(&settings)?)
                .map_err(|violation| violation.on(settings))?;
        }
    }
    Ok(None)
}

/// Row t of the module's output is turned by position t.
#[law("rope/turns-by-position", see = "rope#rotation", about = Offset, points = 2,
    formula = "x_t = e_j  ⇒  y_t = cos(t·θ_j)·e_j + sin(t·θ_j)·e_{j+d/2}",
    stays = "The module's first answer, by numbers that can be checked by hand.")]
pub(super) fn turns_by_position(rope: &Rope, _: &Run) -> Verdict {
    for ratio in [1, 2] {
        let settings = settings(4, 6, ratio, false);
        let mut module = build(rope, &settings)?;
        for (j, theta) in [(0, 1.0), (1, 0.01 / ratio as f64)] {
            let x = (0..24).map(|i| f32::from(u8::from(i % 4 == j))).collect();
            let case = RopeCase { shape: [1, 6, 1, 4], offset: 0, x };
            let expected = (0..24).map(|i| {
                let angle = (i / 4) as f64 * theta;
                if i % 4 == j {
                    angle.cos()
                } else if i % 4 == j + 2 {
                    angle.sin()
                } else {
                    0.0
                }
            });
            let expected: Vec<f64> = expected.collect();
            let why = format!(
                "x is 1 in dimension {j}: cos(t·θ) stays there and sin(t·θ) goes to dimension \
                 {}, with θ = {theta}",
                j + 2
            );
            let tolerance = call_tolerance(&RopeCase { x: vec![1.0; 24], ..case.clone() });
            forward(&mut module, &case)
                .and_then(|y| within("forward", &case.shape, &y, &expected, |i| tolerance[i], &why))
                .map_err(|violation| violation.on(format!("{settings}\n{case}")))?;
        }
    }
    Ok(None)
}

/// A query and a key of one head, and two offsets.
#[derive(Debug, Clone)]
struct Dot {
    d: usize,
    q: Vec<f32>,
    k: Vec<f32>,
    distance: usize,
    shift: usize,
}

impl fmt::Display for Dot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { d, q, k, distance, shift } = self;
        writeln!(f, "head_dim {d}, max_seq_len 16")?;
        writeln!(f, "q at {distance} and k at 0, then q at {} and k at {shift}", distance + shift)?;
        write!(f, "q = {}\nk = {}", crate::describe::List(q), crate::describe::List(k))
    }
}

/// The inner product of a rotated query and a rotated key depends only on their distance.
#[law("rope/relative-positions", see = "rope#why", about = Offset, points = 2,
    formula = "⟨R_m·q, R_n·k⟩ = ⟨R_{m−n}·q, k⟩",
    stays = "What RoPE is for, in one formula, without an oracle.")]
pub(super) fn relative_positions(rope: &Rope, run: &Run) -> Verdict {
    let dots = (prop::sample::select(&menu::HEAD_DIM[..3]), 0..8usize, 1..8usize).prop_flat_map(
        |(d, distance, shift)| {
            (values(d), values(d)).prop_map(move |(q, k)| Dot { d, q, k, distance, shift })
        },
    );
    run.forall(dots, |Dot { d, q, k, distance, shift }| {
        let mut module = build(rope, &settings(*d, 16, 1, false))?;
        let mut turned = |x: &[f32], offset| {
            forward(&mut module, &RopeCase { shape: [1, 1, 1, *d], offset, x: x.to_vec() })
        };
        let mut dot = |m: usize, n: usize| -> Step<f64> {
            let (q, k) = (widen(&turned(q, m)?), widen(&turned(k, n)?));
            Ok(q.iter().zip(k).map(|(q, k)| q * k).sum())
        };
        let expected = [dot(*distance, 0)?];
        let got = [dot(distance + shift, *shift)?];
        let (q, k) = (partner_sizes(*d, q), partner_sizes(*d, k));
        let terms: f64 = q.iter().zip(k).map(|(q, k)| q * k).sum();
        // Each of the four turns is off by the tolerance of a call.
        let tolerance = 4.0 * (table_tolerance(distance + shift) + 4.0 * U) * terms;
        let why = "⟨q, k⟩ for the same distance, from position 0 on. Four turns at position n, \
                   (n·2⁻²³ + 8·2⁻²⁴) each";
        within_f64("forward", &[1], &got, &expected, |_| tolerance, why)
    })?;
    Ok(None)
}

/// A row alone, with its position as offset, gives the same as among all rows: decoding token by token equals one call.
#[law("rope/offset", see = "longer#offset", about = Offset, points = 3,
    formula = "rope(x)[t] = rope(x[t], offset = t)",
    stays = "Decoding with a cache stands and falls with it; no oracle is needed.")]
pub(super) fn offset_is_position(rope: &Rope, _: &Run) -> Verdict {
    for (d, parts) in [(4, vec![1; 6]), (6, vec![3, 1, 1, 1]), (8, vec![2, 4])] {
        let settings = settings(d, 6, 1, false);
        let whole = sample(d, 0, 6);
        let [b, s, nh, _] = whole.shape;
        let mut module = build(rope, &settings)?;
        let expected = forward(&mut module, &whole)
            .map_err(|violation| violation.on(format!("{settings}\n{whole}")))?;
        let mut offset = 0;
        for rows in parts {
            let part = |x: &[f32]| -> Vec<f32> {
                let row = nh * d;
                let batches = (0..b)
                    .flat_map(|b| x[(b * s + offset) * row..(b * s + offset + rows) * row].iter());
                batches.copied().collect()
            };
            let case = RopeCase { shape: [b, rows, nh, d], offset, x: part(&whole.x) };
            let why = format!(
                "rows {offset}..{} of the call that has all rows at once. {CALL_WHY}",
                offset + rows
            );
            forward(&mut module, &case)
                .and_then(|y| expect_values(&case, &y, &part(&expected), &why))
                .map_err(|violation| violation.on(format!("{settings}\n{case}")))?;
            offset += rows;
        }
    }
    Ok(None)
}

/// A call that ends exactly at the end of the cache uses the cache and changes nothing.
#[law("rope/exact-end-uses-cache", see = "longer#long-calls", about = Offset, points = 1,
    formula = "offset + s = es  ⇒  k stays",
    stays = "The edge between short and long, from the short side.")]
pub(super) fn exact_end_uses_cache(rope: &Rope, _: &Run) -> Verdict {
    let scripts = [
        (settings(4, 3, 1, false), vec![(0, 3), (2, 1), (1, 2)]),
        (settings(4, 3, 1, true), vec![(0, 3), (2, 1)]),
        (settings(6, 2, 3, true), vec![(4, 2), (0, 6)]),
    ];
    let why = "the call ends exactly at the end of the cache, so the cache is used as it is";
    play_all(rope, scripts, Judged { states: true, ..VALUES }, why)
}

// --- long calls -----------------------------------------------------------------------------

/// Whether a call is long, and its ratio, depend on offset + s, not on s alone.
#[law("rope/offset-counts-in-length", see = "longer#long-calls", about = Offset, points = 2,
    formula = "L = offset + s;  L > es  ⇒  k' = 2·⌈L / (2·ms)⌉",
    stays = "It looks at calls that are long by their offset alone.")]
pub(super) fn offset_counts_in_length(rope: &Rope, _: &Run) -> Verdict {
    let scripts = [
        (settings(4, 4, 1, false), vec![(3, 2)]), // ends at 5: k' = 2
        (settings(4, 4, 1, false), vec![(4, 1)]),
        (settings(4, 4, 1, false), vec![(20, 1)]), // ends at 21: k' = 6
        (settings(6, 2, 1, false), vec![(2, 3)]),  // ends at 5: k' = 4, not 2
    ];
    play_all(rope, scripts, VALUES, "offset + s positions are needed, not s")
}

/// A call past the cache turns all its rows by the frequencies of k'.
#[law("rope/long-call-ratio", see = "longer#long-calls", about = Frequencies, points = 2,
    formula = "L > es  ⇒  y_t = R_{offset+t}(k')·x_t",
    stays = "The edges of long calls, before anything about what stays.")]
pub(super) fn long_call_ratio(rope: &Rope, _: &Run) -> Verdict {
    // es + 1, ms·k', ms·k' + 1, with k from 1 and from 3, and one call far away.
    let scripts = [
        (settings(4, 3, 1, false), vec![(0, 4)]),
        (settings(4, 3, 1, false), vec![(0, 6)]),
        (settings(4, 3, 1, false), vec![(0, 7)]),
        (settings(6, 2, 3, false), vec![(0, 7)]),
        (settings(6, 2, 3, false), vec![(0, 8)]),
        (settings(6, 2, 3, false), vec![(0, 9)]),
        (settings(8, 3, 1, false), vec![(0, 16)]),
    ];
    let why = "a call past the cache uses the frequencies of k', the smallest even ratio that \
               holds it";
    play_all(rope, scripts, VALUES, why)
}

/// The output of a long call does not depend on dynamic: only what stays afterwards does.
#[law("rope/long-call-same-either-way", see = "longer#long-calls", about = Frequencies, points = 1,
    formula = "y(dynamic = true) = y(dynamic = false)",
    stays = "It compares the module with itself, so that one branch can't drift away.")]
pub(super) fn long_call_same_either_way(rope: &Rope, _: &Run) -> Verdict {
    for (ratio, offset, s) in [(1, 0, 4), (1, 2, 5), (3, 9, 1), (3, 0, 13)] {
        let output = |dynamic| -> Step<(RopeCase, Vec<f32>)> {
            let script =
                Script { settings: settings(4, 3, ratio, dynamic), calls: vec![(offset, s)] };
            let case = script.case(0);
            let y = forward(&mut build(rope, &script.settings)?, &case)
                .map_err(|violation| violation.on(&script))?;
            Ok((case, y))
        };
        let (case, fixed) = output(false)?;
        let (_, grown) = output(true)?;
        let why = format!("the same call with dynamic = false. {CALL_WHY}");
        expect_values(&case, &grown, &fixed, &why).map_err(|violation| {
            violation.on(format!("{}\n{case}", settings(4, 3, ratio, true)))
        })?;
    }
    Ok(None)
}

/// With dynamic = false a long call leaves no trace: ratio, cache and later short calls are what they were, bit for bit.
#[law("rope/static-state-stays", see = "longer#long-calls", about = State, points = 2,
    formula = "dynamic = false  ⇒  state after = state before")]
pub(super) fn static_state_stays(rope: &Rope, _: &Run) -> Verdict {
    for (settings, long) in [
        (settings(4, 3, 1, false), (0, 7)),
        (settings(4, 3, 1, false), (3, 1)),
        (settings(6, 2, 3, false), (5, 4)),
    ] {
        let script = Script { settings, calls: vec![(1, 2), long, (1, 2)] };
        let judge = || {
            let mut module = build(rope, &script.settings)?;
            let short = forward(&mut module, &script.case(0))?;
            let before = state(&module)?;
            forward(&mut module, &script.case(1))?;
            let after = state(&module)?;
            let numbers = |state: &RopeState| (state.ratio, state.cached_len);
            holds("state", numbers(&before) == numbers(&after), || {
                let (before, after) = (numbers(&before), numbers(&after));
                format!("(k, cached rows) were {before:?}. After the long call: {after:?}")
            })?;
            let shape = [before.cached_len, script.settings.head_dim];
            let why = "what the cache held before the long call, bit for bit";
            same_values("state", &shape, &after.tables.cos, &before.tables.cos, why)?;
            same_values("state", &shape, &after.tables.sin, &before.tables.sin, why)?;
            let again = forward(&mut module, &script.case(2))?;
            let why = "the same short call before the long one, bit for bit";
            same_values("forward", &script.case(2).shape, &again, &short, why)
        };
        judge().map_err(|violation: Box<Violation>| violation.on(&script))?;
    }
    Ok(None)
}

/// With dynamic = true a long call replaces the ratio and the whole cache for good.
#[law("rope/dynamic-grows", see = "longer#long-calls", about = State, points = 2,
    formula = "dynamic = true, L > es  ⇒  k = k', es = ms·k', C = C(k'), S = S(k')",
    stays = "The state itself, before any later call depends on it.")]
pub(super) fn dynamic_grows(rope: &Rope, _: &Run) -> Verdict {
    let scripts = [
        (settings(4, 3, 1, true), vec![(0, 4)]),
        (settings(4, 3, 1, true), vec![(6, 1)]), // k' = 4
        (settings(6, 2, 3, true), vec![(0, 7)]), // from 3 to 4
        (settings(6, 2, 3, true), vec![(5, 4)]), // from 3 to 6
    ];
    play_all(rope, scripts, STATES, "")
}

/// After a dynamic module has grown, short calls use the new frequencies too.
#[law("rope/dynamic-later-calls", see = "longer#long-calls", about = State, points = 2,
    formula = "dynamic = true, then L ≤ ms·k'  ⇒  y_t = R_{offset+t}(k')·x_t",
    stays = "It shows by values, not by a report, that the cache was replaced.")]
pub(super) fn dynamic_later_calls(rope: &Rope, _: &Run) -> Verdict {
    let scripts = [
        (settings(4, 3, 1, true), vec![(0, 7), (1, 2)]),
        (settings(6, 2, 3, true), vec![(5, 4), (0, 6)]),
        (settings(6, 2, 3, true), vec![(5, 4), (4, 8)]),
    ];
    let why = "the cache was replaced by an earlier long call; later calls use its frequencies";
    play_all(rope, scripts, Judged { from: 1, ..VALUES }, why)
}

/// A dynamic module grows as often as calls get longer, each time measured from ms.
#[law("rope/dynamic-grows-again", see = "longer#long-calls", about = State, points = 1,
    formula = "k' = 2·⌈L / (2·ms)⌉ for the second long call as for the first")]
pub(super) fn dynamic_grows_again(rope: &Rope, _: &Run) -> Verdict {
    let scripts = [
        (settings(4, 3, 1, true), vec![(0, 4), (0, 7), (0, 13)]), // k' = 2, 4, 6
        (settings(6, 2, 1, true), vec![(2, 1), (4, 5), (8, 5)]),  // k' = 2, 6, 8
    ];
    let judged = Judged { from: 1, values: true, states: true };
    play_all(rope, scripts, judged, "a second long call grows the cache again")
}

/// A dynamic module does not shrink when calls get shorter again.
#[law("rope/dynamic-never-shrinks", see = "longer#long-calls", about = State, points = 1,
    formula = "L ≤ es  ⇒  k stays",
    stays = "Some libraries shrink on purpose, so the rule has to be said.")]
pub(super) fn dynamic_never_shrinks(rope: &Rope, _: &Run) -> Verdict {
    let scripts = [
        (settings(4, 3, 1, true), vec![(0, 7), (0, 2), (0, 4), (5, 1)]),
        (settings(6, 2, 3, true), vec![(10, 2), (0, 1), (0, 7)]),
    ];
    let judged = Judged { from: 1, values: true, states: true };
    play_all(rope, scripts, judged, "a shorter call leaves the grown cache as it is")
}

/// The module stays within its tolerance at large odd positions, from its cache and past it.
#[law("rope/large-positions", see = "rope#precision", about = Offset, points = 2,
    formula = "|y − y₆₄| ≤ (n·2⁻²³ + 8·2⁻²⁴)·(|x_i| + |x_{i+d/2}|),  n > 16,384")]
pub(super) fn large_positions(rope: &Rope, _: &Run) -> Verdict {
    let settings = settings(4, 2053, 1, false);
    let mut module = build(rope, &settings)?;
    // f16 counts in twos from 2048 on, and in sixteens where the long calls lie.
    for (offset, s, ratio) in [(2049, 2, 1.0), (2052, 1, 1.0), (16_397, 3, 8.0), (20_009, 2, 10.0)]
    {
        let case = sample(4, offset, s);
        // Only the rows that are needed, so that the oracle builds no large cache.
        let tables = Oracle.tables(4, settings.base, ratio, offset..offset + s);
        let RopeCase { shape, x, .. } = case.clone();
        let truth = Oracle.rotate(&RotateCase { shape, tables, x, layout: Layout::HalfSplit });
        let truth: Vec<f32> = truth.into_iter().map(|y| y as f32).collect();
        forward(&mut module, &case)
            .and_then(|y| expect_values(&case, &y, &truth, CALL_WHY))
            .map_err(|violation| violation.on(format!("{settings}\n{case}")))?;
    }
    Ok(None)
}

// --- what is refused ------------------------------------------------------------------------

fn overflowing(d: usize) -> RopeCase {
    RopeCase { offset: usize::MAX, ..sample(d, 0, 2) }
}

/// An offset so large that offset + s overflows is refused.
#[law("rope/overflow-is-refused", see = "longer#offset", about = Refusal, points = 1,
    formula = "offset + s ≥ 2⁶⁴  ⇒  no result",
    stays = "Wrapped or clamped offsets break it by name.")]
pub(super) fn overflow_is_refused(rope: &Rope, _: &Run) -> Verdict {
    for dynamic in [false, true] {
        for less in [0, 1] {
            let settings = settings(4, 3, 1, dynamic);
            let mut module = build(rope, &settings)?;
            let case = RopeCase { offset: usize::MAX - less, ..overflowing(4) };
            let rule = "offset + s is larger than any usize";
            refusal("forward", rule, || module.forward(&case))
                .map_err(|violation| violation.on(format!("{settings}\n{case}")))?;
        }
    }
    Ok(None)
}

/// A call that is refused leaves the module as it was.
#[law("rope/refused-call-changes-nothing", see = "longer#long-calls", about = State, points = 1,
    formula = "no result  ⇒  state after = state before")]
pub(super) fn refused_call_changes_nothing(rope: &Rope, _: &Run) -> Verdict {
    // The positions overflow, or the cache that a dynamic module would need for them.
    let calls = [(false, usize::MAX), (true, usize::MAX), (true, usize::MAX - 3)];
    for (dynamic, offset) in calls {
        let settings = settings(4, 3, 1, dynamic);
        let mut module = build(rope, &settings)?;
        let case = RopeCase { offset, ..overflowing(4) };
        let rule = "offset + s, or the cache of ms·k' rows, is larger than any usize";
        let refused = refusal("forward", rule, || module.forward(&case));
        let mut truth = truth(&settings)?;
        let unchanged = |_words| {
            expect_state(&module, &truth)?;
            // What is not to be seen in the state either.
            for s in [2, 5] {
                let case = sample(4, 1, s);
                let (got, expected) = (forward(&mut module, &case)?, forward(&mut truth, &case)?);
                expect_values(&case, &got, &expected, CALL_WHY)?;
                refusal("forward", rule, || {
                    module.forward(&RopeCase { offset, ..overflowing(4) })
                })?;
                let expected = answer("backward", || truth.backward(&case, &case.x))?;
                let got = answer("backward", || module.backward(&case, &case.x))?;
                let (expected, tolerance) = (widen(&expected), call_tolerance(&case));
                within("backward", &case.shape, &got, &expected, |i| tolerance[i], CALL_WHY)?;
            }
            Ok(())
        };
        refused.and_then(unchanged).map_err(|violation| {
            violation.on(format!("{settings}\nafter a call that was refused: {case}"))
        })?;
    }
    Ok(None)
}

/// A module with a bad head size, base, ratio or training length is not built.
#[law("rope/settings-refused", see = "longer#cache", about = Refusal, points = 1,
    formula = "d odd, d < 4, base ≤ 1, k < 1 or ms = 0  ⇒  no module")]
pub(super) fn settings_refused(rope: &Rope, _: &Run) -> Verdict {
    let good = settings(4, 3, 1, false);
    for (head_dim, rule) in [(5, "an odd head size"), (2, "head size 2")] {
        let bad = RopeSettings { head_dim, ..good };
        refusal_of_sizes("build", rule, || rope.build(&bad).map(|_module| ()))
            .map_err(|violation| violation.on(bad))?;
    }
    for (bad, rule) in [
        (RopeSettings { base: 1.0, ..good }, "base 1"),
        (RopeSettings { base: f64::NAN, ..good }, "a base that is not a number"),
        (RopeSettings { base: f64::INFINITY, ..good }, "an infinite base"),
        (RopeSettings { ratio: 0, ..good }, "ratio 0"),
        (RopeSettings { max_seq_len: 0, ..good }, "max_seq_len 0"),
    ] {
        refusal("build", rule, || rope.build(&bad).map(|_module| ()))
            .map_err(|violation| violation.on(bad))?;
    }
    Ok(None)
}

// --- nets -----------------------------------------------------------------------------------

/// Two modules do not know of each other, whatever they share inside.
#[law("rope/modules-are-apart", see = "longer#cache", about = State, points = 1,
    formula = "calls of A change no result of B",
    stays = "It is the only one that has two modules at once.")]
pub(super) fn modules_are_apart(rope: &Rope, _: &Run) -> Verdict {
    for (dynamic, other) in [(true, false), (false, false), (true, true)] {
        let first = settings(4, 3, 1, dynamic);
        let second = RopeSettings { base: 100.0, dynamic: other, ..first };
        two_apart(rope, &first, &second)?;
    }
    Ok(None)
}

fn two_apart(rope: &Rope, first: &RopeSettings, second: &RopeSettings) -> Step {
    let input = format!("two modules, called in turn:\n{first}\n{second}");
    let judge = || {
        let (mut a, mut b) = (build(rope, first)?, build(rope, second)?);
        let (mut true_a, mut true_b) = (truth(first)?, truth(second)?);
        for (offset, s) in [(0, 3), (1, 1), (0, 5), (0, 2)] {
            let case = sample(4, offset, s);
            for (module, truth) in [(&mut a, &mut true_a), (&mut b, &mut true_b)] {
                let (got, expected) = (forward(module, &case)?, forward(truth, &case)?);
                let why = format!("what the module gives when it is alone. {CALL_WHY}");
                expect_values(&case, &got, &expected, &why)?;
            }
        }
        Ok(())
    };
    judge().map_err(|violation: Box<Violation>| violation.on(input))
}

/// Small modules of any kind, up to three calls around the end of their cache.
fn scripts() -> impl Strategy<Value = Script> {
    let head_dim = prop::sample::select(&menu::HEAD_DIM[..3]);
    let base = prop::sample::select(vec![100.0, 10_000.0, 500_000.0]);
    let module = (head_dim, base, 1..=3usize, 1..=3usize, any::<bool>());
    let calls = prop::collection::vec((0..9usize, 1..=4usize), 1..=3);
    (module, calls).prop_map(|((head_dim, base, max_seq_len, ratio, dynamic), calls)| Script {
        settings: RopeSettings { head_dim, base, max_seq_len, ratio, dynamic },
        calls,
    })
}

/// For any settings and any short sequence of calls, outputs and states are what plain f64 loops give.
#[law("rope/module-f64-loops", see = "longer#cache", about = State, points = 3,
    formula = "y_t = R_{offset+t}(k)·x_t, and the state after each call", stays = NET)]
pub(super) fn module_f64_loops(rope: &Rope, run: &Run) -> Verdict {
    judge_graded_cases(rope, run, "build")?;
    let judged = Judged { states: true, ..VALUES };
    run.forall(scripts(), |script| play(rope, script, judged, "what the f64 loops give"))?;
    Ok(None)
}

/// What the wrong values of a module's first call are about, if they show it.
fn of_values(
    settings: &RopeSettings,
    case: &RopeCase,
    got: &[f32],
    expected: &[f32],
) -> Option<Category> {
    let [_, s, nh, d] = case.shape;
    let end = case.offset + s;
    let RopeSettings { max_seq_len, ratio, .. } = *settings;
    let close = |got: f32, expected: f32| (got - expected).abs() < 1e-3;
    let wrong: Vec<usize> = (0..got.len()).filter(|&i| !close(got[i], expected[i])).collect();
    if wrong.is_empty() {
        return None; // some digits
    }
    let with_ratio = |ratio: usize| {
        let other = RopeSettings { ratio, max_seq_len: end, dynamic: false, ..*settings };
        let values = truth(&other).and_then(|mut module| forward(&mut module, case));
        values.is_ok_and(|values| values.iter().zip(got).all(|(&e, &g)| close(g, e)))
    };
    if end <= 100 && (1..=2 * (ratio + end / max_seq_len)).any(with_ratio) {
        return Some(Category::Frequencies);
    }
    // Rows that the cache would hold, and rows past it.
    let position = |i: usize| case.offset + i / d / nh % s;
    let past = max_seq_len * ratio;
    let late = wrong.into_iter().all(|i| position(i) >= past);
    (case.offset < past && late).then_some(Category::Offset)
}

/// A module, and calls of it in some manner.
#[derive(Debug, Clone)]
pub(in crate::rope) struct Calls {
    pub settings: RopeSettings,
    pub manner: Manner,
    /// Batch rows and heads of each call.
    pub rows: [usize; 2],
    /// How large the values are.
    pub scale: f32,
    /// Offset and tokens of each call.
    pub calls: Vec<(usize, usize)>,
}

/// What each call must give: values, gradient, and the state that it leaves.
pub(in crate::rope) fn matches_calls(rope: &Rope, plan: &Calls) -> Step {
    let Calls { settings, manner, rows: [b, nh], scale, calls } = plan;
    let script = Script { settings: *settings, calls: calls.clone() };
    let mut module = build(rope, settings)?;
    let mut truth = truth(settings)?;
    let mut call = |i: usize| {
        let (offset, s) = calls[i];
        let mut case = sample_of([*b, s, *nh, settings.head_dim], offset);
        case.x.iter_mut().for_each(|x| *x *= scale);
        let mut back = *manner;
        if *manner == Manner::Broadcast {
            // Its rows are equal. The gradient of a broadcast tensor would be that of one row.
            let row = case.x.len() / b;
            case.x = case.x[..row].repeat(*b);
            back = Manner::Plain;
        }
        if *manner == Manner::Cloned {
            // A copy is the same, and what it does is its own.
            let es = state(&module)?.cached_len;
            let long = sample(settings.head_dim, es, 2);
            let mut copies =
                (answer("clone", || module.cloned())?, truth.cloned().expect("it is the oracle's"));
            let (got, expected) = (forward(&mut copies.0, &long)?, forward(&mut copies.1, &long)?);
            expect_values(&long, &got, &expected, "asked of a clone")?;
            expect_state(&copies.0, &copies.1)?;
        }
        let expected = forward(&mut truth, &case)?;
        // Later calls have one before them.
        if *manner == Manner::Again && i == 0 {
            forward(&mut module, &case)?;
        }
        let got = answer("forward", || module.forward_in(*manner, &case))?;
        expect_values(&case, &got, &expected, CALL_WHY).map_err(|mut violation| {
            // Later calls may be wrong through what was kept.
            if i == 0 && *manner == Manner::Plain && !violation.is_rearranged() {
                violation.category = of_values(settings, &case, &got, &expected);
            }
            violation
        })?;
        expect_state(&module, &truth).map_err(|mut violation| {
            violation.category = Some(Category::State);
            violation
        })?;
        let dy: Vec<f32> = case.x.iter().rev().copied().collect();
        let expected = answer("backward", || truth.backward(&case, &dy))?;
        let got = answer("backward", || module.backward_in(back, &case, &dy))?;
        let tolerance = call_tolerance(&RopeCase { x: dy, ..case.clone() });
        let expected = widen(&expected);
        within("backward", &case.shape, &got, &expected, |i| tolerance[i], CALL_WHY).map_err(
            |mut violation| {
                violation.category = (*manner == Manner::Plain).then_some(Category::Gradient);
                violation
            },
        )
    };
    (0..calls.len()).try_for_each(|i| {
        call(i).map_err(|b: Box<Violation>| {
            b.on(format!("{}\n{script}\nwrong at call {}", manner.words(), i + 1).trim_start())
        })
    })
}
